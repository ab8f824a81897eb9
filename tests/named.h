/*
 * User threads with names, for what shows these.
 */
#ifndef TESTS_NAMED_H
#define TESTS_NAMED_H

#include <stdlib.h>

#include <marcel/marcel.h>

static inline marcel_t start(const char *name, void *(*fn)(void *), void *arg)
{
	marcel_attr_t attr;
	marcel_t t;

	if (marcel_attr_init(&attr) != 0 ||
	    marcel_attr_setname(&attr, name) != 0 ||
	    marcel_create(&t, &attr, fn, arg) != 0)
		abort();
	marcel_attr_destroy(&attr);
	return t;
}

#endif
