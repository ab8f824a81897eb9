/*
 * What ASan and TSan are told. Every stack and every switch is announced.
 *
 * To TSan a switch is no synchronisation: who wakes whom is announced instead
 * (marcel_san_release in the waker, marcel_san_acquire in the woken thread),
 * so that races between user threads are found even when they share a VP. The
 * scheduler's own plain fields are owned by a VP and not by a thread, which
 * TSan cannot know; so the scheduler runs between marcel_san_enter() and
 * marcel_san_leave(), where only atomics are looked at. An "after" action
 * works for the thread that left, so it is ordered behind that one.
 *
 * In other builds all of this is nothing.
 */
#ifndef MARCEL_SCHED_SANITIZER_H
#define MARCEL_SCHED_SANITIZER_H

#include <ctype.h>
#include <marcel/errno.h>
#include <stddef.h>

#include <base/compiler.h>
#include "../thread/thread.h"

#if BASE_TSAN
#include <sanitizer/tsan_interface.h>

void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *p,
			     size_t bytes, const char *why);

static inline void marcel_san_enter(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static inline void marcel_san_leave(void)
{
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

static inline void marcel_san_release(void *p)
{
	__tsan_release(p);
}

static inline void marcel_san_acquire(void *p)
{
	__tsan_acquire(p);
}

/* A word of the kernel thread's that each user thread on it uses in turn. */
static inline void marcel_san_shared(void *p, size_t bytes)
{
	AnnotateBenignRaceSized(__FILE__, __LINE__, p, bytes, "shared");
}

/* And those of libc's: errno, and the tables of <ctype.h>. */
static inline void marcel_san_libc(void)
{
	marcel_san_shared(&errno, sizeof(errno));
	marcel_san_shared(__ctype_b_loc(), sizeof(*__ctype_b_loc()));
	marcel_san_shared(__ctype_tolower_loc(),
			  sizeof(*__ctype_tolower_loc()));
	marcel_san_shared(__ctype_toupper_loc(),
			  sizeof(*__ctype_toupper_loc()));
}

/* For the thread that runs on this kernel thread already. */
static inline void marcel_san_adopt(struct marcel_thread *t)
{
	t->rest->fiber = __tsan_get_current_fiber();
}

static inline void marcel_san_new(struct marcel_thread *t)
{
	t->rest->fiber = __tsan_create_fiber(0);
}

/* Not on the thread's own stack. */
static inline void marcel_san_free(struct marcel_thread *t)
{
	__tsan_destroy_fiber(t->rest->fiber);
	t->rest->fiber = NULL;
}
#else
static inline void marcel_san_enter(void)
{
}

static inline void marcel_san_leave(void)
{
}

static inline void marcel_san_release(void *p)
{
	(void)p;
}

static inline void marcel_san_acquire(void *p)
{
	(void)p;
}

static inline void marcel_san_shared(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}

static inline void marcel_san_libc(void)
{
}

static inline void marcel_san_adopt(struct marcel_thread *t)
{
	(void)t;
}

static inline void marcel_san_new(struct marcel_thread *t)
{
	(void)t;
}

static inline void marcel_san_free(struct marcel_thread *t)
{
	(void)t;
}
#endif

#if BASE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#include "../thread/stack.h"

/* fake NULL: the leaving thread never comes back. */
static inline void marcel_san_start(void **fake, struct marcel_thread *next)
{
	struct marcel_stack *s = next->stack;

	if (s != NULL)
		__sanitizer_start_switch_fiber(fake, s->low, s->bytes);
	else
		__sanitizer_start_switch_fiber(fake, next->rest->stack_low,
					       next->rest->stack_bytes);
}

static inline void marcel_san_finish(void *fake)
{
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

/* From one context of a thread to another one of it, for good. */
static inline void marcel_san_return(struct marcel_thread *t)
{
	marcel_san_start(NULL, t);
}

/* Frames that ended without returning leave marks in the shadow. */
static inline void marcel_san_clean(void *low, size_t bytes)
{
	__asan_unpoison_memory_region(low, bytes);
}

/* What is found from there, which is mapped for good, is no leak. */
static inline void marcel_san_root(void *low, size_t bytes)
{
	__lsan_register_root_region(low, bytes);
}

/* It is no leak, nor what is found from there. NULL: nothing. */
static inline void marcel_san_ignore(const void *p)
{
	if (p != NULL)
		__lsan_ignore_object(p);
}
#elif BASE_TSAN
/* A thread that may be destroyed must not be inside the scheduler for TSan. */
static inline void marcel_san_start(void **fake, struct marcel_thread *next)
{
	void *fiber = next->rest->fiber;

	marcel_san_leave();
	__tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
}

static inline void marcel_san_finish(void *fake)
{
	(void)fake;
	marcel_san_enter();
}

static inline void marcel_san_return(struct marcel_thread *t)
{
	(void)t;
}

static inline void marcel_san_clean(void *low, size_t bytes)
{
	(void)low;
	(void)bytes;
}

static inline void marcel_san_root(void *low, size_t bytes)
{
	(void)low;
	(void)bytes;
}

static inline void marcel_san_ignore(const void *p)
{
	(void)p;
}
#else
static inline void marcel_san_start(void **fake, struct marcel_thread *next)
{
	(void)fake;
	(void)next;
}

static inline void marcel_san_finish(void *fake)
{
	(void)fake;
}

static inline void marcel_san_return(struct marcel_thread *t)
{
	(void)t;
}

static inline void marcel_san_clean(void *low, size_t bytes)
{
	(void)low;
	(void)bytes;
}

static inline void marcel_san_root(void *low, size_t bytes)
{
	(void)low;
	(void)bytes;
}

static inline void marcel_san_ignore(const void *p)
{
	(void)p;
}
#endif

#endif
