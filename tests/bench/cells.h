/*
 * How many cells of the match tables have been visited; only bench_cells has
 * this word.
 */
#ifndef TESTS_BENCH_CELLS_H
#define TESTS_BENCH_CELLS_H

#include <stdint.h>

extern uint64_t bench_cells __attribute__((weak));

#endif
