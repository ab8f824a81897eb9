/*
 * Everybody drops its reference under a lock; the last unmaps the page that the
 * lock lies in, while those before it may still be in their unlock.
 */
#ifndef TESTS_MARCEL_SYNC_REFERENCES_H
#define TESTS_MARCEL_SYNC_REFERENCES_H

#include "crowd.h"

struct lock_calls {
	int (*init)(void *lock);
	int (*lock)(void *lock);
	int (*unlock)(void *lock);
};

struct counted {
	union {
		marcel_mutex_t mutex;
		marcel_spin_t spin;
	} lock;
	int references;
};

struct pages {
	const struct lock_calls *calls;
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
		CHECK_INT(p->calls->lock(&c->lock), 0);
		last = --c->references == 0;
		if ((n + i) % 5 == 0)
			marcel_yield();
		CHECK_INT(p->calls->unlock(&c->lock), 0);
		if (last)
			page_free(c);
	}
}

static inline void check_references(const struct lock_calls *calls)
{
	static struct pages p;

	p.calls = calls;
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		int size = crowd_size(&crowds[c]);

		for (int n = 0; n < ROUNDS; n++) {
			p.page[n] = page_new();
			p.page[n]->references = size;
			CHECK_INT(calls->init(&p.page[n]->lock), 0);
		}
		CHECK_INT(marcel_barrier_init(&p.start, NULL, (unsigned)size),
			  0);
		crowd_run(&crowds[c], drop_references, &p);
		CHECK_INT(marcel_barrier_destroy(&p.start), 0);
	}
}

#endif
