/*
 * The watcher and its set. Its bell, an eventfd, ends it.
 */
#include "blocking.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/diag.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>

#include "../ltask/tree.h"
#include "../state.h"
#include "../wait/wait.h"

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
	/* -: const while it runs    w: the watcher's */
	pthread_t kernel_thread; /* -: */
	int set;                 /* -: */
	int bell;                /* -: */
	bool runs;               /* -: */
	uint64_t last;           /* w: when an event came, ns */
	unsigned looks;          /* w: since then, up to LOOKS_IN_VAIN */
} watcher;

/* --- arming; the queue is held --- */

static int watch(struct piom_task *t)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	int op = t->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	ev.data.fd = t->fd;
	return epoll_ctl(watcher.set, op, t->fd, &ev) < 0 ? -errno : 0;
}

static bool is_time(const struct piom_task *t, uint64_t vain_ns)
{
	uint64_t delay =
		t->delay_ns != PIOM_BLOCKING_AUTO ? t->delay_ns : piom.idle_ns;

	return piom.mode == PIOM_MODE_INTERRUPT ||
	       (piom.mode == PIOM_MODE_AUTO && vain_ns >= delay);
}

bool piom_blocking_arm(struct piom_task *t, uint64_t vain_ns)
{
	uint64_t fired = load_relaxed(&piom_watcher.fired);
	int rc;

	if (t->unarmable || !is_time(t, vain_ns))
		return false;
	if (t->arm != NULL && t->arm(t->arg) != 0)
		return false;
	rc = watch(t);
	if (rc < 0) {
		base_warn("pioman",
			  "descriptor %d of an ltask cannot be waited for (%s):"
			  " it is polled",
			  t->fd, strerror(-rc));
		t->unarmable = true;
		return false;
	}
	t->watched = true;
	t->armed_at = fired;
	return true;
}

void piom_blocking_forget(struct piom_task *t)
{
	epoll_ctl(watcher.set, EPOLL_CTL_DEL, t->fd, NULL);
	t->watched = false;
	t->armed_at = 0;
}

/* --- the watcher --- */

/* VPs poll where one is idle; not if it only seems so: in a section, say. */
static bool others_go_on(void)
{
	return piom.engine == PIOM_ENGINE_MARCEL && marcel_any_idle() &&
	       watcher.looks < LOOKS_IN_VAIN;
}

/* So long is as if it had been polled in vain. */
static uint64_t patience(uint64_t since)
{
	return others_go_on() && since < RARE * piom.idle_ns ? 0 : PIOM_LAST;
}

/* If somebody holds the queue he may have asked before what is meant came. */
static int run_after_him(struct piom_queue *q, uint64_t vain_ns)
{
	while (load_relaxed(&q->word) & PIOM_QUEUE_HELD)
		piom_wait_relax();
	return piom_queue_run(q, -1, vain_ns);
}

/* What is left is an idle VP's to do, and ours if none does: look again. */
static int leave(struct piom_queue *q)
{
	int ms = 1 << watcher.looks;

	if (watcher.looks < LOOKS_IN_VAIN)
		watcher.looks++;
	if (!piom_queue_is_pending(q))
		return -1;
	if (piom.engine == PIOM_ENGINE_MARCEL)
		marcel_kick(q->level);
	return ms;
}

/*
 * Something has come: whoever holds the queue after the kick asks all. How long
 * to wait for the next, in milliseconds, or -1.
 */
static int fire(void)
{
	struct piom_queue *q = piom_tree_machine();
	uint64_t now = base_now_ns(), since = now - watcher.last;
	int runs = 0;

	watcher.last = now;
	watcher.looks = 0;
	store_relaxed(&piom_watcher.fired,
		      load_relaxed(&piom_watcher.fired) + 1);
	piom_queue_kick(q);
	while (run_after_him(q, patience(since)) > 0 && runs < RUNS_MAX)
		runs++;
	return leave(q);
}

/* Nothing has come, and when it last did something was left to VPs. */
static int look_again(void)
{
	struct piom_queue *q = piom_tree_machine();

	if (piom_queue_is_pending(q) && !others_go_on())
		run_after_him(q, PIOM_LAST);
	return leave(q);
}

static void *watch_on(void *arg)
{
	struct epoll_event ev[EVENTS];
	int n, ms = -1;

	for (;;) {
		n = epoll_wait(watcher.set, ev, EVENTS, ms);
		if (n < 0 && errno != EINTR)
			base_fatal("pioman", "the descriptor of its epoll set "
					     "was closed");
		for (int i = 0; i < n; i++)
			if (ev[i].data.fd == watcher.bell)
				return arg;
		ms = n > 0 ? fire() : look_again();
	}
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

int piom_blocking_init(void)
{
	int rc;

	if (piom.mode == PIOM_MODE_POLL)
		return 0;
	rc = open_set();
	if (rc < 0)
		return rc;
	watcher.last = 0;
	watcher.looks = 0;
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
	if (eventfd_write(watcher.bell, 1) < 0)
		base_fatal("pioman", "the descriptor of its bell was closed");
	pthread_join(watcher.kernel_thread, NULL);
	watcher.runs = false;
	close_set();
}

void piom_blocking_forked(void)
{
	if (watcher.runs)
		close_set();
	watcher.runs = false;
}
