/*
 * Stacks: cut from arenas, guarded, cached.
 *
 *	slot:  | guard page | <- usable, grows down ... | header | colour |
 *	                    low                         the struct below
 *
 * The struct lies above the stack it describes, on the page that is touched
 * anyway, so a stack that nobody uses needs no memory beside it. The colour is
 * a small multiple of 192 bytes, so that the hot tops of many stacks fall into
 * different sets of the caches.
 */
#ifndef MARCEL_THREAD_STACK_H
#define MARCEL_THREAD_STACK_H

#include <stdbool.h>
#include <stddef.h>

#include <base/compiler.h>

struct marcel_vp;

/* More is a mistake: nobody has such an address space to spare. */
#define MARCEL_STACK_MAX ((size_t)1 << 40)

/* q: whoever holds it: a thread, a VP's cache, or a class under its lock. */
struct marcel_stack {
	struct marcel_stack *next;
	char *low;      /* lowest usable byte, above the guard */
	size_t bytes;   /* from low to this struct */
	unsigned class; /* its size class */
	bool is_guarded;
	void *(*fn)(void *); /* what its thread runs first */
} BASE_ALIGNED(BASE_CACHE_LINE);

/* Read the machine's facts; `bytes` is the default size. 0 or -ENOMEM. */
int marcel_stack_init(size_t bytes);
/* Give all memory back. No thread lives. */
void marcel_stack_exit(void);

/* The smallest size that holds a signal's frame and some calls. */
size_t marcel_stack_min(void);

/*
 * A stack of at least `bytes`, from the VP's cache if it is the default size.
 * NULL: no memory. The caller is the owner of vp; vp may be NULL.
 */
struct marcel_stack *marcel_stack_get(struct marcel_vp *vp, size_t bytes);
void marcel_stack_put(struct marcel_vp *vp, struct marcel_stack *s);

/* Whether the address is in the stack's guard. */
bool marcel_stack_is_guard(const struct marcel_stack *s, const char *address);

#endif
