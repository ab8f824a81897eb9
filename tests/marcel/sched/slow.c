/*
 * An object whose constructor computes for 50 ms, by the clock of its kernel
 * thread.
 */
#include <time.h>

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((constructor)) static void compute(void)
{
	long end = now_ms() + 50;

	while (now_ms() < end)
		for (int i = 0; i < 10000; i++)
			__asm__ volatile("" ::: "memory");
}
