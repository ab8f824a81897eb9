/*
 * For programs that bring their own threads: kernel threads that poll (Denis,
 * PDP 2015, section III). VPs do not poll then.
 *
 * Pollers: one for each package, bound to it, under SCHED_IDLE: so they run
 * where a core is idle. One that has polled in vain for PIOM_IDLE_US has ltasks
 * armed; as long as some cannot be, it sleeps for PIOM_IDLE_US between polls.
 *
 * The timer (timer.h) looks every PIOM_TIMER_US whether each poller has made a
 * round; if one has not, the cores of its package compute, and the timer runs
 * every queue and has ltasks armed. A poller that holds a queue meanwhile, and
 * gets no core, would stop everybody: the timer raises its priority, until its
 * round is over. Where that is not allowed (the kernel lets nobody without
 * privileges raise what is lowered) pollers have the ordinary one.
 *
 * All of them sleep while nothing is pending: sleeper.h.
 */
#include "pthread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/clock.h>
#include <base/diag.h>

#include <marcel/marcel.h>

#include "../ltask/poll.h"
#include "../ltask/tree.h"
#include "../state.h"
#include "sleeper.h"
#include "timer.h"

enum { POLLERS_MAX = 64, CPUS_MAX = 1024 };

/* One of these kernel threads. */
struct poller {
	/* -: const while it runs  p: the thread's  a: atomic */
	pthread_t kernel_thread;     /* -: */
	struct marcel_level *level;  /* -: whose CPUs it polls on */
	int vp;                      /* -: one of them */
	struct piom_sleeper sleeper; /* a: order(idle) */
	ATOMIC(uint64_t) rounds;     /* p: so far */
	ATOMIC(int) tid;             /* p: 0: not begun */
	uint64_t looked;         /* the timer's: of rounds, when it looked */
	ATOMIC(uint32_t) raised; /* a: the timer sets it, the thread clears */
} BASE_ALIGNED(BASE_CACHE_PAIR);

static struct {
	/* -: const while they run  a: atomic */
	struct poller all[POLLERS_MAX]; /* a package each */
	int n;                          /* -: of them */
	bool lowers;                    /* -: pollers are SCHED_IDLE */
	ATOMIC(uint32_t) stop;          /* a: order(idle) */
	int16_t vp_on[CPUS_MAX];        /* -: by CPU: a VP of its, or -1 */
} points;

int piom_point_pthread_here(void)
{
	int cpu = sched_getcpu(); /* the kernel keeps it in our TLS: rseq */

	return cpu >= 0 && cpu < CPUS_MAX ? points.vp_on[cpu] : -1;
}

uint64_t piom_point_pthread_polls(void)
{
	uint64_t rounds = 0;

	for (int i = 0; i < points.n; i++)
		rounds += load_relaxed(&points.all[i].rounds);
	return rounds;
}

/* --- sleep and wake --- */

static bool is_stopped(void)
{
	return load_seq(&points.stop) != 0; /* order(idle) */
}

static bool stays_up(void *arg)
{
	const struct poller *p = arg;

	return piom_poll_keeps_awake(p->vp) || is_stopped();
}

static void sleep_on(struct poller *p)
{
	piom_sleeper_sleep(&p->sleeper, stays_up, p);
}

void piom_point_pthread_kick(const struct marcel_level *level)
{
	for (int i = 0; i < points.n; i++)
		if (marcel_vpset_has(&level->vps, points.all[i].vp) &&
		    piom_sleeper_wake(&points.all[i].sleeper))
			return;
}

static void nap(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000),
			      (long)(ns % 1000000000) };

	if (ns == 0)
		sched_yield();
	else
		nanosleep(&t, NULL);
}

/* --- pollers --- */

static bool set_policy(pid_t tid, int policy)
{
	struct sched_param none = { 0 };

	return sched_setscheduler(tid, policy, &none) == 0;
}

/* A kernel thread that is not wanted any more: whether it gets back. */
static void *try_policies(void *arg)
{
	*(bool *)arg = set_policy(0, SCHED_IDLE) && set_policy(0, SCHED_OTHER);
	return NULL;
}

static int look_whether_it_lowers(void)
{
	pthread_t t;
	int rc = marcel_kernel_thread(&t, try_policies, &points.lowers);

	if (rc == 0)
		pthread_join(t, NULL);
	return rc;
}

/* Where nothing else wants to run, and on these CPUs. */
static void take_place(struct poller *p)
{
	cpu_set_t cpus;

	store_relaxed(&p->tid, gettid());
	if (points.lowers)
		set_policy(0, SCHED_IDLE);
	CPU_ZERO(&cpus);
	for (int cpu = 0; cpu < CPUS_MAX; cpu++)
		if (points.vp_on[cpu] >= 0 &&
		    marcel_vpset_has(&p->level->vps, points.vp_on[cpu]))
			CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus); /* or where it may */
}

/* The round is over, for which it was raised. */
static BASE_COLD void be_lowered(struct poller *p)
{
	store_relaxed(&p->raised, 0);
	set_policy(0, SCHED_IDLE);
}

static void count_round(struct poller *p)
{
	store_relaxed(&p->rounds, load_relaxed(&p->rounds) + 1);
	if (unlikely(load_relaxed(&p->raised) != 0))
		be_lowered(p);
}

static void *poll_on(void *arg)
{
	struct poller *p = arg;
	uint64_t since = 0, vain = 1; /* it is not PIOM_PASSING */
	bool pending;
	int worked;

	take_place(p);
	while (!is_stopped()) {
		worked = piom_poll_round(p->vp, vain, PIOM_POINT_POLLER,
					 &pending);
		count_round(p);
		if (worked > 0 || !pending) {
			since = 0;
			vain = 1;
			if (worked == 0)
				sleep_on(p);
			continue;
		}
		if (since == 0)
			since = base_now_ns();
		if (vain >= piom.idle_ns)
			nap(piom.idle_ns);
		vain = base_now_ns() - since + 1;
	}
	return NULL;
}

/* --- the timer --- */

/* It may hold a queue that others want. */
static bool may_hold(const struct poller *p)
{
	for (struct piom_queue *q = piom_tree_leaf(p->vp); q != NULL;
	     q = q->parent)
		if (load_relaxed(&q->word) & PIOM_QUEUE_HELD)
			return true;
	return false;
}

/* In this order: whatever comes between, it is lowered after a round. */
static void raise_it(struct poller *p)
{
	int tid = load_relaxed(&p->tid);

	if (!points.lowers || tid == 0)
		return;
	set_policy(tid, SCHED_OTHER);
	store_relaxed(&p->raised, 1);
}

/*
 * Whether it is to poll and has not since the last time. It may be asleep: a
 * thread that waited has polled, left ltasks that want more, and wakes nobody.
 */
static bool is_stuck(struct poller *p)
{
	uint64_t rounds = load_relaxed(&p->rounds), before = p->looked;

	p->looked = rounds;
	if (rounds != before)
		return false;
	if (load_relaxed(&p->sleeper.asleep) == 0)
		return true;
	if (!piom_poll_is_pending(p->vp))
		return false;
	piom_sleeper_wake(&p->sleeper);
	return true;
}

static void help(void)
{
	bool stuck = false;

	for (int i = 0; i < points.n; i++) {
		struct poller *p = &points.all[i];

		if (!is_stuck(p))
			continue;
		stuck = true;
		if (may_hold(p))
			raise_it(p);
	}
	if (stuck)
		piom_tree_walk(piom_point_timer_run, NULL);
}

/* --- start, stop --- */

static int add(struct marcel_level *level, int vp)
{
	struct poller *p = &points.all[points.n];
	int rc;

	p->level = level;
	p->vp = vp;
	store_relaxed(&p->rounds, 0);
	store_relaxed(&p->tid, 0);
	store_relaxed(&p->raised, 0);
	p->looked = 0;
	piom_sleeper_init(&p->sleeper);
	rc = marcel_kernel_thread(&p->kernel_thread, poll_on, p);
	points.n += rc == 0;
	return rc;
}

/* The levels whose queues VPs come to first are packages, or the machine. */
static int add_pollers(void)
{
	struct piom_queue *q, *last = NULL;
	int rc = 0;

	for (int vp = 0; vp < marcel_nvp() && rc == 0; vp++) {
		q = piom_tree_leaf(vp);
		if (q != last && points.n < POLLERS_MAX)
			rc = add(q->level, vp);
		last = q;
	}
	return rc;
}

static uint64_t timer_period(void)
{
	uint64_t bound = piom.reaction_ns;

	return bound != 0 && bound / 2 < piom.timer_ns ? bound / 2
						       : piom.timer_ns;
}

int piom_point_pthread_init(void)
{
	int rc, cpu;

	for (cpu = 0; cpu < CPUS_MAX; cpu++)
		points.vp_on[cpu] = -1;
	for (int vp = marcel_nvp() - 1; vp >= 0; vp--) {
		cpu = marcel_vp_cpu(vp);
		if (cpu >= 0 && cpu < CPUS_MAX)
			points.vp_on[cpu] = (int16_t)vp;
	}
	store_relaxed(&points.stop, 0);
	points.n = 0;
	rc = look_whether_it_lowers();
	if (rc == 0)
		rc = add_pollers();
	if (rc == 0)
		rc = piom_point_timer_init(timer_period(), help);
	if (rc < 0)
		piom_point_pthread_exit();
	return rc;
}

void piom_point_pthread_exit(void)
{
	piom_point_timer_exit();    /* it looks at the pollers */
	store_seq(&points.stop, 1); /* order(idle) */
	for (int i = 0; i < points.n; i++) {
		piom_sleeper_wake(&points.all[i].sleeper);
		pthread_join(points.all[i].kernel_thread, NULL);
		piom_sleeper_destroy(&points.all[i].sleeper);
	}
	points.n = 0;
}

void piom_point_pthread_forked(void)
{
	points.n = 0;
}
