/*
 * What the runtime is started with, for who lists it.
 */
#ifndef MARCEL_SCHED_START_H
#define MARCEL_SCHED_START_H

#include <base/option.h>

extern const struct base_option_table marcel_options;

#endif
