#include "timer.h"

#include <pthread.h>
#include <time.h>

#include <marcel/marcel.h>

#include "../io/blocking.h"
#include "../ltask/poll.h"
#include "../ltask/tree.h"

struct piom_sleeper piom_timer;

static struct {
	/* -: const while it runs  a: atomic */
	pthread_t kernel_thread; /* -: */
	uint64_t period_ns;      /* -: */
	void (*look)(void);      /* -: */
	bool runs;               /* -: */
	ATOMIC(uint32_t) stop;   /* a: order(idle) */
} timer;

/* --- what is to be done --- */

static void look_at(struct piom_queue *q, void *arg)
{
	if (piom_queue_is_pending(q))
		*(bool *)arg = true;
}

static bool is_pending(void)
{
	bool pending = false;

	piom_tree_walk(look_at, &pending);
	return pending;
}

/* As one of its VPs: any will do for what is not picky. */
void piom_point_timer_run(struct piom_queue *q, void *arg)
{
	int vp = 0;

	(void)arg;
	while (!marcel_vpset_has(&q->level->vps, vp))
		vp++;
	piom_queue_run(q, vp, PIOM_TICK, PIOM_POINT_TIMER);
}

static void run_if_stale(struct piom_queue *q, void *arg)
{
	uint64_t runs = load_relaxed(&q->stats.polls), before = q->looked;

	q->looked = runs;
	if (runs != before || !piom_queue_is_pending(q))
		return;
	piom_point_timer_run(q, arg);
	q->looked = load_relaxed(&q->stats.polls);
}

void piom_point_timer_run_stale(void)
{
	piom_tree_walk(run_if_stale, NULL);
}

/* --- the kernel thread --- */

static bool is_ending(void)
{
	return load_seq(&timer.stop) != 0; /* order(idle) */
}

static bool has_to_look(void *arg)
{
	(void)arg;
	return is_ending() || is_pending();
}

static void *tick_on(void *arg)
{
	struct timespec period = { (time_t)(timer.period_ns / 1000000000),
				   (long)(timer.period_ns % 1000000000) };

	piom_blocking_be_prompt();
	while (!is_ending()) {
		if (!is_pending()) {
			piom_sleeper_sleep(&piom_timer, has_to_look, NULL);
			continue;
		}
		nanosleep(&period, NULL);
		timer.look();
	}
	return arg;
}

/* --- start, stop --- */

int piom_point_timer_init(uint64_t period_ns, void (*look)(void))
{
	int rc;

	timer.period_ns = period_ns;
	timer.look = look;
	store_relaxed(&timer.stop, 0);
	piom_sleeper_init(&piom_timer);
	rc = marcel_kernel_thread(&timer.kernel_thread, tick_on, NULL);
	timer.runs = rc == 0;
	return rc;
}

void piom_point_timer_exit(void)
{
	if (!timer.runs)
		return;
	store_seq(&timer.stop, 1); /* order(idle) */
	piom_point_timer_kick();
	pthread_join(timer.kernel_thread, NULL);
	piom_sleeper_destroy(&piom_timer);
	timer.runs = false;
}

void piom_point_timer_forked(void)
{
	timer.runs = false;
	store_relaxed(&piom_timer.asleep, 0);
}
