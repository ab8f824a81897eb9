/*
 * What marcel-top reads of marcel: base/offer.h.
 */
#include <base/offer.h>

#include "../thread/thread.h"
#include "offer.h"
#include "vp.h"

static const struct base_offer_entry entries[] = {
	/* VPs, of which there are none before marcel_init(). */
	BASE_OFFER_AT("vps", marcel_sched.vps),
	BASE_OFFER_AT("nvp", marcel_sched.nvp),
	BASE_OFFER_NUMBER("vp.bytes", sizeof(struct marcel_vp)),
	BASE_OFFER_FIELD("vp.owner", struct marcel_vp, owner),
	BASE_OFFER_FIELD("vp.asleep", struct marcel_vp, sleeper.asleep),
	BASE_OFFER_FIELD("vp.hooking", struct marcel_vp, hooking.seq),
	BASE_OFFER_FIELD("vp.picks", struct marcel_vp, picks),
	BASE_OFFER_FIELD("vp.preempted", struct marcel_vp, preempted),
	BASE_OFFER_FIELD("vp.created", struct marcel_vp, created),
	BASE_OFFER_FIELD("vp.cpu", struct marcel_vp, cpu),
	BASE_OFFER_AT("bind", marcel_sched.bind),
	/* In `owner`. */
	BASE_OFFER_NUMBER("owner.marks", MARCEL_SECTION | MARCEL_REVOKING),
	BASE_OFFER_NUMBER("owner.section", MARCEL_SECTION),
	BASE_OFFER_NUMBER("asleep.asleep", MARCEL_ASLEEP),
	BASE_OFFER_NUMBER("asleep.watching", MARCEL_WATCHING),
	/* Its owner; runs its idle thread, or another. */
	BASE_OFFER_FIELD("lwp.self", struct marcel_lwp, self),
	BASE_OFFER_FIELD("lwp.idle", struct marcel_lwp, idle),
	/* Threads made by foreign threads. */
	BASE_OFFER_AT("created", marcel_sched.created),
	/* Descriptors, in slabs. */
	BASE_OFFER_AT("slabs", marcel_slabs.newest),
	BASE_OFFER_FIELD("slab.next", struct marcel_slab, next),
	BASE_OFFER_FIELD("slab.thread", struct marcel_slab, thread),
	BASE_OFFER_NUMBER("slab.threads", MARCEL_SLAB),
	BASE_OFFER_NUMBER("thread.bytes", sizeof(struct marcel_thread)),
	BASE_OFFER_FIELD("thread.state", struct marcel_thread, state),
	BASE_OFFER_FIELD("thread.flags", struct marcel_thread, flags),
	BASE_OFFER_NUMBER("state.new", MARCEL_T_NEW),
	BASE_OFFER_NUMBER("state.running", MARCEL_T_RUNNING),
	BASE_OFFER_NUMBER("state.parked", MARCEL_T_PARKED),
	BASE_OFFER_NUMBER("state.woken", MARCEL_T_WOKEN),
	BASE_OFFER_NUMBER("state.ended", MARCEL_T_ENDED),
	BASE_OFFER_NUMBER("flags.foreign", MARCEL_F_FOREIGN),
};

BASE_USED const struct base_offer marcel_offer = {
	.version = BASE_OFFER_VERSION,
	.n = BASE_ARRAY_LEN(entries),
	.entries = entries,
};
