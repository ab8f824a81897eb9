/*
 * The tree of levels: built from what hwloc knows, cut to the VPs.
 */
#ifndef MARCEL_TOPO_TOPO_H
#define MARCEL_TOPO_TOPO_H

#include <stdbool.h>

#include <hwloc.h>

#include <marcel/topo.h>

enum { MARCEL_TOPO_PLACES = 10 };

/* -: const once built, but for the levels' slots. */
struct marcel_topo {
	struct marcel_level *levels; /* [nlevels]; the machine is first */
	unsigned nlevels;
	int nvp;
	struct marcel_level **leaf;     /* [nvp] */
	struct marcel_level **children; /* all arrays of children */
	int *neighbours;                /* [nvp][nvp - 1], nearest first */
	struct marcel_place
		places[MARCEL_TOPO_PLACES + 1]; /* a NULL ends them */
};

/*
 * Build the tree for VPs that run on the CPUs cpu[0..nvp-1] (hwloc's OS
 * numbers) of the machine hw, which is only read. A level without siblings
 * under its parent is left out. hw NULL: nothing is known, of one VP. 0 or
 * -ENOMEM.
 */
int marcel_topo_build(hwloc_topology_t hw, const int *cpu, int nvp,
		      struct marcel_topo *out);
void marcel_topo_free(struct marcel_topo *t);

/* Fill in the places of who runs on these CPUs, one at least; none before. */
void marcel_topo_locate(hwloc_topology_t hw, const int *cpu, int ncpu,
			struct marcel_topo *out);

static inline struct marcel_level *marcel_topo_leaf(const struct marcel_topo *t,
						    int vp)
{
	return t->leaf[vp];
}

static inline unsigned marcel_topo_number(const struct marcel_topo *t,
					  const struct marcel_level *l)
{
	return (unsigned)(l - t->levels);
}

/* The i-th of the other VPs by distance from vp. */
static inline int marcel_topo_neighbour(const struct marcel_topo *t, int vp,
					int i)
{
	return t->neighbours[vp * (t->nvp - 1) + i];
}

/* Whether that is a level of the tree; any pointer. */
bool marcel_topo_has(const struct marcel_topo *t, const struct marcel_level *l);

/* The lowest level that covers the set's VPs; NULL: it has none. */
struct marcel_level *marcel_topo_find(const struct marcel_topo *t,
				      const marcel_vpset_t *set);

/*
 * The machine that this process may use: load it, and list the CPUs that are
 * allowed (OS numbers, at most max). Returns their number or -errno. Another
 * machine than ours has a name: of a file of hwloc's XML, which ends with
 * .xml, or else hwloc's words for it; "": ours. -EINVAL: no such machine.
 */
int marcel_topo_load(const char *name, hwloc_topology_t *hw, int *cpu, int max);

#endif
