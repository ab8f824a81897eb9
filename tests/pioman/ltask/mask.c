/* pioman/ltask: masks, on a machine of paper. */
#include "../probe.h"

#include <signal.h>

#include "../child.h"

static struct probe probe;

static void start(unsigned options, unsigned long vps)
{
	probe = (struct probe){ .answer = PIOM_LTASK_AGAIN };
	submit(&probe, options, vps);
}

TEST(a_masked_task_does_not_run_and_then_runs_again)
{
	static const unsigned options[] = { PIOM_LTASK_ONESHOT,
					    PIOM_LTASK_REPEAT,
					    PIOM_LTASK_NOWAIT };

	for (int i = 0; i < 6; i++) {
		int before;

		start(options[i / 2], 0);
		if (options[i / 2] == PIOM_LTASK_REPEAT && i % 2)
			piom_poll();
		before = runs(&probe);
		CHECK_INT(piom_ltask_mask(&probe.task), 0);
		for (int vp = 0; vp < 4; vp++)
			poll_as(vp);
		CHECK_INT(runs(&probe), before);
		CHECK(!piom_ltask_test(&probe.task));
		CHECK_INT(piom_exit(), -EBUSY); /* it is submitted */
		piom_ltask_unmask(&probe.task);
		poll_as(0);
		CHECK_INT(runs(&probe), before + 1);
		if (options[i / 2] == PIOM_LTASK_REPEAT)
			CHECK_INT(piom_ltask_cancel(&probe.task), 0);
	}
}

TEST(masks_count)
{
	start(PIOM_LTASK_REPEAT, 0);
	for (int i = 0; i < 100; i++)
		CHECK_INT(piom_ltask_mask(&probe.task), 0);
	for (int i = 0; i < 100; i++) {
		piom_poll();
		CHECK_INT(runs(&probe), 0);
		piom_ltask_unmask(&probe.task);
	}
	piom_poll();
	CHECK_INT(runs(&probe), 1);
	CHECK_INT(piom_ltask_cancel(&probe.task), 0);
}

static void mask_it(void)
{
	CHECK_INT(piom_ltask_mask(&probe.task), 0);
}

TEST(a_masked_task_keeps_nobody_awake_until_it_is_unmasked)
{
	/* Anybody's; that of some VPs, which others pass over. */
	static const unsigned long sets[] = { 0, 1 | 4 };

	for (int i = 0; i < 4; i++) {
		unsigned kicks;

		start(PIOM_LTASK_REPEAT, sets[i / 2]);
		if (i % 2)
			piom_poll();
		mask_it();
		for (int vp = 0; vp < 4; vp++)
			CHECK(may_sleep(vp));
		/* Nor does a kick, for long. */
		piom_ltask_kick(&probe.task);
		for (int vp = 3; vp >= 0; vp--)
			CHECK(may_sleep(vp));
		kicks = fake_kicks();
		piom_ltask_unmask(&probe.task);
		CHECK(piom_queue_is_pending(piom_tree_machine()));
		poll_as(1);
		CHECK(piom_queue_is_pending(piom_tree_machine()));
		CHECK_INT(fake_kicks(), kicks); /* of engine none */
		CHECK_INT(piom_ltask_cancel(&probe.task), 0);
		CHECK(may_sleep(0));
	}
}

TEST(a_masked_task_can_be_cancelled)
{
	for (int i = 0; i < 4; i++) {
		struct probe *p = calloc(1, sizeof(*p));

		p->answer = PIOM_LTASK_AGAIN;
		submit(p, PIOM_LTASK_REPEAT, 0);
		for (int k = 0; k <= i; k++)
			CHECK_INT(piom_ltask_mask(&p->task), 0);
		if (i % 2)
			piom_poll();
		CHECK_INT(piom_ltask_cancel(&p->task), 0);
		CHECK(piom_ltask_test(&p->task));
		CHECK_INT(piom_ltask_mask(&p->task), -EALREADY);
		piom_ltask_unmask(&p->task);
		memset(p, 0xa5, sizeof(*p));
		free(p);
		CHECK_INT(piom_poll(), 0);
	}
}

TEST(what_is_not_submitted_is_not_masked)
{
	piom_ltask_init(&probe.task, probe_run, &probe, PIOM_LTASK_ONESHOT,
			NULL);
	CHECK_INT(piom_ltask_mask(&probe.task), -EALREADY);
	piom_ltask_unmask(&probe.task);
	piom_ltask_submit(&probe.task);
	piom_poll();
	CHECK_INT(piom_ltask_mask(&probe.task), -EALREADY);
	piom_ltask_unmask(&probe.task);
	/* It has no masks when it is submitted again. */
	piom_ltask_submit(&probe.task);
	CHECK_INT(piom_poll(), 1);
}

/* --- a run in progress --- */

static ATOMIC(int) is_masked; /* a: order(test) */

static void *mask_gate(void *arg)
{
	int err;

	fake_be_vp(3);
	err = piom_ltask_mask(arg);
	store_release(&is_masked, 1); /* order(test) */
	return (void *)(intptr_t)err;
}

TEST(to_mask_waits_for_a_run_in_progress)
{
	struct gate g = { 0 };
	int vp = 1;
	pthread_t runner = gate_enter(&g, &vp), masker;
	void *result;

	store_relaxed(&is_masked, 0);
	CHECK_INT(pthread_create(&masker, NULL, mask_gate, &g.task), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	CHECK(!load_acquire(&is_masked)); /* order(test) */
	store_release(&g.open, 1);
	pthread_join(masker, &result);
	CHECK_INT((int)(intptr_t)result, -EALREADY);
	CHECK(piom_ltask_test(&g.task));
	pthread_join(runner, NULL);
}

/* --- in its own run --- */

static enum piom_ltask_result mask_self(void *arg)
{
	struct probe *p = arg;

	fetch_add_relaxed(&p->runs, 1);
	CHECK_INT(piom_ltask_mask(&p->task), 0);
	return p->answer;
}

TEST(a_task_may_mask_itself)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };

	piom_ltask_init(&p.task, mask_self, &p, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&p.task);
	for (int i = 1; i < 4; i++) {
		for (int k = 0; k < 3; k++)
			piom_poll();
		CHECK_INT(runs(&p), i);
		CHECK(may_sleep(0));
		piom_ltask_unmask(&p.task);
	}
	p.answer = PIOM_LTASK_DONE;
	piom_poll();
	CHECK(piom_ltask_test(&p.task));
	piom_ltask_unmask(&p.task);
	piom_ltask_submit(&p.task);
	CHECK_INT(piom_poll(), 1);
}

/* --- against runs --- */

enum { MASKERS = 2, POLLERS = 2, ROUNDS = 3000 };

static struct shared {
	struct piom_ltask task;
	int plain; /* whose turn it is protects it */
	int inside;
	ATOMIC(int) runs, stop;
	pthread_mutex_t among_maskers;
} shared = { .among_maskers = PTHREAD_MUTEX_INITIALIZER };

static enum piom_ltask_result use_shared(void *arg)
{
	struct shared *s = arg;

	CHECK_INT(s->inside, 0);
	s->inside = 1;
	s->plain++;
	s->inside = 0;
	fetch_add_relaxed(&s->runs, 1);
	return PIOM_LTASK_AGAIN;
}

static void *poll_shared(void *arg)
{
	fake_be_vp((int)(intptr_t)arg);
	while (!load_relaxed(&shared.stop))
		piom_poll();
	return NULL;
}

static void *mask_shared(void *arg)
{
	fake_be_vp((int)(intptr_t)arg);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(piom_ltask_mask(&shared.task), 0);
		pthread_mutex_lock(&shared.among_maskers);
		CHECK_INT(shared.inside, 0);
		shared.inside = 1;
		shared.plain++;
		shared.inside = 0;
		pthread_mutex_unlock(&shared.among_maskers);
		piom_ltask_unmask(&shared.task);
	}
	return NULL;
}

TEST(maskers_and_runs_exclude_each_other)
{
	pthread_t pollers[POLLERS], maskers[MASKERS];

	shared.plain = 0;
	store_relaxed(&shared.runs, 0);
	store_relaxed(&shared.stop, 0);
	piom_ltask_init(&shared.task, use_shared, &shared, PIOM_LTASK_REPEAT,
			NULL);
	piom_ltask_submit(&shared.task);
	for (intptr_t i = 0; i < POLLERS; i++)
		CHECK_INT(pthread_create(&pollers[i], NULL, poll_shared,
					 (void *)i),
			  0);
	for (intptr_t i = 0; i < MASKERS; i++)
		CHECK_INT(pthread_create(&maskers[i], NULL, mask_shared,
					 (void *)(2 + i)),
			  0);
	for (int i = 0; i < MASKERS; i++)
		pthread_join(maskers[i], NULL);
	store_relaxed(&shared.stop, 1);
	for (int i = 0; i < POLLERS; i++)
		pthread_join(pollers[i], NULL);
	CHECK_INT(piom_ltask_cancel(&shared.task), 0);
	CHECK_INT(shared.plain, load_relaxed(&shared.runs) + MASKERS * ROUNDS);
}

/* --- what is wrong --- */

static void unmask_twice(void)
{
	start(PIOM_LTASK_REPEAT, 0);
	mask_it();
	piom_ltask_unmask(&probe.task);
	piom_ltask_unmask(&probe.task);
}

TEST(to_unmask_what_is_not_masked_is_told)
{
	int status = in_child_with_pioman(unmask_twice);

	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGABRT);
	CHECK(strstr(said, "unmasked that is not masked: the function at") !=
	      NULL);
}
