/*
 * nmad/core/calls.c: what is due is called, once, by one at a time, who sees
 * what was done before; and when the calls of a session have been ended it may
 * go away.
 *
 * covers: due, mpsc
 */
#include "explore.h"

#include <pthread.h>
#include <sched.h>

/* All threads are one of the kernel's. */
#define pthread_self() ((pthread_t)(explore_self() + 1))

#include "../../nmad/core/calls.c"

void base_spin_turn(unsigned *turn)
{
	explore_relax();
}

enum { CALLS = 3 };

static struct nm_core core;
static struct nm_session session;
static struct nm_call calls[CALLS];
static int brought[CALLS], ncalled; /* plain */
static struct note record;

void *nm_mem_get(struct nm_mem *m, unsigned class)
{
	return &record;
}

unsigned nm_mem_class(size_t bytes)
{
	return 0;
}

void piom_ltask_kick(struct piom_ltask *t)
{
	explore_fail("there were not so many calls");
}

/* It is the user's now. */
static void make_one(struct nm_core *c, struct nm_call *call)
{
	explore_check(brought[call - calls] == 1);
	ncalled++;
	explore_gone(call, sizeof(*call));
}

static void set_up(void)
{
	nm_calls_init(&core.calls);
	for (int i = 0; i < CALLS; i++)
		calls[i].make = make_one;
	explore_name(&core.calls.held, 4, "held");
	explore_name(&core.calls.due, 8, "due");
	explore_name(&core.calls.holder, 8, "holder");
	explore_name(&core.calls.left, 4, "left");
	explore_name(&core.calls.told, 8, "told");
	explore_name(&core.calls.taken, sizeof(core.calls.taken), "taken");
	explore_name(calls, sizeof(calls), "calls");
	explore_name(&session, sizeof(session), "session");
	explore_name(&record, sizeof(record), "note");
}

static void bring(void *arg)
{
	int i = (int)(intptr_t)arg;

	brought[i] = 1;
	nm_calls_leave(&core, &calls[i]);
	nm_calls_look(&core);
}

/* Nothing is left, and nobody is inside. */
static void nothing_left(void)
{
	explore_check(base_mpsc_is_empty(&core.calls.due));
	explore_check(core.calls.taken.first == NULL);
	explore_check(load_relaxed(&core.calls.held) == 0);
	explore_check(!nm_calls_are_due(&core));
}

static void two_called(void)
{
	nothing_left();
	explore_check(ncalled == 2);
}

EXPLORE(who_finds_somebody_calling_may_go_away)
{
	set_up();
	explore_spawn("one", bring, (void *)0);
	explore_spawn("two", bring, (void *)1);
	explore_finish(two_called);
}

/* What one call brings is called, too, by whoever it may be. */
static void make_another(struct nm_core *c, struct nm_call *call)
{
	make_one(c, call);
	bring((void *)1);
}

static void three_called(void)
{
	nothing_left();
	explore_check(ncalled == 3);
}

EXPLORE(a_call_may_bring_another)
{
	set_up();
	calls[0].make = make_another;
	explore_spawn("one", bring, (void *)0);
	explore_spawn("two", bring, (void *)2);
	explore_finish(three_called);
}

/* --- the end of a session's calls --- */

static void tell_of(struct nm_session *s, const struct nm_sr_status *what,
		    void *arg)
{
	s->id++;
}

/* It was left under the core's lock, before the monitor ended there. */
static void note_one(void)
{
	static struct nm_msg msg;

	session.monitor = tell_of;
	nm_calls_note(&core, &session, &msg);
}

static void look(void *arg)
{
	nm_calls_look(&core);
}

static void settle(void *arg)
{
	nm_calls_settle(&core, &session);
	explore_gone(&session, sizeof(session));
}

EXPLORE(a_session_whose_calls_have_ended_may_go_away)
{
	set_up();
	note_one();
	explore_spawn("looks", look, NULL);
	explore_spawn("ends", settle, NULL);
	explore_finish(nothing_left);
}
