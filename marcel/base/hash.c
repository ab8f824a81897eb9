/*
 * The index of a hash table: growing, a few slots at a time.
 */
#include <base/hash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>

enum { STEP = 16 }; /* slots that an insertion moves */

/* Each about twice the one before. */
static const uint32_t primes[] = {
	53,        97,         193,      389,       769,       1543,
	3079,      6151,       12289,    24593,     49157,     98317,
	196613,    393241,     786433,   1572869,   3145739,   6291469,
	12582917,  25165843,   50331653, 100663319, 201326611, 402653189,
	805306457, 1610612741,
};

/* Whether n nodes in `size` slots are a load of at most 75 %. */
static bool fits(size_t n, uint32_t size)
{
	return n <= (size_t)size / 4 * 3;
}

BASE_PUBLIC void base_hash_init(struct base_hash *h)
{
	memset(h, 0, sizeof(*h));
}

BASE_PUBLIC void base_hash_exit(struct base_hash *h)
{
	free(h->now.slots);
	free(h->old.slots);
	free(h->retired);
	memset(h, 0, sizeof(*h));
}

static void chain_push(struct base_hash_slot *slot, struct base_hash_node *n)
{
	n->next = slot->first;
	slot->first = n;
	slot->hash = n->hash;
}

/* Move the next slots of the old index; true when it is empty. */
static bool step(struct base_hash *h)
{
	uint32_t end = h->cursor + STEP;

	if (end > h->old.size)
		end = h->old.size;
	for (; h->cursor < end; h->cursor++) {
		struct base_hash_node *n = h->old.slots[h->cursor].first, *next;

		for (; n != NULL; n = next) {
			uint32_t i = base_hash_slot_of(&h->now, n->hash);

			next = n->next;
			chain_push(&h->now.slots[i], n);
		}
	}
	if (end < h->old.size)
		return false;
	h->retired = h->old.slots;
	memset(&h->old, 0, sizeof(h->old));
	return true;
}

static int grow(struct base_hash *h, size_t n)
{
	struct base_hash_index index;
	size_t i = 0;

	while (i + 1 < BASE_ARRAY_LEN(primes) && !fits(n, primes[i]))
		i++;
	if (primes[i] <= h->now.size)
		return 0; /* the largest there is: longer chains, still right */
	index.size = primes[i];
	index.magic = UINT64_MAX / index.size + 1;
	index.slots = calloc(index.size, sizeof(*index.slots));
	if (index.slots == NULL)
		return -ENOMEM;
	if (h->now.slots != NULL && h->old.slots != NULL)
		while (!step(h))
			;
	free(h->retired);
	h->retired = NULL;
	h->old = h->now;
	h->cursor = 0;
	h->now = index;
	return 0;
}

BASE_PUBLIC int base_hash_reserve(struct base_hash *h, size_t n)
{
	if (unlikely(h->retired != NULL)) {
		free(h->retired);
		h->retired = NULL;
	}
	if (likely(fits(h->count + n, h->now.size)))
		return 0;
	return grow(h, h->count + n);
}

BASE_PUBLIC void base_hash_insert(struct base_hash *h,
				  struct base_hash_node *node)
{
	if (unlikely(h->old.slots != NULL))
		step(h);
	chain_push(base_hash_slot(h, node->hash), node);
	h->count++;
}

BASE_PUBLIC void base_hash_remove(struct base_hash *h,
				  struct base_hash_node *node)
{
	struct base_hash_slot *slot = base_hash_slot(h, node->hash);

	h->count--;
	if (likely(slot->first == node)) {
		slot->first = node->next;
		if (unlikely(node->next != NULL))
			slot->hash = node->next->hash;
		return;
	}
	for (struct base_hash_node *n = slot->first; n != NULL; n = n->next) {
		if (n->next == node) {
			n->next = node->next;
			return;
		}
	}
	base_fatal("base", "a hash node is removed that is not inserted");
}

static void walk_index(const struct base_hash_index *x, uint32_t from,
		       void (*fn)(struct base_hash_node *node, void *arg),
		       void *arg)
{
	for (uint32_t i = from; i < x->size; i++) {
		struct base_hash_node *n = x->slots[i].first, *next;

		for (; n != NULL; n = next) {
			next = n->next;
			fn(n, arg);
		}
	}
}

BASE_PUBLIC void
base_hash_walk(struct base_hash *h,
	       void (*fn)(struct base_hash_node *node, void *arg), void *arg)
{
	walk_index(&h->old, h->cursor, fn, arg);
	walk_index(&h->now, 0, fn, arg);
}

/* Every node of slots [from, size) is where look-ups would search it. */
static size_t check_index(const struct base_hash *h,
			  const struct base_hash_index *x, uint32_t from)
{
	size_t count = 0;

	for (uint32_t i = from; i < x->size; i++) {
		const struct base_hash_slot *slot = &x->slots[i];

		if (slot->first != NULL)
			base_check(slot->hash == slot->first->hash);
		for (const struct base_hash_node *n = slot->first; n != NULL;
		     n = n->next) {
			base_check(base_hash_slot(h, n->hash) == slot);
			base_check(++count <= h->count);
		}
	}
	return count;
}

BASE_PUBLIC void base_hash_check(const struct base_hash *h)
{
	size_t count = check_index(h, &h->now, 0);

	if (h->old.slots != NULL) {
		base_check(h->cursor < h->old.size);
		count += check_index(h, &h->old, h->cursor);
	}
	base_check(count == h->count);
}
