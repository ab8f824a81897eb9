/*
 * The set: one epoll set for all descriptors that threads wait for, an ltask
 * that asks it, and a table by descriptor number of who waits.
 *
 *   a call tries --> would block --> enters the table, sleeps
 *                                        ^
 *   ltask: epoll_wait(set, 0) --> number's entry: those who wait end, and try
 *
 * A file stays in the set, edge-triggered and for all events, until it is
 * closed: then the kernel takes it out without a word, and the number may name
 * another file. So each wait begins with an EPOLL_CTL_ADD, which answers EEXIST
 * if the set has this file under this number (and costs no more than finding
 * that out), and else enters the new one, with the next generation: who waited
 * for the old one is told that it is gone, and what the old file still has to
 * say, if it has another name somewhere, is passed over.
 *
 * Edges come once, and perhaps between a try and the wait. So an entry counts
 * them; the caller looks at the count before it tries, and does not sleep if it
 * has changed. (It is not enough to keep the last edge for when nobody waits:
 * one edge may be two connections, and be seen by who waits while another, who
 * found none a moment before, is about to.)
 *
 * A wait lies on the stack of who waits. Only he puts it at an entry; he who
 * takes it off, under the entry's lock, is done with it when he lets go of that
 * lock, and if it was he who ended the wait, when he has signalled. So the
 * waiter's stack may go when he has been signalled and has found each of his
 * links off its list, under its lock; with one link the signal says so.
 */
#include "set.h"

#include <marcel/errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/spin.h>

#include <marcel/marcel.h>

#include <pioman/io.h>
#include <pioman/pioman.h>

#include "../state.h"
#include "../wait/wait.h"

enum {
	NUMBERS = 1 << 20, /* of descriptors, from 0 on */
	PAGE_MAX = 1 << 16,
	EVENTS = 256, /* taken at once */
};

#define ALL_EVENTS (EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET)

/* Who waits for a descriptor. All zero: nobody yet. l: lock */
struct entry {
	struct base_spin lock;
	struct base_list waits;     /* l: made when first used */
	uint32_t generation;        /* l: of the file; in its events */
	struct piom_io_seen events; /* l: so many came */
	uint16_t start;             /* l: who uses it has seen the set opened
				     *    in this run of pioman */
	bool entered;               /* l: the set may have it */
	bool aliased;               /* l: and older files of the number */
	bool closing;               /* l: */
} BASE_ALIGNED(64);

/* Pages of it are there once they are used; none has anything else. */
static struct entry entries[NUMBERS] BASE_ALIGNED(PAGE_MAX);

static struct {
	/* -: const between start and exit  l: lock  q: the ltask's run */
	marcel_mutex_t lock;
	bool open;                         /* l: */
	bool stopped;                      /* -: by who ends pioman */
	int epoll;                         /* -: */
	struct piom_ltask task;            /* -: */
	ATOMIC(uint32_t) waits;            /* a: relaxed; links entered */
	struct epoll_event events[EVENTS]; /* q: */
} set = { .lock = MARCEL_MUTEX_INITIALIZER };

static struct entry *entry_of(int fd)
{
	return fd >= 0 && fd < NUMBERS ? &entries[fd] : NULL;
}

static void lock(struct entry *e)
{
	base_spin_lock(&e->lock);
	if (e->waits.head.next == NULL)
		base_list_init(&e->waits);
}

static void unlock(struct entry *e)
{
	base_spin_unlock(&e->lock);
}

/* --- events --- */

static void end_locked(struct piom_io_link *l, bool gone)
{
	base_list_remove(&l->link);
	l->gone = gone;
	if (!xchg_relaxed(&l->wait->ended, true))
		piom_cond_signal(&l->wait->done);
}

/* End the waits for any of these sides; how many. */
static int end_all_locked(struct entry *e, unsigned sides, bool gone)
{
	struct base_link *next, *link = e->waits.head.next;
	int n = 0;

	for (; link != &e->waits.head; link = next) {
		struct piom_io_link *l =
			container_of(link, struct piom_io_link, link);

		next = link->next;
		if (l->sides & sides) {
			end_locked(l, gone);
			n++;
		}
	}
	return n;
}

static unsigned sides_of(uint32_t events)
{
	unsigned sides = 0;

	if (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP))
		sides |= PIOM_IO_IN;
	if (events & EPOLLOUT)
		sides |= PIOM_IO_OUT;
	if (events & (EPOLLHUP | EPOLLERR))
		sides |= PIOM_IO_IN | PIOM_IO_OUT;
	return sides;
}

/* An event's data: the generation, and the number. */
static uint64_t data_of(uint32_t generation, int fd)
{
	return (uint64_t)generation << 32 | (uint32_t)fd;
}

static int serve(const struct epoll_event *ev)
{
	struct entry *e = entry_of((int)(uint32_t)ev->data.u64);
	unsigned sides = sides_of(ev->events);
	int n = 0;

	lock(e);
	if (ev->data.u64 >> 32 == e->generation) {
		e->events.in += (sides & PIOM_IO_IN) != 0;
		e->events.out += (sides & PIOM_IO_OUT) != 0;
		n = end_all_locked(e, sides, false);
	}
	unlock(e);
	return n;
}

/* Not by the name epoll_wait(): that is a cancellation point. */
static enum piom_ltask_result look(void *arg)
{
	int ended = 0, n, before = *marcel_errno_location();

	(void)arg;
	if (load_relaxed(&set.waits) == 0)
		return PIOM_LTASK_QUIET;
	n = (int)syscall(SYS_epoll_pwait, set.epoll, set.events, EVENTS, 0,
			 NULL, _NSIG / 8);
	if (n < 0) {
		if (errno != EINTR)
			base_fatal("pioman", "a descriptor of pioman's was "
					     "closed");
		errno = before;
	}
	for (int i = 0; i < n; i++)
		ended += serve(&set.events[i]);
	return ended > 0 ? PIOM_LTASK_WORKED : PIOM_LTASK_AGAIN;
}

/* --- who waits --- */

/* The watcher waits for the whole set by its one descriptor. */
static int open_set(void)
{
	struct piom_blocking how = { .delay_ns = PIOM_BLOCKING_AUTO };
	int rc;

	set.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (set.epoll < 0)
		return -errno;
	store_relaxed(&set.waits, 0);
	piom_ltask_init(&set.task, look, NULL, PIOM_LTASK_REPEAT, NULL);
	how.fd = set.epoll;
	rc = piom_ltask_set_blocking(&set.task, &how);
	if (rc < 0) {
		close(set.epoll);
		return rc;
	}
	piom_ltask_submit(&set.task);
	set.open = true;
	return 0;
}

/* Once for each number in use: after it the caller sees the set opened. */
static BASE_COLD int start(void)
{
	int rc = 0;

	if (piom.start == 0)
		return -EPERM;
	marcel_mutex_lock(&set.lock);
	if (!set.open)
		rc = open_set();
	marcel_mutex_unlock(&set.lock);
	return rc;
}

int piom_io_look(int fd, struct piom_io_seen *out)
{
	struct entry *e = entry_of(fd);
	int rc;

	if (e == NULL)
		return fd < 0 ? -EBADF : -EMFILE;
	lock(e);
	if (unlikely(e->start != piom.start || piom.start == 0)) {
		unlock(e);
		rc = start();
		if (rc < 0)
			return rc;
		lock(e);
		if (e->start != piom.start)
			e->entered = e->aliased = false;
		e->start = piom.start;
	}
	*out = e->events;
	unlock(e);
	return 0;
}

/*
 * The set has the file. If the number was another's meanwhile, as of an older
 * generation: dup2() has brought it back.
 */
static int renew_locked(struct entry *e, int fd)
{
	struct epoll_event ev = { .events = ALL_EVENTS,
				  .data.u64 = data_of(e->generation, fd) };

	if (likely(!e->aliased))
		return 0;
	return epoll_ctl(set.epoll, EPOLL_CTL_MOD, fd, &ev) < 0 ? -errno : 0;
}

/* See that the set has the file of this number. */
static int add_locked(struct entry *e, int fd)
{
	struct epoll_event ev = { .events = ALL_EVENTS,
				  .data.u64 = data_of(e->generation + 1, fd) };

	if (epoll_ctl(set.epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		if (errno == EPERM)
			return PIOM_IO_FILE;
		return errno == EEXIST ? renew_locked(e, fd) : -errno;
	}
	e->generation++;
	e->aliased |= e->entered;
	e->entered = true;
	end_all_locked(e, PIOM_IO_IN | PIOM_IO_OUT, true);
	return 0;
}

static bool has_changed(const struct entry *e, unsigned sides,
			const struct piom_io_seen *seen)
{
	return (sides & PIOM_IO_IN && e->events.in != seen->in) ||
	       (sides & PIOM_IO_OUT && e->events.out != seen->out);
}

static int enter_locked(struct entry *e, struct piom_io_link *l,
			const struct piom_io_seen *seen)
{
	int rc;

	if (e->closing)
		return -EAGAIN;
	if (seen != NULL && has_changed(e, l->sides, seen))
		return -EAGAIN;
	rc = add_locked(e, l->fd);
	if (rc == 0)
		base_list_push_back(&e->waits, &l->link);
	return rc;
}

int piom_io_enter(struct piom_io_link *l, struct piom_io_wait *w, int fd,
		  unsigned sides, const struct piom_io_seen *seen)
{
	struct entry *e = entry_of(fd);
	bool closing;
	int rc;

	base_link_init(&l->link);
	l->wait = w;
	l->fd = fd;
	l->sides = sides;
	l->gone = false;
	lock(e);
	rc = enter_locked(e, l, seen);
	closing = e->closing;
	/*
	 * What the ltask does not see in `waits` it sees after the kick; nobody
	 * is preempted between, on whose kick others would rely.
	 */
	if (rc == 0 && fetch_add_relaxed(&set.waits, 1) == 0)
		piom_ltask_kick(&set.task);
	unlock(e);
	if (closing)
		piom_wait_relax();
	return rc;
}

void piom_io_leave(struct piom_io_link *l)
{
	struct entry *e = entry_of(l->fd);

	lock(e);
	base_list_remove(&l->link);
	unlock(e);
	fetch_sub_relaxed(&set.waits, 1);
}

void piom_io_wait_init(struct piom_io_wait *w)
{
	store_relaxed(&w->ended, false);
	piom_cond_init(&w->done);
}

bool piom_io_is_set(const struct piom_task *t)
{
	return (const void *)t == &set.task;
}

uint32_t piom_io_nwaits(void)
{
	return load_relaxed(&set.waits);
}

bool piom_io_sleep(struct piom_io_wait *w, uint64_t deadline)
{
	_Static_assert(PIOM_IO_NEVER == UINT64_MAX, "no time comes after it");
	return piom_cond_wait_until(&w->done, deadline) == 0;
}

int piom_io_await(int fd, unsigned side, const struct piom_io_seen *seen)
{
	struct piom_io_wait w;
	struct piom_io_link l;
	int rc;

	piom_io_wait_init(&w);
	rc = piom_io_enter(&l, &w, fd, side, seen);
	if (rc != 0)
		return rc == -EAGAIN ? 0 : rc;
	piom_io_sleep(&w, PIOM_IO_NEVER);
	/* Who signalled has taken the link, our only one. */
	fetch_sub_relaxed(&set.waits, 1);
	return l.gone ? -EBADF : 0;
}

/* --- the end of a descriptor, and of all --- */

/* Not by the name close(): that is a cancellation point. */
static int close_it(int fd)
{
	return syscall(SYS_close, fd) < 0 ? -*marcel_errno_location() : 0;
}

/*
 * Somebody may come to wait between our telling those who do and close(2); he
 * finds `closing` set and tries again. The number may be another file's before
 * it is cleared, who waits for that tries again too. The set would keep a file
 * that has another name.
 */
int piom_io_close(int fd)
{
	struct entry *e = entry_of(fd);
	int rc;

	if (e == NULL)
		return close_it(fd);
	/* Another's close(2) has freed the number, and is not back yet. */
	while (lock(e), e->closing) {
		unlock(e);
		piom_wait_relax();
	}
	e->closing = true;
	e->generation++;
	if (e->entered && e->start == piom.start && piom.start != 0)
		epoll_ctl(set.epoll, EPOLL_CTL_DEL, fd, NULL);
	e->entered = false;
	end_all_locked(e, PIOM_IO_IN | PIOM_IO_OUT, true);
	unlock(e);
	marcel_blocking_begin(); /* a socket may linger */
	rc = close_it(fd);
	marcel_blocking_end();
	lock(e);
	e->closing = false;
	unlock(e);
	return rc;
}

/* Whoever waits may just have opened the set: then the end is refused. */
static bool is_open(void)
{
	bool open;

	marcel_mutex_lock(&set.lock);
	open = set.open;
	marcel_mutex_unlock(&set.lock);
	return open;
}

bool piom_io_stop(void)
{
	if (!is_open())
		return true;
	if (load_relaxed(&set.waits) > 0)
		return false;
	piom_ltask_cancel(&set.task);
	set.stopped = true;
	return true;
}

void piom_io_go_on(void)
{
	if (set.stopped)
		piom_ltask_submit(&set.task);
	set.stopped = false;
}

void piom_io_exit(void)
{
	if (set.open)
		close(set.epoll);
	set.open = set.stopped = false;
}

/* Its locks may be held by threads, and its waits be of threads, that are not
 * there. */
void piom_io_forked(void)
{
	marcel_mutex_init(&set.lock, NULL);
	piom_io_exit();
	store_relaxed(&set.waits, 0);
	if (madvise(entries, sizeof(entries), MADV_DONTNEED) < 0)
		base_fatal("pioman", "no new pages after fork()");
}
