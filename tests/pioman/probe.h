/*
 * What the tests on a machine of paper share: a machine, an ltask that counts
 * and notes where it ran, and one that stays inside its run until let out.
 */
#ifndef TESTS_PIOMAN_PROBE_H
#define TESTS_PIOMAN_PROBE_H

#include "../check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>

#include <pioman/pioman.h>

#include "../../pioman/ltask/poll.h"
#include "../../pioman/ltask/tree.h"
#include "fake.h"

/* Two packages of two VPs: machine > package > VP. */
static const unsigned two_by_two[] = { 2, 2, 0 };

static inline void setup(void)
{
	setenv("PIOM_ENGINE", "none", 1);
	unsetenv("PIOM_MODE");
	unsetenv("PIOM_QUEUES");
	fake_machine(two_by_two);
	CHECK_INT(piom_init(), 0);
}

static inline void teardown(void)
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

static inline enum piom_ltask_result probe_run(void *arg)
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

static inline void submit(struct probe *p, unsigned options, unsigned long vps)
{
	marcel_vpset_t set = { { vps } };

	piom_ltask_init(&p->task, probe_run, p, options, vps ? &set : NULL);
	piom_ltask_submit(&p->task);
}

static inline void poll_as(int vp)
{
	fake_be_vp(vp);
	piom_poll();
}

static inline int runs(struct probe *p)
{
	return load_relaxed(&p->runs);
}

static inline bool pending(int vp)
{
	bool found;

	fake_be_vp(vp);
	piom_poll_round(vp, 0, PIOM_POINT_IDLE, &found);
	return found;
}

/* As an idle VP does: asks for a while, then says so and looks once more. */
static inline bool may_sleep(int vp)
{
	for (int i = 0; i < 40; i++)
		if (!pending(vp))
			return !pending(vp);
	return false;
}

/* A task that stays inside its run until it is let out. */
struct gate {
	struct piom_ltask task;
	ATOMIC(int) inside;
	ATOMIC(int) open;
};

static inline enum piom_ltask_result gate_run(void *arg)
{
	struct gate *g = arg;

	store_release(&g->inside, 1);
	while (!load_acquire(&g->open))
		sched_yield();
	return PIOM_LTASK_DONE;
}

static inline void *poll_once(void *arg)
{
	fake_be_vp(*(int *)arg);
	piom_poll();
	return NULL;
}

static inline pthread_t gate_enter(struct gate *g, int *vp)
{
	pthread_t t;

	piom_ltask_init(&g->task, gate_run, g, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&g->task);
	CHECK_INT(pthread_create(&t, NULL, poll_once, vp), 0);
	while (!load_acquire(&g->inside))
		sched_yield();
	return t;
}

#endif
