/*
 * Into and out of the queues of a VP.
 *
 * A push ends with a look for sleepers, order(idle): one load when all are
 * awake. With one VP the only pushers beside its owner are foreign threads,
 * and they use the machine's queue; so the owner's own queues need no atomic
 * operation and no look.
 */
#include "runq.h"

#include <sched.h>

#include <base/diag.h>
#include "../thread/fork.h"
#include "tasklet.h"
#include "tick.h"

/* --- push --- */

BASE_NOINLINE void marcel_runq_wake_one(struct marcel_vp *vp)
{
	struct marcel_sched *s = &marcel_sched;

	if (vp == NULL) {
		for (int i = 0; i < s->nvp; i++)
			if (marcel_vp_wake(&s->vps[i], false))
				return;
		return;
	}
	for (int i = 0; i < s->nvp - 1; i++)
		if (marcel_vp_wake(vp->victims[i], false))
			return;
}

static void push_remote(struct marcel_vp *home, struct marcel_thread *t)
{
	base_mpsc_push_seq(&home->remote, &t->node); /* order(idle) */
	marcel_vp_wake(home, true);
}

/* For one VP, in the band of the thread. */
static void push_leaf(struct marcel_vp *home, struct marcel_thread *t)
{
	bool urgent = marcel_thread_is_urgent(t);
	marcel_vpset_t set;

	marcel_levelq_push(home->above[0], t);
	if (marcel_vp_wake(home, true) || likely(!urgent))
		return;
	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, home->id);
	marcel_monitor_urgent(&set);
}

/* Of the machine for threads without a set; vp: the caller's, or NULL. */
static void push_level(struct marcel_vp *vp, struct marcel_thread *t)
{
	struct marcel_sched *s = &marcel_sched;
	marcel_vpset_t set;
	bool urgent;

	if (t->home >= 0) {
		push_leaf(&s->vps[t->home], t);
		return;
	}
	urgent = marcel_thread_is_urgent(t);
	if (!marcel_thread_has(t, MARCEL_F_SUBSET)) {
		marcel_levelq_push(&s->levelqs[0], t);
		if (marcel_idle_wanted(&s->idle))
			marcel_runq_wake_one(vp);
		else if (unlikely(urgent))
			marcel_monitor_urgent(NULL);
		return;
	}
	set = t->rest->set; /* t may run, and end, as soon as it is pushed */
	marcel_levelq_push(
		&s->levelqs[marcel_topo_number(&s->topo, t->rest->level)], t);
	for (int i = 0; i < s->nvp; i++)
		if (marcel_vpset_has(&set, i) &&
		    marcel_vp_wake(&s->vps[i], true))
			return;
	if (unlikely(urgent))
		marcel_monitor_urgent(&set);
}

static BASE_NOINLINE void
push_full(struct marcel_vp *vp, struct marcel_deque *d, struct marcel_thread *t)
{
	if (unlikely(!marcel_deque_push(d, t)))
		push_level(vp, t);
	else if (marcel_idle_wanted(&marcel_sched.idle))
		marcel_runq_wake_one(vp);
}

/* marcel_deque_push() in two: a call in the middle would cost a frame. */
static void push_deque(struct marcel_vp *vp, struct marcel_deque *d,
		       struct marcel_thread *t)
{
	int64_t b = load_relaxed(&d->bottom);
	struct marcel_deque_array *a = marcel_deque_room(d, b);

	if (unlikely(a == NULL)) {
		push_full(vp, d, t);
		return;
	}
	marcel_deque_fill(a, b, t);
	if (vp->sole) {
		marcel_deque_publish_sole(d, b + 1);
		return;
	}
	marcel_deque_publish(d, b + 1);
	if (marcel_idle_wanted(&marcel_sched.idle))
		marcel_runq_wake_one(vp);
}

static void add_bound(struct marcel_vp *vp, struct marcel_thread *t)
{
	base_list_push_back(&vp->bound, &t->link);
	store_relaxed(&vp->nbound, load_relaxed(&vp->nbound) + 1);
}

void marcel_runq_push_behind(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (unlikely(marcel_thread_has(t, MARCEL_F_SUBSET | MARCEL_F_BAND))) {
		push_level(vp, t);
	} else if (unlikely(t->home >= 0)) {
		if (t->home == vp->id)
			add_bound(vp, t);
		else
			push_remote(&marcel_sched.vps[t->home], t);
	} else if (load_relaxed(&t->state) == MARCEL_T_NEW) {
		push_deque(vp, &vp->seeds, t);
	} else {
		push_deque(vp, &vp->fifo, t);
	}
}

void marcel_runq_guest_begin(void)
{
	fetch_add_relaxed(&marcel_sched.guests, 1);
}

void marcel_runq_guest_end(void)
{
	/* order(guest): we read the VPs */
	fetch_sub_release(&marcel_sched.guests, 1);
}

/*
 * A kernel thread that drives no VP. What it pushes may run and be the last to
 * end while it still looks for a VP to wake, so it is counted meanwhile. In a
 * forked child nothing will ever run, and the queues' locks may be held by who
 * was left behind.
 */
static BASE_COLD void push_as_guest(struct marcel_thread *t)
{
	struct marcel_sched *s = &marcel_sched;

	if (marcel_fork_is_left())
		return;
	marcel_runq_guest_begin();
	if (t->home >= 0)
		marcel_runq_push_to(&s->vps[t->home], t);
	else
		push_level(NULL, t);
	marcel_runq_guest_end();
}

/* No guest: the end waits for LWPs. */
void marcel_runq_push_to(struct marcel_vp *vp, struct marcel_thread *t)
{
	/* What was interrupted lies where the monitor can let it loose. */
	if (unlikely(marcel_thread_has(t, MARCEL_F_BAND) ||
		     (marcel_thread_has(t, MARCEL_F_KEPT) &&
		      t->rest->interrupted != NULL)))
		push_leaf(vp, t);
	else
		push_remote(vp, t);
}

void marcel_runq_wait_guests(void (*meanwhile)(void))
{
	/* order(guest) */
	while (load_acquire(&marcel_sched.guests) != 0) {
		if (meanwhile != NULL)
			meanwhile();
		sched_yield();
	}
}

/* There is something for thieves in the slot, and a VP is idle. */
static BASE_NOINLINE void slot_is_full(struct marcel_vp *vp)
{
	uintptr_t x;

	if (marcel_sched.robs)
		marcel_runq_wake_one(vp);
	else if ((x = marcel_slot_take(&vp->next)) != 0)
		marcel_runq_push_behind(vp, marcel_runq_thread(x));
}

static inline void fill_slot(struct marcel_vp *vp, uintptr_t x)
{
	uint64_t idle;

	marcel_slot_put(&vp->next, x);
	idle = load_light(&marcel_sched.idle.word); /* order(idle) */
	if (unlikely(idle != 0) && marcel_slot_is_open(x) &&
	    (marcel_idle_is_unwatched(idle) || !marcel_sched.robs))
		slot_is_full(vp);
}

/* What lies in the slot goes behind the others. */
static BASE_NOINLINE void refill_slot(struct marcel_vp *vp, uintptr_t x)
{
	uintptr_t old = marcel_slot_take(&vp->next);

	if (old != 0)
		marcel_runq_push_behind(vp, marcel_runq_thread(old));
	fill_slot(vp, x);
}

/* Whether t, just woken there, is what the VP should run next. */
static bool fits_slot(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (likely(!marcel_thread_has(t, MARCEL_F_SUBSET | MARCEL_F_BAND)))
		return t->home < 0 || t->home == vp->id;
	return !marcel_thread_has(t, MARCEL_F_BAND) &&
	       marcel_thread_may_run(t, vp->id);
}

void marcel_runq_push(struct marcel_vp *vp, struct marcel_thread *t)
{
	uintptr_t x;

	if (unlikely(vp == NULL)) {
		push_as_guest(t);
		return;
	}
	if (load_relaxed(&t->state) == MARCEL_T_NEW || !fits_slot(vp, t)) {
		marcel_runq_push_behind(vp, t);
		return;
	}
	x = (uintptr_t)t;
	if (t->home >= 0)
		x |= MARCEL_SLOT_STAYS;
	if (load_relaxed(&vp->next.entry) == 0)
		fill_slot(vp, x);
	else
		refill_slot(vp, x);
}

void marcel_runq_push_many(struct marcel_vp *vp, struct marcel_thread **t,
			   unsigned n)
{
	uintptr_t x = marcel_slot_take(&vp->next);
	struct marcel_deque *d = &vp->fifo;
	unsigned i = 0;
	int64_t b;

	if (x != 0)
		marcel_runq_push_behind(vp, marcel_runq_thread(x));
	b = load_relaxed(&d->bottom);
	while (i < n && likely(marcel_deque_place(d, b + i, t[i])))
		i++;
	if (vp->sole)
		marcel_deque_publish_sole(d, b + i);
	else
		marcel_deque_publish(d, b + i);
	for (; unlikely(i < n); i++)
		push_level(vp, t[i]);
	if (!vp->sole && marcel_idle_wanted(&marcel_sched.idle))
		marcel_runq_wake_one(vp);
}

/* --- pick --- */

static void remove_bound(struct marcel_vp *vp, struct base_link *n)
{
	base_list_remove(n);
	store_relaxed(&vp->nbound, load_relaxed(&vp->nbound) - 1);
}

static void receive_remote(struct marcel_vp *vp)
{
	struct base_mpsc_node *chain;

	if (likely(base_mpsc_is_empty(&vp->remote)))
		return;
	chain = base_mpsc_take(&vp->remote);
	base_mpsc_for_each (m, chain)
		add_bound(vp, container_of(m, struct marcel_thread, node));
}

static struct marcel_thread *take_bound(struct marcel_vp *vp)
{
	struct base_link *n;

	receive_remote(vp);
	if (base_list_is_empty(&vp->bound))
		return NULL;
	n = vp->bound.head.next;
	remove_bound(vp, n);
	return container_of(n, struct marcel_thread, link);
}

void marcel_runq_withdraw(struct marcel_vp *vp, struct marcel_thread *t)
{
	receive_remote(vp);
	if (!marcel_levelq_fetch(vp->above[0], t, -1))
		remove_bound(vp, &t->link);
}

struct marcel_thread *marcel_runq_take_kept(struct marcel_vp *vp,
					    struct marcel_lwp *l, bool by)
{
	struct marcel_thread *found = NULL;
	uintptr_t x = marcel_slot_take(&vp->next);

	if (x != 0)
		marcel_runq_push_behind(vp, marcel_runq_thread(x));
	receive_remote(vp);
	base_list_for_each (n, &vp->bound) {
		struct marcel_thread *t =
			container_of(n, struct marcel_thread, link);

		if (!marcel_levelq_is_kept(t, l, by))
			continue;
		remove_bound(vp, n);
		return t;
	}
	for (unsigned i = 0; i < vp->nabove && found == NULL; i++)
		found = marcel_levelq_take_kept(vp->above[i],
						i == 0 ? -1 : vp->id, l, by);
	return found;
}

static struct marcel_thread *take_fifo(struct marcel_vp *vp)
{
	return vp->sole ? marcel_deque_take_oldest_sole(&vp->fifo)
			: marcel_deque_take_oldest(&vp->fifo);
}

/* From the queues above; if they take turns, who is first next time follows. */
static struct marcel_thread *take_band(struct marcel_vp *vp,
				       enum marcel_band band, uint8_t *turn)
{
	unsigned n = turn != NULL ? *turn : 0;
	struct marcel_thread *t = NULL;

	for (unsigned i = 0; i < vp->nabove && t == NULL; i++) {
		/* What is in its leaf may run nowhere else. */
		t = marcel_levelq_take(vp->above[n], band,
				       n == 0 ? -1 : vp->id);
		n = n + 1 < vp->nabove ? n + 1 : 0;
	}
	if (t != NULL && turn != NULL)
		*turn = (uint8_t)n;
	return t;
}

static struct marcel_thread *take_band_fair(struct marcel_vp *vp,
					    enum marcel_band band)
{
	return take_band(vp, band, &vp->above_turn[band]);
}

static struct marcel_thread *take_above(struct marcel_vp *vp)
{
	return take_band(vp, MARCEL_BAND_NORMAL, NULL);
}

static struct marcel_thread *take_above_fair(struct marcel_vp *vp)
{
	return take_band_fair(vp, MARCEL_BAND_NORMAL);
}

static struct marcel_thread *take_seed(struct marcel_vp *vp)
{
	return vp->sole ? marcel_deque_take_newest_sole(&vp->seeds)
			: marcel_deque_take_newest(&vp->seeds);
}

/* The oldest seed: two threads that only yield must not keep it waiting. */
static struct marcel_thread *take_old_seed(struct marcel_vp *vp)
{
	return vp->sole ? marcel_deque_take_oldest_sole(&vp->seeds)
			: marcel_deque_take_oldest(&vp->seeds);
}

/* As if nothing had been brought forward. */
static void restore_fair(struct marcel_vp *vp)
{
	uint32_t next = load_relaxed(&vp->picks) + 1;

	if (marcel_sched.random.on) {
		vp->fair_at = next;
		return;
	}
	vp->fair_at = (int32_t)(vp->fair_due - next) > 0 ? vp->fair_due : next;
	vp->handovers = 0;
}

/*
 * Another queue is first each time, so that none waits for ever: each other
 * time those above, where threads come from outside.
 */
static struct marcel_thread *pick_turn(struct marcel_vp *vp)
{
	static struct marcel_thread *(*const take[])(struct marcel_vp *) = {
		take_fifo,       take_above_fair, take_old_seed,
		take_above_fair, take_bound,      take_above_fair,
	};
	struct marcel_thread *t = NULL;
	unsigned n = BASE_ARRAY_LEN(take);
	uintptr_t x = marcel_slot_take(&vp->next);

	if (x != 0)
		marcel_runq_push_behind(vp, marcel_runq_thread(x));
	vp->fair_due = load_relaxed(&vp->picks) + MARCEL_PICKS_FAIR;
	vp->fair_at = vp->fair_due;
	for (unsigned i = 0; i < n && t == NULL; i++)
		t = take[(vp->fair_turn + i) % n](vp);
	vp->fair_turn++;
	return t;
}

/* One that came since the last pick; new ones in the order of creation. */
static struct marcel_thread *take_any(struct marcel_vp *vp)
{
	struct marcel_thread *t = take_old_seed(vp);
	uintptr_t x;

	if (t != NULL)
		return t;
	x = marcel_slot_take(&vp->next);
	if (x != 0)
		return marcel_runq_thread(x);
	t = take_bound(vp);
	return t != NULL ? t : take_above(vp);
}

/* Into the fifo, whatever it is: nobody steals. */
static void gather(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	while ((t = take_any(vp)) != NULL) {
		if (load_relaxed(&t->state) == MARCEL_T_NEW)
			t->rest->number = ++marcel_sched.random.threads;
		if (marcel_deque_push_sole(&vp->fifo, t))
			continue;
		push_level(vp, t); /* there is no memory */
		return;
	}
}

/* t, which was not drawn: other bands have their order. */
static struct marcel_thread *noted(struct marcel_thread *t)
{
	struct marcel_random *r = &marcel_sched.random;

	if (likely(!r->on) || t == NULL)
		return t;
	if (load_relaxed(&t->state) == MARCEL_T_NEW)
		t->rest->number = ++r->threads;
	marcel_random_note(r, t->rest->number);
	return t;
}

static BASE_COLD struct marcel_thread *pick_random(struct marcel_vp *vp)
{
	struct marcel_random *r = &marcel_sched.random;
	struct marcel_thread *t;
	int64_t n;

	vp->fair_at = load_relaxed(&vp->picks) + 1;
	t = take_band_fair(vp, MARCEL_BAND_REALTIME);
	if (t != NULL)
		return noted(t);
	gather(vp);
	n = marcel_deque_length(&vp->fifo);
	if (n == 0)
		return NULL;
	t = marcel_deque_take_nth_sole(&vp->fifo,
				       marcel_random_draw(r, (uint32_t)n));
	marcel_random_note(r, t->rest->number);
	return t;
}

/* One among the others; if it is none, the next pick is theirs alone. */
BASE_COLD bool marcel_runq_draws_stay(struct marcel_vp *vp,
				      struct marcel_thread *t)
{
	struct marcel_random *r = &marcel_sched.random;
	int64_t n;

	if (marcel_thread_has(t, MARCEL_F_BAND) || marcel_runq_is_urgent())
		return false;
	gather(vp);
	n = marcel_deque_length(&vp->fifo);
	if (n == 0 || marcel_random_draw(r, (uint32_t)n + 1) < n)
		return false;
	marcel_random_note(r, t->rest->number);
	return true;
}

/* It is another queue's turn, or real-time threads are ready. */
static BASE_COLD struct marcel_thread *pick_fair(struct marcel_vp *vp)
{
	struct marcel_thread *t = take_band_fair(vp, MARCEL_BAND_REALTIME);

	if (t != NULL ||
	    (int32_t)(load_relaxed(&vp->picks) - vp->fair_due) < 0) {
		restore_fair(vp);
		return t;
	}
	return pick_turn(vp);
}

void marcel_runq_attend_slow(struct marcel_vp *vp)
{
	for (unsigned i = 0; i < vp->nabove; i++) {
		if (!marcel_levelq_has(vp->above[i], MARCEL_BAND_REALTIME))
			continue;
		vp->fair_at = load_relaxed(&vp->picks) + 1;
		vp->handovers = MARCEL_HANDOVERS_MAX;
	}
}

struct marcel_thread *marcel_runq_pick_urgent(struct marcel_vp *vp)
{
	struct marcel_thread *t = take_band_fair(vp, MARCEL_BAND_REALTIME);

	if (t != NULL)
		marcel_runq_count(vp);
	restore_fair(vp);
	return noted(t);
}

struct marcel_thread *marcel_runq_pick_idle(struct marcel_vp *vp)
{
	return noted(take_band_fair(vp, MARCEL_BAND_IDLE));
}

struct marcel_thread *marcel_runq_pick(struct marcel_vp *vp)
{
	struct marcel_thread *t;
	uintptr_t x;

	if (unlikely(marcel_runq_count(vp))) {
		if (marcel_sched.random.on)
			return pick_random(vp);
		t = pick_fair(vp);
		if (t != NULL)
			return t;
	}
	x = marcel_slot_take(&vp->next);
	if (x != 0) {
		if (likely(vp->handovers++ < MARCEL_HANDOVERS_MAX))
			return marcel_runq_thread(x);
		marcel_runq_push_behind(vp, marcel_runq_thread(x));
	}
	vp->handovers = 0;
	if (unlikely(!base_list_is_empty(&vp->bound) ||
		     !base_mpsc_is_empty(&vp->remote))) {
		vp->fifo_turn = !vp->fifo_turn;
		if (!vp->fifo_turn || (t = take_fifo(vp)) == NULL)
			t = take_bound(vp);
	} else {
		t = take_fifo(vp);
	}
	if (t == NULL)
		t = take_seed(vp);
	if (t == NULL)
		t = take_above(vp);
	return t;
}

bool marcel_runq_claim(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (marcel_deque_newest(&vp->seeds) != t)
		return false;
	return take_seed(vp) == t;
}

static bool fetch_slot(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (marcel_runq_thread(load_relaxed(&vp->next.entry)) != t)
		return false;
	return marcel_slot_take(&vp->next) != 0; /* else it was robbed */
}

static bool fetch_bound(struct marcel_vp *vp, struct marcel_thread *t)
{
	receive_remote(vp);
	base_list_for_each (n, &vp->bound) {
		if (n != &t->link)
			continue;
		remove_bound(vp, n);
		return true;
	}
	return false;
}

/* All others keep their order: each goes from one end to the other. */
static bool fetch_deque(struct marcel_vp *vp, struct marcel_deque *d,
			struct marcel_thread *t,
			struct marcel_thread *(*take)(struct marcel_vp *))
{
	long n = (long)marcel_deque_length(d);
	struct marcel_thread *other;
	bool found = false;

	for (; n > 0 && (other = take(vp)) != NULL; n--) {
		if (other == t)
			found = true;
		else
			push_deque(vp, d, other);
	}
	return found;
}

bool marcel_runq_fetch(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (fetch_slot(vp, t) || marcel_runq_claim(vp, t) || fetch_bound(vp, t))
		return true;
	for (unsigned i = 0; i < vp->nabove; i++)
		if (marcel_levelq_fetch(vp->above[i], t, vp->id))
			return true;
	return fetch_deque(vp, &vp->fifo, t, take_fifo) ||
	       fetch_deque(vp, &vp->seeds, t, take_old_seed);
}

enum { SHARED_MAX = 1000 }; /* at a look, which others wait for */

static struct marcel_thread *steal_from(struct marcel_vp *victim)
{
	struct marcel_thread *t = NULL;

	if (marcel_deque_length(&victim->seeds) > 0)
		t = marcel_deque_steal(&victim->seeds);
	if (t == NULL && marcel_deque_length(&victim->fifo) > 0)
		t = marcel_deque_steal(&victim->fifo);
	return t;
}

struct marcel_thread *marcel_runq_steal(struct marcel_vp *vp)
{
	struct marcel_thread *t = NULL;

	for (int i = 0; i < marcel_sched.nvp - 1 && t == NULL; i++)
		t = steal_from(vp->victims[i]);
	return t;
}

void marcel_runq_share(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	for (int n = 0; n < SHARED_MAX && (t = steal_from(vp)) != NULL; n++)
		push_as_guest(t);
	if (!marcel_sched.robs ||
	    !marcel_slot_is_open(load_relaxed(&vp->next.entry)))
		return;
	t = marcel_runq_thread(marcel_slot_rob(&vp->next));
	if (t != NULL)
		push_as_guest(t);
}

struct marcel_thread *marcel_runq_rob(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	for (int i = 0; marcel_sched.robs && i < marcel_sched.nvp - 1; i++) {
		struct marcel_vp *victim = vp->victims[i];
		uint32_t seen = vp->slot_seen[i];

		vp->slot_seen[i] = 0;
		if (!marcel_slot_is_open(load_relaxed(&victim->next.entry)))
			continue;
		vp->slot_seen[i] = load_relaxed(&victim->picks) << 1 | 1;
		if (vp->slot_seen[i] != seen)
			continue;
		t = marcel_runq_thread(marcel_slot_rob(&victim->next));
		if (t == NULL)
			continue;
		if (marcel_thread_may_run(t, vp->id))
			return t;
		marcel_runq_push_behind(vp, t);
	}
	return NULL;
}

bool marcel_runq_look_slots(struct marcel_vp *vp)
{
	bool found = false;

	if (!marcel_sched.robs)
		return false;
	os_barrier_all();
	for (int i = 0; i < marcel_sched.nvp - 1 && !found; i++)
		found = marcel_slot_has_seq(&vp->victims[i]->next);
	return found;
}

bool marcel_runq_look_shared(void)
{
	struct marcel_sched *s = &marcel_sched;
	bool found = false;

	for (unsigned i = 0; i < s->topo.nlevels && !found; i++)
		found = s->topo.levels[i].vp < 0 &&
			load_seq(&s->levelqs[i].length) != 0; /* order(idle) */
	for (int i = 0; i < s->nvp && !found; i++)
		found = marcel_deque_has_seq(&s->vps[i].fifo) ||
			marcel_deque_has_seq(&s->vps[i].seeds);
	return found;
}

bool marcel_runq_look(struct marcel_vp *vp)
{
	bool found = load_relaxed(&vp->next.entry) != 0 ||
		     !base_list_is_empty(&vp->bound) ||
		     load_seq(&vp->remote.top) != NULL || /* order(idle) */
		     marcel_tasklets_look(vp);

	for (unsigned i = 0; i < vp->nabove && !found; i++)
		found = marcel_levelq_look(vp->above[i], vp->id);
	for (int i = 0; i < marcel_sched.nvp && !found; i++)
		found = marcel_deque_has_seq(&marcel_sched.vps[i].fifo) ||
			marcel_deque_has_seq(&marcel_sched.vps[i].seeds);
	return found;
}

/* Work of the normal band that waits for this VP. */
static bool seems_to_have(struct marcel_vp *vp)
{
	return load_relaxed(&vp->next.entry) != 0 ||
	       load_relaxed(&vp->nbound) != 0 ||
	       !base_mpsc_is_empty(&vp->remote) ||
	       marcel_deque_length(&vp->fifo) > 0 ||
	       marcel_deque_length(&vp->seeds) > 0;
}

/* Work that it could steal. */
static BASE_COLD bool others_seem_to_have(struct marcel_vp *vp)
{
	for (int i = 0; i < marcel_sched.nvp - 1; i++)
		if (marcel_deque_length(&vp->victims[i]->fifo) > 0 ||
		    marcel_deque_length(&vp->victims[i]->seeds) > 0)
			return true;
	return false;
}

bool marcel_runq_seems_ready(struct marcel_vp *vp, enum marcel_band band)
{
	uint32_t mask = (2u << band) - 1;

	if (marcel_tasklets_are_pending(vp))
		return true;
	if (band >= MARCEL_BAND_NORMAL && seems_to_have(vp))
		return true;
	for (unsigned i = 0; i < vp->nabove; i++)
		if (load_relaxed(&vp->above[i]->bands) & mask)
			return true;
	if (unlikely(band == MARCEL_BAND_IDLE) && others_seem_to_have(vp))
		return true;
	return marcel_timers_are_due(&vp->timers);
}
