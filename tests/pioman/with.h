/*
 * Tests that run with marcel and pioman started, once for each mode that their
 * rule must hold in.
 */
#ifndef TESTS_PIOMAN_WITH_H
#define TESTS_PIOMAN_WITH_H

#include "../check.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <marcel/marcel.h>
#include <pioman/pioman.h>

/* MARCEL_NVP, PIOM_ENGINE, PIOM_WAIT, PIOM_SPIN_US */
struct mode {
	int nvp;
	const char *engine, *wait, *spin_us;
};

static inline void with_mode(const struct mode *m, void (*body)(void))
{
	struct marcel_config config = { .nvp = m->nvp };

	printf("# %d VPs, engine %s, wait %s, spin %s us\n", m->nvp, m->engine,
	       m->wait, m->spin_us);
	fflush(stdout);
	setenv("PIOM_ENGINE", m->engine, 1);
	setenv("PIOM_WAIT", m->wait, 1);
	setenv("PIOM_SPIN_US", m->spin_us, 1);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(piom_init(), 0);
	body();
	CHECK_INT(piom_exit(), 0);
	CHECK_INT(marcel_end(), 0);
}

/* Whoever waits must be woken in each of these. */
static const struct mode every_mode[] = {
	{ 1, "marcel", "auto", "20" },    { 4, "marcel", "auto", "20" },
	{ 1, "marcel", "auto", "0" },     { 4, "marcel", "auto", "0" },
	{ 1, "marcel", "passive", "0" },  { 4, "marcel", "passive", "0" },
	{ 1, "marcel", "active", "5" },   { 4, "marcel", "active", "5" },
	{ 4, "marcel", "spin", "5" },     { 1, "none", "auto", "20" },
	{ 4, "none", "auto", "20" },      { 4, "none", "passive", "0" },
	{ 1, "pthread", "auto", "20" },   { 4, "pthread", "auto", "0" },
	{ 4, "pthread", "passive", "0" },
};

/* Each of them; if TEST_MODE says one, instead of every_mode that one, and of
 * others those of its engine: tests/combinations/run. */
static inline void with_all(const struct mode *m, size_t n, void (*body)(void))
{
	const char *said = getenv("TEST_MODE");
	char engine[16], wait[16];
	struct mode one = { 0, engine, wait, "20" };

	if (m == every_mode && said != NULL) {
		CHECK_INT(sscanf(said, "%d %15s %15s", &one.nvp, engine, wait),
			  3);
		with_mode(&one, body);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (said == NULL || strstr(said, m[i].engine) != NULL)
			with_mode(&m[i], body);
}

#define WITH_ALL(modes, body) with_all(modes, BASE_ARRAY_LEN(modes), body)

static const struct mode engine_marcel[] = {
	{ 1, "marcel", "auto", "20" },
	{ 4, "marcel", "auto", "20" },
};

#endif
