/*
 * What ends a process is done in a child, which has no pioman of its own yet.
 */
#ifndef TESTS_PIOMAN_CHILD_H
#define TESTS_PIOMAN_CHILD_H

#include <stdlib.h>

#include <pioman/pioman.h>

#include "../marcel/child.h"

static void (*body_with_pioman)(void);

/* Without a watcher: TSan has no threads in a child. */
static inline void start_and_do(void)
{
	setenv("PIOM_MODE", "poll", 1);
	CHECK_INT(piom_init(), 0);
	body_with_pioman();
}

/* As in_child(). */
static inline int in_child_with_pioman(void (*body)(void))
{
	body_with_pioman = body;
	return in_child(start_and_do);
}

#endif
