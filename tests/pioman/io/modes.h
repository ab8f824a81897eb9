/*
 * For tests with real VPs of what comes while ltasks are armed: every mode, and
 * senders that come at random moments.
 */
#ifndef TESTS_PIOMAN_IO_MODES_H
#define TESTS_PIOMAN_IO_MODES_H

#include "../with.h"

#include <time.h>

#include <base/clock.h>

/* The same in each PIOM_MODE; TEST_MINUTES=m: again and again for so long. */
static inline void in_all_modes(void (*body)(void))
{
	static const char *const modes[] = { "auto", "poll", "interrupt" };
	const char *minutes = getenv("TEST_MINUTES");
	time_t end = time(NULL) + (minutes != NULL ? 60 * atoi(minutes) : 0);

	do
		for (size_t i = 0; i < BASE_ARRAY_LEN(modes); i++) {
			printf("# mode %s\n", modes[i]);
			setenv("PIOM_MODE", modes[i], 1);
			WITH_ALL(every_mode, body);
		}
	while (time(NULL) < end);
	unsetenv("PIOM_MODE");
}

/* Short and long: before it is armed, while it is, and after. */
static inline void wait_at_random(unsigned *seed)
{
	static const unsigned longest[] = { 1000, 20000, 100000, 300000 };
	uint64_t until = base_now_ns() +
			 (uint64_t)rand_r(seed) % longest[rand_r(seed) % 4];

	while (base_now_ns() < until)
		;
}

#endif
