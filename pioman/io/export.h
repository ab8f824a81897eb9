/*
 * Ltasks that wait in the kernel for something that is no descriptor are
 * *exported*: a kernel thread (LWP) of a small pool calls their wait().
 *
 *   lwp->word:  | number | state |
 *
 *      the watcher             holder of the queue        wait() returned
 *   ABSENT ----> COMING ----> IDLE --------------> WAITING ---------> IDLE
 *     ^                        |                      |            number + 1
 *     +------------------------+                      | the task ends: holder,
 *       nothing to do for a while                     v after wake()
 *                                                   LEFT -----------> IDLE
 *                          wait() returned, the LWP has signalled the end
 *
 * An ltask is armed as long as the word of its LWP is as it was when it was
 * exported. That nothing is lost follows as for descriptors, io/blocking.h:
 * the LWP changes its word, and then kicks the queue.
 *
 * An ltask that ends while its LWP is in wait() may not be freed before that
 * has returned. Whoever comes second signals the end: the holder who finds the
 * LWP back, or the LWP that finds LEFT: order(export).
 *
 * The holder of a queue makes no kernel thread: he asks the watcher to, and
 * tries again later. An LWP that has had nothing to do for a while ends.
 */
#ifndef PIOMAN_IO_EXPORT_H
#define PIOMAN_IO_EXPORT_H

#include <stdbool.h>

#include "../ltask/queue.h"

/* Whether there may ever be an LWP. */
bool piom_export_may(void);

/* Who holds a queue: whether an LWP is free; if not one is asked for. */
bool piom_export_has_room(void);

/*
 * Who holds the task's queue: give it to an LWP; false if none is free any
 * more. What arm() was to do is done.
 */
bool piom_export(struct piom_task *t);

/* Who holds its queue: whether its LWP is in wait() still. */
bool piom_export_is_out(const struct piom_task *t);

/*
 * Who holds its queue, and has stored its last state: the task ends. True if
 * he is to signal that; else the LWP does, and he touches it no more.
 */
bool piom_export_leave(struct piom_task *t);

/*
 * The watcher, at each of its looks: make the LWP that somebody has asked for,
 * if any. It rings when it is there. Where the kernel refuses it is tried again
 * after a second.
 */
void piom_export_provide(void);

/* At most `max` LWPs; and end all: no ltask is submitted. */
void piom_export_init(int max);
void piom_export_exit(void);

/* In the child of a fork(): they are the parent's. */
void piom_export_forked(void);

#endif
