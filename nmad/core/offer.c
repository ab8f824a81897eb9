/*
 * What marcel-top reads of nmad: base/offer.h, <nmad/stats.h>.
 */
#include "offer.h"

#include "core.h"

static const struct base_offer_entry entries[] = {
	/* NULL while nmad does not run. */
	BASE_OFFER_AT("core", nm_core_self),
	BASE_OFFER_FIELD("core.rank", struct nm_core, rank),
	BASE_OFFER_FIELD("core.size", struct nm_core, size),
	BASE_OFFER_FIELD("core.pending", struct nm_core, pending),
	BASE_OFFER_FIELD("core.sends", struct nm_core, stats.sends),
	BASE_OFFER_FIELD("core.receives", struct nm_core, stats.receives),
	BASE_OFFER_FIELD("core.unexpected", struct nm_core, stats.unexpected),
	BASE_OFFER_FIELD("core.gates", struct nm_core, gates),
	BASE_OFFER_NUMBER("gate.bytes", sizeof(struct nm_gate)),
	BASE_OFFER_FIELD("gate.out", struct nm_gate, nsent),
	BASE_OFFER_FIELD("gate.in", struct nm_gate, nreceived),
};

BASE_USED const struct base_offer nm_offer = {
	.version = BASE_OFFER_VERSION,
	.n = BASE_ARRAY_LEN(entries),
	.entries = entries,
};
