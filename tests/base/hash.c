/* base/hash.h: the rules that its users rely on. */
#include "../check.h"

#include <stdlib.h>

#include <base/hash.h>

struct item {
	struct base_link link;
	uint64_t key, hash;
	bool mark;
};

static struct item *item_of(const struct base_link *n)
{
	return container_of((struct base_link *)n, struct item, link);
}

static bool item_is(const struct base_link *n, bool mark, const void *key)
{
	CHECK_INT(mark, item_of(n)->mark);
	return item_of(n)->key == *(const uint64_t *)key;
}

static uint64_t hash_of(const struct base_link *n, bool mark, unsigned arg)
{
	CHECK_INT(mark, item_of(n)->mark);
	CHECK_INT(arg, 5);
	return item_of(n)->hash;
}

static struct base_hash_place place_of(struct base_hash *h,
				       const struct item *like)
{
	return base_hash_find(h, like->hash, item_is, &like->key);
}

/* The first item with the key and hash of this one. */
static struct item *find(struct base_hash *h, const struct item *like)
{
	struct base_hash_place place = place_of(h, like);

	return place.at != NULL ? item_of(base_hash_first(place)) : NULL;
}

static void insert(struct base_hash *h, struct item *item)
{
	struct base_hash_place place = { base_hash_slot(h, item->hash), NULL };

	base_hash_insert(h, place, item->hash, &item->link, item->mark);
}

static void take_off(struct base_hash *h, struct item *item)
{
	if (!base_hash_remove_inner(&item->link))
		base_hash_remove(h,
				 base_hash_find_end(h, item->hash, &item->link),
				 &item->link);
}

static struct item *items_make(size_t n)
{
	struct item *items = calloc(n, sizeof(*items));

	for (size_t i = 0; i < n; i++) {
		items[i].key = i;
		items[i].hash = base_hash_mix(i, 0);
		items[i].mark = i % 3 == 0;
	}
	return items;
}

static void count_list(struct base_hash_place place, void *arg)
{
	CHECK(place.at != NULL);
	++*(size_t *)arg;
}

TEST(what_is_inserted_is_found_until_it_is_removed)
{
	enum { N = 5000 };
	struct item *items = items_make(N);
	struct base_hash h;

	base_hash_init(&h, hash_of, 5);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		insert(&h, &items[i]);
		if (i % 97 == 0)
			base_hash_check(&h);
		CHECK_PTR(find(&h, &items[i / 2]), &items[i / 2]);
	}
	for (size_t i = 0; i < N; i += 2)
		take_off(&h, &items[i]);
	base_hash_check(&h);
	CHECK_INT(h.count, N / 2);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, &items[i]), i % 2 ? &items[i] : NULL);
	base_hash_exit(&h);
	free(items);
}

TEST(lists_of_one_hash_are_told_apart_by_their_key)
{
	enum { N = 40 };
	struct item *items = items_make(N);
	struct base_hash h;

	base_hash_init(&h, hash_of, 5);
	CHECK_INT(base_hash_reserve(&h, N), 0);
	for (size_t i = 0; i < N; i++) {
		items[i].hash = 7;
		insert(&h, &items[i]);
	}
	for (size_t i = 1; i < N; i += 3)
		take_off(&h, &items[i]);
	base_hash_check(&h);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, &items[i]), i % 3 == 1 ? NULL : &items[i]);
	base_hash_exit(&h);
	free(items);
}

TEST(growing_moves_at_most_16_slots_an_insertion)
{
	enum { N = 20000 };
	struct item *items = items_make(N);
	uint32_t size = 0, cursor = 0, seen = 0;
	struct base_hash h;

	base_hash_init(&h, hash_of, 5);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		insert(&h, &items[i]);
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

	base_hash_init(&h, hash_of, 5);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		insert(&h, &items[i]);
		CHECK(h.count * 4 <= (size_t)h.now.size * 3);
		if (i > 100)
			CHECK(h.count * 100 >= (size_t)h.now.size * 36);
	}
	base_hash_exit(&h);
	free(items);
}

/* By malloc() at first, then mapped: 64 KiB are between 3079 and 6151 slots. */
TEST(a_small_table_grows_from_the_heap_to_a_mapping)
{
	enum { N = 20000 };
	struct item *items = items_make(N);
	struct base_hash h;

	base_hash_init_small(&h, hash_of, 5);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		insert(&h, &items[i]);
		if (i % 500 == 0)
			base_hash_check(&h);
	}
	for (size_t i = 0; i < N; i++)
		CHECK(find(&h, &items[i]) == &items[i]);
	base_hash_exit(&h);
	base_hash_init_small(&h, hash_of, 5);
	CHECK_INT(base_hash_reserve(&h, 17), 0);
	insert(&h, &items[0]);
	base_hash_exit(&h);
	free(items);
}

TEST(the_index_never_shrinks)
{
	enum { N = 10000 };
	struct item *items = items_make(N);
	struct base_hash h;
	uint32_t size;

	base_hash_init(&h, hash_of, 5);
	CHECK_INT(base_hash_reserve(&h, N), 0);
	size = h.now.size;
	for (size_t i = 0; i < N; i++)
		insert(&h, &items[i]);
	for (size_t i = 0; i < N; i++)
		take_off(&h, &items[i]);
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

	base_hash_init(&h, hash_of, 5);
	CHECK_INT(base_hash_reserve(&h, 1), 0);
	size = h.now.size;
	for (size_t i = 0; i < N; i++)
		insert(&h, &items[i]);
	CHECK_INT(h.now.size, size);
	base_hash_check(&h);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, &items[i]), &items[i]);
	base_hash_exit(&h);
	free(items);
}

/* A table that is in the middle of growing. */
TEST(a_reserve_for_many_while_growing_keeps_all_lists)
{
	enum { N = 4000 };
	struct item *items = items_make(N);
	struct base_hash h;
	size_t n = 0, count = 0;

	base_hash_init(&h, hash_of, 5);
	for (; h.old.slots == NULL || n < 1000; n++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		insert(&h, &items[n]);
	}
	CHECK(h.old.slots != NULL);
	CHECK_INT(base_hash_reserve(&h, 1000000), 0);
	base_hash_check(&h);
	base_hash_walk(&h, count_list, &count);
	CHECK_INT(count, n);
	for (; n < N; n++)
		insert(&h, &items[n]);
	base_hash_check(&h);
	for (size_t i = 0; i < N; i++)
		CHECK_PTR(find(&h, &items[i]), &items[i]);
	base_hash_exit(&h);
	free(items);
}

struct removal {
	struct base_hash *h;
	size_t left;
};

static void remove_odd(struct base_hash_place place, void *arg)
{
	struct item *item = item_of(base_hash_first(place));
	struct removal *r = arg;

	if (item->key % 2)
		base_hash_remove(r->h, place, &item->link);
	else
		r->left++;
}

TEST(a_walk_may_end_the_list_it_is_at)
{
	enum { N = 1000 };
	struct item *items = items_make(N);
	struct base_hash h;
	struct removal r = { &h, 0 };

	base_hash_init(&h, hash_of, 5);
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(base_hash_reserve(&h, 1), 0);
		insert(&h, &items[i]);
	}
	base_hash_walk(&h, remove_odd, &r);
	CHECK_INT(r.left, N / 2);
	CHECK_INT(h.count, N / 2);
	base_hash_check(&h);
	base_hash_exit(&h);
	free(items);
}

/*
 * Random work on a few lists of few hashes against an array: pushes at the
 * end, removals anywhere, now and then all of a list; while it grows.
 */
TEST(lists_keep_their_order_whatever_leaves_them)
{
	enum { N = 64, KEYS = 9, OPERATIONS = 40000, SHARED = 3 };
	struct item *items = items_make(N), *filler = items_make(OPERATIONS);
	struct item *want[KEYS][N];
	size_t n[KEYS] = { 0 }, nfree = N;
	struct item *idle[N];
	struct base_hash h;

	base_hash_init(&h, hash_of, 5);
	for (size_t i = 0; i < N; i++)
		idle[i] = &items[i];
	for (int op = 0; op < OPERATIONS; op++) {
		size_t k = check_random() % KEYS, at;
		struct item like = { .key = k, .hash = k % SHARED << 40 };
		struct base_hash_place place;

		like.mark = k % 2;
		CHECK_INT(base_hash_reserve(&h, 2), 0);
		if (op % 16 == 0) { /* makes it grow */
			filler[op].key += KEYS;
			insert(&h, &filler[op]);
		}
		place = place_of(&h, &like);
		CHECK_PTR(find(&h, &like), n[k] ? want[k][0] : NULL);
		if (check_random() % 2 && nfree > 0) {
			struct item *item = idle[--nfree];

			*item = like;
			if (n[k] == 0)
				insert(&h, item);
			else
				base_hash_append(place, &item->link);
			want[k][n[k]++] = item;
		} else if (n[k] > 0 && check_random() % 8 == 0) {
			struct base_list out;

			base_list_init(&out);
			base_hash_take_list(&h, place, &out);
			for (at = 0; at < n[k]; at++)
				CHECK_PTR(base_list_take_front(&out),
					  &want[k][at]->link);
			CHECK(base_list_is_empty(&out));
			while (n[k] > 0)
				idle[nfree++] = want[k][--n[k]];
		} else if (n[k] > 0) {
			at = check_random() % n[k];
			take_off(&h, want[k][at]);
			CHECK(!base_link_is_on(&want[k][at]->link));
			idle[nfree++] = want[k][at];
			for (n[k]--; at < n[k]; at++)
				want[k][at] = want[k][at + 1];
		}
		if (op % 32 == 0)
			base_hash_check(&h);
	}
	base_hash_exit(&h);
	free(items);
	free(filler);
}

/* Longest chain of n keys i * stride in a table sized for them. */
static unsigned longest_chain(size_t n, uint64_t stride, uint64_t other)
{
	struct item *items = items_make(n);
	unsigned longest = 0;
	struct base_hash h;

	base_hash_init(&h, hash_of, 5);
	CHECK_INT(base_hash_reserve(&h, n), 0);
	for (size_t i = 0; i < n; i++) {
		items[i].hash = base_hash_mix(other, i * stride);
		insert(&h, &items[i]);
	}
	for (uint32_t i = 0; i < h.now.size; i++) {
		unsigned length = 0;

		for (const struct base_link *list = h.now.slots[i].first; list;
		     list = base_hash_plain(list)->prev->next)
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
