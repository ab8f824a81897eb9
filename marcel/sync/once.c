/*
 * Once. One word: 0, then RUNNING with the stack of those who wait, then DONE.
 * The exchange that says DONE is the runner's last access.
 *
 * RUNNING has the generation of the process (guard.h) in the 16 bits above an
 * address: in the child of a fork() that of its parent means that nobody runs
 * it and nobody waits, and it is as good as 0.
 */
#include <marcel/sync.h>

#include <errno.h>

#include <base/diag.h>
#include <marcel/wait.h>
#include "../sched/vp.h"
#include "guard.h"
#include "waitq.h"

#define DONE    ((uintptr_t)1)
#define RUNNING ((uintptr_t)2)
#define MARKS   (DONE | RUNNING)
#define ADDRESS (((uintptr_t)1 << 48) - 1)

struct once {
	ATOMIC(uintptr_t) word; /* a: order(once) */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct once) <= sizeof(marcel_once_t),
	       "once fits its public words");

/* RUNNING in this process, and who waits. */
static uintptr_t running(struct marcel_waiter *first)
{
	base_assert(((uintptr_t)first & ~ADDRESS) == 0);
	return (uintptr_t)marcel_generation << 48 | (uintptr_t)first | RUNNING;
}

static struct marcel_waiter *waiters(uintptr_t w)
{
	return (struct marcel_waiter *)(w & ADDRESS & ~MARKS);
}

/* Somebody of this process runs it. */
static bool is_run(uintptr_t w)
{
	return running(waiters(w)) == w;
}

/* w: what the word was. */
static BASE_NOINLINE int once_slow(struct once *o, uintptr_t w,
				   void (*fn)(void))
{
	struct marcel_waiter me;

	while (w != DONE && !is_run(w)) {
		/* order(once): what fn did, if it has just ended */
		if (!cas_weak_acquire(&o->word, &w, running(NULL)))
			continue;
		fn();
		/* order(once): what fn did; the records */
		w = xchg_acq_rel(&o->word, DONE);
		/* fn may have forked. */
		if (is_run(w))
			marcel_waitq_wake(waiters(w));
		return 0;
	}
	me.thread = marcel_thread_self();
	while (w != DONE) {
		me.next = waiters(w);
		/* order(once): the record; what fn did */
		if (!cas_weak_acq_rel(&o->word, &w, running(&me)))
			continue;
		marcel_thread_waits(me.thread, MARCEL_WAITS_ONCE, o);
		marcel_park(NULL, NULL);
		break;
	}
	return 0;
}

BASE_PUBLIC int marcel_once(marcel_once_t *once, void (*fn)(void))
{
	struct once *o = (struct once *)once;
	uintptr_t w;

	if (unlikely(fn == NULL))
		return EINVAL;
	w = load_acquire(&o->word); /* order(once): what fn did */
	if (likely(w == DONE))
		return 0;
	return once_slow(o, w, fn);
}
