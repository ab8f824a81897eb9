/*
 * nmad/core/finish.c: of the two who each do a part of a synchronous send
 * exactly one ends it, and sees what the other did.
 *
 * covers: parts
 */
#include "explore.h"

#include "../../nmad/core/finish.c"

static struct nm_req req;
static int done[2], ended;

static void part(void *arg)
{
	int i = (int)(intptr_t)arg;

	done[i] = 1;
	if (!nm_req_part(&req))
		return;
	explore_check(done[0] == 1 && done[1] == 1);
	ended++;
	explore_gone(&req, sizeof(req));
}

static void ended_once(void)
{
	explore_check(ended == 1);
}

EXPLORE(the_second_part_ends_the_request)
{
	store_relaxed(&req.parts, 2);
	explore_name(&req, sizeof(req), "request");
	explore_name(done, sizeof(done), "done");
	explore_spawn("left", part, (void *)0);
	explore_spawn("matched", part, (void *)1);
	explore_finish(ended_once);
}
