/*
 * What the calls of kinds.h sleep on: descriptors from which nothing comes, and
 * the like.
 */
#ifndef TESTS_MARCEL_IO_ENV_H
#define TESTS_MARCEL_IO_ENV_H

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/blocking.h>
#include "../../../marcel/io/next.h"
#include "../../../marcel/os/os.h"
#include "../../../marcel/sched/vp.h"
#include "../with.h"

enum { MS = 2, LOOKS = 200 };

static const struct timespec short_time = { .tv_nsec = MS * 1000000L };
static const struct timespec no_time;
static const struct timespec far = { .tv_sec = 4000000000 };

/* What nothing comes from or goes into, but by a give(). */
static struct {
	int pipe[2], full[2], pair[2], stuffed[2], listener, crowded, epoll;
	int notify, fifo_fd;
	struct sockaddr_un busy; /* nobody accepts there */
	socklen_t busy_bytes;
	char fifo[64]; /* a name of fifo_fd, which has no other */
	sigset_t none, usr2;
	pid_t child, remover;
	int alive; /* as long as this is open, the remover waits */
	int sem, queue, locked, want;
	mqd_t mq;
	sem_t units; /* of POSIX */
} e;

static void fails(long rc, int error)
{
	CHECK_INT(rc, -1);
	CHECK_INT(errno, error);
}

static struct timespec soon(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec = (t.tv_nsec + short_time.tv_nsec) % 1000000000;
	t.tv_sec += t.tv_nsec < short_time.tv_nsec;
	return t;
}

static ATOMIC(int) handled;

static void handler(int signal)
{
	(void)signal;
	fetch_add_relaxed(&handled, 1);
}

static void set_time(int fd, int name)
{
	struct timeval t = { .tv_usec = MS * 1000 };

	CHECK_INT(setsockopt(fd, SOL_SOCKET, name, &t, sizeof(t)), 0);
}

static int listen_at(struct sockaddr_un *at, socklen_t *len, int backlog)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*len = sizeof(*at);
	at->sun_family = AF_UNIX;
	CHECK_INT(bind(fd, (struct sockaddr *)at, sizeof(at->sun_family)), 0);
	CHECK_INT(listen(fd, backlog), 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)at, len), 0);
	return fd;
}

static int connect_now(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	int rc = connect(fd, (struct sockaddr *)&e.busy, e.busy_bytes);

	if (rc < 0)
		CHECK_INT(errno, EAGAIN);
	CHECK_INT(close(fd), 0); /* it stays in the queue */
	return rc;
}

static void open_fifo(void)
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/marcel-eintr-%d", getpid());
	CHECK_INT(mkfifo(name, 0600), 0);
	e.fifo_fd = open(name, O_PATH | O_CLOEXEC);
	CHECK_INT(unlink(name), 0);
	CHECK(e.fifo_fd >= 0);
	snprintf(e.fifo, sizeof(e.fifo), "/proc/self/fd/%d", e.fifo_fd);
	e.notify = inotify_init1(IN_CLOEXEC);
	CHECK(inotify_add_watch(e.notify, e.fifo, IN_ATTRIB) >= 0);
}

/* However the test ends: what is of the system outlives its processes. */
static void make_remover(void)
{
	int ends[2];
	char c;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	e.remover = fork();
	CHECK(e.remover >= 0);
	if (e.remover == 0) {
		setpgid(0, 0); /* not killed with the others */
		close(ends[1]);
		while (read(ends[0], &c, 1) < 0)
			;
		semctl(e.sem, 0, IPC_RMID);
		msgctl(e.queue, IPC_RMID, NULL);
		_exit(0);
	}
	e.alive = ends[1];
	CHECK_INT(close(ends[0]), 0);
}

static void open_ipc(void)
{
	struct mq_attr one = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char name[80];

	e.sem = semget(IPC_PRIVATE, 1, 0600);
	e.queue = msgget(IPC_PRIVATE, 0600);
	CHECK(e.sem >= 0 && e.queue >= 0);
	CHECK_INT(sem_init(&e.units, 0, 0), 0);
	make_remover();
	snprintf(name, sizeof(name), "/marcel-eintr-%d", getpid());
	e.mq = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &one);
	CHECK(e.mq >= 0);
	CHECK_INT(mq_unlink(name), 0);
	snprintf(name, sizeof(name), "/tmp/marcel-eintr-%d.lock", getpid());
	e.locked = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	e.want = open(name, O_RDWR | O_CLOEXEC);
	CHECK_INT(unlink(name), 0);
	CHECK(e.locked >= 0 && e.want >= 0);
}

static void close_all(void)
{
	const int fds[] = {
		e.pipe[0], e.pipe[1], e.full[0],    e.full[1],
		e.pair[0], e.pair[1], e.listener,   e.crowded,
		e.epoll,   e.notify,  e.stuffed[0], e.locked,
		e.want,    e.fifo_fd, e.alive,      e.stuffed[1],
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(fds); i++)
		CHECK_INT(close(fds[i]), 0);
	CHECK_INT(mq_close(e.mq), 0);
	CHECK_INT(sem_destroy(&e.units), 0);
	CHECK_INT(waitpid(e.remover, NULL, 0), e.remover);
}

static void handle_with(int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	CHECK_INT(sigaction(SIGUSR1, &a, NULL), 0);
}

/* SIGUSR2 is blocked everywhere: the LWPs have our mask. */
static void open_all(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct sockaddr_un any;
	socklen_t len;
	static char block[65536];

	sigemptyset(&e.none);
	CHECK_INT(pipe2(e.pipe, O_CLOEXEC), 0);
	CHECK_INT(pipe2(e.full, O_CLOEXEC), 0);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, e.pair), 0);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, e.stuffed), 0);
	set_time(e.pair[0], SO_RCVTIMEO);
	set_time(e.stuffed[0], SO_SNDTIMEO);
	for (size_t n = sizeof(block); n > 0; n /= 2)
		while (send(e.stuffed[0], block, n, MSG_DONTWAIT) > 0)
			;
	e.listener = listen_at(&any, &len, 1);
	set_time(e.listener, SO_RCVTIMEO);
	e.crowded = listen_at(&e.busy, &e.busy_bytes, 0);
	while (connect_now() == 0)
		;
	e.epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK_INT(epoll_ctl(e.epoll, EPOLL_CTL_ADD, e.pipe[0], &ev), 0);
	open_fifo();
	open_ipc();
	sigemptyset(&e.usr2);
	sigaddset(&e.usr2, SIGUSR2);
	CHECK_INT(pthread_sigmask(SIG_BLOCK, &e.usr2, NULL), 0);
	handle_with(0);
}

#endif
