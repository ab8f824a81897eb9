/*
 * marcel/io/rw.c, socket.c: who reads or writes holds up nobody but himself,
 * and gets what libc would have given.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/io.h>
#include "../with.h"

enum { LARGE = (1 << 20) / FEWER };

static int ends[2]; /* of a pipe, or both of a connection */
static char sent[LARGE], got[LARGE];

static void close_ends(void)
{
	close(ends[0]);
	close(ends[1]);
}

static void fill(void)
{
	for (int i = 0; i < LARGE; i++)
		sent[i] = (char)check_random();
	memset(got, 0, sizeof(got));
}

/* Without kernel threads for sections: who waits is past the bound. */
static void start(int nvp, const char *lwp_max)
{
	struct marcel_config config = { .nvp = nvp };

	setenv("MARCEL_LWP_MAX", lwp_max, 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_LWP_MAX");
}

/* The body on 1 and 4 VPs, with sections and past the bound of LWPs. */
static void in_all_ways(void (*body)(void))
{
	static const int nvp[] = { 1, 4, 1, 4 };
	static const char *const max[] = { "64", "64", "1", "1" };

	for (int i = 0; i < 4; i++) {
		if ((BASE_TSAN || BASE_ASAN) && i > 1)
			break; /* there a try is no try */
		start(nvp[i], max[i]);
		body();
		CHECK_INT(marcel_end(), 0);
	}
}

static void *yielder(void *arg)
{
	for (int i = 0; i < 1000; i++)
		marcel_yield();
	return arg;
}

static void *read_x(void *arg)
{
	char c = 0;

	CHECK_INT(marcel_read(ends[0], &c, 1), 1);
	CHECK_INT(c, 'x');
	return arg;
}

static void read_of_an_empty_pipe(void)
{
	marcel_t t, other;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK_INT(marcel_create(&t, NULL, read_x, NULL), 0);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(marcel_create(&other, NULL, yielder, NULL), 0);
		CHECK_INT(marcel_join(other, NULL), 0);
	}
	CHECK_INT(marcel_write(ends[1], "x", 1), 1);
	CHECK_INT(marcel_join(t, NULL), 0);
	close_ends();
}

TEST(a_read_of_an_empty_pipe_leaves_the_others_running)
{
	in_all_ways(read_of_an_empty_pipe);
}

/* --- no switch --- */

static int ran; /* the other thread */

static void *run(void *arg)
{
	ran++;
	return arg;
}

/* On LWP 0, where a section would be a hand-over. */
static void *reads_and_writes(void *arg)
{
	struct iovec iov = { got, 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct rusage before, after;
	pid_t tid = gettid();

	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < 200; i++) {
		CHECK_INT(marcel_write(ends[0], "1234", 4), 4);
		CHECK_INT(marcel_read(ends[1], got, 4), 4);
		CHECK_INT(marcel_writev(ends[0], &iov, 1), 4);
		CHECK_INT(marcel_readv(ends[1], &iov, 1), 4);
		CHECK_INT(marcel_send(ends[0], "1234", 4, 0), 4);
		CHECK_INT(marcel_recv(ends[1], got, 10, 0), 4);
		CHECK_INT(marcel_sendmsg(ends[0], &msg, 0), 4);
		CHECK_INT(marcel_recvmsg(ends[1], &msg, 0), 4);
		CHECK_INT(marcel_sendto(ends[0], got, 4, 0, NULL, 0), 4);
		CHECK_INT(marcel_recvfrom(ends[1], got, 4, 0, NULL, NULL), 4);
		CHECK_INT(marcel_recv(ends[1], got, 4, MSG_DONTWAIT), -1);
	}
	getrusage(RUSAGE_THREAD, &after);
	CHECK_INT(after.ru_nvcsw, before.ru_nvcsw);
	CHECK_INT(gettid(), tid);
	CHECK_INT(ran, 0);
	return arg;
}

TEST(a_call_that_does_not_block_causes_no_switch)
{
	marcel_t t, other;

	if (BASE_TSAN || BASE_ASAN)
		check_skip("a sanitizer sees no try");
	setenv("MARCEL_TIMESLICE_US", "0", 1); /* nor for a tick */
	start(1, "64");
	unsetenv("MARCEL_TIMESLICE_US");
	ran = 0;
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	CHECK_INT(marcel_create(&other, NULL, run, NULL), 0);
	CHECK_INT(marcel_create(&t, NULL, reads_and_writes, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(ran, 1);
	close_ends();
	CHECK_INT(marcel_end(), 0);
}

/* --- as libc --- */

static void failures(void)
{
	struct iovec iov = { got, 1 };
	struct mmsghdr msg = { .msg_len = 0 }, msgs[2] = { msg, msg };
	struct timespec bad_time = { .tv_nsec = -1 };
	int dir = marcel_open("/", O_RDONLY | O_CLOEXEC);

#define FAILS(call, error)                                                     \
	do {                                                                   \
		errno = 0;                                                     \
		CHECK_INT(call, -1);                                           \
		CHECK_INT(*__errno_location(), error);                         \
	} while (0)

	CHECK(dir >= 0);
	FAILS(marcel_read(-1, got, 1), EBADF);
	FAILS(marcel_write(-1, got, 1), EBADF);
	FAILS(marcel_read(dir, got, 1), EISDIR);
	FAILS(marcel_write(dir, got, 1), EBADF);
	FAILS(marcel_readv(dir, &iov, 1), EISDIR);
	FAILS(marcel_recv(dir, got, 1, 0), ENOTSOCK);
	FAILS(marcel_recvmmsg(dir, &msg, 1, 0, NULL), ENOTSOCK);
	FAILS(marcel_recvmmsg(dir, &msg, 1, 0, &bad_time), EINVAL);
	FAILS(marcel_sendmmsg(dir, &msg, 1, 0), ENOTSOCK);
	FAILS(marcel_accept(dir, NULL, NULL), ENOTSOCK);
	FAILS(marcel_accept(-1, NULL, NULL), EBADF);
	FAILS(marcel_open("/no/such/file", O_RDONLY), ENOENT);
	FAILS(marcel_openat(dir, "no/such", O_RDONLY), ENOENT);
	FAILS(marcel_fsync(-1), EBADF);
	FAILS(marcel_fdatasync(-1), EBADF);
	FAILS(marcel_tcdrain(-1), EBADF);
	FAILS(marcel_tcdrain(dir), ENOTTY);
	close(dir);

	CHECK_INT(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	FAILS(marcel_readv(ends[0], &iov, -1), EINVAL);
	FAILS(marcel_writev(ends[1], &iov, -1), EINVAL);
	FAILS(marcel_read(ends[0], got, 1), EAGAIN);
	FAILS(marcel_read(ends[0], NULL, 1), EAGAIN);
	CHECK_INT(marcel_write(ends[1], got, LARGE), 65536);
	FAILS(marcel_write(ends[1], got, 1), EAGAIN);
	FAILS(marcel_write(ends[1], got, LARGE), EAGAIN);
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	FAILS(marcel_write(ends[1], got, 1), EPIPE);
	FAILS(marcel_write(ends[1], got, LARGE), EPIPE);
	close(ends[1]);

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	FAILS(marcel_recvmmsg(ends[0], msgs, 2, 0, NULL), ENOTSOCK);
	close(ends[1]);
	CHECK_INT(marcel_read(ends[0], got, 1), 0);
	close(ends[0]);
#undef FAILS
}

static void *fails(void *arg)
{
	failures();
	return arg;
}

static void failures_everywhere(void)
{
	pthread_t p;
	marcel_t t;

	failures(); /* main */
	CHECK_INT(marcel_create(&t, NULL, fails, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(pthread_create(&p, NULL, fails, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST(errors_are_those_of_libc)
{
	if (LARGE <= 65536)
		check_skip("needs more than a pipe takes");
	failures();
	in_all_ways(failures_everywhere);
	failures();
}

static void files(void)
{
	char name[] = "/tmp/marcel-io-XXXXXX";
	struct iovec iov[3] = { { got, 3 }, { got + 3, 0 }, { got + 3, 100 } };
	int fd = mkstemp(name), again;

	CHECK(fd >= 0);
	fill();
	again = marcel_open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
	unlink(name);
	CHECK_INT(marcel_write(again, sent, 10), 10);
	CHECK_INT(marcel_write(again, sent + 10, LARGE - 10), LARGE - 10);
	CHECK_INT(marcel_fsync(again), 0);
	CHECK_INT(marcel_fdatasync(again), 0);
	CHECK_INT(marcel_read(fd, got, LARGE), LARGE);
	CHECK(memcmp(got, sent, LARGE) == 0);
	CHECK_INT(marcel_read(fd, got, LARGE), 0);
	lseek(fd, -50, SEEK_END);
	CHECK_INT(marcel_readv(fd, iov, 3), 50);
	CHECK(memcmp(got, sent + LARGE - 50, 50) == 0);
	CHECK_INT(marcel_read(fd, got, 1), 0);
	close(fd);
	close(again);
}

TEST(files_end_where_they_end)
{
	files();
	in_all_ways(files);
}

/* --- large --- */

static void *writes_all(void *arg)
{
	CHECK_INT(marcel_write(ends[1], sent, LARGE), LARGE);
	return arg;
}

static void *sends_all(void *arg)
{
	struct iovec iov[2] = { { sent, 100 }, { sent + 100, LARGE - 100 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	CHECK_INT(marcel_send(ends[1], sent, LARGE, 0), LARGE);
	CHECK_INT(marcel_sendto(ends[1], sent, LARGE, 0, NULL, 0), LARGE);
	CHECK_INT(marcel_sendmsg(ends[1], &msg, 0), LARGE);
	CHECK_INT(marcel_writev(ends[1], iov, 2), LARGE);
	return arg;
}

static void set_messages(struct mmsghdr *msgs, struct iovec *iov, unsigned n,
			 size_t bytes)
{
	memset(msgs, 0, n * sizeof(*msgs));
	for (unsigned i = 0; i < n; i++) {
		iov[i].iov_len = bytes;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
}

/* Large ones, and such as are tried. */
static void *sends_several(void *arg)
{
	static const size_t sizes[] = { LARGE / 4, 1024 };

	for (size_t s = 0; s < BASE_ARRAY_LEN(sizes); s++) {
		size_t bytes = sizes[s];

		for (char *p = sent; p < sent + LARGE; p += 4 * bytes) {
			struct mmsghdr msgs[4];
			struct iovec iov[4];

			set_messages(msgs, iov, 4, bytes);
			for (unsigned i = 0; i < 4; i++)
				iov[i].iov_base = p + i * bytes;
			CHECK_INT(marcel_sendmmsg(ends[1], msgs, 4, 0), 4);
			for (unsigned i = 0; i < 4; i++)
				CHECK_INT(msgs[i].msg_len, bytes);
		}
	}
	return arg;
}

static void *reads_all(void *arg)
{
	ssize_t n;

	for (int round = (int)(intptr_t)arg; round-- > 0;) {
		memset(got, 0, sizeof(got));
		for (size_t all = 0; all < LARGE; all += (size_t)n) {
			n = marcel_read(ends[0], got + all, LARGE - all);
			CHECK(n > 0);
		}
		CHECK(memcmp(sent, got, LARGE) == 0);
	}
	return arg;
}

/* One side is full, then the other empty, many times. */
static void through(void *(*writer)(void *), int rounds)
{
	marcel_t w, r;

	fill();
	CHECK_INT(marcel_create(&w, NULL, writer, NULL), 0);
	CHECK_INT(marcel_create(&r, NULL, reads_all, (void *)(intptr_t)rounds),
		  0);
	CHECK_INT(marcel_join(w, NULL), 0);
	CHECK_INT(marcel_join(r, NULL), 0);
	close_ends();
}

static void large_writes(void)
{
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	through(writes_all, 1);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	through(sends_all, 4);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	through(sends_several, 2);
}

TEST(large_writes_are_whole)
{
	in_all_ways(large_writes);
}

/* --- several messages --- */

/* More than a socket holds. */
enum { MESSAGES = 100 };

static struct {
	struct mmsghdr msgs[MESSAGES];
	struct iovec iov[MESSAGES];
	int word[MESSAGES];
} out, in;

static void set_words(void)
{
	set_messages(out.msgs, out.iov, MESSAGES, sizeof(int));
	set_messages(in.msgs, in.iov, MESSAGES, sizeof(int));
	for (int i = 0; i < MESSAGES; i++) {
		out.word[i] = i;
		in.word[i] = -1;
		out.iov[i].iov_base = &out.word[i];
		in.iov[i].iov_base = &in.word[i];
	}
}

static void *sends_words(void *arg)
{
	CHECK_INT(marcel_sendmmsg(ends[1], out.msgs, MESSAGES, 0), MESSAGES);
	return arg;
}

static void receive_all(int flags, struct timespec *timeout)
{
	marcel_t t;

	set_words();
	CHECK_INT(marcel_create(&t, NULL, sends_words, NULL), 0);
	CHECK_INT(marcel_recvmmsg(ends[0], in.msgs, MESSAGES, flags, timeout),
		  MESSAGES);
	CHECK_INT(marcel_join(t, NULL), 0);
	for (int n = 0; n < MESSAGES; n++) {
		CHECK_INT(in.word[n], n);
		CHECK_INT(in.msgs[n].msg_len, sizeof(int));
		CHECK_INT(out.msgs[n].msg_len, sizeof(int));
	}
}

static void messages(void)
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	/* All, however few are there at once. */
	receive_all(0, NULL);
	receive_all(MSG_WAITALL, NULL);
	/* What is there, or as many as are wanted. */
	CHECK_INT(marcel_sendmmsg(ends[1], out.msgs, 5, 0), 5);
	CHECK_INT(marcel_recvmmsg(ends[0], in.msgs, 2, 0, NULL), 2);
	CHECK_INT(marcel_recvmmsg(ends[0], in.msgs, MESSAGES, MSG_WAITFORONE,
				  NULL),
		  3);
	CHECK_INT(marcel_recvmmsg(ends[0], in.msgs, 1, MSG_DONTWAIT, NULL), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(marcel_recvmmsg(ends[0], in.msgs, 0, MSG_WAITALL, NULL), 0);
	close_ends();
}

TEST(several_messages_are_had_and_sent_by_one_call)
{
	in_all_ways(messages);
}

/* More than sendmmsg() would take; of a stream, which holds so many. */
enum { MANY = IOV_MAX + 76 };

static void many_messages(void)
{
	static struct mmsghdr msgs[MANY];
	static struct iovec iov[MANY];
	static char bytes[MANY];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	set_messages(msgs, iov, MANY, 1);
	for (int i = 0; i < MANY; i++)
		iov[i].iov_base = &bytes[i];
	for (int round = 0; round < 2; round++) {
		CHECK_INT(marcel_write(ends[1], bytes, MANY), MANY);
		CHECK_INT(marcel_recvmmsg(ends[0], msgs, MANY,
					  round == 0 ? 0 : MSG_WAITFORONE,
					  NULL),
			  MANY);
	}
	CHECK_INT(marcel_recv(ends[0], bytes, 1, MSG_DONTWAIT), -1);
	close_ends();
}

TEST(as_many_messages_are_received_as_are_asked_for)
{
	many_messages();
	in_all_ways(many_messages);
}

/* The second of three is received to nowhere. */
static int is_waiting(const struct marcel_info *info, void *arg)
{
	return info->state == MARCEL_STATE_WAITING;
}

static void *read_one(void *fd)
{
	char c = 0;

	CHECK_INT(marcel_read(*(int *)fd, &c, 1), 1);
	return fd;
}

/* Until one waits for the poller, there may be sections. */
static void past_the_bound(void (*body)(void))
{
	marcel_t readers[10];
	int fds[2];

	if (BASE_TSAN || BASE_ASAN)
		check_skip("a sanitizer sees no try");
	for (int nvp = 1; nvp <= 4; nvp += 3) {
		start(nvp, "1");
		CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
		for (int i = 0; i < 10; i++)
			CHECK_INT(marcel_create(&readers[i], NULL, read_one,
						&fds[0]),
				  0);
		while (!marcel_threads(is_waiting, NULL))
			marcel_yield();
		body();
		CHECK_INT(marcel_write(fds[1], "xxxxxxxxxx", 10), 10);
		for (int i = 0; i < 10; i++)
			CHECK_INT(marcel_join(readers[i], NULL), 0);
		close(fds[0]);
		close(fds[1]);
		CHECK_INT(marcel_end(), 0);
	}
}

static void error_behind_a_part(void)
{
	char *const nowhere = (char *)1;

	CHECK_INT(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	set_words();
	in.iov[1].iov_base = nowhere;
	CHECK_INT(marcel_sendmmsg(ends[1], out.msgs, 3, 0), 3);
	CHECK_INT(marcel_recvmmsg(ends[0], in.msgs, 3, 0, NULL), 1);
	CHECK_INT(in.word[0], 0);
	CHECK_INT(marcel_recv(ends[0], &in.word[2], sizeof(int), MSG_DONTWAIT),
		  -1);
	CHECK_INT(*__errno_location(), EFAULT);
	CHECK_INT(marcel_recv(ends[0], &in.word[2], sizeof(int), 0),
		  sizeof(int));
	CHECK_INT(in.word[2], 2);
	close_ends();
}

TEST(an_error_behind_some_messages_is_for_the_next_call)
{
	error_behind_a_part();
	in_all_ways(error_behind_a_part);
}

TEST(an_error_behind_some_messages_is_for_the_next_call_past_the_bound)
{
	past_the_bound(error_behind_a_part);
}

static void no_errors_queued(void)
{
	struct iovec iov = { got, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

#define IS_EMPTY(call)                                                         \
	do {                                                                   \
		*__errno_location() = 0;                                       \
		CHECK_INT(call, -1);                                           \
		CHECK_INT(*__errno_location(), EAGAIN);                        \
	} while (0)

	CHECK(fd >= 0);
	IS_EMPTY(marcel_recv(fd, got, 1, MSG_ERRQUEUE));
	IS_EMPTY(marcel_recvfrom(fd, got, 1, MSG_ERRQUEUE, NULL, NULL));
	IS_EMPTY(marcel_recvmsg(fd, &m.msg_hdr, MSG_ERRQUEUE));
	IS_EMPTY(marcel_recvmmsg(fd, &m, 1, MSG_ERRQUEUE, NULL));
	close(fd);
#undef IS_EMPTY
}

TEST(nobody_waits_for_errors_that_are_queued)
{
	no_errors_queued();
	in_all_ways(no_errors_queued);
}

TEST(nobody_waits_for_errors_that_are_queued_past_the_bound)
{
	past_the_bound(no_errors_queued);
}

static void messages_in_time(void)
{
	struct timespec none = { 0 }, long_time = { .tv_sec = 3600 };

	CHECK_INT(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	receive_all(0, &long_time);
	CHECK(long_time.tv_sec < 3600); /* what is left */
	CHECK_INT(marcel_sendmmsg(ends[1], out.msgs, 2, 0), 2);
	CHECK_INT(marcel_recvmmsg(ends[0], in.msgs, 2, 0, &none), 1);
	close_ends();
}

TEST(the_time_for_messages_is_looked_at_behind_each)
{
	in_all_ways(messages_in_time);
}

/* --- sockets --- */

static int listener;
static struct sockaddr_in where;
static const uint32_t loopback = INADDR_LOOPBACK;

static void *accepts(void *arg)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int fd = marcel_accept4(listener, (void *)&from, &len, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(from.sin_family, AF_INET);
	CHECK_INT(marcel_recv(fd, got, 5, MSG_WAITALL), 5);
	CHECK(memcmp(got, "hello", 5) == 0);
	CHECK_INT(marcel_send(fd, "you", 3, 0), 3);
	close(fd);
	fd = marcel_accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	CHECK_INT(marcel_read(fd, got, 1), 0);
	close(fd);
	return arg;
}

static void connections(void)
{
	socklen_t len = sizeof(where);
	char answer[10];
	marcel_t t;
	int fd;

	where.sin_family = AF_INET;
	where.sin_port = 0;
	where.sin_addr.s_addr = htonl(loopback);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(bind(listener, (void *)&where, len), 0);
	CHECK_INT(getsockname(listener, (void *)&where, &len), 0);
	CHECK_INT(listen(listener, 5), 0);
	CHECK_INT(marcel_create(&t, NULL, accepts, NULL), 0);
	yielder(NULL);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(marcel_connect(fd, (void *)&where, len), 0);
	CHECK_INT(marcel_send(fd, "hel", 3, 0), 3);
	yielder(NULL);
	CHECK_INT(marcel_send(fd, "lo", 2, 0), 2);
	CHECK_INT(marcel_recv(fd, answer, 3, MSG_WAITALL), 3);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(marcel_connect(fd, (void *)&where, len), 0);
	close(fd);
	CHECK_INT(marcel_join(t, NULL), 0);
	close(listener);
}

TEST(connections_are_made_and_taken)
{
	in_all_ways(connections);
}

static void time_outs(void)
{
	struct timeval soon = { 0, 1000 };

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	CHECK_INT(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &soon,
			     sizeof(soon)),
		  0);
	CHECK_INT(marcel_recv(ends[0], got, 1, 0), -1);
	CHECK_INT(*__errno_location(), EAGAIN);
	CHECK_INT(marcel_read(ends[0], got, 1), -1);
	CHECK_INT(*__errno_location(), EAGAIN);
	close_ends();
}

TEST(sockets_keep_their_time_outs)
{
	in_all_ways(time_outs);
}

static void *resolves(void *arg)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *out;

	CHECK_INT(marcel_getaddrinfo("127.0.0.1", "80", &hints, &out), 0);
	CHECK_INT(((struct sockaddr_in *)out->ai_addr)->sin_port, htons(80));
	freeaddrinfo(out);
	CHECK_INT(marcel_getaddrinfo("nonsense", "80", &hints, &out),
		  EAI_NONAME);
	return arg;
}

TEST_VPS(names_are_resolved)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, resolves, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

/* --- signals --- */

static ATOMIC(int) woken;
static ATOMIC(int) sleeps;
static pthread_t sleeper;

static void on_signal(int number)
{
}

static void *is_interrupted(void *arg)
{
	char c;

	/* The thread's kernel thread is this from its first section on. */
	marcel_blocking_begin();
	marcel_blocking_end();
	sleeper = pthread_self();
	store_release(&sleeps, 1);
	CHECK_INT(marcel_read(ends[0], &c, 1), -1);
	CHECK_INT(*__errno_location(), EINTR);
	store_release(&woken, 1);
	return arg;
}

TEST_VPS(a_signal_interrupts_a_call)
{
	struct sigaction sa = { .sa_handler = on_signal };
	marcel_t t;

	store_relaxed(&woken, 0);
	store_relaxed(&sleeps, 0);
	sigaction(SIGUSR1, &sa, NULL); /* one may come late */
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK_INT(marcel_create(&t, NULL, is_interrupted, NULL), 0);
	while (!load_acquire(&sleeps))
		marcel_yield();
	while (!load_acquire(&woken)) {
		pthread_kill(sleeper, SIGUSR1);
		marcel_yield();
	}
	CHECK_INT(marcel_join(t, NULL), 0);
	close_ends();
}

/* --- foreign threads --- */

static void *reads_for_ever(void *arg)
{
	char c;

	marcel_read(ends[0], &c, 1);
	return arg;
}

TEST_VPS(a_foreign_thread_is_cancelled_in_a_call)
{
	pthread_t p;
	void *result;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK_INT(pthread_create(&p, NULL, reads_for_ever, NULL), 0);
	CHECK_INT(pthread_cancel(p), 0);
	CHECK_INT(pthread_join(p, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	close_ends();
}
