/*
 * What ltasks cost, in ns: submit + run + completion seen on the own core (the
 * paper: 700), through the machine's queue, and on another core; a poll with
 * nothing to do; a condition that is signalled, and one that is waited for by
 * a parked thread.
 *
 *   ltask            all; lines "NAME VALUE ns", of medians
 *   ltask NAME N     one alone, N times: for perf and callgrind
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

#include "measure.h"

enum { REPEATS = 9 };

static enum piom_ltask_result nothing(void *arg)
{
	(void)arg;
	return PIOM_LTASK_DONE;
}

static enum piom_ltask_result quiet(void *arg)
{
	(void)arg;
	return PIOM_LTASK_QUIET;
}

/* The VP of the caller, or the whole machine. */
static void init_for(struct piom_ltask *t, int vp)
{
	marcel_vpset_t set;

	marcel_vpset_zero(&set);
	if (vp >= 0)
		marcel_vpset_add(&set, vp);
	piom_ltask_init(t, nothing, NULL, PIOM_LTASK_ONESHOT,
			vp >= 0 ? &set : NULL);
}

static void submit_and_poll(long n, int vp)
{
	struct piom_ltask t;

	init_for(&t, vp);
	for (long i = 0; i < n; i++) {
		piom_ltask_submit(&t);
		do
			piom_poll();
		while (!piom_ltask_test(&t));
	}
}

static void own_core(long n)
{
	submit_and_poll(n, marcel_current_vp());
}

static void machine(long n)
{
	submit_and_poll(n, -1);
}

/* Another VP runs it when idle; we only look. */
static void other_core(long n)
{
	struct piom_ltask t;

	init_for(&t, 1);
	for (long i = 0; i < n; i++) {
		piom_ltask_submit(&t);
		while (!piom_ltask_test(&t))
			;
	}
}

static void empty_poll(long n)
{
	for (long i = 0; i < n; i++)
		piom_poll();
}

/* A queue that holds one quiet ltask. */
static void poll_of_one(long n)
{
	struct piom_ltask t;

	piom_ltask_init(&t, quiet, NULL, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&t);
	for (long i = 0; i < n; i++)
		piom_poll();
	piom_ltask_cancel(&t);
}

static void cond_null(long n)
{
	piom_cond_t c;

	for (long i = 0; i < n; i++) {
		piom_cond_init(&c);
		piom_cond_signal(&c);
		piom_cond_wait(&c);
	}
}

struct pair {
	piom_cond_t go, back;
	long n;
};

static void *answer(void *arg)
{
	struct pair *p = arg;

	for (long i = 0; i < p->n; i++) {
		piom_cond_wait(&p->go);
		piom_cond_init(&p->go);
		piom_cond_signal(&p->back);
	}
	return NULL;
}

/* Two threads of one VP in turns; each parks, since the other is ready. */
static void cond_switch(long n)
{
	struct pair p = { .n = n };
	marcel_attr_t attr;
	marcel_t t;

	marcel_attr_init(&attr);
	marcel_attr_setvp(&attr, marcel_current_vp());
	marcel_create(&t, &attr, answer, &p);
	for (long i = 0; i < n; i++) {
		piom_cond_signal(&p.go);
		piom_cond_wait(&p.back);
		piom_cond_init(&p.back);
	}
	marcel_join(t, NULL);
	marcel_attr_destroy(&attr);
}

static const struct bench {
	const char *name;
	void (*fn)(long n);
	long n;
	int nvp; /* needs so many VPs */
} benches[] = {
	{ "own", own_core, 2000000, 1 },    /* submit + run + seen */
	{ "machine", machine, 2000000, 1 }, /* the same, machine's queue */
	{ "other", other_core, 100000, 2 }, /* the same, run by another core */
	{ "empty", empty_poll, 20000000, 1 }, /* poll, all queues empty */
	{ "one", poll_of_one, 5000000, 1 },   /* poll, one quiet ltask */
	{ "cond", cond_null, 5000000, 1 },    /* init, signal, wait */
	{ "switch", cond_switch, 500000, 1 }, /* there and back */
};

static void measure(const struct bench *b)
{
	double ns[REPEATS];

	if (marcel_nvp() < b->nvp)
		return;
	b->fn(b->n / 10);
	for (int r = 0; r < REPEATS; r++) {
		uint64_t start = now_ns();

		b->fn(b->n / REPEATS);
		ns[r] = (double)(now_ns() - start) / (double)(b->n / REPEATS);
	}
	qsort(ns, REPEATS, sizeof(ns[0]), by_value);
	printf("%s %.2f ns\n", b->name, ns[REPEATS / 2]);
}

int main(int argc, char **argv)
{
	if (marcel_init(NULL) < 0 || piom_init() < 0)
		return 1;
	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
		if (argc < 2)
			measure(&benches[i]);
		else if (strcmp(argv[1], benches[i].name) == 0)
			benches[i].fn(argc > 2 ? atol(argv[2]) : benches[i].n);
	}
	piom_exit();
	marcel_end();
	return 0;
}
