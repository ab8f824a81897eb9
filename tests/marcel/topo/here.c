/*
 * marcel/topo, os/linux/affinity.c: threads are where the tree says, and the
 * tree is what the kernel says of this machine, whichever it is.
 */
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>

#include <marcel/blocking.h>
#include "../here.h"

static unsigned node[MARCEL_VP_MAX]; /* of the kernel's, by VP */

static void start(void)
{
	struct marcel_config config = { 0 };

	CHECK_INT(marcel_init(&config), 0);
	on_each_vp(note_node, node);
}

static void stop(void)
{
	CHECK_INT(marcel_end(), 0);
}

__attribute__((constructor)) static void before_each_test(void)
{
	check_fixture(start, stop);
}

/* --- the tree --- */

static int count_kind(const struct marcel_level *l, enum marcel_level_kind kind)
{
	int n = l->kind == kind;

	for (unsigned i = 0; i < l->nchildren; i++)
		n += count_kind(l->children[i], kind);
	return n;
}

/* Packages, third and second levels of caches and cores cut nothing more. */
TEST(the_tree_is_that_of_the_machine_that_was_asked_for)
{
	const char *said = getenv("TEST_MACHINE");
	struct marcel_level *machine = marcel_topo_machine();
	int nodes, cores, l3s;

	if (said == NULL)
		check_skip("no machine was asked for: tools/lab/numa");
	CHECK_INT(sscanf(said, "%d %d %d", &nodes, &cores, &l3s), 3);
	CHECK_INT(marcel_nvp(), nodes * cores);
	CHECK_INT(marcel_sched.topo.nlevels, 1 + nodes + nodes * cores);
	CHECK_INT(count_kind(machine, MARCEL_LEVEL_NUMA), nodes);
	CHECK_INT(count_kind(machine, MARCEL_LEVEL_VP), nodes * cores);
	CHECK_INT(machine->nchildren, nodes);
	for (int i = 0; i < nodes; i++)
		CHECK_INT(machine->children[i]->nchildren, cores);
	for (const struct marcel_place *p = marcel_topo_places(); p->type; p++)
		l3s -= strcmp(p->type, "L3Cache") == 0 ? nodes : 0;
	CHECK_INT(l3s, 0);
}

static struct marcel_level *numa_of(int vp)
{
	struct marcel_level *l = marcel_topo_vp(vp);

	while (l != NULL && l->kind != MARCEL_LEVEL_NUMA)
		l = l->parent;
	return l;
}

TEST(vps_have_a_node_in_common_if_their_cpus_do)
{
	for (int a = 0; a < marcel_nvp(); a++)
		for (int b = 0; b < a; b++)
			CHECK_INT(numa_of(a) == numa_of(b), node[a] == node[b]);
}

TEST(the_others_of_a_node_are_robbed_before_those_of_other_nodes)
{
	for (int vp = 0; vp < marcel_nvp(); vp++) {
		bool left = false;

		for (int i = 0; i < marcel_nvp() - 1; i++) {
			int other = marcel_sched.vps[vp].victims[i]->id;

			left |= node[other] != node[vp];
			CHECK_INT(node[other] != node[vp], left);
		}
	}
}

/* --- where threads run --- */

/* On the CPU of its VP and no other. */
static void check_bound(void)
{
	int cpu = marcel_vp_cpu(marcel_current_vp());
	cpu_set_t mine;

	CHECK_INT(here().cpu, cpu);
	CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CHECK_INT(CPU_COUNT(&mine), 1);
	CHECK(CPU_ISSET(cpu, &mine));
}

static void *is_bound(void *arg)
{
	check_bound();
	return arg;
}

TEST(each_vp_is_on_its_cpu)
{
	on_each_vp(is_bound, NULL);
}

static int wire[2];

static void *write_from_spare(void *arg)
{
	check_bound();
	CHECK(gettid() != *(pid_t *)arg);
	CHECK_INT(write(wire[1], "", 1), 1);
	return NULL;
}

/* Whoever runs the others while one is in the kernel. */
static void *sleep_in_kernel(void *arg)
{
	pid_t tid = gettid();
	marcel_attr_t attr;
	marcel_t t;
	char c;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_current_vp()), 0);
	CHECK_INT(marcel_create(&t, &attr, write_from_spare, &tid), 0);
	marcel_blocking_begin();
	CHECK_INT(syscall(SYS_read, wire[0], &c, 1), 1);
	marcel_blocking_end();
	check_bound();
	CHECK_INT(marcel_join(t, NULL), 0);
	return arg;
}

TEST(who_takes_over_from_a_blocked_kernel_thread_is_on_its_cpu)
{
	CHECK_INT(pipe(wire), 0);
	on_each_vp(sleep_in_kernel, NULL);
	close(wire[0]);
	close(wire[1]);
}

/* --- who is woken --- */

static ATOMIC(int) ran_on; /* node + 1 */

static void *note_where(void *arg)
{
	store_release(&ran_on, (int)here().node + 1);
	return arg;
}

/* This VP is taken, and all others sleep. */
static void *make_one(void *arg)
{
	marcel_t t;

	until_others_sleep();
	store_relaxed(&ran_on, 0);
	CHECK_INT(marcel_create(&t, NULL, note_where, NULL), 0);
	while (load_acquire(&ran_on) == 0)
		sched_yield();
	CHECK_INT(load_relaxed(&ran_on) - 1, here().node);
	CHECK_INT(marcel_join(t, NULL), 0);
	return arg;
}

TEST(a_sleeper_of_the_same_node_is_woken_for_a_thread)
{
	on_each_vp(make_one, NULL);
}

/* --- memory --- */

static int node_of_page(const void *p)
{
	int n = -1;

	CHECK_INT(syscall(SYS_get_mempolicy, &n, NULL, 0, p,
			  MPOL_F_NODE | MPOL_F_ADDR),
		  0);
	return n;
}

static void *look_at_stack(void *arg)
{
	volatile char deep[20000];
	unsigned mine = here().node;

	deep[0] = deep[sizeof(deep) - 1] = 0;
	CHECK_INT(node_of_page((const void *)&deep[0]), mine);
	CHECK_INT(node_of_page((const void *)&deep[sizeof(deep) - 1]), mine);
	CHECK_INT(node_of_page(__builtin_frame_address(0)), mine);
	return arg;
}

/* Also those that others have used before. */
TEST(stacks_are_in_the_memory_of_the_node)
{
	if (syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) != 0)
		check_skip("the kernel says nothing of nodes");
	for (int i = 0; i < 3; i++)
		on_each_vp(look_at_stack, NULL);
}
