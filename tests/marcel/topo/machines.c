/*
 * MARCEL_TOPOLOGY: the runtime as if on another machine, recorded or made of
 * words. The levels that cut, a queue for each, the nearest robbed first; and
 * it runs, on whatever CPUs there are.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/atomic.h>
#include "../../../marcel/sched/runq.h"
#include "../here.h"

/* Start as on this machine, with a VP for each of its CPUs. */
static void start_on(const char *machine)
{
	struct marcel_config config = { 0 };

	setenv("MARCEL_TOPOLOGY", machine, 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_TOPOLOGY");
}

static void stop(void)
{
	CHECK_INT(marcel_end(), 0);
}

/* A recording beside this file. */
static void start_on_file(const char *name)
{
	const char *folder = getenv("MACHINES");
	char path[4096];

	if (folder == NULL)
		check_skip("MACHINES is not set: run this through meson test");
	snprintf(path, sizeof(path), "%s/%s.xml", folder, name);
	start_on(path);
}

/* The kinds from a VP's leaf to the root, as "vp core machine". */
static const char *path_of(int vp)
{
	static char out[200];
	struct marcel_level *l = marcel_topo_vp(vp);

	out[0] = 0;
	for (; l != NULL; l = l->parent) {
		strcat(out, marcel_level_name(l->kind));
		if (l->parent != NULL)
			strcat(out, " ");
	}
	return out;
}

/* Each level above a VP has a queue of its own, and the VP looks at it. */
static void check_queues(void)
{
	for (int i = 0; i < marcel_nvp(); i++) {
		struct marcel_vp *vp = &marcel_sched.vps[i];
		struct marcel_level *l = marcel_topo_vp(i);
		unsigned n = 0;

		for (; l != NULL; l = l->parent, n++)
			CHECK_PTR(vp->above[n],
				  &marcel_sched.levelqs[marcel_topo_number(
					  &marcel_sched.topo, l)]);
		CHECK_INT(vp->nabove, n);
	}
}

static int count_vps(const marcel_vpset_t *s)
{
	int n = 0;

	for (int i = 0; i < MARCEL_VP_MAX; i++)
		n += marcel_vpset_has(s, i);
	return n;
}

/* How many VPs the lowest level has that covers both. */
static int distance(int a, int b)
{
	marcel_vpset_t two;

	marcel_vpset_zero(&two);
	marcel_vpset_add(&two, a);
	marcel_vpset_add(&two, b);
	return count_vps(&marcel_topo_cover(&two)->vps);
}

/* All others once, and none is nearer than one before it. */
static void check_victims(void)
{
	for (int i = 0; i < marcel_nvp(); i++) {
		marcel_vpset_t seen;
		int last = 0;

		marcel_vpset_zero(&seen);
		marcel_vpset_add(&seen, i);
		for (int k = 0; k < marcel_nvp() - 1; k++) {
			int other = marcel_sched.vps[i].victims[k]->id;

			CHECK(!marcel_vpset_has(&seen, other));
			marcel_vpset_add(&seen, other);
			CHECK(distance(i, other) >= last);
			last = distance(i, other);
		}
	}
}

/* --- what they look like --- */

static void check_machine(int nvp)
{
	CHECK_INT(marcel_nvp(), nvp);
	check_queues();
	check_victims();
}

/* Of the papers: four packages of four cores; four nodes of two. */
TEST(sixteen_cores_in_four_packages)
{
	start_on("package:4 core:4 pu:1");
	check_machine(16);
	CHECK_STR(path_of(9), "vp package machine");
	CHECK_INT(marcel_topo_machine()->nchildren, 4);
	CHECK_PTR(marcel_topo_level(MARCEL_LEVEL_PACKAGE, 2),
		  marcel_topo_vp(9)->parent);
	CHECK_PTR(marcel_topo_level(MARCEL_LEVEL_CORE, 0), NULL);
	for (int i = 0; i < 3; i++)
		CHECK_INT(marcel_sched.vps[5].victims[i]->id, 4 + (i + 2) % 4);
	stop();
}

TEST(eight_cores_in_four_nodes)
{
	start_on_file("4x2");
	check_machine(8);
	CHECK_STR(path_of(7), "vp numa machine");
	CHECK_INT(marcel_sched.vps[7].victims[0]->id, 6);
	CHECK_INT(marcel_sched.vps[0].victims[0]->id, 1);
	stop();
}

TEST(cores_with_two_hardware_threads_each)
{
	start_on("package:2 core:64 pu:2");
	check_machine(256);
	CHECK_STR(path_of(255), "vp core package machine");
	CHECK_INT(marcel_topo_level(MARCEL_LEVEL_CORE, 127)->nchildren, 2);
	CHECK_INT(count_vps(&marcel_topo_level(MARCEL_LEVEL_PACKAGE, 1)->vps),
		  128);
	CHECK_INT(marcel_sched.vps[254].victims[0]->id, 255);
	stop();
}

/* Two caches of two cores of two threads; two cores of two and of one. */
TEST(packages_that_differ)
{
	start_on_file("irregular");
	check_machine(11);
	CHECK_STR(path_of(5), "vp core l2 package machine");
	CHECK_STR(path_of(8), "vp core package machine");
	CHECK_STR(path_of(10), "vp package machine");
	CHECK_INT(marcel_topo_level(MARCEL_LEVEL_L2, 1)->nchildren, 2);
	CHECK_PTR(marcel_topo_level(MARCEL_LEVEL_L2, 2), NULL);
	CHECK_INT(marcel_sched.vps[4].victims[0]->id, 5);
	CHECK_INT(distance(4, marcel_sched.vps[4].victims[2]->id), 4);
	CHECK_INT(marcel_sched.vps[10].victims[0]->id, 8);
	CHECK_INT(marcel_sched.vps[10].victims[1]->id, 9);
	stop();
}

TEST(a_machine_that_is_none_is_refused)
{
	static const char *const bad[] = { "x",       "package:0",      "/tmp",
					   "no.xml",  "core:x",         ".xml",
					   "core:-1", "/dev/null/a.xml" };
	struct marcel_config config = { 0 };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("MARCEL_TOPOLOGY", bad[i], 1);
		CHECK_INT(marcel_init(&config), -EINVAL);
		unsetenv("MARCEL_TOPOLOGY");
		CHECK_INT(marcel_nvp(), 0);
	}
}

/* What the VPs are called there are no CPUs of ours. */
TEST(nobody_is_bound_on_a_machine_that_is_not_ours)
{
	cpu_set_t before, now;

	CHECK_INT(sched_getaffinity(0, sizeof(before), &before), 0);
	start_on("package:1 core:1 pu:1");
	CHECK_INT(marcel_nvp(), 1);
	CHECK(!marcel_sched.bind);
	CHECK_INT(sched_getaffinity(0, sizeof(now), &now), 0);
	CHECK(CPU_EQUAL(&before, &now));
	stop();
	start_on("package:64 core:1 pu:1");
	CHECK(!marcel_sched.bind);
	CHECK(marcel_sched.oversubscribed || CPU_COUNT(&before) >= 64);
	stop();
}

/* --- who is robbed --- */

static struct marcel_thread loot[MARCEL_VP_MAX];

/* Something lies with every other VP; they sleep, and main takes it all. */
static void rob_all(void)
{
	struct marcel_vp *self = &marcel_sched.vps[0];
	struct marcel_thread *t;
	int last = 0, vp;

	until_others_sleep();
	for (int i = 1; i < marcel_nvp(); i++)
		CHECK(marcel_deque_push(i % 2 ? &marcel_sched.vps[i].fifo
					      : &marcel_sched.vps[i].seeds,
					&loot[i]));
	for (int i = 1; i < marcel_nvp(); i++) {
		t = marcel_runq_steal(self);
		CHECK(t != NULL);
		vp = (int)(t - loot);
		CHECK(distance(0, vp) >= last);
		last = distance(0, vp);
	}
	CHECK_PTR(marcel_runq_steal(self), NULL);
}

TEST(the_nearest_is_robbed_first)
{
	start_on("package:4 core:4 pu:1");
	rob_all();
	stop();
	start_on_file("4x2");
	rob_all();
	stop();
	start_on_file("irregular");
	rob_all();
	stop();
}

/* --- who is woken --- */

static ATOMIC(int) woken; /* VP + 1 */

static enum marcel_hook_answer note_vp(void *arg, int vp)
{
	int none = 0;

	(void)arg;
	cas_release(&woken, &none, vp + 1);
	return MARCEL_HOOK_NOTHING;
}

/* The hook runs on whoever is woken, and nobody else is. */
static void *kick_all(void *arg)
{
	int self = marcel_current_vp();

	until_others_sleep();
	store_relaxed(&woken, 0);
	marcel_kick(marcel_topo_machine());
	while (load_acquire(&woken) == 0)
		sched_yield();
	CHECK_INT(distance(self, load_acquire(&woken) - 1),
		  distance(self, marcel_sched.vps[self].victims[0]->id));
	return arg;
}

static void kick_on_each(void)
{
	struct marcel_hook hook = { .fn = note_vp };

	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &hook), 0);
	on_each_vp(kick_all, NULL);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &hook), 0);
}

TEST(the_nearest_is_woken_for_work_of_the_machine)
{
	start_on("package:4 core:4 pu:1");
	kick_on_each();
	stop();
	start_on_file("4x2");
	kick_on_each();
	stop();
}

/* --- it runs --- */

static ATOMIC(int) wrong, ran;

static void *stay(void *arg)
{
	struct marcel_level *l = arg;

	for (int i = 0; i < 3; i++) {
		if (!marcel_vpset_has(&l->vps, marcel_current_vp()))
			fetch_add_relaxed(&wrong, 1);
		marcel_yield();
	}
	fetch_add_relaxed(&ran, 1);
	return NULL;
}

/* Threads of every level and band. */
static void run_many(int n)
{
	marcel_t *t = malloc((size_t)n * sizeof(*t));
	marcel_attr_t attr;

	CHECK(t != NULL);
	store_relaxed(&wrong, 0);
	store_relaxed(&ran, 0);
	for (int i = 0; i < n; i++) {
		unsigned k = (unsigned)i % marcel_sched.topo.nlevels;
		struct marcel_level *l = &marcel_sched.topo.levels[k];

		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setlevel(&attr, l), 0);
		CHECK_INT(marcel_attr_setpriority(&attr, i % 5 == 0   ? -1
							 : i % 7 == 0 ? 1
								      : 0),
			  0);
		CHECK_INT(marcel_create(&t[i], &attr, stay, l), 0);
	}
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&ran), n);
	CHECK_INT(load_relaxed(&wrong), 0);
	free(t);
}

TEST(threads_stay_in_their_levels_on_every_machine)
{
	start_on("package:4 core:4 pu:1");
	run_many(2000 / FEWER);
	stop();
	start_on_file("4x2");
	run_many(2000 / FEWER);
	stop();
	start_on_file("irregular");
	run_many(2000 / FEWER);
	stop();
}

TEST(there_may_be_far_more_vps_than_cpus)
{
	start_on("package:2 core:64 pu:2");
	run_many(10000 / FEWER);
	stop();
}

/* --- nobody starves --- */

enum { ENOUGH = 50 };

static ATOMIC(int) enough;

static void *run_until_all_have(void *arg)
{
	int n = *(int *)arg, done = 0;

	while (load_relaxed(&enough) < n) {
		if (++done == ENOUGH)
			fetch_add_relaxed(&enough, 1);
		marcel_yield();
	}
	return NULL;
}

static ATOMIC(int) spin;

static void *keep_vp(void *arg)
{
	while (load_relaxed(&spin) != 0)
		sched_yield();
	return arg;
}

/* Until main says so, no VP but the first has time. */
static void keep_others(marcel_t *t)
{
	marcel_attr_t attr;

	store_relaxed(&spin, 1);
	for (int i = 1; i < marcel_nvp(); i++) {
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvp(&attr, i), 0);
		CHECK_INT(marcel_create(&t[i], &attr, keep_vp, NULL), 0);
		while (load_relaxed(&t[i]->state) != MARCEL_T_RUNNING)
			sched_yield();
	}
}

/* Two threads of each level above VP 0: they are always ready. */
static void yield_on_all_levels(int priority)
{
	struct marcel_level *l = marcel_topo_vp(0);
	marcel_t t[2 * MARCEL_ABOVE_MAX];
	marcel_attr_t attr;
	int n = 0, want = 2 * (int)marcel_sched.vps[0].nabove;

	store_relaxed(&enough, 0);
	for (; l != NULL; l = l->parent)
		for (int i = 0; i < 2; i++) {
			CHECK_INT(marcel_attr_init(&attr), 0);
			CHECK_INT(marcel_attr_setlevel(&attr, l), 0);
			CHECK_INT(marcel_attr_setpriority(&attr, priority), 0);
			CHECK_INT(marcel_create(&t[n++], &attr,
						run_until_all_have, &want),
				  0);
		}
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(no_level_is_starved_by_those_below)
{
	marcel_t keepers[16];

	setenv("MARCEL_TIMESLICE_US", "0", 1);
	start_on("package:2 l2:2 core:2 pu:2");
	unsetenv("MARCEL_TIMESLICE_US");
	CHECK_STR(path_of(0), "vp core l2 package machine");
	keep_others(keepers);
	for (int i = -1; i <= 1; i++)
		yield_on_all_levels(i);
	store_relaxed(&spin, 0);
	for (int i = 1; i < 16; i++)
		CHECK_INT(marcel_join(keepers[i], NULL), 0);
	stop();
}
