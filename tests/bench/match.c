/*
 * What matching costs: ns per message (a post and an arrival) against the
 * number of messages that are in the tables at once. It must be flat, but for
 * cache misses.
 *
 *   match [LIMIT]           all patterns at 10, 100, ... LIMIT (1,000,000):
 *                           lines "PATTERN_N VALUE ns"
 *   match PATTERN N TIMES   one pattern alone: for callgrind and perf; prints
 *                           the cells visited per message, if they are counted
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/diag.h>

#include "../../nmad/core/match.h"
#include "cells.h"

enum { GATES = 16, REPEATS = 5, WORK = 400000 };

static char gate_memory[GATES];
static struct nm_match m;
static struct nm_match_session s;
static struct nm_match_recv *recvs;
static struct nm_match_msg *msgs;
static uint32_t *order; /* a permutation of 0 .. n-1 */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct nm_gate *gate(uint32_t i)
{
	return (struct nm_gate *)&gate_memory[i % GATES];
}

static void post(uint32_t i, struct nm_gate *from, uint32_t tag, bool any_tag)
{
	struct nm_match_msg *out;

	nm_match_recv_init(&recvs[i], &s, from, tag, any_tag);
	base_check(nm_match_post(&m, &recvs[i], &out) == 0);
}

static void arrive(uint32_t i, uint32_t tag)
{
	struct base_list woken;

	if (nm_match_arrival(&m, &s, gate(tag), tag) != NULL)
		return;
	base_list_init(&woken);
	msgs[i].session = &s;
	msgs[i].gate = gate(tag);
	msgs[i].tag = tag;
	base_check(nm_match_keep(&m, &msgs[i], &woken) == 0);
}

/* --- patterns: n receives and n messages; all match in the end --- */

static void same_tag(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		post(i, gate(0), 0, false);
	for (uint32_t i = 0; i < n; i++)
		arrive(i, 0);
}

static void in_order(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		post(i, gate(i), i, false);
	for (uint32_t i = 0; i < n; i++)
		arrive(i, i);
}

static void shuffle(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		post(i, gate(order[i]), order[i], false);
	for (uint32_t i = 0; i < n; i++)
		arrive(i, i);
}

static void any_source(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		post(i, NULL, order[i], false);
	for (uint32_t i = 0; i < n; i++)
		arrive(i, i);
}

/* Every eighth receive leaves source, tag or both open. */
static void wildcards(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t tag = order[i];
		unsigned open = i % 8 == 0 ? i / 8 % 3 + 1 : 0;

		post(i, open & 1 ? NULL : gate(tag), tag, open & 2);
	}
	for (uint32_t i = 0; i < n; i++)
		arrive(i, i);
	/* Wildcards may have taken what others wait for. */
	while (s.nmsgs > 0)
		nm_match_drain(&m, &s);
	for (uint32_t i = 0; i < n; i++)
		nm_match_cancel(&m, &recvs[i]);
}

static void unexpected(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		arrive(i, i);
	for (uint32_t i = 0; i < n; i++)
		post(i, gate(order[i]), order[i], false);
}

static void unexpected_wild(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		arrive(i, order[i]);
	for (uint32_t i = 0; i < n; i++)
		post(i, NULL, 0, true);
}

static const struct pattern {
	const char *name;
	void (*fn)(uint32_t n);
} patterns[] = {
	{ "same-tag", same_tag },
	{ "in-order", in_order },
	{ "shuffle", shuffle },
	{ "any-source", any_source },
	{ "wildcards", wildcards },
	{ "unexpected", unexpected },
	{ "unexp-wild", unexpected_wild },
};

static void prepare(uint32_t n)
{
	uint64_t seed = 1;

	recvs = realloc(recvs, n * sizeof(*recvs));
	msgs = realloc(msgs, n * sizeof(*msgs));
	order = realloc(order, n * sizeof(*order));
	base_check(recvs && msgs && order);
	memset(recvs, 0, n * sizeof(*recvs));
	memset(msgs, 0, n * sizeof(*msgs));
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t j, t = order[i];

		seed = base_hash_mix(seed, i);
		j = (uint32_t)(seed % (i + 1));
		order[i] = order[j];
		order[j] = t;
	}
	base_check(nm_match_reserve(&m, n) == 0);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median of REPEATS, each over at least WORK messages. */
static double measure(const struct pattern *p, uint32_t n)
{
	uint32_t times = n < WORK ? WORK / n : 1;
	double ns[REPEATS];

	p->fn(n);
	for (int r = 0; r < REPEATS; r++) {
		uint64_t start = now();

		for (uint32_t i = 0; i < times; i++)
			p->fn(n);
		ns[r] = (double)(now() - start) / ((double)n * times);
	}
	qsort(ns, REPEATS, sizeof(ns[0]), by_value);
	return ns[REPEATS / 2];
}

static int run_one(const char *name, uint32_t n, long times)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(patterns); i++) {
		if (strcmp(patterns[i].name, name) != 0)
			continue;
		prepare(n);
		for (long t = 0; t < times; t++)
			patterns[i].fn(n);
		if (&bench_cells == NULL)
			return 0;
		/* A message looks at one at least. */
		base_check(bench_cells >= (uint64_t)times * n);
		printf("%s_%u %.4f cells/message\n", name, n,
		       (double)bench_cells / (double)times / n);
		return 0;
	}
	fprintf(stderr, "match: no pattern %s\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	uint32_t limit = 1000000;

	nm_match_init(&m);
	nm_match_session_init(&m, &s);
	if (argc == 4)
		return run_one(argv[1], (uint32_t)atol(argv[2]), atol(argv[3]));
	if (argc == 2)
		limit = (uint32_t)atol(argv[1]);
	for (uint32_t n = 10; n <= limit; n *= 10) {
		prepare(n);
		for (size_t i = 0; i < BASE_ARRAY_LEN(patterns); i++) {
			printf("%s_%u %.2f ns\n", patterns[i].name, n,
			       measure(&patterns[i], n));
			fflush(stdout);
		}
	}
	return 0;
}
