/*
 * The queues of the machine: one in a slot of each of marcel's levels, so that
 * a VP finds its own and, by `parent`, those above.
 */
#ifndef PIOMAN_LTASK_TREE_H
#define PIOMAN_LTASK_TREE_H

#include <marcel/topo.h>

#include "queue.h"

enum { PIOM_LEVEL_SLOT = 0 };

/* Make them; `flat`: only the machine has one. 0 or -ENOMEM. */
int piom_tree_init(bool flat);

/* All must be empty. */
void piom_tree_exit(void);

/* Whether any queue has a task. Waits for passes in progress to end. */
bool piom_tree_is_busy(void);

/* The machine's queue. */
struct piom_queue *piom_tree_machine(void);

/* The first queue of a VP; the machine's for a foreign thread (vp < 0). */
struct piom_queue *piom_tree_leaf(int vp);

/* The queue of the lowest level that covers the set, or NULL: no VP in it. */
struct piom_queue *piom_tree_cover(const marcel_vpset_t *set);

/* Calls fn for each, the machine's first. */
void piom_tree_walk(void (*fn)(struct piom_queue *q, void *arg), void *arg);

#endif
