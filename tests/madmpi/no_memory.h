/*
 * For programs that run out of memory when they say so: malloc() and its like
 * are the program's, also for libraries.
 */
#ifndef TESTS_MADMPI_NO_MEMORY_H
#define TESTS_MADMPI_NO_MEMORY_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);

static struct {
	_Atomic long left;    /* that there is memory for; negative: for all */
	_Atomic size_t least; /* bytes; smaller ones are not counted */
	_Atomic int refused;
	_Atomic uintptr_t frame; /* of who has said so */
} no_memory = { .left = -1 };

/*
 * Of the allocations of so many bytes and more only the nth fails, from 0 on;
 * if that is all, of those of the thread that calls this, which is main: others
 * get theirs later, or do without.
 */
static inline void no_memory_for(long nth, size_t least)
{
	no_memory.least = least;
	no_memory.frame = (uintptr_t)__builtin_frame_address(0);
	no_memory.left = nth;
}

/* There is again; whether one has failed since it was last asked. */
static inline int no_memory_end(void)
{
	no_memory.left = -1;
	return atomic_exchange(&no_memory.refused, 0);
}

/* No other stack is near main's. */
static int no_memory_is_mine(void)
{
	enum { NEAR = 1 << 20 };
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	return frame - no_memory.frame + NEAR < 2 * NEAR;
}

static int no_memory_here(size_t bytes)
{
	if (bytes < no_memory.least || no_memory.left < 0 ||
	    (no_memory.least == 0 && !no_memory_is_mine()) ||
	    atomic_fetch_sub(&no_memory.left, 1) != 0)
		return 0;
	no_memory.refused = 1;
	errno = ENOMEM;
	return 1;
}

#define ALL_SEE_IT __attribute__((visibility("default")))

ALL_SEE_IT void *malloc(size_t bytes)
{
	return no_memory_here(bytes) ? NULL : __libc_malloc(bytes);
}

ALL_SEE_IT void *calloc(size_t n, size_t bytes)
{
	return no_memory_here(n * bytes) ? NULL : __libc_calloc(n, bytes);
}

ALL_SEE_IT void *realloc(void *p, size_t bytes)
{
	return no_memory_here(bytes) ? NULL : __libc_realloc(p, bytes);
}

#endif
