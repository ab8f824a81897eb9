/*
 * The pipes beneath the doorbells (bell.h). A process has one; its peers open
 * it through /proc/<pid>/fd/<fd>, and keep only so many open: those of the
 * first peers that they use, and then those that they have rung last. Where
 * /proc is not to be had nobody is rung, and all sleep by the clock.
 *
 * All open it for reading and writing: so nobody who writes is killed by
 * SIGPIPE when the process is gone, and none blocks. A full pipe is readable,
 * which is all that a byte is to say.
 */
#include "shm.h"

#include <marcel/errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <base/diag.h>

enum {
	NONE = -1,
	FLAGS = O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
	PIPE_BYTES = 4096, /* the least: what is in it does not matter */
	NAP_MIN_NS = 50000,
};

/* --- the barrier --- */

static bool register_barrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
		       0, 0) == 0;
}

bool nm_shm_bell_barrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) ==
	       0;
}

/* --- mine --- */

static int open_number(int pid, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	return open(path, FLAGS);
}

/* A pipe, by one descriptor for both ends, as the peers will have it. */
static int make_pipe(void)
{
	int ends[2], fd;

	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
		return -1;
	fd = open_number(getpid(), ends[0]);
	close(ends[0]);
	close(ends[1]);
	if (fd >= 0)
		fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	return fd;
}

static int make(struct shm *shm, struct shm_where_bell *where)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	struct stat st;

	shm->bell = make_pipe();
	if (shm->bell < 0 || fstat(shm->bell, &st) < 0 ||
	    epoll_ctl(shm->epoll, EPOLL_CTL_ADD, shm->bell, &ev) < 0)
		return -errno;
	where->fd = shm->bell;
	where->id[0] = st.st_dev;
	where->id[1] = st.st_ino;
	return 0;
}

void nm_shm_bell_make(struct shm *shm, struct shm_where_bell *where)
{
	int rc = make(shm, where);

	shm->barrier = register_barrier();
	if (rc == 0)
		return;
	base_warn("nmad",
		  "shm: rank %u cannot be woken (%s), it looks by the clock",
		  shm->rank, strerror(-rc));
	nm_shm_bell_drop(shm);
	where->fd = NONE;
}

void nm_shm_bell_drop(struct shm *shm)
{
	if (shm->bell >= 0)
		close(shm->bell);
	shm->bell = NONE;
}

static void empty(struct shm *shm)
{
	char bytes[64];

	if (shm->bell >= 0)
		while (read(shm->bell, bytes, sizeof(bytes)) == sizeof(bytes))
			;
}

void nm_shm_bell_set(struct shm *shm)
{
	empty(shm);
	shm_bell_set(&shm->seg->bell);
}

void nm_shm_bell_mute(struct shm *shm)
{
	shm_bell_unset(&shm->seg->bell);
	empty(shm);
}

/* --- where nobody rings --- */

void nm_shm_bell_alarm(struct shm *shm)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };

	shm->alarm =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (shm->alarm < 0 ||
	    epoll_ctl(shm->epoll, EPOLL_CTL_ADD, shm->alarm, &ev) == 0)
		return;
	close(shm->alarm);
	shm->alarm = NONE;
}

/* What was set before, and has come, is forgotten by that. */
bool nm_shm_bell_nap(struct shm *shm, uint64_t longest)
{
	struct itimerspec at = { .it_value.tv_sec = 0 };

	shm->nap = shm->nap == 0 ? NAP_MIN_NS : 2 * shm->nap;
	if (shm->nap > longest)
		shm->nap = longest;
	at.it_value.tv_nsec = (long)shm->nap;
	shm->is_alarmed = true;
	return shm->alarm >= 0 &&
	       timerfd_settime(shm->alarm, 0, &at, NULL) == 0;
}

void nm_shm_bell_no_nap(struct shm *shm)
{
	struct itimerspec never = { .it_value.tv_sec = 0 };

	if (shm->is_alarmed && shm->alarm >= 0)
		timerfd_settime(shm->alarm, 0, &never, NULL);
	shm->is_alarmed = false;
}

/* --- the peers' --- */

/* A process number may have gone to another process since. */
static bool is_it(int fd, const struct shm_where_bell *where)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
	       st.st_dev == where->id[0] && st.st_ino == where->id[1];
}

int nm_shm_bell_open(int pid, const struct shm_where_bell *where)
{
	int fd = where->fd < 0 ? -1 : open_number(pid, where->fd);

	if (fd < 0)
		return where->fd < 0 ? -ENXIO : -errno;
	if (is_it(fd, where))
		return fd;
	close(fd);
	return -ENOENT;
}

/* There is no descriptor to spare, now. */
static bool is_passing(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM;
}

/* One more that is open; there is room. */
static void keep(struct shm *shm, struct shm_peer *p, int fd)
{
	struct shm_bells *b = &shm->bells;

	p->bell = fd;
	b->open[(b->first + b->n++) % SHM_BELLS] = p;
}

static void forget(struct shm_peer *p)
{
	if (p->bell >= 0)
		close(p->bell);
	p->bell = NONE;
}

/*
 * A descriptor is kept for the first bell, when the program has used up all
 * others; from then on there is always one that is open.
 */
int nm_shm_bell_spare(struct shm *shm)
{
	if (shm->spare < 0)
		shm->spare = fcntl(shm->epoll, F_DUPFD_CLOEXEC, 0);
	return shm->spare < 0 ? -errno : 0;
}

static bool give_spare(struct shm *shm)
{
	if (shm->spare < 0)
		return false;
	close(shm->spare);
	shm->spare = NONE;
	return true;
}

/* The one that has been open longest makes room; false: there is none. */
static bool make_room(struct shm *shm)
{
	struct shm_bells *b = &shm->bells;

	if (b->n == 0)
		return give_spare(shm);
	forget(b->open[b->first]);
	b->first = (b->first + 1) % SHM_BELLS;
	b->n--;
	return true;
}

static int open_bell(struct shm *shm, struct shm_peer *p)
{
	int fd;

	do
		fd = nm_shm_bell_open(p->pid, &shm->arena->card[p->index].bell);
	while ((fd == -EMFILE || fd == -ENFILE) && make_room(shm));
	return fd;
}

/*
 * The first are kept: they can be rung also by who may open nothing any more.
 * One that cannot be opened for another reason than that the process is gone
 * has been told of by who has joined, and nobody sleeps who cannot be rung.
 */
int nm_shm_bell_know(struct shm *shm, struct shm_peer *p)
{
	int fd = open_bell(shm, p);

	if (is_passing(fd))
		return -EAGAIN;
	if (fd == -ENOENT || fd == -ESRCH)
		return -ESRCH;
	if (fd >= 0 && shm->bells.n < shm->maxbells)
		keep(shm, p, fd);
	else if (fd >= 0)
		close(fd);
	return 0;
}

/* The descriptor, or -errno; opened if need be. */
static int find_bell(struct shm *shm, struct shm_peer *p)
{
	int fd;

	if (p->bell >= 0)
		return p->bell;
	if (shm->bells.n == shm->maxbells)
		make_room(shm);
	fd = open_bell(shm, p);
	if (fd >= 0)
		keep(shm, p, fd);
	return fd;
}

static void owe(struct shm *shm, struct shm_peer *p, bool owes)
{
	shm->nowed += (unsigned)owes - (unsigned)p->owes;
	p->owes = owes;
}

void nm_shm_bell_ring(struct shm *shm, struct shm_peer *p)
{
	int fd = p->exited || p->left ? -ESRCH : find_bell(shm, p);

	/* Without a descriptor to spare it is tried again by each poll. */
	owe(shm, p, is_passing(fd));
	if (fd < 0) {
		if (!is_passing(fd) && fd != -ESRCH && fd != -ENOENT)
			base_warn("nmad", "shm: cannot wake rank %d: %s",
				  p->link->rank, strerror(-fd));
		return;
	}
	if (!shm_bell_take(&p->seg->bell))
		return;
	nm_rail_calls(shm->rail, NM_CALL_BELL);
	if (write(fd, "", 1) < 0 && errno != EAGAIN)
		base_warn("nmad", "shm: cannot wake rank %d (errno %d)",
			  p->link->rank, errno);
}

void nm_shm_bell_feed(struct shm *shm)
{
	shm_bell_feed(&shm->seg->bell);
	shm_ring_publish(&shm->rx);
	for (uint32_t i = 0; i < shm->nlocal; i++) {
		int rc;

		if (load_relaxed(&shm->seg->note[i].hungry) == 0)
			continue;
		rc = nm_shm_meet(shm, i);
		if (rc == 0)
			nm_shm_bell_tell(shm, &shm->all[i]);
		else if (rc == -EAGAIN) /* it is told later */
			store_relaxed(&shm->seg->bell.hungry, 1);
	}
}

void nm_shm_bell_self(struct shm *shm)
{
	if (shm->bell < 0)
		return;
	nm_rail_calls(shm->rail, NM_CALL_BELL);
	/* A full pipe is readable. Nobody can be told of an error. */
	if (write(shm->bell, "", 1) < 0)
		return;
}

void nm_shm_bell_pay(struct shm *shm)
{
	base_list_for_each (n, &shm->peers) {
		struct shm_peer *p = container_of(n, struct shm_peer, all);

		if (p->owes)
			nm_shm_bell_ring(shm, p);
	}
}

void nm_shm_bell_forget(struct shm *shm, struct shm_peer *p)
{
	struct shm_bells *b = &shm->bells;
	unsigned kept = 0;

	for (unsigned i = 0; i < b->n; i++) {
		struct shm_peer *q = b->open[(b->first + i) % SHM_BELLS];

		if (q != p)
			b->open[(b->first + kept++) % SHM_BELLS] = q;
	}
	b->n = kept;
	owe(shm, p, false);
	shm->nstuck -= p->stuck;
	p->stuck = p->no_buf = false;
	forget(p);
	if (b->n == 0)
		nm_shm_bell_spare(shm);
}
