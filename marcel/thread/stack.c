/*
 * Stacks: a cache per VP for the default size, locked lists for the rest.
 */
#include "stack.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <base/diag.h>
#include <base/spin.h>
#include <marcel/thread.h>
#include "../os/os.h"
#include "../sched/sanitizer.h"
#include "../sched/vp.h"

enum {
	COLOURS = 16,
	COLOUR_BYTES = 192,
	/* What lies above a stack in its slot, at most. */
	ABOVE = COLOURS * COLOUR_BYTES + sizeof(struct marcel_stack),
	FINE = 16384,  /* classes are multiples of this ... */
	FINE_MAX = 16, /* ... up to this many, then powers of two */
	CLASSES = FINE_MAX + 1 + 48,
	ARENA = 1 << 22,  /* bytes mapped at once, or one slot if larger */
	CACHED_MAX = 64,  /* free stacks that a VP keeps */
	CACHED_MOVE = 32, /* how many move to or from the class at once */
	MIN_SANITIZED = 131072, /* frames are larger there */
};

/* A mapping that stacks were cut from; to give it back. */
struct arena {
	struct arena *next;
	void *base;
	size_t bytes;
};

/* l: lock    -: const between init and exit */
static struct {
	struct base_spin lock;
	struct arena *arenas; /* l: */
	struct {
		struct marcel_stack *free; /* l: */
		char *fresh, *end;         /* l: of the last arena */
		unsigned colour;           /* l: of the next fresh one */
	} class[CLASSES];
	size_t page;            /* -: */
	unsigned normal;        /* -: class of the default size */
	unsigned guards_budget; /* l: mappings that mprotect may cost */
	bool guard_by_madvise;  /* -: */
} stacks = { .lock = BASE_SPIN_INIT(BASE_RANK_POOL) };

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static unsigned class_of(size_t bytes)
{
	unsigned c = FINE_MAX;
	size_t n;

	if ((BASE_ASAN || BASE_TSAN) && bytes < MIN_SANITIZED)
		bytes = MIN_SANITIZED;
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
	return class_bytes(c) + round_up(ABOVE, stacks.page) + stacks.page;
}

size_t marcel_stack_min(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);
	size_t least = round_up(frame + 8192, 4096);

	return least > MARCEL_STACK_MIN ? least : MARCEL_STACK_MIN;
}

/* The mappings of stacks that mprotect may split: the limit is 65,530. */
enum { GUARDS_BY_MPROTECT = 20000 };

int marcel_stack_init(size_t bytes)
{
	stacks.page = os_page_size();
	stacks.guard_by_madvise = os_guard_probe();
	stacks.guards_budget = GUARDS_BY_MPROTECT;
	stacks.normal = class_of(bytes);
	return stacks.normal ? 0 : -ENOMEM;
}

void marcel_stack_exit(void)
{
	struct arena *a, *next;

	for (a = stacks.arenas; a != NULL; a = next) {
		next = a->next;
		marcel_san_clean(a->base, a->bytes);
		os_unmap(a->base, a->bytes);
		free(a);
	}
	stacks.arenas = NULL;
	for (unsigned c = 0; c < CLASSES; c++) {
		stacks.class[c].free = NULL;
		stacks.class[c].fresh = stacks.class[c].end = NULL;
	}
}

/* --- cutting --- */

static bool more_locked(unsigned c)
{
	size_t slot = slot_bytes(c);
	size_t bytes = slot > ARENA ? slot : ARENA / slot * slot;
	struct arena *a = malloc(sizeof(*a));

	if (a == NULL)
		return false;
	a->base = os_map_stacks(bytes);
	if (a->base == NULL) {
		free(a);
		return false;
	}
	a->bytes = bytes;
	a->next = stacks.arenas;
	stacks.arenas = a;
	stacks.class[c].fresh = a->base;
	stacks.class[c].end = stacks.class[c].fresh + bytes;
	return true;
}

static bool guard_locked(char *slot)
{
	if (stacks.guard_by_madvise)
		return os_guard_install(slot, stacks.page) == 0;
	if (stacks.guards_budget == 0)
		return false;
	stacks.guards_budget--;
	return os_guard_protect(slot, stacks.page) == 0;
}

static struct marcel_stack *cut_locked(unsigned c)
{
	size_t slot = slot_bytes(c);
	struct marcel_stack *s;
	char *base, *top;

	if (stacks.class[c].fresh == stacks.class[c].end && !more_locked(c))
		return NULL;
	base = stacks.class[c].fresh;
	stacks.class[c].fresh += slot;
	top = base + slot - stacks.class[c].colour++ % COLOURS * COLOUR_BYTES;
	s = (struct marcel_stack *)(top - sizeof(*s));
	s->low = base + stacks.page;
	s->bytes = (size_t)((char *)s - s->low);
	s->class = c;
	s->is_guarded = guard_locked(base);
	return s;
}

static struct marcel_stack *get_locked(unsigned c)
{
	struct marcel_stack *s = stacks.class[c].free;

	if (s == NULL)
		return cut_locked(c);
	stacks.class[c].free = s->next;
	return s;
}

static void put_locked(struct marcel_stack *s)
{
	s->next = stacks.class[s->class].free;
	stacks.class[s->class].free = s;
}

/* --- get and put --- */

static BASE_COLD struct marcel_stack *refill(struct marcel_vp *vp)
{
	struct marcel_stack *s;

	base_spin_lock(&stacks.lock);
	/* Those that lie free; a fresh one only for the caller. */
	while (vp->nstacks < CACHED_MOVE &&
	       (s = stacks.class[stacks.normal].free) != NULL) {
		stacks.class[stacks.normal].free = s->next;
		s->next = vp->stacks;
		vp->stacks = s;
		vp->nstacks++;
	}
	s = vp->stacks;
	if (s != NULL) {
		vp->stacks = s->next;
		vp->nstacks--;
	} else {
		s = cut_locked(stacks.normal);
	}
	base_spin_unlock(&stacks.lock);
	return s;
}

static BASE_COLD struct marcel_stack *get_class(unsigned c)
{
	struct marcel_stack *s;

	if (c == 0)
		return NULL;
	base_spin_lock(&stacks.lock);
	s = get_locked(c);
	base_spin_unlock(&stacks.lock);
	return s;
}

struct marcel_stack *marcel_stack_get(struct marcel_vp *vp, size_t bytes)
{
	struct marcel_stack *s;

	if (bytes != marcel_sched.stacksize || vp == NULL)
		return get_class(class_of(bytes));
	s = vp->stacks;
	if (unlikely(s == NULL))
		return refill(vp);
	vp->stacks = s->next;
	vp->nstacks--;
	return s;
}

static BASE_COLD void spill(struct marcel_vp *vp)
{
	struct marcel_stack *s;

	base_spin_lock(&stacks.lock);
	for (int i = 0; i < CACHED_MOVE; i++) {
		s = vp->stacks;
		vp->stacks = s->next;
		put_locked(s);
	}
	vp->nstacks -= CACHED_MOVE;
	base_spin_unlock(&stacks.lock);
}

void marcel_stack_put(struct marcel_vp *vp, struct marcel_stack *s)
{
	marcel_san_clean(s->low, s->bytes);
	if (unlikely(s->class != stacks.normal || vp == NULL)) {
		base_spin_lock(&stacks.lock);
		put_locked(s);
		base_spin_unlock(&stacks.lock);
		return;
	}
	s->next = vp->stacks;
	vp->stacks = s;
	if (unlikely(++vp->nstacks >= CACHED_MAX))
		spill(vp);
}

bool marcel_stack_is_guard(const struct marcel_stack *s, const char *address)
{
	return address < s->low && address >= s->low - stacks.page;
}
