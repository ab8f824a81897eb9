/*
 * Mutexes. One word says all that decides:
 *
 *	GUARDED     somebody works on the queue and owns the word (guard.h)
 *	LOCKED      held
 *	QUEUED      the queue is not empty
 *	CHOSEN      one waiter was taken out and woken and has not yet tried
 *	FAIR        unlock gives the mutex to the first waiter
 *	RECURSIVE, ERRORCHECK    the kind, never changes; normal: none. Static
 *		    initialisers in <marcel/sync.h> know these two
 *
 * A normal mutex that nobody waits for goes 0 -> LOCKED -> 0, each one
 * compare-and-swap; every other case differs in some bit and so takes the slow
 * path without a second test.
 *
 * Unlock wakes one waiter, the chosen, and leaves the mutex free: threads that
 * run may take it before the chosen comes, so that short sections do not cost
 * a switch each (no convoy). While one is on its way nobody else is woken. A
 * chosen that comes too late queues in front again, and where another try
 * would be as vain (the holder does not run, so it waits inside its section) or
 * was vain several times, it sets FAIR: then unlock hands over until the queue
 * is empty. So nobody starves.
 *
 * Waiters of a condition that the holder itself signals are its heirs: a queue
 * of its own, which needs no guard. If it then waits for a condition in turn,
 * the first heir gets the mutex with no atomic operation at all, unless others
 * have queued before; else, at the unlock, the heirs join the queue.
 *
 * Invariant: QUEUED and not LOCKED implies CHOSEN; hence somebody comes who
 * will unlock and see the queue. FAIR implies LOCKED, QUEUED and not CHOSEN.
 *
 * The store or compare-and-swap that clears LOCKED, or gives the guard back, is
 * the last access to the mutex.
 */
#include "mutex.h"

#include <errno.h>

#include <marcel/wait.h>
#include "../arch/cpu.h"
#include "../sched/vp.h"
#include "timed.h"

#define LOCKED     ((uint32_t)2)
#define QUEUED     ((uint32_t)4)
#define CHOSEN     ((uint32_t)8)
#define FAIR       ((uint32_t)16)
#define RECURSIVE  ((uint32_t)32)
#define ERRORCHECK ((uint32_t)64)
#define KIND       (RECURSIVE | ERRORCHECK)

enum {
	SPINS = 20,     /* looks at a mutex whose holder runs elsewhere */
	PAUSE_MAX = 8,  /* between two looks, in cpu_relax() */
	TRIES_FAIR = 4, /* vain ones, then FAIR */
	COUNT_MAX = INT32_MAX
};

/* The mutex stays locked if it is, and nobody waits for it. */
static uint32_t mutex_adopt(struct marcel_guard *g, uint32_t w)
{
	struct marcel_mutex *m = container_of(g, struct marcel_mutex, guard);

	marcel_waitq_forget(&m->queue);
	return w & ~(QUEUED | CHOSEN | FAIR);
}

/* Whether it makes sense to wait for the unlock without a switch. */
static bool holder_runs(struct marcel_mutex *m)
{
	struct marcel_vp *vp = marcel_vp_self();
	struct marcel_thread *h;
	int at;

	if (marcel_sched.oversubscribed)
		return false;
	h = load_relaxed(&m->owner);
	if (vp != NULL && vp->sole &&
	    (h == NULL || !marcel_thread_has(h, MARCEL_F_FOREIGN)))
		return false;
	/* No owner: it comes, or goes, this moment. */
	if (vp == NULL || h == NULL || marcel_thread_has(h, MARCEL_F_FOREIGN))
		return true;
	at = load_relaxed(&m->vp);
	if (at < 0 || at >= marcel_sched.nvp || at == vp->id)
		return false;
	return marcel_vp_current(&marcel_sched.vps[at]) == h;
}

static void note_owner(struct marcel_mutex *m, struct marcel_thread *t,
		       struct marcel_vp *vp)
{
	store_relaxed(&m->owner, t);
	store_relaxed(&m->vp, vp != NULL ? vp->id : -1);
}

/* One try, whoever waits. False: it is held, or its guard is. */
static bool try_take(struct marcel_mutex *m, struct marcel_waiter *me)
{
	uint32_t w = load_relaxed(&m->guard.word);
	uint32_t clear = me->chosen ? CHOSEN : 0;

	while (!(w & (LOCKED | MARCEL_GUARDED)))
		/* order(mutex), the taker's end */
		if (cas_weak_acquire(&m->guard.word, &w, (w | LOCKED) & ~clear))
			return true;
	return false;
}

static bool spin(struct marcel_mutex *m, struct marcel_waiter *me)
{
	unsigned pause = 1;

	for (int n = 0; n < SPINS; n++) {
		if (try_take(m, me))
			return true;
		if (!holder_runs(m))
			return false;
		for (unsigned i = 0; i < pause; i++)
			cpu_relax();
		if (pause < PAUSE_MAX)
			pause *= 2;
	}
	return false;
}

enum enqueued { OURS, WAITING, TOO_LATE };

/* It may be free after all; else wait, unless it is too late for that. */
static enum enqueued enqueue(struct marcel_mutex *m, struct marcel_waiter *me,
			     unsigned tries, bool late)
{
	uint32_t w = marcel_guard_lock(&m->guard, mutex_adopt);

	if (me->chosen)
		w &= ~CHOSEN;
	if (!(w & LOCKED)) {
		marcel_guard_unlock(&m->guard, w | LOCKED);
		return OURS;
	}
	if (late) {
		marcel_guard_unlock(&m->guard, w);
		return TOO_LATE;
	}
	if (!me->chosen) {
		marcel_waitq_push(&m->queue, me);
	} else {
		marcel_waitq_push_front(&m->queue, me);
		if (tries >= TRIES_FAIR || !holder_runs(m))
			w |= FAIR;
	}
	me->chosen = false;
	marcel_timed_arm(me);
	marcel_guard_unlock(&m->guard, w | QUEUED);
	return WAITING;
}

/* The time has come, and me is in the queue. */
static void mutex_leave(struct marcel_timed *d)
{
	struct marcel_mutex *m =
		container_of(d->guard, struct marcel_mutex, guard);
	uint32_t w = d->word;

	marcel_waitq_remove(&m->queue, d->waiter);
	if (marcel_waitq_is_empty(&m->queue))
		w &= ~(QUEUED | FAIR);
	marcel_guard_unlock(&m->guard, w);
	marcel_timer_wake(&d->timer);
}

/*
 * Get the mutex; no other lock of ours is held. NULL: however long it takes,
 * and that is 0; else ETIMEDOUT, or EINVAL if there is no such time.
 */
static int acquire(struct marcel_mutex *m, struct marcel_waiter *me,
		   const struct marcel_until *until)
{
	struct marcel_timed d;
	enum enqueued e;
	int late;

	for (unsigned tries = 0; !spin(m, me); tries++) {
		late = marcel_timed_set(&d, me, &m->guard, mutex_leave, until);
		if (unlikely(late == EINVAL))
			return EINVAL;
		e = enqueue(m, me, tries, late != 0);
		if (e == OURS)
			break;
		if (e == TOO_LATE)
			return ETIMEDOUT;
		marcel_thread_waits(me->thread, MARCEL_WAITS_MUTEX, m);
		if (!marcel_timed_park(until != NULL ? &d : NULL))
			return ETIMEDOUT;
		if (me->granted)
			break;
	}
	note_owner(m, me->thread, marcel_vp_self());
	return 0;
}

/* Lock one that self holds already: by its kind. */
static int lock_again(struct marcel_mutex *m, uint32_t w)
{
	if (w & ERRORCHECK)
		return EDEADLK;
	if (m->count >= COUNT_MAX)
		return EAGAIN;
	m->count++;
	return 0;
}

static BASE_NOINLINE int lock_slow(struct marcel_mutex *m,
				   struct marcel_thread *self,
				   const struct marcel_until *until)
{
	struct marcel_waiter me = { .thread = self };
	uint32_t w = load_relaxed(&m->guard.word);

	if (w & KIND && load_relaxed(&m->owner) == self)
		return lock_again(m, w);
	return acquire(m, &me, until);
}

static inline int lock_as(struct marcel_mutex *m, struct marcel_thread *self,
			  struct marcel_vp *vp,
			  const struct marcel_until *until)
{
	uint32_t free = 0;

	/* order(mutex), the taker's end */
	if (unlikely(!cas_acquire(&m->guard.word, &free, LOCKED)))
		return lock_slow(m, self, until);
	note_owner(m, self, vp);
	return 0;
}

static BASE_NOINLINE int lock_foreign(struct marcel_mutex *m,
				      const struct marcel_until *until)
{
	return lock_as(m, marcel_thread_self(), NULL, until);
}

static inline int lock_until(marcel_mutex_t *mutex,
			     const struct marcel_until *until)
{
	struct marcel_mutex *m = (struct marcel_mutex *)mutex;
	struct marcel_thread *self;
	struct marcel_vp *vp;

	if (unlikely(!marcel_thread_here(&self, &vp)))
		return lock_foreign(m, until);
	return lock_as(m, self, vp, until);
}

BASE_PUBLIC int marcel_mutex_lock(marcel_mutex_t *mutex)
{
	return lock_until(mutex, NULL);
}

BASE_PUBLIC int marcel_mutex_clocklock(marcel_mutex_t *mutex, clockid_t clock,
				       const struct timespec *abs)
{
	struct marcel_until until = { clock, abs };

	if (marcel_timer_check_clock(clock) != 0)
		return EINVAL;
	return lock_until(mutex, &until);
}

BASE_PUBLIC int marcel_mutex_timedlock(marcel_mutex_t *mutex,
				       const struct timespec *abs)
{
	return marcel_mutex_clocklock(mutex, CLOCK_REALTIME, abs);
}

BASE_PUBLIC int marcel_mutex_trylock(marcel_mutex_t *mutex)
{
	struct marcel_mutex *m = (struct marcel_mutex *)mutex;
	struct marcel_thread *self = marcel_thread_self();
	uint32_t w = load_relaxed(&m->guard.word);
	unsigned turn = 0;

	if (unlikely(w & RECURSIVE) && load_relaxed(&m->owner) == self)
		return lock_again(m, w);
	while (!(w & LOCKED)) {
		if (w & MARCEL_GUARDED) {
			marcel_guard_renew(&m->guard, mutex_adopt);
			marcel_guard_pause(&turn);
			w = load_relaxed(&m->guard.word);
			continue;
		}
		/* order(mutex), the taker's end */
		if (cas_weak_acquire(&m->guard.word, &w, w | LOCKED)) {
			note_owner(m, self, marcel_vp_self());
			return 0;
		}
	}
	return EBUSY;
}

/* The holder's own, whose guard another may be taking over: see heirs_of. */
static bool has_heirs(struct marcel_mutex *m)
{
	if (marcel_waitq_is_empty(&m->heirs))
		return false;
	if (unlikely(m->heirs_of != marcel_generation))
		marcel_waitq_forget(&m->heirs);
	return !marcel_waitq_is_empty(&m->heirs);
}

/*
 * The guard is needed, because there is a queue: wake its first, or give it the
 * mutex. FAIR ends with the queue.
 */
static void unlock_queue(struct marcel_mutex *m, bool parks)
{
	uint32_t w = marcel_guard_lock(&m->guard, mutex_adopt), fair = w & FAIR;
	struct marcel_waiter *first;
	struct marcel_thread *t;

	if (has_heirs(m)) {
		marcel_waitq_append(&m->queue, &m->heirs);
		w |= QUEUED;
	}
	if (!(w & QUEUED) || w & CHOSEN) {
		marcel_guard_unlock(&m->guard, w & ~LOCKED);
		return;
	}
	first = marcel_waitq_take(&m->queue);
	t = first->thread;
	if (marcel_waitq_is_empty(&m->queue))
		w &= ~(QUEUED | FAIR);
	if (fair || (parks && !marcel_thread_has(t, MARCEL_F_FOREIGN))) {
		first->granted = true;
		note_owner(m, t, NULL);
	} else {
		first->chosen = true;
		w = (w & ~LOCKED) | CHOSEN;
	}
	marcel_guard_unlock(&m->guard, w); /* order(mutex): the section */
	marcel_wake(t);
}

/* The word stays as it is: only the owner changes. */
static void give_to_heir(struct marcel_mutex *m)
{
	struct marcel_waiter *heir = marcel_waitq_take(&m->heirs);
	struct marcel_thread *t = heir->thread;

	heir->granted = true;
	note_owner(m, t, NULL);
	marcel_wake(t);
}

/* LOCKED is set, and all that the kind asks for has been seen to. */
static void release(struct marcel_mutex *m, bool parks)
{
	bool heirs = has_heirs(m);
	uint32_t w = load_relaxed(&m->guard.word);

	if (heirs && parks && !(w & QUEUED) &&
	    !marcel_thread_has(marcel_waitq_first(&m->heirs)->thread,
			       MARCEL_F_FOREIGN)) {
		give_to_heir(m);
		return;
	}
	while (!heirs && !(w & MARCEL_GUARDED) && (!(w & QUEUED) || w & CHOSEN))
		/* order(mutex): the section */
		if (cas_weak_release(&m->guard.word, &w, w & ~LOCKED))
			return;
	unlock_queue(m, parks);
}

int marcel_mutex_check_held(struct marcel_mutex *m, struct marcel_thread *self)
{
	uint32_t w = load_relaxed(&m->guard.word);

	if (!(w & LOCKED) || (w & KIND && load_relaxed(&m->owner) != self))
		return EPERM;
	return 0;
}

static BASE_NOINLINE int unlock_slow(struct marcel_mutex *m)
{
	if (marcel_mutex_check_held(m, marcel_thread_self()) != 0)
		return EPERM;
	if (m->count > 0) {
		m->count--;
		return 0;
	}
	store_relaxed(&m->owner, NULL);
	release(m, false);
	return 0;
}

BASE_PUBLIC int marcel_mutex_unlock(marcel_mutex_t *mutex)
{
	struct marcel_mutex *m = (struct marcel_mutex *)mutex;
	uint32_t held = load_relaxed(&m->guard.word);

	/* Of another kind, or with waiters, the word has more bits. */
	if (unlikely(held != LOCKED || !marcel_waitq_is_empty(&m->heirs)))
		return unlock_slow(m);
	store_relaxed(&m->owner, NULL);
	/* order(mutex): the section */
	if (likely(cas_release(&m->guard.word, &held, 0)))
		return 0;
	return unlock_slow(m);
}

int marcel_mutex_unlock_to_park(struct marcel_mutex *m,
				struct marcel_thread *self, uint32_t *out)
{
	int err = marcel_mutex_check_held(m, self);

	if (err != 0)
		return err;
	*out = m->count;
	m->count = 0;
	store_relaxed(&m->owner, NULL);
	release(m, true);
	return 0;
}

void marcel_mutex_relock(struct marcel_mutex *m, struct marcel_waiter *me,
			 uint32_t count)
{
	if (me->granted)
		note_owner(m, me->thread, marcel_vp_self());
	else
		acquire(m, me, NULL);
	m->count = count;
}

void marcel_mutex_requeue(struct marcel_mutex *m, struct marcel_waiter *w,
			  struct marcel_thread *self)
{
	struct marcel_thread *t = w->thread;
	uint32_t word;

	if (load_relaxed(&m->owner) == self) {
		if (!has_heirs(m))
			m->heirs_of = marcel_generation;
		marcel_waitq_push(&m->heirs, w);
		return;
	}
	word = marcel_guard_lock(&m->guard, mutex_adopt);
	if (word & (LOCKED | CHOSEN)) {
		marcel_waitq_push(&m->queue, w);
		marcel_guard_unlock(&m->guard, word | QUEUED);
		return;
	}
	w->chosen = true;
	marcel_guard_unlock(&m->guard, word | CHOSEN);
	marcel_wake(t);
}

BASE_PUBLIC int marcel_mutex_init(marcel_mutex_t *mutex,
				  const marcel_mutexattr_t *attr)
{
	static const uint32_t kinds[] = {
		[MARCEL_MUTEX_NORMAL] = 0,
		[MARCEL_MUTEX_RECURSIVE] = RECURSIVE,
		[MARCEL_MUTEX_ERRORCHECK] = ERRORCHECK,
	};
	struct marcel_mutex *m = (struct marcel_mutex *)mutex;
	int type = MARCEL_MUTEX_DEFAULT;

	if (attr != NULL && marcel_mutexattr_gettype(attr, &type) != 0)
		return EINVAL;
	*mutex = (marcel_mutex_t)MARCEL_MUTEX_INITIALIZER;
	marcel_guard_init(&m->guard, kinds[type]);
	return 0;
}

BASE_PUBLIC int marcel_mutex_destroy(marcel_mutex_t *mutex)
{
	struct marcel_mutex *m = (struct marcel_mutex *)mutex;

	marcel_guard_renew(&m->guard, mutex_adopt);
	return load_relaxed(&m->guard.word) & ~KIND ? EBUSY : 0;
}

/* words[0]: the type; words[1]: whether it was initialised. */
enum { ATTR_VALID = 0x6d757478 };

BASE_PUBLIC int marcel_mutexattr_init(marcel_mutexattr_t *attr)
{
	attr->marcel_words[0] = MARCEL_MUTEX_DEFAULT;
	attr->marcel_words[1] = ATTR_VALID;
	return 0;
}

BASE_PUBLIC int marcel_mutexattr_destroy(marcel_mutexattr_t *attr)
{
	attr->marcel_words[1] = 0;
	return 0;
}

BASE_PUBLIC int marcel_mutexattr_settype(marcel_mutexattr_t *attr, int type)
{
	if (attr->marcel_words[1] != ATTR_VALID)
		return EINVAL;
	if (type < MARCEL_MUTEX_NORMAL || type > MARCEL_MUTEX_ERRORCHECK)
		return EINVAL;
	attr->marcel_words[0] = (uint64_t)type;
	return 0;
}

BASE_PUBLIC int marcel_mutexattr_gettype(const marcel_mutexattr_t *attr,
					 int *out)
{
	if (attr->marcel_words[1] != ATTR_VALID)
		return EINVAL;
	*out = (int)attr->marcel_words[0];
	return 0;
}
