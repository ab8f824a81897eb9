/*
 * What the runtime is started with, for who lists it.
 */
#ifndef MARCEL_SCHED_START_H
#define MARCEL_SCHED_START_H

#include <base/option.h>

extern const struct base_option_table marcel_options;

/*
 * thread/fork.c: in the child of a fork, one VP as the parent's were. Its
 * caller is as that of marcel_init(). So many threads that have ended are yet
 * to be joined. 0 or -errno.
 */
int marcel_start_anew(uint32_t threads);

#endif
