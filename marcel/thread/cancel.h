/*
 * Cancellation, inside: how who waits can be taken out of a wait.
 *
 * A wait at a cancellation point has a struct marcel_timer, whether or not it
 * has an end in time: what a time-out does, a cancellation does too, by the
 * timer's kind. While one waits the thread's word `wait` names that timer.
 *
 *	waits				cancels
 *	`wait` = the timer		CANCEL in flags
 *	CANCEL in flags?		a barrier on every CPU
 *	  then as on the right		`wait`? claim, expire
 *
 * Both store, then look: order(cancel). As that of a heap of timers:
 *
 *	While `wait` names a timer, what that points to exists.
 *
 * So who grants a wait hides it first, with the guard of the object held, and
 * so does a waiter that returns: `wait` is NULL, CANCEL in flags? Then somebody
 * may still look at it, under a lock that one waits for.
 *
 * Nothing names the thread that somebody joins: to join costs no more for it.
 * Who cancels looks for the thread whose `ended` names the joiner, sees to it
 * that neither is in the middle of its part of a join, and takes it out there.
 *
 * A thread may see that it is wanted, and end, before who cancels it has done;
 * then, if it is foreign, detached, or somebody else joins it, its descriptor
 * is another thread's as soon as it is given back. So while anybody cancels
 * they are kept, and the last who does gives them back: order(cancels).
 *
 *	ends				cancels
 *	state = FREE			at_work + 1; a barrier on every CPU
 *	at_work is 0? give it back	state is FREE? no such thread
 *	else keep it			...
 *					at_work - 1; 0? give back what was kept
 */
#ifndef MARCEL_THREAD_CANCEL_H
#define MARCEL_THREAD_CANCEL_H

#include "../sched/timer.h"
#include "thread.h"

struct marcel_cancels {
	ATOMIC(uint32_t) any;     /* a: relaxed; somebody was ever cancelled */
	ATOMIC(uint32_t) at_work; /* a: order(cancels); so many cancel */
};

extern BASE_HIDDEN struct marcel_cancels marcel_cancels;

/* cancel.c: end the calling thread, if somebody wants that and it may. */
void marcel_cancel_act(void);

/*
 * Anyone: whether t is to end wherever that is safe, at a tick as well. True
 * only as long as t allows it, which t alone, or code on its LWP, knows.
 */
bool marcel_cancel_is_due(struct marcel_thread *t);

/* What was stored before is seen by who loads after, on any CPU. */
void marcel_cancel_barrier(void);

/* A cancellation point. */
static inline void marcel_cancel_point(void)
{
	if (unlikely(load_relaxed(&marcel_cancels.any) != 0))
		marcel_cancel_act();
}

/* order(cancel): what the thread waits for; NULL: nothing that is named. */
static inline void marcel_cancel_set_wait(struct marcel_thread *t,
					  struct marcel_timer *w)
{
	if (likely(t->stack != NULL))
		store_light(&t->stack->wait, w); /* order(cancel) */
	else
		store_light(&t->rest->wait, w); /* order(cancel) */
}

static inline bool marcel_cancel_is_wanted(struct marcel_thread *t)
{
	return load_light(&t->flags) & MARCEL_F_CANCEL; /* order(cancel) */
}

/* cancel.c: the rest of the two below, for a thread that is wanted. */
void marcel_cancel_look_slow(struct marcel_timer *t);
void marcel_cancel_hide_slow(void);

/*
 * The calling thread is about to wait as the timer says, which is armed if it
 * ever will be, and may be taken out from now on, unless it is sheltered. With
 * the guard held if there is one.
 */
static inline void marcel_cancel_show(struct marcel_timer *t)
{
	t->shown = !marcel_thread_has(t->thread, MARCEL_F_SHELTER);
	if (likely(t->shown))
		marcel_cancel_set_wait(t->thread, t);
}

/* Then, no guard held and before it parks: it may be wanted already. */
static inline void marcel_cancel_look(struct marcel_timer *t)
{
	if (unlikely(marcel_cancel_is_wanted(t->thread)) && t->shown)
		marcel_cancel_look_slow(t);
}

/* The wait has ended, or is granted: before what the timer points to goes. */
static inline void marcel_cancel_hide(struct marcel_timer *t)
{
	if (unlikely(!t->shown))
		return;
	marcel_cancel_set_wait(t->thread, NULL);
	if (unlikely(marcel_cancel_is_wanted(t->thread)))
		marcel_cancel_hide_slow();
}

/* Who joins t by its unmarked name sleeps, and is wanted: take it out. */
void marcel_cancel_join(struct marcel_thread *joiner, struct marcel_thread *t);

/*
 * The same for who publishes the joiner, inside the runtime, on the stack of
 * the thread that comes next: that is in no part of a join of its own, and who
 * waits until it is in none need not wait for us.
 */
void marcel_cancel_join_here(struct marcel_thread *joiner,
			     struct marcel_thread *t);

/*
 * A handler of signals begins and ends, perhaps in the middle of a wait that
 * it must return to. hold() gives what unhold() needs.
 */
uint32_t marcel_cancel_hold(struct marcel_thread *self);
void marcel_cancel_unhold(struct marcel_thread *self, uint32_t was);

/* The calling thread ends: nobody cancels it any more. */
void marcel_cancel_ends(struct marcel_thread *self);

/* cancel.c: the rest of the next, when somebody cancels. */
bool marcel_cancel_keeps_slow(struct marcel_thread *t);

/*
 * t has ended, and nobody will ask for it: FREE. True: its descriptor is given
 * back later, else the caller does.
 */
static inline bool marcel_cancel_keeps(struct marcel_thread *t)
{
	store_light(&t->state, MARCEL_T_FREE); /* order(cancels) */
	/* order(cancels): who cancels looks at the state */
	if (likely(load_light(&marcel_cancels.at_work) == 0))
		return false;
	return marcel_cancel_keeps_slow(t);
}

/* In the child, where nobody else looks. */
void marcel_cancel_forked(void);

#endif
