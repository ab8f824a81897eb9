/*
 * What can be told of objects that somebody waits for: for reports on threads
 * that do not run (thread/blame.c). Hints while others use the object.
 */
#ifndef MARCEL_SYNC_LOOK_H
#define MARCEL_SYNC_LOOK_H

struct marcel_thread;

/* How many have come to a barrier, and how many it waits for. */
void marcel_barrier_look(const void *barrier, unsigned *come, unsigned *count);

/* The writer that has the lock, or NULL; how many readers have it. */
struct marcel_thread *marcel_rwlock_look(const void *rwlock, unsigned *readers);

#endif
