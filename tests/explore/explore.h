/*
 * The interleaving explorer: runs a small lock-free program through all of its
 * executions and says, step by step, how a check came to fail.
 *
 * The sources of the libraries are compiled unchanged with BASE_EXPLORE, so
 * that <base/atomic.h> takes its accessors from explore_atomic.h, and with the
 * compiler's instrumentation for thread sanitizers, whose calls race.c answers:
 * every plain access of the scenario and of the sources it includes is checked
 * for data races, none has to be marked.
 *
 * The memory model: each atomic word is a list of messages, in the order in
 * which they were written; each has a value and the view of its writer if the
 * write was a release. Each thread has a view: for every word the oldest
 * message that it may still read. A load branches over all messages not older
 * than that; an acquire joins the message's view into the thread's. A
 * read-modify-write reads the newest message and continues its view (release
 * sequences). For seq_cst accesses there must be one order that agrees with all
 * that is seen, as C11 demands (seq.c): that decides store-load races.
 *
 * Not modelled: stores of different threads to one word in another order than
 * they are made ("2+2W"), loads that see later stores (load buffering), and
 * fences, which our rules forbid. A process-shared word is as any other.
 *
 * A scenario is a file with EXPLORE(name) bodies; each sets up its state and
 * spawns threads, which then run in all interleavings. Globals and the
 * executable's thread-local variables are put back before each execution; each
 * thread has its own copy of the latter. Scenarios must be deterministic.
 * The head comment says which orders must make it fail when they are weakened:
 *
 *   covers: mpsc
 */
#ifndef TESTS_EXPLORE_H
#define TESTS_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>

struct explore_test {
	const char *name;
	void (*fn)(void);
	struct explore_test *next;
};

void explore_register(struct explore_test *t);

/* clang-format off */
#define EXPLORE(name)                                                          \
	static void name(void);                                                \
	__attribute__((constructor)) static void name##_register(void)         \
	{                                                                      \
		static struct explore_test t = { #name, name, 0 };             \
		explore_register(&t);                                          \
	}                                                                      \
	static void name(void)
/* clang-format on */

/* --- in the body of EXPLORE, before the threads run --- */

/* A thread; returns its number. At most 6. */
int explore_spawn(const char *name, void (*fn)(void *arg), void *arg);

/* The thread need not end: it may sleep when all others have. */
void explore_may_sleep(int thread);

/* Runs when all threads have ended and sees all they did. */
void explore_finish(void (*fn)(void));

/* How reports call this memory. */
void explore_name(const void *p, size_t bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * How often one thread's weak compare-and-swap, and its sleeping on a futex,
 * may fail or end for no reason in one execution. Default: 1 and 0.
 */
void explore_spurious(int cas, int futex);

/*
 * For tests of the explorer: together the executions must have exactly these
 * outcomes, one bit each; a thread or finish says which one it is.
 */
void explore_outcomes(uint64_t expected);
void explore_outcome(unsigned number);

/* Likewise: some execution must fail with a report that contains this. */
void explore_expect(const char *error);

/* --- anywhere in the threads --- */

#define explore_check(x)                                                       \
	((x) ? (void)0                                                         \
	     : explore_fail("%s:%d: %s does not hold", explore_file(__FILE__), \
			    __LINE__, #x))

/* Reports and ends the scenario. */
void explore_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

const char *explore_file(const char *path);

/* Number of the calling thread, 0 in setup and finish. */
int explore_self(void);

/*
 * A futex: sleep while the newest value of the word is `value`, until a wake.
 * When all threads that remain sleep, a wake-up was lost: an error. Neither
 * side orders anything. os_futex_wait/wake are these.
 */
void explore_wait_while(const void *word, uint32_t value);
void explore_wake(const void *word, int n);

/*
 * One token for each thread, as marcel_park/marcel_wake behave: park sleeps
 * until the token is there and takes it; a second token is an error. What was
 * done before unpark is visible after park only if `ordered`.
 */
void explore_park(void);
void explore_unpark(int thread, bool ordered);

/* Branch: returns 0 .. n-1 in different executions. */
int explore_choose(int n);

/*
 * In a spin loop, cpu_relax() is this: waits for the words last looked at to
 * change, or has the loop spin until it gives up.
 */
void explore_relax(void);

/* The memory is freed: whoever still touches it, or did unordered, errs. */
void explore_gone(const void *p, size_t bytes);

#endif
