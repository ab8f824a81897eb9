/*
 * The index of a hash table: growing, a few slots at a time; and the chains.
 */
#include <base/hash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <base/diag.h>

enum {
	STEP = 16,              /* slots that an insertion moves */
	MAPPED_FROM = 64 * 1024 /* bytes of an index */
};

/* Each about twice the one before. */
static const uint32_t primes[] = {
	53,        97,         193,      389,       769,       1543,
	3079,      6151,       12289,    24593,     49157,     98317,
	196613,    393241,     786433,   1572869,   3145739,   6291469,
	12582917,  25165843,   50331653, 100663319, 201326611, 402653189,
	805306457, 1610612741,
};

/* Whether n lists in `size` slots are a load of at most 75 %. */
static bool fits(size_t n, uint32_t size)
{
	return n <= (size_t)size / 4 * 3;
}

static size_t bytes_of(uint32_t size)
{
	return size * sizeof(struct base_hash_slot);
}

static bool is_on_heap(const struct base_hash *h, uint32_t size)
{
	return h->use_heap && bytes_of(size) < MAPPED_FROM;
}

/*
 * The kernel clears a mapping page by page, when it is needed, and backs a
 * large one by large pages: look-ups go all over it.
 */
static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static int index_new(const struct base_hash *h, struct base_hash_index *x,
		     uint32_t size)
{
	x->slots = is_on_heap(h, size) ? calloc(size, sizeof(*x->slots))
				       : map(bytes_of(size));
	if (x->slots == NULL)
		return -ENOMEM;
	x->size = size;
	x->magic = UINT64_MAX / size + 1;
	return 0;
}

static void index_free(const struct base_hash *h, struct base_hash_index *x)
{
	if (is_on_heap(h, x->size))
		free(x->slots);
	else if (x->slots != NULL)
		munmap(x->slots, bytes_of(x->size));
	memset(x, 0, sizeof(*x));
}

BASE_PUBLIC void base_hash_init(struct base_hash *h, base_hash_fn hash_of,
				unsigned arg)
{
	memset(h, 0, sizeof(*h));
	h->hash_of = hash_of;
	h->arg = arg;
}

BASE_PUBLIC void base_hash_init_small(struct base_hash *h, base_hash_fn hash_of,
				      unsigned arg)
{
	base_hash_init(h, hash_of, arg);
	h->use_heap = true;
}

BASE_PUBLIC void base_hash_exit(struct base_hash *h)
{
	index_free(h, &h->now);
	index_free(h, &h->old);
	index_free(h, &h->retired);
	h->count = 0;
}

/* --- chains --- */

/* Where the chain goes on after the list that begins here. */
static struct base_link **end_of(const struct base_link *first)
{
	return &base_hash_plain(first)->prev->next;
}

static uint64_t hash_of(const struct base_hash *h, const struct base_link *p)
{
	return h->hash_of(base_hash_plain(p), base_hash_has(p, BASE_HASH_MARK),
			  h->arg);
}

/* The list comes with its mark, and nothing follows it. */
static void chain_push(struct base_hash_slot *slot, struct base_link *list,
		       uint64_t hash)
{
	uintptr_t more = 0;

	if (slot->first != NULL) {
		*end_of(list) = base_hash_without_more(slot->first);
		more = BASE_HASH_MORE;
	}
	slot->first = base_hash_with(list, more);
	slot->hash = hash;
}

/* A list has left the chain: what the slot says of the chain. */
static void chain_settle(const struct base_hash *h, struct base_hash_slot *slot)
{
	struct base_link *list = slot->first;

	if (likely(list == NULL))
		return;
	list = base_hash_without_more(list);
	slot->hash = hash_of(h, list);
	slot->first = base_hash_with(
		list, *end_of(list) != NULL ? BASE_HASH_MORE : 0);
}

BASE_PUBLIC void base_hash_remove_any(struct base_hash *h,
				      struct base_hash_place place,
				      struct base_link *n)
{
	struct base_link *first = base_hash_first(place);
	struct base_link *next = base_hash_next(n);

	if (n != first) {
		base_hash_plain(n->prev)->next = n->next;
		(next != NULL ? next : first)->prev =
			next != NULL ? n->prev : base_hash_plain(n->prev);
	} else if (next != NULL) {
		next->prev = n->prev;
		*place.at = base_hash_with(next, (uintptr_t)*place.at &
							 BASE_HASH_BITS);
	} else {
		*place.at = n->next;
		chain_settle(h, place.slot);
		h->count--;
	}
	base_link_init(n);
}

BASE_PUBLIC void base_hash_take_list(struct base_hash *h,
				     struct base_hash_place place,
				     struct base_list *out)
{
	struct base_link *n, *next = base_hash_first(place);

	while ((n = next) != NULL) {
		next = base_hash_next(n);
		base_hash_remove(h, place, n);
		base_list_push_back(out, n);
	}
}

/* --- growing --- */

static void push_now(struct base_hash *h, struct base_link *list, uint64_t hash)
{
	chain_push(&h->now.slots[base_hash_slot_of(&h->now, hash)], list, hash);
}

/* A list that is alone stays untouched if its new slot is empty. */
static void chain_move(struct base_hash *h, const struct base_hash_slot *slot)
{
	struct base_link *list = slot->first, *next;

	if (list == NULL)
		return;
	if (!base_hash_has(list, BASE_HASH_MORE)) {
		push_now(h, list, slot->hash);
		return;
	}
	for (list = base_hash_without_more(list); list != NULL; list = next) {
		next = *end_of(list);
		*end_of(list) = NULL;
		push_now(h, list, hash_of(h, list));
	}
}

/* The old index goes with its last slot. */
BASE_PUBLIC void base_hash_step(struct base_hash *h)
{
	uint32_t end = h->cursor + STEP;

	if (end > h->old.size)
		end = h->old.size;
	for (; h->cursor < end; h->cursor++)
		chain_move(h, &h->old.slots[h->cursor]);
	if (end < h->old.size)
		return;
	h->retired = h->old;
	memset(&h->old, 0, sizeof(h->old));
}

static int grow(struct base_hash *h, size_t n)
{
	struct base_hash_index index;
	size_t i = 0;

	while (i + 1 < BASE_ARRAY_LEN(primes) && !fits(n, primes[i]))
		i++;
	if (primes[i] <= h->now.size)
		return 0; /* the largest there is: longer chains, still right */
	if (index_new(h, &index, primes[i]) < 0)
		return -ENOMEM;
	while (h->old.slots != NULL)
		base_hash_step(h);
	index_free(h, &h->retired);
	h->old = h->now;
	h->cursor = 0;
	h->now = index;
	return 0;
}

BASE_PUBLIC int base_hash_reserve(struct base_hash *h, size_t n)
{
	if (unlikely(h->retired.slots != NULL))
		index_free(h, &h->retired);
	if (likely(fits(h->count + n, h->now.size)))
		return 0;
	return grow(h, h->count + n);
}

/* --- all of it --- */

static void walk_index(const struct base_hash_index *x, uint32_t from,
		       void (*fn)(struct base_hash_place place, void *arg),
		       void *arg)
{
	for (uint32_t i = from; i < x->size; i++) {
		struct base_hash_slot *slot = &x->slots[i];
		struct base_link **at = &slot->first, *list;

		while ((list = base_hash_plain(*at)) != NULL) {
			fn((struct base_hash_place){ slot, at }, arg);
			if (base_hash_plain(*at) == list)
				at = end_of(list);
		}
	}
}

BASE_PUBLIC void
base_hash_walk(struct base_hash *h,
	       void (*fn)(struct base_hash_place place, void *arg), void *arg)
{
	walk_index(&h->old, h->cursor, fn, arg);
	walk_index(&h->now, 0, fn, arg);
}

static void check_list(const struct base_link *first)
{
	const struct base_link *n = first, *next;

	while ((next = base_hash_next(n)) != NULL) {
		base_check(base_hash_has(next->prev, BASE_HASH_WITHIN));
		base_check(base_hash_plain(next->prev) == n);
		n = next;
	}
	base_check(first->prev == n);
}

/* Every list of slots [from, size) is where look-ups would search it. */
static size_t check_index(const struct base_hash *h,
			  const struct base_hash_index *x, uint32_t from)
{
	size_t count = 0;

	for (uint32_t i = from; i < x->size; i++) {
		const struct base_hash_slot *slot = &x->slots[i];
		const struct base_link *list = slot->first;

		if (list == NULL)
			continue;
		base_check(slot->hash == hash_of(h, list));
		base_check(base_hash_has(list, BASE_HASH_MORE) ==
			   (*end_of(list) != NULL));
		for (; list != NULL; list = *end_of(list)) {
			check_list(base_hash_plain(list));
			base_check(base_hash_slot(h, hash_of(h, list)) == slot);
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
