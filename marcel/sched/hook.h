/*
 * How the scheduler runs hooks.
 */
#ifndef MARCEL_SCHED_HOOK_H
#define MARCEL_SCHED_HOOK_H

#include <base/spin.h>
#include <marcel/hook.h>
#include "vp.h"

enum { MARCEL_HOOKS_MAX = 16 };

/* The hooks of a point; a removed one leaves a hole for the next to come. */
struct marcel_hook_table {
	ATOMIC(unsigned) used; /* a: slots to look at; written under a lock */
	ATOMIC(struct marcel_hook *)
	slot[MARCEL_HOOKS_MAX]; /* a: order(hook) */
};

extern BASE_HIDDEN struct marcel_hook_table marcel_hooks[MARCEL_HOOK_POINTS];

/* The argument of marcel's own hooks, which wake nobody by themselves. */
#define MARCEL_HOOK_OWN (&marcel_hooks)

/* l: who adds and removes, and who looks at what others have added. */
extern BASE_HIDDEN struct base_spin marcel_hook_lock;

/* The owner. The highest answer of the point's hooks. */
enum marcel_hook_answer marcel_hook_run(struct marcel_vp *vp,
					enum marcel_hook_point point);

/* The monitor: whether a hook is to run at the next tick of that VP. */
bool marcel_hook_wants_tick(struct marcel_vp *vp);

/* The owner, who is idle: whether a hook has something for this VP alone. */
bool marcel_hook_wants_idle(struct marcel_vp *vp);

/* The slow half of marcel_hook_switch(). */
void marcel_hook_switch_slow(struct marcel_vp *vp);

/* A handler on vp blocks: why, or NULL: marcel_thread_waits() knows. */
void marcel_hook_refuse(struct marcel_vp *vp, const char *why) BASE_NORETURN;

/*
 * The thread that runs on vp is about to leave it, for that reason; NULL: for
 * what marcel_thread_waits() was told. Real-time threads that are ready are
 * seen here, too, so that what picks has no word more to look at; and tasklets
 * run.
 */
static inline void marcel_hook_switch(struct marcel_vp *vp, const char *why)
{
	if (unlikely(cpu_tls_in_handler()))
		marcel_hook_refuse(vp, why);
	if (unlikely(load_relaxed(&marcel_sched.before_switch) != 0))
		marcel_hook_switch_slow(vp);
}

/* thread/fork.c: in a child, which has no hooks. */
void marcel_hook_forked(void);

#endif
