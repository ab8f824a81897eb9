/*
 * marcel/sched/tasklet.c: a tasklet sees what was done before it was scheduled,
 * runs on one VP at a time, as do all of its type, not while it is disabled,
 * and is not touched after its kill; nobody sleeps over it.
 *
 * covers: tasklet, type, calls, idle
 */
#include "machine.h"

enum { TASKLETS = 2 };

static marcel_tasklet_t tasklets[TASKLETS];
static marcel_tasklet_type_t type;
static int plain, runs[TASKLETS];
static ATOMIC(int) said;
static int saw;
static int numbers[VPS]; /* errno */

/* Plain accesses: two at once, or without order, are a race. */
static void count(void *arg)
{
	plain++;
	++*(int *)arg;
}

static void listen_to(void *arg)
{
	saw = load_relaxed(&said);
	++*(int *)arg;
}

static void begin_with(int nvp, void (*fn)(void *))
{
	set_up(nvp);
	for (int i = 0; i < nvp; i++)
		vps[i].errno_addr = &numbers[i];
	explore_name(&type, sizeof(type), "type");
	explore_name(&said, sizeof(said), "said");
	for (int i = 0; i < TASKLETS; i++) {
		explore_name(&tasklets[i], sizeof(tasklets[i]), "tasklet %d",
			     i);
		marcel_tasklet_init(&tasklets[i], fn, &runs[i]);
	}
}

/* A VP that changes threads. */
static void pass(struct marcel_vp *vp)
{
	if (marcel_tasklets_are_pending(vp))
		marcel_tasklets_run(vp);
}

static void run_on(void *arg)
{
	be(arg);
	pass(arg);
}

static void run_on_twice(void *arg)
{
	be(arg);
	pass(arg);
	pass(arg);
}

/* What the VPs would do next. */
static void run_the_rest(void)
{
	for (int n = 0; n < TASKLETS; n++)
		for (int i = 0; i < marcel_sched.nvp; i++)
			run_on(&vps[i]);
}

/* --- schedule --- */

static void schedule_0(void *arg)
{
	explore_check(marcel_tasklet_schedule(&tasklets[0]) == 0);
}

static void say_and_schedule(void *arg)
{
	store_relaxed(&said, 1);
	explore_check(marcel_tasklet_schedule(&tasklets[0]) == 0);
}

static void it_was_heard(void)
{
	run_the_rest();
	explore_check(runs[0] >= 1 && runs[0] <= 2 && saw == 1);
}

EXPLORE(what_was_done_before_a_schedule_is_seen)
{
	begin_with(1, listen_to);
	explore_spawn("scheduler", schedule_0, NULL);
	explore_spawn("sayer", say_and_schedule, NULL);
	explore_spawn("vp 0", run_on_twice, &vps[0]);
	explore_finish(it_was_heard);
}

static void schedule_and_run(void *arg)
{
	be(arg);
	explore_check(marcel_tasklet_schedule(&tasklets[0]) == 0);
	pass(arg);
}

static void it_ran_once_or_twice(void)
{
	run_the_rest();
	explore_check(runs[0] >= 1 && runs[0] <= 2 && plain == runs[0]);
	explore_check(!is_busy((struct tasklet *)&tasklets[0]));
}

EXPLORE(it_runs_on_one_vp_at_a_time)
{
	begin_with(2, count);
	explore_spawn("vp 0", schedule_and_run, &vps[0]);
	explore_spawn("vp 1", schedule_and_run, &vps[1]);
	explore_finish(it_ran_once_or_twice);
}

/* A thread becomes ready by it. */
static void make_ready(void *arg)
{
	marcel_runq_push(marcel_vp_self(), &threads[0]);
}

static void one(void *arg)
{
	take_one(arg);
}

static void the_thread_ran(void)
{
	explore_check(ran[0] == 1);
}

EXPLORE(nobody_sleeps_over_a_tasklet)
{
	marcel_vpset_t set;

	begin_with(2, make_ready);
	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, 1);
	explore_check(marcel_tasklet_set_vpset(&tasklets[0], &set) == 0);
	explore_spawn("scheduler", schedule_0, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(the_thread_ran);
}

/* --- types --- */

static void schedule_own_and_run(void *arg)
{
	struct marcel_vp *vp = arg;

	be(vp);
	explore_check(marcel_tasklet_schedule(&tasklets[vp->id]) == 0);
	pass(vp);
}

static void each_ran_once(void)
{
	run_the_rest();
	explore_check(runs[0] == 1 && runs[1] == 1 && plain == 2);
	for (int i = 0; i < TASKLETS; i++)
		explore_check(!is_busy((struct tasklet *)&tasklets[i]));
}

EXPLORE(those_of_a_type_run_one_at_a_time)
{
	begin_with(2, count);
	for (int i = 0; i < TASKLETS; i++)
		marcel_tasklet_set_type(&tasklets[i], &type);
	explore_spawn("vp 0", schedule_own_and_run, &vps[0]);
	explore_spawn("vp 1", schedule_own_and_run, &vps[1]);
	explore_finish(each_ran_once);
}

/* --- disable --- */

static void disable_for_a_while(void *arg)
{
	explore_check(marcel_tasklet_disable(&tasklets[0]) == 0);
	plain++;
	explore_check(marcel_tasklet_enable(&tasklets[0]) == 0);
}

static void it_ran_once(void)
{
	run_the_rest();
	explore_check(runs[0] == 1 && plain == 2);
}

EXPLORE(while_it_is_disabled_it_does_not_run)
{
	begin_with(1, count);
	be(&vps[0]);
	marcel_tasklet_schedule(&tasklets[0]);
	explore_spawn("disabler", disable_for_a_while, NULL);
	explore_spawn("vp 0", run_on, &vps[0]);
	explore_finish(it_ran_once);
}

/* --- kill --- */

static void kill_0(void *arg)
{
	explore_check(marcel_tasklet_kill(&tasklets[0]) == 0);
	explore_gone(&tasklets[0], sizeof(tasklets[0]));
	explore_gone(&runs[0], sizeof(runs[0]));
	explore_outcome(0);
}

static void the_other_ran(void)
{
	run_the_rest();
	explore_check(runs[1] == 1);
}

EXPLORE(after_its_kill_nobody_touches_it)
{
	begin_with(1, count);
	be(&vps[0]);
	marcel_tasklet_schedule(&tasklets[0]);
	marcel_tasklet_schedule(&tasklets[1]);
	explore_spawn("killer", kill_0, NULL);
	explore_spawn("vp 0", run_on, &vps[0]);
	explore_finish(the_other_ran);
}

/* One of its type has run. */
static void let_the_next_run(void *arg)
{
	be(arg);
	let_go((struct type *)&type);
	pass(arg);
}

EXPLORE(it_is_killed_while_it_waits_for_its_type)
{
	begin_with(1, count);
	be(&vps[0]);
	explore_check(hold((struct type *)&type, NULL));
	marcel_tasklet_set_type(&tasklets[0], &type);
	marcel_tasklet_schedule(&tasklets[0]);
	pass(&vps[0]);
	explore_check(runs[0] == 0);
	explore_spawn("killer", kill_0, NULL);
	explore_spawn("vp 0", let_the_next_run, &vps[0]);
}
