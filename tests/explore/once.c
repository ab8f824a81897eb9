/*
 * marcel/sync/once.c: the function runs once, and nobody goes on before it has
 * returned and without seeing what it did.
 *
 * covers: once
 */
#include "sync_world.h"

#include "../../marcel/sync/waitq.c"
#include "../../marcel/sync/once.c"

static marcel_once_t control;
static int runs;

static void function(void)
{
	runs++;
}

static void call(void *arg)
{
	marcel_once(&control, function);
	explore_check(runs == 1);
}

EXPLORE(it_has_run_when_anybody_goes_on)
{
	world_init();
	explore_name(&control, sizeof(control), "once");
	explore_name(&runs, sizeof(runs), "runs");
	explore_spawn("one", call, NULL);
	explore_spawn("two", call, NULL);
	explore_spawn("three", call, NULL);
}
