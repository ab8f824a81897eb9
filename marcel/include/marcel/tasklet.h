/*
 * Tasklets: functions that run soon, at the next point where the scheduler is
 * safe, before any thread.
 *
 * A tasklet runs on a VP, perhaps on the stack of a user thread that is about
 * to leave it. Its function must not block or park (the process ends with a
 * message that names it), must end soon, and may wake threads, create them,
 * post, unlock, set events, and schedule tasklets, itself too. It never runs on
 * two VPs at once; scheduled while it waits to run it runs once, scheduled
 * while it runs it runs again. Whatever was done before a
 * marcel_tasklet_schedule() is seen by a run that begins after it. Tasklets of
 * one type run one at a time as well.
 *
 * Memory is the caller's. Once marcel_tasklet_kill() has returned, nobody
 * touches it. A tasklet that is still scheduled when marcel_end() is called is
 * not run any more.
 */
#ifndef MARCEL_TASKLET_H
#define MARCEL_TASKLET_H

#include <stdint.h>

#include <marcel/topo.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
	uint64_t marcel_words[6 + MARCEL_VPSET_WORDS];
} marcel_tasklet_t;

/* Zeros are a type, too. It must stay there longer than its tasklets. */
typedef struct {
	uint64_t marcel_words[1];
} marcel_tasklet_type_t;

#define MARCEL_TASKLET_TYPE_INIT                                               \
	{                                                                      \
		{                                                              \
			0                                                      \
		}                                                              \
	}

/*
 * It is enabled, runs on any VP, and has no type. 0; -EINVAL: no fn. In the
 * child of a fork() one that was scheduled or ran has to be made anew.
 */
int marcel_tasklet_init(marcel_tasklet_t *t, void (*fn)(void *arg), void *arg);

/*
 * Until it is scheduled for the first time, or after its kill and another init:
 * its type (NULL: none), and the VPs that may run it. 0; set_vpset: -EINVAL if
 * none of them exists, as before marcel_init(); -EBUSY: it is scheduled or
 * runs.
 */
int marcel_tasklet_set_type(marcel_tasklet_t *t, marcel_tasklet_type_t *type);
int marcel_tasklet_set_vpset(marcel_tasklet_t *t, const marcel_vpset_t *set);

/*
 * Run it soon: on a VP that is idle, else on the caller's, if they may run it,
 * else on another that may. A VP that computes comes by when it changes threads
 * or at the next tick. hi_: before all that are not. While it is disabled it
 * waits. Anyone; never blocks. 0; -EPERM: marcel does not run; -EINVAL: none of
 * its VPs exists; -ECANCELED: it was killed.
 */
int marcel_tasklet_schedule(marcel_tasklet_t *t);
int marcel_tasklet_hi_schedule(marcel_tasklet_t *t);

/*
 * Not to run until it was enabled as often as it was disabled. disable() waits
 * until it does not run; where that is impossible, because the caller is a
 * tasklet or a hook, and it runs, -EDEADLK, and it is disabled nevertheless.
 * disable_nosync() does not wait. -EOVERFLOW: it was disabled 2^20 times;
 * enable(): -EINVAL: it is enabled. Else 0.
 */
int marcel_tasklet_disable(marcel_tasklet_t *t);
int marcel_tasklet_disable_nosync(marcel_tasklet_t *t);
int marcel_tasklet_enable(marcel_tasklet_t *t);

/*
 * It will not run any more; waits until it does not run. 0, also if it was
 * killed before; -EDEADLK: the caller is a tasklet or a hook, and it runs or is
 * about to: nothing was done.
 */
int marcel_tasklet_kill(marcel_tasklet_t *t);

#ifdef __cplusplus
}
#endif

#endif
