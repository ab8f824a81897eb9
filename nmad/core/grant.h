/*
 * In which order bodies come: those of one peer over one rail.
 *
 * A part of a body is *granted* when its driver gets it: that takes the
 * driver's windows or pipes, and has the peer send. Where priorities count only
 * a few run at once, and the others are *held* here with nothing of the
 * driver's, the receiver deciding, because he is the one who knows what has
 * been asked for. Nobody holds what another needs: parts that run come to their
 * end by themselves.
 *
 * All with the core lock held.
 */
#ifndef NMAD_CORE_GRANT_H
#define NMAD_CORE_GRANT_H

#include "levels.h"

/* Of a part; on both lists or none. */
struct nm_grant {
	struct base_link on; /* nm_grants.held */
	struct base_link level;
	int priority;
};

struct nm_grants {
	struct nm_levels levels;
	struct base_list held; /* as they came */
	unsigned nheld, running;
};

static inline void nm_grants_init(struct nm_grants *g)
{
	nm_levels_init(&g->levels);
	base_list_init(&g->held);
	g->nheld = g->running = 0;
}

static inline void nm_grants_hold(struct nm_grants *g, struct nm_grant *a)
{
	base_list_push_back(&g->held, &a->on);
	nm_levels_put(&g->levels, &a->level, a->priority);
	g->nheld++;
}

/* The one whose turn it is, off the lists; NULL: nothing is held. */
static inline struct nm_grant *nm_grants_take(struct nm_grants *g)
{
	struct base_link *oldest = base_list_first(&g->held);
	struct nm_grant *a;

	if (oldest == NULL)
		return NULL;
	if (nm_levels_is_due(&g->levels))
		a = container_of(oldest, struct nm_grant, on);
	else
		a = container_of(nm_levels_first(&g->levels), struct nm_grant,
				 level);
	nm_levels_take(&g->levels, &a->level, a->priority, &a->on == oldest);
	base_list_remove(&a->on);
	g->nheld--;
	return a;
}

#endif
