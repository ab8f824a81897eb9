/*
 * What waits, by priority: of the highest that has any the one that came first.
 *
 *   set   | 0 0 1 0 ... 1 0 |     which levels have any
 *              |        `- of[1]: first - ... - last
 *              `- of[13]: ...
 *
 * Nothing waits for ever: who keeps them also knows which has waited longest of
 * all, and when PATIENCE others have been taken since one of those was, it is
 * due. Every operation takes constant time. All with the core lock held.
 */
#ifndef NMAD_CORE_LEVELS_H
#define NMAD_CORE_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/list.h>
#include <nmad/sendrecv.h>

enum {
	NM_LEVELS = NM_PRIORITY_MAX - NM_PRIORITY_MIN + 1,
	NM_LEVELS_PATIENCE = 16,
};

struct nm_levels {
	struct base_list of[NM_LEVELS];
	uint32_t set;    /* bit i: of[i] is not empty */
	uint32_t passed; /* taken since the one that had waited longest was */
};

static inline void nm_levels_init(struct nm_levels *l)
{
	for (int i = 0; i < NM_LEVELS; i++)
		base_list_init(&l->of[i]);
	l->set = 0;
	l->passed = 0;
}

static inline void nm_levels_put(struct nm_levels *l, struct base_link *n,
				 int priority)
{
	unsigned i = (unsigned)(priority - NM_PRIORITY_MIN);

	base_list_push_back(&l->of[i], n);
	l->set |= 1u << i;
}

/* NULL: none. */
static inline struct base_link *nm_levels_first(const struct nm_levels *l)
{
	if (l->set == 0)
		return NULL;
	return base_list_first(&l->of[31 - __builtin_clz(l->set)]);
}

/* The one that has waited longest goes before the first. */
static inline bool nm_levels_is_due(const struct nm_levels *l)
{
	return l->passed >= NM_LEVELS_PATIENCE;
}

/* Take one out, whichever. `oldest`: it has waited longest of all. */
static inline void nm_levels_take(struct nm_levels *l, struct base_link *n,
				  int priority, bool oldest)
{
	unsigned i = (unsigned)(priority - NM_PRIORITY_MIN);

	base_list_remove(n);
	if (base_list_is_empty(&l->of[i]))
		l->set &= ~(1u << i);
	l->passed = oldest ? 0 : l->passed + 1;
}

#endif
