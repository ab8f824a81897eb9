/*
 * <base/mpsc.h>: two pushers and a taker. Nothing is lost or taken twice, each
 * pusher's nodes come in its order, what was written to a node before the push
 * is there after the take, and the first push is told that the list was empty.
 *
 * covers: mpsc
 */
#include "explore.h"

#include <base/compiler.h>
#include <base/mpsc.h>

enum { PUSHERS = 2, EACH = 2 };

struct item {
	struct base_mpsc_node node;
	int pusher, number;
};

static struct base_mpsc list;
static struct item items[PUSHERS][EACH];
static int next_of[PUSHERS], taken;
static int was_empty[PUSHERS];

static void push_all(int pusher, bool (*push)(struct base_mpsc *q,
					      struct base_mpsc_node *n))
{
	for (int i = 0; i < EACH; i++) {
		struct item *it = &items[pusher][i];

		it->pusher = pusher;
		it->number = i;
		was_empty[pusher] += push(&list, &it->node);
	}
}

static void pusher(void *arg)
{
	push_all((int)(intptr_t)arg, base_mpsc_push);
}

static void pusher_seq(void *arg)
{
	push_all((int)(intptr_t)arg, base_mpsc_push_seq);
}

static int take(void)
{
	int n = 0;

	base_mpsc_for_each (node, base_mpsc_take(&list)) {
		struct item *it = container_of(node, struct item, node);

		explore_check(it->number == next_of[it->pusher]);
		next_of[it->pusher]++;
		n++;
	}
	taken += n;
	return n;
}

/* Looks twice, while the pushers are at work. */
static void taker(void *arg)
{
	take();
	take();
}

static void all_taken(void)
{
	take();
	explore_check(taken == PUSHERS * EACH);
	explore_check(was_empty[0] + was_empty[1] >= 1);
	explore_check(base_mpsc_is_empty(&list));
}

static void names(void)
{
	explore_name(&list, sizeof(list), "list");
	for (int p = 0; p < PUSHERS; p++)
		for (int i = 0; i < EACH; i++)
			explore_name(&items[p][i], sizeof(items[p][i]),
				     "node %d.%d", p + 1, i + 1);
}

EXPLORE(pushed_nodes_are_taken_once_in_order_and_whole)
{
	names();
	base_mpsc_init(&list);
	explore_spawn("pusher 1", pusher, (void *)0);
	explore_spawn("pusher 2", pusher, (void *)1);
	explore_spawn("taker", taker, NULL);
	explore_finish(all_taken);
}

EXPLORE(a_seq_cst_push_is_as_good)
{
	names();
	base_mpsc_init(&list);
	explore_spawn("pusher 1", pusher_seq, (void *)0);
	explore_spawn("pusher 2", pusher, (void *)1);
	explore_spawn("taker", taker, NULL);
	explore_finish(all_taken);
}
