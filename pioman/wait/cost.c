/*
 * Who waits and sleeps, when everything is armed, is woken by the watcher, and
 * that by the kernel: two kernel threads are woken one after the other. So that
 * is what is measured: there and back between the caller and the watcher, which
 * has been made anyway and has nothing to do yet; a kernel thread for this
 * alone would cost twice what is measured here. To poll for as long as a sleep
 * costs is never worse than twice the best.
 *
 * What disturbs only makes it longer, so a low one of a few is taken. If a
 * neighbour has our core there are fewer of them, or none: there is a deadline.
 */
#include "cost.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/clock.h>
#include <base/compiler.h>

enum {
	PINGS = 8,
	LONGEST_NS = 300000, /* of all together */
	COST_MIN_NS = 2000,
	COST_MAX_NS = 50000,
};

/* Who is to do something. */
enum { CALLER, WATCHER, OVER };

static ATOMIC(uint32_t) turn; /* a: nothing else is handed over: relaxed */

/* Until the turn is no longer that, or for so long, or for a while. */
static void sleep_while(uint32_t whose, const struct timespec *longest)
{
	syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, whose, longest, NULL, 0);
}

static void wake(void)
{
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void piom_cost_prepare(bool wanted)
{
	store_relaxed(&turn, wanted ? CALLER : OVER);
}

void piom_cost_answer(void)
{
	uint32_t whose;

	while ((whose = load_relaxed(&turn)) != OVER) {
		if (whose == CALLER)
			sleep_while(CALLER, NULL);
		else if (cas_relaxed(&turn, &whose, CALLER))
			wake();
	}
}

/* There and back, ns; 0: not before the deadline. */
static uint64_t ping(uint64_t deadline)
{
	uint64_t start = base_now_ns(), now = start;
	struct timespec left = { 0 };

	store_relaxed(&turn, WATCHER);
	wake();
	while (load_relaxed(&turn) == WATCHER) {
		now = base_now_ns();
		if (now >= deadline)
			return 0;
		left.tv_nsec = (long)(deadline - now);
		sleep_while(WATCHER, &left);
	}
	return base_now_ns() - start;
}

static void put_in_order(uint64_t *ns, int n, uint64_t took)
{
	for (; n > 0 && ns[n - 1] > took; n--)
		ns[n] = ns[n - 1];
	ns[n] = took;
}

uint64_t piom_cost_measure(void)
{
	uint64_t deadline = base_now_ns() + LONGEST_NS, ns[PINGS], took;
	int n = 0;

	while (n < PINGS && (took = ping(deadline)) > 0)
		put_in_order(ns, n++, took);
	store_relaxed(&turn, OVER);
	wake();
	if (n < 2) /* the watcher may just have begun */
		return 0;
	took = ns[n / 4];
	if (took < COST_MIN_NS)
		return COST_MIN_NS;
	return took < COST_MAX_NS ? took : COST_MAX_NS;
}
