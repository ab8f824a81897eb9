/* marcel/sched/deque.h: each entry is taken once, whoever takes it. */
#include <pthread.h>
#include <sched.h>

#include <base/atomic.h>
#include "../../check.h"
#include "../../../marcel/sched/deque.h"

enum { THIEVES = 3, ENTRIES = 200000 };

static struct marcel_deque deque;
static ATOMIC(int) taken[ENTRIES];
static ATOMIC(int) stop;

static void *entry(long i)
{
	return (void *)(i + 1);
}

static void mark(void *x)
{
	fetch_add_relaxed(&taken[(long)x - 1], 1);
}

static void *steal_all(void *arg)
{
	void *x;

	while (!load_acquire(&stop) || marcel_deque_length(&deque) > 0)
		if ((x = marcel_deque_steal(&deque)) != NULL)
			mark(x);
		else
			sched_yield();
	return arg;
}

/* The owner pushes all, and takes back by `take` now and then. */
static void own(void *(*take)(struct marcel_deque *))
{
	pthread_t thief[THIEVES];
	void *x;

	CHECK_INT(marcel_deque_init(&deque, 4), 0);
	store_relaxed(&stop, 0);
	for (long i = 0; i < ENTRIES; i++)
		store_relaxed(&taken[i], 0);
	for (int i = 0; i < THIEVES; i++)
		CHECK_INT(pthread_create(&thief[i], NULL, steal_all, NULL), 0);
	for (long i = 0; i < ENTRIES; i++) {
		CHECK(marcel_deque_push(&deque, entry(i)));
		for (uint64_t n = check_random() % 3; n > 0; n--)
			if ((x = take(&deque)) != NULL)
				mark(x);
	}
	while ((x = take(&deque)) != NULL)
		mark(x);
	store_release(&stop, 1);
	for (int i = 0; i < THIEVES; i++)
		CHECK_INT(pthread_join(thief[i], NULL), 0);
	for (long i = 0; i < ENTRIES; i++)
		CHECK_INT(load_relaxed(&taken[i]), 1);
	marcel_deque_exit(&deque);
}

TEST(owner_of_the_newest_and_thieves_share_without_loss)
{
	own(marcel_deque_take_newest);
}

TEST(owner_of_the_oldest_and_thieves_share_without_loss)
{
	own(marcel_deque_take_oldest);
}

static void check_order(bool (*push)(struct marcel_deque *, void *),
			void *(*newest)(struct marcel_deque *),
			void *(*oldest)(struct marcel_deque *))
{
	CHECK_INT(marcel_deque_init(&deque, 2), 0);
	CHECK_PTR(newest(&deque), NULL);
	CHECK_PTR(oldest(&deque), NULL);
	CHECK_PTR(marcel_deque_newest(&deque), NULL);
	for (long round = 0; round < 100; round++) {
		for (long i = 0; i < 10; i++)
			CHECK(push(&deque, entry(i)));
		CHECK_INT(marcel_deque_length(&deque), 10);
		CHECK_PTR(marcel_deque_newest(&deque), entry(9));
		CHECK_PTR(newest(&deque), entry(9));
		CHECK_PTR(oldest(&deque), entry(0));
		CHECK_PTR(marcel_deque_steal(&deque), entry(1));
		CHECK_PTR(newest(&deque), entry(8));
		for (long i = 2; i < 8; i++)
			CHECK_PTR(oldest(&deque), entry(i));
		CHECK_PTR(newest(&deque), NULL);
		CHECK_PTR(oldest(&deque), NULL);
		CHECK_PTR(marcel_deque_steal(&deque), NULL);
		CHECK(!marcel_deque_has_seq(&deque));
	}
	marcel_deque_exit(&deque);
}

TEST(the_newest_and_the_oldest_are_told_apart)
{
	check_order(marcel_deque_push, marcel_deque_take_newest,
		    marcel_deque_take_oldest);
	check_order(marcel_deque_push_sole, marcel_deque_take_newest_sole,
		    marcel_deque_take_oldest_sole);
}
