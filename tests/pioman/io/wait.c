/* pioman/io: who waits is told, and nobody else. */
#include "io.h"

#include <sys/wait.h>

#include "../../../pioman/io/set.h"
#include "../../../pioman/ltask/poll.h"

#if BASE_TSAN || BASE_ASAN
enum { ROUNDS = 60, CROWD = 200, ORDERED = 50 };
#else
enum { ROUNDS = 200, CROWD = 1000, ORDERED = 100 };
#endif

/* --- many --- */

struct turns {
	ATOMIC(int) n;
};

struct member {
	int ends[2];
	int n; /* which one it is */
	ssize_t rc;
	struct turns *turns;
	int turn; /* when it had its byte */
};

static void *member_main(void *arg)
{
	struct member *m = arg;
	char c;

	m->rc = piom_read(m->ends[0], &c, 1);
	m->turn = fetch_add_relaxed(&m->turns->n, 1);
	return NULL;
}

/*
 * What comes in reverse order ends the waits in that order: those of the first,
 * each of which is waited for.
 */
static void reverse(void)
{
	struct member *m = calloc(CROWD, sizeof(*m));
	struct thread *t = calloc(CROWD, sizeof(*t));
	struct turns turns = { ATOMIC_INIT(0) };
	int before = kernel_threads(), most = before;

	for (int i = 0; i < CROWD; i++) {
		m[i].turns = &turns;
		i % 2 ? open_pipe(m[i].ends) : open_sockets(m[i].ends);
		t[i] = begin(false, member_main, &m[i]);
	}
	give_time();
	for (int i = CROWD - 1; i >= 0; i--) {
		CHECK_INT(piom_write(m[i].ends[1], "x", 1), 1);
		if (CROWD - i > ORDERED)
			continue;
		if (kernel_threads() > most)
			most = kernel_threads();
		UNTIL(load_relaxed(&turns.n) == CROWD - i);
	}
	for (int i = 0; i < CROWD; i++) {
		end(t[i]);
		CHECK_INT(m[i].rc, 1);
		if (CROWD - i <= ORDERED)
			CHECK_INT(m[i].turn, CROWD - 1 - i);
		close_both(m[i].ends);
	}
	printf("# %d kernel threads, %d at first\n", most, before);
	/* Helpers of marcel's may have come, but none for each. */
	CHECK(most <= before + CROWD / 4);
	free(t);
	free(m);
}

TEST(a_thousand_threads_wait_without_kernel_threads)
{
	static const struct mode some[] = {
		{ 1, "marcel", "auto", "20" },
		{ 4, "marcel", "auto", "20" },
		{ 4, "none", "auto", "20" },
	};

	WITH_ALL(some, reverse);
}

/* --- no wait is lost --- */

struct player {
	int in, out, rounds;
	bool fair;
	uint32_t seed;
};

static void pause_at_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	for (uint32_t n = *seed >> 16; n % 8 != 0; n--)
		n % 16 == 1 ? piom_poll() : marcel_yield();
}

static void *play(void *arg)
{
	struct player *p = arg;
	unsigned char c;

	for (int i = 0; i < p->rounds; i++) {
		pause_at_random(&p->seed);
		if (piom_read(p->in, &c, 1) != 1 || c != (unsigned char)i)
			return NULL;
		pause_at_random(&p->seed);
		if (piom_write(p->out, &c, 1) != 1)
			return NULL;
	}
	p->fair = true;
	return NULL;
}

/* Rings of threads of both kinds, each with one token. */
static void rings(void)
{
	enum { RINGS = 5, SEATS = 4 };
	struct player p[RINGS][SEATS];
	struct thread t[RINGS][SEATS];
	int ends[RINGS][SEATS + 1][2];
	unsigned char c;

	for (int r = 0; r < RINGS; r++)
		for (int s = 0; s <= SEATS; s++)
			r % 2 ? open_pipe(ends[r][s])
			      : open_sockets(ends[r][s]);
	for (int r = 0; r < RINGS; r++)
		for (int s = 0; s < SEATS; s++) {
			p[r][s] = (struct player){ ends[r][s][0],
						   ends[r][s + 1][1],
						   ROUNDS / 20, false,
						   (uint32_t)check_random() };
			t[r][s] = begin(r == 0 && s == 0, play, &p[r][s]);
		}
	for (int i = 0; i < ROUNDS / 20; i++) {
		c = (unsigned char)i;
		for (int r = 0; r < RINGS; r++)
			CHECK_INT(piom_write(ends[r][0][1], &c, 1), 1);
		for (int r = 0; r < RINGS; r++) {
			CHECK_INT(piom_read(ends[r][SEATS][0], &c, 1), 1);
			CHECK_INT(c, (unsigned char)i);
		}
	}
	for (int r = 0; r < RINGS; r++)
		for (int s = 0; s < SEATS; s++) {
			end(t[r][s]);
			CHECK(p[r][s].fair);
		}
	for (int r = 0; r < RINGS; r++)
		for (int s = 0; s <= SEATS; s++)
			close_both(ends[r][s]);
}

TEST(no_byte_is_waited_for_in_vain)
{
	WITH_ALL(every_mode, rings);
}

struct team {
	int fd;
	int rounds;
	ATOMIC(int) had;
	ATOMIC(int) over;
};

static void *take_bytes(void *arg)
{
	struct team *team = arg;
	char c;

	while (piom_read(team->fd, &c, 1) == 1)
		fetch_add_relaxed(&team->had, 1);
	fetch_add_relaxed(&team->over, 1);
	return NULL;
}

/* One event may be several bytes, and somebody may be about to wait. */
static void teams(void)
{
	enum { READERS = 3 };
	struct team team = { .rounds = 0 };
	struct thread t[READERS];
	int ends[2], sent = 0;
	uint32_t seed = (uint32_t)check_random();

	open_sockets(ends);
	team.fd = ends[0];
	for (int i = 0; i < READERS; i++)
		t[i] = begin(false, take_bytes, &team);
	for (int i = 0; i < ROUNDS / 4; i++) {
		int n = 1 + i % READERS;

		CHECK_INT(piom_write(ends[1], "xyz", (size_t)n), n);
		sent += n;
		pause_at_random(&seed);
		if (i % 4 == 0)
			UNTIL(load_relaxed(&team.had) == sent);
	}
	CHECK_INT(piom_close(ends[1]), 0);
	for (int i = 0; i < READERS; i++)
		end(t[i]);
	CHECK_INT(load_relaxed(&team.had), sent);
	CHECK_INT(piom_close(ends[0]), 0);
}

TEST(several_wait_for_one_descriptor)
{
	WITH_ALL(every_mode, teams);
}

static void *copy_back(void *arg)
{
	struct team *team = arg;
	char buf[4096];
	ssize_t n;

	while ((n = piom_read(team->fd, buf, sizeof(buf))) > 0)
		if (piom_write(team->fd, buf, (size_t)n) != n)
			break;
	return NULL;
}

static void *send_all(void *arg)
{
	struct team *team = arg;
	char *all = calloc(1, 1 << 20);

	if (piom_write(team->fd, all, 1 << 20) == 1 << 20)
		shutdown(team->fd, SHUT_WR);
	free(all);
	return NULL;
}

/* One socket, whose buffers fill in both directions. */
static void both_ways(void)
{
	struct team far = { .rounds = 0 }, near = { .rounds = 0 };
	struct thread t[2];
	char buf[4096];
	int ends[2];
	ssize_t n, all = 0;

	open_sockets(ends);
	near.fd = ends[0];
	far.fd = ends[1];
	t[0] = begin(false, copy_back, &far);
	t[1] = begin(false, send_all, &near);
	while (all < 1 << 20 && (n = piom_read(ends[0], buf, sizeof(buf))) > 0)
		all += n;
	CHECK_INT(all, 1 << 20);
	end(t[1]);
	end(t[0]);
	close_both(ends);
}

TEST(one_descriptor_is_read_and_written_at_once)
{
	WITH_ALL(every_mode, both_ways);
}

/* --- the end of a descriptor --- */

struct sleeper {
	int fd;
	ATOMIC(int) begun;
	int rc;
	short revents;
};

static void *sleep_reading(void *arg)
{
	struct sleeper *s = arg;
	char c;

	s->rc = (int)piom_read(s->fd, &c, 1);
	return NULL;
}

static void *sleep_writing(void *arg)
{
	struct sleeper *s = arg;
	char *all = calloc(1, 1 << 20);

	while ((s->rc = (int)piom_write(s->fd, all, 1 << 20)) > 0)
		;
	free(all);
	return NULL;
}

static void *sleep_polling(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = { .fd = s->fd, .events = POLLPRI };

	s->rc = piom_wait_fds(&p, 1, -1);
	s->revents = p.revents;
	return NULL;
}

static void *sleep_accepting(void *arg)
{
	struct sleeper *s = arg;

	s->rc = piom_accept(s->fd, NULL, NULL, 0);
	return NULL;
}

/* It waits for the descriptor. Nobody else may leave a wait meanwhile. */
static struct thread asleep(void *(*fn)(void *), struct sleeper *s, int fd)
{
	uint32_t before = piom_io_nwaits();
	struct thread t;

	s->fd = fd;
	t = begin(false, fn, s);
	UNTIL(piom_io_nwaits() > before);
	return t;
}

static void closed(void)
{
	struct sleeper s[4];
	struct thread t[4];
	struct sockaddr_in addr;
	int ends[2], other, fd = listen_any(&addr, SOCK_NONBLOCK);

	open_sockets(ends);
	other = dup(ends[0]); /* the file stays */
	t[0] = asleep(sleep_reading, &s[0], ends[0]);
	t[1] = asleep(sleep_writing, &s[1], ends[0]);
	t[2] = asleep(sleep_polling, &s[2], ends[0]);
	t[3] = asleep(sleep_accepting, &s[3], fd);
	CHECK_INT(piom_close(ends[0]), 0);
	CHECK_INT(piom_close(fd), 0);
	for (int i = 0; i < 4; i++)
		end(t[i]);
	CHECK_INT(s[0].rc, -EBADF);
	CHECK_INT(s[1].rc, -EBADF);
	CHECK_INT(s[2].rc, 1);
	CHECK_INT(s[2].revents, POLLNVAL);
	CHECK_INT(s[3].rc, -EBADF);
	CHECK_INT(piom_write(ends[1], "x", 1), 1);
	CHECK_INT(piom_close(other), 0);
	CHECK_INT(piom_close(ends[1]), 0);
}

TEST(who_waits_for_what_is_closed_is_told)
{
	WITH_ALL(every_mode, closed);
}

/* The number comes to name another file, without a word to us. */
static void reused(void)
{
	struct sleeper old, new;
	struct thread t_old, t_new;
	int a[2], b[2], other;

	for (int keep = 0; keep < 2; keep++) {
		open_sockets(a);
		open_sockets(b);
		t_old = asleep(sleep_reading, &old, a[0]);
		other = keep ? dup(a[0]) : -1;
		CHECK_INT(dup2(b[0], a[0]), a[0]);
		new.fd = a[0];
		t_new = begin(false, sleep_reading, &new);
		end(t_old); /* by the other's wait */
		CHECK_INT(old.rc, -EBADF);
		/* What the old file has to say concerns nobody. */
		if (keep)
			CHECK_INT(piom_write(a[1], "x", 1), 1);
		give_time();
		CHECK_INT(piom_write(b[1], "x", 1), 1);
		end(t_new);
		CHECK_INT(new.rc, 1);
		if (keep)
			CHECK_INT(close(other), 0);
		close_both(a);
		close_both(b);
	}
}

TEST(a_number_that_names_another_file_is_another_descriptor)
{
	WITH_ALL(every_mode, reused);
}

static void short_lives(void)
{
	for (int i = 0; i < ROUNDS / 4; i++) {
		struct sleeper s;
		struct thread t;
		int ends[2];

		i % 2 ? open_pipe(ends) : open_sockets(ends);
		s.fd = ends[0];
		t = begin(false, sleep_reading, &s);
		for (int k = 0; k < i % 5; k++)
			UNTIL(true);
		CHECK_INT(piom_write(ends[1], "x", 1), 1);
		end(t);
		CHECK_INT(s.rc, 1);
		close(ends[0]);
		close(ends[1]);
	}
}

TEST(numbers_are_used_again_and_again)
{
	WITH_ALL(every_mode, short_lives);
}

/* --- several descriptors, and time --- */

static void several(void)
{
	enum { N = 20 };
	struct pollfd p[N];
	int ends[N][2];

	for (int i = 0; i < N; i++) {
		i % 2 ? open_pipe(ends[i]) : open_sockets(ends[i]);
		p[i] = (struct pollfd){ .fd = ends[i][0], .events = POLLIN };
	}
	p[3].fd = -1;
	CHECK_INT(piom_wait_fds(p, N, 0), 0);
	CHECK_INT(piom_wait_fds(p, N, 1000000), 0);
	for (int i = 0; i < ROUNDS / 10; i++) {
		int k = i % N;
		struct sleeper s = { .fd = ends[k][1] };
		struct thread t = begin(i % 20 == 1, sleep_writing, &s);
		int n;

		k = k == 3 ? -1 : k;
		n = piom_wait_fds(p, N, k < 0 ? 100000 : -1);
		CHECK_INT(n, k >= 0);
		for (int j = 0; j < N; j++)
			CHECK_INT(p[j].revents, j == k ? POLLIN : 0);
		CHECK_INT(piom_close(ends[i % N][0]), 0);
		end(t);
		CHECK_INT(s.rc, -EPIPE);
		CHECK_INT(piom_close(ends[i % N][1]), 0);
		open_sockets(ends[i % N]);
		if (k >= 0)
			p[k].fd = ends[k][0];
	}
	for (int i = 0; i < N; i++)
		close_both(ends[i]);
}

TEST(the_first_of_several_ends_a_wait)
{
	WITH_ALL(every_mode, several);
}

/* --- files, of which epoll tells nothing --- */

struct beside {
	struct pollfd p[3]; /* a file, a file, an end of a pipe */
	ATOMIC(int) begun;
	int rc;
};

static void *wait_beside_files(void *arg)
{
	struct beside *b = arg;

	store_relaxed(&b->begun, 1);
	b->rc = piom_wait_fds(b->p, 3, -1);
	return NULL;
}

static void beside_files(void)
{
	char name[] = "/tmp/piom-wait-XXXXXX";
	int file = mkstemp(name), ends[2];
	struct beside b;
	struct thread t;

	CHECK(file >= 0);
	unlink(name);
	for (int gone = 0; gone < 2; gone++) {
		open_pipe(ends);
		b = (struct beside){ .p = { { file, POLLPRI, 0 },
					    { file, 0, 0 },
					    { ends[0], POLLIN, 0 } } };
		t = begin(false, wait_beside_files, &b);
		UNTIL(load_relaxed(&b.begun));
		give_time();
		if (gone)
			CHECK_INT(piom_close(ends[0]), 0);
		else
			CHECK_INT(piom_write(ends[1], "x", 1), 1);
		end(t);
		CHECK_INT(b.rc, 1);
		CHECK_INT(b.p[0].revents, 0);
		CHECK_INT(b.p[1].revents, 0);
		CHECK_INT(b.p[2].revents, gone ? POLLNVAL : POLLIN);
		if (!gone)
			close(ends[0]);
		close(ends[1]);
	}
	close(file);
}

/* There is no tick: who does not sleep keeps his VP. */
TEST(a_file_that_has_nothing_to_tell_is_slept_over)
{
	static const struct mode one[] = { { 1, "marcel", "auto", "0" } };

	setenv("MARCEL_TIMESLICE_US", "0", 1);
	WITH_ALL(one, beside_files);
	unsetenv("MARCEL_TIMESLICE_US");
}

static void *time_out(void *arg)
{
	struct team *team = arg;
	struct pollfd p = { .fd = team->fd, .events = POLLIN };
	int n = 0;

	for (int i = 0; i < team->rounds; i++) {
		int rc = piom_wait_fds(&p, 1, i % 50 * 1000);
		char c;

		if (rc > 0)
			n += piom_read(team->fd, &c, 1) == 1;
	}
	/* The last ones are waited for in any case. */
	while (n < team->rounds && piom_wait_fds(&p, 1, -1) == 1) {
		char buf[64];

		n += (int)piom_read(team->fd, buf, sizeof(buf));
	}
	store_relaxed(&team->had, n);
	return NULL;
}

/* Waits that end by time and by an event at about the same moment. */
static void time_outs(void)
{
	struct team team[2] = { { .rounds = ROUNDS / 2 },
				{ .rounds = ROUNDS / 2 } };
	struct thread t[2];
	int ends[2][2];
	uint32_t seed = (uint32_t)check_random();

	for (int i = 0; i < 2; i++) {
		open_sockets(ends[i]);
		team[i].fd = ends[i][0];
		t[i] = begin(i, time_out, &team[i]);
	}
	for (int i = 0; i < ROUNDS / 2; i++) {
		pause_at_random(&seed);
		CHECK_INT(piom_write(ends[0][1], "x", 1), 1);
		CHECK_INT(piom_write(ends[1][1], "x", 1), 1);
	}
	for (int i = 0; i < 2; i++) {
		end(t[i]);
		CHECK_INT(load_relaxed(&team[i].had), ROUNDS / 2);
		close_both(ends[i]);
	}
}

TEST(a_wait_ends_in_time_or_by_an_event)
{
	WITH_ALL(every_mode, time_outs);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleeps(void)
{
	uint64_t start = now_ns();

	CHECK_INT(piom_sleep(3000000), 0);
	CHECK(now_ns() - start >= 3000000);
	start = now_ns();
	CHECK_INT(piom_wait_fds(NULL, 0, 3000000), 0);
	CHECK(now_ns() - start >= 3000000);
}

TEST(a_sleep_is_not_too_short)
{
	WITH_ALL(every_mode, sleeps);
}

/* --- pioman and its set --- */

static void quiet_again(void)
{
	struct sleeper s;
	struct thread t;
	int ends[2];

	open_pipe(ends);
	t = asleep(sleep_reading, &s, ends[0]);
	CHECK_INT(piom_write(ends[1], "x", 1), 1);
	end(t);
	UNTIL(!piom_poll_is_pending(0));
	close_both(ends);
}

TEST(where_nobody_waits_nobody_is_kept_awake)
{
	WITH_ALL(every_mode, quiet_again);
}

static enum piom_ltask_result stay(void *arg)
{
	return arg == NULL ? PIOM_LTASK_QUIET : PIOM_LTASK_DONE;
}

static void goes_on(void)
{
	struct piom_ltask task;
	struct sleeper s;
	struct thread t;
	int ends[2];

	open_pipe(ends);
	t = asleep(sleep_reading, &s, ends[0]);
	CHECK_INT(piom_exit(), -EBUSY);
	piom_ltask_init(&task, stay, NULL, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&task);
	CHECK_INT(piom_write(ends[1], "x", 1), 1);
	end(t);
	CHECK_INT(piom_exit(), -EBUSY);
	t = asleep(sleep_reading, &s, ends[0]);
	CHECK_INT(piom_write(ends[1], "x", 1), 1);
	end(t);
	CHECK_INT(s.rc, 1);
	piom_ltask_cancel(&task);
	close_both(ends);
}

TEST(after_an_end_that_was_refused_waits_go_on)
{
	WITH_ALL(engine_marcel, goes_on);
}

/* A child waits in a set of its own; what is left of the parent's is nothing.
 */
static int child_main(int parents)
{
	struct sleeper s;
	struct thread t;
	int ends[2];
	char c;

	if (piom_read(parents, &c, 1) != -EPERM)
		return 1;
	if (marcel_init(NULL) != 0 || piom_init() != 0)
		return 2;
	open_pipe(ends);
	ends[0] = dup2(ends[0], parents); /* the next one has its number */
	t = asleep(sleep_reading, &s, ends[0]);
	if (ends[0] != parents || piom_write(ends[1], "x", 1) != 1)
		return 3;
	end(t);
	return s.rc == 1 ? 0 : 4;
}

static void forked(void)
{
	struct sleeper s;
	struct thread t;
	int ends[2], status;
	pid_t child;

	open_pipe(ends);
	t = asleep(sleep_reading, &s, ends[0]);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(child_main(ends[0]));
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	CHECK_INT(piom_write(ends[1], "x", 1), 1);
	end(t);
	CHECK_INT(s.rc, 1);
	close_both(ends);
}

TEST(a_child_of_fork_waits_for_itself)
{
	if (BASE_TSAN)
		check_skip("TSan has no threads in a child");
	WITH_ALL(engine_marcel, forked);
}

static void *read_when_told(void *arg)
{
	struct sleeper *s = arg;

	while (!load_acquire(&s->begun))
		marcel_yield();
	return sleep_reading(arg);
}

static void cancelled(void)
{
	struct sleeper s = { .rc = 0 };
	marcel_t t;
	void *result;
	int ends[2];

	open_pipe(ends);
	s.fd = ends[0];
	CHECK_INT(marcel_create(&t, NULL, read_when_told, &s), 0);
	CHECK_INT(marcel_cancel(t), 0);
	store_release(&s.begun, 1);
	CHECK_INT(marcel_join(t, &result), 0);
	CHECK_PTR(result, MARCEL_CANCELED);
	close_both(ends);
}

TEST(a_thread_that_is_cancelled_does_not_begin_to_wait)
{
	WITH_ALL(engine_marcel, cancelled);
}
