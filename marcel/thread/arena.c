/*
 * Slots for stacks: mapped, guarded, taken, put back, given back.
 *
 * The lock covers bits and lists only. Who has taken a slot's bit away owns
 * the slot, and maps, guards or releases it without the lock.
 */
#include "arena.h"

#include <errno.h>

#include <base/list.h>
#include <base/spin.h>
#include "../os/checker.h"
#include "../os/os.h"
#include "../sched/sanitizer.h"
#include "watch.h"

enum {
	COLOURS = 12,
	COLOUR_BYTES = 192,
	/* What lies above a stack in its slot, at most. */
	ABOVE = (COLOURS - 1) * COLOUR_BYTES + sizeof(struct marcel_stack),
	FINE = 16384,  /* classes are multiples of this ... */
	FINE_MAX = 16, /* ... up to this many, then powers of two */
	CLASSES = FINE_MAX + 1 + 48,
	ARENA = 1 << 22, /* bytes mapped at once, or one slot if larger */
	SLOTS_MAX = 64,  /* of an arena: bits of a word */
	MIN_SANITIZED = 131072, /* frames are larger there */
	WARM_MAX = 1024,        /* free stacks that keep their memory ... */
	WARM_BYTES = 1 << 26,   /* ... if they are not larger, all together */
	GUARDS_BY_MPROTECT = 20000, /* each splits a mapping: 65,530 at most */
};

/* Whether a slot has a guard. */
enum { NOT_YET, GUARDED, UNGUARDED };

struct marcel_arena {
	/* -: const   l: lock   q: who has the slot */
	struct base_link link;     /* l: in the list that its bits ask for */
	struct base_list *list;    /* l: that one, or NULL */
	struct marcel_arena *next; /* l: of all */
	char *base;                /* -: */
	size_t bytes;              /* -: */
	unsigned class;            /* -: */
	uint64_t all;              /* -: a bit for each slot */
	uint64_t cold, warm;       /* l: */
	uint8_t colour[SLOTS_MAX]; /* q: */
	uint8_t guard[SLOTS_MAX];  /* q: */
};

/*
 * Inside the runtime libc's allocator must not be called: the holder of its
 * lock may have been preempted, and wait for the caller's VP.
 */
enum { CHUNK = 256 };

struct chunk {
	struct chunk *next;
	struct marcel_arena arena[CHUNK];
};

/* l: lock */
struct class
{
	struct base_list idle;    /* l: arenas without used slots, some warm */
	struct base_list partial; /* l: with used ones and warm ones */
	struct base_list cold;    /* l: with cold ones, and no warm one */
	unsigned colour;          /* l: of the next cold one */
	ATOMIC(size_t) nwarm;     /* a: slots; written under the lock */
	ATOMIC(size_t) nused;     /* a: the same */
};

/* l: lock    -: const between init and exit */
static struct {
	struct base_spin lock;
	struct marcel_arena *arenas; /* l: */
	struct chunk *chunks;        /* l: where these are */
	unsigned used;               /* l: of the newest */
	struct class class[CLASSES];
	size_t page;               /* -: */
	enum marcel_guards guards; /* -: not AUTO */
	ATOMIC(unsigned) budget;   /* a: mappings that mprotect may cost */
	ATOMIC(size_t) unguarded;  /* a: slots */
} all = { .lock = BASE_SPIN_INIT(BASE_RANK_POOL) };

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

size_t marcel_arena_least(size_t bytes)
{
	if ((BASE_ASAN || BASE_TSAN) && bytes < MIN_SANITIZED)
		return MIN_SANITIZED;
	return bytes;
}

unsigned marcel_arena_class(size_t bytes)
{
	unsigned c = FINE_MAX;
	size_t n;

	bytes = marcel_arena_least(bytes);
	n = bytes / FINE + (bytes % FINE != 0);
	if (n <= FINE_MAX)
		return (unsigned)n;
	for (size_t top = FINE_MAX; top < n; top *= 2)
		c++;
	return c < CLASSES ? c : 0;
}

/* What a stack of this class promises, and the slot that it takes. */
static size_t class_bytes(unsigned c)
{
	if (c <= FINE_MAX)
		return (size_t)c * FINE;
	return (size_t)FINE * FINE_MAX << (c - FINE_MAX);
}

static size_t slot_bytes(unsigned c)
{
	return round_up(class_bytes(c) + ABOVE, all.page) + all.page;
}

static void add_locked(struct class *c, long warm, long used)
{
	store_relaxed(&c->nwarm, load_relaxed(&c->nwarm) + (size_t)warm);
	store_relaxed(&c->nused, load_relaxed(&c->nused) + (size_t)used);
}

/* --- which list an arena is in --- */

static struct base_list *list_for(struct marcel_arena *a)
{
	struct class *c = &all.class[a->class];

	if (a->warm != 0)
		return (a->warm | a->cold) == a->all ? &c->idle : &c->partial;
	return a->cold != 0 ? &c->cold : NULL;
}

/* Its bits have changed. */
static void sort_locked(struct marcel_arena *a)
{
	struct base_list *list = list_for(a);

	if (list == a->list)
		return;
	base_list_remove(&a->link);
	a->list = list;
	if (list != NULL)
		base_list_push_front(list, &a->link);
}

static struct marcel_arena *first(const struct base_list *list)
{
	struct base_link *n = base_list_first(list);

	return n != NULL ? container_of(n, struct marcel_arena, link) : NULL;
}

static struct marcel_arena *last(const struct base_list *list)
{
	return base_list_is_empty(list)
		       ? NULL
		       : container_of(list->head.prev, struct marcel_arena,
				      link);
}

/* --- a cold slot becomes a stack --- */

static struct marcel_stack *stack_at(struct marcel_arena *a, unsigned slot)
{
	char *top = a->base + (slot + 1) * slot_bytes(a->class) -
		    a->colour[slot] * COLOUR_BYTES;

	return (struct marcel_stack *)(top - sizeof(struct marcel_stack));
}

static bool may_protect(void)
{
	unsigned left = load_relaxed(&all.budget);

	while (left > 0)
		if (cas_weak_relaxed(&all.budget, &left, left - 1))
			return true;
	return false;
}

static bool guard(char *slot)
{
	switch (all.guards) {
	case MARCEL_GUARDS_ADVICE:
		return os_guard_install(slot, all.page) == 0;
	case MARCEL_GUARDS_MPROTECT:
		return may_protect() && os_guard_protect(slot, all.page) == 0;
	default:
		return false;
	}
}

static struct marcel_stack *cut(struct marcel_arena *a, unsigned slot)
{
	char *base = a->base + slot * slot_bytes(a->class);
	struct marcel_stack *s = stack_at(a, slot);

	if (a->guard[slot] == NOT_YET) {
		a->guard[slot] = guard(base) ? GUARDED : UNGUARDED;
		if (a->guard[slot] == UNGUARDED &&
		    fetch_add_relaxed(&all.unguarded, 1) == 0)
			marcel_watch_begin();
	}
	s->low = base + all.page;
	s->bytes = (size_t)((char *)s - s->low);
	s->arena = a;
	s->slot = (uint8_t)slot;
	s->class = (uint8_t)a->class;
	s->is_guarded = a->guard[slot] == GUARDED;
	store_relaxed(&s->waits, 0);
	store_relaxed(&s->awaits_io, false);
	s->checker = os_checker_stack(s->low, s->bytes);
	return s;
}

/* NULL: no memory. */
static struct marcel_arena *new_arena_locked(void)
{
	struct chunk *c = all.chunks;

	if (c == NULL || all.used == CHUNK) {
		c = os_map(sizeof(*c));
		if (c == NULL)
			return NULL;
		c->next = all.chunks;
		all.chunks = c;
		all.used = 0;
	}
	return &c->arena[all.used++];
}

/* A mapping more, its slots cold. False: no memory. */
static bool grow(unsigned c)
{
	size_t slot = slot_bytes(c);
	size_t n = slot > ARENA ? 1 : ARENA / slot;
	struct marcel_arena *a;
	char *base;

	if (n > SLOTS_MAX)
		n = SLOTS_MAX;
	base = os_map_stacks(n * slot);
	if (base == NULL)
		return false;
	base_spin_lock(&all.lock);
	a = new_arena_locked();
	if (a == NULL) {
		base_spin_unlock(&all.lock);
		os_unmap(base, n * slot);
		return false;
	}
	a->base = base;
	a->bytes = n * slot;
	a->class = c;
	a->all = a->cold = ~(uint64_t)0 >> (SLOTS_MAX - n);
	base_link_init(&a->link);
	a->next = all.arenas;
	all.arenas = a;
	sort_locked(a);
	base_spin_unlock(&all.lock);
	return true;
}

/* --- get --- */

static struct marcel_stack *take_warm_locked(struct class *c)
{
	struct marcel_arena *a = first(&c->partial);
	unsigned slot;

	if (a == NULL && (a = first(&c->idle)) == NULL)
		return NULL;
	slot = (unsigned)__builtin_ctzll(a->warm);
	a->warm &= a->warm - 1;
	add_locked(c, -1, 1);
	sort_locked(a);
	return stack_at(a, slot);
}

static struct marcel_arena *take_cold_locked(struct class *c, unsigned *slot)
{
	struct marcel_arena *a = first(&c->cold);

	if (a == NULL)
		return NULL;
	*slot = (unsigned)__builtin_ctzll(a->cold);
	a->cold &= a->cold - 1;
	a->colour[*slot] = (uint8_t)(c->colour++ % COLOURS);
	add_locked(c, 0, 1);
	sort_locked(a);
	return a;
}

struct marcel_stack *marcel_arena_get_more(unsigned class, unsigned n,
					   struct marcel_stack **list,
					   unsigned *extra)
{
	struct class *c = &all.class[class];
	struct marcel_arena *a = NULL;
	struct marcel_stack *s, *more;
	unsigned slot = 0;

	do {
		base_spin_lock(&all.lock);
		s = take_warm_locked(c);
		if (s == NULL)
			a = take_cold_locked(c, &slot);
		for (; n > 0 && (more = take_warm_locked(c)) != NULL; n--) {
			more->next = *list;
			*list = more;
			++*extra;
		}
		base_spin_unlock(&all.lock);
	} while (s == NULL && a == NULL && grow(class));
	return s == NULL && a != NULL ? cut(a, slot) : s;
}

struct marcel_stack *marcel_arena_get(unsigned class)
{
	return marcel_arena_get_more(class, 0, NULL, NULL);
}

/* --- put, and give back --- */

static size_t warm_limit(unsigned class)
{
	size_t n = WARM_BYTES / class_bytes(class);

	return n < WARM_MAX ? n : WARM_MAX;
}

/*
 * An arena that has to give its warm slots back. Those without used slots cost
 * one call each; the others many, so they wait until most of them is free.
 */
static struct marcel_arena *surplus_locked(struct class *c, size_t limit)
{
	size_t nwarm = load_relaxed(&c->nwarm);

	if (nwarm > limit && !base_list_is_empty(&c->idle))
		return last(&c->idle);
	if (nwarm > limit && nwarm > 2 * load_relaxed(&c->nused))
		return last(&c->partial);
	return NULL;
}

/* The memory of these slots; between them may lie cold ones. */
static void release_run(struct marcel_arena *a, unsigned from, unsigned to)
{
	size_t slot = slot_bytes(a->class);

	os_release(a->base + from * slot, (to - from) * slot);
}

static void release(struct marcel_arena *a, uint64_t warm, uint64_t cold)
{
	unsigned slot = 0, from;

	for (uint64_t w = warm; w != 0; w &= w - 1)
		os_checker_forget(
			stack_at(a, (unsigned)__builtin_ctzll(w))->checker);
	while (slot < SLOTS_MAX && warm >> slot != 0) {
		slot += (unsigned)__builtin_ctzll(warm >> slot);
		from = slot;
		while (slot < SLOTS_MAX && ((warm | cold) >> slot & 1))
			slot++;
		release_run(a, from, slot);
	}
}

/* Until no more than the limit is warm. */
static BASE_COLD void shrink(unsigned class)
{
	struct class *c = &all.class[class];
	struct marcel_arena *a;
	uint64_t warm, cold;

	base_spin_lock(&all.lock);
	while ((a = surplus_locked(c, warm_limit(class))) != NULL) {
		/* Ours until it is cold; so are the cold ones between. */
		warm = a->warm;
		cold = a->cold;
		a->warm = a->cold = 0;
		add_locked(c, -__builtin_popcountll(warm), 0);
		sort_locked(a);
		base_spin_unlock(&all.lock);
		release(a, warm, cold);
		base_spin_lock(&all.lock);
		a->cold |= warm | cold;
		sort_locked(a);
	}
	base_spin_unlock(&all.lock);
}

void marcel_arena_put(struct marcel_stack *list)
{
	unsigned class = list->class;
	struct class *c = &all.class[class];
	struct marcel_arena *a;
	bool is_too_much;

	base_spin_lock(&all.lock);
	for (; list != NULL; list = list->next) {
		a = list->arena;
		a->warm |= (uint64_t)1 << list->slot;
		add_locked(c, 1, -1);
		sort_locked(a);
	}
	is_too_much = load_relaxed(&c->nwarm) > warm_limit(class);
	base_spin_unlock(&all.lock);
	if (is_too_much)
		shrink(class);
}

/* --- init, exit, facts --- */

static enum marcel_guards best(void)
{
	return os_guard_probe() ? MARCEL_GUARDS_ADVICE : MARCEL_GUARDS_MPROTECT;
}

int marcel_arena_init(enum marcel_guards guards)
{
	all.page = os_page_size();
	if (guards == MARCEL_GUARDS_AUTO)
		guards = best();
	else if (guards == MARCEL_GUARDS_ADVICE && !os_guard_probe())
		return -ENOTSUP;
	all.guards = guards;
	store_relaxed(&all.budget, GUARDS_BY_MPROTECT);
	for (unsigned i = 0; i < CLASSES; i++) {
		struct class *c = &all.class[i];

		base_list_init(&c->idle);
		base_list_init(&c->partial);
		base_list_init(&c->cold);
		store_relaxed(&c->nwarm, 0);
		store_relaxed(&c->nused, 0);
	}
	return 0;
}

void marcel_arena_exit(void)
{
	struct marcel_arena *a;
	struct chunk *c;

	marcel_watch_end();
	for (a = all.arenas; a != NULL; a = a->next) {
		for (uint64_t w = a->all & ~a->cold; w != 0; w &= w - 1)
			os_checker_forget(
				stack_at(a, (unsigned)__builtin_ctzll(w))
					->checker);
		marcel_san_clean(a->base, a->bytes);
		os_unmap(a->base, a->bytes);
	}
	all.arenas = NULL;
	while ((c = all.chunks) != NULL) {
		all.chunks = c->next;
		os_unmap(c, sizeof(*c));
	}
	store_relaxed(&all.unguarded, 0);
}

enum marcel_guards marcel_arena_guards(void)
{
	return all.guards;
}

size_t marcel_arena_guard_bytes(void)
{
	return all.page;
}

void marcel_arena_count(struct marcel_arena_counts *out)
{
	out->used = out->warm = 0;
	for (unsigned i = 0; i < CLASSES; i++) {
		out->used += load_relaxed(&all.class[i].nused);
		out->warm += load_relaxed(&all.class[i].nwarm);
	}
	out->unguarded = load_relaxed(&all.unguarded);
	out->budget = load_relaxed(&all.budget);
}

/* What was mapped stays so, and is nobody's; marcel_arena_init() comes next. */
void marcel_arena_forked(void)
{
	base_spin_init(&all.lock, BASE_RANK_POOL);
	all.arenas = NULL;
	all.chunks = NULL;
	store_relaxed(&all.unguarded, 0);
}
