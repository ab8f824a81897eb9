/*
 * The counters, put together from where they are counted. No lock, no memory:
 * a signal handler may ask.
 */
#include "stats.h"

#include <string.h>

#include <base/diag.h>

#include <pioman/pioman.h>

#include "io/blocking.h"
#include "ltask/tree.h"
#include "state.h"

struct piom_stats_line piom_stats_lines[PIOM_STATS_LINES];

/* As piom_watcher.fired was when pioman started. */
static uint64_t fired_before;

enum {
	POLLS,
	HITS,
	PASSES, /* PIOM_POINTS of them */
	SKIPPED_BUSY = PASSES + PIOM_POINTS,
	ARMED,
	EXPORTED,
	INTERRUPTS,
	NAPS,
	WAKEUPS,
	TIME_IN_LTASKS,
	LONGEST_GAP,
	COUNTERS,
};

/* In this order they are printed and read. */
static const struct piom_counter counters[COUNTERS] = {
	[POLLS] = { "polls", "", "runs of ltasks" },
	[HITS] = { "hits", "", "runs of ltasks that did work" },
	[PASSES + PIOM_POINT_IDLE] = { "passes_idle", "",
				       "passes over queues by idle VPs" },
	[PASSES + PIOM_POINT_SWITCH] = { "passes_switch", "",
					 "passes over queues at switches" },
	[PASSES + PIOM_POINT_TICK] = { "passes_tick", "",
				       "passes over queues at ticks" },
	[PASSES + PIOM_POINT_POLL] = { "passes_poll", "",
				       "passes over queues by piom_poll()" },
	[PASSES + PIOM_POINT_WAIT] = { "passes_wait", "",
				       "passes over queues by who waits" },
	[PASSES + PIOM_POINT_POLLER] = { "passes_poller", "",
					 "passes over queues by kernel threads "
					 "that poll" },
	[PASSES + PIOM_POINT_TIMER] = { "passes_timer", "",
					"passes over queues by the timer" },
	[PASSES + PIOM_POINT_WATCHER] = { "passes_watcher", "",
					  "passes over queues by the watcher" },
	[SKIPPED_BUSY] = { "skipped_busy", "",
			   "queues not asked: another thread did so" },
	[ARMED] = { "armed", "", "times an ltask was left to the watcher" },
	[EXPORTED] = { "exported", "",
		       "times an ltask was given to a kernel thread that "
		       "waits for it" },
	[INTERRUPTS] = { "interrupts", "",
			 "times the watcher woke since something came" },
	[NAPS] = { "naps", "", "sleeps between polls of a thread that waits" },
	[WAKEUPS] = { "wakeups", "",
		      "sleeps of waiting threads that a signal ended" },
	[TIME_IN_LTASKS] = { "time_in_ltasks", "ns",
			     "in passes; 0 unless PIOM_STATS=1" },
	[LONGEST_GAP] = { "longest_gap", "ns",
			  "between passes over a queue that wanted to be asked "
			  "again; 0 unless PIOM_STATS=1",
			  .highest = true },
};

void piom_stats_init(void)
{
	memset(piom_stats_lines, 0, sizeof(piom_stats_lines));
	fired_before = load_relaxed(&piom_watcher.fired);
}

unsigned long piom_stats_armed_now(struct piom_queue_stats *s)
{
	bool is_now =
		load_relaxed(&s->armed_of) == load_relaxed(&piom_watcher.fired);

	return is_now ? load_relaxed(&s->armed_now) : 0;
}

/* --- putting together --- */

static void add_queue(struct piom_queue *q, void *arg)
{
	struct piom_queue_stats *s = &q->stats;
	uint64_t *sum = arg, gap = load_relaxed(&s->gap_ns);

	for (int i = 0; i < PIOM_POINTS; i++)
		sum[PASSES + i] += load_relaxed(&s->passes[i]);
	sum[POLLS] += load_relaxed(&s->polls);
	sum[HITS] += load_relaxed(&s->hits);
	sum[ARMED] += load_relaxed(&s->armed);
	sum[EXPORTED] += load_relaxed(&s->exported);
	sum[TIME_IN_LTASKS] += load_relaxed(&s->took_ns);
	if (gap > sum[LONGEST_GAP])
		sum[LONGEST_GAP] = gap;
}

static void add_line(struct piom_stats_line *l, uint64_t *sum)
{
	sum[SKIPPED_BUSY] += load_relaxed(&l->skipped_busy);
	sum[NAPS] += load_relaxed(&l->naps);
	sum[WAKEUPS] += load_relaxed(&l->wakeups);
}

static void add_up(uint64_t *sum)
{
	memset(sum, 0, COUNTERS * sizeof(*sum));
	if (piom.start == 0)
		return;
	piom_tree_walk(add_queue, sum);
	for (int i = 0; i < PIOM_STATS_LINES; i++)
		add_line(&piom_stats_lines[i], sum);
	sum[INTERRUPTS] = load_relaxed(&piom_watcher.fired) - fired_before;
}

/* --- showing --- */

BASE_PUBLIC size_t piom_stats_read(struct piom_counter *out, size_t n)
{
	uint64_t sum[COUNTERS];

	if (n > 0)
		add_up(sum);
	for (size_t i = 0; i < n && i < COUNTERS; i++) {
		out[i] = counters[i];
		out[i].value = sum[i];
	}
	return COUNTERS;
}

void piom_stats_print(void)
{
	uint64_t sum[COUNTERS];

	add_up(sum);
	for (int i = 0; i < COUNTERS; i++)
		base_warn("pioman", "%s %lu%s%s", counters[i].name, sum[i],
			  *counters[i].unit ? " " : "", counters[i].unit);
}

void piom_stats_dump(void)
{
	uint64_t sum[COUNTERS];

	add_up(sum);
	for (int i = 0; i < COUNTERS; i++)
		if (sum[i] != 0)
			base_dump("  %s %lu%s%s", counters[i].name, sum[i],
				  *counters[i].unit ? " " : "",
				  counters[i].unit);
}
