/*
 * nmad/drivers/verbs: who sleeps until a receive is given back does not sleep
 * over one that is, and two that are given at once wake him once.
 *
 * covers: given-back
 */
#include "explore.h"

#include "../../nmad/drivers/verbs/back.h"

enum { GIVERS = 2 };

static struct verbs_back back;
static struct base_mpsc_node nodes[GIVERS];
static ATOMIC(uint32_t) bell;

static void giver(void *arg)
{
	if (!verbs_back_give(&back, &nodes[(intptr_t)arg]))
		return;
	explore_check(fetch_add_relaxed(&bell, 1) == 0);
	explore_wake(&bell, 1);
}

static void owner(void *arg)
{
	(void)arg;
	if (!verbs_back_want(&back))
		return;
	while (load_relaxed(&bell) == 0)
		explore_wait_while(&bell, 0);
}

static void setup(int givers)
{
	base_mpsc_init(&back.list);
	store_relaxed(&back.wanted, 0);
	store_relaxed(&bell, 0);
	explore_name(&back.wanted, sizeof(back.wanted), "wanted");
	explore_name(&bell, sizeof(bell), "bell");
	for (intptr_t i = 0; i < givers; i++)
		explore_spawn("giver", giver, (void *)i);
	explore_spawn("owner", owner, NULL);
}

/* order(given-back) */
EXPLORE(the_owner_does_not_sleep_over_a_receive_that_is_given_back)
{
	setup(1);
}

EXPLORE(two_that_are_given_back_at_once_ring_once)
{
	setup(GIVERS);
}
