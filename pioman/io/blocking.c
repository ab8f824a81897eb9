/*
 * The watcher and its set. Its bell, an eventfd, has it look round, or end.
 */
#include "blocking.h"

#include <marcel/errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/diag.h>
#include <base/trace.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>

#include "../ltask/tree.h"
#include "../point/pthread.h"
#include "../state.h"
#include "../wait/cost.h"
#include "export.h"
#include "patience.h"

enum {
	EVENTS = 16,
	/* Events that come less often than once in so many PIOM_IDLE_US are
	 * not worth that somebody polls for the next. */
	RARE = 8,
	RUNS_MAX = 16, /* of the queue at a time, while something comes */
	/* It looks at what it has left to VPs after 1, 2, 4, 8, 16, 16 ... ms;
	 * after so many looks VPs only seem idle, and it does it itself. */
	LOOKS_IN_VAIN = 4,
};

struct piom_watcher piom_watcher = { .fired = { 1 } };

static struct {
	/* -: const while it runs    w: the watcher's  a: atomic */
	pthread_t kernel_thread; /* -: */
	int set;                 /* -: */
	int bell;                /* -: */
	bool runs;               /* -: */
	ATOMIC(uint32_t) stop;   /* a: relaxed; after it the bell is rung */
	ATOMIC(uint64_t) last;   /* a: relaxed; when an event came, ns */
	unsigned looks;          /* w: since then, up to LOOKS_IN_VAIN */
} watcher;

/* --- arming; the queue is held --- */

static int watch(struct piom_task *t)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	int op = t->waits.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	ev.data.fd = t->waits.fd;
	return epoll_ctl(watcher.set, op, t->waits.fd, &ev) < 0 ? -errno : 0;
}

/* `fired` was read before the kernel was turned to. */
static bool enter_held(struct piom_task *t, uint64_t fired)
{
	int rc = watch(t);

	if (rc < 0) {
		base_warn("pioman",
			  "descriptor %d of an ltask cannot be waited for (%s):"
			  " it is polled",
			  t->waits.fd, strerror(-rc));
		t->waits.unarmable = true;
		return false;
	}
	t->waits.watched = true;
	t->waits.armed_at = fired;
	piom_stats_armed(&t->queue->stats, fired);
	return true;
}

bool piom_blocking_arm(struct piom_task *t, uint64_t vain_ns)
{
	uint64_t fired = load_relaxed(&piom_watcher.fired);
	bool armed;

	if (t->waits.unarmable || !piom_patience_is_over(t, vain_ns) ||
	    (t->waits.wait != NULL && !piom_export_has_room()))
		return false;
	if (t->waits.arm != NULL && t->waits.arm(t->arg) != 0)
		return false;
	armed = t->waits.wait != NULL ? piom_export(t) : enter_held(t, fired);
	if (armed) {
		piom_patience_armed(t, vain_ns);
		marcel_trace_more(MARCEL_TRACE_EXPORT, 0, (uintptr_t)t->fn,
				  t->waits.wait != NULL, (uint32_t)t->waits.fd,
				  (uintptr_t)t);
	}
	return armed;
}

void piom_blocking_begin(struct piom_task *t)
{
	t->waits.unarmable = t->waits.wait != NULL && !piom_export_may();
	t->waits.armed_at = 0;
	piom_patience_begin(t);
}

bool piom_blocking_leave(struct piom_task *t)
{
	if (t->waits.wait != NULL)
		return piom_export_leave(t);
	if (t->waits.watched)
		epoll_ctl(watcher.set, EPOLL_CTL_DEL, t->waits.fd, NULL);
	t->waits.watched = false;
	if (t->waits.armed_at != 0)
		piom_stats_unarmed(&t->queue->stats, t->waits.armed_at);
	t->waits.armed_at = 0;
	return true;
}

void piom_blocking_ring(void)
{
	if (eventfd_write(watcher.bell, 1) < 0)
		base_fatal("pioman", "the descriptor of its bell was closed");
}

/* --- kernel threads that wait --- */

/* As the kernel has it; <linux/sched/types.h> cannot be had beside <sched.h>.*/
struct sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* The shortest slice that the kernel gives, ns; before Linux 6.12 nothing. */
#define SLICE_NS 100000
enum { NICER = 10, NICEST = -20 };

/* Beside threads of the process's own policy; real-time and idle ones stay. */
void piom_blocking_be_prompt(void)
{
	struct sched_attr attr = { .size = sizeof(attr) };
	int nice;

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 ||
	    (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
		return;
	nice = attr.nice;
	attr.runtime = SLICE_NS;
	attr.nice = nice - NICER > NICEST ? nice - NICER : NICEST;
	if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
		return;
	attr.nice = nice;
	syscall(SYS_sched_setattr, 0, &attr, 0); /* or as it is */
}

/* --- the watcher --- */

/* What comes often an idle VP is to poll for. */
static uint64_t patience(uint64_t since)
{
	return piom_any_idle() && since < RARE * piom.idle_ns ? PIOM_PASSING
							      : PIOM_TICK;
}

static int run(struct piom_queue *q, uint64_t vain_ns)
{
	return piom_queue_run(q, -1, vain_ns, PIOM_POINT_WATCHER);
}

/* It may have fallen asleep because we held the queue: one that may run it. */
static void wake_vps(struct piom_queue *q)
{
	if (likely(!load_relaxed(&q->is_picky))) {
		marcel_kick(q->level);
		return;
	}
	for (int vp = 0; vp < marcel_nvp(); vp++)
		marcel_kick(marcel_topo_vp(vp));
}

/* Whether something is left: then who polls does not sleep over it. */
static bool leave_to_others(struct piom_queue *q)
{
	if (!piom_queue_is_pending(q))
		return false;
	if (piom.engine == PIOM_ENGINE_MARCEL)
		wake_vps(q);
	if (piom.engine == PIOM_ENGINE_PTHREAD)
		piom_point_pthread_kick(q->level);
	return true;
}

/* What is left is an idle VP's to do, and ours if none does: look again. */
static int leave(struct piom_queue *q)
{
	int ms = 1 << watcher.looks;

	if (watcher.looks < LOOKS_IN_VAIN)
		watcher.looks++;
	return leave_to_others(q) ? ms : -1;
}

/* Something has come: who holds the queue, or will, asks all. */
static void serve(struct piom_queue *q)
{
	uint64_t now = base_now_ns(), last = load_relaxed(&watcher.last);
	uint64_t since = now > last ? now - last : 0; /* another may be later */
	int runs = 0;

	store_relaxed(&watcher.last, now);
	piom_queue_call(q);
	while (run(q, patience(since)) > 0 && runs < RUNS_MAX)
		runs++;
}

/* How long to wait for the next, in milliseconds, or -1. */
static int fire(void)
{
	struct piom_queue *q = piom_tree_machine();

	watcher.looks = 0;
	store_relaxed(&piom_watcher.fired,
		      load_relaxed(&piom_watcher.fired) + 1);
	serve(q);
	return leave(q);
}

void piom_blocking_fire(void)
{
	struct piom_queue *q = piom_tree_machine();

	serve(q);
	if (leave_to_others(q))
		piom_blocking_ring();
}

/* Nothing has come, and when it last did something was left to VPs. */
static int look_again(void)
{
	struct piom_queue *q = piom_tree_machine();

	piom_export_provide();
	/* One may only seem idle: in a section, say. */
	if (piom_queue_is_pending(q) &&
	    (!piom_any_idle() || watcher.looks >= LOOKS_IN_VAIN)) {
		piom_queue_call(q); /* who polls may hold it most of the time */
		run(q, PIOM_TICK);
	}
	return leave(q);
}

/* Whether it is to go on. */
static bool answer(void)
{
	eventfd_t n;

	eventfd_read(watcher.bell, &n);
	if (load_relaxed(&watcher.stop) != 0)
		return false;
	watcher.looks = 0;
	return true;
}

static void *watch_on(void *arg)
{
	struct epoll_event ev[EVENTS];
	bool fired, goes_on = true;
	int n, ms = -1;

	piom_blocking_be_prompt();
	piom_cost_answer();
	while (goes_on) {
		n = epoll_wait(watcher.set, ev, EVENTS, ms);
		if (n < 0 && errno == EINTR)
			continue; /* it was stopped, and goes on */
		if (n < 0)
			base_fatal("pioman", "the descriptor of its epoll set "
					     "was closed");
		fired = false;
		for (int i = 0; i < n; i++)
			if (ev[i].data.fd != watcher.bell) {
				fired = true;
				marcel_trace(MARCEL_TRACE_INTERRUPT, 0,
					     (uint32_t)ev[i].data.fd);
			} else {
				goes_on = answer();
			}
		ms = fired ? fire() : look_again();
	}
	return arg;
}

/* --- start, stop --- */

static int open_set(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int rc;

	watcher.set = epoll_create1(EPOLL_CLOEXEC);
	if (watcher.set < 0)
		return -errno;
	watcher.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watcher.bell < 0) {
		rc = -errno;
		goto err_set;
	}
	ev.data.fd = watcher.bell;
	if (epoll_ctl(watcher.set, EPOLL_CTL_ADD, watcher.bell, &ev) == 0)
		return 0;
	rc = -errno;
	close(watcher.bell);
err_set:
	close(watcher.set);
	return rc;
}

static void close_set(void)
{
	close(watcher.bell);
	close(watcher.set);
}

int piom_blocking_init(int lwps)
{
	int rc;

	if (piom.mode == PIOM_MODE_POLL)
		return 0;
	rc = open_set();
	if (rc < 0)
		return rc;
	store_relaxed(&watcher.stop, 0);
	store_relaxed(&watcher.last, 0);
	watcher.looks = 0;
	piom_export_init(lwps);
	rc = marcel_kernel_thread(&watcher.kernel_thread, watch_on, NULL);
	if (rc < 0)
		close_set();
	watcher.runs = rc == 0;
	return rc;
}

void piom_blocking_exit(void)
{
	if (!watcher.runs)
		return;
	store_relaxed(&watcher.stop, 1);
	piom_blocking_ring();
	pthread_join(watcher.kernel_thread, NULL);
	piom_export_exit(); /* they may ring until they have ended */
	watcher.runs = false;
	close_set();
}

void piom_blocking_forked(void)
{
	if (watcher.runs)
		close_set();
	watcher.runs = false;
	piom_export_forked();
}
