/*
 * Into and out of the queues of a VP (see vp.h for their order).
 */
#ifndef MARCEL_SCHED_RUNQ_H
#define MARCEL_SCHED_RUNQ_H

#include "vp.h"

/*
 * Make t, which is NEW or ready and on no queue, be run by some VP. Anyone;
 * never blocks. vp: the caller's, or NULL. Wakes a VP if one is needed.
 */
void marcel_runq_push(struct marcel_vp *vp, struct marcel_thread *t);

/*
 * The owner: the same for several, as it would be if another came after them.
 * All were woken, and may run everywhere with no priority of their own. One
 * push and one look for sleepers serve them all.
 */
void marcel_runq_push_many(struct marcel_vp *vp, struct marcel_thread **t,
			   unsigned n);

/* A foreign thread uses the VPs: they do not go away meanwhile. */
void marcel_runq_guest_begin(void);
void marcel_runq_guest_end(void);

/*
 * Before the VPs go away, when no thread is left: until the foreign threads
 * that pushed the last ones have done with the VPs.
 */
void marcel_runq_wait_guests(void (*meanwhile)(void));

/* The same for a thread that vp has to run, whatever its set. Anyone. */
void marcel_runq_push_to(struct marcel_vp *vp, struct marcel_thread *t);

/*
 * The monitor: some of what lies in vp's deques, and in its slot if that can be
 * robbed, goes to where all pick.
 */
void marcel_runq_share(struct marcel_vp *vp);

/* The owner: t, which was pushed to vp, is no longer to be picked. */
void marcel_runq_withdraw(struct marcel_vp *vp, struct marcel_thread *t);

/*
 * The owner: a ready thread for vp that l keeps, or if not `by` another LWP
 * than l; NULL: there is none. What an LWP keeps is in no deque.
 */
struct marcel_thread *marcel_runq_take_kept(struct marcel_vp *vp,
					    struct marcel_lwp *l, bool by);

/*
 * Anyone: whether threads of this band or those above, or a timer that is due,
 * seem to wait for this VP; for the idle band also what it could steal. BANDS:
 * any, but nothing to steal.
 */
bool marcel_runq_seems_ready(struct marcel_vp *vp, enum marcel_band band);

/* The owner: as above, but behind the others that are ready here. */
void marcel_runq_push_behind(struct marcel_vp *vp, struct marcel_thread *t);

/* The owner: another pick; whether it is the turn of another queue. */
static inline bool marcel_runq_count(struct marcel_vp *vp)
{
	uint32_t n = load_relaxed(&vp->picks) + 1;

	store_relaxed(&vp->picks, n);
	return n == vp->fair_at;
}

/*
 * The owner, with one VP: if only the fifo has anything and no timer is armed,
 * take its oldest and put t behind the others, else NULL. Nobody else looks
 * into the fifo, so t may be there before its context is saved.
 */
static inline struct marcel_thread *
marcel_runq_rotate_sole(struct marcel_vp *vp, struct marcel_thread *t)
{
	struct marcel_thread *next;

	if (load_relaxed(&vp->picks) + 1 == vp->fair_at ||
	    load_relaxed(&vp->next.entry) != 0 ||
	    marcel_thread_has(t, MARCEL_F_MAIN | MARCEL_F_BAND |
					 MARCEL_F_SUBSET) ||
	    !base_list_is_empty(&vp->bound) ||
	    marcel_timers_are_armed(&vp->timers))
		return NULL;
	next = marcel_deque_rotate_sole(&vp->fifo, t);
	if (next == NULL)
		return NULL;
	marcel_runq_count(vp);
	return next;
}

/*
 * The owner, where schedules are drawn by lot: whether t, which runs and
 * yields, is drawn to go on.
 */
bool marcel_runq_draws_stay(struct marcel_vp *vp, struct marcel_thread *t);

/* The owner: a time slice is over, so the next pick is a fair one. */
static inline void marcel_runq_be_fair(struct marcel_vp *vp)
{
	vp->fair_at = vp->fair_due = load_relaxed(&vp->picks) + 1;
}

/*
 * The owner, who will pick: if a real-time thread waits for this VP, let it be
 * what the next pick finds first, and nobody be entered without a pick.
 */
void marcel_runq_attend_slow(struct marcel_vp *vp);

/* Whether a real-time thread is ready somewhere. */
static inline bool marcel_runq_is_urgent(void)
{
	return unlikely(load_relaxed(&marcel_sched.before_switch) >=
			MARCEL_BEFORE_URGENT);
}

static inline void marcel_runq_attend(struct marcel_vp *vp)
{
	if (marcel_runq_is_urgent())
		marcel_runq_attend_slow(vp);
}

/* The owner: next thread of its own queues and those above; NULL: none. */
struct marcel_thread *marcel_runq_pick(struct marcel_vp *vp);

/* The same, of the real-time band only. */
struct marcel_thread *marcel_runq_pick_urgent(struct marcel_vp *vp);

/* The same, of the idle band: for a VP that has found nothing anywhere. */
struct marcel_thread *marcel_runq_pick_idle(struct marcel_vp *vp);

static inline struct marcel_thread *marcel_runq_thread(uintptr_t entry)
{
	return (struct marcel_thread *)(entry & ~MARCEL_SLOT_STAYS);
}

/* The owner: what marcel_runq_pick() would find first of all; NULL: ask it. */
static inline struct marcel_thread *marcel_runq_pick_next(struct marcel_vp *vp)
{
	if (load_relaxed(&vp->next.entry) == 0 ||
	    unlikely(vp->handovers >= MARCEL_HANDOVERS_MAX) ||
	    unlikely(load_relaxed(&vp->picks) + 1 == vp->fair_at))
		return NULL;
	marcel_runq_count(vp);
	vp->handovers++;
	return marcel_runq_thread(marcel_slot_take(&vp->next));
}

/*
 * The owner: take t out if it is in a queue of this VP or above, and there is
 * no telling in which. Costs as much as there are threads in the queues.
 */
bool marcel_runq_fetch(struct marcel_vp *vp, struct marcel_thread *t);

/* The owner: take t out if it is its newest seed. */
bool marcel_runq_claim(struct marcel_vp *vp, struct marcel_thread *t);

/* The owner: a thread from another VP, nearest first; NULL: none. */
struct marcel_thread *marcel_runq_steal(struct marcel_vp *vp);

/*
 * The owner, a searcher: the same from the slot of another VP, if it was there
 * when last looked at and that VP has picked nothing since.
 */
struct marcel_thread *marcel_runq_rob(struct marcel_vp *vp);

/*
 * The owner, after it left the word unwatched: is there a thread in the slot
 * of another VP? Interrupts all CPUs.
 */
bool marcel_runq_look_slots(struct marcel_vp *vp);

/* The owner, after it said that it will sleep: is anything there for it? */
bool marcel_runq_look(struct marcel_vp *vp);

/* Is anything there that another VP may take? For the last searcher. */
bool marcel_runq_look_shared(void);

/* Wake a sleeper to search, the one nearest to the VP (or any: NULL). */
void marcel_runq_wake_one(struct marcel_vp *vp);

#endif
