/*
 * The pool of MPI objects: what is given back is used again.
 */
#include "core/pool.h"

#include "../../check.h"

enum { CHAINED = MADMPI_POOL_HANDFUL + 1, ALL = 2 * MADMPI_POOL_HANDFUL };

static struct madmpi_pool pool;
static struct madmpi_object *got[ALL];

static bool is_one_of(const struct madmpi_object *o, int n)
{
	for (int i = 0; i < n; i++)
		if (got[i] == o)
			return true;
	return false;
}

/* All that a shelf has ever held, so that a new one would be another. */
TEST(of_a_chain_that_is_put_each_object_is_used_again)
{
	struct madmpi_pool_chain chain = { .n = 0 };
	struct madmpi_object *again[CHAINED];

	madmpi_pool_init(&pool, MADMPI_INFO, sizeof(struct madmpi_object));
	for (int i = 0; i < ALL; i++)
		got[i] = madmpi_pool_get(&pool);
	for (int i = 0; i < CHAINED; i++)
		madmpi_pool_put_later(&pool, got[i], &chain);
	CHECK_INT(chain.n, 1);
	madmpi_pool_put_chain(&pool, &chain);
	CHECK_INT(chain.n, 0);
	for (int i = 0; i < CHAINED; i++) {
		again[i] = madmpi_pool_get(&pool);
		CHECK(is_one_of(again[i], CHAINED));
		for (int j = 0; j < i; j++)
			CHECK(again[j] != again[i]);
	}
	madmpi_pool_exit(&pool);
}

TEST(an_object_of_a_chain_is_not_used_before_that_is_put)
{
	struct madmpi_pool_chain chain = { .n = 0 };
	struct madmpi_object *o;

	madmpi_pool_init(&pool, MADMPI_INFO, sizeof(struct madmpi_object));
	o = madmpi_pool_get(&pool);
	madmpi_pool_put_later(&pool, o, &chain);
	CHECK_INT(load_relaxed(&o->kind), MADMPI_FREED);
	for (int i = 0; i < ALL; i++)
		CHECK(madmpi_pool_get(&pool) != o);
	madmpi_pool_put_chain(&pool, &chain);
	CHECK(madmpi_pool_get(&pool) == o);
	madmpi_pool_exit(&pool);
}
