#include "export.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include <base/atomic.h>
#include <base/diag.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>

#include "blocking.h"

enum {
	LWPS_MAX = 64,
	LINGER_S = 1, /* it ends when it has had nothing to do for so long */
};

enum lwp_state { ABSENT, COMING, IDLE, WAITING, LEFT, STATES };

struct lwp {
	/* s: ordered by `wake`  w: the watcher's  a: atomic */
	ATOMIC(uint64_t) word;   /* a: order(export) */
	struct piom_task *task;  /* s: who made it WAITING, then its own */
	sem_t wake;              /* a: posted by who made it WAITING */
	pthread_t kernel_thread; /* w: */
	bool made;               /* w: to be joined */
} BASE_ALIGNED(BASE_CACHE_PAIR);

static struct {
	/* -: const while pioman runs  a: atomic */
	struct lwp all[LWPS_MAX];
	int max;                 /* -: */
	ATOMIC(uint32_t) wanted; /* a: relaxed; after it the bell is rung */
	ATOMIC(uint32_t) stop;   /* a: relaxed; after it all are posted */
} pool;

static enum lwp_state state_of(uint64_t word)
{
	return (enum lwp_state)(word % STATES);
}

/* The word in the same life, and in the next. */
static uint64_t in_state(uint64_t word, enum lwp_state state)
{
	return word - word % STATES + state;
}

static uint64_t next_in_state(uint64_t word, enum lwp_state state)
{
	return in_state(word, state) + STATES;
}

/* --- who holds a queue --- */

static bool give(struct lwp *l, struct piom_task *t)
{
	uint64_t was = load_relaxed(&l->word);

	/* order(export): the LWP is through with its last task */
	if (state_of(was) != IDLE ||
	    !cas_acquire(&l->word, &was, in_state(was, WAITING)))
		return false;
	l->task = t;
	t->waits.lwp = (int8_t)(l - pool.all);
	t->waits.armed_at = in_state(was, WAITING);
	sem_post(&l->wake);
	return true;
}

bool piom_export(struct piom_task *t)
{
	bool absent = false, coming = false;
	enum lwp_state state;

	for (int i = 0; i < pool.max; i++) {
		if (give(&pool.all[i], t)) {
			piom_stats_add(&t->queue->stats.exported, 1);
			return true;
		}
		state = state_of(load_relaxed(&pool.all[i].word));
		absent |= state == ABSENT;
		coming |= state == COMING;
	}
	if (absent && !coming && load_relaxed(&pool.wanted) == 0 &&
	    xchg_relaxed(&pool.wanted, 1) == 0)
		piom_blocking_ring();
	return false;
}

bool piom_export_is_out(const struct piom_task *t)
{
	return t->waits.armed_at != 0 &&
	       load_relaxed(&pool.all[t->waits.lwp].word) == t->waits.armed_at;
}

bool piom_export_leave(struct piom_task *t)
{
	struct lwp *l = &pool.all[t->waits.lwp];
	uint64_t word = t->waits.armed_at;

	/* order(export): the LWP is back, and touches the task no more */
	if (word == 0 || load_acquire(&l->word) != word)
		return true;
	t->waits.wake(t->arg);
	/* order(export): what we did to the task; or that the LWP is back */
	return !cas_acq_rel(&l->word, &word, in_state(word, LEFT));
}

/* --- an LWP --- */

/* The task is no more ours, nor its end; others may have it ended at once. */
static void hand_back(struct lwp *l, struct piom_task *t, uint64_t word)
{
	uint64_t waiting = in_state(word, WAITING);
	uint64_t next = next_in_state(word, IDLE);

	/* order(export): we touch the task no more; what its holder did */
	if (cas_acq_rel(&l->word, &waiting, next))
		return;
	piom_cond_signal(&t->done);
	store_release(&l->word, next); /* order(export) */
}

/* Until it has a task (true), or is not wanted any more. */
static bool sleep_on(struct lwp *l)
{
	uint64_t was = load_relaxed(&l->word);
	struct timespec until;
	int rc;

	/* TSan knows no sem_clockwait(); if that clock is set, no harm. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LINGER_S;
	do
		rc = sem_timedwait(&l->wake, &until);
	while (rc < 0 && errno == EINTR);
	if (load_relaxed(&pool.stop) != 0)
		return false;
	if (rc == 0)
		return true;
	if (state_of(was) == IDLE &&
	    cas_relaxed(&l->word, &was, in_state(was, ABSENT)))
		return false;
	while (sem_wait(&l->wake) < 0) /* it was given one just now */
		;
	return load_relaxed(&pool.stop) == 0;
}

static void wait_once(struct lwp *l)
{
	uint64_t word = load_relaxed(&l->word);
	struct piom_task *t = l->task;

	t->waits.wait(t->arg);
	hand_back(l, t, word);
	piom_blocking_fire();
}

static void *serve(void *arg)
{
	struct lwp *l = arg;

	piom_blocking_be_prompt();
	store_relaxed(&l->word, in_state(load_relaxed(&l->word), IDLE));
	piom_blocking_ring(); /* who has asked for it tries again */
	while (sleep_on(l))
		wait_once(l);
	return NULL;
}

/* --- the watcher --- */

static void join(struct lwp *l)
{
	if (!l->made)
		return;
	pthread_join(l->kernel_thread, NULL);
	sem_destroy(&l->wake);
	l->made = false;
}

/* If the kernel refuses, nobody asks again: tasks are polled. */
static void make(struct lwp *l)
{
	uint64_t word = load_relaxed(&l->word);
	int rc;

	join(l);
	sem_init(&l->wake, 0, 0);
	store_relaxed(&pool.wanted, 0);
	store_relaxed(&l->word, in_state(word, COMING));
	rc = marcel_kernel_thread(&l->kernel_thread, serve, l);
	l->made = rc == 0;
	if (l->made)
		return;
	store_relaxed(&l->word, in_state(word, ABSENT));
	store_relaxed(&pool.wanted, 1);
	sem_destroy(&l->wake);
	base_warn("pioman",
		  "no kernel thread to wait for an ltask: %s; it is polled",
		  strerror(-rc));
}

void piom_export_provide(void)
{
	if (load_relaxed(&pool.wanted) == 0)
		return;
	for (int i = 0; i < pool.max; i++)
		if (state_of(load_relaxed(&pool.all[i].word)) == ABSENT) {
			make(&pool.all[i]);
			return;
		}
}

/* --- start, stop --- */

void piom_export_init(int max)
{
	pool.max = max < LWPS_MAX ? max : LWPS_MAX;
	store_relaxed(&pool.stop, 0);
	store_relaxed(&pool.wanted, 0);
	for (int i = 0; i < pool.max; i++)
		store_relaxed(&pool.all[i].word, ABSENT);
}

void piom_export_exit(void)
{
	store_relaxed(&pool.stop, 1);
	for (int i = 0; i < pool.max; i++)
		if (pool.all[i].made)
			sem_post(&pool.all[i].wake);
	for (int i = 0; i < pool.max; i++)
		join(&pool.all[i]);
}

void piom_export_forked(void)
{
	for (int i = 0; i < LWPS_MAX; i++)
		pool.all[i].made = false;
}
