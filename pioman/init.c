/*
 * Starting and stopping, the options, and the dump.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <base/diag.h>
#include <base/option.h>
#include <base/pin.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>
#include <pioman/settings.h>

#include "hang.h"
#include "io/blocking.h"
#include "io/set.h"
#include "ltask/tree.h"
#include "offer.h"
#include "point/marcel.h"
#include "point/pthread.h"
#include "point/timer.h"
#include "state.h"
#include "wait/cost.h"

struct piom piom;

BASE_OFFER_NOTE("pioman", "piom_offer");

/*
 * l: lock, under which a pass in progress is waited for: so not one that would
 * hold up the VP.
 */
static struct {
	marcel_mutex_t lock;
	unsigned depth;    /* l: calls of piom_init() not yet undone */
	uint16_t starts;   /* l: so far */
	uint64_t sleep_ns; /* l: what a sleep costs; 0: not measured yet */
} life = { .lock = MARCEL_MUTEX_INITIALIZER };

enum {
	SPIN_NS = 20000, /* before a sleep, if that cannot be measured */
	/*
	 * Who polls gives way to others between two looks then. What he waits
	 * for comes when they have run, and would have to wake him first.
	 */
	OVERSUBSCRIBED_IDLE_NS = 2000000,
};

static const char *const engines[] = { "marcel", "pthread", "none", NULL };
static const char *const modes[] = { "auto", "poll", "interrupt", NULL };
static const char *const waits[] = { "auto", "active", "passive", "spin",
				     NULL };
static const char *const queues[] = { "tree", "machine", NULL };

enum {
	ENGINE,
	MODE,
	WAIT,
	SPIN_US,
	IDLE_US,
	TIMER_US,
	REACTION_US,
	LWP_MAX,
	QUEUES,
	STATS,
	VERBOSE
};

static struct base_option options[] = {
	[ENGINE] = { .name = "PIOM_ENGINE",
		     .kind = BASE_OPTION_CHOICE,
		     .fallback = "marcel",
		     .choices = engines,
		     .help = "who polls: idle and switching VPs; kernel "
			     "threads of its own; only those who ask and "
			     "wait" },
	[MODE] = { .name = "PIOM_MODE",
		   .kind = BASE_OPTION_CHOICE,
		   .fallback = "auto",
		   .choices = modes,
		   .help = "how events come: polled for and then by "
			   "interrupts; by polling; by interrupts" },
	[WAIT] = { .name = "PIOM_WAIT",
		   .kind = BASE_OPTION_CHOICE,
		   .fallback = "auto",
		   .choices = waits,
		   .help = "how to wait: park if others are ready, else poll "
			   "and then park; poll; park; poll and then park" },
	[SPIN_US] = { .name = "PIOM_SPIN_US",
		      .kind = BASE_OPTION_INT,
		      .fallback = "measured",
		      .word = "measured",
		      .min = 0,
		      .max = 1000000,
		      .help = "how long to poll before parking: as long as a "
			      "sleep costs (0 if there are more LWPs than "
			      "CPUs)" },
	[IDLE_US] = { .name = "PIOM_IDLE_US",
		      .kind = BASE_OPTION_INT,
		      .fallback = "200",
		      .min = 0,
		      .max = 1000000,
		      .help = "how long an idle VP polls in vain before it "
			      "waits for interrupts (if there are more LWPs "
			      "than CPUs 2000, or 0 with engine pthread)" },
	[TIMER_US] = { .name = "PIOM_TIMER_US",
		       .kind = BASE_OPTION_INT,
		       .fallback = "4000",
		       .min = 100,
		       .max = 1000000,
		       .help = "engine pthread: how often a timer looks "
			       "whether anybody polls" },
	[REACTION_US] = { .name = "PIOM_REACTION_US",
			  .kind = BASE_OPTION_INT,
			  .fallback = "none",
			  .word = "none",
			  .min = 100,
			  .max = 1000000,
			  .help = "what wants to be polled is, once in so long "
				  "at least, also while all compute; by a "
				  "timer" },
	[LWP_MAX] = { .name = "PIOM_LWP_MAX",
		      .kind = BASE_OPTION_INT,
		      .fallback = "16",
		      .min = 0,
		      .max = 64,
		      .help = "kernel threads for tasks that wait in the "
			      "kernel, but not for a descriptor" },
	[QUEUES] = { .name = "PIOM_QUEUES",
		     .kind = BASE_OPTION_CHOICE,
		     .fallback = "tree",
		     .choices = queues,
		     .help = "a queue for each level of the machine, or one" },
	[STATS] = { .name = "PIOM_STATS",
		    .kind = BASE_OPTION_BOOL,
		    .fallback = "0",
		    .help = "print counters when pioman stops" },
	[VERBOSE] = { .name = "PIOM_VERBOSE",
		      .kind = BASE_OPTION_BOOL,
		      .fallback = "0",
		      .help = "print these settings" },
};

const struct base_option_table piom_options =
	BASE_OPTION_TABLE("pioman", options);

BASE_PUBLIC const struct base_option_table *piom_settings(size_t i)
{
	return i == 0 ? &piom_options : NULL;
}

/* --- the dump; runs in a signal handler --- */

static void dump_queue(struct piom_queue *q, void *arg)
{
	uint32_t word = load_relaxed(&q->word);
	piom_ltask_fn running = load_relaxed(&q->running);

	(void)arg;
	base_dump("  queue of %s %u: %u ltasks, %lu armed%s%s%s, %lu runs, in "
		  "%p",
		  marcel_level_name(q->level->kind), q->level->index,
		  load_relaxed(&q->length), piom_stats_armed_now(&q->stats),
		  base_mpsc_is_empty(&q->submitted) ? "" : " and submissions",
		  word & PIOM_QUEUE_PENDING ? ", asked for" : "",
		  word & PIOM_QUEUE_HELD ? ", held" : "",
		  (unsigned long)load_relaxed(&q->stats.polls),
		  (void *)(uintptr_t)running);
}

static void dump(void *arg)
{
	(void)arg;
	base_dump("  engine %s, mode %s, wait %s", engines[piom.engine],
		  modes[piom.mode], waits[piom.wait]);
	piom_tree_walk(dump_queue, NULL);
	piom_stats_dump();
}

static struct base_dumper dumper = { .name = "pioman",
				     .fn = dump,
				     .hang = &piom_hang };

/* --- start and stop --- */

static int start_engine(void)
{
	int err;

	if (piom.engine == PIOM_ENGINE_PTHREAD)
		return piom_point_pthread_init();
	if (piom.engine == PIOM_ENGINE_NONE)
		return 0;
	err = piom_point_marcel_init();
	if (err < 0 || piom.reaction_ns == 0)
		return err;
	err = piom_point_timer_init(piom.reaction_ns / 2,
				    piom_point_timer_run_stale);
	if (err < 0)
		piom_point_marcel_exit();
	return err;
}

static void stop_engine(void)
{
	piom_point_timer_exit();
	if (piom.engine == PIOM_ENGINE_MARCEL)
		piom_point_marcel_exit();
	if (piom.engine == PIOM_ENGINE_PTHREAD)
		piom_point_pthread_exit();
}

/*
 * How long to poll before a sleep, unless that is measured. Is it? Not if
 * nobody polls before he sleeps, nor without the watcher.
 */
static bool choose_spin(void)
{
	long us = options[SPIN_US].value;

	if (us != BASE_OPTION_WORD)
		piom.spin_ns = (uint64_t)us * 1000;
	else if (marcel_is_oversubscribed())
		piom.spin_ns = 0;
	else
		piom.spin_ns = life.sleep_ns != 0 ? life.sleep_ns : SPIN_NS;
	return us == BASE_OPTION_WORD && !marcel_is_oversubscribed() &&
	       life.sleep_ns == 0 && piom.mode != PIOM_MODE_POLL &&
	       piom.wait != PIOM_WAIT_PASSIVE && piom.wait != PIOM_WAIT_ACTIVE;
}

static void measure_spin(void)
{
	life.sleep_ns = piom_cost_measure();
	if (life.sleep_ns != 0)
		piom.spin_ns = life.sleep_ns;
}

/* It is also whom a sleep is tried with. */
static int start_watcher(void)
{
	bool measured = choose_spin();
	int err;

	piom_cost_prepare(measured);
	err = piom_blocking_init((int)options[LWP_MAX].value);
	if (err < 0)
		return err;
	if (measured)
		measure_spin();
	if (options[VERBOSE].value)
		base_warn("pioman",
			  "waits poll for %lu ns before they sleep; a sleep "
			  "costs %lu ns (0: not measured)",
			  piom.spin_ns, life.sleep_ns);
	return 0;
}

static int start(void)
{
	int err;

	if (!marcel_is_running())
		return -EINVAL;
	err = base_option_load(&piom_options);
	if (err < 0)
		return err;
	piom.engine = (enum piom_engine)options[ENGINE].value;
	piom.mode = (enum piom_mode)options[MODE].value;
	piom.wait = (enum piom_wait)options[WAIT].value;
	piom.idle_ns = (uint64_t)options[IDLE_US].value * 1000;
	if (!options[IDLE_US].is_set && marcel_is_oversubscribed())
		piom.idle_ns = piom.engine == PIOM_ENGINE_MARCEL
				       ? OVERSUBSCRIBED_IDLE_NS
				       : 0;
	piom.reaction_ns =
		options[REACTION_US].value == BASE_OPTION_WORD
			? 0
			: (uint64_t)options[REACTION_US].value * 1000;
	piom.timer_ns = (uint64_t)options[TIMER_US].value * 1000;
	piom.stats = options[STATS].value;
	if (options[VERBOSE].value)
		base_option_print(&piom_options);
	err = piom_tree_init(options[QUEUES].value == 1);
	if (err < 0)
		return err;
	err = start_watcher();
	if (err < 0)
		goto err_tree;
	piom_stats_init();
	err = start_engine();
	if (err < 0)
		goto err_blocking;
	if (++life.starts == 0)
		life.starts = 1;
	piom.start = life.starts;
	base_dumper_add(&dumper);
	return 0;
err_blocking:
	piom_blocking_exit();
err_tree:
	piom_tree_exit();
	return err;
}

static int stop(void)
{
	if (!piom_io_stop())
		return -EBUSY;
	if (piom_tree_is_busy()) {
		piom_io_go_on();
		return -EBUSY;
	}
	piom_io_exit();
	piom_blocking_exit(); /* it kicks who polls */
	stop_engine();
	base_dumper_remove(&dumper);
	if (piom.stats)
		piom_stats_print();
	piom.start = 0;
	piom_tree_exit();
	return 0;
}

/*
 * The child of a fork() has neither the watcher nor VPs that poll, and the
 * kernel thread that held a queue is not there: it is as if pioman had not been
 * started. What it had is left to lie.
 */
static void forked(void)
{
	static const marcel_mutex_t unlocked = MARCEL_MUTEX_INITIALIZER;

	life.lock = unlocked; /* somebody may have been starting it */
	life.depth = 0;
	if (piom.start != 0)
		base_dumper_remove(&dumper);
	piom.start = 0;
	piom_io_forked();
	piom_blocking_forked();
	piom_point_pthread_forked();
	piom_point_timer_forked();
	memset(&piom_tree, 0, sizeof(piom_tree));
}

__attribute__((constructor)) static void learn(void)
{
	if (pthread_atfork(NULL, NULL, forked) != 0)
		base_fatal("pioman", "no memory at start");
}

BASE_PUBLIC int piom_init(void)
{
	int err = 0;

	base_handler_check("pioman", "piom_init()");
	marcel_mutex_lock(&life.lock);
	if (life.depth == 0)
		err = start();
	if (err == 0)
		life.depth++;
	marcel_mutex_unlock(&life.lock);
	return err;
}

BASE_PUBLIC int piom_exit(void)
{
	int err = 0;

	base_handler_check("pioman", "piom_exit()");
	marcel_mutex_lock(&life.lock);
	if (life.depth == 0)
		err = -EINVAL;
	else if (life.depth == 1)
		err = stop();
	if (err == 0)
		life.depth--;
	marcel_mutex_unlock(&life.lock);
	return err;
}
