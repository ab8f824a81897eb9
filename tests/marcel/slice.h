/*
 * Tests of what happens to threads that compute, with time slices of some us.
 */
#ifndef TESTS_MARCEL_SLICE_H
#define TESTS_MARCEL_SLICE_H

#include <stdlib.h>

#include <base/atomic.h>
#include "../../marcel/sched/tick.h"
#include "preemptions.h"
#include "with.h"

static ATOMIC(int) stop, ran;

static inline void with_slice(const char *us, int nvp, void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", us, 1);
	store_relaxed(&stop, 0);
	store_relaxed(&ran, 0);
	with_vps(nvp, body);
	unsetenv("MARCEL_TIMESLICE_US");
}

#define TEST_TICK(name, us)                                                    \
	static void name##_body(void);                                         \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_slice(us, 1, name##_body);                                \
	}                                                                      \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_slice(us, 2, name##_body);                                \
	}                                                                      \
	static void name##_body(void)

static inline marcel_t start(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

/* Without a call, until it is told. */
static inline void *computes(void *arg)
{
	while (load_relaxed(&stop) == 0)
		;
	return arg;
}

#endif
