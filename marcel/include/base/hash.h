/*
 * Growing hash table of lists that are used from the front: look-ups find the
 * first of a list. A list is there while it is not empty. Links lie in their
 * owners' structures; nothing is allocated but the index, and that only in
 * base_hash_reserve().
 *
 * Separate chaining, and the chain of a slot is threaded through the links of
 * its lists, so that a list costs no memory of its own and a look-up reads the
 * slot and then what it looks for:
 *
 *   slot -> a1 == a2 == a3 -> b1 -> c1 == c2 -> NULL
 *
 *   ==  successor and predecessor in a list, marked WITHIN
 *   ->  the last's `next`: the first of the next list in the chain
 *       the first's `prev`: the last of its list, perhaps itself
 *
 * A slot holds the hash of its first list and whether there are more, so that
 * a look-up which finds nothing mostly reads one cache line. Sizes are primes
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
#include <base/list.h>

/* In the low bits of pointers to links. */
enum base_hash_bits {
	BASE_HASH_MARK = 1,   /* of a list: the user's */
	BASE_HASH_MORE = 2,   /* of a slot: more lists follow the first */
	BASE_HASH_WITHIN = 4, /* next, prev: of the same list */
	BASE_HASH_BITS = 7,
};

struct base_hash_slot {
	struct base_link *first; /* with MARK and MORE */
	uint64_t hash; /* of the first list; of no meaning if there is none */
};

struct base_hash_index {
	struct base_hash_slot *slots; /* NULL: there is no such index */
	uint64_t magic;               /* 2^64 / size, rounded up */
	uint32_t size;                /* a prime */
};

/* The hash of the list that begins with this link; `arg` is the table's. */
typedef uint64_t (*base_hash_fn)(const struct base_link *first, bool mark,
				 unsigned arg);

struct base_hash {
	struct base_hash_index now;
	struct base_hash_index old; /* while growing */
	uint32_t cursor;            /* slots of old below it are moved */
	unsigned arg;
	size_t count; /* lists */
	base_hash_fn hash_of;
	struct base_hash_index retired; /* freed by the next reserve */
	bool use_heap;                  /* small indexes come from malloc() */
};

/* Where a list hangs; good until the table changes. */
struct base_hash_place {
	struct base_hash_slot *slot;
	struct base_link **at; /* NULL: there is none, it belongs to the slot */
};

/*
 * An empty table without an index; the first reserve makes one. Each index is
 * a mapping of its own, so reserve and exit take no lock of libc.
 */
void base_hash_init(struct base_hash *h, base_hash_fn hash_of, unsigned arg);

/*
 * Like base_hash_init(), for a kind of table that a process has many of. An
 * index below 64 KiB comes from malloc(): a process can have only some 65,000
 * mappings. Reserve and exit must not be called where malloc() must not.
 */
void base_hash_init_small(struct base_hash *h, base_hash_fn hash_of,
			  unsigned arg);

/* Gives the index back; lists that are still there are forgotten. */
void base_hash_exit(struct base_hash *h);

/*
 * Make room for n more lists at a load of 75 %. The only function that
 * allocates; must be called once before the first insertion. 0 or -ENOMEM:
 * then the table works on with the index it has.
 */
int base_hash_reserve(struct base_hash *h, size_t n);

/* How many more lists that load leaves room for. */
static inline size_t base_hash_room(const struct base_hash *h)
{
	size_t most = (size_t)h->now.size / 4 * 3;

	return most > h->count ? most - h->count : 0;
}

/* Append all of the list that hangs here to `out`. */
void base_hash_take_list(struct base_hash *h, struct base_hash_place place,
			 struct base_list *out);

/* Calls fn for every list; fn may take from the list it is given, no other. */
void base_hash_walk(struct base_hash *h,
		    void (*fn)(struct base_hash_place place, void *arg),
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

/* --- pointers with bits --- */

static inline struct base_link *base_hash_plain(const struct base_link *p)
{
	return (struct base_link *)((uintptr_t)p & ~(uintptr_t)BASE_HASH_BITS);
}

static inline bool base_hash_has(const struct base_link *p,
				 enum base_hash_bits bit)
{
	return ((uintptr_t)p & bit) != 0;
}

static inline struct base_link *base_hash_with(const struct base_link *p,
					       uintptr_t bits)
{
	return (struct base_link *)((uintptr_t)p | bits);
}

static inline struct base_link *
base_hash_without_more(const struct base_link *p)
{
	return (struct base_link *)((uintptr_t)p & ~(uintptr_t)BASE_HASH_MORE);
}

/* --- a list --- */

static inline struct base_link *base_hash_first(struct base_hash_place place)
{
	return base_hash_plain(*place.at);
}

static inline bool base_hash_mark(struct base_hash_place place)
{
	return base_hash_has(*place.at, BASE_HASH_MARK);
}

/* The next of the same list, or NULL. */
static inline struct base_link *base_hash_next(const struct base_link *n)
{
	return base_hash_has(n->next, BASE_HASH_WITHIN)
		       ? base_hash_plain(n->next)
		       : NULL;
}

/* --- looking up --- */

/* Remainder by the prime size without a division (Lemire's fastmod). */
static inline uint32_t base_hash_slot_of(const struct base_hash_index *x,
					 uint64_t hash)
{
	uint64_t fraction = x->magic * (uint32_t)(hash >> 32);

	return (uint32_t)(((__uint128_t)fraction * x->size) >> 64);
}

/* The one slot where the list of this hash is. */
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

/* The first list of this hash for whose first link is_it() holds. */
BASE_INLINE struct base_hash_place
base_hash_find(const struct base_hash *h, uint64_t hash,
	       bool (*is_it)(const struct base_link *first, bool mark,
			     const void *key),
	       const void *key)
{
	struct base_hash_place p = { base_hash_slot(h, hash), NULL };
	struct base_link **at = &p.slot->first;

	if (*at == NULL ||
	    (p.slot->hash != hash && !base_hash_has(*at, BASE_HASH_MORE)))
		return p;
	for (; *at != NULL; at = &base_hash_plain(*at)->prev->next) {
		if (is_it(base_hash_plain(*at),
			  base_hash_has(*at, BASE_HASH_MARK), key)) {
			p.at = at;
			return p;
		}
	}
	return p;
}

/* The list that begins or ends with this link, which is in the table. */
static inline struct base_hash_place
base_hash_find_end(const struct base_hash *h, uint64_t hash,
		   const struct base_link *n)
{
	struct base_hash_place p = { base_hash_slot(h, hash), NULL };

	p.at = &p.slot->first;
	while (base_hash_first(p) != n && base_hash_first(p)->prev != n)
		p.at = &base_hash_first(p)->prev->next;
	return p;
}

/* --- changing --- */

/* Move a few slots; only while there is an old index. */
void base_hash_step(struct base_hash *h);

/* A new list of this one, where base_hash_find() found none. */
static inline void base_hash_insert(struct base_hash *h,
				    struct base_hash_place place, uint64_t hash,
				    struct base_link *n, bool mark)
{
	struct base_link *first = place.slot->first;
	uintptr_t bits = (mark ? BASE_HASH_MARK : 0) |
			 (first != NULL ? BASE_HASH_MORE : 0);

	n->next = base_hash_without_more(first);
	n->prev = n;
	place.slot->first = base_hash_with(n, bits);
	place.slot->hash = hash;
	h->count++;
	if (unlikely(h->old.slots != NULL))
		base_hash_step(h);
}

static inline void base_hash_append(struct base_hash_place place,
				    struct base_link *n)
{
	struct base_link *first = base_hash_first(place), *last = first->prev;

	n->next = last->next;
	n->prev = base_hash_with(last, BASE_HASH_WITHIN);
	last->next = base_hash_with(n, BASE_HASH_WITHIN);
	first->prev = n;
}

/* Take a link off its list unless it is the first or last; true: done. */
static inline bool base_hash_remove_inner(struct base_link *n)
{
	if (!base_hash_has(n->next, BASE_HASH_WITHIN) ||
	    !base_hash_has(n->prev, BASE_HASH_WITHIN))
		return false;
	base_hash_plain(n->prev)->next = n->next;
	base_hash_plain(n->next)->prev = n->prev;
	base_link_init(n);
	return true;
}

void base_hash_remove_any(struct base_hash *h, struct base_hash_place place,
			  struct base_link *n);

/* Take a link off the list that hangs here; the last one ends the list. */
static inline void base_hash_remove(struct base_hash *h,
				    struct base_hash_place place,
				    struct base_link *n)
{
	bool alone = place.at == &place.slot->first &&
		     base_hash_first(place) == n && n->next == NULL;

	if (unlikely(!alone)) {
		base_hash_remove_any(h, place, n);
		return;
	}
	place.slot->first = NULL;
	h->count--;
	base_link_init(n);
}

#endif
