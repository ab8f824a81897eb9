/*
 * marcel/sched/block.c and lwp.c: a VP whose driver is in a blocking section is
 * driven by one LWP at a time, and work that comes meanwhile is run once, by
 * whoever has the VP; a thread that lost its VP gets one again. One VP, LWP 0
 * in a section, LWP 1 its spare, and somebody who pushes.
 *
 * What a VP's driver alone may touch is plain, so that two drivers are a race.
 *
 * covers: section, give, idle
 */
#include "machine.h"

#include "../../marcel/sched/block.c"

static int back;

/* A driver that looks once: what comes later finds the VP awake. */
static void look(struct marcel_vp *vp)
{
	struct marcel_thread *t = marcel_runq_pick(vp);

	vp->handovers++;
	if (t != NULL)
		ran[t - threads]++;
}

static void spare(void *arg)
{
	marcel_tls.lwp = &lwps[1];
	look(marcel_lwp_wait(&lwps[1]));
}

static void comes_back(void *arg)
{
	be(&vps[0]);
	vps[0].handovers++;
	begin(&vps[0]);
	if (marcel_lwp_end_section(&lwps[0]))
		look(&vps[0]);
}

/* Its call never returns. */
static void stays_away(void *arg)
{
	be(&vps[0]);
	vps[0].handovers++;
	begin(&vps[0]);
}

static void push_here(void *arg)
{
	threads[0].home = 0;
	marcel_runq_push(NULL, &threads[0]);
}

/* It ran, or somebody drives the VP and is awake. */
static void one_ran(void)
{
	explore_check(ran[0] == 1 ||
		      (load_relaxed(&vps[0].sleeper.asleep) == MARCEL_AWAKE &&
		       !(load_relaxed(&vps[0].owner) & MARCEL_SECTION)));
	explore_check(ran[0] < 2);
}

static void set_up_section(void)
{
	set_up(1);
	init_lwp(&lwps[1], &vps[0]);
	lwps[1].errno_addr = marcel_os_errno();
	lwps[1].exceptions = &no_exceptions;
	lwps[1].is_low = true;
	store_relaxed(&vps[0].stand_in, &lwps[1]);
	explore_name(lwps, sizeof(lwps), "lwps");
	explore_name(&vps[0].owner, sizeof(vps[0].owner), "owner");
}

static void spawn(void (*caller)(void *), void (*pusher)(void *))
{
	set_up_section();
	explore_spawn("caller", caller, NULL);
	explore_may_sleep(explore_spawn("spare", spare, NULL));
	explore_spawn("pusher", pusher, NULL);
	explore_finish(one_ran);
}

EXPLORE(work_that_comes_in_a_section_does_not_wait_for_its_end)
{
	spawn(stays_away, push_here);
}

static void arm(void *arg)
{
	arm_from_outside(&vps[0]);
}

/* As search_on(). */
static void spare_with_timers(void *arg)
{
	struct marcel_vp *vp;

	marcel_tls.lwp = &lwps[1];
	vp = marcel_lwp_wait(&lwps[1]);
	marcel_timers_look(&vp->timers);
	look(vp);
}

EXPLORE(a_timer_that_comes_in_a_section_expires)
{
	set_up_section();
	explore_spawn("caller", stays_away, NULL);
	explore_spawn("spare", spare_with_timers, NULL);
	explore_spawn("waiter", arm, NULL);
	explore_finish(one_ran);
}

static void push_anywhere(void *arg)
{
	marcel_runq_push(NULL, &threads[0]);
}

EXPLORE(work_for_any_vp_does_not_wait_for_its_end)
{
	spawn(stays_away, push_anywhere);
}

EXPLORE(work_that_comes_in_a_section_is_run_once)
{
	spawn(comes_back, push_here);
}

/* Two sections: who takes the second may have seen the first. */
static void goes_twice(void *arg)
{
	be(&vps[0]);
	vps[0].handovers++;
	begin(&vps[0]);
	if (!marcel_lwp_end_section(&lwps[0]))
		return;
	vps[0].handovers++;
	begin(&vps[0]);
}

EXPLORE(who_takes_it_sees_it_as_it_was_left_last)
{
	set_up_section();
	threads[0].home = 0;
	base_list_push_back(&vps[0].bound, &threads[0].link);
	explore_spawn("caller", goes_twice, NULL);
	explore_may_sleep(explore_spawn("spare", spare, NULL));
	explore_finish(one_ran);
}

/* As marcel_block_begin(), once it has entered. */
static void begins_and_leaves(void *arg)
{
	stays_away(arg);
	marcel_lwp_leaves(&lwps[0], 0);
}

static void takes_vp(void *arg)
{
	take_from(&vps[0], &lwps[0]);
}

/* LWP 2, if the monitor gives it the VP. */
static void is_given(void *arg)
{
	struct marcel_vp *vp;

	marcel_tls.lwp = &lwps[2];
	vp = marcel_lwp_wait(&lwps[2]);
	vp->handovers++;
}

EXPLORE(the_monitor_takes_no_vp_that_a_spare_has_taken)
{
	set_up_section();
	store_relaxed(&lwps[0].inside, 1);
	threads[0].home = 0;
	base_list_push_back(&vps[0].bound, &threads[0].link);
	init_lwp(&lwps[2], NULL);
	lwps[2].errno_addr = marcel_os_errno();
	marcel_lwp_put(&lwps[2]);
	explore_spawn("caller", begins_and_leaves, NULL);
	explore_may_sleep(explore_spawn("spare", spare, NULL));
	explore_spawn("monitor", takes_vp, NULL);
	explore_may_sleep(explore_spawn("lwp 2", is_given, NULL));
}

/* --- regain --- */

/* As marcel_vp_idle() does with a thread that an LWP keeps. */
static void spare_gives(void *arg)
{
	struct marcel_lwp *l = &lwps[1];
	struct marcel_vp *vp;
	struct marcel_thread *t;

	marcel_tls.lwp = l;
	while ((vp = marcel_lwp_wait(l)) != NULL) {
		t = next_thread(vp);
		if (marcel_vp_enters(vp, t)) {
			ran[t - threads]++;
			t = next_thread(vp);
			explore_check(!marcel_vp_enters(vp, t));
		}
		marcel_lwp_give(vp);
	}
}

static void regains(void *arg)
{
	struct marcel_lwp *l = &lwps[0];

	be(&vps[0]);
	store_relaxed(&l->self, &threads[1]);
	store_relaxed(&threads[1].state, MARCEL_T_RUNNING);
	begin(&vps[0]);
	explore_check(marcel_enter() == &vps[0]);
	explore_check(marcel_vp_lwp(&vps[0]) == l);
	back++;
	if (ran[0] == 0) /* the spare came too late */
		ran[marcel_runq_pick(&vps[0]) - threads]++;
}

static void both_went_on(void)
{
	explore_check(ran[0] == 1 && back == 1);
}

EXPLORE(who_lost_its_vp_gets_one_again)
{
	set_up_section();
	threads[0].home = 0;
	base_list_push_back(&vps[0].bound, &threads[0].link);
	explore_spawn("caller", regains, NULL);
	explore_may_sleep(explore_spawn("spare", spare_gives, NULL));
	explore_finish(both_went_on);
}
