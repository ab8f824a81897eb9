/*
 * pioman/point/pthread: a kernel thread that polls does not sleep over what is
 * submitted or kicked, nor over the end; and it takes each wake.
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

bool piom_poll_is_pending(int vp)
{
	return piom_queue_is_pending(&q);
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
	explore_name(&points.all[0].asleep, sizeof(uint32_t), "timer asleep");
	explore_name(&points.all[1].asleep, sizeof(uint32_t), "asleep");
	marcel_vpset_add(&level.vps, 0);
	points.n = 2;
	points.all[0].vp = -1;
	points.all[1].vp = 0;
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
	explore_spawn("poller", poller, &points.all[1]);
}

/* order(idle) */
EXPLORE(the_timer_does_not_sleep_over_a_submission)
{
	setup_poller(PIOM_LTASK_ONESHOT);
	explore_spawn("submitter", submitter, NULL);
	explore_spawn("timer", poller, &points.all[0]);
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
	explore_spawn("poller", poller, &points.all[1]);
}
