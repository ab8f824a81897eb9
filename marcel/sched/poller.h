/*
 * A kernel thread of ordinary priority that drives no VP, for what the LWPs
 * cannot do: to wait for any number of descriptors at a time, and to make LWPs
 * of ordinary priority when one of lowest priority needs them. (A child gets
 * the priority of its maker, and nobody without privileges may raise it.)
 *
 * It makes those, too, that the monitor needs: who makes a kernel thread takes
 * locks of libc's, whose holders the monitor may have to see to.
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

/* Anyone, and nobody waits: one more LWP in the pool, if it can be had. */
void marcel_poller_want_lwp(void);

/*
 * User threads: park until `events` (EPOLLIN ...) or an error can be had of a
 * descriptor, which others may close meanwhile. False: it cannot be waited for.
 */
bool marcel_poller_wait(int fd, uint32_t events);

/* thread/fork.c: in a child, which has no poller. */
void marcel_poller_forked(void);

#endif
