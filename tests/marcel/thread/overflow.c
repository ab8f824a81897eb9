/* marcel/thread/overflow.c: who runs off a stack is named. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/compiler.h>
#include "../child.h"
#include "../with.h"

/* The compiler must believe that the frame is still needed here. */
static void keep(void *frame)
{
	__asm__ volatile("" : : "r"(frame) : "memory");
}

static BASE_NOINLINE void fall(int n)
{
	char frame[512];

	memset(frame, n, sizeof(frame));
	keep(frame);
	if (n < 1 << 30)
		fall(n + 1);
	keep(frame);
}

static void *fall_off(void *arg)
{
	fall(0);
	return arg;
}

static void run_named(const char *name, int nvp, size_t bytes)
{
	struct marcel_config config = { .nvp = nvp };
	marcel_attr_t attr;
	marcel_t t;

	if (marcel_init(&config) != 0 || marcel_attr_init(&attr) != 0 ||
	    marcel_attr_setname(&attr, name) != 0 ||
	    marcel_attr_setstacksize(&attr, bytes) != 0 ||
	    marcel_create(&t, &attr, fall_off, NULL) != 0)
		_exit(1);
	marcel_join(t, NULL);
}

static void overflow_here(void)
{
	run_named("deep thought", 1, 65536);
}

static void overflow_elsewhere(void)
{
	run_named("deep thought", 3, 200000);
}

static void check_overflow(void (*body)(void))
{
	int status = in_child(body);

	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSEGV);
	CHECK(strstr(said, "stack overflow") != NULL);
	CHECK(strstr(said, "\"deep thought\"") != NULL);
	CHECK(strstr(said, "MARCEL_STACKSIZE") != NULL);
	CHECK(strchr(said, '\n') == strrchr(said, '\n')); /* once */
}

TEST(the_thread_and_the_variable_are_named)
{
	check_overflow(overflow_here);
	check_overflow(overflow_elsewhere);
}

/* --- a signal whose frame does not fit --- */

static void handler(int sig)
{
	(void)sig;
}

/* The frame of a signal is larger than ours: it is the first not to fit. */
static BASE_NOINLINE void descend_and_raise(char *top)
{
	char frame[256];

	keep(frame);
	if (top - frame > 40000)
		raise(SIGUSR1);
	if (top - frame < 1 << 30)
		descend_and_raise(top);
	keep(frame);
}

static void *signal_near_the_end(void *arg)
{
	char top;

	descend_and_raise(&top);
	return arg;
}

static void overflow_by_signal(void)
{
	struct sigaction act = { .sa_handler = handler };
	struct marcel_config config = { .nvp = 1 };
	marcel_attr_t attr;
	marcel_t t;

	sigaction(SIGUSR1, &act, NULL);
	if (marcel_init(&config) != 0 || marcel_attr_init(&attr) != 0 ||
	    marcel_attr_setname(&attr, "deep thought") != 0 ||
	    marcel_create(&t, &attr, signal_near_the_end, NULL) != 0)
		_exit(1);
	marcel_join(t, NULL);
}

TEST(a_signal_that_finds_no_room_is_an_overflow)
{
	check_overflow(overflow_by_signal);
}

/* --- other faults --- */

static void *touch(void *arg)
{
	keep(arg);
	return *(char **)arg;
}

static void fault(void)
{
	struct marcel_config config = { .nvp = 1 };
	marcel_t t;

	if (marcel_init(&config) != 0 ||
	    marcel_create(&t, NULL, touch, (void *)64) != 0)
		_exit(1);
	marcel_join(t, NULL);
}

TEST(any_other_fault_has_its_usual_end)
{
	int status = in_child(fault);

	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSEGV);
	CHECK_STR(said, "");
}

static void our_handler(int sig)
{
	(void)sig;
	_exit(42);
}

static void fault_with_handler(void)
{
	signal(SIGSEGV, our_handler);
	fault();
}

TEST(a_handler_that_was_there_before_is_called)
{
	int status = in_child(fault_with_handler);

	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 42);
}

static void end_and_fault(void)
{
	struct marcel_config config = { .nvp = 1 };
	struct sigaction now;

	signal(SIGSEGV, our_handler);
	if (marcel_init(&config) != 0 || marcel_end() != 0 ||
	    sigaction(SIGSEGV, NULL, &now) != 0 ||
	    now.sa_handler != our_handler)
		_exit(1);
}

TEST(the_handler_is_given_back_at_the_end)
{
	CHECK_INT(in_child(end_and_fault), 0);
}
