/*
 * What need not be inline of the wait queue.
 */
#include "waitq.h"

#include <base/diag.h>
#include <marcel/wait.h>

void marcel_waitq_wake(struct marcel_waiter *chain)
{
	struct marcel_waiter *next;

	for (struct marcel_waiter *w = chain; w != NULL; w = next) {
		next = w->next;
		marcel_wake(w->thread);
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
