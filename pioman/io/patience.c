#include "patience.h"

#include <errno.h>

#include <base/clock.h>

#include <pioman/pioman.h>

#include "../state.h"

/* What is late by less is still polled for; what comes a little later than
 * usual, too. */
enum { SLACK_NS = 20000 };

/* A VP has polled for so long; else it is one of the marks in queue.h. */
static bool is_idle_for(uint64_t vain_ns)
{
	return vain_ns != PIOM_PASSING && vain_ns < PIOM_TICK;
}

/* How long polling is worth it. */
static uint64_t patience_of(const struct piom_waits *w)
{
	uint64_t ns = 2 * (uint64_t)w->usual_ns + SLACK_NS;

	if (w->delay_ns != PIOM_BLOCKING_AUTO)
		return w->delay_ns;
	if (w->usual_ns > piom.idle_ns)
		return 0;
	return w->usual_ns != 0 && ns < piom.idle_ns ? ns : piom.idle_ns;
}

/* It is expected at `due`: whether an idle VP waits for that in the kernel. */
static bool is_far_or_overdue(uint64_t due)
{
	uint64_t now = base_now_ns();

	return due > now ? due - now > piom.idle_ns : now - due > SLACK_NS;
}

bool piom_patience_is_over(const struct piom_task *t, uint64_t vain_ns)
{
	const struct piom_waits *w = &t->waits;
	uint64_t due = load_relaxed(&w->due);
	int urgency = load_relaxed(&w->urgency);

	if (piom.mode != PIOM_MODE_AUTO)
		return piom.mode == PIOM_MODE_INTERRUPT;
	if (vain_ns == PIOM_LAST)
		return true;
	if (vain_ns == PIOM_TICK)
		return urgency != PIOM_PATIENT &&
		       (due == 0 || base_now_ns() >= due);
	if (vain_ns == PIOM_PASSING)
		return urgency == PIOM_URGENT || w->delay_ns == 0;
	return due != 0 ? is_far_or_overdue(due) : vain_ns >= patience_of(w);
}

void piom_patience_armed(struct piom_task *t, uint64_t vain_ns)
{
	uint64_t now = base_now_ns();

	/* It may have been armed before, and what came was another's. */
	if (t->waits.since == 0)
		t->waits.since = is_idle_for(vain_ns) ? now - vain_ns : now;
}

void piom_patience_begin(struct piom_task *t)
{
	t->waits.since = 0;
	store_relaxed(&t->waits.due, 0);
	store_relaxed(&t->waits.urgency, PIOM_NORMAL);
}

void piom_patience_learn(struct piom_task *t, uint64_t vain_ns, uint64_t due)
{
	struct piom_waits *w = &t->waits;
	uint64_t took = vain_ns;

	if (unlikely(due != 0))
		cas_relaxed(&w->due, &due, 0);
	if (w->since != 0)
		took = base_now_ns() - w->since;
	else if (!is_idle_for(vain_ns))
		return; /* it was near: nobody had to wait */
	w->since = 0;
	if (took > piom.idle_ns + piom.idle_ns / 2)
		took = piom.idle_ns + piom.idle_ns / 2;
	if (w->usual_ns != 0)
		took = (w->usual_ns + took) / 2;
	w->usual_ns = took < 1 ? 1 : (uint32_t)took;
}

BASE_PUBLIC int piom_ltask_expect(struct piom_ltask *ltask, uint64_t ns,
				  enum piom_urgency urgency)
{
	struct piom_task *t = (struct piom_task *)ltask;
	uint64_t now = base_now_ns();

	if (!(t->options & PIOM_TASK_BLOCKING) || urgency < PIOM_PATIENT ||
	    urgency > PIOM_URGENT)
		return -EINVAL;
	/* Later than any clock is as good as unknown, but not near. */
	if (ns != UINT64_MAX)
		ns = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
	else
		ns = 0;
	store_relaxed(&t->waits.due, ns);
	store_relaxed(&t->waits.urgency, urgency);
	return 0;
}
