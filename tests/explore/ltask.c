/*
 * pioman/ltask: a queue is held by one at a time; what is submitted is never
 * left behind by those who find it held; what a kick is about is seen by a
 * later run; a VP does not fall asleep over a submission or a kick; and after
 * a cancel nobody touches the ltask; and while it is masked it does not run.
 *
 * covers: hold queue ltask idle mask
 */
#include "explore.h"

#include "ltask_world.h"
#include "no_blocking.h"

static void submit_and_run(void *arg)
{
	piom_ltask_submit(&tasks[(int)(intptr_t)arg]);
	piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
}

static void both_ran(void)
{
	explore_check(runs[0] == 1 && runs[1] == 1);
	explore_check(piom_ltask_test(&tasks[0]));
	explore_check(piom_ltask_test(&tasks[1]));
	explore_check(piom_queue_is_empty(&q));
	explore_check(!piom_queue_is_pending(&q));
}

/* order(queue), order(hold) */
EXPLORE(who_finds_the_queue_held_may_go_on)
{
	setup(PIOM_LTASK_ONESHOT);
	explore_spawn("vp 0", submit_and_run, (void *)0);
	explore_spawn("vp 1", submit_and_run, (void *)1);
	explore_finish(both_ran);
}

static void run_twice(void *arg)
{
	piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
	piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
}

static void ran_now_and_then(void)
{
	explore_check(runs[0] >= 1 && runs[0] <= 4);
	explore_check(piom_queue_is_pending(&q));
	explore_check(load_relaxed(&q.length) == 1);
}

/* order(hold) */
EXPLORE(a_repeat_task_runs_on_one_core_at_a_time)
{
	setup(PIOM_LTASK_REPEAT);
	piom_ltask_submit(&tasks[0]);
	explore_spawn("vp 0", run_twice, NULL);
	explore_spawn("vp 1", run_twice, NULL);
	explore_finish(ran_now_and_then);
}

/* --- kicks --- */

static ATOMIC(uint32_t) work;
static int found;

static enum piom_ltask_result look_for_work(void *arg)
{
	if (load_relaxed(&work) == 0)
		return PIOM_LTASK_QUIET;
	found = 1;
	return PIOM_LTASK_DONE;
}

static void kicker(void *arg)
{
	store_relaxed(&work, 1);
	piom_ltask_kick(&tasks[0]);
}

/* As an idle VP does: again while it is asked for. */
static void runner(void *arg)
{
	do
		piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
	while (piom_queue_is_pending(&q));
}

static void found_or_asked_for(void)
{
	explore_check(found || piom_queue_is_pending(&q));
}

/* order(ltask) */
EXPLORE(a_kick_is_seen_by_a_run_or_another_is_asked_for)
{
	setup(PIOM_LTASK_REPEAT);
	piom_ltask_init(&tasks[0], look_for_work, NULL, PIOM_LTASK_REPEAT,
			NULL);
	piom_ltask_submit(&tasks[0]);
	explore_spawn("kicker", kicker, NULL);
	explore_spawn("vp", runner, NULL);
	explore_finish(found_or_asked_for);
}

static void caller(void *arg)
{
	store_relaxed(&work, 1);
	piom_queue_call(&q);
	piom_queue_run(&q, -1, 0, PIOM_POINT_WATCHER);
}

static void run_once_more(void *arg)
{
	piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
}

static void is_found(void)
{
	explore_check(found);
}

/* Who finds it held may go on, and nobody need ask again: order(ltask). */
EXPLORE(what_is_called_for_is_found_by_then)
{
	setup(PIOM_LTASK_REPEAT);
	piom_ltask_init(&tasks[0], look_for_work, NULL, PIOM_LTASK_REPEAT,
			NULL);
	piom_ltask_submit(&tasks[0]);
	explore_spawn("caller", caller, NULL);
	explore_spawn("vp", run_once_more, NULL);
	explore_finish(is_found);
}

static void meeter(void *arg)
{
	piom_queue_meet(&q, task_of(&tasks[0]));
}

static void is_found_or_rung_for(void)
{
	explore_check(found || rung);
}

/* Nor if that was one who cancels or masks another. */
EXPLORE(what_is_called_for_when_a_task_is_met_is_rung_for)
{
	setup(PIOM_LTASK_REPEAT);
	rung = 0;
	piom_ltask_init(&tasks[0], look_for_work, NULL, PIOM_LTASK_REPEAT,
			NULL);
	piom_ltask_submit(&tasks[0]);
	explore_spawn("caller", caller, NULL);
	explore_spawn("meeter", meeter, NULL);
	explore_finish(is_found_or_rung_for);
}

/* --- sleep --- */

/* A VP: looks, says that it sleeps, looks once more, sleeps. */
static void idle_vp(void *arg)
{
	while (!found) {
		piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
		if (found)
			break;
		store_seq(&asleep, 1); /* order(idle) */
		if (!piom_queue_is_pending(&q))
			explore_wait_while(&asleep, 1);
		store_relaxed(&asleep, 0);
	}
}

static enum piom_ltask_result find(void *arg)
{
	found = 1;
	return PIOM_LTASK_DONE;
}

static void submitter(void *arg)
{
	piom_ltask_submit(&tasks[0]);
}

/* order(idle) */
EXPLORE(a_vp_does_not_sleep_over_a_submission)
{
	piom.engine = PIOM_ENGINE_MARCEL;
	setup(PIOM_LTASK_ONESHOT);
	piom_ltask_init(&tasks[0], find, NULL, PIOM_LTASK_ONESHOT, NULL);
	explore_spawn("submitter", submitter, NULL);
	explore_spawn("vp", idle_vp, NULL);
}

/* order(idle) */
EXPLORE(a_vp_does_not_sleep_over_a_kick)
{
	piom.engine = PIOM_ENGINE_MARCEL;
	setup(PIOM_LTASK_REPEAT);
	piom_ltask_init(&tasks[0], look_for_work, NULL, PIOM_LTASK_REPEAT,
			NULL);
	piom_ltask_submit(&tasks[0]);
	piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
	explore_spawn("kicker", kicker, NULL);
	explore_spawn("vp", idle_vp, NULL);
}

/* --- cancel --- */

static void canceller(void *arg)
{
	int err = piom_ltask_cancel(&tasks[0]);

	explore_check(err == 0 || err == -EALREADY);
	explore_check(piom_ltask_test(&tasks[0]));
	explore_gone(&tasks[0], sizeof(tasks[0]));
	explore_outcome(err == 0);
}

static void run_one(void *arg)
{
	piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
}

static void queue_is_empty(void)
{
	explore_check(piom_queue_is_empty(&q));
}

EXPLORE(after_a_cancel_nobody_touches_the_task)
{
	setup(PIOM_LTASK_ONESHOT);
	piom_ltask_submit(&tasks[0]);
	explore_outcomes(3);
	explore_spawn("canceller", canceller, NULL);
	explore_spawn("vp", run_one, NULL);
	explore_finish(queue_is_empty);
}

EXPLORE(a_repeat_task_is_cancelled_while_it_is_run)
{
	setup(PIOM_LTASK_REPEAT);
	piom_ltask_submit(&tasks[0]);
	explore_outcomes(2);
	explore_spawn("canceller", canceller, NULL);
	explore_spawn("vp", run_twice, NULL);
	explore_finish(queue_is_empty);
}

/* --- masks --- */

/* What the function touches is the masker's meanwhile. */
static void masker(void *arg)
{
	if (piom_ltask_mask(&tasks[0]) != 0)
		return;
	inside++;
	explore_check(inside == 1);
	runs[0] += 10;
	inside--;
	piom_ltask_unmask(&tasks[0]);
}

static void masked_and_back(void)
{
	explore_check(runs[0] >= 10 && load_relaxed(&q.length) <= 1);
	/* It is asked again, or has been since. */
	explore_check(piom_queue_is_pending(&q));
	explore_check(load_relaxed(&task_of(&tasks[0])->state) ==
		      PIOM_STATE_SUBMITTED);
}

/* order(mask), order(hold) */
EXPLORE(a_masked_task_does_not_run)
{
	setup(PIOM_LTASK_REPEAT);
	piom_ltask_submit(&tasks[0]);
	explore_spawn("masker", masker, NULL);
	explore_spawn("vp", run_twice, NULL);
	explore_finish(masked_and_back);
}

static void mask_only(void *arg)
{
	int err = piom_ltask_mask(&tasks[0]);

	explore_check(err == 0 || err == -EALREADY);
	explore_outcome(err == 0);
}

static void done_or_masked(void)
{
	explore_check((runs[0] == 1) == (piom_ltask_test(&tasks[0]) != 0));
}

/* The only run comes before the mask is there, or never. */
EXPLORE(a_mask_waits_for_a_run_that_is_the_last)
{
	setup(PIOM_LTASK_ONESHOT);
	piom_ltask_submit(&tasks[0]);
	explore_outcomes(3);
	explore_spawn("masker", mask_only, NULL);
	explore_spawn("vp", run_one, NULL);
	explore_finish(done_or_masked);
}

static void mask_and_cancel(void *arg)
{
	if (piom_ltask_mask(&tasks[0]) != 0)
		return;
	explore_check(piom_ltask_cancel(&tasks[0]) == 0);
	explore_check(piom_ltask_test(&tasks[0]));
	explore_gone(&tasks[0], sizeof(tasks[0]));
}

EXPLORE(a_masked_task_is_cancelled)
{
	setup(PIOM_LTASK_REPEAT);
	piom_ltask_submit(&tasks[0]);
	explore_spawn("masker", mask_and_cancel, NULL);
	explore_spawn("vp", run_one, NULL);
	explore_finish(queue_is_empty);
}
