/*
 * The slow halves of the guard and of the wait queue.
 */
#include "waitq.h"

#include <sched.h>

#include <base/diag.h>
#include <marcel/wait.h>
#include "../arch/cpu.h"
#include "guard.h"

enum { SPINS = 100 }; /* some microseconds: far longer than it is held */

void marcel_guard_pause(unsigned *turn)
{
	if ((*turn)++ < SPINS)
		cpu_relax();
	else
		sched_yield();
}

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
