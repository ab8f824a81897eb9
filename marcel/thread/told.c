/*
 * What a thread tells of itself while somebody watches: which function it is
 * in, and that it polls for what it waits for. base/hang.h
 */
#include <base/hang.h>

#include <marcel/marcel.h>
#include "../sched/vp.h"

BASE_PUBLIC struct marcel_watch marcel_watch;

BASE_PUBLIC const char *marcel_function_push(const char *name)
{
	struct marcel_thread *self = marcel_self();
	const char *was = load_relaxed(&self->rest->call);

	marcel_thread_use_rest(self);
	store_relaxed(&self->rest->call, name);
	return was;
}

BASE_PUBLIC void marcel_function_pop(const char *was)
{
	store_relaxed(&marcel_self()->rest->call, was);
}

static void begin(struct marcel_thread *self, const struct marcel_polling *p)
{
	store_relaxed(&self->rest->polled,
		      p->is_timed ? MARCEL_POLLED_TIMED : 0);
	fetch_or_relaxed(&self->flags, MARCEL_F_POLLS);
	fetch_add_relaxed(&marcel_sched.polls, 1);
}

/* Whatever ran on this VP before is behind it: we run. A guess at the VP is
 * one at what it had picked then, which is no news. */
static void settle(void)
{
	struct marcel_thread *self;
	struct marcel_vp *vp;

	if (marcel_thread_here(&self, &vp))
		store_relaxed(&vp->settled, load_relaxed(&vp->picks));
}

BASE_PUBLIC void marcel_polls(struct marcel_polling *p)
{
	struct marcel_thread *self = marcel_self();
	uint32_t timed = p->is_timed ? MARCEL_POLLED_TIMED : 0;

	if (p->began == 0)
		begin(self, p);
	else
		store_relaxed(&self->rest->polled, p->began | timed);
	if (p->events.n == 1)
		marcel_thread_waits(self, MARCEL_WAITS_EVENT,
				    p->events.event[0]);
	else
		marcel_thread_waits(self, MARCEL_WAITS_EVENTS, &p->events);
	settle();
	p->began = load_relaxed(&marcel_watch.looks);
}

BASE_PUBLIC void marcel_polls_end(struct marcel_polling *p)
{
	if (p->began == 0)
		return;
	fetch_and_relaxed(&marcel_self()->flags, (uint16_t)~MARCEL_F_POLLS);
	fetch_add_relaxed(&marcel_sched.polls, 1);
}
