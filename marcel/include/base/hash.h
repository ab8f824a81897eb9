/*
 * Growing hash table of nodes that lie in their owners' structures: nothing is
 * allocated but the index, and that only in base_hash_reserve().
 *
 * Separate chaining; a slot of the index holds the hash of its first node, so
 * that a look-up which finds nothing reads one cache line. Sizes are primes
 * that roughly double, the load stays at or below 75 % as long as the user
 * reserves, and is simply higher while he does not. The index never shrinks.
 *
 * Growing is incremental: every insertion moves 16 slots of the old index. A
 * hash belongs to the old index until its slot there has been passed, then to
 * the new one; so there is always exactly one place to look, and every
 * operation but reserve takes bounded time.
 *
 *   old  [ moved | moved | moved | n1 | n2 ]     now [ .. n0 .. ]
 *                            cursor^
 *
 * Not synchronised: whoever owns the table calls it.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/compiler.h>

struct base_hash_node {
	struct base_hash_node *next; /* in the chain of its slot */
	uint64_t hash;               /* the user's, constant while inserted */
};

struct base_hash_slot {
	struct base_hash_node *first;
	uint64_t hash; /* of the first node; of no meaning if there is none */
};

struct base_hash_index {
	struct base_hash_slot *slots; /* NULL: there is no such index */
	uint64_t magic;               /* 2^64 / size, rounded up */
	uint32_t size;                /* a prime */
};

struct base_hash {
	struct base_hash_index now;
	struct base_hash_index old; /* while growing */
	uint32_t cursor;            /* slots of old below it are moved */
	size_t count;               /* nodes inserted */
	void *retired; /* an old index, freed by the next reserve */
};

/* An empty table without an index; the first reserve makes one. */
void base_hash_init(struct base_hash *h);

/* Gives the index back; nodes that are still inserted are forgotten. */
void base_hash_exit(struct base_hash *h);

/*
 * Make room for n more nodes at a load of 75 %. The only function that
 * allocates; must be called once before the first insertion. 0 or -ENOMEM:
 * then the table works on with the index it has.
 */
int base_hash_reserve(struct base_hash *h, size_t n);

/* node->hash is set by the caller; an equal key may be inserted twice. */
void base_hash_insert(struct base_hash *h, struct base_hash_node *node);

/* The node must be inserted. */
void base_hash_remove(struct base_hash *h, struct base_hash_node *node);

/* Calls fn for every node; fn may remove the node it is given, no other. */
void base_hash_walk(struct base_hash *h,
		    void (*fn)(struct base_hash_node *node, void *arg),
		    void *arg);

/* Aborts if the table contradicts itself. */
void base_hash_check(const struct base_hash *h);

/*
 * Two words into one, all bits of which depend on all bits of both: the two
 * halves of a 128-bit product. Neighbouring numbers get unrelated hashes.
 */
static inline uint64_t base_hash_mix(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) *
			      (b ^ 0xe7037ed1a0b428dbu);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Remainder by the prime size without a division (Lemire's fastmod). */
static inline uint32_t base_hash_slot_of(const struct base_hash_index *x,
					 uint64_t hash)
{
	uint64_t fraction = x->magic * (uint32_t)(hash >> 32);

	return (uint32_t)(((__uint128_t)fraction * x->size) >> 64);
}

/* The one slot where a node of this hash is. */
static inline struct base_hash_slot *base_hash_slot(const struct base_hash *h,
						    uint64_t hash)
{
	if (unlikely(h->old.slots != NULL)) {
		uint32_t i = base_hash_slot_of(&h->old, hash);

		if (i >= h->cursor)
			return &h->old.slots[i];
	}
	return &h->now.slots[base_hash_slot_of(&h->now, hash)];
}

/* The first node of this hash for which is_it() holds, or NULL. */
BASE_INLINE struct base_hash_node *base_hash_find(
	const struct base_hash *h, uint64_t hash,
	bool (*is_it)(const struct base_hash_node *node, const void *key),
	const void *key)
{
	const struct base_hash_slot *slot = base_hash_slot(h, hash);
	struct base_hash_node *n = slot->first;

	if (n == NULL || (slot->hash != hash && n->next == NULL))
		return NULL;
	for (; n != NULL; n = n->next)
		if (n->hash == hash && is_it(n, key))
			return n;
	return NULL;
}

#endif
