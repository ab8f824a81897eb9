/*
 * The only door upward: upper layers register functions that the scheduler
 * calls at certain points, and can be told that work has come.
 */
#ifndef MARCEL_HOOK_H
#define MARCEL_HOOK_H

#include <stdbool.h>

#include <marcel/topo.h>

#ifdef __cplusplus
extern "C" {
#endif

enum marcel_hook_point {
	MARCEL_HOOK_IDLE,   /* a VP has no thread to run */
	MARCEL_HOOK_SWITCH, /* a thread is about to give its VP away */
	MARCEL_HOOK_TICK,   /* a thread has computed for a time slice */
	MARCEL_HOOK_POINTS
};

/* What a hook answers; a point's answer is the highest of its hooks'. */
enum marcel_hook_answer {
	MARCEL_HOOK_NOTHING, /* nothing to do: the VP may sleep */
	MARCEL_HOOK_PENDING, /* nothing came, but ask again soon */
	MARCEL_HOOK_WORKED,  /* work was done; a thread may be ready */
};

/*
 * fn runs on the VP `vp`, perhaps on the stack of a user thread. It must not
 * block or park (the process ends with a message that names it: base/pin.h); it
 * may wake threads, whatever it answers. The thread does not see the errno that
 * the hook leaves. Memory is the caller's until removed. In the child of a
 * fork() there are no hooks but those that it adds.
 *
 * At a tick it runs on the kernel thread that takes the VP over, whatever the
 * thread was doing that computes, and if `wanted` says so, or is NULL: which is
 * asked once a slice for each VP that computes, by another kernel thread (the
 * triggers of Trahay, Denis, Aumage, Namyst, EuroPVM/MPI 2007: idle, context
 * switch, period). An idle VP looks for threads, runs the hook and pauses, some
 * hundred ns; if `wanted`, asked by it meanwhile, says that there is something
 * for this VP alone, the pause is over. It may do no more than read a few
 * words.
 */
struct marcel_hook {
	enum marcel_hook_answer (*fn)(void *arg, int vp);
	void *arg;
	bool (*wanted)(void *arg, int vp); /* or NULL; not at a switch */
};

/* 0; -EINVAL: point or fn; -ENOSPC: the point has 16 hooks already. */
int marcel_hook_add(enum marcel_hook_point point, struct marcel_hook *hook);

/* After it returns no VP runs the hook. Not from a hook. -ENOENT: unknown. */
int marcel_hook_remove(enum marcel_hook_point point, struct marcel_hook *hook);

/*
 * Work for idle hooks has come that a VP below `level` should see: wakes one
 * that sleeps, the nearest to the caller; for the whole machine only if no VP
 * is awake and looking. Never blocks; costs one load when nobody sleeps.
 */
void marcel_kick(struct marcel_level *level);

/*
 * True if another thread is ready on the caller's VP: then who waits should
 * park at once; else it may as well poll in place. A hint.
 */
int marcel_others_ready(void);

/*
 * The caller waits, and asks marcel_others_ready() over and over (1): so there
 * it makes way itself for real-time threads, and need not be interrupted as if
 * it computed. Or it does so no more, or is about to park (0): true if some are
 * ready now, and then who goes on is to yield.
 */
int marcel_make_way(int on);

/*
 * The caller has asked for something in vain, and may ask for ever: true if it
 * is to yield before it asks again. Real-time threads are ready, or, which is
 * looked at one time in 64, any other on the caller's VP: whoever brings what
 * it asks for may be among them, and need not wait for the end of a time slice.
 */
int marcel_asked_in_vain(void);

/* True if a VP has nothing to run: it looks for work, or sleeps. A hint. */
int marcel_any_idle(void);

/* True if more LWPs than CPUs share this machine: do not spin, yield. */
int marcel_is_oversubscribed(void);

#ifdef __cplusplus
}
#endif

#endif
