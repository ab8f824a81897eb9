/*
 * Whether anybody waits for the end of an announced receive (announce.c). Its
 * sender brings the message there alone; to wake a receiver for that who only
 * computes would cost the sender more than a small body does. So each
 * announcement has a word that both see:
 *
 *   who waits for the receive       its sender
 *   awaited: -> 1                   the envelope is where it is looked for, or
 *   looks whether all is there      the body's last byte is
 *                                   awaited? 1: wakes who sleeps, as ever
 *
 * Both do it by read-modify-writes, so either comes first, order(awaited): the
 * sender's, then who waits sees what was there; or the other, then he is woken.
 *
 * Who waits may come before there is a place, and its word:
 *
 *   who waits                       who announces
 *   request: -> AWAITED             request: -> the word
 *   was it a word: -> 1             was it AWAITED: the word -> 1
 *                                   the announcement leaves
 *
 * which is order(await). A word lives as long as its rail. One that is used
 * again for another receive may be set late: a wake-up too much.
 */
#ifndef NMAD_CORE_AWAIT_H
#define NMAD_CORE_AWAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>

/* In memory of both. */
struct nm_awaited {
	ATOMIC(uint32_t) is; /* a: order(awaited) */
};

/* Of a request. */
struct nm_await {
	ATOMIC(uintptr_t)
	state; /* a: one of the below, or the word's address; order(await) */
};

enum {
	NM_AWAIT_NEVER,    /* the receive is not announced */
	NM_AWAIT_AWAITED,  /* somebody waits */
	NM_AWAIT_POSSIBLE, /* it may be announced; nobody waits yet */
};

/* Somebody does; he looks next. */
static inline void nm_awaited_set(struct nm_awaited *w)
{
	xchg_acquire(&w->is, 1); /* order(awaited) */
}

/* The sender has done something that may be awaited. */
static inline bool nm_awaited_ask(struct nm_awaited *w)
{
	return fetch_or_release(&w->is, 0) != 0; /* order(awaited) */
}

static inline void nm_await_init(struct nm_await *a, bool possible)
{
	store_relaxed(&a->state, possible ? NM_AWAIT_POSSIBLE : NM_AWAIT_NEVER);
}

/* Before its end: whether who waits for it has to say so. */
static inline bool nm_await_matters(struct nm_await *a)
{
	return load_relaxed(&a->state) != NM_AWAIT_NEVER;
}

/* Anyone who waits: true if there is a word; then he looks next. */
static inline bool nm_await_begin(struct nm_await *a)
{
	/* order(await) */
	uintptr_t was = xchg_acquire(&a->state, NM_AWAIT_AWAITED);

	if (was <= NM_AWAIT_POSSIBLE)
		return false;
	nm_awaited_set((struct nm_awaited *)was);
	return true;
}

/* Core lock held; w may be NULL: then the sender wakes us anyhow. */
static inline void nm_await_announce(struct nm_await *a, struct nm_awaited *w)
{
	if (w == NULL)
		return;
	/* order(await): the word is clear */
	if (xchg_release(&a->state, (uintptr_t)w) == NM_AWAIT_AWAITED)
		nm_awaited_set(w);
}

#endif
