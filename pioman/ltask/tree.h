/*
 * The queues of the machine: one in a slot of each of marcel's levels, so that
 * a VP finds its own and, by `parent`, those above.
 */
#ifndef PIOMAN_LTASK_TREE_H
#define PIOMAN_LTASK_TREE_H

#include <marcel/topo.h>

#include "queue.h"

enum { PIOM_LEVEL_SLOT = 0 };

/*
 * Make them; `flat`: only the machine has one; engine pthread: none below
 * packages. 0 or -ENOMEM.
 */
int piom_tree_init(bool flat);

/* All must be empty. */
void piom_tree_exit(void);

/* Whether any queue has a task. Waits for passes in progress to end. */
bool piom_tree_is_busy(void);

/* Constant between piom_tree_init() and piom_tree_exit(). */
struct piom_tree {
	/* By VP + 1; [0] is the machine's, or NULL: not running. */
	struct piom_queue *first[1 + MARCEL_VP_MAX];
};

extern struct piom_tree piom_tree;

/* The machine's queue. */
static inline struct piom_queue *piom_tree_machine(void)
{
	return piom_tree.first[0];
}

/* The first queue of a VP; the machine's for a foreign thread, vp -1. */
static inline struct piom_queue *piom_tree_leaf(int vp)
{
	return piom_tree.first[vp + 1];
}

/* The queue of the lowest level that covers the set, or NULL: no VP in it. */
struct piom_queue *piom_tree_cover(const marcel_vpset_t *set);

/* Calls fn for each, the machine's first. */
void piom_tree_walk(void (*fn)(struct piom_queue *q, void *arg), void *arg);

#endif
