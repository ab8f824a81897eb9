/*
 * drivers/tcp: only processes of the job get in, and whatever comes from
 * outside or inside, at most its connection ends. Rank 0 has the driver; rank
 * 1 is the stranger, with bare sockets.
 */
#include "bare.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

extern const struct nm_driver nm_driver_tcp;

/*
 * Who has connected only to receive calls after a while, too, if nobody has
 * called him: he would refuse a call that a test makes by hand and late.
 */
__attribute__((constructor)) static void nobody_calls_unasked(void)
{
	job_connects_late = true;
}

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

/* Rank 0 works while rank 1 does its thing; then they talk as friends. */
static void besiege(void (*attack)(struct job *), struct job *j)
{
	j->recv = ignore;
	if (j->rank == 1)
		attack(j);
	job_meet(j);
	JOB_CHECK(j, j->deaths[1 - j->rank] == 0);
	job_send(j, 1 - j->rank, 0, 1, 1000);
	while (j->ngot < 1 || !job_idle(j))
		job_progress(j);
}

static int dial(struct job *j)
{
	return bare_dial_rank(j, 0);
}

/* The other side hangs up; what it says before does not matter. */
static void expect_end(struct job *j, int fd)
{
	char waste[256];

	while (recv(fd, waste, sizeof(waste), 0) > 0)
		;
	close(fd);
}

static void say(int fd, const struct tcp_hello *h)
{
	unsigned char text[TCP_HELLO];

	nm_tcp_hello_put(text, h);
	CHECK(send(fd, text, sizeof(text), MSG_NOSIGNAL) == sizeof(text));
}

static bool hear(int fd, struct tcp_hello *h)
{
	unsigned char text[TCP_HELLO];

	return recv(fd, text, sizeof(text), MSG_WAITALL) == sizeof(text) &&
	       nm_tcp_hello_get(text, h) == NULL;
}

/* CALL and ASK as rank 1. */
static void call(struct job *j, int fd, struct tcp_greeting *g,
		 struct tcp_hello *ask)
{
	struct tcp_hello h = { .kind = TCP_CALL, .from = 1, .to = 0 };

	memset(g, 0, sizeof(*g));
	g->caller = 1;
	memset(g->caller_nonce, 'x', TCP_NONCE);
	memcpy(h.nonce, g->caller_nonce, TCP_NONCE);
	say(fd, &h);
	JOB_CHECK(j, hear(fd, ask) && ask->kind == TCP_ASK);
	JOB_CHECK(j, ask->from == 0 && ask->to == 1);
	memcpy(g->callee_nonce, ask->nonce, TCP_NONCE);
	JOB_CHECK(j,
		  ask->proof == nm_tcp_hello_proof(j->info.key, g, TCP_ASK, 0));
}

/* A connection made by the rules, on which anything can be sent. */
static int get_in(struct job *j)
{
	struct tcp_greeting g;
	struct tcp_hello h;
	int fd = dial(j);

	call(j, fd, &g, &h);
	h.kind = TCP_PROOF;
	h.from = 1;
	h.to = 0;
	h.proof = nm_tcp_hello_proof(j->info.key, &g, TCP_PROOF, 0);
	say(fd, &h);
	JOB_CHECK(j, hear(fd, &h) && h.kind == TCP_VERDICT && h.accept == 1);
	JOB_CHECK(j, h.proof == nm_tcp_hello_proof(j->info.key, &g, TCP_VERDICT,
						   1));
	return fd;
}

/* --- outside --- */

static void garbage(struct job *j)
{
	unsigned char text[1000];

	for (int i = 0; i < 20; i++) {
		int fd = dial(j);

		for (unsigned k = 0; k < sizeof(text); k++)
			text[k] = (unsigned char)check_random();
		if (send(fd, text, sizeof(text), MSG_NOSIGNAL) > 0)
			expect_end(j, fd);
	}
}

static void garbage_body(struct job *j)
{
	besiege(garbage, j);
}

TEST(garbage_ends_its_connection_only)
{
	job_run(&nm_driver_tcp, 2, garbage_body, NULL);
}

static void wrong_key(struct job *j)
{
	unsigned char key[NM_BOOT_KEY_BYTES] = "another key";
	struct tcp_greeting g;
	struct tcp_hello h;
	int fd = dial(j);

	call(j, fd, &g, &h);
	h.kind = TCP_PROOF;
	h.from = 1;
	h.to = 0;
	h.proof = nm_tcp_hello_proof(key, &g, TCP_PROOF, 0);
	say(fd, &h);
	JOB_CHECK(j, !hear(fd, &h));
	close(fd);
}

static void wrong_key_body(struct job *j)
{
	besiege(wrong_key, j);
}

TEST(who_does_not_know_the_key_is_refused)
{
	job_run(&nm_driver_tcp, 2, wrong_key_body, NULL);
}

/* The callee's own proof, an old proof, a proof for another rank. */
static void borrowed(struct job *j)
{
	struct tcp_greeting g;
	struct tcp_hello h;

	for (int kind = 0; kind < 3; kind++) {
		int fd = dial(j);
		uint64_t proof;

		call(j, fd, &g, &h);
		proof = h.proof;
		if (kind == 1) {
			g.callee_nonce[3] ^= 1;
			proof = nm_tcp_hello_proof(j->info.key, &g, TCP_PROOF,
						   0);
		} else if (kind == 2) {
			g.caller = 2;
			proof = nm_tcp_hello_proof(j->info.key, &g, TCP_PROOF,
						   0);
		}
		h.kind = TCP_PROOF;
		h.from = 1;
		h.to = 0;
		h.proof = proof;
		say(fd, &h);
		JOB_CHECK(j, !hear(fd, &h));
		close(fd);
	}
}

static void borrowed_body(struct job *j)
{
	besiege(borrowed, j);
}

TEST(a_proof_is_good_once_and_for_one_purpose)
{
	job_run(&nm_driver_tcp, 2, borrowed_body, NULL);
}

static void impossible(struct job *j)
{
	static const struct tcp_hello calls[] = {
		{ .kind = TCP_CALL, .from = 7, .to = 0 },
		{ .kind = TCP_CALL, .from = 0, .to = 0 },
		{ .kind = TCP_CALL, .from = 1, .to = 1 },
		{ .kind = TCP_CALL, .from = 0xffffffff, .to = 0 },
		{ .kind = TCP_PROOF, .from = 1, .to = 0 },
		{ .kind = TCP_VERDICT, .from = 1, .to = 0, .accept = 1 },
		{ .kind = 99, .from = 1, .to = 0 },
	};

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int fd = dial(j);

		say(fd, &calls[i]);
		expect_end(j, fd);
	}
}

static void impossible_body(struct job *j)
{
	besiege(impossible, j);
}

TEST(callers_that_cannot_be_are_refused)
{
	job_run(&nm_driver_tcp, 2, impossible_body, NULL);
}

/* Half a hello, and then nothing: the deadline ends it, not the caller. */
static void slow(struct job *j)
{
	struct tcp_hello h = { .kind = TCP_CALL, .from = 1, .to = 0 };
	int silent = dial(j), half = dial(j), third = dial(j);
	unsigned char text[TCP_HELLO];

	/* Where this process is late, its end has come before. */
	nm_tcp_hello_put(text, &h);
	send(half, "nmtc", 4, MSG_NOSIGNAL);
	send(third, text, sizeof(text), MSG_NOSIGNAL);
	expect_end(j, silent);
	expect_end(j, half);
	expect_end(j, third);
	/* Truncated. */
	half = dial(j);
	send(half, "nmtc\1", 5, MSG_NOSIGNAL);
	close(half);
}

static void slow_body(struct job *j)
{
	besiege(slow, j);
}

TEST(a_slow_or_truncated_hello_ends_at_its_deadline)
{
	setenv("NMAD_TCP_TIMEOUT_MS", "1000", 1);
	job_run(&nm_driver_tcp, 2, slow_body, NULL);
	unsetenv("NMAD_TCP_TIMEOUT_MS");
}

enum { CROWD = 150, AWAY_TIMEOUT_MS = 100 };

/*
 * More callers than there are entries, and than rank 0 may have descriptors;
 * all silent, and they stay.
 */
static void flood(struct job *j)
{
	struct rlimit limit;
	int *fds = j->arg;

	JOB_CHECK(j, getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < CROWD; i++)
		fds[i] = dial(j);
}

static void flood_body(struct job *j)
{
	static const struct rlimit few = { .rlim_cur = 100, .rlim_max = 100 };
	int fds[CROWD];

	j->arg = fds;
	if (j->rank == 0)
		JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &few) == 0);
	besiege(flood, j);
	if (j->rank == 1)
		for (int i = 0; i < CROWD; i++)
			close(fds[i]);
}

TEST(a_crowd_of_silent_callers_does_not_keep_the_job_out)
{
	job_run(&nm_driver_tcp, 2, flood_body, NULL);
}

/* --- inside: the key is right, the frames are not --- */

struct frame {
	struct tcp_head head;
	unsigned bytes; /* of body that are sent */
};

static const struct frame bad[] = {
	{ { .length = 0xffffffff, .kind = TCP_PACKET }, 100 },
	{ { .length = TCP_MAX_SMALL + 1, .kind = TCP_PACKET }, 100 },
	{ { .length = 10, .kind = 0 }, 10 },
	{ { .length = 10, .kind = 77 }, 10 },
	{ { .length = 10, .kind = TCP_PIECES, .window = 0 }, 10 },
	{ { .length = 10, .kind = TCP_PIECES, .window = 31 }, 10 },
	{ { .length = 10, .kind = TCP_PIECES, .window = 32 }, 10 },
	{ { .length = 10, .kind = TCP_PIECES, .window = 0xffffffff }, 10 },
	{ { .length = 10, .kind = TCP_BYE }, 10 },
};

static void bad_body(struct job *j)
{
	const struct frame *f = j->arg;

	j->recv = ignore;
	if (j->rank == 1) {
		unsigned char text[TCP_HEAD + 100] = { 0 };
		int fd = get_in(j);

		nm_tcp_head_put(text, &f->head);
		JOB_CHECK(j, send(fd, text, TCP_HEAD + f->bytes, 0) > 0);
		expect_end(j, fd);
		return;
	}
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j, j->death_error == -EPROTO);
}

TEST(nonsense_from_a_friend_ends_the_link_and_names_it)
{
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		job_run(&nm_driver_tcp, 2, bad_body, (void *)&bad[i]);
}

/* --- a friend whose kernel resets the connection: its host has booted --- */

static void reset_body(struct job *j)
{
	static const struct linger none = { .l_onoff = 1 };

	j->recv = ignore;
	if (j->rank == 1) {
		int fd = get_in(j);

		JOB_CHECK(j, setsockopt(fd, SOL_SOCKET, SO_LINGER, &none,
					sizeof(none)) == 0);
		close(fd);
		return;
	}
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j, j->death_error == -ECONNRESET);
}

TEST(a_reset_of_the_connection_is_the_death_of_the_peer)
{
	job_run(&nm_driver_tcp, 2, reset_body, NULL);
}

/* --- a friend who is busy --- */

/* Rank 1 makes no progress until rank 0 has waited too long three times. */
static void busy_body(struct job *j)
{
	int *wake = j->arg;
	uint64_t end = nm_tcp_now() + 300;
	char c = 0;

	j->recv = ignore;
	job_meet(j);
	if (j->rank == 1) {
		JOB_CHECK(j, read(wake[0], &c, 1) == 1);
	} else {
		job_send(j, 1, 0, 1, 100);
		while (nm_tcp_now() < end)
			job_progress(j);
		JOB_CHECK(j, j->deaths[1] == 0);
		JOB_CHECK(j, write(wake[1], &c, 1) == 1);
	}
	while (j->ngot < (unsigned)j->rank || !job_idle(j))
		job_progress(j);
	job_meet(j);
	JOB_CHECK(j, j->deaths[1 - j->rank] == 0);
}

TEST(who_has_taken_a_call_may_take_his_time)
{
	int wake[2];

	CHECK_INT(pipe(wake), 0);
	setenv("NMAD_TCP_TIMEOUT_MS", "100", 1);
	job_run(&nm_driver_tcp, 2, busy_body, wake);
	unsetenv("NMAD_TCP_TIMEOUT_MS");
	close(wake[0]);
	close(wake[1]);
}

/* --- a friend who wants to call himself, and does not --- */

/* As a callee who has a call of its own on its way. */
static void refuse(struct job *j, int fd)
{
	struct tcp_greeting g = { .caller = 0, .callee = 1 };
	struct tcp_hello h;

	JOB_CHECK(j, hear(fd, &h) && h.kind == TCP_CALL && h.from == 0);
	memcpy(g.caller_nonce, h.nonce, TCP_NONCE);
	memset(g.callee_nonce, 'y', TCP_NONCE);
	h = (struct tcp_hello){ .kind = TCP_ASK, .from = 1, .to = 0 };
	memcpy(h.nonce, g.callee_nonce, TCP_NONCE);
	h.proof = nm_tcp_hello_proof(j->info.key, &g, TCP_ASK, 0);
	say(fd, &h);
	JOB_CHECK(j, hear(fd, &h) && h.kind == TCP_PROOF);
	h = (struct tcp_hello){ .kind = TCP_VERDICT, .from = 1, .to = 0 };
	h.proof = nm_tcp_hello_proof(j->info.key, &g, TCP_VERDICT, 0);
	say(fd, &h);
	close(fd);
}

/* Rank 1 refuses, or goes away in mid-hello; it works when called again. */
static void yields_body(struct job *j)
{
	const struct tcp *tcp = j->rail.drv;
	struct pollfd p = { .fd = tcp->listener.fd, .events = POLLIN };
	const bool *refuses = j->arg;
	int fd;

	j->recv = ignore;
	if (j->rank == 0) {
		job_send(j, 1, 0, 1, 100);
	} else {
		JOB_CHECK(j, poll(&p, 1, -1) == 1);
		fd = accept(p.fd, NULL, NULL);
		JOB_CHECK(j, fd >= 0);
		if (*refuses) {
			refuse(j, fd);
		} else {
			struct tcp_hello h;

			JOB_CHECK(j, hear(fd, &h) && h.kind == TCP_CALL);
			JOB_CHECK(j, send(fd, "nmtc", 4, MSG_NOSIGNAL) == 4);
			close(fd);
		}
		JOB_CHECK(j, poll(&p, 1, -1) == 1);
	}
	while (j->ngot < (unsigned)j->rank || !job_idle(j))
		job_progress(j);
	JOB_CHECK(j, j->deaths[1 - j->rank] == 0);
}

TEST(who_has_refused_a_call_or_left_it_is_called_again)
{
	bool refuses = true;

	setenv("NMAD_TCP_TIMEOUT_MS", "300", 1);
	job_run(&nm_driver_tcp, 2, yields_body, &refuses);
	refuses = false;
	job_run(&nm_driver_tcp, 2, yields_body, &refuses);
	unsetenv("NMAD_TCP_TIMEOUT_MS");
}

/* --- who is away in the middle of his own call --- */

static void tell(struct job *j, const int *ends)
{
	JOB_CHECK(j, write(ends[j->rank], "", 1) == 1);
}

static void await(struct job *j, const int *ends)
{
	char c;

	JOB_CHECK(j, read(ends[j->rank], &c, 1) == 1);
}

/* Rank 1 takes the call, and hangs up when rank 0 is not there to see it. */
static void away_body(struct job *j)
{
	const struct tcp *tcp = j->rail.drv;
	struct pollfd p = { .fd = tcp->listener.fd, .events = POLLIN };
	const int *ends = j->arg;
	struct tcp_hello h;
	uint64_t back;
	int fd;

	j->recv = ignore;
	if (j->rank == 0) {
		struct pollfd told = { .fd = ends[0], .events = POLLIN };

		job_send(j, 1, 0, 1, 100);
		while (poll(&told, 1, 0) == 0)
			job_progress(j);
		await(j, ends);
		tell(j, ends);
		await(j, ends);
		back = nm_tcp_now() + 2 * AWAY_TIMEOUT_MS;
		while (nm_tcp_now() < back)
			sched_yield();
	} else {
		JOB_CHECK(j, poll(&p, 1, -1) == 1);
		fd = accept(p.fd, NULL, NULL);
		JOB_CHECK(j, fd >= 0);
		JOB_CHECK(j, hear(fd, &h) && h.kind == TCP_CALL);
		tell(j, ends);
		await(j, ends);
		close(fd);
		tell(j, ends);
	}
	while (j->ngot < (unsigned)j->rank || !job_idle(j))
		job_progress(j);
	JOB_CHECK(j, j->deaths[1 - j->rank] == 0);
}

TEST(who_was_stopped_in_the_middle_of_his_call_calls_again)
{
	char ms[16];
	int ends[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	snprintf(ms, sizeof(ms), "%d", AWAY_TIMEOUT_MS);
	setenv("NMAD_TCP_TIMEOUT_MS", ms, 1);
	job_run(&nm_driver_tcp, 2, away_body, ends);
	unsetenv("NMAD_TCP_TIMEOUT_MS");
	close(ends[0]);
	close(ends[1]);
}

/* --- two calls at once --- */

static void both_body(struct job *j)
{
	j->recv = ignore;
	job_meet(j);
	for (int r = 0; r < j->size; r++)
		if (r != j->rank)
			for (uint64_t i = 0; i < 10; i++)
				job_send(j, r, 0, i, 100);
	while (j->ngot < 10u * (unsigned)(j->size - 1) || !job_idle(j))
		job_progress(j);
	for (int r = 0; r < j->size; r++)
		JOB_CHECK(j, j->deaths[r] == 0);
}

TEST(when_all_call_each_other_at_once_all_get_through)
{
	for (int i = 0; i < 40; i++)
		job_run(&nm_driver_tcp, 2 + i % 3, both_body, NULL);
}
