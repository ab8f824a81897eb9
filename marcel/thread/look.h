/*
 * What others may learn of a thread while it runs on.
 */
#ifndef MARCEL_THREAD_LOOK_H
#define MARCEL_THREAD_LOOK_H

#include <stdbool.h>

#include <marcel/thread.h>

/* Anyone, signal handlers too. False: there is no such thread any more. */
bool marcel_thread_look(struct marcel_thread *t, struct marcel_info *out);

/* Whether t has been made, and has not ended. For calls that take an id. */
bool marcel_thread_is_alive(struct marcel_thread *t);

#endif
