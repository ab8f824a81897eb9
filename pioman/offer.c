/*
 * What marcel-top reads of pioman: base/offer.h, <pioman/stats.h>.
 */
#include "offer.h"

#include "io/blocking.h"
#include "ltask/tree.h"
#include "stats.h"

static const struct base_offer_entry entries[] = {
	/* By VP + 1, the machine's first; the same one may be there twice. */
	BASE_OFFER_AT("queues", piom_tree.first),
	BASE_OFFER_FIELD("queue.length", struct piom_queue, length),
	BASE_OFFER_FIELD("queue.parent", struct piom_queue, parent),
	BASE_OFFER_FIELD("queue.polls", struct piom_queue, stats.polls),
	BASE_OFFER_FIELD("queue.hits", struct piom_queue, stats.hits),
	/* Never less, even when pioman starts again. */
	BASE_OFFER_AT("interrupts", piom_watcher.fired),
};

BASE_USED const struct base_offer piom_offer = {
	.version = BASE_OFFER_VERSION,
	.n = BASE_ARRAY_LEN(entries),
	.entries = entries,
};
