/*
 * marcel/sched/call.c: what a call gives is what it gives without ticks,
 * however many come while it sleeps; but a handler of the program ends it as
 * ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/blocking.h>
#include "../../../marcel/io/next.h"
#include "../../../marcel/os/os.h"
#include "../../../marcel/sched/vp.h"
#include "../with.h"

enum { MS = 2, LOOKS = 200, HITS = 4 };

static const struct timespec short_time = { .tv_nsec = MS * 1000000L };
static const struct timespec no_time;

/* What nothing comes from or goes into, but by a give(). */
static struct {
	int pipe[2], full[2], pair[2], stuffed[2], listener, epoll, notify;
	struct sockaddr_un busy; /* nobody accepts there */
	socklen_t busy_bytes;
	char fifo[64];
	sigset_t none;
	pid_t child;
} e;

static void fails(long rc, int error)
{
	CHECK_INT(rc, -1);
	CHECK_INT(errno, error);
}

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
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec = (t.tv_nsec + short_time.tv_nsec) % 1000000000;
	t.tv_sec += t.tv_nsec < short_time.tv_nsec;
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

static void call_recv(void)
{
	char c;

	fails(marcel_recv(e.pair[0], &c, 1, 0), EAGAIN);
	fails(marcel_read(e.pair[0], &c, 1), EAGAIN);
}

static void call_send(void)
{
	static char block[5000];

	fails(marcel_send(e.stuffed[0], "", 1, 0), EAGAIN);
	fails(marcel_write(e.stuffed[0], block, sizeof(block)), EAGAIN);
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
	e.child = fork();
	if (e.child == 0)
		for (;;)
			pause();
}

static void give_end(void)
{
	CHECK_INT(kill(e.child, SIGKILL), 0);
}

static void call_wait4(void)
{
	CHECK_INT(marcel_wait4(e.child, NULL, 0, NULL), e.child);
}

static void call_waitid(void)
{
	CHECK_INT(marcel_waitid(P_PID, (id_t)e.child, NULL, WEXITED), 0);
}

static const struct kind {
	void (*call)(void), (*before)(void), (*give)(void);
	bool once; /* a round takes long */
} kinds[] = {
	{ call_poll },
	{ call_ppoll },
	{ call_ppoll_mask },
	{ call_select },
	{ call_pselect },
	{ call_epoll_wait },
	{ call_epoll_pwait },
	{ call_looks },
	{ call_nanosleep },
	{ call_clock_nanosleep },
	{ call_usleep },
	{ call_sleep, .once = true },
	{ call_recv },
	{ call_send },
	{ call_accept },
	{ call_connect },
	{ user_section },
	{ call_timerfd },
	{ call_read, .give = give_byte },
	{ call_write, fill, give_room },
	{ call_inotify, .give = give_event },
	{ call_open, .give = give_writer },
	{ call_wait4, make_child, give_end, .once = true },
	{ call_waitid, make_child, give_end, .once = true },
};

/* --- ticks at any time --- */

static ATOMIC(const struct kind *) calling;
static ATOMIC(int) round_now, hits, over;

/* As if the monitor had looked just before each went to sleep. */
static void kill_lwps(int signal)
{
	base_spin_lock(&marcel_lwps.lock);
	for (struct marcel_lwp *l = marcel_lwps.all; l != NULL; l = l->all)
		if (load_relaxed(&l->vp) != NULL) /* it has begun */
			os_thread_kill(load_relaxed(&l->tid), signal);
	base_spin_unlock(&marcel_lwps.lock);
	os_thread_kill(load_relaxed(&marcel_lwps.first.tid), signal);
}

/* What was called is given what it waits for after some ticks. */
static void *ticker(void *arg)
{
	const struct kind *k;
	int n, round = 0, sent = 0;

	while (load_relaxed(&over) == 0) {
		n = load_acquire(&round_now);
		k = load_relaxed(&calling);
		kill_lwps(marcel_sched.signal);
		if (n != round)
			sent = 0;
		round = n;
		if (n != 0 && n == load_relaxed(&round_now)) {
			fetch_add_relaxed(&hits, 1);
			if (++sent == HITS && k->give != NULL)
				k->give();
		}
		sched_yield();
	}
	return arg;
}

static void *computes(void *arg)
{
	while (load_relaxed(&over) == 0)
		;
	return arg;
}

static void *calls(void *arg)
{
	static int rounds, slept;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		if (kinds[i].call == call_sleep && slept++ > 0)
			continue; /* a second each time */
		store_relaxed(&hits, 0);
		store_relaxed(&calling, &kinds[i]);
		do {
			if (kinds[i].before != NULL)
				kinds[i].before();
			store_release(&round_now, ++rounds);
			kinds[i].call();
			store_relaxed(&round_now, 0);
		} while (load_relaxed(&hits) < HITS && !kinds[i].once);
	}
	return arg;
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

	if (connect(fd, (struct sockaddr *)&e.busy, e.busy_bytes) == 0)
		return 0; /* it stays in the queue */
	CHECK_INT(errno, EAGAIN);
	return close(fd), -1;
}

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
	listen_at(&e.busy, &e.busy_bytes, 0);
	while (connect_now() == 0)
		;
	e.epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK_INT(epoll_ctl(e.epoll, EPOLL_CTL_ADD, e.pipe[0], &ev), 0);
	snprintf(e.fifo, sizeof(e.fifo), "/tmp/marcel-eintr-%d", getpid());
	CHECK_INT(mkfifo(e.fifo, 0600), 0);
	e.notify = inotify_init1(IN_CLOEXEC);
	CHECK(inotify_add_watch(e.notify, e.fifo, IN_ATTRIB) >= 0);
}

static void beside_computing_threads(int nvp, void *(*fn)(void *))
{
	struct marcel_config config = { .nvp = nvp };
	marcel_t busy[2], t;
	pthread_t alien;

	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	store_relaxed(&over, 0);
	store_relaxed(&round_now, 0);
	CHECK_INT(marcel_init(&config), 0);
	for (int i = 0; i < nvp; i++)
		CHECK_INT(marcel_create(&busy[i], NULL, computes, NULL), 0);
	CHECK_INT(pthread_create(&alien, NULL, ticker, NULL), 0);
	fn(NULL);
	CHECK_INT(marcel_create(&t, NULL, fn, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	store_relaxed(&over, 1);
	CHECK_INT(pthread_join(alien, NULL), 0);
	for (int i = 0; i < nvp; i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

static void ticks_end_no_call(int nvp)
{
	open_all();
	beside_computing_threads(nvp, calls);
	CHECK_INT(unlink(e.fifo), 0);
}

TEST(ticks_end_no_call_on_1_vp)
{
	ticks_end_no_call(1);
}

TEST(ticks_end_no_call_on_2_vps)
{
	ticks_end_no_call(2);
}

/* --- handlers of the program --- */

static ATOMIC(int) handled;

static void handler(int signal)
{
	(void)signal;
	fetch_add_relaxed(&handled, 1);
}

/* Whether it waits or is about to: again and again until it has returned. */
static void *interrupts(void *arg)
{
	while (load_relaxed(&over) == 0) {
		kill_lwps(SIGUSR1);
		sched_yield();
	}
	return arg;
}

static void handle_with(int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	CHECK_INT(sigaction(SIGUSR1, &a, NULL), 0);
	store_relaxed(&handled, 0);
	store_relaxed(&over, 0);
}

static void *is_interrupted(void *arg)
{
	char c;

	fails(marcel_poll(NULL, 0, -1), EINTR);
	fails(marcel_io_nanosleep(nanosleep, &(struct timespec){ 1000000, 0 },
				  NULL),
	      EINTR);
	fails(marcel_ppoll(NULL, 0, NULL, &e.none), EINTR);
	fails(marcel_read(e.pipe[0], &c, 1), EINTR);
	fails(marcel_recv(e.pair[1], &c, 1, 0), EINTR);
	return arg;
}

static void *restarts(void *arg)
{
	char c;

	fails(marcel_poll(NULL, 0, -1), EINTR);
	CHECK_INT(marcel_read(e.pipe[0], &c, 1), 1);
	return arg;
}

static void *gives_later(void *arg)
{
	int before = load_relaxed(&handled);

	while (load_relaxed(&handled) < before + 1000)
		sched_yield();
	give_byte();
	return arg;
}

TEST_VPS(handlers_end_calls)
{
	pthread_t alien, giver;
	marcel_t t;

	open_all();
	handle_with(0);
	CHECK_INT(pthread_create(&alien, NULL, interrupts, NULL), 0);
	CHECK_INT(marcel_create(&t, NULL, is_interrupted, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	is_interrupted(NULL);
	store_relaxed(&over, 1);
	CHECK_INT(pthread_join(alien, NULL), 0);
	handle_with(SA_RESTART);
	CHECK_INT(pthread_create(&alien, NULL, interrupts, NULL), 0);
	CHECK_INT(pthread_create(&giver, NULL, gives_later, NULL), 0);
	CHECK_INT(marcel_create(&t, NULL, restarts, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(pthread_join(giver, NULL), 0);
	store_relaxed(&over, 1);
	CHECK_INT(pthread_join(alien, NULL), 0);
	CHECK_INT(unlink(e.fifo), 0);
}

/* --- what others see of it --- */

static bool has_tick_blocked(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, marcel_sched.signal) == 1;
}

/* Ended by end(), or by a call of marcel. */
TEST_VPS(a_section_leaves_the_mask_as_it_was)
{
	for (int i = 0; i < 3; i++) {
		marcel_blocking_begin();
		CHECK(has_tick_blocked());
		if (i > 0)
			marcel_yield();
		if (i > 0)
			CHECK(!has_tick_blocked());
		if (i > 1)
			marcel_blocking_begin();
		marcel_blocking_end();
		CHECK(!has_tick_blocked());
		CHECK_INT(marcel_poll(NULL, 0, 1), 0);
		CHECK(!has_tick_blocked());
	}
}

TEST(two_signals_must_not_be_one)
{
	struct marcel_config one = { .nvp = 1 };
	char number[16];

	snprintf(number, sizeof(number), "%d", SIGRTMAX - 3);
	setenv("MARCEL_SIGNAL", number, 1);
	CHECK_INT(marcel_init(&one), 0);
	CHECK_INT(marcel_sched.signal, SIGRTMAX - 3);
	CHECK_INT(marcel_sched.break_signal, SIGRTMAX - 2);
	CHECK_INT(marcel_end(), 0);
	setenv("MARCEL_CANCEL_SIGNAL", number, 1);
	CHECK_INT(marcel_init(&one), -EINVAL);
	unsetenv("MARCEL_SIGNAL");
	unsetenv("MARCEL_CANCEL_SIGNAL");
}
