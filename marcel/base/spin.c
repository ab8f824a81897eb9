/*
 * The slow half of the spinlock: a bounded spin, then a futex. The word says
 * 2 while anybody sleeps or may sleep; who leaves then wakes one.
 */
#include <base/spin.h>

#include <sched.h>

#include <base/diag.h>
#include "../arch/cpu.h"
#include "../os/os.h"

enum {
	SPINS = 64, /* about 1 us of cpu_relax() */
	YIELDS = 64,
	NAP_NS = 50000,
};

BASE_PUBLIC void base_spin_lock_slow(struct base_spin *s)
{
	for (int i = 0; i < SPINS; i++) {
		uint32_t free = 0;

		if (load_relaxed(&s->word) == 0 &&
		    cas_acquire(&s->word, &free, 1)) /* order(spin) */
			return;
		cpu_relax();
	}
	/* Taken as 2: we cannot know that nobody else sleeps. */
	while (xchg_acquire(&s->word, 2) != 0) /* order(spin) */
		os_futex_wait(&s->word, 2);
}

BASE_PUBLIC void base_spin_unlock_slow(struct base_spin *s)
{
	os_futex_wake(&s->word, 1);
}

BASE_PUBLIC void base_spin_turn(unsigned *turn)
{
	uint32_t never = 0;

	if (*turn < SPINS)
		cpu_relax();
	else if (*turn < SPINS + YIELDS)
		sched_yield();
	else
		os_futex_wait_for(&never, 0, NAP_NS);
	if (*turn < SPINS + YIELDS)
		(*turn)++;
}

#ifndef NDEBUG
enum { DEPTH_MAX = 8 };

/* The kernel thread's, whichever user threads run on it in turns. */
static __thread struct {
	struct base_spin *held[DEPTH_MAX];
	int depth;
} ranks;

BASE_PUBLIC BASE_NO_TSAN void base_spin_rank_push(struct base_spin *s)
{
	if (s->rank == BASE_RANK_NONE)
		return;
	base_check(ranks.depth < DEPTH_MAX);
	if (ranks.depth > 0 && ranks.held[ranks.depth - 1]->rank >= s->rank)
		base_fatal("check", "a lock of rank %u taken inside rank %u",
			   s->rank, ranks.held[ranks.depth - 1]->rank);
	ranks.held[ranks.depth++] = s;
}

BASE_PUBLIC BASE_NO_TSAN void base_spin_rank_pop(struct base_spin *s)
{
	if (s->rank == BASE_RANK_NONE)
		return;
	for (int i = ranks.depth; i-- > 0;) {
		if (ranks.held[i] != s)
			continue;
		for (; i + 1 < ranks.depth; i++)
			ranks.held[i] = ranks.held[i + 1];
		ranks.depth--;
		return;
	}
	base_fatal("check",
		   "a lock of rank %u unlocked by who does not hold it",
		   s->rank);
}
#endif
