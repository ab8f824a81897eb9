/*
 * marcel/sched/slot.h, and who looks at slots: what is in a slot is taken once,
 * by its owner or a thief; and if the owner never comes back to it, a VP that
 * has nothing else to do runs it, however long that one has slept.
 *
 * covers: slot, idle
 */
#include "machine.h"

static struct marcel_slot slot;
static int item[4], taken[4];

static void got(uintptr_t x)
{
	if (x == 0)
		return;
	explore_check(*(int *)x == 1);
	taken[(int *)x - item]++;
}

static uintptr_t fill(int i)
{
	item[i] = 1;
	return (uintptr_t)&item[i];
}

static void puts_and_takes(void *arg)
{
	marcel_slot_put(&slot, fill(0));
	got(marcel_slot_take(&slot));
	marcel_slot_put(&slot, fill(1));
	got(marcel_slot_take(&slot));
}

static void keeps_for_itself(void *arg)
{
	marcel_slot_put(&slot, fill(0) | MARCEL_SLOT_STAYS);
	got(marcel_slot_take(&slot) & ~MARCEL_SLOT_STAYS);
	marcel_slot_put(&slot, fill(1));
	got(marcel_slot_take(&slot));
}

static void robs(void *arg)
{
	got(marcel_slot_rob(&slot));
}

static void robs_twice(void *arg)
{
	got(marcel_slot_rob(&slot));
	got(marcel_slot_rob(&slot));
}

static void each_was_taken(void)
{
	got(marcel_slot_take(&slot));
	explore_check(taken[0] == 1 && taken[1] == 1);
}

static void spawn(void (*owner)(void *), void (*thief)(void *))
{
	explore_name(&slot.entry, sizeof(slot.entry), "entry");
	explore_name(&slot.thief, sizeof(slot.thief), "thief");
	explore_spawn("owner", owner, NULL);
	explore_spawn("thief", thief, NULL);
	explore_finish(each_was_taken);
}

EXPLORE(owner_and_thief_take_an_entry_once)
{
	spawn(puts_and_takes, robs_twice);
}

EXPLORE(what_is_for_the_owner_is_not_stolen)
{
	spawn(keeps_for_itself, robs);
}

EXPLORE(two_thieves_take_an_entry_once)
{
	spawn(puts_and_takes, robs);
	explore_spawn("thief 2", robs, NULL);
}

/* --- who looks --- */

static void one(void *arg)
{
	take_one(arg);
}

/* A thread that was woken; the one that runs computes on for ever. */
static void wakes_one(void *arg)
{
	be(&vps[0]);
	store_relaxed(&threads[0].state, MARCEL_T_RUNNING);
	marcel_runq_push(&vps[0], &threads[0]);
}

static void one_ran(void)
{
	explore_check(ran[0] == 1 && ran[1] == 0);
}

EXPLORE(a_woken_thread_does_not_wait_for_its_waker)
{
	set_up(2);
	explore_spawn("waker", wakes_one, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

/* It sleeps already. */
static void sleeps(void *arg)
{
	struct marcel_vp *vp = arg;
	struct marcel_thread *t;

	be(vp);
	if (!marcel_idle_sleep(&vp->sleeper))
		marcel_idle_search(&marcel_sched.idle);
	t = search_on(vp);
	if (t != NULL)
		ran[t - threads]++;
}

EXPLORE(a_sleeper_is_woken_for_a_slot)
{
	set_up(2);
	store_relaxed(&marcel_sched.idle.word, MARCEL_IDLE_SLEEPER);
	store_relaxed(&vps[1].sleeper.asleep, MARCEL_ASLEEP);
	explore_spawn("waker", wakes_one, NULL);
	explore_spawn("vp 1", sleeps, &vps[1]);
	explore_finish(one_ran);
}

/* VP 1 searches and has found thread 1; VP 2 sleeps. */
static void finds(void *arg)
{
	be(&vps[1]);
	found(&vps[1]);
}

/* VP 1 watches, and may be woken for work of its own. */
static void watches(void *arg)
{
	be(&vps[1]);
	if (marcel_idle_undoze(&marcel_sched.idle, &vps[1].sleeper,
			       MARCEL_WATCHING))
		found(&vps[1]);
	else
		called_away(&vps[1]);
}

static void wakes_watcher(void *arg)
{
	marcel_vp_wake(&vps[1], true);
}

static void with_sleeper(uint64_t word)
{
	set_up(3);
	store_relaxed(&marcel_sched.idle.word, word + MARCEL_IDLE_SLEEPER);
	store_relaxed(&vps[2].sleeper.asleep, MARCEL_ASLEEP);
	explore_spawn("waker", wakes_one, NULL);
	explore_spawn("vp 2", sleeps, &vps[2]);
	explore_finish(one_ran);
}

EXPLORE(the_last_searcher_leaves_no_slot_behind)
{
	with_sleeper(MARCEL_IDLE_SEARCHER);
	explore_spawn("vp 1", finds, NULL);
}

EXPLORE(a_watcher_that_is_called_away_leaves_no_slot_behind)
{
	with_sleeper(MARCEL_IDLE_WATCHER);
	store_relaxed(&vps[1].sleeper.asleep, MARCEL_WATCHING);
	explore_spawn("vp 1", watches, NULL);
	explore_spawn("caller", wakes_watcher, NULL);
}
