/*
 * ltask: a small task, a function with an argument, embedded in its owner's
 * structure and never allocated (Cluster 2009, section III).
 *
 *            submit                  run                  DONE or one-shot
 *   IDLE -----------> SUBMITTED -----------> RUNNING -------------> DONE
 *    ^                    ^                     |                     |
 *    |                    +---------------------+                     |
 *    |                       AGAIN, WORKED (repeat)                   |
 *    +------------------------- init, or submit again ----------------+
 *   cancel: SUBMITTED -> CANCELLED at once; RUNNING -> CANCELLED after the run
 *   mask: SUBMITTED -> MASKED at once; RUNNING -> MASKED after the run;
 *   unmask, as often: MASKED -> SUBMITTED; cancel: MASKED -> CANCELLED
 *
 * An ltask never runs on two cores at once. Its function must not block, park
 * or take a lock that a thread may hold while it is parked: if it comes to wait
 * for something, the process ends with a message that names the function. It
 * may run on any kernel thread, on the stack of any user thread, and may wake
 * threads, signal conditions and submit ltasks.
 */
#ifndef PIOMAN_LTASK_H
#define PIOMAN_LTASK_H

#include <stdbool.h>
#include <stdint.h>

#include <marcel/topo.h>

#ifdef __cplusplus
extern "C" {
#endif

enum piom_ltask_result {
	PIOM_LTASK_DONE,   /* finished; a repeating task is not run again */
	PIOM_LTASK_AGAIN,  /* nothing came: ask again (repeat only); VPs that
			    * sleep already are not woken for that */
	PIOM_LTASK_WORKED, /* something was done: ask again (repeat only) */
	PIOM_LTASK_QUIET, /* nothing came and nothing is awaited: ask again, but
			   * a VP may sleep meanwhile (repeat only) */
};

typedef enum piom_ltask_result (*piom_ltask_fn)(void *arg);

enum piom_ltask_options {
	PIOM_LTASK_ONESHOT = 0,
	PIOM_LTASK_REPEAT = 1, /* run again and again until it says DONE */
	PIOM_LTASK_NOWAIT = 2, /* nobody will wait for it; its memory may be
				* freed or reused by its own function, in the
				* run that returns DONE or a one-shot run */
};

/* Opaque; lives in the owner's structure until it is done or cancelled. */
struct piom_ltask {
	uint64_t piom_words[18];
};

/*
 * Prepare; set NULL: any VP, else at least one that exists when it is
 * submitted. The lowest level that covers the set is used; with
 * PIOM_ENGINE=pthread any thread of the packages that the set touches. No
 * function, or options that mean nothing, end the process with a message.
 */
void piom_ltask_init(struct piom_ltask *t, piom_ltask_fn fn, void *arg,
		     unsigned options, const marcel_vpset_t *set);

/*
 * How a repeat task that finds nothing may wait in the kernel instead of being
 * asked again and again ("blocking ltask", Trahay, Denis, Aumage, Namyst,
 * EuroPVM/MPI 2007, section 3.4). Once it is *armed*, its AGAIN counts as
 * QUIET: VPs may sleep, and it is run again when the descriptor is readable, or
 * wait() returns. PIOM_MODE says when: interrupt: at once; poll: never; auto:
 * after it was asked in vain for `delay_ns`, or when no VP is idle and it is
 * asked rarely.
 */
struct piom_blocking {
	/*
	 * Readable (as poll(2) means it) while a run would find something, and
	 * then only: what a run leaves there makes it run again at once. A
	 * hang-up and an error are something to find: say DONE. Or -1:
	 */
	int fd;

	/*
	 * Sleep until a run would find something; to return for no reason is
	 * allowed. For what is no descriptor: else NULL. Gets the task's
	 * argument; called by a kernel thread of pioman's, also while the
	 * task's function runs. There are at most PIOM_LWP_MAX of them: while
	 * none is free the task is polled.
	 */
	void (*wait)(void *arg);

	/*
	 * A wait() that goes on, or is called after this, returns: until the
	 * next arm(). Called as the task ends, on any kernel thread, like the
	 * task's function; must not block.
	 */
	void (*wake)(void *arg);

	/*
	 * Or NULL, but with wait(). "From now on, what comes makes fd readable,
	 * or wait() return": 0. Else there is something already, or it cannot
	 * be had now: the task is asked again. Gets the task's argument; called
	 * like its function, after that has answered AGAIN and never beside it,
	 * nor beside wait().
	 */
	int (*arm)(void *arg);

	uint64_t delay_ns; /* or PIOM_BLOCKING_AUTO */

	/*
	 * Also what nobody waits for shall be seen while VPs sleep: where it
	 * may be armed, QUIET counts as AGAIN. Else it counts on nothing then.
	 */
	bool unasked;
};

/*
 * As long as polling has been worth it for this task so far, PIOM_IDLE_US at
 * most: if what comes mostly comes later than that, not at all.
 */
#define PIOM_BLOCKING_AUTO UINT64_MAX

/*
 * Between init and submit: *how is copied; the descriptor stays open until the
 * task is done or cancelled, and is no other task's. 0; -EINVAL: not a repeat
 * task, or a NOWAIT one, or one of some VPs only, or not one of fd and wait()
 * with wake() and arm(); -EBADF; -EPERM: nobody can wait for such a descriptor
 * (a file). What the kernel refuses later is said in a warning, and polled.
 */
int piom_ltask_set_blocking(struct piom_ltask *t,
			    const struct piom_blocking *how);

enum piom_urgency {
	PIOM_PATIENT = -1, /* who computes is not to be interrupted for it: VPs
			    * that compute do not arm it */
	PIOM_NORMAL = 0,
	PIOM_URGENT = 1, /* it is armed whenever threads run on the VP that
			  * asks, not only when a slice ends */
};

/*
 * A hint, with PIOM_MODE=auto, about what a blocking task is asked for next: it
 * is expected in so many nanoseconds from now, or UINT64_MAX: nobody knows. If
 * that is longer than PIOM_IDLE_US an idle VP has it armed at once, else polls
 * until then; a VP that computes has it armed if it is overdue. The time counts
 * until something has come or the next hint, the urgency until that. What is
 * armed stays so until something comes; what comes earlier than was said is
 * seen at ticks where all compute. Anyone, while it is submitted. Never blocks.
 * 0; -EINVAL: not a blocking task, or no such urgency.
 */
int piom_ltask_expect(struct piom_ltask *t, uint64_t ns,
		      enum piom_urgency urgency);

/*
 * Give it to pioman: one push on a lock-free list, and a VP is woken if all
 * that may run it sleep. Never blocks, allocates nothing. Only in state IDLE,
 * DONE or CANCELLED, while pioman runs, and with a VP in its set: else the
 * process ends with a message, as it does for an ltask that a queue finds
 * changed.
 */
void piom_ltask_submit(struct piom_ltask *t);

/* Nonzero once it is done or cancelled. Never blocks. */
int piom_ltask_test(const struct piom_ltask *t);

/*
 * Block until it is done or cancelled. One waiter. Not with NOWAIT, nor from an
 * ltask. As piom_cond_wait(): no cancellation point.
 */
void piom_ltask_wait(struct piom_ltask *t);

/* The same until a time, ns by CLOCK_MONOTONIC: 0, or -ETIMEDOUT. */
int piom_ltask_wait_until(struct piom_ltask *t, uint64_t ns);

/*
 * Take it out; afterwards it does not run and is in no queue, and its memory
 * is the caller's. Waits for a run in progress, so not from an ltask; a NOWAIT
 * one, which may be gone after its run, only while it cannot be running.
 * 0: cancelled; -EALREADY: it was done already or never submitted.
 */
int piom_ltask_cancel(struct piom_ltask *t);

/*
 * Work for a submitted repeat task has come: no VP that may run it sleeps
 * before it has been run once more; if all do, one is woken. What the caller
 * did before, that run sees. Anyone; never blocks; of one that was never
 * submitted it does nothing. The ltask may not end before this returns. One
 * compare-and-swap, and one load if nobody sleeps.
 */
void piom_ltask_kick(struct piom_ltask *t);

/*
 * Between the two its function is not run (but its wait() may go on), and all
 * its runs so far have been before; it stays submitted, keeps no VP awake and
 * can be cancelled. They count. mask() waits for a run in progress, unless that
 * is the caller's: so not from another ltask; a NOWAIT one only while it cannot
 * be running. 0; -EALREADY: it was done or cancelled already, or is now, or
 * never submitted. After the last unmask() it is asked again, as after a kick;
 * of one that has ended meanwhile there are no masks, and unmask() does
 * nothing. More than 4,095 masks at once, and an unmask() without one, end the
 * process.
 */
int piom_ltask_mask(struct piom_ltask *t);
void piom_ltask_unmask(struct piom_ltask *t);

#ifdef __cplusplus
}
#endif

#endif
