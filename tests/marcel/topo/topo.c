/* marcel/topo/topo.c: the tree, on machines that exist on paper only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../check.h"
#include "../../../marcel/topo/topo.h"

static struct marcel_topo topo;
static hwloc_topology_t hw;

/* Build a machine from hwloc's words, with one VP on each given CPU. */
static void build(const char *machine, const int *cpus, int n)
{
	int all[MARCEL_VP_MAX];

	CHECK_INT(hwloc_topology_init(&hw), 0);
	CHECK_INT(hwloc_topology_set_synthetic(hw, machine), 0);
	CHECK_INT(hwloc_topology_load(hw), 0);
	for (int i = 0; i < n; i++)
		all[i] = i;
	CHECK_INT(marcel_topo_build(hw, cpus ? cpus : all, n, &topo), 0);
	CHECK_PTR(topo.places[0].type, NULL);
	marcel_topo_locate(hw, cpus ? cpus : all, n, &topo);
	hwloc_topology_destroy(hw);
}

/* The kinds from a VP's leaf to the root, as "vp core machine". */
static const char *path_of(int vp)
{
	static char out[200];
	struct marcel_level *l = marcel_topo_leaf(&topo, vp);

	out[0] = 0;
	for (; l != NULL; l = l->parent) {
		strcat(out, marcel_level_name(l->kind));
		if (l->parent != NULL)
			strcat(out, " ");
	}
	return out;
}

static int count_vps(const marcel_vpset_t *s)
{
	int n = 0;

	for (int i = 0; i < MARCEL_VP_MAX; i++)
		n += marcel_vpset_has(s, i);
	return n;
}

/* What holds of every tree. */
static void check_tree(void)
{
	unsigned leaves = 0;

	for (unsigned i = 0; i < topo.nlevels; i++) {
		struct marcel_level *l = &topo.levels[i];
		marcel_vpset_t below;

		CHECK_INT(marcel_topo_number(&topo, l), i);
		CHECK((l->parent == NULL) == (i == 0));
		CHECK(l->nchildren != 1); /* no level without siblings */
		CHECK((l->nchildren == 0) == (l->vp >= 0));
		leaves += l->vp >= 0;
		marcel_vpset_zero(&below);
		if (l->vp >= 0) {
			CHECK_PTR(marcel_topo_leaf(&topo, l->vp), l);
			marcel_vpset_add(&below, l->vp);
		}
		for (unsigned c = 0; c < l->nchildren; c++) {
			CHECK_PTR(l->children[c]->parent, l);
			for (int w = 0; w < MARCEL_VPSET_WORDS; w++) {
				uint64_t bits = l->children[c]->vps.bits[w];

				CHECK_INT(below.bits[w] & bits, 0);
				below.bits[w] |= bits;
			}
		}
		CHECK_INT(memcmp(&below, &l->vps, sizeof(below)), 0);
		CHECK_PTR(marcel_topo_find(&topo, &l->vps), l);
	}
	CHECK_INT(leaves, topo.nvp);
	CHECK_INT(count_vps(&topo.levels[0].vps), topo.nvp);
}

/* Every other VP is a neighbour once, and none is nearer than an earlier. */
static void check_neighbours(void)
{
	for (int vp = 0; vp < topo.nvp; vp++) {
		marcel_vpset_t seen;
		int last = 0;

		marcel_vpset_zero(&seen);
		marcel_vpset_add(&seen, vp);
		for (int i = 0; i < topo.nvp - 1; i++) {
			int n = marcel_topo_neighbour(&topo, vp, i), shared;
			marcel_vpset_t two;

			CHECK(!marcel_vpset_has(&seen, n));
			marcel_vpset_add(&seen, n);
			marcel_vpset_zero(&two);
			marcel_vpset_add(&two, vp);
			marcel_vpset_add(&two, n);
			shared = count_vps(&marcel_topo_find(&topo, &two)->vps);
			CHECK(shared >= last);
			last = shared;
		}
	}
}

static void check_all(void)
{
	check_tree();
	check_neighbours();
}

TEST(one_vp_is_the_machine)
{
	build("package:2 core:4 pu:1", NULL, 1);
	check_all();
	CHECK_STR(path_of(0), "machine");
	CHECK_INT(topo.nlevels, 1);
	marcel_topo_free(&topo);
}

TEST(levels_without_siblings_are_left_out)
{
	build("package:1 l3:1 l2:2 core:1 pu:1", NULL, 2);
	check_all();
	CHECK_STR(path_of(0), "vp machine");
	CHECK_STR(path_of(1), "vp machine");
	marcel_topo_free(&topo);

	build("node:4 l3:1 core:4 pu:1", NULL, 16);
	check_all();
	CHECK_STR(path_of(5), "vp numa machine");
	CHECK_INT(topo.levels[0].nchildren, 4);
	marcel_topo_free(&topo);
}

TEST(every_level_that_cuts_is_kept)
{
	build("package:2 node:2 l3:2 l2:2 core:2 pu:2", NULL, 64);
	check_all();
	CHECK_STR(path_of(63), "vp core l2 l3 numa package machine");
	CHECK_INT(marcel_topo_leaf(&topo, 63)->parent->index, 31);
	marcel_topo_free(&topo);
}

TEST(a_node_of_several_packages_is_above_them)
{
	build("group:2 [numa] package:2 core:4 pu:1", NULL, 16);
	check_all();
	CHECK_STR(path_of(0), "vp package numa machine");
	marcel_topo_free(&topo);
}

TEST(the_tree_is_cut_to_the_cpus_in_use)
{
	static const int cpus[] = { 1, 6, 7, 12 };

	/* CPUs 6 and 7 share a package, 1 and 12 are alone in theirs. */
	build("package:4 l2:2 core:2 pu:1", cpus, 4);
	check_all();
	CHECK_STR(path_of(0), "vp machine");
	CHECK_STR(path_of(1), "vp package machine");
	CHECK_STR(path_of(2), "vp package machine");
	CHECK_STR(path_of(3), "vp machine");
	CHECK_INT(marcel_topo_neighbour(&topo, 2, 0), 1);
	marcel_topo_free(&topo);
}

TEST(vps_may_share_a_cpu)
{
	static const int cpus[] = { 0, 1, 0, 1, 0 };

	build("core:2 pu:1", cpus, 5);
	check_all();
	CHECK_STR(path_of(4), "vp core machine");
	CHECK_INT(marcel_topo_neighbour(&topo, 4, 0), 0);
	CHECK_INT(marcel_topo_neighbour(&topo, 4, 1), 2);
	marcel_topo_free(&topo);
}

TEST(a_set_is_covered_by_the_lowest_level_that_can)
{
	marcel_vpset_t set;

	build("package:2 l3:2 core:4 pu:1", NULL, 16);
	check_all();
	marcel_vpset_zero(&set);
	CHECK_PTR(marcel_topo_find(&topo, &set), NULL);
	marcel_vpset_add(&set, 200); /* no such VP */
	CHECK_PTR(marcel_topo_find(&topo, &set), NULL);
	marcel_vpset_add(&set, 4);
	CHECK_PTR(marcel_topo_find(&topo, &set), marcel_topo_leaf(&topo, 4));
	marcel_vpset_add(&set, 7);
	CHECK_INT(marcel_topo_find(&topo, &set)->kind, MARCEL_LEVEL_L3);
	marcel_vpset_add(&set, 3);
	CHECK_INT(marcel_topo_find(&topo, &set)->kind, MARCEL_LEVEL_PACKAGE);
	marcel_vpset_add(&set, 15);
	CHECK_INT(marcel_topo_find(&topo, &set)->kind, MARCEL_LEVEL_MACHINE);
	marcel_topo_free(&topo);
}

/* "Machine 0 Package 1 Core -" for the places of the machine. */
static const char *places(void)
{
	static char out[200];
	char *at = out;

	out[0] = 0;
	for (const struct marcel_place *p = topo.places; p->type != NULL; p++) {
		at += sprintf(at, "%s%s ", at > out ? " " : "", p->type);
		at += p->index < 0 ? sprintf(at, "-")
				   : sprintf(at, "%d", p->index);
	}
	return out;
}

TEST(places_are_what_all_vps_are_in)
{
	static const int second[] = { 4, 5 }, pair[] = { 6, 7 }, one[] = { 7 };

	build("package:2 l3:1 core:2 pu:2", NULL, 8);
	CHECK_STR(places(),
		  "Machine 0 NUMANode 0 Package - L3Cache - Core - PU -");
	marcel_topo_free(&topo);
	build("package:2 l3:1 core:2 pu:2", second, 2);
	CHECK_STR(places(),
		  "Machine 0 NUMANode 0 Package 1 L3Cache 1 Core 2 PU -");
	marcel_topo_free(&topo);
	build("package:2 l3:1 core:2 pu:2", pair, 2);
	CHECK_STR(places(),
		  "Machine 0 NUMANode 0 Package 1 L3Cache 1 Core 3 PU -");
	marcel_topo_free(&topo);
	build("package:2 l3:1 core:2 pu:2", one, 1);
	CHECK_STR(places(),
		  "Machine 0 NUMANode 0 Package 1 L3Cache 1 Core 3 PU 7");
	marcel_topo_free(&topo);
}

TEST(places_are_listed_from_the_largest_on)
{
	build("package:1 numa:2 core:2 pu:1", NULL, 2);
	CHECK_STR(places(), "Machine 0 Package 0 NUMANode 0 Core - PU -");
	marcel_topo_free(&topo);
	CHECK_INT(marcel_topo_build(NULL, NULL, 1, &topo), 0);
	CHECK_STR(places(), "");
	marcel_topo_free(&topo);
}

TEST(random_machines_and_cpus_give_proper_trees)
{
	for (int round = 0; round < 30; round++) {
		char machine[100];
		int cpus[64], per[5], total = 1, n = 0;

		for (int i = 0; i < 5; i++)
			total *= per[i] = 1 + (int)(check_random() % 3);
		snprintf(machine, sizeof(machine),
			 "package:%d node:%d l3:%d l2:%d core:%d pu:1", per[0],
			 per[1], per[2], per[3], per[4]);
		for (int i = 0; i < total && n < 64; i++)
			if (check_random() % 2 != 0 ||
			    (n == 0 && i == total - 1))
				cpus[n++] = i;
		build(machine, cpus, n);
		check_all();
		marcel_topo_free(&topo);
	}
}

/* Whether a file of this folder is mapped. */
static bool is_mapped(const char *folder)
{
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[600];

	CHECK(f != NULL);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, folder) != NULL;
	fclose(f);
	return found;
}

TEST(the_machine_is_read_without_plugins)
{
	char **before = environ;
	int cpu[1];

	CHECK_INT(unsetenv("HWLOC_PLUGINS_PATH"), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(marcel_topo_load("", &hw, cpu, 1), 1);
		CHECK(!is_mapped("/hwloc/hwloc_"));
		hwloc_topology_destroy(hw);
	}
	CHECK_PTR(environ, before);
	CHECK_PTR(getenv("HWLOC_PLUGINS_PATH"), NULL);
}

TEST(who_sets_variables_of_hwloc_has_his_way)
{
	int cpu[4];

	CHECK_INT(setenv("HWLOC_SYNTHETIC", "core:3 pu:1", 1), 0);
	CHECK_INT(marcel_topo_load("", &hw, cpu, 4), 3);
	CHECK(!hwloc_topology_is_thissystem(hw));
	hwloc_topology_destroy(hw);
	CHECK_INT(unsetenv("HWLOC_SYNTHETIC"), 0);
}
