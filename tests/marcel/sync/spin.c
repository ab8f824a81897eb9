/* sync/spin.c */
#include "crowd.h"

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

/* Everybody drops its reference; the last unmaps the lock. */
struct counted {
	marcel_spin_t s;
	int references;
};

struct pages {
	struct counted *page[ROUNDS];
	marcel_barrier_t start;
};

static void drop_references(void *arg, int i)
{
	struct pages *p = arg;

	for (int n = 0; n < ROUNDS; n++) {
		struct counted *c = p->page[n];
		bool last;

		if (n % 16 == 0)
			marcel_barrier_wait(&p->start);
		CHECK_INT(marcel_spin_lock(&c->s), 0);
		last = --c->references == 0;
		if ((n + i) % 5 == 0)
			marcel_yield();
		CHECK_INT(marcel_spin_unlock(&c->s), 0);
		if (last)
			page_free(c);
	}
}

TEST(unlock_touches_nothing_after_it_let_the_next_in)
{
	static struct pages p;

	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		int size = crowd_size(&crowds[c]);

		for (int n = 0; n < ROUNDS; n++) {
			p.page[n] = page_new();
			p.page[n]->references = size;
			CHECK_INT(marcel_spin_init(&p.page[n]->s, 0), 0);
		}
		CHECK_INT(marcel_barrier_init(&p.start, NULL, (unsigned)size),
			  0);
		crowd_run(&crowds[c], drop_references, &p);
		CHECK_INT(marcel_barrier_destroy(&p.start), 0);
	}
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
