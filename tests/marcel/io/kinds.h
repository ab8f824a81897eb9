/*
 * Calls that sleep in the kernel, each with what it gives when nothing comes,
 * or with who gives it something.
 */
#ifndef TESTS_MARCEL_IO_KINDS_H
#define TESTS_MARCEL_IO_KINDS_H

#include "../../parent.h"
#include "env.h"

/* --- calls that a signal ends, whether or not they are to begin again --- */

static void call_poll(void)
{
	struct pollfd p = { .fd = e.pipe[0], .events = POLLIN };

	CHECK_INT(marcel_poll(&p, 1, MS), 0);
}

static void call_ppoll(void)
{
	struct pollfd p = { .fd = e.pipe[0], .events = POLLIN };

	CHECK_INT(marcel_ppoll(&p, 1, &short_time, NULL), 0);
}

static void call_ppoll_mask(void)
{
	struct pollfd p = { .fd = e.pipe[0], .events = POLLIN };

	CHECK_INT(marcel_ppoll(&p, 1, &short_time, &e.none), 0);
}

static void call_select(void)
{
	struct timeval t = { .tv_usec = MS * 1000 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(e.pipe[0], &in);
	CHECK_INT(marcel_select(e.pipe[0] + 1, &in, NULL, NULL, &t), 0);
	CHECK_INT(t.tv_sec, 0);
	CHECK_INT(t.tv_usec, 0);
}

static void call_pselect(void)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(e.pipe[0], &in);
	CHECK_INT(marcel_pselect(e.pipe[0] + 1, &in, NULL, NULL, &short_time,
				 &e.none),
		  0);
}

static void call_epoll_wait(void)
{
	struct epoll_event ev;

	CHECK_INT(marcel_epoll_wait(e.epoll, &ev, 1, MS), 0);
}

static void call_epoll_pwait(void)
{
	struct epoll_event ev;

	CHECK_INT(marcel_epoll_pwait(e.epoll, &ev, 1, MS, &e.none), 0);
}

/* Some kernels, and emulators, do not have it. */
static void call_epoll_pwait2(void)
{
	struct epoll_event ev;
	int rc = marcel_epoll_pwait2(e.epoll, &ev, 1, &short_time, &e.none);

	if (rc < 0)
		CHECK_INT(errno, ENOSYS);
	else
		CHECK_INT(rc, 0);
}

/* Not to wait at all takes a moment, too. */
static void call_looks(void)
{
	struct pollfd p = { .fd = e.pipe[0], .events = POLLIN };
	struct timeval t = { 0 };
	struct epoll_event ev;
	fd_set in;

	FD_ZERO(&in);
	for (int i = 0; i < LOOKS; i++) {
		CHECK_INT(marcel_poll(&p, 1, 0), 0);
		CHECK_INT(marcel_ppoll(&p, 1, &no_time, &e.none), 0);
		FD_SET(e.pipe[0], &in);
		CHECK_INT(marcel_select(e.pipe[0] + 1, &in, NULL, NULL, &t), 0);
		CHECK_INT(marcel_epoll_wait(e.epoll, &ev, 1, 0), 0);
	}
}

static void call_nanosleep(void)
{
	struct timespec left;

	CHECK_INT(marcel_io_nanosleep(nanosleep, &short_time, &left), 0);
	CHECK_INT(marcel_io_nanosleep(nanosleep, &no_time, &left), 0);
}

static void call_clock_nanosleep(void)
{
	struct timespec t;

	CHECK_INT(marcel_io_clock_nanosleep(clock_nanosleep, CLOCK_MONOTONIC, 0,
					    &short_time, NULL),
		  0);
	t = soon(CLOCK_MONOTONIC);
	CHECK_INT(marcel_io_clock_nanosleep(clock_nanosleep, CLOCK_MONOTONIC,
					    TIMER_ABSTIME, &t, NULL),
		  0);
}

static void call_usleep(void)
{
	CHECK_INT(marcel_io_usleep(usleep, MS * 1000), 0);
	CHECK_INT(marcel_io_usleep(usleep, 0), 0);
}

static void call_sleep(void)
{
	CHECK_INT(marcel_io_sleep(sleep, 1), 0);
}

static void call_thrd_sleep(void)
{
	struct timespec left;

	CHECK_INT(marcel_io_nanosleep(thrd_sleep, &short_time, &left), 0);
	CHECK_INT(marcel_io_nanosleep(thrd_sleep, &no_time, NULL), 0);
}

static void call_recv(void)
{
	char c;

	fails(marcel_recv(e.pair[0], &c, 1, 0), EAGAIN);
	fails(marcel_read(e.pair[0], &c, 1), EAGAIN);
}

static void call_recvfrom(void)
{
	char c;

	fails(marcel_recvfrom(e.pair[0], &c, 1, 0, NULL, NULL), EAGAIN);
}

static void call_recvmsg(void)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	fails(marcel_recvmsg(e.pair[0], &m, 0), EAGAIN);
}

static void call_readv(void)
{
	char c;
	struct iovec iov = { &c, 1 };

	fails(marcel_readv(e.pair[0], &iov, 1), EAGAIN);
}

static void call_send(void)
{
	static char block[5000];

	fails(marcel_send(e.stuffed[0], "", 1, 0), EAGAIN);
	fails(marcel_write(e.stuffed[0], block, sizeof(block)), EAGAIN);
}

static void call_sendto(void)
{
	fails(marcel_sendto(e.stuffed[0], "", 1, 0, NULL, 0), EAGAIN);
}

static void call_sendmsg(void)
{
	char c = 0;
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	fails(marcel_sendmsg(e.stuffed[0], &m, 0), EAGAIN);
}

static void call_writev(void)
{
	char c = 0;
	struct iovec iov = { &c, 1 };

	fails(marcel_writev(e.stuffed[0], &iov, 1), EAGAIN);
}

static void call_recvmmsg(void)
{
	struct mmsghdr m = { .msg_len = 0 };

	fails(marcel_recvmmsg(e.pair[0], &m, 1, 0, NULL), EAGAIN);
}

static void call_sendmmsg(void)
{
	char c = 0;
	struct iovec iov = { &c, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	fails(marcel_sendmmsg(e.stuffed[0], &m, 1, 0), EAGAIN);
}

static void call_accept(void)
{
	fails(marcel_accept(e.listener, NULL, NULL), EAGAIN);
}

static void call_connect(void)
{
	struct timeval t = { .tv_usec = MS * 1000 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)), 0);
	fails(marcel_connect(fd, (struct sockaddr *)&e.busy, e.busy_bytes),
	      EAGAIN);
	CHECK_INT(close(fd), 0);
}

static void user_section(void)
{
	marcel_blocking_begin();
	CHECK_INT(poll(NULL, 0, MS), 0);
	marcel_blocking_end();
}

static void call_timerfd(void)
{
	struct itimerspec when = { .it_value = short_time };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t n;

	CHECK_INT(timerfd_settime(fd, 0, &when, NULL), 0);
	CHECK_INT(marcel_read(fd, &n, sizeof(n)), sizeof(n));
	CHECK_INT(close(fd), 0);
}

static void call_sigtimedwait(void)
{
	siginfo_t info;

	fails(marcel_io_sigtimedwait(sigtimedwait, &e.usr2, &info, &short_time),
	      EAGAIN);
}

static void call_semtimedop(void)
{
	struct sembuf down = { .sem_op = -1 };

	fails(marcel_semtimedop(e.sem, &down, 1, &short_time), EAGAIN);
}

static void call_mq_timedreceive(void)
{
	struct timespec t = soon(CLOCK_REALTIME);
	char msg[8];

	fails(marcel_mq_timedreceive(e.mq, msg, sizeof(msg), NULL, &t),
	      ETIMEDOUT);
}

static void call_sem_timedwait(void)
{
	struct timespec t = soon(CLOCK_REALTIME);

	fails(marcel_io_sem_timedwait(sem_timedwait, &e.units, &t), ETIMEDOUT);
}

static void call_sem_clockwait(void)
{
	struct timespec t = soon(CLOCK_MONOTONIC);

	fails(marcel_io_sem_clockwait(sem_clockwait, &e.units, CLOCK_MONOTONIC,
				      &t),
	      ETIMEDOUT);
}

static void call_getrandom(void)
{
	static char bytes[1 << 20];

	CHECK_INT(marcel_getrandom(bytes, sizeof(bytes), 0), sizeof(bytes));
}

/* --- calls that last until something is given --- */

static void call_read(void)
{
	char c;

	CHECK_INT(marcel_read(e.pipe[0], &c, 1), 1);
}

static void give_byte(void)
{
	CHECK_INT(write(e.pipe[1], "", 1), 1);
}

static void call_recvmmsg_given(void)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	CHECK_INT(marcel_recvmmsg(e.pair[1], &m, 1, 0, NULL), 1);
	CHECK_INT(m.msg_len, 1);
}

static void give_message_on_socket(void)
{
	CHECK_INT(send(e.pair[0], "", 1, 0), 1);
}

static struct aiocb reading;

static void begin_read(void)
{
	static char c;

	reading = (struct aiocb){ .aio_fildes = e.pipe[0],
				  .aio_buf = &c,
				  .aio_nbytes = 1 };
	CHECK_INT(aio_read(&reading), 0);
}

static void call_aio_suspend(void)
{
	const struct aiocb *const list[] = { &reading };

	CHECK_INT(marcel_io_aio_suspend(aio_suspend, list, 1, &far), 0);
	CHECK_INT(aio_error(&reading), 0);
	CHECK_INT(aio_return(&reading), 1);
}

static void call_write(void)
{
	CHECK_INT(marcel_write(e.full[1], "", 1), 1);
}

static void give_room(void)
{
	static char page[4096];

	CHECK_INT(read(e.full[0], page, sizeof(page)), sizeof(page));
}

static void fill(void)
{
	static char page[4096];

	fcntl(e.full[1], F_SETFL, O_NONBLOCK);
	while (write(e.full[1], page, sizeof(page)) > 0)
		;
	while (write(e.full[1], page, 1) > 0)
		;
	fcntl(e.full[1], F_SETFL, 0);
}

static void call_inotify(void)
{
	char event[sizeof(struct inotify_event) + 256];

	CHECK(marcel_read(e.notify, event, sizeof(event)) > 0);
}

static void give_event(void)
{
	CHECK_INT(chmod(e.fifo, 0600), 0);
}

static void call_open(void)
{
	int fd = marcel_open(e.fifo, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(close(fd), 0);
}

static void give_writer(void)
{
	int fd = open(e.fifo, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(close(fd), 0);
}

static void make_child(void)
{
	e.child = parent_forks(fork);
	CHECK(e.child >= 0);
	if (e.child > 0)
		return;
	for (;;)
		pause();
}

static void give_end(void)
{
	CHECK(e.child > 0);
	CHECK_INT(kill(e.child, SIGKILL), 0);
}

static void call_wait(void)
{
	CHECK_INT(marcel_wait(NULL), e.child);
}

static void call_waitpid(void)
{
	CHECK_INT(marcel_waitpid(e.child, NULL, 0), e.child);
}

static void call_wait3(void)
{
	CHECK_INT(marcel_wait3(NULL, 0, NULL), e.child);
}

static void call_wait4(void)
{
	CHECK_INT(marcel_wait4(e.child, NULL, 0, NULL), e.child);
}

static void call_waitid(void)
{
	CHECK_INT(marcel_waitid(P_PID, (id_t)e.child, NULL, WEXITED), 0);
}

static void call_sigwaitinfo(void)
{
	CHECK_INT(marcel_io_sigwaitinfo(sigwaitinfo, &e.usr2, NULL), SIGUSR2);
}

static void call_sigwait(void)
{
	sigset_t all;
	int signal = 0;

	sigfillset(&all); /* with ours */
	CHECK_INT(marcel_io_sigwait(sigwait, &all, &signal), 0);
	CHECK_INT(signal, SIGUSR2);
}

static void give_usr2(void)
{
	CHECK_INT(kill(getpid(), SIGUSR2), 0);
}

static void call_semop(void)
{
	struct sembuf down = { .sem_op = -1 };

	CHECK_INT(marcel_semop(e.sem, &down, 1), 0);
}

static void give_up(void)
{
	struct sembuf up = { .sem_op = 1 };

	CHECK_INT(semop(e.sem, &up, 1), 0);
}

static void call_sem_wait(void)
{
	CHECK_INT(marcel_io_sem_wait(sem_wait, &e.units), 0);
}

static void call_sem_timedwait_given(void)
{
	CHECK_INT(marcel_io_sem_timedwait(sem_timedwait, &e.units, &far), 0);
}

static void call_sem_clockwait_given(void)
{
	CHECK_INT(marcel_io_sem_clockwait(sem_clockwait, &e.units,
					  CLOCK_REALTIME, &far),
		  0);
}

static void give_unit(void)
{
	CHECK_INT(sem_post(&e.units), 0);
}

struct message {
	long type;
	char text[8];
};

static void call_msgrcv(void)
{
	struct message m;

	CHECK_INT(marcel_msgrcv(e.queue, &m, sizeof(m.text), 7, 0), 1);
}

static void give_message(void)
{
	struct message m = { .type = 7 };

	CHECK_INT(msgsnd(e.queue, &m, 1, 0), 0);
}

/* A few of them are all that a queue may hold. */
static struct {
	long type;
	char text[4096];
} large = { .type = 8 };

static void fill_queue(void)
{
	while (msgsnd(e.queue, &large, sizeof(large.text), IPC_NOWAIT) == 0)
		;
	CHECK_INT(errno, EAGAIN);
}

static void give_queue_room(void)
{
	CHECK_INT(msgrcv(e.queue, &large, sizeof(large.text), 8, 0),
		  sizeof(large.text));
}

static void call_msgsnd(void)
{
	CHECK_INT(marcel_msgsnd(e.queue, &large, sizeof(large.text), 0), 0);
	while (msgrcv(e.queue, &large, sizeof(large.text), 8, IPC_NOWAIT) > 0)
		;
}

static void call_mq_receive(void)
{
	char msg[8];

	CHECK_INT(marcel_mq_receive(e.mq, msg, sizeof(msg), NULL), 1);
}

static void give_mq(void)
{
	CHECK_INT(mq_send(e.mq, "x", 1, 0), 0);
}

static void give_mq_room(void)
{
	char msg[8];

	CHECK_INT(mq_receive(e.mq, msg, sizeof(msg), NULL), 1);
}

static void call_mq_send(void)
{
	mq_timedsend(e.mq, "x", 1, 0, &no_time); /* the last room */
	CHECK_INT(marcel_mq_send(e.mq, "x", 1, 0), 0);
	give_mq_room();
}

static void call_mq_timedsend(void)
{
	struct timespec t = soon(CLOCK_REALTIME);

	mq_timedsend(e.mq, "x", 1, 0, &no_time); /* the last room */
	fails(marcel_mq_timedsend(e.mq, "x", 1, 0, &t), ETIMEDOUT);
	give_mq_room();
}

static void lock(void)
{
	CHECK_INT(flock(e.locked, LOCK_EX), 0);
}

static void call_flock(void)
{
	CHECK_INT(marcel_flock(e.want, LOCK_EX), 0);
	CHECK_INT(marcel_flock(e.want, LOCK_UN), 0);
}

static void give_flock(void)
{
	CHECK_INT(flock(e.locked, LOCK_UN), 0);
}

static void set_lock(int fd, short type)
{
	struct flock all = { .l_type = type };

	CHECK_INT(marcel_fcntl(fd, F_OFD_SETLKW, &all), 0);
}

static void lock_range(void)
{
	set_lock(e.locked, F_WRLCK);
}

static void call_fcntl(void)
{
	set_lock(e.want, F_WRLCK);
	set_lock(e.want, F_UNLCK);
}

static void give_range(void)
{
	set_lock(e.locked, F_UNLCK);
}

/* These locks are a process's: a child's, that says when it has it. */
static void lock_in_child(void)
{
	struct flock all = { .l_type = F_WRLCK };
	int ends[2];
	char c = 0;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	e.child = parent_forks(fork);
	CHECK(e.child >= 0);
	if (e.child == 0) {
		if (fcntl(e.locked, F_SETLK, &all) < 0 ||
		    write(ends[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK_INT(close(ends[1]), 0);
	CHECK_INT(read(ends[0], &c, 1), 1);
	CHECK_INT(close(ends[0]), 0);
}

static void call_lockf(void)
{
	CHECK_INT(marcel_lockf(e.want, F_LOCK, 0), 0);
	CHECK_INT(marcel_lockf(e.want, F_ULOCK, 0), 0);
	CHECK_INT(waitpid(e.child, NULL, 0), e.child);
}

static void call_pause(void)
{
	int before = load_relaxed(&handled);

	fails(marcel_io_pause(pause), EINTR);
	CHECK(load_relaxed(&handled) > before);
}

static void call_sigsuspend(void)
{
	int before = load_relaxed(&handled);

	fails(marcel_io_sigsuspend(sigsuspend, &e.none), EINTR);
	CHECK(load_relaxed(&handled) > before);
}

static const struct kind {
	void (*call)(void), (*before)(void), (*give)(void);
	bool once;     /* a round takes long */
	bool handlers; /* what is given are signals */
} kinds[] = {
	{ call_poll },
	{ call_ppoll },
	{ call_ppoll_mask },
	{ call_select },
	{ call_pselect },
	{ call_epoll_wait },
	{ call_epoll_pwait },
	{ call_epoll_pwait2 },
	{ call_looks },
	{ call_nanosleep },
	{ call_clock_nanosleep },
	{ call_usleep },
	{ call_sleep, .once = true },
	{ call_thrd_sleep },
	{ call_recv },
	{ call_send },
	{ call_recvfrom },
	{ call_recvmsg },
	{ call_readv },
	{ call_sendto },
	{ call_sendmsg },
	{ call_writev },
	{ call_recvmmsg },
	{ call_sendmmsg },
	{ call_accept },
	{ call_connect },
	{ user_section },
	{ call_timerfd },
	{ call_sigtimedwait },
	{ call_semtimedop },
	{ call_mq_timedreceive },
	{ call_mq_timedsend },
	{ call_sem_timedwait },
	{ call_sem_clockwait },
	{ call_getrandom },
	{ call_sigwaitinfo, .give = give_usr2 },
	{ call_sigwait, .give = give_usr2 },
	{ call_semop, .give = give_up },
	{ call_sem_wait, .give = give_unit },
	{ call_sem_timedwait_given, .give = give_unit },
	{ call_sem_clockwait_given, .give = give_unit },
	{ call_msgrcv, .give = give_message },
	{ call_msgsnd, fill_queue, give_queue_room },
	{ call_mq_receive, .give = give_mq },
	{ call_mq_send, .give = give_mq_room },
	{ call_flock, lock, give_flock },
	{ call_fcntl, lock_range, give_range },
	{ call_pause, .handlers = true },
	{ call_sigsuspend, .handlers = true },
	{ call_read, .give = give_byte },
	{ call_aio_suspend, begin_read, give_byte },
	{ call_recvmmsg_given, .give = give_message_on_socket },
	{ call_write, fill, give_room },
	{ call_inotify, .give = give_event },
	{ call_open, .give = give_writer },
	{ call_lockf, lock_in_child, give_end, .once = true },
	{ call_wait, make_child, give_end, .once = true },
	{ call_waitpid, make_child, give_end, .once = true },
	{ call_wait3, make_child, give_end, .once = true },
	{ call_wait4, make_child, give_end, .once = true },
	{ call_waitid, make_child, give_end, .once = true },
};

#endif
