/* base/hash.h: the rules that its users rely on. */
#include "../check.h"

#include <stdlib.h>

#include <base/hash.h>

struct item {
	struct base_hash_node node;
	uint64_t key;
};

static bool item_is(const struct base_hash_node *n, const void *key)
{
	return ((const struct item *)n)->key == *(const uint64_t *)key;
}

static struct item *find(struct base_hash *h, uint64_t key, uint64_t hash)
{
	return (struct item *)base_hash_find(h, hash, item_is, &key);
}

static struct item *items_make(size_t n)
{
	struct item *items = calloc(n, sizeof(*items));

	for (size_t i = 0; i < n; i++) {
		items[i].key = i;
		items[i].node.hash = base_hash_mix(i, 0);
	}
	return items;
}

static void count_node(struct base_hash_node *n, void *arg)
{
	(void)n;
	++*(size_t *)arg;
}

TEST(what_is_inserted_is_found_until_it_is_removed)
{
	enum { N = 5000 };
	struct item *items = items_make(N);
	struct base_hash h;

	base_hash_init(&h);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		base_hash_insert(&h, &items[i].node);
		if (i % 97 == 0)
			base_hash_check(&h);
		CHECK_PTR(find(&h, i / 2, items[i / 2].node.hash),
			  &items[i / 2]);
	}
	for (size_t i = 0; i < N; i += 2)
		base_hash_remove(&h, &items[i].node);
	base_hash_check(&h);
	CHECK_INT(h.count, N / 2);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, i, items[i].node.hash),
			  i % 2 ? &items[i] : NULL);
	base_hash_exit(&h);
	free(items);
}

TEST(nodes_of_one_hash_are_told_apart_by_their_key)
{
	enum { N = 40 };
	struct item *items = items_make(N);
	struct base_hash h;

	base_hash_init(&h);
	CHECK_INT(base_hash_reserve(&h, N), 0);
	for (size_t i = 0; i < N; i++) {
		items[i].node.hash = 7;
		base_hash_insert(&h, &items[i].node);
	}
	for (size_t i = 1; i < N; i += 3)
		base_hash_remove(&h, &items[i].node);
	base_hash_check(&h);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, i, 7), i % 3 == 1 ? NULL : &items[i]);
	base_hash_exit(&h);
	free(items);
}

TEST(growing_moves_at_most_16_slots_an_insertion)
{
	enum { N = 20000 };
	struct item *items = items_make(N);
	uint32_t size = 0, cursor = 0, seen = 0;
	struct base_hash h;

	base_hash_init(&h);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		base_hash_insert(&h, &items[i].node);
		if (h.now.size != size) {
			size = h.now.size;
			cursor = 0;
		}
		if (h.old.slots != NULL) {
			CHECK(h.cursor - cursor <= 16);
			cursor = h.cursor;
			seen++;
		}
	}
	CHECK(seen > 0);
	base_hash_exit(&h);
	free(items);
}

TEST(load_stays_between_three_eighths_and_three_quarters)
{
	enum { N = 100000 };
	struct item *items = items_make(N);
	struct base_hash h;

	base_hash_init(&h);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		base_hash_insert(&h, &items[i].node);
		CHECK(h.count * 4 <= (size_t)h.now.size * 3);
		if (i > 100)
			CHECK(h.count * 100 >= (size_t)h.now.size * 36);
	}
	base_hash_exit(&h);
	free(items);
}

TEST(the_index_never_shrinks)
{
	enum { N = 10000 };
	struct item *items = items_make(N);
	struct base_hash h;
	uint32_t size;

	base_hash_init(&h);
	CHECK_INT(base_hash_reserve(&h, N), 0);
	size = h.now.size;
	for (size_t i = 0; i < N; i++)
		base_hash_insert(&h, &items[i].node);
	for (size_t i = 0; i < N; i++)
		base_hash_remove(&h, &items[i].node);
	CHECK_INT(base_hash_reserve(&h, 1), 0);
	CHECK_INT(h.now.size, size);
	CHECK_INT(h.count, 0);
	base_hash_exit(&h);
	free(items);
}

TEST(without_reserve_the_load_rises_and_nothing_is_lost)
{
	enum { N = 3000 };
	struct item *items = items_make(N);
	struct base_hash h;
	uint32_t size;

	base_hash_init(&h);
	CHECK_INT(base_hash_reserve(&h, 1), 0);
	size = h.now.size;
	for (size_t i = 0; i < N; i++)
		base_hash_insert(&h, &items[i].node);
	CHECK_INT(h.now.size, size);
	base_hash_check(&h);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, i, items[i].node.hash), &items[i]);
	base_hash_exit(&h);
	free(items);
}

/* A table that is in the middle of growing. */
TEST(a_reserve_for_many_while_growing_keeps_all_nodes)
{
	enum { N = 4000 };
	struct item *items = items_make(N);
	struct base_hash h;
	size_t n = 0, count = 0;

	base_hash_init(&h);
	for (; h.old.slots == NULL || n < 1000; n++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		base_hash_insert(&h, &items[n].node);
	}
	CHECK(h.old.slots != NULL);
	CHECK_INT(base_hash_reserve(&h, 1000000), 0);
	base_hash_check(&h);
	base_hash_walk(&h, count_node, &count);
	CHECK_INT(count, n);
	for (; n < N; n++)
		base_hash_insert(&h, &items[n].node);
	base_hash_check(&h);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, i, items[i].node.hash), &items[i]);
	base_hash_exit(&h);
	free(items);
}

struct removal {
	struct base_hash *h;
	size_t left;
};

static void remove_odd(struct base_hash_node *n, void *arg)
{
	struct removal *r = arg;

	if (((struct item *)n)->key % 2)
		base_hash_remove(r->h, n);
	else
		r->left++;
}

TEST(a_walk_may_remove_the_node_it_is_at)
{
	enum { N = 1000 };
	struct item *items = items_make(N);
	struct base_hash h;
	struct removal r = { &h, 0 };

	base_hash_init(&h);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		base_hash_insert(&h, &items[i].node);
	}
	base_hash_walk(&h, remove_odd, &r);
	CHECK_INT(r.left, N / 2);
	CHECK_INT(h.count, N / 2);
	base_hash_check(&h);
	base_hash_exit(&h);
	free(items);
}

/* Longest chain of n keys i * stride in a table sized for them. */
static unsigned longest_chain(size_t n, uint64_t stride, uint64_t other)
{
	struct item *items = items_make(n);
	unsigned longest = 0;
	struct base_hash h;

	base_hash_init(&h);
	CHECK_INT(base_hash_reserve(&h, n), 0);
	for (size_t i = 0; i < n; i++) {
		items[i].node.hash = base_hash_mix(other, i * stride);
		base_hash_insert(&h, &items[i].node);
	}
	for (uint32_t i = 0; i < h.now.size; i++) {
		unsigned length = 0;

		for (struct base_hash_node *c = h.now.slots[i].first; c;
		     c = c->next)
			length++;
		if (length > longest)
			longest = length;
	}
	base_hash_exit(&h);
	free(items);
	return longest;
}

/* Random hashing puts 7 to 9 of 100,000 keys into one slot at load 0.6. */
TEST(the_hash_is_strong_for_sequential_and_strided_keys)
{
	static const uint64_t strides[] = {
		1, 2, 16, 64, 1000, 4096, 65536, 196613, (uint64_t)1 << 32,
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(strides); i++)
		for (uint64_t other = 0; other < 3; other++)
			CHECK(longest_chain(100000, strides[i], other * 4096) <=
			      14);
}
