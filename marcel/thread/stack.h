/*
 * Stacks: cut from arenas, guarded, cached.
 *
 *	slot:  | guard page | <- usable, grows down ... | header | colour |
 *	                    low                         the struct below
 *
 * The struct lies above the stack it describes, on the page that is touched
 * anyway, so a stack that nobody uses needs no memory beside it. The colour is
 * a small multiple of 192 bytes, so that the hot tops of many stacks fall into
 * different sets of the caches; it leaves half of the page to the first frames,
 * so that a thread that blocks in one of them has touched no other.
 */
#ifndef MARCEL_THREAD_STACK_H
#define MARCEL_THREAD_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

struct marcel_arena;
struct marcel_timer;
struct marcel_vp;

/* More is a mistake: nobody has such an address space to spare. */
#define MARCEL_STACK_MAX ((size_t)1 << 40)

/* How a stack's end is guarded. */
enum marcel_guards {
	MARCEL_GUARDS_AUTO,     /* the best that the kernel has */
	MARCEL_GUARDS_ADVICE,   /* MADV_GUARD_INSTALL: no mapping each */
	MARCEL_GUARDS_MPROTECT, /* as long as there are mappings, then: */
	MARCEL_GUARDS_CANARY,   /* the guard page is looked at: watch.c */
};

/* q: whoever holds it: a thread, a VP's cache, or its arena. */
struct marcel_stack {
	struct marcel_stack *next;
	char *low;                  /* lowest usable byte, above the guard */
	size_t bytes;               /* from low to this struct: apart.h */
	struct marcel_arena *arena; /* that it was cut from, or NULL */
	void *(*fn)(void *);        /* what its thread runs first */
	ATOMIC(uint64_t) waits;     /* a: marcel_thread_waits() */
	ATOMIC(struct marcel_timer *) wait; /* a: its thread's: cancel.h */
	unsigned checker;                   /* os_checker_stack()'s number */
	uint8_t slot;                       /* its number in the arena */
	uint8_t class; /* and that one's size class; 0: apart.h */
	bool is_guarded;
	ATOMIC(bool) awaits_io; /* a: marcel_thread_set_awaits_io() */
} BASE_ALIGNED(BASE_CACHE_LINE);

/*
 * Read the machine's facts; `bytes` is the default size. 0; -ENOMEM;
 * -ENOTSUP: the kernel does not have these guards.
 */
int marcel_stack_init(size_t bytes, enum marcel_guards guards);
/* Give all memory back. No thread lives. */
void marcel_stack_exit(void);

/* The smallest size that holds a signal's frame and some calls. */
size_t marcel_stack_min(void);

/* More than this is had when a thread is made, and not when it first runs. */
#define MARCEL_STACK_EARLY ((size_t)1 << 22)

/*
 * A stack of at least `bytes`, from the VP's cache if it has one of the size.
 * NULL: no memory; marcel_sched.scarce says so from then on. The caller is the
 * owner of vp; vp may be NULL.
 */
struct marcel_stack *marcel_stack_get(struct marcel_vp *vp, size_t bytes);
void marcel_stack_put(struct marcel_vp *vp, struct marcel_stack *s);

/*
 * Whether who asks for `bytes` gets a stack of the default size, which holds
 * them, and which every VP has at hand.
 */
bool marcel_stack_is_default(size_t bytes);

/* Whether there is memory again for one of the default size. */
bool marcel_stack_can_be_had(void);

/* Bytes of its guard, none if there is only a canary. */
size_t marcel_stack_guard_bytes(const struct marcel_stack *s);

/* Whether the address is in the stack's guard, or where it would be. */
bool marcel_stack_is_guard(const struct marcel_stack *s, const char *address);

/*
 * Whether the thread whose stack pointer is sp has run off a stack without a
 * guard, now or before.
 */
bool marcel_stack_is_smashed(const struct marcel_stack *s, const char *sp);

/* One line about all stacks, for dumps. Signal-safe. */
void marcel_stack_dump(void);

/* fork.c: in a child. Stacks stay mapped, and are nobody's but the caller's. */
void marcel_stack_forked(void);

#endif
