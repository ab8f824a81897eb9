/* pioman/ltask/ltask.c: the life of an ltask, on a machine of paper. */
#include "../probe.h"

#include <malloc.h>

/* --- rows 1, 2: what a task is --- */

TEST(a_one_shot_task_runs_once)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };

	submit(&p, PIOM_LTASK_ONESHOT, 0);
	CHECK_INT(piom_ltask_test(&p.task), 0);
	CHECK_INT(piom_poll(), 1);
	CHECK_INT(piom_poll(), 0);
	CHECK_INT(runs(&p), 1);
	CHECK(piom_ltask_test(&p.task));
	piom_ltask_wait(&p.task);
}

TEST(a_repeat_task_runs_until_it_says_done)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN, .until = 4 };

	submit(&p, PIOM_LTASK_REPEAT, 0);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(piom_poll(), 0);
		CHECK(!piom_ltask_test(&p.task));
	}
	CHECK_INT(piom_poll(), 1);
	CHECK(piom_ltask_test(&p.task));
	CHECK_INT(piom_poll(), 0);
	CHECK_INT(runs(&p), 4);
}

TEST(a_task_can_be_submitted_again_when_it_is_done)
{
	struct probe p = { .answer = PIOM_LTASK_DONE };

	submit(&p, PIOM_LTASK_ONESHOT, 0);
	for (int i = 1; i <= 5; i++) {
		piom_ltask_wait(&p.task);
		CHECK_INT(runs(&p), i);
		piom_ltask_submit(&p.task);
		CHECK(!piom_ltask_test(&p.task));
	}
	piom_ltask_wait(&p.task);
}

TEST(submitting_and_running_allocates_nothing)
{
	struct mallinfo2 before, after;
	static struct probe p[100];

	before = mallinfo2();
	for (int i = 0; i < 100; i++)
		submit(&p[i], PIOM_LTASK_ONESHOT, i % 2 ? 0 : 1);
	CHECK_INT(piom_poll(), 100);
	after = mallinfo2();
	CHECK_INT(after.uordblks, before.uordblks);
	CHECK_INT(after.ordblks, before.ordblks);
}

/* The memory of a NOWAIT task is its function's own. */
static enum piom_ltask_result free_owner(void *arg)
{
	struct probe *p = arg;

	memset(p, 0xa5, sizeof(*p));
	free(p);
	return PIOM_LTASK_DONE;
}

TEST(a_nowait_task_may_free_itself)
{
	static const unsigned options[] = {
		PIOM_LTASK_NOWAIT,
		PIOM_LTASK_NOWAIT | PIOM_LTASK_REPEAT,
	};

	for (int i = 0; i < 2; i++) {
		struct probe *p = calloc(1, sizeof(*p));

		piom_ltask_init(&p->task, free_owner, p, options[i], NULL);
		piom_ltask_submit(&p->task);
		CHECK_INT(piom_poll(), 1);
	}
}

static enum piom_ltask_result submit_again(void *arg)
{
	struct probe *p = arg;

	if (fetch_add_relaxed(&p->runs, 1) < 2)
		piom_ltask_submit(&p->task);
	return PIOM_LTASK_DONE;
}

TEST(a_nowait_task_may_submit_itself_again)
{
	struct probe p = { 0 };

	piom_ltask_init(&p.task, submit_again, &p, PIOM_LTASK_NOWAIT, NULL);
	piom_ltask_submit(&p.task);
	for (int i = 0; i < 3; i++)
		piom_poll();
	CHECK_INT(runs(&p), 3);
}

/* --- cancel, and the ends of life --- */

TEST(a_cancelled_task_does_not_run_and_its_memory_is_free)
{
	for (int integrated = 0; integrated < 2; integrated++) {
		struct probe *p = calloc(1, sizeof(*p));
		int before;

		p->answer = PIOM_LTASK_AGAIN;
		submit(p, PIOM_LTASK_REPEAT, 0);
		if (integrated)
			piom_poll();
		before = runs(p);
		CHECK_INT(piom_ltask_cancel(&p->task), 0);
		CHECK(piom_ltask_test(&p->task));
		CHECK_INT(piom_ltask_cancel(&p->task), -EALREADY);
		CHECK_INT(piom_poll(), 0);
		CHECK_INT(runs(p), before);
		memset(p, 0xa5, sizeof(*p));
		free(p);
		CHECK_INT(piom_poll(), 0);
	}
}

/* Every second one, oldest first; and the rest. */
TEST(each_of_many_is_cancelled_and_the_others_run)
{
	enum { MANY = BASE_TSAN || BASE_ASAN ? 10000 : 100000 };
	struct probe *p = calloc(MANY, sizeof(*p));

	for (int i = 0; i < MANY; i++) {
		p[i].answer = PIOM_LTASK_AGAIN;
		submit(&p[i], PIOM_LTASK_REPEAT, 0);
	}
	for (int i = 0; i < MANY; i += 2)
		CHECK_INT(piom_ltask_cancel(&p[i].task), 0);
	CHECK_INT(piom_poll(), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(runs(&p[i]), i % 2);
	for (int i = 1; i < MANY; i += 2)
		CHECK_INT(piom_ltask_cancel(&p[i].task), 0);
	free(p);
}

TEST(cancel_of_a_task_that_is_done_or_was_never_submitted_says_so)
{
	struct probe p = { .answer = PIOM_LTASK_DONE };

	piom_ltask_init(&p.task, probe_run, &p, PIOM_LTASK_ONESHOT, NULL);
	CHECK_INT(piom_ltask_cancel(&p.task), -EALREADY);
	piom_ltask_submit(&p.task);
	piom_poll();
	CHECK_INT(piom_ltask_cancel(&p.task), -EALREADY);
}

static void *cancel_it(void *arg)
{
	fake_be_vp(3);
	return (void *)(intptr_t)piom_ltask_cancel(arg);
}

TEST(cancel_waits_for_a_run_in_progress)
{
	struct gate g = { 0 };
	int vp = 1;
	pthread_t runner = gate_enter(&g, &vp), canceller;
	void *result;

	CHECK_INT(pthread_create(&canceller, NULL, cancel_it, &g.task), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	CHECK(!piom_ltask_test(&g.task));
	store_release(&g.open, 1);
	pthread_join(canceller, &result);
	CHECK(piom_ltask_test(&g.task));
	CHECK_INT((int)(intptr_t)result, -EALREADY);
	pthread_join(runner, NULL);
}

/* --- rows 66, 74: many at once --- */

enum { THREADS = 4, EACH = 3000 };

struct storm {
	struct piom_ltask task;
	ATOMIC(int) inside, runs;
	int plain; /* no atomic: the rule of exclusion protects it */
};

static struct storm storm[THREADS][EACH], repeat;
static ATOMIC(int) storm_over;

static enum piom_ltask_result storm_run(void *arg)
{
	struct storm *s = arg;

	CHECK_INT(fetch_add_relaxed(&s->inside, 1), 0);
	s->plain++;
	CHECK_INT(fetch_sub_relaxed(&s->inside, 1), 1);
	fetch_add_relaxed(&s->runs, 1);
	return PIOM_LTASK_AGAIN;
}

static void *storm_thread(void *arg)
{
	struct storm *mine = arg;
	int n = (int)((mine - storm[0]) / EACH);

	fake_be_vp(n);
	for (int i = 0; i < EACH; i++) {
		marcel_vpset_t set = { { (unsigned long)i % 15 + 1 } };
		bool found;

		piom_ltask_init(&mine[i].task, storm_run, &mine[i], 0,
				i % 3 ? &set : NULL);
		piom_ltask_submit(&mine[i].task);
		if (i % 7 == 0)
			piom_poll();
		else if (i % 2)
			piom_poll_round(n, 0, PIOM_POINT_IDLE, &found);
	}
	for (int i = 0; i < EACH; i++)
		piom_ltask_wait(&mine[i].task);
	fetch_add_acq_rel(&storm_over, 1); /* order(test) */
	/* Others need us: their tasks may be for our VP only. */
	while (load_acquire(&storm_over) < THREADS) {
		piom_poll();
		sched_yield();
	}
	return NULL;
}

TEST(no_task_is_lost_or_run_twice_or_on_two_cores_at_once)
{
	pthread_t t[THREADS];

	memset(storm, 0, sizeof(storm));
	memset(&repeat, 0, sizeof(repeat));
	store_relaxed(&storm_over, 0);
	piom_ltask_init(&repeat.task, storm_run, &repeat, PIOM_LTASK_REPEAT,
			NULL);
	piom_ltask_submit(&repeat.task);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&t[i], NULL, storm_thread, storm[i]),
			  0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK_INT(piom_ltask_cancel(&repeat.task), 0);
	CHECK_INT(repeat.plain, load_relaxed(&repeat.runs));
	for (int i = 0; i < THREADS; i++)
		for (int j = 0; j < EACH; j++)
			CHECK_INT(storm[i][j].plain, 1);
}

/* --- cancel against runs --- */

static ATOMIC(int) cancel_stop;

static void *keep_polling(void *arg)
{
	fake_be_vp(*(int *)arg);
	while (!load_acquire(&cancel_stop))
		piom_poll();
	return NULL;
}

TEST(cancel_races_with_runs_and_the_memory_is_the_callers_afterwards)
{
	pthread_t t[2];
	int vps[2] = { 1, 2 }, cancelled_count = 0;

	store_relaxed(&cancel_stop, 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(pthread_create(&t[i], NULL, keep_polling, &vps[i]),
			  0);
	for (int i = 0; i < 5000; i++) {
		struct storm *s = calloc(1, sizeof(*s));
		int err;

		piom_ltask_init(&s->task, storm_run, s,
				i % 2 ? PIOM_LTASK_REPEAT : 0, NULL);
		piom_ltask_submit(&s->task);
		for (int j = i % 50; j > 0; j--)
			piom_ltask_test(&s->task);
		err = piom_ltask_cancel(&s->task);
		CHECK(err == 0 || (err == -EALREADY && i % 2 == 0));
		CHECK(piom_ltask_test(&s->task));
		cancelled_count += err == 0;
		memset(s, 0xa5, sizeof(*s));
		free(s);
	}
	store_release(&cancel_stop, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	CHECK(cancelled_count >= 2500);
}
