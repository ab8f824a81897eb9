/*
 * What the runtime does for signals between threads.
 */
#ifndef MARCEL_SIGNAL_SIGNAL_H
#define MARCEL_SIGNAL_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

#include <base/atomic.h>
#include <base/list.h>
#include <base/spin.h>
#include <marcel/signal.h>
#include "../sched/timer.h"
#include "../thread/thread.h"

enum { MARCEL_SIGNALS = 64 };

/* Of the set, a bit each: signal 1 is bit 0. */
static inline uint64_t marcel_signal_bit(int signal)
{
	return (uint64_t)1 << (signal - 1);
}

/* A thread in sigwait(), on its stack. */
struct marcel_sigwait {
	/* -: const    a: relaxed; NONE, LATE or the signal
	 * l: marcel_signal_lock    w: who changes `word`; then the waiter */
	struct marcel_timer timer;
	struct base_link link; /* l: of all that no signal has ended */
	uint64_t set;          /* -: */
	ATOMIC(int) word;      /* a: decides who ends the wait */
	siginfo_t info;        /* w: */
};

enum { MARCEL_SIGWAIT_NONE = 0, MARCEL_SIGWAIT_LATE = -1 };

/* l: masks, what is pending, and who waits. Not in a heap of timers. */
extern BASE_HIDDEN struct base_spin marcel_signal_lock;

/* l: every thread in sigwait() that no signal was given to. */
extern BASE_HIDDEN struct base_list marcel_sigwaits;

/* Locked: the signals that they wait for, without looking at each thread. */
uint64_t marcel_sigwaits_set(void);

/* Locked: the same, but looks at each and leaves out those that timed out. */
uint64_t marcel_sigwaits_set_exactly(void);

/* thread/fork.c: nobody waits. */
void marcel_sigwaits_forked(void);

uint64_t marcel_signal_bits(const sigset_t *set);
void marcel_signal_set(uint64_t bits, sigset_t *out);

/* Signals of libc's and ours: nobody may block, send or wait for them. */
uint64_t marcel_signal_reserved(void);

/* Locked: the wait ends with this signal; false: it has ended. */
bool marcel_sigwait_grant_locked(struct marcel_sigwait *w, int signal,
				 const siginfo_t *info);

/*
 * The owner of vp has picked t, whose context is saved, and switches to it
 * next: t will take its signals first.
 */
void marcel_signal_arrive(struct marcel_thread *t);

/*
 * Outside the runtime: the caller takes what is pending and not blocked, but
 * for a set.
 */
void marcel_signal_take(struct marcel_thread *self, uint64_t later);

/* t is made by the caller, in a runtime in which signals are used. */
void marcel_signal_inherit(struct marcel_thread *t);

/*
 * Main begins, with the kernel's mask and what it had blocked before, in the
 * parent of this process; ends.
 */
void marcel_signal_init(struct marcel_thread *main, uint64_t before);
void marcel_signal_exit(void);

/* thread/fork.c: nobody waits for any, nor is there who would take them. */
void marcel_signal_forked(void);

/* process.c: signals of the process for who waits. 0 or -errno. */
int marcel_process_signals_start(void);
void marcel_process_signals_stop(void);
void marcel_process_signals_forked(void);
/* The set of signals that are waited for has grown. */
void marcel_process_signals_look(void);

#endif
