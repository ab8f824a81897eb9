/*
 * The tree of levels.
 *
 * hwloc's own tree is not used, because memory hangs beside it there. Instead
 * a set of VPs is cut again and again by whatever object contains each VP's
 * CPU: of all kinds that cut it into more than one part the coarsest is taken,
 * then each part is cut by the others. So levels without siblings vanish by
 * themselves, and NUMA nodes come above or below packages as the machine is.
 */
#include "topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <base/machine.h>

#include "../sched/vp.h"

static const struct {
	enum marcel_level_kind kind;
	hwloc_obj_type_t type;
} kinds[] = {
	{ MARCEL_LEVEL_NUMA, HWLOC_OBJ_NUMANODE },
	{ MARCEL_LEVEL_PACKAGE, HWLOC_OBJ_PACKAGE },
	{ MARCEL_LEVEL_L3, HWLOC_OBJ_L3CACHE },
	{ MARCEL_LEVEL_L2, HWLOC_OBJ_L2CACHE },
	{ MARCEL_LEVEL_CORE, HWLOC_OBJ_CORE },
};

enum { KINDS = BASE_ARRAY_LEN(kinds) };

/* While the tree is built. */
struct build {
	struct marcel_topo *out;
	int (*object)[KINDS]; /* [nvp]: which object of each kind; -1: none */
	struct marcel_level **next_children;
	unsigned count[MARCEL_LEVEL_VP + 1]; /* levels of each kind so far */
};

/* The number of the object of this type that contains the CPU, or -1. */
static int object_of(hwloc_topology_t hw, hwloc_obj_type_t type, int cpu)
{
	hwloc_obj_t o = NULL;

	while ((o = hwloc_get_next_obj_by_type(hw, type, o)) != NULL)
		if (hwloc_bitmap_isset(o->cpuset, (unsigned)cpu))
			return (int)o->logical_index;
	return -1;
}

static int count_vps(const marcel_vpset_t *s)
{
	int n = 0;

	for (int i = 0; i < MARCEL_VPSET_WORDS; i++)
		n += __builtin_popcountll(s->bits[i]);
	return n;
}

/* The VPs of `set` that share the k-th kind's object with vp. */
static marcel_vpset_t part_of(struct build *b, const marcel_vpset_t *set, int k,
			      int vp)
{
	marcel_vpset_t part;

	marcel_vpset_zero(&part);
	for (int i = 0; i < b->out->nvp; i++)
		if (marcel_vpset_has(set, i) &&
		    b->object[i][k] == b->object[vp][k])
			marcel_vpset_add(&part, i);
	return part;
}

/* Into how many parts a kind cuts the set; 1: not, or it is not complete. */
static int count_parts(struct build *b, const marcel_vpset_t *set, int k)
{
	int parts = 0;
	marcel_vpset_t seen, part;

	marcel_vpset_zero(&seen);
	for (int i = 0; i < b->out->nvp; i++) {
		if (!marcel_vpset_has(set, i) || marcel_vpset_has(&seen, i))
			continue;
		if (b->object[i][k] < 0)
			return 1;
		part = part_of(b, set, k, i);
		for (int w = 0; w < MARCEL_VPSET_WORDS; w++)
			seen.bits[w] |= part.bits[w];
		parts++;
	}
	return parts;
}

static int coarsest_kind(struct build *b, const marcel_vpset_t *set)
{
	int best = -1, fewest = 0;

	for (int k = 0; k < KINDS; k++) {
		int parts = count_parts(b, set, k);

		if (parts > 1 && (best < 0 || parts < fewest)) {
			best = k;
			fewest = parts;
		}
	}
	return best;
}

static struct marcel_level *new_level(struct build *b,
				      enum marcel_level_kind kind,
				      struct marcel_level *parent,
				      const marcel_vpset_t *vps)
{
	struct marcel_level *l = &b->out->levels[b->out->nlevels++];

	memset(l, 0, sizeof(*l));
	l->kind = kind;
	l->index = b->count[kind]++;
	l->parent = parent;
	l->vps = *vps;
	l->vp = -1;
	if (count_vps(vps) > 1)
		return l;
	for (int i = 0; i < b->out->nvp; i++) {
		if (!marcel_vpset_has(vps, i))
			continue;
		l->vp = i;
		if (parent != NULL)
			l->kind = MARCEL_LEVEL_VP;
		l->index = (unsigned)i;
		b->out->leaf[i] = l;
	}
	return l;
}

/* Give a level of several VPs its children. Depth: at most one per kind. */
static void cut(struct build *b, struct marcel_level *l)
{
	marcel_vpset_t seen, part;
	int k;

	if (l->vp >= 0)
		return;
	k = coarsest_kind(b, &l->vps);
	marcel_vpset_zero(&seen);
	l->children = b->next_children;
	for (int i = 0; i < b->out->nvp; i++) {
		if (!marcel_vpset_has(&l->vps, i) || marcel_vpset_has(&seen, i))
			continue;
		marcel_vpset_zero(&part);
		marcel_vpset_add(&part, i);
		if (k >= 0) /* else VPs that share a core: leaves at once */
			part = part_of(b, &l->vps, k, i);
		for (int w = 0; w < MARCEL_VPSET_WORDS; w++)
			seen.bits[w] |= part.bits[w];
		*b->next_children++ = new_level(
			b, k >= 0 ? kinds[k].kind : MARCEL_LEVEL_VP, l, &part);
		l->nchildren++;
	}
	for (unsigned i = 0; i < l->nchildren; i++)
		cut(b, l->children[i]);
}

/* From vp upwards: the others of each level, beginning behind oneself. */
static void list_neighbours(struct marcel_topo *t, int vp)
{
	int *out = t->neighbours + vp * (t->nvp - 1);
	marcel_vpset_t seen;

	marcel_vpset_zero(&seen);
	marcel_vpset_add(&seen, vp);
	for (struct marcel_level *l = t->leaf[vp]; l != NULL; l = l->parent) {
		for (int i = 1; i < t->nvp; i++) {
			int n = (vp + i) % t->nvp;

			if (!marcel_vpset_has(&l->vps, n) ||
			    marcel_vpset_has(&seen, n))
				continue;
			marcel_vpset_add(&seen, n);
			*out++ = n;
		}
	}
}

/* The object of the type that all these CPUs are in, or -1. */
static int place_of(hwloc_topology_t hw, hwloc_obj_type_t type, const int *cpu,
		    int ncpu)
{
	int place = object_of(hw, type, cpu[0]);

	for (int i = 1; i < ncpu && place >= 0; i++)
		if (object_of(hw, type, cpu[i]) != place)
			place = -1;
	return place;
}

/* CPUs that belong to one on average: what is large comes first. */
static int cpus_of(hwloc_topology_t hw, hwloc_obj_type_t type)
{
	int cpus = 0, n = hwloc_get_nbobjs_by_type(hw, type);

	for (int i = 0; i < n; i++)
		cpus += hwloc_bitmap_weight(
			hwloc_get_obj_by_type(hw, type, (unsigned)i)->cpuset);
	return n > 0 ? cpus / n : 0;
}

static const hwloc_obj_type_t place_types[] = {
	HWLOC_OBJ_MACHINE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PACKAGE,
	HWLOC_OBJ_DIE,     HWLOC_OBJ_L4CACHE,  HWLOC_OBJ_L3CACHE,
	HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L1CACHE,  HWLOC_OBJ_CORE,
	HWLOC_OBJ_PU,
};

_Static_assert(BASE_ARRAY_LEN(place_types) == MARCEL_TOPO_PLACES,
	       "there is room for each");

void marcel_topo_locate(hwloc_topology_t hw, const int *cpu, int ncpu,
			struct marcel_topo *out)
{
	int cpus[BASE_ARRAY_LEN(place_types)], n = 0, at;

	for (unsigned k = 0; k < BASE_ARRAY_LEN(place_types); k++) {
		int size = cpus_of(hw, place_types[k]);

		if (size == 0)
			continue;
		/* The largest first; in doubt as they are listed. */
		for (at = n++; at > 0 && cpus[at - 1] < size; at--) {
			cpus[at] = cpus[at - 1];
			out->places[at] = out->places[at - 1];
		}
		cpus[at] = size;
		out->places[at] = (struct marcel_place){
			hwloc_obj_type_string(place_types[k]),
			place_of(hw, place_types[k], cpu, ncpu),
		};
	}
	out->places[n].type = NULL;
}

int marcel_topo_build(hwloc_topology_t hw, const int *cpu, int nvp,
		      struct marcel_topo *out)
{
	struct build b = { .out = out };
	marcel_vpset_t all;
	size_t n = (size_t)nvp;

	memset(out, 0, sizeof(*out));
	out->nvp = nvp;
	/* Every level that is no leaf has two children or more. */
	out->levels = calloc(2 * n, sizeof(*out->levels));
	out->leaf = calloc(n, sizeof(struct marcel_level *));
	out->children = calloc(2 * n, sizeof(struct marcel_level *));
	out->neighbours = calloc(n * n, sizeof(*out->neighbours));
	b.object = calloc(n, sizeof(*b.object));
	if (!out->levels || !out->leaf || !out->children || !out->neighbours ||
	    !b.object) {
		free(b.object);
		marcel_topo_free(out);
		return -ENOMEM;
	}
	b.next_children = out->children;
	marcel_vpset_zero(&all);
	for (int i = 0; i < nvp; i++) {
		marcel_vpset_add(&all, i);
		for (int k = 0; k < KINDS && hw != NULL; k++)
			b.object[i][k] = object_of(hw, kinds[k].type, cpu[i]);
	}
	cut(&b, new_level(&b, MARCEL_LEVEL_MACHINE, NULL, &all));
	for (int i = 0; i < nvp; i++)
		list_neighbours(out, i);
	free(b.object);
	return 0;
}

void marcel_topo_free(struct marcel_topo *t)
{
	free(t->levels);
	free(t->leaf);
	free(t->children);
	free(t->neighbours);
	memset(t, 0, sizeof(*t));
}

/* Loaded; 0 or -errno. */
static int load_machine(const char *name, hwloc_topology_t *hw)
{
	size_t length = strlen(name);
	bool xml = length > 4 && strcmp(name + length - 4, ".xml") == 0;
	int rc = 0;

	if ((xml ? hwloc_topology_init(hw) : base_machine_init(hw)) < 0)
		return -ENOMEM;
	if (xml)
		rc = hwloc_topology_set_xml(*hw, name);
	else if (length > 0)
		rc = hwloc_topology_set_synthetic(*hw, name);
	/* What is forbidden to us counts where others number the same. */
	hwloc_topology_set_flags(*hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	if (rc == 0 && hwloc_topology_load(*hw) == 0)
		return 0;
	hwloc_topology_destroy(*hw);
	return length > 0 ? -EINVAL : -ENODEV;
}

int marcel_topo_load(const char *name, hwloc_topology_t *hw, int *cpu, int max)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	int n = 0, i;

	if (set == NULL)
		return -ENOMEM;
	if ((i = load_machine(name, hw)) < 0) {
		hwloc_bitmap_free(set);
		return i;
	}
	if (!hwloc_topology_is_thissystem(*hw) ||
	    hwloc_get_cpubind(*hw, set, HWLOC_CPUBIND_THREAD) < 0)
		hwloc_bitmap_fill(set);
	hwloc_bitmap_and(set, set, hwloc_topology_get_allowed_cpuset(*hw));
	for (i = hwloc_bitmap_first(set); i >= 0 && n < max;
	     i = hwloc_bitmap_next(set, i))
		cpu[n++] = i;
	hwloc_bitmap_free(set);
	if (n > 0)
		return n;
	hwloc_topology_destroy(*hw);
	return -ENODEV;
}

/* --- what upper layers ask --- */

bool marcel_topo_has(const struct marcel_topo *t, const struct marcel_level *l)
{
	uintptr_t from = (uintptr_t)l - (uintptr_t)t->levels;

	return from < t->nlevels * sizeof(*l) && from % sizeof(*l) == 0;
}

struct marcel_level *marcel_topo_find(const struct marcel_topo *t,
				      const marcel_vpset_t *set)
{
	struct marcel_level *l = NULL;

	for (int i = 0; i < t->nvp; i++) {
		if (!marcel_vpset_has(set, i))
			continue;
		if (l == NULL)
			l = t->leaf[i];
		while (!marcel_vpset_has(&l->vps, i))
			l = l->parent;
	}
	return l;
}

BASE_PUBLIC struct marcel_level *marcel_topo_machine(void)
{
	return marcel_sched.topo.levels;
}

BASE_PUBLIC struct marcel_level *marcel_topo_vp(int vp)
{
	return vp >= 0 && vp < marcel_sched.topo.nvp
		       ? marcel_sched.topo.leaf[vp]
		       : NULL;
}

BASE_PUBLIC struct marcel_level *marcel_topo_level(enum marcel_level_kind kind,
						   unsigned index)
{
	const struct marcel_topo *t = &marcel_sched.topo;

	for (unsigned i = 0; i < t->nlevels; i++)
		if (t->levels[i].kind == kind && t->levels[i].index == index)
			return &t->levels[i];
	return NULL;
}

BASE_PUBLIC struct marcel_level *marcel_topo_cover(const marcel_vpset_t *set)
{
	return marcel_topo_find(&marcel_sched.topo, set);
}

BASE_PUBLIC const struct marcel_place *marcel_topo_places(void)
{
	return marcel_sched.topo.nvp > 0 ? marcel_sched.topo.places : NULL;
}

BASE_PUBLIC const char *marcel_level_name(enum marcel_level_kind kind)
{
	static const char *const names[] = {
		[MARCEL_LEVEL_MACHINE] = "machine",
		[MARCEL_LEVEL_NUMA] = "numa",
		[MARCEL_LEVEL_PACKAGE] = "package",
		[MARCEL_LEVEL_L3] = "l3",
		[MARCEL_LEVEL_L2] = "l2",
		[MARCEL_LEVEL_CORE] = "core",
		[MARCEL_LEVEL_VP] = "vp",
	};

	if ((unsigned)kind >= BASE_ARRAY_LEN(names))
		return "?";
	return names[kind];
}
