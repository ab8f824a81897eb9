/*
 * marcel/sched/monitor.c: a VP is taken from an LWP only while that is outside
 * the runtime, and who then comes in waits for one; the monitor does not sleep
 * beside a VP that is awake, nor over a real-time thread.
 *
 * covers: revoke, give, monitor, section, hurry
 */
#include "machine.h"

static int back;

/* A thread on LWP 0 calls into the runtime. */
static void enters(void *arg)
{
	struct marcel_vp *vp;

	be(&vps[0]);
	vp = marcel_enter();
	explore_check(vp == &vps[0]);
	vp->handovers++;
	marcel_leave(vp);
	back++;
}

static void takes_vp(void *arg)
{
	take_from(&vps[0], &lwps[0]);
}

/* LWP 1, if it is given the VP, gives it back to whom it meets. */
static void gives_back(void *arg)
{
	struct marcel_lwp *l = &lwps[1];
	struct marcel_vp *vp;

	marcel_tls.lwp = l;
	vp = marcel_lwp_wait(l);
	vp->handovers++;
	vp->fair_at = MARCEL_PICKS_FAIR; /* a look at all queues takes long */
	explore_check(!marcel_vp_enters(vp, next_thread(vp)));
	marcel_lwp_give(vp);
}

static void it_came_back(void)
{
	explore_check(back == 1);
}

EXPLORE(a_vp_is_taken_from_outside_only)
{
	set_up(1);
	store_relaxed(&lwps[0].self, &threads[1]);
	store_relaxed(&threads[1].state, MARCEL_T_RUNNING);
	init_lwp(&lwps[1], NULL);
	lwps[1].errno_addr = marcel_os_errno();
	marcel_lwp_put(&lwps[1]);
	explore_name(lwps, sizeof(lwps), "lwps");
	explore_name(&vps[0].owner, sizeof(vps[0].owner), "owner");
	explore_spawn("thread", enters, NULL);
	explore_spawn("monitor", takes_vp, NULL);
	explore_may_sleep(explore_spawn("lwp 1", gives_back, NULL));
	explore_finish(it_came_back);
}

static void leaves(void *arg)
{
	be(&vps[0]);
	vps[0].handovers++;
	marcel_lwp_leaves(&lwps[0], 0);
}

static void is_given(void *arg)
{
	marcel_tls.lwp = &lwps[1];
	marcel_lwp_wait(&lwps[1])->handovers++;
}

/* Of an older hint, too, which says nothing. */
EXPLORE(who_gets_a_vp_that_was_taken_sees_it_as_it_was_left)
{
	set_up(1);
	store_relaxed(&lwps[0].inside, 1);
	init_lwp(&lwps[1], &vps[0]);
	lwps[1].errno_addr = marcel_os_errno();
	store_relaxed(&lwps[1].told, 1);
	marcel_lwp_put(&lwps[1]);
	explore_spawn("thread", leaves, NULL);
	explore_spawn("monitor", takes_vp, NULL);
	explore_may_sleep(explore_spawn("lwp 1", is_given, NULL));
}

static void is_given_back(void *arg)
{
	struct marcel_lwp *l = &lwps[1];

	marcel_tls.lwp = l;
	store_relaxed(&l->inside, 1);
	marcel_lwp_wait(l)->handovers++;
}

static void takes_from_lwp_1(void *arg)
{
	take_from(&vps[0], &lwps[1]);
}

/* It was handed the VP, and sleeps still. */
EXPLORE(who_looks_at_its_vp_while_the_monitor_tries_gets_it)
{
	set_up(1);
	init_lwp(&lwps[1], &vps[0]);
	lwps[1].errno_addr = marcel_os_errno();
	store_relaxed(&lwps[1].inside, 1);
	store_relaxed(&lwps[1].told, 1);
	store_relaxed(&vps[0].owner, (uintptr_t)&lwps[1]);
	explore_spawn("lwp 1", is_given_back, NULL);
	explore_spawn("monitor", takes_from_lwp_1, NULL);
}

/* --- no LWP is left --- */

/* A thread that LWP 1 keeps; it is in VP 0's queues. */
static void is_kept_by_lwp_1(struct marcel_thread *t)
{
	init_lwp(&lwps[1], NULL);
	lwps[1].errno_addr = marcel_os_errno();
	store_relaxed(&lwps[1].self, t);
	store_relaxed(&lwps[1].inside, 1);
	t->rest->lwp = &lwps[1];
	t->home = 0;
	fetch_or_relaxed(&t->flags, MARCEL_F_KEPT);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	marcel_runq_push_to(&vps[0], t);
}

/* Of the two, who has the VP keeps it. */
EXPLORE(a_vp_goes_to_who_keeps_a_thread_if_no_lwp_is_left)
{
	set_up(1);
	marcel_lwps.left = 0;
	store_relaxed(&lwps[0].self, &threads[1]);
	store_relaxed(&threads[1].state, MARCEL_T_RUNNING);
	is_kept_by_lwp_1(&threads[2]);
	explore_name(lwps, sizeof(lwps), "lwps");
	explore_name(&vps[0].owner, sizeof(vps[0].owner), "owner");
	explore_may_sleep(explore_spawn("thread", enters, NULL));
	explore_spawn("monitor", takes_vp, NULL);
	explore_may_sleep(explore_spawn("lwp 1", is_given_back, NULL));
}

/* Then it stays as it is, and is seen as the monitor left it. */
EXPLORE(a_vp_stays_if_nobody_keeps_a_thread)
{
	set_up(1);
	marcel_lwps.left = 0;
	store_relaxed(&lwps[0].self, &threads[1]);
	store_relaxed(&threads[1].state, MARCEL_T_RUNNING);
	explore_spawn("thread", enters, NULL);
	explore_spawn("monitor", takes_vp, NULL);
	explore_finish(it_came_back);
}

/* --- an LWP that drove another VP before --- */

static void hands(void *arg)
{
	be(&vps[1]);
	vps[1].handovers++;
	marcel_lwp_hand(&vps[1], &lwps[2]);
}

static void is_handed(void *arg)
{
	marcel_tls.lwp = &lwps[2];
	explore_check(marcel_lwp_wait(&lwps[2]) == &vps[1]);
	vps[1].handovers++;
}

/* Of an older hint, too, which says nothing. */
EXPLORE(who_was_told_before_waits_for_the_vp)
{
	set_up(2);
	init_lwp(&lwps[2], &vps[0]);
	lwps[2].errno_addr = marcel_os_errno();
	store_relaxed(&lwps[2].told, 1);
	explore_spawn("giver", hands, NULL);
	explore_spawn("lwp 2", is_handed, NULL);
}

EXPLORE(who_is_told_looks_at_the_vp_that_it_was_given)
{
	set_up(2);
	init_lwp(&lwps[2], &vps[0]);
	lwps[2].errno_addr = marcel_os_errno();
	explore_spawn("giver", hands, NULL);
	explore_spawn("lwp 2", is_handed, NULL);
}

/* --- the monitor's sleep --- */

static void wakes_up(void *arg)
{
	marcel_monitor_vp_wakes(&vps[0]);
}

/* A thread waits for LWP 0, and the VP has nothing else. */
static void leaves_one_stuck(void *arg)
{
	store_relaxed(&vps[0].nstuck, 1);
	marcel_monitor_vp_sleeps(&vps[0]);
}

static void falls_asleep(void *arg)
{
	sleep_with_vps();
}

EXPLORE(the_monitor_does_not_sleep_beside_a_vp_that_is_up)
{
	set_up(1);
	explore_name(&marcel_monitor, sizeof(marcel_monitor), "monitor");
	explore_name(&vps[0].is_watched, 4, "watched");
	explore_spawn("vp", wakes_up, NULL);
	explore_spawn("monitor", falls_asleep, NULL);
}

EXPLORE(the_monitor_does_not_sleep_while_a_thread_waits_for_lwp_0)
{
	set_up(1);
	explore_name(&marcel_monitor, sizeof(marcel_monitor), "monitor");
	explore_name(&vps[0].is_watched, 4, "watched");
	store_relaxed(&vps[0].is_watched, 1);
	explore_spawn("vp", leaves_one_stuck, NULL);
	explore_spawn("monitor", falls_asleep, NULL);
}

/* --- real-time threads where others compute --- */

/* A foreign thread wakes one that any VP may run. */
static void pushes_urgent(void *arg)
{
	struct marcel_thread *t = arg;

	store_relaxed(&t->rest->band, MARCEL_BAND_REALTIME);
	store_relaxed(&t->flags, MARCEL_F_BAND);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	marcel_runq_push(NULL, t);
}

/* The monitor, until it has seen `n` of them ready: it looks when told only. */
static void awaits(int n)
{
	uint64_t left = 0;

	while (left < (uint64_t)n) {
		os_futex_wait(&marcel_monitor.hurry, 0);
		if (!sleep_unless_hurried(0))
			continue;
		left = load_relaxed(&marcel_sched.before_switch) /
		       MARCEL_BEFORE_URGENT;
		explore_check(left != 0 && awaits_urgent(&vps[0]));
	}
}

static void awaits_one(void *arg)
{
	awaits(1);
}

static void awaits_two(void *arg)
{
	awaits(2);
}

static void computes(void)
{
	set_up(1);
	marcel_sched.slice_ns = 1;
	store_relaxed(&lwps[0].self, &threads[2]);
	store_relaxed(&threads[2].state, MARCEL_T_RUNNING);
	explore_name(&marcel_monitor, sizeof(marcel_monitor), "monitor");
	explore_name(&marcel_sched.before_switch, 8, "before switch");
}

EXPLORE(who_is_urgent_is_seen_at_once)
{
	computes();
	explore_spawn("foreign", pushes_urgent, &threads[0]);
	explore_spawn("monitor", awaits_one, NULL);
}

EXPLORE(two_who_are_urgent_are_seen)
{
	computes();
	explore_spawn("foreign", pushes_urgent, &threads[0]);
	explore_spawn("other", pushes_urgent, &threads[1]);
	explore_spawn("monitor", awaits_two, NULL);
}

/* --- a thread that was interrupted is let loose --- */

static bool went_on;

/* LWP 0, in the tick's handler of thread 0. */
static void was_interrupted(void *arg)
{
	struct marcel_lwp *l = &marcel_lwps.first;
	struct marcel_vp *vp;

	marcel_tls.lwp = l;
	vp = marcel_lwp_wait(l);
	if (!is_loose(l) && vp->handed != NULL) {
		/* Another is to run here: thread 0 may not be left. */
		explore_check(marcel_levelq_fetch(&machine, &threads[0], -1));
		marcel_runq_push_to(vp, vp->handed);
		vp->handed = NULL;
	}
	explore_check(vp == NULL || vp->handed == NULL);
	went_on = true;
}

static void lets_loose(void *arg)
{
	let_loose(&vps[0]);
}

/* LWP 1 gives VP 0 to LWP 0, for a thread that it has picked. */
static void gives_for(struct marcel_thread *t)
{
	struct marcel_vp *vp = &vps[0];

	marcel_tls.lwp = &lwps[1];
	if (t == NULL)
		return;
	explore_check(!marcel_vp_enters_slow(vp, t));
	if (vp->give != NULL)
		marcel_lwp_hand(vp, marcel_lwp_take_give(vp));
}

static void gives_for_it(void *arg)
{
	gives_for(marcel_levelq_take(&machine, MARCEL_BAND_NORMAL, -1));
}

static void gives_for_the_first(void *arg)
{
	gives_for(&threads[0]);
}

static void gives_for_another(void *arg)
{
	gives_for(&threads[1]);
}

static void it_is_somewhere_once(void)
{
	bool queued = marcel_levelq_fetch(&machine, &threads[0], -1);

	explore_check(went_on + queued == 1);
	explore_check(vps[0].handed == NULL);
}

static void one_is_let_loose(void (*gives)(void *arg))
{
	struct marcel_lwp *first = &marcel_lwps.first;
	struct marcel_thread *t = &threads[0];

	set_up(1);
	init_lwp(first, &vps[0]);
	first->errno_addr = marcel_os_errno();
	store_relaxed(&first->inside, 1);
	store_relaxed(&first->self, t);
	init_lwp(&lwps[1], &vps[0]);
	lwps[1].errno_addr = marcel_os_errno();
	store_relaxed(&vps[0].owner, (uintptr_t)&lwps[1]);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	t->rest->interrupted = t;
	keep(first, t);
	store_relaxed(&threads[1].state, MARCEL_T_RUNNING);
	threads[1].rest->lwp = first;
	fetch_or_relaxed(&threads[1].flags, MARCEL_F_KEPT);
	explore_may_sleep(explore_spawn("lwp 0", was_interrupted, NULL));
	explore_spawn("monitor", lets_loose, NULL);
	explore_spawn("lwp 1", gives, NULL);
	explore_finish(it_is_somewhere_once);
}

EXPLORE(who_is_let_loose_is_not_picked)
{
	one_is_let_loose(gives_for_it);
}

EXPLORE(who_is_let_loose_is_not_left_for_another)
{
	one_is_let_loose(gives_for_another);
}

EXPLORE(who_is_let_loose_is_not_left_for_one_that_was_stuck)
{
	one_is_let_loose(gives_for_the_first);
	/* It is picked, and thread 1 has waited for LWP 0. */
	explore_check(marcel_levelq_fetch(&machine, &threads[0], -1));
	base_list_push_back(&vps[0].stuck, &threads[1].link);
	store_relaxed(&vps[0].nstuck, 1);
}
