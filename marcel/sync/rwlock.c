/*
 * Read-write locks. One word:
 *
 *	31 ........... 3 |   2    |   1    |    0
 *	    readers      | QUEUED | WRITER | GUARDED
 *
 * Without waiters every operation is one compare-and-swap. QUEUED keeps new
 * readers and writers out, so a writer that waits gets its turn. Who frees a
 * lock that somebody waits for gives it to the first waiter, and with a reader
 * to all readers up to the next writer, in one step with its own unlock: the
 * last access to the lock. Then it wakes them.
 *
 * That is the fair kind. The others have a second queue, before the first, for
 * whom they prefer; and if these are readers, QUEUED keeps only writers out. So
 * who waits while readers have the lock is a writer, or comes behind one; and
 * nobody waits while nobody has it.
 */
#include <marcel/sync.h>

#include <errno.h>
#include <stddef.h>

#include <marcel/wait.h>
#include "../sched/vp.h"
#include "guard.h"
#include "look.h"
#include "timed.h"
#include "waitq.h"

#define WRITER ((uint32_t)2)
#define QUEUED ((uint32_t)4)
#define READER ((uint32_t)8) /* one of them */

#define HELD (~(MARCEL_GUARDED | QUEUED)) /* by anybody */

struct rwlock {
	/* -: const    l: guard    a: atomic, pair named */
	struct marcel_guard guard; /* a: order(rwlock) */
	uint64_t kind;             /* -: whom it prefers */
	/* a: relaxed; exact for who asks "is it me" */
	ATOMIC(struct marcel_thread *) owner;
	struct marcel_waitq preferred; /* l: their turn comes first */
	struct marcel_waitq queue;     /* l: the others; if it is fair, all */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct rwlock) <= sizeof(marcel_rwlock_t),
	       "a read-write lock fits its public words");
_Static_assert(
	offsetof(struct rwlock, kind) == sizeof(uint64_t),
	"the kind is where MARCEL_RWLOCK_PREFER_WRITER_INITIALIZER says");

/* Who holds it does so for ever, unless that is the caller of fork(). */
static uint32_t rwlock_adopt(struct marcel_guard *g, uint32_t w)
{
	struct rwlock *l = container_of(g, struct rwlock, guard);

	marcel_waitq_forget(&l->preferred);
	marcel_waitq_forget(&l->queue);
	return w & ~QUEUED;
}

BASE_PUBLIC int marcel_rwlock_init(marcel_rwlock_t *lock,
				   const marcel_rwlockattr_t *attr)
{
	struct rwlock *l = (struct rwlock *)lock;
	int kind = MARCEL_RWLOCK_FAIR;

	if (attr != NULL && marcel_rwlockattr_getkind(attr, &kind) != 0)
		return EINVAL;
	if (kind == MARCEL_RWLOCK_PREFER_WRITER_NP)
		kind = MARCEL_RWLOCK_PREFER_READER;
	*lock = (marcel_rwlock_t)MARCEL_RWLOCK_INITIALIZER;
	marcel_guard_init(&l->guard, 0);
	l->kind = (uint64_t)kind;
	return 0;
}

BASE_PUBLIC int marcel_rwlock_destroy(marcel_rwlock_t *lock)
{
	struct rwlock *l = (struct rwlock *)lock;

	marcel_guard_renew(&l->guard, rwlock_adopt);
	return load_relaxed(&l->guard.word) != 0 ? EBUSY : 0;
}

/* Whether who asks for it may have it, given the word without the guard. */
static bool is_open(const struct rwlock *l, uint32_t w, bool writer)
{
	if (writer)
		return !(w & (HELD | QUEUED));
	if (likely(!(w & (WRITER | QUEUED))))
		return true;
	return !(w & WRITER) && l->kind == MARCEL_RWLOCK_PREFER_READER;
}

/* Where they wait. */
static struct marcel_waitq *queue_of(struct rwlock *l, bool writer)
{
	uint64_t kind = writer ? MARCEL_RWLOCK_PREFER_WRITER
			       : MARCEL_RWLOCK_PREFER_READER;

	return l->kind == kind ? &l->preferred : &l->queue;
}

/* Whose turn is next; NULL: nobody waits. */
static struct marcel_waiter *first_of(struct rwlock *l)
{
	if (!marcel_waitq_is_empty(&l->preferred))
		return marcel_waitq_first(&l->preferred);
	if (!marcel_waitq_is_empty(&l->queue))
		return marcel_waitq_first(&l->queue);
	return NULL;
}

/*
 * Try without the guard. 0, EBUSY: somebody holds it or waits, or the guard is
 * held (*seen says), EAGAIN: too many readers.
 */
static int try_lock(struct rwlock *l, bool writer, uint32_t *seen)
{
	uint32_t w = load_relaxed(&l->guard.word);

	while (!(w & MARCEL_GUARDED) && is_open(l, w, writer)) {
		if (unlikely(!writer && w + READER < w))
			return EAGAIN;
		/* order(rwlock), the taker's end */
		if (cas_weak_acquire(&l->guard.word, &w,
				     w + (writer ? WRITER : READER))) {
			if (writer)
				store_relaxed(&l->owner, marcel_thread_self());
			return 0;
		}
	}
	*seen = w;
	return EBUSY;
}

/*
 * With the guard held and no writer inside: let those in who wait first and
 * may. The word becomes *w; the result is the chain of those to wake.
 */
static struct marcel_waiter *grant(struct rwlock *l, uint32_t *w)
{
	struct marcel_waiter *chain = NULL, **end = &chain, *first;

	while ((first = first_of(l)) != NULL) {
		if (first->writer && *w & HELD)
			break;
		marcel_waitq_take_this(queue_of(l, first->writer), first);
		*w += first->writer ? WRITER : READER;
		*end = first;
		end = &first->next;
		if (first->writer) {
			store_relaxed(&l->owner, first->thread);
			break;
		}
	}
	*end = NULL;
	if (first_of(l) == NULL)
		*w &= ~QUEUED;
	return chain;
}

/*
 * The time has come, and the waiter is in the queue. If it was a writer, who
 * came after it may have waited for it only.
 */
static void rwlock_leave(struct marcel_timed *d)
{
	struct rwlock *l = container_of(d->guard, struct rwlock, guard);
	struct marcel_waiter *chain = NULL;
	uint32_t w = d->word;

	marcel_waitq_remove(queue_of(l, d->waiter->writer), d->waiter);
	if (w & WRITER && first_of(l) == NULL)
		w &= ~QUEUED;
	else if (!(w & WRITER))
		chain = grant(l, &w);
	marcel_guard_unlock(&l->guard, w);
	marcel_timer_wake(&d->timer);
	marcel_waitq_wake(chain);
}

/* NULL: however long it takes. */
static BASE_NOINLINE int lock_slow(struct rwlock *l, bool writer,
				   const struct marcel_until *until)
{
	struct marcel_thread *self = marcel_thread_self();
	struct marcel_waiter me = { .thread = self, .writer = writer };
	struct marcel_timed d;
	uint32_t w;
	int late;

	if (load_relaxed(&l->owner) == self)
		return EDEADLK;
	late = marcel_timed_set(&d, &me, &l->guard, rwlock_leave, until);
	if (late == EINVAL)
		return EINVAL;
	w = marcel_guard_lock(&l->guard, rwlock_adopt);
	if (is_open(l, w, writer)) {
		if (unlikely(!writer && w + READER < w)) {
			marcel_guard_unlock(&l->guard, w);
			return EAGAIN;
		}
		if (writer)
			store_relaxed(&l->owner, self);
		marcel_guard_unlock(&l->guard, w + (writer ? WRITER : READER));
		return 0;
	}
	if (late != 0) {
		marcel_guard_unlock(&l->guard, w);
		return ETIMEDOUT;
	}
	marcel_waitq_push(queue_of(l, writer), &me);
	marcel_timed_arm(&me);
	marcel_guard_unlock(&l->guard, w | QUEUED);
	marcel_thread_waits(
		self, writer ? MARCEL_WAITS_WRITE_LOCK : MARCEL_WAITS_READ_LOCK,
		l);
	return marcel_timed_park(until != NULL ? &d : NULL) ? 0 : ETIMEDOUT;
}

static int lock(struct rwlock *l, bool writer, const struct marcel_until *until)
{
	uint32_t seen;
	int err = try_lock(l, writer, &seen);

	return likely(err != EBUSY) ? err : lock_slow(l, writer, until);
}

static int clocklock(struct rwlock *l, bool writer, clockid_t clock,
		     const struct timespec *abs)
{
	struct marcel_until until = { clock, abs };

	if (marcel_timer_check_clock(clock) != 0)
		return EINVAL;
	return lock(l, writer, &until);
}

static int trylock(struct rwlock *l, bool writer)
{
	uint32_t seen = 0;
	unsigned turn = 0;
	int err;

	marcel_guard_renew(&l->guard, rwlock_adopt);
	while ((err = try_lock(l, writer, &seen)) == EBUSY &&
	       seen & MARCEL_GUARDED)
		marcel_guard_pause(&turn);
	return err;
}

BASE_PUBLIC int marcel_rwlock_rdlock(marcel_rwlock_t *lock_)
{
	return lock((struct rwlock *)lock_, false, NULL);
}

BASE_PUBLIC int marcel_rwlock_tryrdlock(marcel_rwlock_t *lock_)
{
	return trylock((struct rwlock *)lock_, false);
}

BASE_PUBLIC int marcel_rwlock_wrlock(marcel_rwlock_t *lock_)
{
	return lock((struct rwlock *)lock_, true, NULL);
}

BASE_PUBLIC int marcel_rwlock_clockrdlock(marcel_rwlock_t *lock_,
					  clockid_t clock,
					  const struct timespec *abs)
{
	return clocklock((struct rwlock *)lock_, false, clock, abs);
}

BASE_PUBLIC int marcel_rwlock_timedrdlock(marcel_rwlock_t *lock_,
					  const struct timespec *abs)
{
	return clocklock((struct rwlock *)lock_, false, CLOCK_REALTIME, abs);
}

BASE_PUBLIC int marcel_rwlock_clockwrlock(marcel_rwlock_t *lock_,
					  clockid_t clock,
					  const struct timespec *abs)
{
	return clocklock((struct rwlock *)lock_, true, clock, abs);
}

BASE_PUBLIC int marcel_rwlock_timedwrlock(marcel_rwlock_t *lock_,
					  const struct timespec *abs)
{
	return clocklock((struct rwlock *)lock_, true, CLOCK_REALTIME, abs);
}

BASE_PUBLIC int marcel_rwlock_trywrlock(marcel_rwlock_t *lock_)
{
	return trylock((struct rwlock *)lock_, true);
}

static BASE_NOINLINE void unlock_queue(struct rwlock *l, uint32_t mine)
{
	uint32_t w = marcel_guard_lock(&l->guard, rwlock_adopt) - mine;
	struct marcel_waiter *chain = NULL;

	if (!(w & HELD))
		chain = grant(l, &w);
	marcel_guard_unlock(&l->guard, w); /* order(rwlock): the section */
	marcel_waitq_wake(chain);
}

/* EPERM: nobody holds it, or a writer that is not the caller. */
BASE_PUBLIC int marcel_rwlock_unlock(marcel_rwlock_t *lock_)
{
	struct rwlock *l = (struct rwlock *)lock_;
	uint32_t w = load_relaxed(&l->guard.word);
	uint32_t mine = w & WRITER ? WRITER : READER;

	if (mine == WRITER) {
		if (load_relaxed(&l->owner) != marcel_thread_self())
			return EPERM;
		store_relaxed(&l->owner, NULL);
	} else if (w < READER) {
		return EPERM;
	}
	while (!(w & MARCEL_GUARDED) && (!(w & QUEUED) || w >= 2 * READER))
		/* order(rwlock): the section */
		if (cas_weak_release(&l->guard.word, &w, w - mine))
			return 0;
	unlock_queue(l, mine);
	return 0;
}

/* words[0]: the kind; words[1]: whether it was initialised. */
enum { RWLOCKATTR_VALID = 0x72776c6b };

BASE_PUBLIC int marcel_rwlockattr_init(marcel_rwlockattr_t *attr)
{
	attr->marcel_words[0] = MARCEL_RWLOCK_FAIR;
	attr->marcel_words[1] = RWLOCKATTR_VALID;
	return 0;
}

BASE_PUBLIC int marcel_rwlockattr_destroy(marcel_rwlockattr_t *attr)
{
	attr->marcel_words[1] = 0;
	return 0;
}

BASE_PUBLIC int marcel_rwlockattr_setkind(marcel_rwlockattr_t *attr, int kind)
{
	if (attr->marcel_words[1] != RWLOCKATTR_VALID ||
	    kind < MARCEL_RWLOCK_FAIR || kind > MARCEL_RWLOCK_PREFER_WRITER_NP)
		return EINVAL;
	attr->marcel_words[0] = (uint64_t)kind;
	return 0;
}

BASE_PUBLIC int marcel_rwlockattr_getkind(const marcel_rwlockattr_t *attr,
					  int *out)
{
	if (attr->marcel_words[1] != RWLOCKATTR_VALID)
		return EINVAL;
	*out = (int)attr->marcel_words[0];
	return 0;
}

struct marcel_thread *marcel_rwlock_look(const void *rwlock, unsigned *readers)
{
	const struct rwlock *l = rwlock;
	uint32_t w = load_relaxed(&l->guard.word);

	*readers = w / READER;
	return w & WRITER ? load_relaxed(&l->owner) : NULL;
}
