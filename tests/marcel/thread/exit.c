/*
 * marcel/thread/exit.c: cleanup handlers of C code. Compiled without and with
 * -fexceptions, where the handlers are frames of the unwinder's.
 */
#include <execinfo.h>
#include <pthread.h>

#include "../child.h"
#include "../with.h"

enum { LOG = 16 };

/* Who ran, in order; one thread at a time writes. */
static int order[LOG], norder;
static marcel_key_t key;

static void note(void *arg)
{
	CHECK(norder < LOG);
	order[norder++] = (int)(long)arg;
}

/* The VP may be another one afterwards. */
static void note_and_yield(void *arg)
{
	for (int i = 0; i < 10; i++)
		marcel_yield();
	note(arg);
}

static BASE_NOINLINE void inner(void *value)
{
	marcel_cleanup_push(note, (void *)1);
	marcel_cleanup_push(note_and_yield, (void *)2);
	marcel_exit(value);
	marcel_cleanup_pop(0);
	marcel_cleanup_pop(0);
}

static BASE_NOINLINE void middle(void *value)
{
	marcel_cleanup_push(note, (void *)3);
	marcel_cleanup_push(note, (void *)4);
	marcel_cleanup_pop(0);
	inner(value);
	marcel_cleanup_pop(0);
}

static void *outer(void *value)
{
	marcel_setspecific(key, (void *)6);
	marcel_cleanup_push(note, (void *)5);
	middle(value);
	marcel_cleanup_pop(0);
	return NULL;
}

static void check_order(void)
{
	static const int want[] = { 2, 1, 3, 5, 6 };

	CHECK_INT(norder, BASE_ARRAY_LEN(want));
	for (int i = 0; i < norder; i++)
		CHECK_INT(order[i], want[i]);
}

static void exit_often(void)
{
	marcel_t t;
	void *value;

	CHECK_INT(marcel_key_create(&key, note), 0);
	for (int i = 0; i < 50; i++) {
		norder = 0;
		CHECK_INT(marcel_create(&t, NULL, outer, &value), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_PTR(value, &value);
		check_order();
	}
	CHECK_INT(marcel_key_delete(key), 0);
}

TEST_VPS(handlers_run_innermost_first_and_keys_last)
{
	exit_often();
}

static void *walk(void *arg)
{
	void *frames[32];

	return (void *)(long)backtrace(frames, BASE_ARRAY_LEN(frames));
}

/* Here backtrace() loads an unwinder, which then stays. */
TEST_VPS(unwinding_ends_at_the_first_frame)
{
	marcel_t t;
	void *depth;

	CHECK_INT(marcel_create(&t, NULL, walk, NULL), 0);
	CHECK_INT(marcel_join(t, &depth), 0);
	CHECK((long)depth >= 2 && (long)depth <= 8);
}

TEST_VPS(handlers_run_in_order_with_an_unwinder_too)
{
	exit_often();
}

static void *pop(void *arg)
{
	marcel_cleanup_push(note, (void *)1);
	marcel_cleanup_push(note, (void *)2);
	marcel_cleanup_pop(1);
	marcel_cleanup_pop(0);
	return arg;
}

TEST_VPS(pop_runs_a_handler_if_it_is_told_to)
{
	marcel_t t;

	norder = 0;
	CHECK_INT(marcel_create(&t, NULL, pop, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	pop(NULL);
	CHECK_INT(norder, 2);
	CHECK_INT(order[0], 2);
	CHECK_INT(order[1], 2);
}

static void again(void *arg)
{
	note(arg);
	marcel_exit((void *)7);
}

static void *exit_again(void *arg)
{
	marcel_cleanup_push(note, (void *)2);
	marcel_cleanup_push(again, (void *)1);
	marcel_exit(arg);
	marcel_cleanup_pop(0);
	marcel_cleanup_pop(0);
	return NULL;
}

TEST_VPS(a_handler_may_exit_with_another_value)
{
	marcel_t t;
	void *value;

	norder = 0;
	CHECK_INT(marcel_create(&t, NULL, exit_again, NULL), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, (void *)7);
	CHECK_INT(norder, 2);
	CHECK_INT(order[0], 1);
	CHECK_INT(order[1], 2);
}

TEST_VPS(handlers_of_a_foreign_thread_run)
{
	pthread_t t;
	void *value;

	norder = 0;
	CHECK_INT(marcel_key_create(&key, note), 0);
	CHECK_INT(pthread_create(&t, NULL, outer, &value), 0);
	CHECK_INT(pthread_join(t, &value), 0);
	CHECK_PTR(value, &value);
	check_order();
	CHECK_INT(marcel_key_delete(key), 0);
}

static void say(void *arg)
{
	fprintf(stderr, "%s\n", (char *)arg);
}

static void exit_main_with_handler(void)
{
	struct marcel_config config = { .nvp = 2 };

	CHECK_INT(marcel_init(&config), 0);
	marcel_cleanup_push(say, (void *)"main's handler");
	marcel_exit(NULL);
	marcel_cleanup_pop(0);
}

TEST(handlers_of_main_run)
{
	CHECK_INT(in_child(exit_main_with_handler), 0);
	CHECK_STR(said, "main's handler\n");
}
