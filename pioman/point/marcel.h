/*
 * The engine `marcel`: VPs poll when they are idle and when threads switch.
 */
#ifndef PIOMAN_POINT_MARCEL_H
#define PIOMAN_POINT_MARCEL_H

#include <stdint.h>

/* Register with marcel's hooks, and leave them. 0 or -errno. */
int piom_point_marcel_init(void);
void piom_point_marcel_exit(void);

/*
 * How often idle VPs have polled so far, about: if it changes, somebody polls
 * while we sleep.
 */
uint64_t piom_point_marcel_polls(void);

#endif
