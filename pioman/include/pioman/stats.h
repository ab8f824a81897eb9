/*
 * What pioman has done so far, in numbers: for tools, for tests, and for who
 * wonders where the time goes. PIOM_STATS=1 prints them when pioman stops, a
 * line each on stderr, "pioman[PID]: NAME VALUE" and, of times, " ns"; a dump
 * (MARCEL_DUMP_SIGNAL) shows those that are not 0.
 *
 * All count from the piom_init() that started pioman, always, whatever the
 * setting; but for time_in_ltasks and longest_gap, which read the clock twice a
 * pass and are 0 unless PIOM_STATS=1.
 *
 *   polls           runs of ltasks
 *   hits            those of them that did work: WORKED, DONE, one-shot
 *   passes_idle     passes over queues, by who made them: an idle VP,
 *   passes_switch   a VP between two threads,
 *   passes_tick     a VP whose thread computes on,
 *   passes_poll     piom_poll(),
 *   passes_wait     who waits, in place or between naps,
 *   passes_poller   a kernel thread of engine pthread,
 *   passes_timer    the timer,
 *   passes_watcher  who waits in the kernel for what is armed
 *   skipped_busy    queues that were not asked, somebody else doing so
 *   armed           times an ltask was left to the watcher
 *   interrupts      times the watcher woke because something came
 *   exported        times an ltask was given to a kernel thread to wait for
 *   naps            sleeps between polls of a thread that waits
 *   wakeups         sleeps of waiting threads that a signal has ended
 *   time_in_ltasks  in passes, of all threads together
 *   longest_gap     between two passes over a queue, the first of which left
 *                   ltasks that wanted to be asked again
 *
 * A queue that is empty, and no kick for it, is not asked: no pass.
 */
#ifndef PIOMAN_STATS_H
#define PIOMAN_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The texts are constants, of the process. */
struct piom_counter {
	const char *name; /* as above; stays what it means, others may come */
	const char *unit; /* "ns", or "": a number of something */
	const char *help; /* what is counted, in a line */
	bool highest;     /* the highest so far, else a sum; never less */
	uint64_t value;
};

/*
 * The first n counters, always in the same order; returns how many there are,
 * so that piom_stats_read(NULL, 0) says for how many to have room. All 0 while
 * pioman does not run. From any thread at any time, but piom_exit(); from an
 * ltask and a signal handler, too. Each value is exact once those who poll are
 * still, and meanwhile a little late; two of them need not be of the same
 * moment.
 */
size_t piom_stats_read(struct piom_counter *out, size_t n);

#ifdef __cplusplus
}
#endif

#endif
