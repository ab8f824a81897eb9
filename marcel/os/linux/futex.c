/*
 * Sleep on a word and wake its sleepers.
 */
#include "../os.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void os_futex_wait(void *word, uint32_t value)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
	errno = saved;
}

void os_futex_wait_for(void *word, uint32_t value, uint64_t ns)
{
	struct timespec limit = { .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
	errno = saved;
}

bool os_futex_wait_until(void *word, uint32_t value, clockid_t clock,
			 const struct timespec *abs)
{
	int op = FUTEX_WAIT_BITSET_PRIVATE, saved = errno;
	bool timed_out;

	if (clock == CLOCK_REALTIME)
		op |= FUTEX_CLOCK_REALTIME;
	timed_out = syscall(SYS_futex, word, op, value, abs, NULL,
			    FUTEX_BITSET_MATCH_ANY) < 0 &&
		    errno == ETIMEDOUT;
	errno = saved;
	return !timed_out;
}

void os_futex_wake(void *word, int n)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
	errno = saved;
}
