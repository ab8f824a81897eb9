/*
 * pioman/point: a kernel thread that polls, or the timer, does not sleep over
 * what is submitted or kicked, nor over the end; and it takes each wake.
 *
 * covers: idle
 */
#include "explore.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/marcel.h>

/* --- libc's semaphore: a token --- */

static ATOMIC(uint32_t) token;

static int token_wait(void)
{
	while (xchg_acquire(&token, 0) == 0)
		explore_wait_while(&token, 0);
	return 0;
}

static void token_post(void)
{
	explore_check(xchg_release(&token, 1) == 0);
	explore_wake(&token, 1);
}

#define sem_wait(s)        token_wait()
#define sem_post(s)        token_post()
#define sem_init(s, p, v)  ((void)0)
#define sem_destroy(s)     ((void)0)
#define pthread_join(t, r) ((void)(t))

int marcel_kernel_thread(pthread_t *out, void *(*fn)(void *), void *arg)
{
	*out = pthread_self();
	return 0;
}

int marcel_vp_cpu(int vp)
{
	return vp;
}

struct marcel_level *marcel_topo_machine(void)
{
	return NULL;
}

#define EXPLORE_PTHREAD
#include "ltask_world.h"
#include "no_blocking.h"

#include "../../pioman/ltask/poll.h"
#include "../../pioman/point/pthread.c"
#include "../../pioman/point/timer.c"

void piom_blocking_be_prompt(void)
{
}

bool piom_poll_is_pending(int vp)
{
	return piom_queue_is_pending(&q);
}

bool piom_poll_keeps_awake(int vp)
{
	return piom_queue_keeps_awake(&q);
}

int piom_poll_round(int vp, uint64_t vain_ns, enum piom_point point,
		    bool *pending)
{
	*pending = false;
	return 0;
}

void piom_tree_walk(void (*fn)(struct piom_queue *q, void *arg), void *arg)
{
	fn(&q, arg);
}

/* --- the scenarios --- */

static void setup_poller(unsigned options)
{
	piom.engine = PIOM_ENGINE_PTHREAD;
	setup(options);
	explore_name(&token, sizeof(token), "token");
	explore_name(&piom_timer.asleep, sizeof(uint32_t), "timer asleep");
	explore_name(&points.all[0].sleeper.asleep, sizeof(uint32_t), "asleep");
	marcel_vpset_add(&level.vps, 0);
	points.n = 1;
	points.all[0].vp = 0;
}

/* Until it has run the ltask, or the end. */
static void poller(void *arg)
{
	struct poller *p = arg;

	while (!is_stopped()) {
		piom_queue_run(&q, 0, 0, PIOM_POINT_IDLE);
		if (runs[0] > 0)
			return;
		sleep_on(p);
	}
}

static void submitter(void *arg)
{
	piom_ltask_submit(&tasks[0]);
}

/* order(idle) */
EXPLORE(a_poller_does_not_sleep_over_a_submission)
{
	setup_poller(PIOM_LTASK_ONESHOT);
	explore_spawn("submitter", submitter, NULL);
	explore_spawn("poller", poller, &points.all[0]);
}

static void stopper(void *arg)
{
	piom_point_pthread_exit();
}

/* order(idle) */
EXPLORE(a_poller_does_not_sleep_over_the_end)
{
	setup_poller(PIOM_LTASK_ONESHOT);
	explore_spawn("stopper", stopper, NULL);
	explore_spawn("poller", poller, &points.all[0]);
}

/* --- the timer --- */

/* It stays up when it has seen that something is pending. */
static void tick(void *arg)
{
	while (!is_ending() && !is_pending())
		piom_sleeper_sleep(&piom_timer, has_to_look, NULL);
}

static void setup_timer(void)
{
	setup_poller(PIOM_LTASK_REPEAT);
	points.n = 0;
	explore_spawn("timer", tick, NULL);
}

/* order(idle) */
EXPLORE(the_timer_does_not_sleep_over_a_submission)
{
	setup_timer();
	explore_spawn("submitter", submitter, NULL);
}

static bool wants;

static enum piom_ltask_result at_last(void *arg)
{
	return wants ? PIOM_LTASK_AGAIN : PIOM_LTASK_QUIET;
}

static void vp(void *arg)
{
	wants = true;
	piom_queue_run(&q, 0, PIOM_PASSING, PIOM_POINT_IDLE);
}

/* order(idle): a pass leaves one that was quiet */
EXPLORE(the_timer_does_not_sleep_over_what_a_pass_leaves)
{
	setup_timer();
	piom_ltask_init(&tasks[0], at_last, NULL, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&tasks[0]);
	piom_queue_run(&q, 0, PIOM_PASSING, PIOM_POINT_IDLE);
	explore_check(!piom_queue_is_pending(&q));
	explore_spawn("vp", vp, NULL);
}

static void ender(void *arg)
{
	timer.runs = true;
	piom_point_timer_exit();
}

/* order(idle) */
EXPLORE(the_timer_does_not_sleep_over_its_end)
{
	setup_timer();
	explore_spawn("ender", ender, NULL);
}
