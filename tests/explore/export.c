/*
 * pioman/io/export: what comes while an ltask is given to a kernel thread, or
 * while that waits, is seen by a later run, though the VP that gave it sleeps;
 * and when an ltask has ended its kernel thread touches it no more, and may
 * wait for another.
 *
 * covers: export ltask idle
 */
#include "explore.h"

#include <semaphore.h>

#include <base/atomic.h>
#include <base/diag.h>
#include <marcel/marcel.h>

/* --- semaphores, and kernel threads that are there --- */

static ATOMIC(uint32_t) token;
static ATOMIC(int) gives_up; /* the LWP may once, in some executions */

static int token_wait(void)
{
	while (xchg_acquire(&token, 0) == 0) /* as a semaphore orders */
		explore_wait_while(&token, 0);
	return 0;
}

/* Or it is not posted in time. */
static int token_wait_a_while(void)
{
	if (load_relaxed(&gives_up) != 0 && explore_choose(2) == 1) {
		store_relaxed(&gives_up, 0);
		return -1;
	}
	return token_wait();
}

static int token_post(void)
{
	explore_check(xchg_release(&token, 1) == 0);
	explore_wake(&token, 1);
	return 0;
}

#define sem_wait(s)         token_wait()
#define sem_timedwait(s, t) token_wait_a_while()
#define sem_post(s)         token_post()
#define sem_init(s, p, v)   ((void)0)
#define sem_destroy(s)      ((void)0)
#define pthread_join(t, r)  ((void)(t))

int marcel_kernel_thread(pthread_t *out, void *(*fn)(void *), void *arg)
{
	return 0;
}

void base_warn(const char *layer, const char *fmt, ...)
{
}

#include "ltask_world.h"

#include "../../pioman/io/export.c"

/* --- the rest of pioman/io --- */

struct piom_watcher piom_watcher = { .fired = { 1 } };

bool piom_blocking_arm(struct piom_task *t, uint64_t vain_ns)
{
	return piom_export_has_room() && t->waits.arm(t->arg) == 0 &&
	       piom_export(t);
}

void piom_blocking_begin(struct piom_task *t)
{
}

bool piom_blocking_leave(struct piom_task *t)
{
	return piom_export_leave(t);
}

void piom_patience_learn(struct piom_task *t, uint64_t vain_ns, uint64_t due)
{
}

void piom_blocking_ring(void)
{
}

void piom_blocking_be_prompt(void)
{
}

static bool alone; /* the LWP without the queue */

void piom_blocking_fire(void)
{
	if (alone)
		return;
	piom_queue_kick(&q);
	while (load_relaxed(&q.word) & PIOM_QUEUE_HELD)
		explore_relax();
	piom_queue_run(&q, -1, PIOM_TICK, PIOM_POINT_WATCHER);
}

/* --- what is waited for --- */

enum { COME = 1, WOKEN = 2 };

struct source {
	ATOMIC(uint32_t) word;
	ATOMIC(int) found;
};

static struct source sources[2];

static void change(struct source *s, uint32_t set)
{
	fetch_or_relaxed(&s->word, set); /* it orders nothing else */
	explore_wake(&s->word, 1);
}

static void wait_for(void *arg)
{
	struct source *s = arg;

	while (load_relaxed(&s->word) == 0)
		explore_wait_while(&s->word, 0);
}

static void wake_up(void *arg)
{
	change(arg, WOKEN);
}

static int arm_it(void *arg)
{
	struct source *s = arg;

	fetch_and_seq(&s->word, ~(uint32_t)WOKEN);
	return 0;
}

static enum piom_ltask_result look(void *arg)
{
	struct source *s = arg;

	if (!(load_seq(&s->word) & COME))
		return PIOM_LTASK_AGAIN;
	fetch_and_seq(&s->word, ~(uint32_t)COME);
	fetch_add_seq(&s->found, 1);
	return PIOM_LTASK_DONE;
}

/* --- who takes part --- */

static void lwp(void *arg)
{
	while (sleep_on(&pool.all[0]))
		wait_once(&pool.all[0]);
}

static void setup_exported(int n)
{
	piom.engine = PIOM_ENGINE_MARCEL;
	piom.mode = PIOM_MODE_AUTO;
	setup(PIOM_LTASK_REPEAT);
	piom_export_init(1);
	store_relaxed(&pool.all[0].word, IDLE);
	explore_name(&pool.all[0], sizeof(pool.all[0]), "lwp");
	explore_name(sources, sizeof(sources), "source");
	explore_name(&token, sizeof(token), "token");
	for (int i = 0; i < n; i++) {
		struct piom_blocking how = { .fd = -1,
					     .wait = wait_for,
					     .wake = wake_up,
					     .arm = arm_it };

		piom_ltask_init(&tasks[i], look, &sources[i], PIOM_LTASK_REPEAT,
				NULL);
		explore_check(piom_ltask_set_blocking(&tasks[i], &how) == 0);
		piom_ltask_submit(&tasks[i]);
	}
	explore_may_sleep(explore_spawn("lwp", lwp, NULL));
}

static void sender(void *arg)
{
	change(arg, COME);
}

/* Or else a VP that is awake asks again. */
static void is_found(void)
{
	explore_check(
		load_seq(&sources[0].found) == 1 ||
		(piom_queue_is_pending(&q) && load_relaxed(&asleep) == 0));
}

/* order(ltask), order(idle) */
EXPLORE(what_comes_while_it_is_exported_is_found)
{
	setup_exported(1);
	explore_may_sleep(explore_spawn("vp", dozing_vp, NULL));
	explore_spawn("sender", sender, &sources[0]);
	explore_finish(is_found);
}

/* The LWP ends when it has had nothing to do, unless it has just then. */
EXPLORE(what_comes_is_found_though_its_thread_may_end)
{
	setup_exported(1);
	store_relaxed(&gives_up, 1);
	explore_may_sleep(explore_spawn("vp", dozing_vp, NULL));
	explore_spawn("sender", sender, &sources[0]);
	explore_finish(is_found);
}

/* --- the end --- */

static void canceller(void *arg)
{
	int err = piom_ltask_cancel(&tasks[0]);

	explore_check(err == (load_seq(&sources[0].found) ? -EALREADY : 0));
	explore_gone(&tasks[0], sizeof(tasks[0]));
	explore_gone(&sources[0], sizeof(sources[0]));
}

static void canceller_and_sender(void *arg)
{
	change(&sources[0], COME);
	canceller(NULL);
}

/* order(export) */
EXPLORE(after_a_cancel_its_thread_does_not_touch_it)
{
	setup_exported(1);
	piom_queue_run(&q, 0, PIOM_LAST, PIOM_POINT_IDLE);
	explore_spawn("canceller", canceller, NULL);
}

EXPLORE(after_a_cancel_of_what_has_come_neither)
{
	setup_exported(1);
	piom_queue_run(&q, 0, PIOM_LAST, PIOM_POINT_IDLE);
	explore_spawn("canceller", canceller_and_sender, NULL);
}

/* --- the next --- */

static int ended; /* by the holder, before he leaves it */

static void ends_it(void *arg)
{
	struct piom_task *t = task_of(&tasks[0]);

	ended = 1;
	if (piom_export_leave(t))
		piom_cond_signal(&t->done);
}

static void owns_it(void *arg)
{
	struct piom_task *t = task_of(&tasks[0]);

	piom_cond_wait(&t->done);
	explore_check(ended == 1);
	explore_gone(t, sizeof(*t));
}

static void gives_another(void *arg)
{
	while (!give(&pool.all[0], task_of(&tasks[1])))
		explore_relax();
}

static void setup_alone(void)
{
	alone = true;
	setup_exported(2);
	explore_check(give(&pool.all[0], task_of(&tasks[0])));
}

/* order(export): what its holder did, by way of the LWP */
EXPLORE(its_owner_sees_what_its_holder_did)
{
	setup_alone();
	explore_spawn("holder", ends_it, NULL);
	explore_spawn("owner", owns_it, NULL);
}

/* order(export): the LWP gets another task when it is through with the first */
EXPLORE(it_waits_for_another_when_it_is_back)
{
	setup_alone();
	explore_spawn("sender", sender, &sources[0]);
	explore_spawn("holder", gives_another, NULL);
}

EXPLORE(it_waits_for_another_when_the_first_has_ended)
{
	setup_alone();
	explore_spawn("holder", ends_it, NULL);
	explore_spawn("another", gives_another, NULL);
}
