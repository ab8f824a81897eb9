/*
 * The poller: an epoll set in which each entry belongs to one parked thread.
 *
 * A thread that waits enters a duplicate of its descriptor: the set would
 * forget one that another thread closes, and has one entry for each only.
 * An entry fires once, so that each park has one wake.
 *
 * Its requests are rare and it is a kernel thread among others: so they go by
 * libc's mutex and condition.
 */
#include "poller.h"

#include <marcel/errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/diag.h>
#include <marcel/blocking.h>
#include <marcel/wait.h>
#include "../os/os.h"
#include "enter.h"

enum { EVENTS = 64 };

/* Somebody waits for a kernel thread. On the stack of who does. */
struct order {
	struct order *next;
	pthread_t *out;
	void *(*fn)(void *);
	void *arg;
	sigset_t mask; /* the new thread's */
	int rc;
	bool done;
};

static struct {
	/* -: const while it runs    l: lock */
	pthread_mutex_t lock;
	pthread_cond_t done;
	pthread_t kernel_thread;    /* -: */
	int epoll;                  /* -: */
	int bell;                   /* -: an eventfd in it: look at the rest */
	ATOMIC(uint32_t) wants_lwp; /* a: relaxed; after it a ring */
	bool runs;                  /* l: */
	bool stop;                  /* l: */
	struct order *orders;       /* l: */
} poller = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .done = PTHREAD_COND_INITIALIZER };

static void ring(void)
{
	if (eventfd_write(poller.bell, 1) < 0)
		base_fatal("marcel", "a descriptor of marcel's was closed");
}

/* --- the poller itself --- */

static void serve(struct order *o)
{
	sigset_t all;

	pthread_sigmask(SIG_SETMASK, &o->mask, &all);
	o->rc = os_thread_create(o->out, o->fn, o->arg);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	o->done = true;
	pthread_cond_broadcast(&poller.done);
}

/* False: the end. */
static bool answer(void)
{
	struct order *o;
	eventfd_t n;
	bool stop;

	eventfd_read(poller.bell, &n);
	pthread_mutex_lock(&poller.lock);
	while ((o = poller.orders) != NULL) {
		poller.orders = o->next;
		serve(o);
	}
	stop = poller.stop;
	pthread_mutex_unlock(&poller.lock);
	if (xchg_relaxed(&poller.wants_lwp, 0) != 0 && !stop)
		marcel_lwp_provide();
	return !stop;
}

static void *poller_main(void *arg)
{
	struct epoll_event ev[EVENTS];
	bool goes_on = true;
	int n;

	while (goes_on) {
		n = epoll_wait(poller.epoll, ev, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			base_fatal("marcel",
				   "a descriptor of marcel's was closed");
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr == NULL)
				goes_on = answer();
			else
				marcel_wake(ev[i].data.ptr);
		}
	}
	return arg;
}

/* --- those who ask --- */

void marcel_poller_want_lwp(void)
{
	if (xchg_relaxed(&poller.wants_lwp, 1) == 0)
		ring();
}

int marcel_poller_create(pthread_t *out, void *(*fn)(void *), void *arg)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct order o = { .out = out, .fn = fn, .arg = arg };

	if (l == NULL || !l->is_low)
		return os_thread_create(out, fn, arg);
	pthread_sigmask(SIG_SETMASK, NULL, &o.mask);
	pthread_mutex_lock(&poller.lock);
	o.next = poller.orders;
	poller.orders = &o;
	ring();
	while (!o.done)
		pthread_cond_wait(&poller.done, &poller.lock);
	pthread_mutex_unlock(&poller.lock);
	return o.rc;
}

BASE_PUBLIC int marcel_kernel_thread(pthread_t *out, void *(*fn)(void *),
				     void *arg)
{
	sigset_t all, before;
	int rc;

	/* But for those that a fault of its own raises. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -marcel_poller_create(out, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* To duplicate a file and close that would drop the file's locks. */
static bool is_pollable(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) &&
	       !S_ISDIR(st.st_mode) && !S_ISBLK(st.st_mode);
}

bool marcel_poller_wait(int fd, uint32_t events)
{
	struct marcel_thread *self = marcel_thread_self();
	struct epoll_event ev = { .events = events | EPOLLONESHOT,
				  .data.ptr = self };
	bool was;
	int own;

	if (marcel_poller_start() < 0 || !is_pollable(fd))
		return false;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return false;
	if (epoll_ctl(poller.epoll, EPOLL_CTL_ADD, own, &ev) < 0) {
		close(own);
		return false;
	}
	marcel_thread_waits(self, MARCEL_WAITS_DESCRIPTOR, NULL);
	was = marcel_thread_awaits_io(self);
	marcel_thread_set_awaits_io(self, true);
	marcel_park(NULL, NULL);
	marcel_thread_set_awaits_io(self, was);
	marcel_thread_waits(self, MARCEL_WAITS_NONE, NULL);
	epoll_ctl(poller.epoll, EPOLL_CTL_DEL, own, NULL);
	close(own);
	return true;
}

/* --- start, stop --- */

static int open_set(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int rc;

	poller.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (poller.epoll < 0)
		return -errno;
	poller.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (poller.bell < 0) {
		rc = -errno;
		goto err_epoll;
	}
	if (epoll_ctl(poller.epoll, EPOLL_CTL_ADD, poller.bell, &ev) == 0)
		return 0;
	rc = -errno;
	close(poller.bell);
err_epoll:
	close(poller.epoll);
	return rc;
}

static void close_set(void)
{
	close(poller.bell);
	close(poller.epoll);
}

/* Signals are for the application's threads. */
static int start(void)
{
	sigset_t all, before;
	int rc = open_set();

	if (rc < 0)
		return rc;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	store_relaxed(&marcel_lwps.lowers, os_thread_may_lower());
	rc = -os_thread_create(&poller.kernel_thread, poller_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc < 0)
		close_set();
	return rc;
}

int marcel_poller_start(void)
{
	int rc = 0;

	pthread_mutex_lock(&poller.lock);
	if (!poller.runs) {
		poller.stop = false;
		store_relaxed(&poller.wants_lwp, 0);
		rc = start();
		poller.runs = rc == 0;
	}
	pthread_mutex_unlock(&poller.lock);
	return rc;
}

void marcel_poller_stop(void)
{
	bool runs;

	pthread_mutex_lock(&poller.lock);
	poller.stop = true;
	runs = poller.runs;
	pthread_mutex_unlock(&poller.lock);
	if (!runs)
		return;
	ring();
	pthread_join(poller.kernel_thread, NULL);
	/* A child that is forked between the two closes nobody else's. */
	poller.runs = false;
	close_set();
}

/* The set is the parent's; our names of it are closed before they can be other
 * files'. */
void marcel_poller_forked(void)
{
	pthread_mutex_init(&poller.lock, NULL);
	pthread_cond_init(&poller.done, NULL);
	if (poller.runs)
		close_set();
	poller.runs = false;
	poller.orders = NULL;
}
