/* sync/spin.c */
#include "references.h"

#include <errno.h>

struct shared {
	marcel_spin_t s;
	long counter; /* plain: the lock gives exclusion and order */
	bool inside;
	bool yields; /* inside: the holder stands behind who spins */
};

static void count_up(void *arg, int i)
{
	struct shared *s = arg;

	for (int n = 0; n < ROUNDS; n++) {
		if (n % 2 == 0)
			CHECK_INT(marcel_spin_lock(&s->s), 0);
		else
			while (marcel_spin_trylock(&s->s) == EBUSY)
				marcel_yield();
		CHECK(!s->inside);
		s->inside = true;
		s->counter++;
		if (s->yields && (n + i) % 3 == 0)
			marcel_yield();
		s->inside = false;
		CHECK_INT(marcel_spin_unlock(&s->s), 0);
	}
}

static void check_exclusion(bool yields)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct shared s = { .yields = yields };

		CHECK_INT(marcel_spin_init(&s.s, 0), 0);
		crowd_run(&crowds[c], count_up, &s);
		CHECK_INT(s.counter, (long)ROUNDS * crowd_size(&crowds[c]));
		CHECK_INT(marcel_spin_destroy(&s.s), 0);
	}
}

TEST(one_thread_is_inside)
{
	check_exclusion(false);
}

TEST(who_holds_it_may_lose_its_vp)
{
	check_exclusion(true);
}

static int init_it(void *lock)
{
	return marcel_spin_init(lock, 0);
}

static int lock_it(void *lock)
{
	return marcel_spin_lock(lock);
}

static int unlock_it(void *lock)
{
	return marcel_spin_unlock(lock);
}

TEST(unlock_touches_nothing_after_it_let_the_next_in)
{
	static const struct lock_calls calls = { init_it, lock_it, unlock_it };

	check_references(&calls);
}

TEST(misuse_is_refused)
{
	marcel_spin_t s;

	CHECK_INT(marcel_spin_init(&s, 1), ENOTSUP);
	CHECK_INT(marcel_spin_init(&s, 0), 0);
	CHECK_INT(marcel_spin_unlock(&s), EPERM);
	CHECK_INT(marcel_spin_lock(&s), 0);
	CHECK_INT(marcel_spin_lock(&s), EDEADLK);
	CHECK_INT(marcel_spin_trylock(&s), EBUSY);
	CHECK_INT(marcel_spin_destroy(&s), EBUSY);
	CHECK_INT(marcel_spin_unlock(&s), 0);
	CHECK_INT(marcel_spin_destroy(&s), 0);
}
