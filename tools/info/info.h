/*
 * The parts of what marcel-info prints.
 */
#ifndef INFO_H
#define INFO_H

#include <stdbool.h>

/*
 * Every setting of the four modules with its value and where that is from, and
 * variables that look like settings and are none. False: some are bad, which
 * are named.
 */
bool settings_print(void);

/* Whether no setting of marcel is bad; says nothing. */
bool settings_are_good(void);

/* Every algorithm of the collective operations, and which are forced. */
void algorithms_print(void);

/* What marcel and its sisters use of the kernel, if it is there. */
void kernel_print(void);

#endif
