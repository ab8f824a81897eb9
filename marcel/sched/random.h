/*
 * Reproducible schedules: MARCEL_SCHED=random:SEED[,hash].
 *
 * On one VP nobody steals, and all that decides which thread comes next is the
 * order in which the queues are looked at. With a seed every pick draws from
 * all threads that are ready: marcel_runq_pick() asks here, and the shorter
 * ways are closed by what they test anyway, because the VP always has had
 * enough hand-overs and every pick is the one of another queue. Threads are
 * told apart by the order in which they were made, never by an address.
 *
 * There is no tick. What the kernel decides, which is when a time has come, a
 * call that sleeps returns, or another kernel thread wakes one of ours, is
 * beyond us.
 */
#ifndef MARCEL_SCHED_RANDOM_H
#define MARCEL_SCHED_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>

struct marcel_random {
	/* -: const between init and end    o: who drives the VP
	 * a: atomic, relaxed; written by who drives it */
	bool on;                /* -: */
	bool prints;            /* o: the hash, once, at the end */
	uint64_t seed;          /* -: */
	uint64_t state;         /* o: of the generator */
	uint64_t threads;       /* o: seen so far, main not counted */
	ATOMIC(uint64_t) hash;  /* a: over all picks so far */
	ATOMIC(uint64_t) picks; /* a: */
};

/* A value of MARCEL_SCHED; 0, or -EINVAL after a line on stderr. random.c. */
int marcel_random_parse(const char *text, struct marcel_random *out);

/* The hash, if it was asked for and not yet printed. random.c. */
void marcel_random_print(void);

/* The same when the process exits. 0 or -ENOMEM. random.c. */
int marcel_random_init(void);

/* 64 bits in which each depends on all of x. */
static inline uint64_t marcel_random_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* The next number below n, which is not 0. The owner. */
static inline uint32_t marcel_random_draw(struct marcel_random *r, uint32_t n)
{
	uint64_t x;

	r->state += 0x9e3779b97f4a7c15; /* splitmix64 */
	x = marcel_random_mix(r->state);
	return (uint32_t)((x >> 32) * n >> 32);
}

/* That thread was picked. The owner. */
static inline void marcel_random_note(struct marcel_random *r, uint64_t thread)
{
	uint64_t hash = load_relaxed(&r->hash);

	store_relaxed(&r->hash, marcel_random_mix(hash + thread + 1));
	store_relaxed(&r->picks, load_relaxed(&r->picks) + 1);
}

#endif
