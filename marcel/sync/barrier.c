/*
 * Barriers. One word: the stack of those who have come, and how many.
 *
 *	63 ............ 20 | 19 .......... 0
 *	waiter's address   | arrived		the address / 16
 *
 * Who comes pushes its record and the count in one compare-and-swap, and parks.
 * Who completes the number takes the whole stack and leaves 0 in one
 * compare-and-swap: the barrier is ready for the next round and, as nobody
 * touches it after that for this round, may be destroyed at once. Nobody reads
 * a record but who took the stack, so it does not matter that one may come back
 * in a later round at the same address. More threads than the number may use
 * it: those of the next round may come while the last of this one does.
 */
#include <marcel/sync.h>

#include <errno.h>

#include <base/diag.h>
#include <marcel/wait.h>
#include "../sched/vp.h"
#include "look.h"
#include "waitq.h"

#define COUNT_BITS    20
#define COUNT_MASK    (((uint64_t)1 << COUNT_BITS) - 1)
#define COUNT_MAX     ((unsigned)1 << COUNT_BITS)
/* An address of 48 bits, a multiple of 16, uses bits 4 to 47. */
#define ADDRESS_SHIFT (COUNT_BITS - 4)

struct barrier {
	/* -: const    a: atomic, pair named */
	ATOMIC(uint64_t) word; /* a: order(barrier) */
	uint64_t count;        /* -: */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct barrier) <= sizeof(marcel_barrier_t),
	       "a barrier fits its public words");

static uint64_t pack(struct marcel_waiter *w, uint64_t arrived)
{
	uint64_t address = (uintptr_t)w;

	base_assert(address >> 48 == 0 && address % 16 == 0);
	return address << ADDRESS_SHIFT | arrived;
}

static struct marcel_waiter *top(uint64_t word)
{
	return (struct marcel_waiter *)(uintptr_t)((word & ~COUNT_MASK) >>
						   ADDRESS_SHIFT);
}

/* EAGAIN: more than a million threads do not fit the word. */
BASE_PUBLIC int marcel_barrier_init(marcel_barrier_t *barrier,
				    const marcel_barrierattr_t *attr,
				    unsigned count)
{
	struct barrier *b = (struct barrier *)barrier;
	int shared;

	if (count == 0 ||
	    (attr != NULL && marcel_barrierattr_getpshared(attr, &shared) != 0))
		return EINVAL;
	if (count > COUNT_MAX)
		return EAGAIN;
	*barrier = (marcel_barrier_t){ { 0 } };
	b->count = count;
	return 0;
}

BASE_PUBLIC int marcel_barrier_destroy(marcel_barrier_t *barrier)
{
	struct barrier *b = (struct barrier *)barrier;

	return load_relaxed(&b->word) != 0 ? EBUSY : 0;
}

/*
 * While only the last of the round is missing, be it: take all who wait, and
 * let them go. False: somebody else was; *w is what the word is now.
 */
static bool complete(struct barrier *b, uint64_t count, uint64_t *w)
{
	while ((*w & COUNT_MASK) + 1 == count)
		/* order(barrier): the records, what all of them did */
		if (cas_weak_acquire(&b->word, w, 0)) {
			marcel_waitq_wake(top(*w));
			return true;
		}
	return false;
}

/* One that comes: in the frame of who waits. */
struct arrival {
	struct marcel_waiter waiter;
	struct barrier *b;
	uint64_t count;
};

/*
 * The context is saved: publish. If all others have come meanwhile, this one
 * is the last after all, and goes on at once.
 */
static void arrive_after(void *arg)
{
	struct arrival *a = arg;
	uint64_t w = load_relaxed(&a->b->word);

	while (!complete(a->b, a->count, &w)) {
		a->waiter.next = top(w);
		/* order(barrier): the record; what was done before */
		if (cas_weak_release(&a->b->word, &w,
				     pack(&a->waiter, (w & COUNT_MASK) + 1)))
			return;
	}
	a->waiter.granted = true;
	marcel_wake(a->waiter.thread);
}

BASE_PUBLIC int marcel_barrier_wait(marcel_barrier_t *barrier)
{
	struct barrier *b = (struct barrier *)barrier;
	uint64_t w = load_relaxed(&b->word);
	struct arrival a;

	if (unlikely(b->count == 0))
		return EINVAL;
	if (complete(b, b->count, &w))
		return MARCEL_BARRIER_SERIAL_THREAD;
	a.b = b;
	a.count = b->count;
	a.waiter.granted = false;
	a.waiter.thread = marcel_thread_self();
	marcel_thread_waits(a.waiter.thread, MARCEL_WAITS_BARRIER, b);
	marcel_park(arrive_after, &a);
	return a.waiter.granted ? MARCEL_BARRIER_SERIAL_THREAD : 0;
}

void marcel_barrier_look(const void *barrier, unsigned *come, unsigned *count)
{
	const struct barrier *b = barrier;

	*come = (unsigned)(load_relaxed(&b->word) & COUNT_MASK);
	*count = (unsigned)b->count;
}
