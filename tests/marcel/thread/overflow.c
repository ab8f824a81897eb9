/* marcel/thread/overflow.c: who runs off a stack is named. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../child.h"
#include "../with.h"
#include "../../../marcel/sched/vp.h"
#include "../../../marcel/thread/stack.h"
#include "../../../marcel/thread/thread.h"

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

	if (!WIFSIGNALED(status))
		printf("# status 0x%x, said: %s\n", (unsigned)status, said);
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

static BASE_NOINLINE void descend_to_and_raise(char *limit)
{
	char frame[256];

	keep(frame);
	if (frame > limit)
		descend_to_and_raise(limit);
	else
		raise(SIGUSR1);
	keep(frame);
}

/* The handler runs, below the stack, and comes back. */
static void *signal_at_the_end(void *arg)
{
	struct marcel_stack *s = marcel_self()->stack;

	descend_to_and_raise(s->low + 700);
	marcel_yield();
	return arg;
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

/* --- without guard pages --- */

/* The frames end this far below the stack, and come back. */
static BASE_NOINLINE void fall_to(const char *limit)
{
	char frame[256];

	memset(frame, 1, sizeof(frame));
	keep(frame);
	if (frame > limit)
		fall_to(limit);
	keep(frame);
}

static void *fall_near_the_end(void *arg)
{
	fall_to(marcel_self()->stack->low + (long)arg);
	marcel_yield();
	return NULL;
}

static void run_unguarded(void *(*fn)(void *), void *arg)
{
	struct marcel_config config = { .nvp = 1 };
	marcel_attr_t attr;
	marcel_t t;

	setenv("MARCEL_GUARDS", "canary", 1);
	if (marcel_init(&config) != 0 || marcel_attr_init(&attr) != 0 ||
	    marcel_attr_setname(&attr, "deep thought") != 0 ||
	    marcel_create(&t, &attr, fn, arg) != 0)
		_exit(1);
	marcel_join(t, NULL);
	marcel_end();
}

static void overflow_unguarded(void)
{
	run_unguarded(fall_near_the_end, (void *)-100);
}

static void signal_unguarded(void)
{
	struct sigaction act = { .sa_handler = handler };

	sigaction(SIGUSR1, &act, NULL);
	run_unguarded(signal_at_the_end, NULL);
}

TEST(without_guard_pages_a_switch_finds_the_overflow)
{
	check_overflow(overflow_unguarded);
	check_overflow(signal_unguarded);
}

static void no_overflow(void)
{
	run_unguarded(fall_near_the_end, (void *)1000);
}

TEST(without_guard_pages_a_full_stack_is_no_overflow)
{
	CHECK_INT(in_child(no_overflow), 0);
	CHECK_STR(said, "");
}

static void overflow_protected(void)
{
	setenv("MARCEL_GUARDS", "mprotect", 1);
	overflow_here();
}

TEST(guards_by_mprotect_do_as_well)
{
	check_overflow(overflow_protected);
}

/* --- in a thread that computes, and never switches by itself --- */

static ATOMIC(int) over; /* never */

/* Until the tick: who is let loose has his first one late. */
static void compute(void)
{
	while (load_relaxed(&over) == 0)
		;
}

static void *computes(void *arg)
{
	compute();
	return arg;
}

static BASE_NOINLINE void compute_at(char *limit)
{
	char frame[256];

	keep(frame);
	if (frame > limit)
		compute_at(limit);
	else
		compute();
	keep(frame);
}

/* The tick's frame is the first that does not fit. */
static void *compute_near_the_end(void *arg)
{
	compute_at(marcel_self()->stack->low + 700);
	return arg;
}

/* It was beyond the end, and is back. */
static void *compute_after_a_fall(void *arg)
{
	fall_to(marcel_self()->stack->low - 100);
	compute();
	return arg;
}

static const struct computing {
	const char *guards;
	int nvp;
	void *(*fn)(void *);
} computing[] = {
	{ "auto", 1, compute_near_the_end },
	{ "auto", 2, compute_near_the_end },
	{ "mprotect", 1, compute_near_the_end },
	{ "mprotect", 2, compute_near_the_end },
	{ "canary", 1, compute_near_the_end },
	{ "canary", 2, compute_near_the_end },
	{ "canary", 1, compute_after_a_fall },
	{ "canary", 2, compute_after_a_fall },
};
static const struct computing *now_computing;

/*
 * One more beside it than there are VPs: so it is preempted, even while one of
 * them was let loose and computes without a VP. Its stack is of another size
 * than theirs, so that none of theirs lies below it: where no guard page is,
 * the tick's frame overwrites what lies there, and who computed on it at the
 * same time would go on with that before the handler has said anything.
 */
static void overflow_by_tick(void)
{
	struct marcel_config config = { .nvp = now_computing->nvp };
	marcel_attr_t attr;
	marcel_t t;

	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	setenv("MARCEL_GUARDS", now_computing->guards, 1);
	if (marcel_init(&config) != 0 || marcel_attr_init(&attr) != 0 ||
	    marcel_attr_setname(&attr, "deep thought") != 0 ||
	    marcel_attr_setstacksize(&attr, 200000) != 0 ||
	    marcel_create(&t, &attr, now_computing->fn, NULL) != 0)
		_exit(1);
	for (int i = 0; i <= now_computing->nvp; i++)
		if (marcel_create(&t, NULL, computes, NULL) != 0)
			_exit(1);
	marcel_join(t, NULL);
}

TEST(a_tick_finds_who_computes_at_the_end_of_a_stack_or_was_beyond)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(computing); i++) {
		now_computing = &computing[i];
		check_overflow(overflow_by_tick);
	}
}

/* --- one of very many --- */

enum { MANY = 100000 };

static const struct one_of_many {
	const char *guards;
	int which;      /* that gets a stack */
	bool unguarded; /* for sure: the budget of mappings is used up */
} ones_of_many[] = {
	{ "auto", 0, false },
	{ "auto", MANY - 1, false },
	{ "mprotect", 0, false },
	{ "mprotect", MANY - 1, true },
};
static const struct one_of_many *one_of_many;
static ATOMIC(int) begun;

/* The others are blocked then, each on a stack. */
static void run_off_when_all_have_begun(void)
{
	struct marcel_stack *s = marcel_self()->stack;

	if (marcel_setname(marcel_self(), "deep thought") != 0 ||
	    (one_of_many->unguarded && s->is_guarded))
		_exit(1);
	while (load_relaxed(&begun) < MANY)
		marcel_yield();
	fall_to(s->low - 100);
	marcel_yield(); /* or wants to: it is looked at */
	_exit(0);
}

static void *one(void *arg)
{
	if (fetch_add_relaxed(&begun, 1) == one_of_many->which)
		run_off_when_all_have_begun();
	marcel_park(NULL, NULL);
	return arg;
}

static void overflow_of_one(void)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_t t;

	setenv("MARCEL_GUARDS", one_of_many->guards, 1);
	if (marcel_init(&config) != 0)
		_exit(1);
	for (int i = 0; i < MANY; i++)
		if (marcel_create(&t, NULL, one, NULL) != 0)
			_exit(1);
	marcel_join(t, NULL);
}

TEST(one_of_a_hundred_thousand_is_named)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(ones_of_many); i++) {
		one_of_many = &ones_of_many[i];
		check_overflow(overflow_of_one);
	}
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
