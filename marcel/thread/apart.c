/*
 * Stacks apart: see apart.h. A header that is free waits for the next stack;
 * it goes when the runtime ends.
 */
#include "apart.h"

#include <stdlib.h>

#include <base/spin.h>
#include "../os/checker.h"
#include "../os/os.h"
#include "arena.h"

struct apart {
	/* q: as struct marcel_stack */
	struct marcel_stack s;
	size_t guard; /* q: */
	char *base;   /* q: of our mapping, guard and all; NULL: brought */
	size_t bytes; /* q: of that */
} BASE_ALIGNED(BASE_CACHE_LINE);

static struct {
	struct base_spin lock;
	struct marcel_stack *free; /* l: headers */
} all = { .lock = BASE_SPIN_INIT(BASE_RANK_POOL) };

static struct apart *apart_of(const struct marcel_stack *s)
{
	return container_of((struct marcel_stack *)s, struct apart, s);
}

static struct apart *get_header(void)
{
	struct marcel_stack *s;
	struct apart *a;

	base_spin_lock(&all.lock);
	s = all.free;
	if (s != NULL)
		all.free = s->next;
	base_spin_unlock(&all.lock);
	if (s != NULL)
		return apart_of(s);
	a = aligned_alloc(BASE_CACHE_LINE, sizeof(*a));
	if (a != NULL) {
		store_relaxed(&a->s.waits, 0);
		store_relaxed(&a->s.wait, NULL);
		store_relaxed(&a->s.awaits_io, false);
	}
	return a;
}

static void put_header(struct apart *a)
{
	base_spin_lock(&all.lock);
	a->s.next = all.free;
	all.free = &a->s;
	base_spin_unlock(&all.lock);
}

/* The stack ends at a multiple of what the processors ask for. */
static struct marcel_stack *set_up(struct apart *a, char *low, size_t bytes)
{
	a->s.low = low;
	a->s.bytes = bytes - ((uintptr_t)low + bytes) % BASE_CACHE_LINE;
	a->s.arena = NULL;
	a->s.class = 0;
	a->s.is_guarded = a->guard != 0;
	a->s.checker = os_checker_stack(a->s.low, a->s.bytes);
	return &a->s;
}

struct marcel_stack *marcel_apart_bring(void *low, size_t bytes)
{
	struct apart *a = get_header();

	if (a == NULL)
		return NULL;
	a->guard = 0;
	a->base = NULL;
	return set_up(a, low, bytes);
}

static size_t round_up(size_t n)
{
	size_t page = os_page_size();

	return (n + page - 1) / page * page;
}

static bool guard(char *base, size_t bytes)
{
	if (bytes == 0)
		return true;
	if (marcel_arena_guards() == MARCEL_GUARDS_ADVICE)
		return os_guard_install(base, bytes) == 0;
	return os_guard_protect(base, bytes) == 0;
}

struct marcel_stack *marcel_apart_map(size_t bytes, size_t guard_bytes)
{
	struct apart *a = get_header();

	if (a == NULL)
		return NULL;
	bytes = round_up(marcel_arena_least(bytes));
	a->guard = round_up(guard_bytes);
	a->bytes = a->guard + bytes;
	a->base = os_map_stacks(a->bytes);
	if (a->base == NULL)
		goto err_header;
	if (!guard(a->base, a->guard))
		goto err_map;
	return set_up(a, a->base + a->guard, bytes);
err_map:
	os_unmap(a->base, a->bytes);
err_header:
	put_header(a);
	return NULL;
}

void marcel_apart_put(struct marcel_stack *s)
{
	struct apart *a = apart_of(s);

	os_checker_forget(s->checker);
	if (a->base != NULL)
		os_unmap(a->base, a->bytes);
	put_header(a);
}

size_t marcel_apart_guard(const struct marcel_stack *s)
{
	return apart_of(s)->guard;
}

bool marcel_apart_is_brought(const struct marcel_stack *s)
{
	return apart_of(s)->base == NULL;
}

void marcel_apart_exit(void)
{
	struct marcel_stack *s;

	while ((s = all.free) != NULL) {
		all.free = s->next;
		free(apart_of(s));
	}
}

void marcel_apart_forked(void)
{
	base_spin_init(&all.lock, BASE_RANK_POOL);
	all.free = NULL;
}
