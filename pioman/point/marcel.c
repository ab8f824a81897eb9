/*
 * The whole coupling to marcel's scheduler: the idle, the switch and the tick
 * hook.
 *
 * Idle: go round as often as marcel asks, and say whether the VP may sleep. Who
 * has done so in vain for long enough has ltasks armed (io/blocking.h).
 *
 * Switch: threads may switch every 15 ns, and a poll may be a system call. So
 * a round is made only when SHARE times its own cost has passed since the last
 * one, which bounds what it takes from the threads. Looking at the clock costs
 * as much as a switch, hence it is looked at in every step-th switch only, and
 * the step follows from how fast the switches come: 1 when they are rare, so
 * that nobody waits for a poll longer than STEP_MAX switches once.
 *
 * Tick: while a thread computes, at every second time slice, if an ltask wants
 * to be run. The next one is far away, so ltasks are armed.
 */
#include "marcel.h"

#include <string.h>
#include <time.h>

#include <base/atomic.h>
#include <base/clock.h>
#include <base/compiler.h>

#include <marcel/marcel.h>

#include "../ltask/poll.h"
#include "../ltask/queue.h"

enum {
	SHARE = 8,        /* polls take at most 1/8 of the time */
	STEP_MAX = 16,    /* switches between two looks at the clock */
	PERIOD_NS = 1000, /* no use polling more often than this */
	COST_MAX = 20000, /* longer than a poll: we had lost the CPU */
};

/*
 * Written by the VP alone; atomic because of the threads that run on it one
 * after the other, between which nothing else gives an order.
 */
struct vp_point {
	/* a: the VP writes, relaxed */
	ATOMIC(uint32_t) left;   /* a: switches until the next look */
	ATOMIC(uint32_t) step;   /* a: what left starts from */
	ATOMIC(uint64_t) looked; /* a: time of the last look */
	ATOMIC(uint64_t) due;    /* a: time of the next round */
	ATOMIC(uint64_t) cost;   /* a: of a round, ns, smoothed */
	ATOMIC(uint64_t) polls;  /* a: rounds of the idle hook */
	ATOMIC(uint64_t) vain;   /* a: since when in vain; 0: not idle */
} BASE_ALIGNED(BASE_CACHE_PAIR);

static struct vp_point points[MARCEL_VP_MAX];

static enum marcel_hook_answer answer(int worked, bool pending)
{
	if (worked > 0)
		return MARCEL_HOOK_WORKED;
	return pending ? MARCEL_HOOK_PENDING : MARCEL_HOOK_NOTHING;
}

static enum marcel_hook_answer idle(void *arg, int vp)
{
	struct vp_point *p = &points[vp];
	uint64_t vain = load_relaxed(&p->vain);
	bool pending;
	/* At least 1: it is not PIOM_PASSING. */
	int worked =
		piom_poll_round(vp, vain != 0 ? base_now_ns() - vain + 1 : 1,
				PIOM_POINT_IDLE, &pending);

	(void)arg;
	if (worked > 0 || pending)
		store_relaxed(&p->polls, load_relaxed(&p->polls) + 1);
	if (worked > 0 || !pending)
		store_relaxed(&p->vain, 0);
	else if (vain == 0)
		store_relaxed(&p->vain, base_now_ns());
	return answer(worked, pending);
}

/* So many switches that about one PERIOD_NS passes until the next look. */
static uint32_t step_for(uint32_t step, uint64_t passed)
{
	uint64_t per_switch = passed / step + 1;
	uint64_t next = PERIOD_NS / per_switch;

	if (next < 1)
		return 1;
	return next > STEP_MAX ? STEP_MAX : (uint32_t)next;
}

static BASE_NOINLINE enum marcel_hook_answer look(struct vp_point *p, int vp)
{
	uint64_t start = base_now_ns(), took, rest,
		 cost = load_relaxed(&p->cost);
	uint32_t step = step_for(load_relaxed(&p->step),
				 start - load_relaxed(&p->looked));
	bool pending;
	int worked;

	store_relaxed(&p->step, step);
	store_relaxed(&p->left, step);
	store_relaxed(&p->looked, start);
	if (start < load_relaxed(&p->due))
		return MARCEL_HOOK_PENDING;
	worked = piom_poll_round(vp, PIOM_PASSING, PIOM_POINT_SWITCH, &pending);
	took = base_now_ns() - start;
	cost = (cost * 7 + (took < COST_MAX ? took : COST_MAX)) / 8;
	rest = cost * SHARE > PERIOD_NS ? cost * SHARE : PERIOD_NS;
	store_relaxed(&p->cost, cost);
	store_relaxed(&p->due, start + took + rest);
	return answer(worked, pending);
}

static enum marcel_hook_answer on_switch(void *arg, int vp)
{
	struct vp_point *p = &points[vp];
	uint32_t left = load_relaxed(&p->left) - 1;

	(void)arg;
	store_relaxed(&p->left, left);
	store_relaxed(&p->vain, 0);
	if (likely(left > 0))
		return MARCEL_HOOK_NOTHING;
	if (piom_poll_is_idle(vp)) {
		store_relaxed(&p->left, load_relaxed(&p->step));
		return MARCEL_HOOK_NOTHING;
	}
	return look(p, vp);
}

static enum marcel_hook_answer on_tick(void *arg, int vp)
{
	(void)arg;
	return answer(piom_poll_all(vp, PIOM_TICK, PIOM_POINT_TICK), false);
}

static bool is_wanted(void *arg, int vp)
{
	(void)arg;
	return piom_poll_is_pending(vp);
}

static bool is_called(void *arg, int vp)
{
	(void)arg;
	return piom_poll_is_called(vp);
}

static struct {
	enum marcel_hook_point point;
	struct marcel_hook hook;
} hooks[] = {
	{ MARCEL_HOOK_IDLE, { .fn = idle, .wanted = is_called } },
	{ MARCEL_HOOK_SWITCH, { .fn = on_switch } },
	{ MARCEL_HOOK_TICK, { .fn = on_tick, .wanted = is_wanted } },
};

static void remove_hooks(unsigned n)
{
	while (n-- > 0)
		marcel_hook_remove(hooks[n].point, &hooks[n].hook);
}

int piom_point_marcel_init(void)
{
	int err;

	memset(points, 0, sizeof(points));
	for (int vp = 0; vp < MARCEL_VP_MAX; vp++) {
		store_relaxed(&points[vp].left, 1);
		store_relaxed(&points[vp].step, 1);
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(hooks); i++) {
		err = marcel_hook_add(hooks[i].point, &hooks[i].hook);
		if (err < 0) {
			remove_hooks(i);
			return err;
		}
	}
	return 0;
}

void piom_point_marcel_exit(void)
{
	remove_hooks(BASE_ARRAY_LEN(hooks));
}

uint64_t piom_point_marcel_polls(void)
{
	uint64_t polls = 0;

	for (int vp = 0; vp < marcel_nvp(); vp++)
		polls += load_relaxed(&points[vp].polls);
	return polls;
}
