/*
 * What all threads wait for, and who waits for whom in a circle.
 */
#ifndef MARCEL_THREAD_BLAME_H
#define MARCEL_THREAD_BLAME_H

#include <base/hang.h>

/*
 * Tell of all threads, of cycles, and what the layers above have to say. One
 * caller at a time, and not in a handler. Threads may run on meanwhile: then
 * what is told may be out of date, each line by itself.
 */
void marcel_blame(struct base_teller *t);

#endif
