/*
 * nmad/drivers/verbs: who is rung does not sleep over what others have left,
 * and a bell that he hushes is not to be read any more.
 *
 * covers: rung
 */
#include "explore.h"

#include "../../nmad/drivers/verbs/bell.h"

enum { RINGERS = 2 };

static struct verbs_bell bell;
static ATOMIC(uint32_t) left[RINGERS];
static ATOMIC(uint32_t) written; /* the eventfd */

static void ringer(void *arg)
{
	store_relaxed(&left[(intptr_t)arg], 1);
	if (!verbs_bell_starts(&bell))
		return;
	explore_check(fetch_add_seq(&written, 1) == 0);
	explore_wake(&written, 1);
}

static void rung(void *arg)
{
	unsigned found = 0;

	(void)arg;
	for (;;) {
		if (verbs_bell_rings(&bell) && xchg_seq(&written, 0) != 0)
			verbs_bell_stops(&bell);
		for (int i = 0; i < RINGERS; i++)
			found |= load_relaxed(&left[i]) << i;
		if (found == (1 << RINGERS) - 1)
			return;
		while (load_seq(&written) == 0)
			explore_wait_while(&written, 0);
	}
}

/* order(rung) */
EXPLORE(who_is_rung_finds_what_was_left)
{
	store_relaxed(&bell.rings, 0);
	store_relaxed(&written, 0);
	explore_name(&bell.rings, sizeof(bell.rings), "rings");
	explore_name(&written, sizeof(written), "written");
	for (intptr_t i = 0; i < RINGERS; i++) {
		store_relaxed(&left[i], 0);
		explore_name(&left[i], sizeof(left[i]), "left %d", (int)i);
		explore_spawn("ringer", ringer, (void *)i);
	}
	explore_spawn("rung", rung, NULL);
}
