/* pioman/io: reading and writing, whatever the descriptor is. */
#include "io.h"

#include <limits.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <termios.h>

enum { LONG = 1 << 20 };

/* --- a byte that comes later --- */

struct reader {
	int fd;
	ssize_t n;
	char buf[16];
};

static void *read_some(void *arg)
{
	struct reader *r = arg;

	r->n = piom_read(r->fd, r->buf, sizeof(r->buf));
	return NULL;
}

static void waits_for_bytes(void (*open_both)(int ends[2]), bool foreign)
{
	struct reader r = { .n = -1 };
	struct thread t;
	int ends[2];

	open_both(ends);
	r.fd = ends[0];
	t = begin(foreign, read_some, &r);
	give_time();
	CHECK_INT(piom_write(ends[1], "late", 4), 4);
	end(t);
	CHECK_INT(r.n, 4);
	CHECK(memcmp(r.buf, "late", 4) == 0);
	close_both(ends);
}

static void open_datagrams(int ends[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void open_nonblocking(int ends[2])
{
	CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
}

static void bytes_of_all_kinds(void)
{
	for (int foreign = 0; foreign < 2; foreign++) {
		waits_for_bytes(open_pipe, foreign);
		waits_for_bytes(open_nonblocking, foreign);
		waits_for_bytes(open_sockets, foreign);
		waits_for_bytes(open_datagrams, foreign);
	}
}

TEST(who_reads_waits_for_what_is_written)
{
	WITH_ALL(every_mode, bytes_of_all_kinds);
}

static void counter(void)
{
	uint64_t n = 5, got = 0;
	int fd = eventfd(0, EFD_CLOEXEC);

	CHECK_INT(piom_write(fd, &n, sizeof(n)), 8);
	CHECK_INT(piom_read(fd, &got, sizeof(got)), 8);
	CHECK_INT(got, 5);
	CHECK_INT(piom_write(fd, &n, sizeof(n)), 8);
	CHECK_INT(piom_read(fd, &got, 3), -EINVAL);
	CHECK_INT(piom_close(fd), 0);
}

TEST(what_has_its_own_idea_of_bytes_keeps_it)
{
	WITH_ALL(engine_marcel, counter);
}

static void messages(void)
{
	struct iovec none[2] = { { NULL, 0 }, { NULL, 0 } };
	char buf[8];
	int ends[2];

	open_datagrams(ends);
	CHECK_INT(piom_write(ends[1], "one", 3), 3);
	CHECK_INT(piom_write(ends[1], "", 0), 0);
	CHECK_INT(piom_writev(ends[1], none, 2), 0);
	CHECK_INT(piom_readv(ends[0], none, 2), 0);
	CHECK_INT(piom_write(ends[1], "three", 5), 5);
	CHECK_INT(piom_read(ends[0], buf, 0), 0);
	CHECK_INT(piom_read(ends[0], buf, sizeof(buf)), 3);
	CHECK_INT(piom_read(ends[0], buf, sizeof(buf)), 0);
	CHECK_INT(piom_read(ends[0], buf, 2), 2);
	close_both(ends);
}

TEST(a_datagram_stays_one)
{
	WITH_ALL(engine_marcel, messages);
}

/* --- a terminal --- */

static ATOMIC(int) typed;

/* More than it takes while nobody reads. */
static void *types(void *arg)
{
	int *ends = arg;
	char *text = malloc(LONG);

	memset(text, 'x', LONG);
	CHECK_INT(piom_write(ends[1], text, LONG), LONG);
	store_relaxed(&typed, 1);
	free(text);
	return NULL;
}

static void terminal(void)
{
	struct thread t;
	struct termios raw;
	char buf[4096];
	int ends[2];

	ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (ends[0] < 0 || grantpt(ends[0]) < 0 || unlockpt(ends[0]) < 0)
		check_skip("there are no terminals here");
	ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (ends[1] < 0)
		check_skip("there are no terminals here");
	CHECK_INT(tcgetattr(ends[1], &raw), 0);
	cfmakeraw(&raw);
	CHECK_INT(tcsetattr(ends[1], TCSANOW, &raw), 0);
	store_relaxed(&typed, 0);
	t = begin(false, types, ends);
	while (load_relaxed(&typed) == 0) {
		while (read(ends[0], buf, sizeof(buf)) > 0)
			;
		marcel_yield();
	}
	end(t);
	close_both(ends);
}

/* There is no tick: who sleeps in the kernel unannounced keeps his VP. */
TEST(who_writes_to_a_full_terminal_holds_up_nobody)
{
	static const struct mode one[] = { { 1, "marcel", "auto", "0" } };

	setenv("MARCEL_TIMESLICE_US", "0", 1);
	WITH_ALL(one, terminal);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- all that is written --- */

struct flow {
	int fd;
	size_t bytes;
	bool in_order;
};

static char byte_at(size_t i)
{
	return (char)(i * 7 + i / 251);
}

static void *swallow(void *arg)
{
	struct flow *f = arg;
	char buf[1000];
	ssize_t n;

	f->in_order = true;
	while ((n = piom_read(f->fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			f->in_order &= buf[i] == byte_at(f->bytes++);
	return NULL;
}

static void writes_all(void (*open_both)(int ends[2]), bool foreign)
{
	char *all = malloc(LONG);
	/* Parts that end within, at, and past what there is room for. */
	struct iovec iov[5] = { { all, 0 },
				{ all, 10 },
				{ all + 10, LONG / 2 },
				{ NULL, 0 },
				{ all + 10 + LONG / 2, LONG / 2 - 10 } };
	struct flow f = { .bytes = 0 };
	struct thread t;
	int ends[2];

	for (size_t i = 0; i < LONG; i++)
		all[i] = byte_at(i);
	open_both(ends);
	f.fd = ends[0];
	t = begin(foreign, swallow, &f);
	CHECK_INT(piom_writev(ends[1], iov, 5), LONG);
	CHECK_INT(piom_close(ends[1]), 0);
	end(t);
	CHECK_INT(f.bytes, LONG);
	CHECK(f.in_order);
	CHECK_INT(piom_close(ends[0]), 0);
	free(all);
}

static void writes_all_to_all(void)
{
	for (int foreign = 0; foreign < 2; foreign++) {
		writes_all(open_pipe, foreign);
		writes_all(open_nonblocking, foreign);
		writes_all(open_sockets, foreign);
	}
}

TEST(a_write_is_done_when_all_is_written)
{
	WITH_ALL(every_mode, writes_all_to_all);
}

static void reads_in_parts(void)
{
	char a[3], b[5];
	struct iovec iov[3] = { { a, 3 }, { NULL, 0 }, { b, 5 } };
	int ends[2];

	for (int kind = 0; kind < 2; kind++) {
		kind == 0 ? open_pipe(ends) : open_sockets(ends);
		CHECK_INT(piom_write(ends[1], "abcdef", 6), 6);
		CHECK_INT(piom_readv(ends[0], iov, 3), 6);
		CHECK(memcmp(a, "abc", 3) == 0 && memcmp(b, "def", 3) == 0);
		close_both(ends);
	}
}

TEST(a_read_fills_one_buffer_after_the_other)
{
	WITH_ALL(engine_marcel, reads_in_parts);
}

static void a_file(void)
{
	char path[] = "/tmp/pioman-io-XXXXXX", *all = malloc(LONG);
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	unlink(path);
	memset(all, 'x', LONG);
	CHECK_INT(piom_write(fd, all, LONG), LONG);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	CHECK_INT(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	CHECK_INT(piom_read(fd, all, LONG), LONG);
	CHECK_INT(piom_read(fd, all, LONG), 0);
	CHECK_INT(piom_close(fd), 0);
	free(all);
}

TEST(a_file_is_always_ready)
{
	WITH_ALL(engine_marcel, a_file);
}

/* --- ends and errors --- */

static void ends_of_streams(void)
{
	struct reader r = { .n = -1 };
	struct thread t;
	int ends[2];

	for (int kind = 0; kind < 4; kind++) {
		kind % 2 == 0 ? open_pipe(ends) : open_sockets(ends);
		r.fd = ends[0];
		t = begin(kind / 2, read_some, &r);
		give_time();
		CHECK_INT(piom_close(ends[1]), 0);
		end(t);
		CHECK_INT(r.n, 0);
		CHECK_INT(piom_close(ends[0]), 0);
	}
}

TEST(who_waits_sees_the_end_of_a_stream)
{
	WITH_ALL(every_mode, ends_of_streams);
}

static void no_reader(void)
{
	sigset_t pending;
	int ends[2];

	for (int kind = 0; kind < 2; kind++) {
		kind == 0 ? open_pipe(ends) : open_sockets(ends);
		CHECK_INT(piom_close(ends[0]), 0);
		/* SIGPIPE would end us. */
		CHECK_INT(piom_write(ends[1], "x", 1), -EPIPE);
		CHECK_INT(piom_write(ends[1], "x", 1), -EPIPE);
		CHECK_INT(sigpending(&pending), 0);
		CHECK(!sigismember(&pending, SIGPIPE));
		CHECK_INT(piom_close(ends[1]), 0);
	}
}

TEST(who_writes_for_nobody_gets_an_error_and_no_signal)
{
	WITH_ALL(engine_marcel, no_reader);
}

struct writer {
	int fd;
	size_t n;
	ssize_t rc;
};

static void *write_zeros(void *arg)
{
	struct writer *w = arg;
	char *all = calloc(1, w->n);

	w->rc = piom_write(w->fd, all, w->n);
	free(all);
	return NULL;
}

static void reader_leaves(void)
{
	struct writer w = { .n = LONG };
	struct thread t;
	char c;
	int ends[2];

	for (int kind = 0; kind < 2; kind++) {
		kind == 0 ? open_pipe(ends) : open_sockets(ends);
		w.fd = ends[1];
		t = begin(false, write_zeros, &w);
		CHECK_INT(piom_read(ends[0], &c, 1), 1);
		CHECK_INT(piom_close(ends[0]), 0);
		end(t);
		/* So much was written, or nothing after a reset. */
		CHECK(w.rc > 0 && w.rc < LONG);
		CHECK_INT(piom_write(ends[1], &c, 1), -EPIPE);
		CHECK_INT(piom_close(ends[1]), 0);
	}
}

TEST(a_write_that_cannot_go_on_tells_how_far_it_came)
{
	WITH_ALL(every_mode, reader_leaves);
}

static void errors(void)
{
	struct iovec iov = { NULL, SIZE_MAX };
	int ends[2], dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char c = 0;

	open_pipe(ends);
	CHECK_INT(piom_read(-1, &c, 1), -EBADF);
	CHECK_INT(piom_write(-1, &c, 1), -EBADF);
	CHECK_INT(piom_read(INT_MAX, &c, 1), -EMFILE);
	CHECK_INT(piom_read(ends[1], &c, 1), -EBADF);
	CHECK_INT(piom_write(ends[0], &c, 1), -EBADF);
	CHECK_INT(piom_write(ends[1], NULL, 1), -EFAULT);
	CHECK_INT(piom_readv(ends[0], &iov, 1), -EINVAL);
	CHECK_INT(piom_readv(ends[0], &iov, -1), -EINVAL);
	CHECK_INT(piom_writev(ends[1], &iov, IOV_MAX + 1), -EINVAL);
	CHECK_INT(piom_read(dir, &c, 1), -EISDIR);
	CHECK_INT(piom_close(dir), 0);
	close_both(ends);
	CHECK_INT(piom_read(ends[0], &c, 1), -EBADF);
	CHECK_INT(piom_close(ends[0]), -EBADF);
	CHECK_INT(piom_close(-1), -EBADF);
}

TEST(errors_are_those_of_the_calls)
{
	WITH_ALL(engine_marcel, errors);
}

TEST(before_pioman_runs_nobody_can_wait)
{
	char c;

	CHECK_INT(piom_read(0, &c, 1), -EPERM);
}
