/*
 * What it costs to sleep instead of polling, measured when pioman starts.
 */
#ifndef PIOMAN_WAIT_COST_H
#define PIOMAN_WAIT_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Before the watcher begins: whether it will be asked. */
void piom_cost_prepare(bool wanted);

/* The watcher, as it begins: answers until that is over. */
void piom_cost_answer(void);

/*
 * Nanoseconds, between what is taken for the least and the most that it can be;
 * 0: there was no time to find out. Once, after piom_cost_prepare(true), with
 * the watcher running. Sleeps for some 0.3 ms at most.
 */
uint64_t piom_cost_measure(void);

#endif
