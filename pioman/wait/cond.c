/*
 * Completion of an operation: one word, marcel's event. What is here is how to
 * spend the time until it is set.
 *
 *   user thread, engine marcel: others ready  -> park at once
 *                               nobody ready  -> poll in place, a bounded time,
 *                                                then park: the idle VP polls
 *   others:                                      poll a bounded time, then
 *                               engine none, and not all is armed
 *                                             -> go on polling, with yields
 *                               else          -> poll between naps
 */

#include <errno.h>
#include <sched.h>

#include <base/clock.h>
#include <base/compiler.h>
#include <base/diag.h>
#include <base/hang.h>
#include <base/pin.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>

#include "../ltask/poll.h"
#include "../ltask/tree.h"
#include "../point/marcel.h"
#include "../point/pthread.h"
#include "../state.h"
#include "wait.h"

enum {
	CLOCK_EVERY = 8,  /* polls between two looks at the clock */
	ROUND_EVERY = 32, /* the waiter's own looks, and a round for all */
	CROWDED_YIELDS = 16,
	/* Naps between polls, while VPs poll: they grow to what a VP that left
	 * without a word may cost. */
	NAP_MIN_NS = 20000,
	NAP_MAX_NS = 1280000,
	/* The same if all is armed, and the watcher brings what comes: to what
	 * an ltask that is submitted meanwhile, and cannot be armed, may cost.
	 */
	NAP_ARMED_NS = NAP_MIN_NS << 15,
	/* And if those who are to poll do not get to it: they may be waiting
	 * for this very core, or others of the job for that of our peer. */
	NAP_ALONE_NS = NAP_MIN_NS << 4,
};

#define NEVER UINT64_MAX

/* What a thread waits for: the first of n that is signalled, or a time. */
struct waiting {
	piom_cond_t *const *conds;
	size_t n;
	size_t found;   /* n: none so far */
	uint64_t until; /* ns by CLOCK_MONOTONIC, or NEVER */
	piom_look_fn
		look; /* or NULL: it knows of nothing better than a round */
	void *arg;
};

BASE_PUBLIC void piom_cond_init(piom_cond_t *c)
{
	marcel_event_init(&c->piom_event);
}

BASE_PUBLIC int piom_cond_test(const piom_cond_t *c)
{
	return marcel_event_test(&c->piom_event);
}

BASE_PUBLIC void piom_cond_signal(piom_cond_t *c)
{
	marcel_event_set(&c->piom_event);
}

BASE_PUBLIC int piom_cond_call(piom_cond_t *c, struct marcel_event_call *call)
{
	return marcel_event_call(&c->piom_event, call);
}

void piom_wait_relax(void)
{
	if (marcel_current_vp() >= 0 && marcel_others_ready())
		marcel_yield();
	else
		sched_yield();
}

static bool is_over(struct waiting *w)
{
	for (size_t i = 0; i < w->n; i++) {
		if (w->conds[i] != NULL && piom_cond_test(w->conds[i])) {
			w->found = i;
			return true;
		}
	}
	return false;
}

/* A condition is its event and nothing else; the array is only read. */
static marcel_event_t *const *events_of(const struct waiting *w)
{
	_Static_assert(sizeof(piom_cond_t) == sizeof(marcel_event_t),
		       "a condition is an event");
	return (marcel_event_t *const *)(const void *)w->conds;
}

static bool is_late(const struct waiting *w)
{
	return w->until != NEVER && base_now_ns() >= w->until;
}

/* Off the paths on which time counts: a sleep begins, or is over. */
static struct piom_stats_line *line(void)
{
	return piom_stats_line(marcel_current_vp());
}

/* Which of all; their number: none until then. */
static size_t wait_until(const struct waiting *w, uint64_t until)
{
	if (w->n != 1)
		return marcel_event_wait_any_until(events_of(w), w->n, until);
	return marcel_event_wait_until(&w->conds[0]->piom_event, until) < 0;
}

static size_t wait_for_ever(const struct waiting *w)
{
	if (w->n != 1)
		return marcel_event_wait_any(events_of(w), w->n);
	marcel_event_wait(&w->conds[0]->piom_event);
	return 0;
}

/* Sleep, but not past that; somebody else polls. True: it is over. */
static bool sleep_until(struct waiting *w, uint64_t until)
{
	size_t found = until != NEVER ? wait_until(w, until) : wait_for_ever(w);

	if (found == w->n)
		return false;
	w->found = found;
	fetch_add_relaxed(&line()->wakeups, 1);
	return true;
}

/* Sleep; somebody else polls. What ends a nap is the clock, mostly. */
static void park(struct waiting *w)
{
	int was = marcel_await_io(1);

	sleep_until(w, w->until);
	marcel_await_io(was);
}

/* So long from now, but not past the time until which is waited. */
static uint64_t deadline_of(const struct waiting *w, uint64_t ns)
{
	uint64_t deadline = base_now_ns() + ns;

	return deadline < w->until ? deadline : w->until;
}

/* As park(), for so long at most. True: it is over. */
static bool nap(struct waiting *w, uint64_t ns)
{
	fetch_add_relaxed(&line()->naps, 1);
	return sleep_until(w, deadline_of(w, ns));
}

/* The waiter's own looks between two rounds: over (true), or give way. */
static bool look_for(struct waiting *w, bool give_way)
{
	for (unsigned n = 0; w->look != NULL && n < ROUND_EVERY; n++) {
		if (give_way && marcel_others_ready())
			return false;
		w->look(w->arg);
		if (is_over(w))
			return true;
	}
	return false;
}

/* Whether anything moved. */
static bool poll_all(uint64_t vain_ns)
{
	return piom_poll_all(piom_poll_here(), vain_ns, PIOM_POINT_WAIT) > 0;
}

/*
 * Poll until it is over (true), or for `ns` nanoseconds, or until another user
 * thread is ready if that is a reason to park.
 */
static bool poll_for(struct waiting *w, uint64_t ns, bool give_way)
{
	unsigned clock_every = w->look != NULL ? 1 : CLOCK_EVERY;
	uint64_t deadline = 0;

	for (unsigned n = 0; ns > 0; n++) {
		if (look_for(w, give_way))
			return true;
		if (give_way && marcel_others_ready())
			return false;
		poll_all(0);
		if (is_over(w))
			return true;
		if (n % clock_every != 0)
			continue;
		if (n == 0)
			deadline = deadline_of(w, ns);
		else if (base_now_ns() >= deadline)
			return false;
	}
	return false;
}

/* For MARCEL_DEADLOCK, which shall not take this for work. */
static struct marcel_polling polling_of(const struct waiting *w)
{
	return (struct marcel_polling){
		.events = { (const void *const *)w->conds, w->n },
		.is_timed = w->until != NEVER,
	};
}

static void begin_round(struct marcel_polling *p)
{
	if (marcel_is_watched_for(MARCEL_WATCH_HANGS))
		marcel_polls(p);
}

/* Nobody polls for us: do it ourselves, and let others run meanwhile. */
static void poll_on(struct waiting *w)
{
	struct marcel_polling p = polling_of(w);

	while (begin_round(&p), poll_all(0), !is_over(w) && !is_late(w))
		if (marcel_is_oversubscribed() || marcel_others_ready())
			piom_wait_relax();
	marcel_polls_end(&p);
}

/*
 * Others will have to poll for us, and all that could may sleep over quiet
 * ltasks. One load if nobody sleeps: who goes to sleep later asks every ltask
 * once more before.
 */
static void park_and_tell(struct waiting *w)
{
	marcel_kick(marcel_topo_machine());
	park(w);
}

/* Rounds that were made by those who poll for all. */
static uint64_t polls_of_others(void)
{
	return piom.engine == PIOM_ENGINE_PTHREAD ? piom_point_pthread_polls()
						  : piom_point_marcel_polls();
}

/*
 * Whether others have polled since *polls was read, or no ltask wants to be
 * asked. That says nothing about what they do next: a VP whose thread then
 * blocks in the kernel or computes polls no more, and nobody would notice.
 */
static bool others_poll(uint64_t *polls)
{
	uint64_t before = *polls;

	*polls = polls_of_others();
	return piom.engine != PIOM_ENGINE_NONE &&
	       (*polls != before ||
		!piom_queue_is_pending(piom_tree_machine()));
}

/* Whether all ltasks are armed or quiet: what comes is brought to us. */
static bool is_armed(void)
{
	return piom.mode != PIOM_MODE_POLL &&
	       !piom_poll_is_pending(piom_poll_here());
}

/*
 * Who is not polled for by his own VP. Where no kernel threads poll he never
 * sleeps for good: what is submitted next may have to be polled, and nobody
 * else may do it.
 */
static void poll_between_naps(struct waiting *w, struct marcel_polling *p)
{
	uint64_t polls = polls_of_others(), ns = NAP_MIN_NS, longest;
	bool armed;

	for (;;) {
		bool moved;

		begin_round(p);
		moved = poll_all(PIOM_LAST);
		if (is_over(w) || is_late(w))
			return;
		if (moved) {
			ns = NAP_MIN_NS;
			continue; /* there may be a next step */
		}
		armed = is_armed();
		if (armed && piom.engine == PIOM_ENGINE_PTHREAD) {
			park(w); /* a submission wakes who polls */
			return;
		}
		if (armed) {
			longest = NAP_ARMED_NS;
		} else if (others_poll(&polls)) {
			longest = NAP_MAX_NS;
		} else if (piom.engine == PIOM_ENGINE_NONE) {
			ns = NAP_MIN_NS;
			piom_wait_relax();
			continue;
		} else {
			longest = NAP_ALONE_NS;
		}
		if (nap(w, ns < longest ? ns : longest))
			return;
		if (ns < longest)
			ns *= 2;
	}
}

static void wait_between_polls(struct waiting *w)
{
	struct marcel_polling p = polling_of(w);

	poll_between_naps(w, &p);
	marcel_polls_end(&p);
}

static bool polls_for_ever(void)
{
	return piom.wait == PIOM_WAIT_ACTIVE ||
	       (piom.engine == PIOM_ENGINE_NONE && piom.mode == PIOM_MODE_POLL);
}

/* The same of who need not be interrupted for others: it makes way itself. */
static bool poll_in_place(struct waiting *w)
{
	bool is_over;

	marcel_make_way(1);
	is_over = poll_for(w, piom.spin_ns, true);
	if (marcel_make_way(0) && is_over)
		marcel_yield();
	return is_over;
}

/* What is done before a sleep, by anyone. True: it is over. */
static bool poll_first(struct waiting *w)
{
	if (piom.wait == PIOM_WAIT_PASSIVE)
		return false;
	if (piom.wait == PIOM_WAIT_AUTO && marcel_current_vp() >= 0)
		return poll_in_place(w);
	return poll_for(w, piom.spin_ns, false);
}

static void wait_for(struct waiting *w)
{
	base_handler_check("pioman", "piom_cond_wait()");
	if (piom.start == 0)
		park(w);
	else if (polls_for_ever())
		poll_on(w);
	else if (poll_first(w))
		return;
	else if (piom.engine != PIOM_ENGINE_MARCEL || marcel_current_vp() < 0)
		wait_between_polls(w);
	else if (marcel_others_ready())
		park_and_tell(w);
	else
		park(w); /* our VP polls */
}

BASE_PUBLIC void piom_cond_wait(piom_cond_t *c)
{
	piom_cond_wait_on(c, NULL, NULL);
}

BASE_PUBLIC void piom_cond_wait_on(piom_cond_t *c, piom_look_fn look, void *arg)
{
	struct waiting w = {
		.conds = &c, .n = 1, .until = NEVER, .look = look, .arg = arg
	};

	if (!piom_cond_test(c))
		wait_for(&w);
}

/* Whoever we wait for may need this CPU: it has it for a few turns. */
static void yield_for(struct waiting *w)
{
	for (int i = 0; i < CROWDED_YIELDS && !marcel_others_ready(); i++) {
		w->look(w->arg);
		if (is_over(w))
			return;
		sched_yield();
	}
}

BASE_PUBLIC int piom_cond_poll_on(piom_cond_t *c, piom_look_fn look, void *arg)
{
	struct waiting w = {
		.conds = &c, .n = 1, .until = NEVER, .look = look, .arg = arg
	};

	base_handler_check("pioman", "piom_cond_poll_on()");
	look(arg);
	if (is_over(&w))
		return 0;
	if (piom.start == 0 || piom.wait == PIOM_WAIT_PASSIVE)
		return -EAGAIN;
	if (marcel_is_oversubscribed())
		yield_for(&w);
	else
		poll_first(&w);
	return piom_cond_test(c) ? 0 : -EAGAIN;
}

BASE_PUBLIC int piom_cond_wait_until(piom_cond_t *c, uint64_t ns)
{
	struct waiting w = { .conds = &c, .n = 1, .found = 1, .until = ns };

	if (piom_cond_test(c))
		return 0;
	wait_for(&w);
	return w.found == 0 ? 0 : -ETIMEDOUT;
}

BASE_PUBLIC size_t piom_cond_wait_any_until(piom_cond_t *const conds[],
					    size_t n, uint64_t ns)
{
	struct waiting w = { .conds = conds, .n = n, .found = n, .until = ns };
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= conds[i] != NULL;
	base_check(any);
	if (!is_over(&w))
		wait_for(&w);
	return w.found;
}

BASE_PUBLIC size_t piom_cond_wait_any(piom_cond_t *const conds[], size_t n)
{
	return piom_cond_wait_any_until(conds, n, NEVER);
}

BASE_PUBLIC void piom_cond_wait_all(piom_cond_t *const conds[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (conds[i] != NULL)
			piom_cond_wait(conds[i]);
}
