/*
 * The machine as a tree: machine > NUMA node > package > L3 > L2 > core,
 * levels without siblings left out, cut to the CPUs that the VPs drive. Each
 * leaf is a VP. Levels have a few slots for upper layers.
 */
#ifndef MARCEL_TOPO_H
#define MARCEL_TOPO_H

#include <marcel/thread.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MARCEL_LEVEL_SLOTS 4

enum marcel_level_kind {
	MARCEL_LEVEL_MACHINE,
	MARCEL_LEVEL_NUMA,
	MARCEL_LEVEL_PACKAGE,
	MARCEL_LEVEL_L3,
	MARCEL_LEVEL_L2,
	MARCEL_LEVEL_CORE,
	MARCEL_LEVEL_VP, /* a leaf */
};

/* Constant between marcel_init() and marcel_end(), but for the slots. */
struct marcel_level {
	enum marcel_level_kind kind;
	unsigned index;              /* among levels of its kind */
	unsigned nchildren;          /* 0 for a leaf */
	struct marcel_level *parent; /* NULL for the machine */
	struct marcel_level **children;
	marcel_vpset_t vps;             /* the VPs below it */
	int vp;                         /* of a leaf, else -1 */
	void *slot[MARCEL_LEVEL_SLOTS]; /* an upper layer's, by number */
};

/* The root. With one VP it is a leaf too. NULL before marcel_init(). */
struct marcel_level *marcel_topo_machine(void);

/* The leaf of a VP; NULL if there is no such VP. */
struct marcel_level *marcel_topo_vp(int vp);

/* The system's number of the CPU that a VP is for; -1: there is no such VP. */
int marcel_vp_cpu(int vp);

/*
 * The level of a kind with this index; NULL if there is none. A kind that cuts
 * nothing on this machine has no levels: a program that wants the VPs of one L3
 * takes the whole machine where that is NULL, or looks upwards from a VP.
 */
struct marcel_level *marcel_topo_level(enum marcel_level_kind kind,
				       unsigned index);

/* The lowest level that covers the set; NULL if it covers no VP. */
struct marcel_level *marcel_topo_cover(const marcel_vpset_t *set);

/*
 * Where all VPs are, if they are in one: the kinds of hardware of this machine
 * by hwloc's names ("Machine", "Package", "L3Cache", "Core", "PU", "NUMANode"),
 * from the largest on, and which of its kind on the machine it is; -1: the VPs
 * are in several, or not all in one. Unlike levels, also kinds that cut
 * nothing. Ends with a type that is NULL; NULL before marcel_init().
 */
struct marcel_place {
	const char *type;
	int index;
};
const struct marcel_place *marcel_topo_places(void);

/* "machine", "l3", ... for messages. */
const char *marcel_level_name(enum marcel_level_kind kind);

/* Sets of VPs; vp is 0 to MARCEL_VP_MAX - 1. */
static inline void marcel_vpset_zero(marcel_vpset_t *s)
{
	for (int i = 0; i < MARCEL_VPSET_WORDS; i++)
		s->bits[i] = 0;
}

static inline void marcel_vpset_add(marcel_vpset_t *s, int vp)
{
	s->bits[vp / 64] |= (uint64_t)1 << (vp % 64);
}

static inline int marcel_vpset_has(const marcel_vpset_t *s, int vp)
{
	return (int)(s->bits[vp / 64] >> (vp % 64) & 1);
}

#ifdef __cplusplus
}
#endif

#endif
