/*
 * Short stretches in which a user thread is not preempted: while it holds what
 * others on the same VP would wait for, or give up for. Pins nest and belong to
 * the kernel thread; a pinned thread does not switch.
 */
#ifndef BASE_PIN_H
#define BASE_PIN_H

#include <stdbool.h>

void base_pin(void);
void base_unpin(void);

/*
 * Whether the calling kernel thread is in such a stretch, its own or one that
 * it interrupted, or in a handler. Who is may hold what he would wait for.
 */
bool base_is_pinned(void);

/*
 * The same around calls of handlers: functions that must not block, on whose
 * stack ever. `fn` is where the one that runs is to be found, or NULL, for the
 * message with which the process ends if it does. The result is for
 * base_unpin_handler().
 */
const void *base_pin_handler(const void *fn);
void base_unpin_handler(const void *outer);

/* Whether the caller is in a handler. */
bool base_in_handler(void);

/*
 * Ends the process if the caller is in a handler: `what` may block; NULL: it
 * parks for a reason that is not known.
 */
void base_handler_check(const char *module, const char *what);

#endif
