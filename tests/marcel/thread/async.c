/*
 * marcel/thread/cancel.c, sched/tick.c: a thread of asynchronous cancellation
 * type ends wherever it is, its handlers run, and nobody else notices.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/cancel.h>
#include "../with.h"

enum { ROUNDS = 100 };

static ATOMIC(int) begun, cleaned, go;

static void with_slice(const char *us, int nvp, void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", us, 1);
	store_relaxed(&begun, 0);
	store_relaxed(&cleaned, 0);
	store_relaxed(&go, 0);
	with_vps(nvp, body);
	unsetenv("MARCEL_TIMESLICE_US");
}

#define TEST_ASYNC(name)                                                       \
	static void name##_body(void);                                         \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_slice("500", 1, name##_body);                             \
	}                                                                      \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_slice("500", 2, name##_body);                             \
	}                                                                      \
	TEST(name##_on_4_vps)                                                  \
	{                                                                      \
		with_slice("500", 4, name##_body);                             \
	}                                                                      \
	static void name##_body(void)

static void clean(void *arg)
{
	CHECK_PTR(arg, &cleaned);
	fetch_add_relaxed(&cleaned, 1);
}

static BASE_NOINLINE long spin(long n)
{
	fetch_add_relaxed(&begun, 1);
	while (load_relaxed(&begun) > 0)
		n++;
	return n;
}

static BASE_NOINLINE long descend(int depth)
{
	long n = 0;

	if (depth == 0)
		return spin(1);
	marcel_cleanup_push(clean, &cleaned);
	n = descend(depth - 1) + 1;
	marcel_cleanup_pop(0);
	return n;
}

static void *computes(void *arg)
{
	int old;

	CHECK_INT(marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, &old), 0);
	descend(3);
	return arg;
}

static marcel_t start(const marcel_attr_t *attr, void *(*fn)(void *))
{
	int before = load_relaxed(&begun);
	marcel_t t;

	CHECK_INT(marcel_create(&t, attr, fn, NULL), 0);
	while (load_relaxed(&begun) == before)
		marcel_yield();
	return t;
}

static void check_cancelled(marcel_t t)
{
	void *value;

	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
}

TEST_ASYNC(who_computes_for_ever_ends)
{
	for (int i = 0; i < ROUNDS; i++) {
		marcel_t t = start(NULL, computes);

		CHECK_INT(marcel_cancel(t), 0);
		check_cancelled(t);
		CHECK_INT(load_relaxed(&cleaned), 3 * (i + 1));
	}
}

/* Others who compute are only interrupted. */
TEST_ASYNC(many_end_and_others_go_on)
{
	marcel_t t[8];

	for (int i = 0; i < 8; i++)
		t[i] = start(NULL, computes);
	for (int i = 0; i < 8; i += 2) {
		CHECK_INT(marcel_cancel(t[i]), 0);
		check_cancelled(t[i]);
	}
	CHECK_INT(load_relaxed(&cleaned), 12);
	for (int i = 1; i < 8; i += 2)
		CHECK_INT(marcel_cancel(t[i]), 0);
	for (int i = 1; i < 8; i += 2)
		check_cancelled(t[i]);
	CHECK_INT(load_relaxed(&cleaned), 24);
}

/* The signal of the tick is not left blocked where one has ended. */
TEST_ASYNC(its_kernel_thread_takes_ticks)
{
	marcel_attr_t attr;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_nvp() - 1), 0);
	for (int i = 0; i < 10; i++) {
		marcel_t t = start(&attr, computes);

		CHECK_INT(marcel_cancel(t), 0);
		check_cancelled(t);
	}
}

/* --- who may not be interrupted --- */

static void without_slices(void)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 1), 0);
	for (int i = 0; i < ROUNDS; i++) {
		t = start(&attr, computes);
		CHECK_INT(marcel_cancel(t), 0);
		check_cancelled(t);
	}
}

/* A VP is free for main; who cancels interrupts. */
TEST(it_needs_no_slices)
{
	with_slice("0", 2, without_slices);
	with_slice("0", 4, without_slices);
}

static void with_attributes(void)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 1), 0);
	for (int i = 0; i < 20; i++) {
		CHECK_INT(marcel_attr_setpreemptible(&attr, i % 2), 0);
		CHECK_INT(marcel_attr_setprivatetls(&attr, i / 2 % 2), 0);
		t = start(&attr, computes);
		CHECK_INT(marcel_cancel(t), 0);
		check_cancelled(t);
	}
}

TEST(who_is_not_preemptible_or_is_private_ends_too)
{
	with_slice("500", 2, with_attributes);
}

/* --- what it allows --- */

static void *disables(void *arg)
{
	int old;

	CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_DISABLE, &old), 0);
	CHECK_INT(marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, &old), 0);
	fetch_add_relaxed(&begun, 1);
	while (load_relaxed(&go) == 0)
		;
	fetch_add_relaxed(&cleaned, 1);
	CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_ENABLE, &old), 0);
	CHECK(false);
	return arg;
}

static void *defers(void *arg)
{
	fetch_add_relaxed(&begun, 1);
	while (load_relaxed(&go) == 0)
		;
	fetch_add_relaxed(&cleaned, 1);
	marcel_testcancel();
	CHECK(false);
	return arg;
}

TEST_ASYNC(who_does_not_allow_it_goes_on)
{
	void *(*const fn[])(void *) = { disables, defers };
	marcel_t t;

	for (int i = 0; i < 2; i++) {
		store_relaxed(&go, 0);
		t = start(NULL, fn[i]);
		CHECK_INT(marcel_cancel(t), 0);
		for (int j = 0; j < 100; j++)
			marcel_yield();
		CHECK_INT(load_relaxed(&cleaned), i);
		store_relaxed(&go, 1);
		check_cancelled(t);
		CHECK_INT(load_relaxed(&cleaned), i + 1);
	}
}

/* --- asleep, unannounced --- */

/* Which, as a function, is said to throw nothing: no frame would be told. */
static long (*volatile call)(long number, ...) = syscall;

static void *sleeps(void *arg)
{
	int old;

	CHECK_INT(marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, &old), 0);
	marcel_cleanup_push(clean, &cleaned);
	fetch_add_relaxed(&begun, 1);
	for (;;)
		call(SYS_poll, NULL, 0, -1);
	marcel_cleanup_pop(0);
	return arg;
}

/* Not on main's kernel thread, where it would hold up main. */
static void sleep_there(void)
{
	marcel_attr_t attr;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 1), 0);
	for (int i = 0; i < 10; i++) {
		marcel_t t = start(&attr, sleeps);

		CHECK_INT(marcel_cancel(t), 0);
		check_cancelled(t);
		CHECK_INT(load_relaxed(&cleaned), i + 1);
	}
}

TEST(who_sleeps_unannounced_ends)
{
	with_slice("500", 2, sleep_there);
	with_slice("0", 2, sleep_there);
	with_slice("500", 4, sleep_there);
}
