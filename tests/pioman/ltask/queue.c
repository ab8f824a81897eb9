/* pioman/ltask: the rules of ltasks and their queues, on a machine of paper. */
#include "../../check.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <base/compiler.h>

#include <pioman/pioman.h>

#include "../../../pioman/ltask/poll.h"
#include "../../../pioman/ltask/tree.h"
#include "../fake.h"

/* Two packages of two VPs: machine > package > VP. */
static const unsigned two_by_two[] = { 2, 2, 0 };

static void setup(void)
{
	setenv("PIOM_ENGINE", "none", 1);
	unsetenv("PIOM_QUEUES");
	fake_machine(two_by_two);
	CHECK_INT(piom_init(), 0);
}

static void teardown(void)
{
	CHECK_INT(piom_exit(), 0);
	fake_machine_free();
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* What an ltask of these tests is: it counts, and notes where it ran. */
struct probe {
	struct piom_ltask task;
	ATOMIC(int) runs;
	int vp;    /* of the last run */
	int until; /* DONE at this run; 0: never */
	enum piom_ltask_result answer;
	char *trail; /* its letter is appended */
	char letter;
};

static enum piom_ltask_result probe_run(void *arg)
{
	struct probe *p = arg;
	int runs = fetch_add_relaxed(&p->runs, 1) + 1;

	p->vp = marcel_current_vp();
	if (p->trail != NULL) {
		size_t n = strlen(p->trail);

		p->trail[n] = p->letter;
		p->trail[n + 1] = 0;
	}
	return runs == p->until ? PIOM_LTASK_DONE : p->answer;
}

static void submit(struct probe *p, unsigned options, unsigned long vps)
{
	marcel_vpset_t set = { { vps } };

	piom_ltask_init(&p->task, probe_run, p, options, vps ? &set : NULL);
	piom_ltask_submit(&p->task);
}

static void poll_as(int vp)
{
	fake_be_vp(vp);
	piom_poll();
}

static int runs(struct probe *p)
{
	return load_relaxed(&p->runs);
}

static bool pending(int vp)
{
	bool found;

	fake_be_vp(vp);
	piom_poll_round(vp, &found);
	return found;
}

/* As an idle VP does: asks for a while, then says so and looks once more. */
static bool may_sleep(int vp)
{
	for (int i = 0; i < 40; i++)
		if (!pending(vp))
			return !pending(vp);
	return false;
}

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

/* --- rows 3, 4, 14: queues and CPU sets --- */

TEST(a_set_chooses_the_lowest_level_that_covers_it)
{
	static const struct {
		unsigned long set;
		int vp, up;
	} cases[] = {
		{ 1, 0, 0 }, { 4, 2, 0 },  { 3, 0, 1 }, { 12, 3, 1 },
		{ 6, 0, 2 }, { 15, 0, 2 }, { 0, 0, 2 }, { 0xff, 1, 2 },
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		struct probe p = { .answer = PIOM_LTASK_DONE };
		struct marcel_level *want =
			fake_level(cases[i].vp, cases[i].up);
		struct piom_queue *q = want->slot[PIOM_LEVEL_SLOT];

		submit(&p, PIOM_LTASK_ONESHOT, cases[i].set);
		CHECK_PTR(q->level, want);
		CHECK(!piom_queue_is_empty(q));
		for (int vp = 0; vp < 4; vp++)
			poll_as(vp);
		CHECK_INT(runs(&p), 1);
	}
}

TEST(only_vps_of_the_set_run_a_task)
{
	for (unsigned long set = 1; set < 16; set++) {
		struct probe p = { .answer = PIOM_LTASK_AGAIN };

		submit(&p, PIOM_LTASK_REPEAT, set);
		for (int vp = 0; vp < 4; vp++) {
			int before = runs(&p);

			poll_as(vp);
			CHECK_INT(runs(&p) - before, set >> vp & 1);
		}
		/* A foreign thread runs only what anybody may run. */
		int before = runs(&p);
		poll_as(-1);
		CHECK_INT(runs(&p) - before, set == 15);
		CHECK_INT(piom_ltask_cancel(&p.task), 0);
		fake_be_vp(0);
	}
}

TEST(with_one_queue_sets_are_kept_too)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };

	CHECK_INT(piom_exit(), 0);
	setenv("PIOM_QUEUES", "machine", 1);
	CHECK_INT(piom_init(), 0);
	CHECK_PTR(fake_level(3, 0)->slot[PIOM_LEVEL_SLOT],
		  fake_level(0, 2)->slot[PIOM_LEVEL_SLOT]);
	submit(&p, PIOM_LTASK_REPEAT, 4);
	for (int vp = 0; vp < 4; vp++) {
		poll_as(vp);
		CHECK_INT(runs(&p), vp >= 2);
	}
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
	CHECK_INT(piom_exit(), 0);
	unsetenv("PIOM_QUEUES");
	CHECK_INT(piom_init(), 0);
}

/* --- row 5: order --- */

TEST(queues_are_run_from_the_leaf_to_the_root_each_in_order)
{
	char trail[32] = "";
	struct probe p[6];
	static const unsigned long sets[6] = { 15, 3, 1, 1, 3, 15 };

	for (int i = 0; i < 6; i++) {
		p[i] = (struct probe){ .answer = PIOM_LTASK_AGAIN,
				       .trail = trail,
				       .letter = (char)('a' + i) };
		submit(&p[i], PIOM_LTASK_REPEAT, sets[i]);
	}
	poll_as(0);
	CHECK_STR(trail, "cdbeaf");
	trail[0] = 0;
	poll_as(0); /* a repeating task has gone back to its own queue */
	CHECK_STR(trail, "cdbeaf");
	trail[0] = 0;
	poll_as(3);
	CHECK_STR(trail, "af");
	for (int i = 0; i < 6; i++)
		CHECK_INT(piom_ltask_cancel(&p[i].task), 0);
}

/* --- row 64: parents --- */

TEST(a_parent_is_run_in_one_of_as_many_rounds_as_it_has_children)
{
	static const unsigned arity[] = { 4, 8, 0 };
	struct probe package = { .answer = PIOM_LTASK_AGAIN },
		     machine = package;
	bool found;

	teardown();
	fake_machine(arity);
	CHECK_INT(piom_init(), 0);
	submit(&package, PIOM_LTASK_REPEAT, 0xff);
	submit(&machine, PIOM_LTASK_REPEAT, 0);
	for (int i = 0; i < 3200; i++)
		piom_poll_round(0, &found);
	CHECK_INT(runs(&package), 3200 / 8);
	CHECK_INT(runs(&machine), 3200 / 32);
	for (int i = 0; i < 320; i++)
		for (int vp = 8; vp < 32; vp++)
			piom_poll_round(vp, &found);
	CHECK_INT(runs(&machine), (3200 + 320 * 24) / 32);
	CHECK_INT(runs(&package), 3200 / 8);
	CHECK_INT(piom_ltask_cancel(&package.task), 0);
	CHECK_INT(piom_ltask_cancel(&machine.task), 0);
	teardown();
	setup();
}

TEST(an_explicit_poll_runs_every_level)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };

	submit(&p, PIOM_LTASK_REPEAT, 0);
	for (int i = 1; i <= 10; i++) {
		poll_as(i % 4);
		CHECK_INT(runs(&p), i);
	}
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

/* --- rows 6, 66, 67: holding --- */

/* Whoever holds the queue would follow the list into nowhere. */
TEST(an_empty_queue_is_not_held)
{
	struct piom_queue *q = piom_tree_machine();
	struct base_list list = q->list;

	q->list.head.next = q->list.head.prev = (struct base_link *)8;
	for (int i = 0; i < 10; i++)
		CHECK_INT(piom_poll(), 0);
	q->list = list;
}

TEST(a_kick_of_a_task_that_is_done_keeps_nobody_awake)
{
	struct probe p = { .answer = PIOM_LTASK_DONE };

	submit(&p, PIOM_LTASK_REPEAT, 0);
	piom_poll();
	piom_ltask_kick(&p.task);
	piom_poll();
	CHECK(may_sleep(0));
}

/* A task that stays inside its run until it is let out. */
struct gate {
	struct piom_ltask task;
	ATOMIC(int) inside;
	ATOMIC(int) open;
};

static enum piom_ltask_result gate_run(void *arg)
{
	struct gate *g = arg;

	store_release(&g->inside, 1);
	while (!load_acquire(&g->open))
		sched_yield();
	return PIOM_LTASK_DONE;
}

static void *poll_once(void *arg)
{
	fake_be_vp(*(int *)arg);
	piom_poll();
	return NULL;
}

static pthread_t gate_enter(struct gate *g, int *vp)
{
	pthread_t t;

	piom_ltask_init(&g->task, gate_run, g, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&g->task);
	CHECK_INT(pthread_create(&t, NULL, poll_once, vp), 0);
	while (!load_acquire(&g->inside))
		sched_yield();
	return t;
}

TEST(who_finds_a_queue_held_goes_on)
{
	struct probe above = { .answer = PIOM_LTASK_DONE }, own = above;
	struct gate g = { 0 };
	int vp = 1;
	pthread_t t = gate_enter(&g, &vp);

	submit(&above, PIOM_LTASK_ONESHOT, 0);
	submit(&own, PIOM_LTASK_ONESHOT, 1);
	CHECK_INT(piom_poll(), 1); /* returns at all */
	CHECK_INT(runs(&own), 1);
	CHECK_INT(runs(&above), 0);
	/* The holder looks again after letting go. */
	store_release(&g.open, 1);
	pthread_join(t, NULL);
	CHECK_INT(runs(&above), 1);
	piom_ltask_wait(&g.task);
}

TEST(what_comes_while_the_queue_is_held_runs_once_and_repeats_do_not_run_twice)
{
	struct probe repeat = { .answer = PIOM_LTASK_AGAIN }, late[3];
	struct gate g = { 0 };
	int vp = 1;
	pthread_t t;

	submit(&repeat, PIOM_LTASK_REPEAT, 0);
	t = gate_enter(&g, &vp);
	CHECK_INT(runs(&repeat), 1);
	for (int i = 0; i < 3; i++) {
		late[i] = (struct probe){ .answer = PIOM_LTASK_DONE };
		submit(&late[i], PIOM_LTASK_ONESHOT, 0);
	}
	store_release(&g.open, 1);
	pthread_join(t, NULL);
	for (int i = 0; i < 3; i++)
		CHECK_INT(runs(&late[i]), 1);
	CHECK_INT(runs(&repeat), 1);
	CHECK_INT(piom_ltask_cancel(&repeat.task), 0);
}

static enum piom_ltask_result submit_self(void *arg)
{
	struct probe *p = arg;

	fetch_add_relaxed(&p->runs, 1);
	piom_ltask_submit(&p->task);
	return PIOM_LTASK_DONE;
}

TEST(a_poll_ends_though_a_task_submits_itself_for_ever)
{
	struct probe p = { 0 };

	piom_ltask_init(&p.task, submit_self, &p, PIOM_LTASK_NOWAIT, NULL);
	piom_ltask_submit(&p.task);
	piom_poll();
	CHECK(runs(&p) >= 1 && runs(&p) < 100);
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

/* --- who may sleep --- */

TEST(a_vp_may_not_sleep_while_a_task_wants_to_be_asked_again)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };

	CHECK(may_sleep(0));
	submit(&p, PIOM_LTASK_REPEAT, 0);
	for (int vp = 0; vp < 4; vp++)
		for (int round = 0; round < 8; round++)
			CHECK(pending(vp));
	p.answer = PIOM_LTASK_QUIET;
	for (int vp = 0; vp < 4; vp++)
		CHECK(may_sleep(vp));
	p.answer = PIOM_LTASK_WORKED;
	piom_ltask_kick(&p.task);
	for (int vp = 0; vp < 4; vp++)
		for (int round = 0; round < 8; round++)
			CHECK(pending(vp));
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
	CHECK(may_sleep(0));
}

/* Work may have been left for it without a kick while the VP was awake. */
TEST(before_a_vp_sleeps_it_has_asked_every_task_twice)
{
	struct probe p[3] = { { .answer = PIOM_LTASK_QUIET },
			      { .answer = PIOM_LTASK_QUIET },
			      { .answer = PIOM_LTASK_QUIET } };
	static const unsigned long sets[3] = { 8, 12, 0 };

	for (int i = 0; i < 3; i++)
		submit(&p[i], PIOM_LTASK_REPEAT, sets[i]);
	for (int start = 0; start < 5; start++) {
		for (int i = 0; i < 3; i++)
			store_relaxed(&p[i].runs, 0);
		CHECK(may_sleep(3));
		for (int i = 0; i < 3; i++)
			CHECK(runs(&p[i]) >= 2);
		for (int i = 0; i < start; i++)
			pending(3);
	}
	for (int i = 0; i < 3; i++)
		CHECK_INT(piom_ltask_cancel(&p[i].task), 0);
}

TEST(a_submission_is_seen_by_all_that_may_run_it_and_no_others)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };
	marcel_vpset_t set = { { 12 } };
	bool found;

	piom_ltask_init(&p.task, probe_run, &p, PIOM_LTASK_REPEAT, &set);
	piom_ltask_submit(&p.task);
	piom_poll_round(0, &found);
	CHECK(!found);
	piom_poll_round(2, &found);
	CHECK(found);
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

/* A task with a picky set, moved in by a VP that may not run it. */
TEST(a_task_that_was_passed_over_keeps_those_awake_that_may_run_it)
{
	struct probe p = { .answer = PIOM_LTASK_QUIET };

	submit(&p, PIOM_LTASK_REPEAT, 1 | 8);
	poll_as(1);
	CHECK_INT(runs(&p), 0);
	CHECK(piom_queue_is_pending(piom_tree_machine()));
	poll_as(3);
	CHECK_INT(runs(&p), 1);
	poll_as(1);
	CHECK(!piom_queue_is_pending(piom_tree_machine()));
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

/* The kick comes after the function has looked and before it lets go. */
struct kicked {
	struct piom_ltask task;
	int runs;
	bool work;
};

static enum piom_ltask_result kicked_run(void *arg)
{
	struct kicked *k = arg;
	bool found = k->work;

	k->work = false;
	if (k->runs++ == 0) {
		k->work = true;
		piom_ltask_kick(&k->task);
	}
	return found ? PIOM_LTASK_WORKED : PIOM_LTASK_QUIET;
}

TEST(a_kick_during_a_run_makes_it_run_once_more)
{
	struct kicked k = { .runs = 0 };

	piom_ltask_init(&k.task, kicked_run, &k, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&k.task);
	CHECK_INT(piom_poll(), 0);
	CHECK(piom_queue_is_pending(piom_tree_machine()));
	CHECK_INT(piom_poll(), 1);
	piom_poll();
	CHECK(!piom_queue_is_pending(piom_tree_machine()));
	CHECK_INT(piom_ltask_cancel(&k.task), 0);
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

TEST(pioman_does_not_stop_while_tasks_are_submitted)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };

	submit(&p, PIOM_LTASK_REPEAT, 0);
	CHECK_INT(piom_exit(), -EBUSY);
	piom_poll();
	CHECK_INT(piom_exit(), -EBUSY);
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
	CHECK_INT(piom_init(), 0);
	CHECK_INT(piom_exit(), 0);
}

TEST(a_task_survives_a_restart_of_pioman)
{
	struct probe p = { .answer = PIOM_LTASK_DONE };

	submit(&p, PIOM_LTASK_ONESHOT, 4);
	poll_as(2);
	teardown();
	setup();
	piom_ltask_submit(&p.task);
	poll_as(2);
	CHECK_INT(runs(&p), 2);
}

TEST(nonsense_in_an_option_stops_the_start)
{
	static const char *const bad[][2] = {
		{ "PIOM_ENGINE", "pthreads" }, { "PIOM_WAIT", "none" },
		{ "PIOM_SPIN_US", "-1" },      { "PIOM_QUEUES", "Tree" },
		{ "PIOM_VERBOSE", "yes" },
	};

	CHECK_INT(piom_exit(), 0);
	CHECK_INT(piom_exit(), -EINVAL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(bad); i++) {
		setenv(bad[i][0], bad[i][1], 1);
		CHECK_INT(piom_init(), -EINVAL);
		unsetenv(bad[i][0]);
	}
	setenv("PIOM_ENGINE", "none", 1);
	CHECK_INT(piom_init(), 0);
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
			piom_poll_round(n, &found);
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
