/*
 * Random mixes of what threads do to one another.
 *
 * Actors, which are user threads, main and foreign threads, draw operations
 * (struct op) from seeds of their own and keep an account of what they did;
 * when all have ended the account must be even. An operation always ends when
 * all others that have begun go on, so that a standstill means a lost wake-up.
 */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <marcel/marcel.h>

enum { ACTORS = 24, FOREIGN = 3, DEPTH_MAX = 2 };

struct actor {
	uint64_t random;
	int id;    /* children have their parent's */
	int depth; /* of children of children */
	bool foreign, is_main;
	ATOMIC(struct marcel_thread *)
	self;                       /* a: release; of those of main.c */
	ATOMIC(const char *) doing; /* a: relaxed, for the report */
};

/*
 * weight: how often it is drawn. deep: makes threads, which may draw again.
 * users: not for foreign threads.
 */
struct op {
	const char *name;
	void (*fn)(struct actor *a);
	unsigned weight;
	bool deep, users;
};

extern const struct op lock_ops[], thread_ops[], team_ops[], kernel_ops[],
	cancel_ops[], affair_ops[], tasklet_ops[];

/* --- main.c --- */

/* Draw and do one. */
void act(struct actor *a);

/* A user thread that lasts as long as any acts; NULL: it does not run yet. */
marcel_t draw_actor(struct actor *a);

/* What went wrong, how to have it again, all threads; then abort(). */
void fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));

#define MUST(x)                                                                \
	((x) ? (void)0 : fail(__FILE__, __LINE__, "%s does not hold", #x))

#define MUST_INT(got, want)                                                    \
	do {                                                                   \
		long long must_g = (long long)(got);                           \
		long long must_w = (long long)(want);                          \
		if (must_g != must_w)                                          \
			fail(__FILE__, __LINE__, "%s is %lld, not %lld", #got, \
			     must_g, must_w);                                  \
	} while (0)

/* --- draw.c --- */

uint64_t draw(struct actor *a);

/* 0 to n - 1. */
static inline unsigned draw_below(struct actor *a, unsigned n)
{
	return (unsigned)(draw(a) >> 32) % n;
}

static inline bool one_in(struct actor *a, unsigned n)
{
	return draw_below(a, n) == 0;
}

/* Some microseconds from now, or just now. */
struct timespec soon(struct actor *a, clockid_t clock);

/* One that prefers readers, or writers, or is fair. */
void draw_rwlock(struct actor *a, marcel_rwlock_t *out);

/* Do a little that others may come between. */
void stir(struct actor *a);

/* All zero, and a fault for whoever touches it after page_free(). */
void *page_new(void);
void page_free(void *p);

/* --- begun before the actors of a round, and held to account after them --- */

void locks_begin(struct actor *a);
void locks_end(void);
void threads_begin(void);
void threads_end(void);
void threads_over(void); /* after marcel_end() */
void teams_begin(void);
void teams_over(void);
void kernel_begin(void);
void kernel_over(void);
void affairs_begin(void);
void affairs_over(void);
void tasklets_begin(struct actor *a);
void tasklets_end(void);

#endif
