/* pioman/ltask: queues, rounds and who may sleep, on a machine of paper. */
#include "../probe.h"

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
		piom_poll_round(0, 0, PIOM_POINT_IDLE, &found);
	CHECK_INT(runs(&package), 3200 / 8);
	CHECK_INT(runs(&machine), 3200 / 32);
	for (int i = 0; i < 320; i++)
		for (int vp = 8; vp < 32; vp++)
			piom_poll_round(vp, 0, PIOM_POINT_IDLE, &found);
	CHECK_INT(runs(&machine), (3200 + 320 * 24) / 32);
	CHECK_INT(runs(&package), 3200 / 8);
	CHECK_INT(piom_ltask_cancel(&package.task), 0);
	CHECK_INT(piom_ltask_cancel(&machine.task), 0);
	teardown();
	setup();
}

/* Row 11: each of four gets a quarter, in whatever order they come. */
TEST(siblings_share_their_parents_queue_equally)
{
	static const unsigned arity[] = { 4, 0 };
	struct probe p = { .answer = PIOM_LTASK_AGAIN };
	int share[4] = { 0 };
	bool found;

	teardown();
	fake_machine(arity);
	CHECK_INT(piom_init(), 0);
	submit(&p, PIOM_LTASK_REPEAT, 0);
	for (int i = 0; i < 1000; i++) {
		int first = (int)(check_random() % 4);

		for (int vp = 0; vp < 4; vp++) {
			int before = runs(&p);

			piom_poll_round((first + vp) % 4, 0, PIOM_POINT_IDLE,
					&found);
			share[(first + vp) % 4] += runs(&p) - before;
		}
	}
	for (int vp = 0; vp < 4; vp++)
		CHECK_INT(share[vp], 250);
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
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
	piom_poll_round(0, 0, PIOM_POINT_IDLE, &found);
	CHECK(!found);
	piom_poll_round(2, 0, PIOM_POINT_IDLE, &found);
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

static void note_held(struct piom_task *t, void *arg)
{
	unsigned *held = arg;

	if (load_relaxed(&t->queue->word) & PIOM_QUEUE_HELD)
		++*held;
}

/* Others splice the list meanwhile, and free what they have taken out. */
TEST(who_walks_a_queue_holds_it)
{
	struct probe p = { .answer = PIOM_LTASK_QUIET };
	struct piom_queue *q = piom_tree_machine();
	unsigned held = 0;

	submit(&p, PIOM_LTASK_REPEAT, 1 | 8);
	poll_as(0);
	CHECK(piom_queue_walk(q, note_held, &held));
	CHECK_INT(held, 1);
	CHECK(!(load_relaxed(&q->word) & PIOM_QUEUE_HELD));
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

/* No VP may run them all, so none alone knows that all are quiet. */
TEST(quiet_tasks_of_different_vps_in_one_queue_keep_nobody_awake)
{
	static const unsigned long sets[2] = { 1 | 4, 2 | 8 };
	struct probe p[2] = { { .answer = PIOM_LTASK_QUIET },
			      { .answer = PIOM_LTASK_QUIET } };

	for (int i = 0; i < 2; i++)
		submit(&p[i], PIOM_LTASK_REPEAT, sets[i]);
	poll_as(0);
	CHECK(pending(0)); /* the second was never asked */
	poll_as(1);
	for (int vp = 0; vp < 4; vp++)
		CHECK(may_sleep(vp));

	/* A kick of one is not forgotten by who may run the other only. */
	piom_ltask_kick(&p[0].task);
	for (int i = 0; i < 10; i++)
		poll_as(1);
	CHECK(piom_queue_is_pending(piom_tree_machine()));
	poll_as(2);
	for (int vp = 0; vp < 4; vp++)
		CHECK(may_sleep(vp));

	/* Nor what one of them has answered. */
	p[1].answer = PIOM_LTASK_AGAIN;
	poll_as(3);
	p[1].answer = PIOM_LTASK_QUIET;
	for (int i = 0; i < 10; i++)
		poll_as(2);
	CHECK(piom_queue_is_pending(piom_tree_machine()));
	poll_as(3);
	CHECK(!piom_queue_is_pending(piom_tree_machine()));
	for (int i = 0; i < 2; i++)
		CHECK_INT(piom_ltask_cancel(&p[i].task), 0);
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
