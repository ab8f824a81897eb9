/*
 * Tests that run with the runtime started, once per number of VPs.
 */
#ifndef TESTS_MARCEL_WITH_H
#define TESTS_MARCEL_WITH_H

#include <stdlib.h>

#include <base/compiler.h>
#include <marcel/marcel.h>
#include "../check.h"

/*
 * TSan and an emulator take a millisecond to make a thread: fewer of them
 * there. And of what is done thousands of times, ASan has nothing to say any
 * more after some hundreds.
 */
enum { FEWER = BASE_TSAN || EMULATED ? 20 : BASE_ASAN ? 4 : 1 };

/*
 * So often a kernel thread has to get a CPU before a test goes on. Where others
 * compute beside us that takes it some ms each time.
 */
enum { HANDOVERS = FEWER > 1 ? 50 : 200 };

static inline void with_vps(int nvp, void (*body)(void))
{
	struct marcel_config config = { .nvp = nvp };

	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_nvp(), nvp);
	body();
	CHECK_INT(marcel_end(), 0);
	CHECK_INT(marcel_nvp(), 0);
}

static inline void without_ticks_on(int nvp, void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", "0", 1);
	with_vps(nvp, body);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* The same on one VP, where nothing but the program itself says who runs. */
static inline void without_ticks(void (*body)(void))
{
	without_ticks_on(1, body);
}

/* A test whose rule holds for one VP and for more VPs than CPUs alike. */
#define TEST_VPS(name)                                                         \
	static void name##_body(void);                                         \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_vps(1, name##_body);                                      \
	}                                                                      \
	TEST(name##_on_4_vps)                                                  \
	{                                                                      \
		with_vps(4, name##_body);                                      \
	}                                                                      \
	static void name##_body(void)

#endif
