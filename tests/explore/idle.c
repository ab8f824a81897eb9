/*
 * A VP that goes to sleep against who pushes work, with the scheduler's own
 * queues, search and sleep: wherever the work comes from and however the steps
 * fall, a VP that may run it does not sleep over it.
 *
 * covers: idle, sleeper, mpsc, guest
 */
#include "machine.h"

static void one(void *arg)
{
	take_one(arg);
}

static void two(void *arg)
{
	take_one(arg);
	take_one(arg);
}

/* It sleeps already. */
static void wakes(void *arg)
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

/* A busy VP that makes threads. */
static void push_one(void *arg)
{
	be(&vps[0]);
	marcel_runq_push(marcel_vp_self(), &threads[0]);
}

static void push_two(void *arg)
{
	push_one(arg);
	marcel_runq_push(marcel_vp_self(), &threads[1]);
}

static void push_foreign(void *arg)
{
	marcel_runq_push(marcel_vp_self(), &threads[1]);
}

static void push_bound(void *arg)
{
	threads[0].home = 1;
	be(&vps[0]);
	marcel_runq_push(marcel_vp_self(), &threads[0]);
}

/* Of another band: on the list of the VPs' level, or of the VP's leaf. */
static void push_band(uint32_t band, int home)
{
	store_relaxed(&rests[0].band, band);
	store_relaxed(&threads[0].flags, MARCEL_F_BAND);
	threads[0].home = (int16_t)home;
	be(&vps[0]);
	marcel_runq_push(marcel_vp_self(), &threads[0]);
}

static void push_idle(void *arg)
{
	push_band(MARCEL_BAND_IDLE, -1);
}

static void push_idle_bound(void *arg)
{
	push_band(MARCEL_BAND_IDLE, 1);
}

static void push_urgent_bound(void *arg)
{
	push_band(MARCEL_BAND_REALTIME, 1);
}

static void stop(void *arg)
{
	marcel_vp_stop(&vps[1]);
}

static void one_ran(void)
{
	explore_check(ran[0] + ran[1] + ran[2] == 1);
}

static void two_ran(void)
{
	explore_check(ran[0] == 1 && ran[1] == 1);
	explore_check(load_relaxed(&marcel_sched.idle.word) == 0);
}

EXPLORE(a_push_is_seen_by_who_falls_asleep)
{
	set_up(2);
	explore_spawn("pusher", push_one, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(two_pushes_are_two_threads_to_run)
{
	set_up(2);
	explore_spawn("pusher", push_two, NULL);
	explore_spawn("vp 1", two, &vps[1]);
	explore_finish(two_ran);
}

EXPLORE(a_foreign_push_is_seen)
{
	set_up(2);
	explore_spawn("foreign", push_foreign, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(a_push_to_a_bound_vp_is_seen)
{
	set_up(2);
	explore_spawn("pusher", push_bound, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(an_idle_thread_is_not_slept_over)
{
	set_up(2);
	explore_spawn("pusher", push_idle, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(an_idle_thread_of_one_vp_is_not_slept_over)
{
	set_up(2);
	explore_spawn("pusher", push_idle_bound, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(a_real_time_thread_of_one_vp_is_not_slept_over)
{
	set_up(2);
	explore_spawn("pusher", push_urgent_bound, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(the_end_is_seen)
{
	set_up(2);
	explore_spawn("stopper", stop, NULL);
	explore_spawn("vp 1", one, &vps[1]);
}

static void arm(void *arg)
{
	arm_from_outside(&vps[1]);
}

EXPLORE(a_timer_that_somebody_else_arms_is_seen)
{
	set_up(2);
	explore_spawn("waiter", arm, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

/* What a foreign thread pushed was the last to run. */
static void run_and_end(void *arg)
{
	take_one(&vps[1]);
	marcel_runq_wait_guests(NULL);
	explore_gone(vps, sizeof(vps));
	explore_gone(&machine, sizeof(machine));
}

static void push_foreign_bound(void *arg)
{
	threads[1].home = 1;
	marcel_runq_push(NULL, &threads[1]);
}

EXPLORE(a_foreign_pusher_is_gone_before_the_vps_are)
{
	set_up(2);
	explore_spawn("foreign", push_foreign, NULL);
	explore_spawn("vp 1", run_and_end, NULL);
}

EXPLORE(a_foreign_pusher_to_a_bound_vp_is_gone_before_it_is)
{
	set_up(2);
	explore_spawn("foreign", push_foreign_bound, NULL);
	explore_spawn("vp 1", run_and_end, NULL);
}

/* VP 1 is the only searcher, VP 2 sleeps. */
static void finds(void *arg)
{
	be(&vps[1]);
	found(&vps[1]);
}

static void search_and_sleep(void)
{
	set_up(3);
	store_relaxed(&marcel_sched.idle.word,
		      MARCEL_IDLE_SEARCHER + MARCEL_IDLE_SLEEPER);
	store_relaxed(&vps[2].sleeper.asleep, MARCEL_ASLEEP);
	explore_spawn("vp 1", finds, NULL);
	explore_spawn("vp 2", wakes, &vps[2]);
	explore_finish(one_ran);
}

EXPLORE(the_last_searcher_hands_its_duty_on)
{
	search_and_sleep();
	explore_spawn("pusher", push_one, NULL);
}

EXPLORE(the_last_searcher_sees_the_machine_queue)
{
	search_and_sleep();
	explore_spawn("foreign", push_foreign, NULL);
}

EXPLORE(two_sleepers_get_two_threads)
{
	set_up(3);
	store_relaxed(&marcel_sched.idle.word, 2 * MARCEL_IDLE_SLEEPER);
	store_relaxed(&vps[1].sleeper.asleep, MARCEL_ASLEEP);
	store_relaxed(&vps[2].sleeper.asleep, MARCEL_ASLEEP);
	explore_spawn("vp 1", wakes, &vps[1]);
	explore_spawn("vp 2", wakes, &vps[2]);
	explore_spawn("pusher", push_two, NULL);
	explore_finish(two_ran);
}
