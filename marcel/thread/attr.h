/*
 * What marcel_attr_t holds.
 */
#ifndef MARCEL_THREAD_ATTR_H
#define MARCEL_THREAD_ATTR_H

#include <stdbool.h>

#include <marcel/thread.h>

#include <base/compiler.h>

struct marcel_attr {
	uint32_t magic; /* made by marcel_attr_init(), not yet destroyed */
	int detach;
	size_t stacksize; /* 0: the default */
	int has_set;
	int priority;
	char *stack;      /* found, or if `brings` asked for */
	size_t guardsize; /* found, or if `guards` asked for */
	marcel_vpset_t set;
	char name[MARCEL_NAME_MAX];
	bool brings, guards;
	bool is_steady;  /* not preemptible */
	bool is_private; /* as to thread-local storage */
	/* posix_sched.c: what was said, and whether it counts */
	uint8_t policy, policy_priority;
	bool is_explicit;
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct marcel_attr) <= sizeof(marcel_attr_t),
	       "an attribute fits its public type");

/* NULL: not an initialised attribute. */
const struct marcel_attr *marcel_attr_read(const marcel_attr_t *attr);

/* posix_sched.c: the band that POSIX's attributes ask for. 0 or EINVAL. */
int marcel_posix_set_band(marcel_attr_t *attr);

/* posix.c: the runtime runs from now on, if it can be started. */
void marcel_posix_start(void);

/* priority.c */
bool marcel_priority_exists(int priority);

#endif
