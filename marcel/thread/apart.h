/*
 * Stacks that are not cut from arenas: those that a program brings, and those
 * with a guard of another size than a page.
 *
 * Their headers lie apart, because a brought stack's memory is its owner's as
 * soon as its thread has been joined, and late looks read headers. No VP keeps
 * such a stack; their class is 0. They lack the canary of thread/watch.c.
 */
#ifndef MARCEL_THREAD_APART_H
#define MARCEL_THREAD_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "stack.h"

static inline bool marcel_stack_is_apart(const struct marcel_stack *s)
{
	return s->class == 0;
}

/* Anyone. The stack in this memory, of which nothing else is touched; or NULL:
 * no memory for the header. */
struct marcel_stack *marcel_apart_bring(void *low, size_t bytes);

/* Anyone. One of at least `bytes` above a guard, which may be 0; or NULL. */
struct marcel_stack *marcel_apart_map(size_t bytes, size_t guard);

/* Anyone. No thread uses it: what is ours of it goes. */
void marcel_apart_put(struct marcel_stack *s);

/* Bytes of its guard; whether the program brought it. */
size_t marcel_apart_guard(const struct marcel_stack *s);
bool marcel_apart_is_brought(const struct marcel_stack *s);

/* Give the headers back. No thread lives. */
void marcel_apart_exit(void);

/* In the child of a fork: free headers are forgotten. */
void marcel_apart_forked(void);

#endif
