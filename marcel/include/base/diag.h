/*
 * What goes wrong is said here: messages for people, checks for our own bugs.
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

/*
 * One line on stderr, written with one system call: "module[pid]: text\n".
 * A line longer than 1 KiB is cut. Never allocates.
 */
void base_warn(const char *module, const char *fmt, ...) BASE_PRINTF(2, 3);

/* The same, then abort(): for states that cannot be continued from. */
void base_fatal(const char *module, const char *fmt, ...)
	BASE_PRINTF(2, 3) BASE_NORETURN BASE_COLD;

void base_check_failed(const char *what, const char *file,
		       int line) BASE_NORETURN BASE_COLD;

/* Our own bugs. base_check is always on and cheap, base_assert for debug. */
#define base_check(x)                                                          \
	(likely(x) ? (void)0 : base_check_failed(#x, __FILE__, __LINE__))
#ifdef NDEBUG
#define base_assert(x) ((void)sizeof(x))
#else
#define base_assert(x) base_check(x)
#endif

/*
 * Dumps: text for a person who asks by a signal what everybody does. Only
 * functions that a signal handler may call; the numbers may be a little out
 * of date, the walk is bounded and never follows freed memory.
 */
void base_dump(const char *fmt, ...) BASE_PRINTF(1, 2);

struct base_hang_layer;

/* A layer's part of the dump. Memory is the caller's until removed. */
struct base_dumper {
	const char *name;
	void (*fn)(void *arg);
	void *arg;
	const struct base_hang_layer *hang; /* or NULL; hang.h */
	ATOMIC(struct base_dumper *) next;  /* a: diag's, see there */
};

void base_dumper_add(struct base_dumper *d);

/* Waits for dumps under way on other threads: what fn reads may be freed. */
void base_dumper_remove(struct base_dumper *d);

/* Calls fn for each, in that order; none is removed meanwhile. Signal-safe. */
void base_dumpers_walk(void (*fn)(struct base_dumper *d, void *arg), void *arg);

/* In the child of a fork: nobody else dumps. */
void base_dump_forked(void);

/* Run all dumpers in the order in which they were added. Signal-safe. */
void base_dump_all(void);

/*
 * printf for signal handlers: %d %u %ld %lu %zu %x %lx %p %s %c %% and a field
 * width; nothing else. Returns the length written, without the final 0.
 */
size_t base_format(char *out, size_t bytes, const char *fmt, va_list ap);

#endif
