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

/*
 * Every variable, whatever the environment says, for who makes a table of them
 * (tools/gen/variables.py): "MODULE NAME DEFAULT ALLOWED HELP", a line each,
 * with tabs between. ALLOWED is what a bad value is not; empty: any text.
 */
void settings_list(void);

/* Every algorithm of the collective operations, and which are forced. */
void algorithms_print(void);

/* What marcel and its sisters use of the kernel, if it is there. */
void kernel_print(void);

#endif
