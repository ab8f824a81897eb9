/*
 * Which CPUs a rank may use: the ranks are dealt out to the cores, packages,
 * ... of the machine that mpirun itself may use, round and round.
 */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* In the order of enum bind. */
static const struct {
	const char *name;
	hwloc_obj_type_t type;
} kinds[] = {
	{ "none", HWLOC_OBJ_MACHINE },  { "hwthread", HWLOC_OBJ_PU },
	{ "core", HWLOC_OBJ_CORE },     { "l3cache", HWLOC_OBJ_L3CACHE },
	{ "numa", HWLOC_OBJ_NUMANODE }, { "package", HWLOC_OBJ_PACKAGE },
};

struct places {
	hwloc_topology_t hw;
	hwloc_bitmap_t allowed, some;
	int n;
	cpu_set_t *set; /* of each place */
};

bool bind_named(const char *text, enum bind *out)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(text, kinds[i].name) == 0) {
			*out = (enum bind)i;
			return true;
		}
	return false;
}

static void add(struct places *p, hwloc_const_bitmap_t cpus)
{
	cpu_set_t *set = &p->set[p->n];

	CPU_ZERO(set);
	hwloc_bitmap_and(p->some, cpus, p->allowed);
	for (int i = hwloc_bitmap_first(p->some); i >= 0 && i < CPU_SETSIZE;
	     i = hwloc_bitmap_next(p->some, i))
		CPU_SET(i, set);
	p->n += CPU_COUNT(set) > 0;
}

/* A machine that does not tell its cores has one for each CPU. */
static void add_cpus(struct places *p)
{
	for (int i = hwloc_bitmap_first(p->allowed); i >= 0 && i < CPU_SETSIZE;
	     i = hwloc_bitmap_next(p->allowed, i)) {
		CPU_ZERO(&p->set[p->n]);
		CPU_SET(i, &p->set[p->n++]);
	}
}

static void load(struct places *p)
{
	p->allowed = must(hwloc_bitmap_alloc());
	p->some = must(hwloc_bitmap_alloc());
	if (hwloc_topology_init(&p->hw) < 0)
		must(NULL);
	hwloc_topology_set_flags(p->hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	if (hwloc_topology_load(p->hw) < 0) {
		say("which cores this machine has cannot be found");
		exit(1);
	}
	if (!hwloc_topology_is_thissystem(p->hw) ||
	    hwloc_get_cpubind(p->hw, p->allowed, HWLOC_CPUBIND_THREAD) < 0)
		hwloc_bitmap_fill(p->allowed);
	hwloc_bitmap_and(p->allowed, p->allowed,
			 hwloc_topology_get_allowed_cpuset(p->hw));
}

static void find(struct places *p, enum bind kind)
{
	int depth = hwloc_get_type_depth(p->hw, kinds[kind].type);
	unsigned n = hwloc_get_nbobjs_by_depth(p->hw, depth);

	p->set = must(calloc(CPU_SETSIZE + 1 + (size_t)n, sizeof(*p->set)));
	if (kind == BIND_NONE) {
		add(p, p->allowed);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		add(p, hwloc_get_obj_by_depth(p->hw, depth, i)->cpuset);
	if (p->n == 0 && (kind == BIND_CORE || kind == BIND_HWTHREAD))
		add_cpus(p);
	if (p->n > 0)
		return;
	say("--bind-to %s: this machine has none", kinds[kind].name);
	exit(EXIT_USAGE);
}

/* --- the report --- */

/* "0-3,8"; what does not fit is left out. */
static void list(char *out, size_t room, const cpu_set_t *set)
{
	size_t at = 0;

	out[0] = '\0';
	for (int i = 0, last; i < CPU_SETSIZE && at < room; i = last + 1) {
		last = i;
		if (!CPU_ISSET(i, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		at += (size_t)snprintf(out + at, room - at,
				       last > i ? "%s%d-%d" : "%s%d",
				       at > 0 ? "," : "", i, last);
	}
}

/* Which objects of a type, as lstopo counts them, have some of the CPUs. */
static void say_objects(struct places *p, char *out, size_t room,
			hwloc_obj_type_t type, const char *name,
			const cpu_set_t *cpus)
{
	int depth = hwloc_get_type_depth(p->hw, type);
	char text[256];
	cpu_set_t with;

	CPU_ZERO(&with);
	for (unsigned i = 0; i < hwloc_get_nbobjs_by_depth(p->hw, depth); i++)
		for (int c = 0; c < CPU_SETSIZE && i < CPU_SETSIZE; c++)
			if (CPU_ISSET(c, cpus) &&
			    hwloc_bitmap_isset(
				    hwloc_get_obj_by_depth(p->hw, depth, i)
					    ->cpuset,
				    (unsigned)c))
				CPU_SET(i, &with);
	list(text, sizeof(text), &with);
	out[0] = '\0';
	if (text[0] != '\0')
		snprintf(out, room, "%s %s, ", name, text);
}

static void report(struct places *p, const struct job *j)
{
	for (int i = 0; i < j->opt.ranks; i++) {
		const cpu_set_t *set = &p->set[i % p->n];
		char package[300], core[300], cpu[256];

		say_objects(p, package, sizeof(package), HWLOC_OBJ_PACKAGE,
			    "package", set);
		say_objects(p, core, sizeof(core), HWLOC_OBJ_CORE, "core", set);
		list(cpu, sizeof(cpu), set);
		say("rank %d %s: %s%sCPU %s", i,
		    j->opt.bind == BIND_NONE ? "is not bound" : "is bound to",
		    package, core, cpu);
	}
}

/* One set for each place; on a machine on paper (HWLOC_SYNTHETIC) none. */
void bind_find(struct job *j)
{
	struct places p = { .n = 0 };

	if (j->opt.bind == BIND_NONE && !j->opt.report)
		return;
	load(&p);
	find(&p, j->opt.bind);
	if (j->opt.bind != BIND_NONE && j->opt.ranks > p.n)
		say("--bind-to %s: %d ranks share %d", kinds[j->opt.bind].name,
		    j->opt.ranks, p.n);
	if (j->opt.report)
		report(&p, j);
	if (j->opt.bind != BIND_NONE && hwloc_topology_is_thissystem(p.hw)) {
		j->places = p.set;
		j->nplaces = p.n;
	} else {
		free(p.set);
	}
	hwloc_bitmap_free(p.allowed);
	hwloc_bitmap_free(p.some);
	hwloc_topology_destroy(p.hw);
}
