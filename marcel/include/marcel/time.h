/*
 * To let time pass.
 *
 * While a user thread sleeps it is on no queue of its VP, and the kernel knows
 * nothing of it: a million may sleep at once. No call returns before its time.
 * How much later it returns depends on when its VP next changes threads, and
 * on the kernel if the VP slept.
 *
 * The functions have the arguments and results of those of POSIX; errors go
 * where POSIX puts them. A signal does not end a sleep, so none of them fails
 * with EINTR, nothing is ever left and `left` stays as it is. From foreign
 * threads too; not from hooks or `after` functions.
 */
#ifndef MARCEL_TIME_H
#define MARCEL_TIME_H

#include <marcel/errno.h>

#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timespec; /* strict C has none before C11 */

/* 0; -1 and errno EINVAL: no such time. */
int marcel_nanosleep(const struct timespec *time, struct timespec *left);

/*
 * flags: 0, or TIMER_ABSTIME for a time by that clock. An error number: EINVAL,
 * no such time or clock; ENOTSUP. By clocks other than CLOCK_REALTIME and
 * CLOCK_MONOTONIC the kernel sleeps, in a blocking section
 * (<marcel/blocking.h>) that a signal may end: EINTR.
 */
int marcel_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *time, struct timespec *left);

/* Always 0, a million microseconds and more included. */
int marcel_usleep(unsigned us);
unsigned marcel_sleep(unsigned seconds);

#ifdef __cplusplus
}
#endif

#endif
