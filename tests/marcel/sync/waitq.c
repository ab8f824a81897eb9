/* sync/waitq.h: the order of those who wait. */
#include "../../check.h"

#include "../../../marcel/sync/waitq.h"

enum { N = 5 };

TEST(who_came_first_is_taken_first)
{
	struct marcel_waitq q = { 0 };
	struct marcel_waiter w[N] = { { 0 } };

	for (int i = 0; i < N; i++) {
		marcel_waitq_push(&q, &w[i]);
		CHECK_INT(marcel_waitq_check(&q), i + 1);
	}
	for (int i = 0; i < N; i++) {
		CHECK_PTR(marcel_waitq_first(&q), &w[i]);
		CHECK_PTR(marcel_waitq_take(&q), &w[i]);
		CHECK_INT(marcel_waitq_check(&q), N - 1 - i);
	}
	CHECK(marcel_waitq_is_empty(&q));
}

TEST(who_comes_back_in_front_is_taken_next)
{
	struct marcel_waitq q = { 0 };
	struct marcel_waiter w[N] = { { 0 } };

	for (int i = 0; i < N; i++)
		marcel_waitq_push_front(&q, &w[i]);
	CHECK_INT(marcel_waitq_check(&q), N);
	for (int i = N; i-- > 0;)
		CHECK_PTR(marcel_waitq_take(&q), &w[i]);
	CHECK(marcel_waitq_is_empty(&q));
}

TEST(any_waiter_can_leave)
{
	for (int leaves = 0; leaves < N; leaves++) {
		struct marcel_waitq q = { 0 };
		struct marcel_waiter w[N] = { { 0 } };

		for (int i = 0; i < N; i++)
			marcel_waitq_push(&q, &w[i]);
		marcel_waitq_remove(&q, &w[leaves]);
		CHECK_INT(marcel_waitq_check(&q), N - 1);
		for (int i = 0; i < N; i++)
			if (i != leaves)
				CHECK_PTR(marcel_waitq_take(&q), &w[i]);
		CHECK(marcel_waitq_is_empty(&q));
	}
}

TEST(a_queue_joins_behind_another)
{
	for (int before = 0; before <= N; before++) {
		struct marcel_waitq q = { 0 }, from = { 0 };
		struct marcel_waiter w[N] = { { 0 } };

		for (int i = 0; i < N; i++)
			marcel_waitq_push(i < before ? &q : &from, &w[i]);
		marcel_waitq_append(&q, &from);
		CHECK(marcel_waitq_is_empty(&from));
		CHECK_INT(marcel_waitq_check(&q), N);
		for (int i = 0; i < N; i++)
			CHECK_PTR(marcel_waitq_take(&q), &w[i]);
	}
}

TEST(all_are_taken_in_order_as_a_chain)
{
	struct marcel_waitq q = { 0 };
	struct marcel_waiter w[N] = { { 0 } }, *chain;

	CHECK_PTR(marcel_waitq_take_all(&q), NULL);
	for (int i = 0; i < N; i++)
		marcel_waitq_push(&q, &w[i]);
	chain = marcel_waitq_take_all(&q);
	CHECK(marcel_waitq_is_empty(&q));
	for (int i = 0; i < N; i++, chain = chain->next)
		CHECK_PTR(chain, &w[i]);
	CHECK_PTR(chain, NULL);
}
