/*
 * From leaf to root. No allocation, no system call, no lock waited for.
 */
#include "poll.h"

#include <base/compiler.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>

#include "../point/pthread.h"
#include "../state.h"
#include "tree.h"

int piom_poll_all(int vp, uint64_t vain_ns, enum piom_point point)
{
	int worked = 0;

	for (struct piom_queue *q = piom_tree_leaf(vp); q != NULL;
	     q = q->parent)
		worked += piom_queue_run(q, vp, vain_ns, point);
	return worked;
}

/* Count a round that goes on from q; true if it is the parent's turn. */
static bool goes_on(struct piom_queue *q)
{
	uint32_t rounds = load_relaxed(&q->rounds);

	if (q->siblings <= 1)
		return true;
	store_relaxed(&q->rounds, rounds + 1 < q->siblings ? rounds + 1 : 0);
	return rounds == 0;
}

/* The next round from this VP runs every queue. */
static void start_over(int vp)
{
	for (struct piom_queue *q = piom_tree_leaf(vp); q->parent != NULL;
	     q = q->parent)
		if (load_relaxed(&q->rounds) != 0)
			store_relaxed(&q->rounds, 0);
}

/*
 * Before a VP sleeps it asks every ltask itself, and once more when it has
 * said that it sleeps: who has left work for a quiet ltask and then saw the VP
 * awake relies on that. So a queue that is passed over counts as pending, and
 * after a round that found all quiet the next one runs all.
 */
int piom_poll_round(int vp, uint64_t vain_ns, enum piom_point point,
		    bool *pending)
{
	bool due = true, found = false;
	int worked = 0;

	for (struct piom_queue *q = piom_tree_leaf(vp); q != NULL;
	     q = q->parent) {
		if (due)
			worked += piom_queue_run(q, vp, vain_ns, point);
		found |= piom_queue_keeps_awake(q) ||
			 (!due && !piom_queue_is_empty(q));
		due = due && goes_on(q);
	}
	if (!found)
		start_over(vp);
	*pending = found;
	return worked;
}

bool piom_poll_is_idle(int vp)
{
	for (struct piom_queue *q = piom_tree_leaf(vp); q != NULL;
	     q = q->parent)
		if (!piom_queue_is_idle(q))
			return false;
	return true;
}

bool piom_poll_is_pending(int vp)
{
	for (struct piom_queue *q = piom_tree_leaf(vp); q != NULL;
	     q = q->parent)
		if (piom_queue_is_pending(q))
			return true;
	return false;
}

bool piom_poll_keeps_awake(int vp)
{
	for (struct piom_queue *q = piom_tree_leaf(vp); q != NULL;
	     q = q->parent)
		if (piom_queue_keeps_awake(q))
			return true;
	return false;
}

bool piom_poll_is_called(int vp)
{
	return piom_queue_is_pending(piom_tree_leaf(vp));
}

int piom_poll_here(void)
{
	int vp = marcel_current_vp();

	if (vp < 0 && piom.engine == PIOM_ENGINE_PTHREAD)
		vp = piom_point_pthread_here();
	return vp;
}

BASE_PUBLIC int piom_poll(void)
{
	if (unlikely(piom_tree_machine() == NULL))
		return 0;
	return piom_poll_all(piom_poll_here(), PIOM_PASSING, PIOM_POINT_POLL);
}
