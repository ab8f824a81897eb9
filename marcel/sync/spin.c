/*
 * Spinlocks: mutexes for whose holder one spins longer before one waits.
 *
 * The holder may have lost its CPU, or stand behind the caller on the same VP;
 * to spin for ever would then never end. So who does not get the lock within
 * a microsecond, or where no other VP could free it, waits as for a mutex.
 */
#include <marcel/sync.h>

#include <errno.h>

#include "../arch/cpu.h"
#include "../sched/vp.h"
#include "mutex.h"

enum { SPINS = 64 }; /* about 1 us of cpu_relax() */

_Static_assert(sizeof(struct marcel_mutex) <= sizeof(marcel_spin_t),
	       "a mutex fits a spinlock's public words");

static marcel_mutex_t *mutex_of(marcel_spin_t *s)
{
	return (marcel_mutex_t *)s;
}

static BASE_NOINLINE int lock_slow(marcel_spin_t *s)
{
	struct marcel_mutex *m = (struct marcel_mutex *)s;
	struct marcel_vp *vp = marcel_vp_self();

	if (load_relaxed(&m->owner) == marcel_thread_self())
		return EDEADLK;
	if (marcel_sched.oversubscribed || (vp != NULL && vp->sole))
		return marcel_mutex_lock(mutex_of(s));
	for (int i = 0; i < SPINS; i++) {
		if (marcel_mutex_trylock(mutex_of(s)) == 0)
			return 0;
		cpu_relax();
	}
	return marcel_mutex_lock(mutex_of(s));
}

BASE_PUBLIC int marcel_spin_lock(marcel_spin_t *s)
{
	if (likely(marcel_mutex_trylock(mutex_of(s)) == 0))
		return 0;
	return lock_slow(s);
}

BASE_PUBLIC int marcel_spin_trylock(marcel_spin_t *s)
{
	return marcel_mutex_trylock(mutex_of(s));
}

BASE_PUBLIC int marcel_spin_unlock(marcel_spin_t *s)
{
	return marcel_mutex_unlock(mutex_of(s));
}

BASE_PUBLIC int marcel_spin_init(marcel_spin_t *s, int pshared)
{
	if (pshared != 0)
		return ENOTSUP;
	return marcel_mutex_init(mutex_of(s), NULL);
}

BASE_PUBLIC int marcel_spin_destroy(marcel_spin_t *s)
{
	return marcel_mutex_destroy(mutex_of(s));
}
