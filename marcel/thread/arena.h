/*
 * Arenas: mappings that stacks of one size class are cut from, and which of
 * their slots are free.
 *
 *	cold     a slot of which nothing is in memory: it was never used, or
 *	         what it had was given back; its guard stands
 *	warm     a free one whose memory is still there
 *	neither  a stack that a thread or a VP's cache has
 *
 * Warm stacks beyond a limit become cold, an arena at a time where it can be:
 * one system call for all its stacks, and none for each.
 */
#ifndef MARCEL_THREAD_ARENA_H
#define MARCEL_THREAD_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "stack.h"

/* For dumps: how many stacks there are; what mprotect may yet cost. */
struct marcel_arena_counts {
	size_t used, warm, unguarded;
	unsigned budget;
};

/* 0 or -ENOTSUP: the kernel does not have these guards. */
int marcel_arena_init(enum marcel_guards guards);
/* Give all memory back. No stack is used. */
void marcel_arena_exit(void);

/* What kind of guards fresh stacks get. */
enum marcel_guards marcel_arena_guards(void);

/* Bytes of a guard. */
size_t marcel_arena_guard_bytes(void);

/* What is made of that size: sanitizers need more. */
size_t marcel_arena_least(size_t bytes);

/* The class of stacks of at least so many bytes; 0: there is none. */
unsigned marcel_arena_class(size_t bytes);

/* Anyone. A stack of the class, warm if there is one; NULL: no memory. */
struct marcel_stack *marcel_arena_get(unsigned class);

/*
 * Anyone. The same, and up to n warm ones besides, linked by `next` and
 * counted in *extra.
 */
struct marcel_stack *marcel_arena_get_more(unsigned class, unsigned n,
					   struct marcel_stack **list,
					   unsigned *extra);

/* Anyone. Stacks of one class, linked by `next`, that are free now. */
void marcel_arena_put(struct marcel_stack *list);

void marcel_arena_count(struct marcel_arena_counts *out);

/* In the child of a fork: all stacks are forgotten. */
void marcel_arena_forked(void);

#endif
