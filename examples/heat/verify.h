/*
 * The same work without tiles, threads and messages, to compare with.
 */
#ifndef HEAT_VERIFY_H
#define HEAT_VERIFY_H

#include "picture.h"
#include "tile.h"

/* A copy of the picture before the run, for verify_end(); NULL: no memory. */
float *verify_begin(const struct picture *p);

/*
 * Spread the copy in one loop and compare it with what the tiles have got, bit
 * for bit; says the result and frees the copy. 0: the same.
 */
int verify_end(const struct grid *g, float *copy, const float *got);

#endif
