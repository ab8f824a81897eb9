/*
 * <base/spin.h>: one holder at a time, who sees what the one before did; who
 * sleeps is woken; try-lock takes only what is free.
 *
 * covers: spin
 */
#include "explore.h"

#include <base/spin.h>
#include "../../marcel/base/spin.c"

static struct base_spin lock = BASE_SPIN_INIT(BASE_RANK_LEAF);
static int inside, entered;

static void critical(void)
{
	explore_check(inside == 0);
	inside = 1;
	entered++;
	inside = 0;
}

static void locker(void *arg)
{
	base_spin_lock(&lock);
	critical();
	base_spin_unlock(&lock);
}

static void twice(void *arg)
{
	locker(arg);
	locker(arg);
}

static int tried;

static void trier(void *arg)
{
	if (!base_spin_trylock(&lock))
		return;
	critical();
	tried = 1;
	base_spin_unlock(&lock);
}

enum { DEAD = 9 };

/* Who waits for a dead holder, and takes it from him or from the heir. */
static void heir(void *arg)
{
	if (!base_spin_take(&lock, DEAD, BASE_SPIN_NAMES) &&
	    !base_spin_take(&lock, 0, BASE_SPIN_NAMES + 1))
		return;
	critical();
	base_spin_unlock(&lock);
}

static void somebody_entered(void)
{
	explore_check(entered > 0);
	explore_check(load_relaxed(&lock.word) == 0);
}

static void three_entered(void)
{
	explore_check(entered == 3);
	explore_check(load_relaxed(&lock.word) == 0);
}

static void as_many_as_got_it(void)
{
	explore_check(entered == 2 + tried);
}

EXPLORE(one_at_a_time_and_nobody_sleeps_for_ever)
{
	explore_name(&lock, sizeof(lock), "lock");
	explore_name(&inside, sizeof(inside), "inside");
	explore_spawn("one", locker, NULL);
	explore_spawn("two", locker, NULL);
	explore_spawn("three", locker, NULL);
	explore_finish(three_entered);
}

EXPLORE(who_locks_again_lets_the_sleeper_in)
{
	explore_name(&lock, sizeof(lock), "lock");
	explore_name(&inside, sizeof(inside), "inside");
	explore_spawn("once", locker, NULL);
	explore_spawn("twice", twice, NULL);
	explore_finish(three_entered);
}

EXPLORE(sleep_may_end_for_no_reason)
{
	explore_name(&lock, sizeof(lock), "lock");
	explore_name(&inside, sizeof(inside), "inside");
	explore_spurious(1, 2);
	explore_spawn("once", locker, NULL);
	explore_spawn("twice", twice, NULL);
	explore_finish(three_entered);
}

EXPLORE(a_dead_holder_has_one_heir)
{
	store_relaxed(&lock.word, DEAD);
	explore_name(&lock, sizeof(lock), "lock");
	explore_name(&inside, sizeof(inside), "inside");
	explore_spawn("one", heir, NULL);
	explore_spawn("two", heir, NULL);
	explore_spawn("three", heir, NULL);
	explore_finish(somebody_entered);
}

EXPLORE(a_try_takes_only_what_is_free)
{
	explore_name(&lock, sizeof(lock), "lock");
	explore_name(&inside, sizeof(inside), "inside");
	explore_spawn("once", locker, NULL);
	explore_spawn("again", locker, NULL);
	explore_spawn("tries", trier, NULL);
	explore_finish(as_many_as_got_it);
}
