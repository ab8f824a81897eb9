/*
 * Who polls for programs that bring their own threads: PIOM_ENGINE=pthread.
 */
#ifndef PIOMAN_POINT_PTHREAD_H
#define PIOMAN_POINT_PTHREAD_H

#include <stdint.h>

#include <marcel/topo.h>

/* Start and stop the pollers and the timer. 0 or -errno. */
int piom_point_pthread_init(void);
void piom_point_pthread_exit(void);

/* In the child of a fork(): they are the parent's. */
void piom_point_pthread_forked(void);

/*
 * A queue of this level was submitted to, or kicked: who should see it does not
 * sleep on. order(idle). Never blocks; some loads if nobody sleeps.
 */
void piom_point_pthread_kick(const struct marcel_level *level);

/* Rounds of the pollers so far. */
uint64_t piom_point_pthread_polls(void);

/* The VP on whose CPU the calling kernel thread runs, or -1. */
int piom_point_pthread_here(void);

#endif
