/*
 * A kernel thread that drives no VP and waits for any number of descriptors at
 * a time. It lives from the first of them on.
 */
#ifndef MARCEL_SCHED_POLLER_H
#define MARCEL_SCHED_POLLER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* On a kernel thread of ordinary priority: it is there from now on. 0, -errno.
 */
int marcel_poller_start(void);

/* No user thread but main is left. */
void marcel_poller_stop(void);

/*
 * User threads: park until `events` (EPOLLIN ...) or an error can be had of a
 * descriptor, which others may close meanwhile. False: it cannot be waited for.
 */
bool marcel_poller_wait(int fd, uint32_t events);

#endif
