/*
 * Objects that a process has from the one that forked it: guard.h.
 */
#include "guard.h"

#include <base/spin.h>

uint32_t marcel_generation;

/* Who adopts; inside the lock of a heap of timers, too. */
static struct base_spin adopting = BASE_SPIN_INIT(BASE_RANK_NONE);

void marcel_guard_forked(void)
{
	base_spin_init(&adopting, adopting.rank);
	marcel_generation++;
}

bool marcel_guard_adopt(struct marcel_guard *g, marcel_adopt_fn adopt,
			uint32_t *out)
{
	bool is_first;
	uint32_t w;

	base_spin_lock(&adopting);
	is_first = !marcel_guard_is_ours(g);
	if (is_first) {
		/* order(guard): what was done before the word was as it is */
		w = fetch_or_acquire(&g->word, MARCEL_GUARDED);
		*out = adopt(g, w & ~MARCEL_GUARDED);
		/* order(adopt): the queue, empty; that the guard is held */
		store_release(&g->generation, marcel_generation);
	}
	base_spin_unlock(&adopting);
	return is_first;
}
