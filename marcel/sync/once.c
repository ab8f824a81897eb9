/*
 * Once. One word: 0, then RUNNING with the stack of those who wait, then DONE.
 * The exchange that says DONE is the runner's last access.
 */
#include <marcel/sync.h>

#include <errno.h>

#include <marcel/wait.h>
#include "../sched/vp.h"
#include "waitq.h"

#define DONE    ((uintptr_t)1)
#define RUNNING ((uintptr_t)2)
#define MARKS   (DONE | RUNNING)

struct once {
	ATOMIC(uintptr_t) word; /* a: order(once) */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct once) <= sizeof(marcel_once_t),
	       "once fits its public words");

static BASE_NOINLINE int once_slow(struct once *o, void (*fn)(void))
{
	uintptr_t w = 0;
	struct marcel_waiter me;

	/* order(once): what fn did, if it has just ended */
	if (cas_acquire(&o->word, &w, RUNNING)) {
		fn();
		/* order(once): what fn did; the records */
		w = xchg_acq_rel(&o->word, DONE);
		marcel_waitq_wake((struct marcel_waiter *)(w & ~MARKS));
		return 0;
	}
	me.thread = marcel_thread_self();
	while (w != DONE) {
		me.next = (struct marcel_waiter *)(w & ~MARKS);
		/* order(once): the record; what fn did */
		if (!cas_weak_acq_rel(&o->word, &w, (uintptr_t)&me | RUNNING))
			continue;
		marcel_thread_waits(me.thread, "once");
		marcel_park(NULL, NULL);
		break;
	}
	return 0;
}

BASE_PUBLIC int marcel_once(marcel_once_t *once, void (*fn)(void))
{
	struct once *o = (struct once *)once;

	if (unlikely(fn == NULL))
		return EINVAL;
	/* order(once): what fn did */
	if (likely(load_acquire(&o->word) == DONE))
		return 0;
	return once_slow(o, fn);
}
