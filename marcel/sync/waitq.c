/*
 * What need not be inline of the wait queue.
 */
#include "waitq.h"

#include <base/diag.h>
#include "../sched/wake.h"

enum { BATCH = 64 }; /* woken at once: meanwhile no tick comes */

void marcel_waitq_wake(struct marcel_waiter *chain)
{
	struct marcel_thread *t[BATCH];
	unsigned n;

	while (chain != NULL) {
		for (n = 0; n < BATCH && chain != NULL; chain = chain->next)
			t[n++] = chain->thread;
		marcel_wake_many(t, n);
	}
}

size_t marcel_waitq_check(const struct marcel_waitq *q)
{
	size_t n = 0;

	if (q->last == NULL)
		return 0;
	for (struct marcel_waiter *w = q->last->next;; w = w->next) {
		base_check(w->next->prev == w);
		base_check(w->prev->next == w);
		n++;
		if (w == q->last)
			return n;
	}
}
