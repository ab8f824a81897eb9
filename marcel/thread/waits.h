/*
 * What a thread waits for, in one word: the kind, and which object.
 *
 *	63 .. 56 | 55 ............... 0
 *	  kind   | address of the object, or 0
 */
#ifndef MARCEL_THREAD_WAITS_H
#define MARCEL_THREAD_WAITS_H

#include <stdint.h>

enum marcel_waits {
	MARCEL_WAITS_NONE,
	MARCEL_WAITS_MUTEX,     /* struct marcel_mutex */
	MARCEL_WAITS_CONDITION, /* struct marcel_waiter, on the stack of it */
	MARCEL_WAITS_SEMAPHORE,
	MARCEL_WAITS_BARRIER,
	MARCEL_WAITS_READ_LOCK,
	MARCEL_WAITS_WRITE_LOCK,
	MARCEL_WAITS_ONCE,
	MARCEL_WAITS_JOIN,   /* struct marcel_thread */
	MARCEL_WAITS_EVENT,  /* marcel_event_t */
	MARCEL_WAITS_EVENTS, /* struct marcel_events, on the stack of it: hang.h
			      */
	MARCEL_WAITS_DESCRIPTOR,
	MARCEL_WAITS_SIGNAL,
	MARCEL_WAITS_SLEEP,
	MARCEL_WAITS_ALL, /* the end of all threads */
	MARCEL_WAITS_KINDS,
};

#define MARCEL_WAITS_SHIFT 56

static inline uint64_t marcel_waits(enum marcel_waits kind, const void *object)
{
	return (uint64_t)kind << MARCEL_WAITS_SHIFT | (uintptr_t)object;
}

static inline enum marcel_waits marcel_waits_kind(uint64_t word)
{
	return (enum marcel_waits)(word >> MARCEL_WAITS_SHIFT);
}

static inline void *marcel_waits_object(uint64_t word)
{
	return (void *)(uintptr_t)(word &
				   (((uint64_t)1 << MARCEL_WAITS_SHIFT) - 1));
}

/* In words, or NULL: nothing. look.c */
const char *marcel_waits_name(uint64_t word);

#endif
