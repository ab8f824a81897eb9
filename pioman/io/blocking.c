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
};

struct piom_watcher piom_watcher = { .fired = { 1 } };

static struct {
	/* -: const while it runs    w: the watcher's */
	pthread_t kernel_thread; /* -: */
	int set;                 /* -: */
	int bell;                /* -: */
	bool runs;               /* -: */
	uint64_t last;           /* w: when an event came, ns */
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

	if (!is_time(t, vain_ns))
		return false;
	if (t->arm != NULL && t->arm(t->arg) != 0)
		return false;
	rc = watch(t);
	if (rc < 0) {
		base_warn("pioman",
			  "descriptor %d of an ltask cannot be waited for (%s):"
			  " it is polled",
			  t->fd, strerror(-rc));
		t->options &= (uint8_t)~PIOM_TASK_BLOCKING;
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

/* How long it is as if it had polled in vain: see the head of blocking.h. */
static uint64_t patience(void)
{
	uint64_t now = base_now_ns(), since = now - watcher.last;

	watcher.last = now;
	if (piom.engine != PIOM_ENGINE_MARCEL || !marcel_any_idle() ||
	    since > RARE * piom.idle_ns)
		return PIOM_LAST;
	return 0;
}

/*
 * Something has come. If somebody holds the queue he may have asked the ltask
 * before it did; whoever holds it after the kick has not. If no VP goes on we
 * do, until there is nothing and all is armed again.
 */
static void fire(void)
{
	struct piom_queue *q = piom_tree_machine();
	uint64_t vain_ns = patience();

	store_relaxed(&piom_watcher.fired,
		      load_relaxed(&piom_watcher.fired) + 1);
	piom_queue_kick(q);
	while (load_relaxed(&q->word) & PIOM_QUEUE_HELD)
		piom_wait_relax();
	while (piom_queue_run(q, -1, vain_ns) > 0 && vain_ns == PIOM_LAST)
		;
	if (piom.engine == PIOM_ENGINE_MARCEL && piom_queue_is_pending(q))
		marcel_kick(q->level);
}

static void *watch_on(void *arg)
{
	struct epoll_event ev[EVENTS];
	int n;

	for (;;) {
		n = epoll_wait(watcher.set, ev, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			base_fatal("pioman", "the descriptor of its epoll set "
					     "was closed");
		for (int i = 0; i < n; i++)
			if (ev[i].data.fd == watcher.bell)
				return arg;
		if (n > 0)
			fire();
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
	/* Nothing that was armed in an earlier set is in this one. */
	store_relaxed(&piom_watcher.fired,
		      load_relaxed(&piom_watcher.fired) + 1);
	watcher.last = 0;
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
