/*
 * The floor under all waiting: one way to sleep, one way to become runnable,
 * one completion word. Mutexes, joins and MPI requests all stand on these.
 */
#ifndef MARCEL_WAIT_H
#define MARCEL_WAIT_H

#include <stddef.h>
#include <stdint.h>

#include <marcel/thread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs once the parked thread's context is saved; must not block. */
typedef void (*marcel_after_fn)(void *arg);

/*
 * Sleep until marcel_wake(). `after` runs when the caller's context has been
 * completely saved, on another stack and perhaps while the caller already runs
 * again: it is where the caller makes itself visible to its waker (puts itself
 * on a queue, releases that queue's lock), never earlier. A wake made in or
 * after `after` is not lost. NULL: somebody else already can wake us.
 *
 * From a foreign thread `after` runs first and the kernel thread then sleeps.
 * Not from hooks, tasks or `after` functions.
 */
void marcel_park(marcel_after_fn after, void *arg);

/*
 * Make a parked thread runnable; exactly one wake per park. Never blocks;
 * callable from everywhere, `after` functions and hooks included. It touches
 * nothing of the caller's object, only the thread.
 */
void marcel_wake(marcel_t t);

/*
 * A one-shot completion: empty, then set for ever (until init). One word; one
 * waiter at a time. All zero is a valid empty event.
 */
typedef struct {
	uint64_t marcel_word;
} marcel_event_t;

/* clang-format off */
#define MARCEL_EVENT_INIT { 0 }
/* clang-format on */

void marcel_event_init(marcel_event_t *e);

/* Nonzero if set; then everything before the set is visible. Never blocks. */
int marcel_event_test(const marcel_event_t *e);

/*
 * Set it and wake its waiter. At most once per init. The last access is the
 * exchange of the word: the waiter may free the event at once.
 */
void marcel_event_set(marcel_event_t *e);

/* Block until it is set. One thread at a time per event. */
void marcel_event_wait(marcel_event_t *e);

/*
 * A function instead of a waiter: who sets the event calls it after the set, as
 * his last act and on his stack, whoever he is; it must not block, and may free
 * the event and this record, which stays where it is until then. 0; -EALREADY:
 * the event is set, and nothing is called. Never blocks. That the event has a
 * waiter already ends the process.
 */
struct marcel_event_call {
	void (*fn)(struct marcel_event_call *call);
};
int marcel_event_call(marcel_event_t *e, struct marcel_event_call *call);

/*
 * Block until at least one of n events is set and return the lowest index of
 * one that is. Null pointers are passed over; at least one must not be null.
 * The caller is the only waiter of each, and no event is named twice.
 */
size_t marcel_event_wait_any(marcel_event_t *const events[], size_t n);

/*
 * The same, but not past a time: nanoseconds by CLOCK_MONOTONIC. wait_until: 0
 * if it is set, else -ETIMEDOUT; wait_any_until: n if none is. Then nobody
 * waits for them any more.
 */
int marcel_event_wait_until(marcel_event_t *e, uint64_t ns);
size_t marcel_event_wait_any_until(marcel_event_t *const events[], size_t n,
				   uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
