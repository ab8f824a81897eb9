/*
 * A kernel thread of ordinary priority that drives no VP, for what the LWPs
 * cannot do: to wait for any number of descriptors at a time, and to make LWPs
 * of ordinary priority when one of lowest priority needs them. (A child gets
 * the priority of its maker, and nobody without privileges may raise it.)
 *
 * It lives from the first spare on, which an LWP of ordinary priority makes.
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

/* As os_thread_create(), with ordinary priority whoever calls. */
int marcel_poller_create(pthread_t *out, void *(*fn)(void *), void *arg);

/*
 * User threads: park until `events` (EPOLLIN ...) or an error can be had of a
 * descriptor, which others may close meanwhile. False: it cannot be waited for.
 */
bool marcel_poller_wait(int fd, uint32_t events);

#endif
