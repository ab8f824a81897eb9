/*
 * marcel/sync/barrier.c: nobody passes before all have come, everybody sees
 * what all did before, one is told that it was the last and may free it.
 *
 * covers: barrier
 */
#include "sync_world.h"

#include "../../marcel/sync/waitq.c"
#include "../../marcel/sync/barrier.c"

enum { MANY = 4 };

/* Of an attribute, which nobody has here. */
int marcel_barrierattr_getpshared(const marcel_barrierattr_t *attr, int *shared)
{
	explore_fail("no attribute was given");
}

static marcel_barrier_t barrier;
static int came[2][MANY], size;
static ATOMIC(int) serials;

static void pass(int round, int i)
{
	came[round][i] = 1;
	if (marcel_barrier_wait(&barrier) == MARCEL_BARRIER_SERIAL_THREAD)
		fetch_add_relaxed(&serials, 1);
	for (int k = 0; k < size; k++)
		explore_check(came[round][k] == 1);
}

static void once(void *arg)
{
	pass(0, (int)(intptr_t)arg);
}

static void twice(void *arg)
{
	pass(0, (int)(intptr_t)arg);
	pass(1, (int)(intptr_t)arg);
}

static void free_if_serial(void *arg)
{
	if (marcel_barrier_wait(&barrier) != MARCEL_BARRIER_SERIAL_THREAD)
		return;
	explore_check(marcel_barrier_destroy(&barrier) == 0);
	explore_gone(&barrier, sizeof(barrier));
}

static void one_serial(void)
{
	explore_check(load_relaxed(&serials) == 1);
}

static void two_serials(void)
{
	explore_check(load_relaxed(&serials) == 2);
}

static void spawn(int n, void (*fn)(void *arg))
{
	static const char *const name[] = { "one", "two", "three", "four" };

	world_init();
	size = n;
	marcel_barrier_init(&barrier, NULL, (unsigned)n);
	explore_name(&barrier, sizeof(barrier), "barrier");
	explore_name(came, sizeof(came), "came");
	for (int i = 0; i < n; i++)
		explore_spawn(name[i], fn, (void *)(intptr_t)i);
}

EXPLORE(nobody_passes_before_all_have_come)
{
	spawn(3, once);
	explore_finish(one_serial);
}

EXPLORE(it_is_ready_for_the_next_round_at_once)
{
	spawn(2, twice);
	explore_finish(two_serials);
}

static void anyhow(void *arg)
{
	if (marcel_barrier_wait(&barrier) == MARCEL_BARRIER_SERIAL_THREAD)
		fetch_add_relaxed(&serials, 1);
}

EXPLORE(more_threads_than_its_number_pass_in_pairs)
{
	spawn(4, anyhow);
	marcel_barrier_init(&barrier, NULL, 2);
	explore_finish(two_serials);
}

EXPLORE(the_serial_thread_may_free_it)
{
	spawn(3, free_if_serial);
}
