/*
 * What cond.c needs of a mutex.
 */
#ifndef MARCEL_SYNC_MUTEX_H
#define MARCEL_SYNC_MUTEX_H

#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <marcel/sync.h>
#include "guard.h"
#include "waitq.h"

struct marcel_mutex {
	/* h: the holder    l: guard    a: atomic, pair named */
	struct marcel_guard guard; /* a: see mutex.c; order(mutex) */
	/* a: relaxed. Exact for who asks "is it me", else a hint, and where
	 * it locked: does it run? */
	ATOMIC(struct marcel_thread *) owner;
	ATOMIC(int) vp; /* -1: foreign, or given to it while it waits */
	uint32_t count; /* h: locks beyond the first; recursive */
	struct marcel_waitq queue; /* l: */
	struct marcel_waitq heirs; /* h: signalled while the holder held it */
	uint32_t heirs_of;         /* h: in which generation; guard.h */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct marcel_mutex) <= sizeof(marcel_mutex_t),
	       "a mutex fits its public words");

/*
 * Unlock because the caller will park at once: who waits first is given the
 * mutex, as it can run where the caller was. 0, or EPERM as unlock. A recursive
 * mutex is unlocked however often it was locked; *out is for relock.
 */
int marcel_mutex_unlock_to_park(struct marcel_mutex *m,
				struct marcel_thread *self, uint32_t *out);

/* Lock it again, with the record that waited for the condition. */
void marcel_mutex_relock(struct marcel_mutex *m, struct marcel_waiter *me,
			 uint32_t count);

/*
 * Let a condition's waiter go on to the mutex: queue it there if the mutex is
 * held (by self: among its heirs) or about to be, else wake it. The last access
 * to the mutex lets the waiter proceed.
 */
void marcel_mutex_requeue(struct marcel_mutex *m, struct marcel_waiter *w,
			  struct marcel_thread *self);

/* 0, or EPERM: an errorcheck or recursive mutex that self does not hold. */
int marcel_mutex_check_held(struct marcel_mutex *m, struct marcel_thread *self);

#endif
