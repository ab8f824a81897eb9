/*
 * Stacks as threads get them: a cache per VP for the default size, last in,
 * first out, and the newest of all others, in front of the arenas.
 */
#include "stack.h"

#include <stdint.h>
#include <sys/auxv.h>

#include <base/diag.h>
#include <marcel/thread.h>
#include "../sched/sanitizer.h"
#include "../sched/vp.h"
#include "apart.h"
#include "arena.h"
#include "watch.h"

enum {
	CACHED_MAX = 64,  /* free stacks that a VP keeps */
	CACHED_MOVE = 32, /* how many move to or from the arenas at once */
};

static unsigned normal; /* class of the default size */

size_t marcel_stack_min(void)
{
	size_t least = getauxval(AT_MINSIGSTKSZ) + 8192;

	least = (least + 4095) / 4096 * 4096;
	return least > MARCEL_STACK_MIN ? least : MARCEL_STACK_MIN;
}

int marcel_stack_init(size_t bytes, enum marcel_guards guards)
{
	normal = marcel_arena_class(bytes);
	base_check(normal != 0);
	return marcel_arena_init(guards);
}

void marcel_stack_exit(void)
{
	marcel_apart_exit();
	marcel_arena_exit();
}

bool marcel_stack_is_default(size_t bytes)
{
	return bytes <= marcel_sched.stacksize &&
	       marcel_arena_class(bytes) == normal;
}

/* --- get --- */

static BASE_COLD struct marcel_stack *refill(struct marcel_vp *vp)
{
	/* Warm ones; a cold one only for the caller. */
	return marcel_arena_get_more(normal, CACHED_MOVE - 1, &vp->stacks,
				     &vp->nstacks);
}

static inline struct marcel_stack *pop(struct marcel_vp *vp)
{
	struct marcel_stack *s = vp->stacks;

	vp->stacks = s->next;
	vp->nstacks--;
	return s;
}

static struct marcel_stack *get_class(struct marcel_vp *vp, unsigned c)
{
	struct marcel_stack *s;

	if (c == 0)
		return NULL;
	if (vp == NULL || (s = vp->odd_stack) == NULL || s->class != c)
		return marcel_arena_get(c);
	vp->odd_stack = NULL;
	return s;
}

static BASE_COLD struct marcel_stack *get_slow(struct marcel_vp *vp,
					       size_t bytes)
{
	unsigned c = marcel_arena_class(bytes);
	struct marcel_stack *s;

	if (c != normal || vp == NULL)
		return get_class(vp, c);
	if (vp->stacks != NULL)
		return pop(vp); /* of another size, which that has room for */
	s = refill(vp);
	if (s == NULL)
		fetch_or_relaxed(&marcel_sched.scarce, MARCEL_SCARCE_STACKS);
	return s;
}

struct marcel_stack *marcel_stack_get(struct marcel_vp *vp, size_t bytes)
{
	if (unlikely(bytes != marcel_sched.stacksize || vp == NULL ||
		     vp->stacks == NULL))
		return get_slow(vp, bytes);
	return pop(vp);
}

bool marcel_stack_can_be_had(void)
{
	struct marcel_stack *s = marcel_arena_get(normal);

	if (s == NULL)
		return false;
	s->next = NULL;
	marcel_arena_put(s);
	fetch_and_relaxed(&marcel_sched.scarce, ~MARCEL_SCARCE_STACKS);
	return true;
}

/* --- put --- */

/* The newest stay. */
static BASE_COLD void spill(struct marcel_vp *vp)
{
	struct marcel_stack *s = vp->stacks, *old;

	for (unsigned i = 1; i < CACHED_MAX - CACHED_MOVE; i++)
		s = s->next;
	old = s->next;
	s->next = NULL;
	vp->nstacks -= CACHED_MOVE;
	marcel_arena_put(old);
}

/* Of another size: the newest stays, but nothing huge. */
static BASE_COLD void put_slow(struct marcel_vp *vp, struct marcel_stack *s)
{
	struct marcel_stack *old = s;

	if (marcel_stack_is_apart(s)) {
		marcel_apart_put(s);
		return;
	}
	if (vp != NULL && s->bytes <= MARCEL_STACK_EARLY) {
		old = vp->odd_stack;
		vp->odd_stack = s;
	}
	if (old == NULL)
		return;
	old->next = NULL;
	marcel_arena_put(old);
}

void marcel_stack_put(struct marcel_vp *vp, struct marcel_stack *s)
{
	/* Its next thread waits for nothing: cancel.h. */
	base_assert(load_relaxed(&s->wait) == NULL);
	store_relaxed(&s->awaits_io, false); /* if that was cancelled */
	marcel_san_clean(s->low, s->bytes);
	if (unlikely(vp == NULL || s->class != normal)) {
		put_slow(vp, s);
		return;
	}
	s->next = vp->stacks;
	vp->stacks = s;
	if (unlikely(++vp->nstacks >= CACHED_MAX))
		spill(vp);
}

/* --- guards --- */

size_t marcel_stack_guard_bytes(const struct marcel_stack *s)
{
	if (marcel_stack_is_apart(s))
		return marcel_apart_guard(s);
	return s->is_guarded ? marcel_arena_guard_bytes() : 0;
}

bool marcel_stack_is_guard(const struct marcel_stack *s, const char *address)
{
	size_t bytes = marcel_stack_guard_bytes(s);

	if (bytes == 0)
		bytes = marcel_arena_guard_bytes();
	return address < s->low && address >= s->low - bytes;
}

/*
 * The page below an unguarded stack, or as much of a large one: all of it, as
 * a signal's frame is zeros for long stretches.
 */
enum { CANARY_WORDS = 4096 / sizeof(uint64_t) };

bool marcel_stack_is_smashed(const struct marcel_stack *s, const char *sp)
{
	const uint64_t *word = (const uint64_t *)s->low - CANARY_WORDS;
	uint64_t sum = 0;

	if (s->is_guarded || marcel_stack_is_apart(s))
		return false;
	for (unsigned i = 0; i < CANARY_WORDS; i++)
		sum |= word[i];
	return sum != 0 || (sp < s->low && sp >= s->low - s->bytes);
}

void marcel_stack_dump(void)
{
	static const char *const names[] = {
		[MARCEL_GUARDS_ADVICE] = "MADV_GUARD_INSTALL",
		[MARCEL_GUARDS_MPROTECT] = "mprotect",
		[MARCEL_GUARDS_CANARY] = "looks at each switch",
	};
	struct marcel_arena_counts n;

	marcel_arena_count(&n);
	base_dump("stacks: %lu bytes, guarded by %s, %lu without a guard page, "
		  "%lu used or cached, %lu free",
		  (unsigned long)marcel_sched.stacksize,
		  names[marcel_arena_guards()], (unsigned long)n.unguarded,
		  (unsigned long)n.used, (unsigned long)n.warm);
}

void marcel_stack_forked(void)
{
	marcel_watch_forked();
	marcel_apart_forked();
	marcel_arena_forked();
}
