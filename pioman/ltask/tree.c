/*
 * Queues over marcel's topology. A level without a queue of its own
 * (PIOM_QUEUES=machine) has its parent's in its slot, so that nobody needs to
 * know which levels have one.
 */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>

#include "../state.h"
#include "../wait/wait.h"

struct piom_tree piom_tree;

static struct piom_queue *queue_of(const struct marcel_level *level)
{
	return level->slot[PIOM_LEVEL_SLOT];
}

static bool has_own(const struct marcel_level *level)
{
	struct piom_queue *q = queue_of(level);

	return q != NULL && q->level == level;
}

static void forget(struct marcel_level *level)
{
	for (unsigned i = 0; i < level->nchildren; i++)
		forget(level->children[i]);
	if (has_own(level))
		free(queue_of(level));
	level->slot[PIOM_LEVEL_SLOT] = NULL;
}

/* Kernel threads that poll do so for a package. */
static bool gets_own(const struct marcel_level *level, bool flat)
{
	if (piom.engine == PIOM_ENGINE_PTHREAD &&
	    level->kind > MARCEL_LEVEL_PACKAGE)
		flat = true;
	return level->parent == NULL || !flat;
}

static int make(struct marcel_level *level, struct piom_queue *parent,
		bool flat)
{
	struct piom_queue *q = parent;
	int err = 0;

	if (gets_own(level, flat)) {
		q = aligned_alloc(_Alignof(struct piom_queue), sizeof(*q));
		if (q == NULL)
			return -ENOMEM;
		piom_queue_init(q, parent, level);
	}
	level->slot[PIOM_LEVEL_SLOT] = q;
	if (level->vp >= 0)
		piom_tree.first[1 + level->vp] = q;
	for (unsigned i = 0; i < level->nchildren && err == 0; i++)
		err = make(level->children[i], q, flat);
	return err;
}

void piom_tree_exit(void)
{
	forget(marcel_topo_machine());
	memset(&piom_tree, 0, sizeof(piom_tree));
}

int piom_tree_init(bool flat)
{
	struct marcel_level *machine = marcel_topo_machine();
	int err = make(machine, NULL, flat);

	if (err < 0)
		piom_tree_exit();
	else
		piom_tree.first[0] = queue_of(machine);
	return err;
}

struct piom_queue *piom_tree_cover(const marcel_vpset_t *set)
{
	struct marcel_level *level = marcel_topo_cover(set);

	return level != NULL ? queue_of(level) : NULL;
}

static void walk(struct marcel_level *level,
		 void (*fn)(struct piom_queue *q, void *arg), void *arg)
{
	if (has_own(level))
		fn(queue_of(level), arg);
	for (unsigned i = 0; i < level->nchildren; i++)
		walk(level->children[i], fn, arg);
}

void piom_tree_walk(void (*fn)(struct piom_queue *q, void *arg), void *arg)
{
	if (piom_tree_machine() != NULL)
		walk(piom_tree_machine()->level, fn, arg);
}

/* What the last pass left is known when its holder has let go. */
static void look(struct piom_queue *q, void *arg)
{
	while (load_acquire(&q->word) & PIOM_QUEUE_HELD) /* order(hold) */
		piom_wait_relax();
	if (!piom_queue_is_empty(q))
		*(bool *)arg = true;
}

bool piom_tree_is_busy(void)
{
	bool busy = false;

	piom_tree_walk(look, &busy);
	return busy;
}
