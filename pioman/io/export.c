#include "export.h"

#include <marcel/errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include <base/atomic.h>
#include <base/clock.h>
#include <base/diag.h>
#include <base/trace.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>

#include "blocking.h"

enum {
	LWPS_MAX = 64,
	LINGER_S = 1, /* it ends when it has had nothing to do for so long */
};

/* After the kernel has refused one. */
#define AGAIN_NS 1000000000

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
	/* -: const while pioman runs  w: the watcher's  a: atomic */
	struct lwp all[LWPS_MAX];
	int max;                 /* -: */
	ATOMIC(uint32_t) wanted; /* a: relaxed; after it the bell is rung */
	uint64_t refused_until;  /* w: the kernel has; ns */
	bool warned;             /* w: of that */
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

/* Ask for one more, unless that is being done. */
static void ask_for_more(void)
{
	bool absent = false;
	enum lwp_state state;

	for (int i = 0; i < pool.max; i++) {
		state = state_of(load_relaxed(&pool.all[i].word));
		if (state == COMING)
			return;
		absent |= state == ABSENT;
	}
	if (absent && load_relaxed(&pool.wanted) == 0 &&
	    xchg_relaxed(&pool.wanted, 1) == 0)
		piom_blocking_ring();
}

bool piom_export_may(void)
{
	return pool.max > 0;
}

bool piom_export_has_room(void)
{
	for (int i = 0; i < pool.max; i++)
		if (state_of(load_relaxed(&pool.all[i].word)) == IDLE)
			return true;
	ask_for_more();
	return false;
}

bool piom_export(struct piom_task *t)
{
	for (int i = 0; i < pool.max; i++)
		if (give(&pool.all[i], t)) {
			piom_stats_add(&t->queue->stats.exported, 1);
			return true;
		}
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

static bool has_task(const struct lwp *l)
{
	enum lwp_state state = state_of(load_relaxed(&l->word));

	return state == WAITING || state == LEFT;
}

/* Until it is posted (true), or for a while. */
static bool linger(struct lwp *l)
{
	struct timespec until;
	int rc;

	/* TSan knows no sem_clockwait(); if that clock is set, no harm. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LINGER_S;
	do
		rc = sem_timedwait(&l->wake, &until);
	while (rc < 0 && errno == EINTR);
	return rc == 0;
}

/* Until it has a task (true), or is not wanted any more. */
static bool sleep_on(struct lwp *l)
{
	uint64_t was = load_relaxed(&l->word);

	if (!linger(l)) {
		if (state_of(was) == IDLE &&
		    cas_relaxed(&l->word, &was, in_state(was, ABSENT)))
			return false;
		while (sem_wait(&l->wake) < 0) /* it was given one just now */
			;
	}
	return has_task(l); /* else it is the end */
}

static void wait_once(struct lwp *l)
{
	uint64_t word = load_relaxed(&l->word);
	struct piom_task *t = l->task;

	t->waits.wait(t->arg);
	marcel_trace(MARCEL_TRACE_INTERRUPT, 1, (uintptr_t)t);
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
	if (l->made)
		pthread_join(l->kernel_thread, NULL);
	l->made = false;
}

static void make(struct lwp *l)
{
	uint64_t word = load_relaxed(&l->word);
	int rc;

	join(l);
	store_relaxed(&l->word, in_state(word, COMING));
	rc = marcel_kernel_thread(&l->kernel_thread, serve, l);
	l->made = rc == 0;
	if (l->made)
		return;
	store_relaxed(&l->word, in_state(word, ABSENT));
	store_relaxed(&pool.wanted, 1); /* nobody else asks until then */
	pool.refused_until = base_now_ns() + AGAIN_NS;
	if (!pool.warned)
		base_warn("pioman",
			  "no kernel thread to wait for an ltask: %s; it is "
			  "polled",
			  strerror(-rc));
	pool.warned = true;
}

void piom_export_provide(void)
{
	if (load_relaxed(&pool.wanted) == 0 ||
	    base_now_ns() < pool.refused_until)
		return;
	store_relaxed(&pool.wanted, 0);
	for (int i = 0; i < pool.max; i++)
		if (state_of(load_relaxed(&pool.all[i].word)) == ABSENT) {
			make(&pool.all[i]);
			return;
		}
}

/* --- start, stop --- */

/* No number comes twice: a task may have been exported in the last life. */
void piom_export_init(int max)
{
	pool.max = max < LWPS_MAX ? max : LWPS_MAX;
	store_relaxed(&pool.wanted, 0);
	pool.refused_until = 0;
	pool.warned = false;
	for (int i = 0; i < pool.max; i++) {
		struct lwp *l = &pool.all[i];

		store_relaxed(&l->word,
			      next_in_state(load_relaxed(&l->word), ABSENT));
		sem_init(&l->wake, 0, 0);
	}
}

void piom_export_exit(void)
{
	for (int i = 0; i < pool.max; i++)
		if (pool.all[i].made)
			sem_post(&pool.all[i].wake);
	for (int i = 0; i < pool.max; i++) {
		join(&pool.all[i]);
		sem_destroy(&pool.all[i].wake);
	}
	pool.max = 0;
}

void piom_export_forked(void)
{
	for (int i = 0; i < LWPS_MAX; i++)
		pool.all[i].made = false;
}
