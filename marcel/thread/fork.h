/*
 * Children of fork(): see fork.c.
 */
#ifndef MARCEL_THREAD_FORK_H
#define MARCEL_THREAD_FORK_H

#include <stdbool.h>

struct marcel_timers;

/* This process was forked by one in which the runtime ran. */
bool marcel_fork_is_child(void);

/* The same, and it has started no runtime of its own yet. */
bool marcel_fork_is_left(void);

/* In a child: not a heap of a VP of this process; of the parent's, perhaps. */
bool marcel_fork_has_left(const struct marcel_timers *ts);

/*
 * The caller, who drives no VP, needs a runtime: if it is left without, one is
 * started, in which it is main. 0, also if one runs by now; -EPERM: it is not
 * left, or may not; others: as marcel_init().
 */
int marcel_fork_start(void);

/*
 * The kernel thread that is main of a child, whose runtime was started for it,
 * ends: and so does the runtime, as if there had been none yet.
 */
void marcel_fork_leave(void);

/* The calling process is a child that was just forked. Again: no more. */
void marcel_forked(void);

/* Whether we learn of forks, as we do from the start. 0 or -errno. */
int marcel_fork_init(void);

#endif
