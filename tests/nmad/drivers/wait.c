/*
 * Every driver, waiting in the kernel: what comes after arm() has answered 0
 * makes the rail's descriptor readable, and what came before is not slept over.
 * DRIVER is chosen by the build, and what follows its name in NMAD_DRIVER comes
 * from the environment's SPEC.
 *
 * TEST_ROUNDS: how many messages are sent around the moment of falling asleep.
 */
#include "../fewer.h"
#include "job.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct nm_driver DRIVER;

/* Seen by all processes of a job. */
static struct {
	ATOMIC(int) asleep[JOB_MAX]; /* waiting for this message */
	ATOMIC(int) sent, woken;
} * seen;

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

static void check_bytes(struct job *j, int from, const struct job_msg *m,
			struct nm_pkt_in *in)
{
	JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
}

/* A job whose processes have spoken with each other and are quiet. */
static void run(int n, void (*body)(struct job *))
{
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(seen != MAP_FAILED);
	job_run(&DRIVER, n, body, NULL);
	munmap(seen, sizeof(*seen));
}

static void get_to_know(struct job *j)
{
	j->recv = ignore;
	for (int r = 0; r < j->size; r++)
		if (r != j->rank)
			job_send(j, r, 0, 1, 10);
	while (j->ngot < (uint64_t)j->size - 1 || !job_idle(j))
		job_progress(j);
	j->ngot = 0;
	j->recv = check_bytes;
	job_meet(j); /* polls: a peer that goes on may be heard already */
}

static bool is_readable(struct job *j, int ms)
{
	struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	JOB_CHECK(j, n >= 0 && (p.revents & ~POLLIN) == 0);
	return n == 1;
}

/* As core/rail.c: what was given to the driver must not need polls. */
static bool may_sleep(struct job *j)
{
	uint64_t before = j->nnews;

	j->rail.armed = false;
	j->rail.armed = (job_flushed(j) || (DRIVER.caps & NM_CAP_ROOM)) &&
			!DRIVER.is_busy(&j->rail) && DRIVER.arm(&j->rail) == 0;
	return j->rail.armed && j->nnews == before;
}

static void fall_asleep(struct job *j)
{
	while (!may_sleep(j))
		job_progress(j);
}

/* Until that many messages have come, asleep whenever that is possible. */
static void sleep_until(struct job *j, uint64_t n)
{
	while (job_progress(j), j->ngot < n) {
		if (!may_sleep(j))
			continue;
		store_release(&seen->asleep[j->rank], (int)n);
		JOB_CHECK(j, is_readable(j, -1));
	}
}

#define WAIT_FOR(word, value)                                                  \
	while (load_acquire(word) < (value))                                   \
	sched_yield()

static void send_all(struct job *j)
{
	while (!job_idle(j))
		job_progress(j);
}

/* --- what the descriptor says --- */

/* What is left from before may wake it, but not for ever. */
static void quiet_body(struct job *j)
{
	int tries = 0;

	get_to_know(j);
	if (j->rank == 1)
		return;
	do {
		JOB_CHECK(j, tries++ < 1000);
		fall_asleep(j);
	} while (is_readable(j, 0));
	CHECK_INT(j->ngot, 0);
}

TEST(where_nothing_comes_the_descriptor_is_not_readable)
{
	run(2, quiet_body);
}

static void wakes_body(struct job *j)
{
	enum { N = 300 };

	get_to_know(j);
	for (int i = 1; i <= N; i++) {
		if (j->rank == 0) {
			sleep_until(j, (uint64_t)i);
			continue;
		}
		WAIT_FOR(&seen->asleep[0], i);
		job_send(j, 0, 0, (uint64_t)i, (size_t)(i * 37) % 4000);
		send_all(j);
	}
	CHECK_INT(load_relaxed(&seen->asleep[0]), N);
}

TEST(a_packet_makes_the_descriptor_readable)
{
	run(2, wakes_body);
}

/* One poll() takes the packet up; until then nobody falls asleep over it. */
static void refused_body(struct job *j)
{
	enum { N = 100 };

	get_to_know(j);
	for (int i = 1; i <= N; i++) {
		if (j->rank == 1) {
			job_send(j, 0, 0, (uint64_t)i, 100);
			send_all(j);
			store_release(&seen->sent, i);
			WAIT_FOR(&seen->woken, i);
			continue;
		}
		WAIT_FOR(&seen->sent, i);
		if (!DRIVER.is_busy(&j->rail) && DRIVER.arm(&j->rail) == 0) {
			JOB_CHECK(j, !(DRIVER.caps & NM_CAP_NODE));
			JOB_CHECK(j, is_readable(j, -1));
		}
		sleep_until(j, (uint64_t)i);
		store_release(&seen->woken, i);
	}
}

TEST(who_has_a_packet_already_does_not_fall_asleep)
{
	run(2, refused_body);
}

/* A driver that delivers later wakes for that, too, without another arm(). */
static void kept_body(struct job *j)
{
	enum { N = 50 };

	get_to_know(j);
	for (int i = 1; i <= N && j->rank < 2; i++) {
		if (j->rank == 1) {
			WAIT_FOR(&seen->asleep[0], i);
			job_send(j, 0, 0, (uint64_t)i, 100);
			send_all(j);
			continue;
		}
		fall_asleep(j);
		store_release(&seen->asleep[0], i);
		while (j->ngot < (uint64_t)i) {
			JOB_CHECK(j, is_readable(j, -1));
			job_progress(j);
		}
	}
}

TEST(what_a_poll_has_taken_up_and_kept_wakes_later)
{
	run(3, kept_body);
}

/* --- losing nothing --- */

/*
 * Each is a hand-over, of milliseconds on a machine that is busy with others. A
 * driver that forgets to look again is found by some dozens.
 */
static long rounds(void)
{
	const char *n = getenv("TEST_ROUNDS");

	return (n != NULL ? atol(n) : 1000) / FEWER;
}

static void dawdle(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		__asm__ volatile("");
}

/*
 * A ball for each pair goes back and forth: with none on its way twice, one
 * wake-up that is lost is never made up for.
 */
static void balls_body(struct job *j)
{
	uint64_t n = (uint64_t)rounds() / (uint64_t)j->size, random = 0;
	uint64_t got[JOB_MAX] = { 0 }, all = n * (uint64_t)(j->size - 1);

	get_to_know(j);
	for (int r = 0; r < j->rank; r++)
		job_send(j, r, 0, 1, 8);
	j->arg = got;
	for (uint64_t i = 1; i <= all; i++) {
		sleep_until(j, i);
		random = random * 6364136223846793005u + 1442695040888963407u;
		if (random >> 63)
			dawdle((random >> 32) % 4096);
		for (int r = 0; r < j->size; r++)
			for (; j->nfrom[r] > got[r]; got[r]++)
				if (j->rank < r || got[r] + 1 < n)
					job_send(j, r, 0, got[r] + 2, 8);
	}
	send_all(j);
}

TEST(no_wake_up_is_lost_between_two)
{
	run(2, balls_body);
}

TEST(no_wake_up_is_lost_among_three)
{
	run(3, balls_body);
}

/* --- large transfers --- */

static void large_body(struct job *j)
{
	static const size_t sizes[] = { 1,      20000,   100000,
					262144, 1048577, (1 << 24) / FEWER };

	get_to_know(j);
	for (unsigned i = 0; i < 4 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t size = sizes[i / 4];
		unsigned char *data = malloc(2 * size);
		struct job_large out, in;
		int peer = 1 - j->rank;

		job_pattern(size + (uint64_t)j->rank, data, size);
		job_large_send(j, peer, &out, nm_data_flat(data, size), 0,
			       size);
		job_large_recv(j, peer, &in, nm_data_flat(data + size, size), 0,
			       size);
		while (out.status == -EINPROGRESS ||
		       in.status == -EINPROGRESS) {
			job_progress(j);
			if (out.status != -EINPROGRESS &&
			    in.status != -EINPROGRESS)
				break;
			if (may_sleep(j))
				JOB_CHECK(j, is_readable(j, -1));
		}
		JOB_CHECK(j, out.status == 0 && in.status == 0);
		JOB_CHECK(j, job_is_pattern(size + (uint64_t)peer, data + size,
					    size));
		free(data);
	}
}

TEST(who_waits_for_a_large_transfer_is_woken_for_its_steps)
{
	run(2, large_body);
}

/*
 * Rank 1 goes on when rank 0 sleeps in the middle, or has it all. Where it
 * receives in pieces rank 0 cannot do its part for it.
 */
static void halfway_body(struct job *j)
{
	enum { BYTES = 1 << 22, ROUNDS = 20 };
	unsigned char *data = malloc(BYTES);
	struct iovec halves[] = { { data, BYTES / 2 },
				  { data + BYTES / 2, BYTES / 2 } };
	struct job_large l;

	get_to_know(j);
	for (int i = 1; i <= ROUNDS; i++) {
		if (i % 2 == j->rank)
			job_large_send(j, 1 - j->rank, &l,
				       nm_data_flat(data, BYTES), 0, BYTES);
		else
			job_large_recv(j, 1 - j->rank, &l,
				       i % 4 == 0 ? nm_data_iovec(halves, 2)
						  : nm_data_flat(data, BYTES),
				       0, BYTES);
		if (j->rank == 1) {
			do
				job_progress(j);
			while (!job_idle(j) || (!l.is_send && !l.posted));
			WAIT_FOR(&seen->asleep[0], i);
			while (l.status == -EINPROGRESS)
				job_progress(j);
			store_release(&seen->woken, i);
			continue;
		}
		while (job_progress(j), l.status == -EINPROGRESS)
			if (job_idle(j) && l.started && may_sleep(j)) {
				store_release(&seen->asleep[0], i);
				JOB_CHECK(j, is_readable(j, -1));
			}
		send_all(j);
		store_release(&seen->asleep[0], i);
		WAIT_FOR(&seen->woken, i);
	}
	free(data);
}

TEST(who_waits_for_the_other_side_of_a_transfer_sleeps)
{
	run(2, halfway_body);
}

/* --- room --- */

/* Rank 1 begins to take packets when rank 0 sleeps. */
static void room_body(struct job *j)
{
	enum { N = 300, ROUNDS = 40 };

	get_to_know(j);
	for (int i = 1; i <= ROUNDS; i++) {
		if (j->rank == 1) {
			WAIT_FOR(&seen->asleep[0], i);
			sleep_until(j, (uint64_t)i * N);
			store_release(&seen->woken, i);
			continue;
		}
		for (int k = 0; k < N; k++)
			job_send(j, 1, 0, 1, i % 2 ? 10 : 3000);
		while (job_progress(j), !job_idle(j))
			if (may_sleep(j)) {
				store_release(&seen->asleep[0], i);
				JOB_CHECK(j, is_readable(j, -1));
			}
		WAIT_FOR(&seen->woken, i);
	}
}

TEST(who_finds_no_room_sleeps_until_there_is_some)
{
	if (!(DRIVER.caps & NM_CAP_ROOM))
		check_skip("it takes as much as it is given, or is polled");
	run(2, room_body);
}

/* As many packets as one peer has buffers for. */
#ifndef BUFFERS
#define BUFFERS 64
#endif
enum { KEPT = BUFFERS };

static struct nm_pkt_in *kept[KEPT];
static int nkept;

static void keeps(struct job *j, int from, const struct job_msg *m,
		  struct nm_pkt_in *in)
{
	if (nkept == KEPT)
		return;
	kept[nkept++] = in;
	j->keep = true;
}

/* Rank 0 lacks a buffer, and rank 1, who has them all, sleeps already. */
static void kept_buffers_body(struct job *j)
{
	get_to_know(j);
	j->recv = keeps;
	job_meet(j);
	for (int i = 0; i < KEPT && j->rank == 0; i++)
		job_send(j, 1, 0, 1, 3000);
	if (j->rank == 0) {
		send_all(j);
		WAIT_FOR(&seen->asleep[1], KEPT + 1);
		job_send(j, 1, 0, 1, 3000);
		while (job_progress(j), !job_idle(j))
			if (may_sleep(j)) {
				store_release(&seen->asleep[0], 1);
				JOB_CHECK(j, is_readable(j, -1));
			}
		return;
	}
	sleep_until(j, KEPT);
	fall_asleep(j);
	store_release(&seen->asleep[1], KEPT + 1);
	WAIT_FOR(&seen->asleep[0], 1);
	while (nkept > 0)
		DRIVER.release(&j->rail, kept[--nkept]);
	nkept = KEPT;
	JOB_CHECK(j, is_readable(j, -1));
	sleep_until(j, KEPT + 1);
}

TEST(who_lacks_a_buffer_is_woken_though_its_holder_sleeps)
{
	if (!(DRIVER.caps & NM_CAP_ROOM))
		check_skip("it takes as much as it is given, or is polled");
	nkept = 0;
	run(2, kept_buffers_body);
}

/*
 * Rank 1 rings as soon as rank 0 says that it lacks a buffer, and has none to
 * give back yet; the packets are released when rank 0 sleeps.
 */
static void early_ring_body(struct job *j)
{
	enum { ROUNDS = 32000 / KEPT / FEWER };

	get_to_know(j);
	j->recv = keeps;
	job_meet(j);
	for (int i = 1; i <= ROUNDS; i++) {
		if (j->rank == 0) {
			for (int k = 0; k <= KEPT; k++)
				job_send(j, 1, 0, 1, 3000);
			while (job_progress(j), !job_idle(j))
				if (may_sleep(j)) {
					store_release(&seen->asleep[0], i);
					JOB_CHECK(j, is_readable(j, -1));
				}
			WAIT_FOR(&seen->woken, i);
			continue;
		}
		while (nkept < KEPT || load_acquire(&seen->asleep[0]) < i)
			job_progress(j);
		while (nkept > 0)
			DRIVER.release(&j->rail, kept[--nkept]);
		nkept = KEPT;
		sleep_until(j, (uint64_t)i * (KEPT + 1));
		nkept = 0;
		store_release(&seen->woken, i);
	}
}

TEST(who_was_rung_before_there_was_room_is_rung_again)
{
	if (!(DRIVER.caps & NM_CAP_ROOM))
		check_skip("it takes as much as it is given, or is polled");
	nkept = 0;
	run(2, early_ring_body);
}

/* --- deaths --- */

static void sleep_until_death(struct job *j, int rank)
{
	while (job_progress(j), j->deaths[rank] == 0)
		if (may_sleep(j)) {
			store_release(&seen->asleep[j->rank], 1);
			JOB_CHECK(j, is_readable(j, -1));
		}
}

static void death_body(struct job *j)
{
	get_to_know(j);
	if (j->rank == 1) {
		WAIT_FOR(&seen->asleep[0], 1);
		kill(getpid(), SIGKILL);
	}
	sleep_until_death(j, 1);
	CHECK_INT(j->deaths[1], 1);
}

TEST(a_peer_that_dies_makes_the_descriptor_readable)
{
	run(2, death_body);
}

static void buried_body(struct job *j)
{
	get_to_know(j);
	if (j->rank == 1)
		kill(getpid(), SIGKILL);
	CHECK_INT(waitid(P_PID, (id_t)j->pids[1], NULL, WEXITED | WNOWAIT), 0);
	JOB_CHECK(j, DRIVER.arm(&j->rail) == -EAGAIN);
	CHECK_INT(j->deaths[1], 1);
}

/* Where all compute the next poll that does more than look may be far away. */
TEST(a_death_that_is_found_by_arming_is_told_at_once)
{
	if (!(DRIVER.caps & NM_CAP_NODE))
		check_skip("it comes with what was said last");
	run(2, buried_body);
}

/* Rank 1 tells whether the kernel lets it copy; 2: not. */
static bool rank_1_copies(struct job *j)
{
	get_to_know(j);
	if (j->rank == 1)
		store_release(&seen->asleep[1],
			      DRIVER.copies(&j->rail, 0) ? 1 : 2);
	WAIT_FOR(&seen->asleep[1], 1);
	return load_relaxed(&seen->asleep[1]) == 1;
}

/* Rank 1 alone copies, into pieces, and while rank 0 sleeps. */
static void last_gift_body(struct job *j)
{
	enum { BYTES = 8 << 20 };
	unsigned char *data = calloc(1, BYTES);
	struct iovec halves[] = { { data, BYTES / 2 },
				  { data + BYTES / 2, BYTES / 2 } };
	struct job_large l;

	if (!rank_1_copies(j)) {
		free(data);
		return;
	}
	if (j->rank == 1)
		job_large_recv(j, 0, &l, nm_data_iovec(halves, 2), 0, BYTES);
	else
		job_large_send(j, 1, &l, nm_data_flat(data, BYTES), 0, BYTES);
	while (!l.started || !job_flushed(j))
		job_progress(j);
	if (j->rank == 1) {
		WAIT_FOR(&seen->asleep[0], 1);
		while (l.status == -EINPROGRESS)
			job_progress(j);
		JOB_CHECK(j, l.status == 0);
		kill(getpid(), SIGKILL);
	}
	fall_asleep(j);
	JOB_CHECK(j, l.status == -EINPROGRESS);
	store_release(&seen->asleep[0], 1);
	CHECK_INT(waitid(P_PID, (id_t)j->pids[1], NULL, WEXITED | WNOWAIT), 0);
	JOB_CHECK(j, DRIVER.arm(&j->rail) == -EAGAIN);
	CHECK_INT(j->deaths[1], 1);
	CHECK_INT(l.status, 0);
	free(data);
}

TEST(a_death_that_is_found_by_arming_ends_nothing_that_was_over)
{
	if (strcmp(DRIVER.name, "shm") != 0)
		check_skip("the sender has to copy, too");
	run(2, last_gift_body);
}

/* What it said last and its end come together, among other connections. */
static void last_words_body(struct job *j)
{
	enum { N = 10 };

	get_to_know(j);
	if (j->rank == 1) {
		for (uint64_t i = 1; i <= N; i++)
			job_send(j, 0, 0, i, 1000);
		send_all(j);
		kill(getpid(), SIGKILL);
	}
	if (j->rank == 0) {
		CHECK_INT(waitid(P_PID, (id_t)j->pids[1], NULL,
				 WEXITED | WNOWAIT),
			  0);
		sleep_until(j, N);
	}
	sleep_until_death(j, 1);
}

TEST(last_words_and_death_wake_among_others)
{
	run(3, last_words_body);
}

/* --- without a descriptor to spare --- */

static void sleeps_once(struct job *j)
{
	fall_asleep(j);
	store_release(&seen->asleep[j->rank], 1);
	JOB_CHECK(j, is_readable(j, -1));
	sleep_until(j, 1);
}

static void scarce_body(struct job *j)
{
	struct rlimit old;

	get_to_know(j);
	if (j->rank == 0) {
		sleeps_once(j);
		return;
	}
	WAIT_FOR(&seen->asleep[0], 1);
	old = job_no_more_files(j);
	job_send(j, 0, 0, 1, 10);
	send_all(j);
	JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
	while (DRIVER.is_busy(&j->rail))
		job_progress(j);
}

TEST(who_cannot_wake_now_does_it_later)
{
	run(2, scarce_body);
}

/* Rank 1 wakes one after the other. */
static void reuse_body(struct job *j)
{
	struct rlimit old;

	get_to_know(j);
	if (j->rank != 1) {
		sleeps_once(j);
		return;
	}
	WAIT_FOR(&seen->asleep[2], 1);
	job_send(j, 2, 0, 1, 10);
	send_all(j);
	WAIT_FOR(&seen->asleep[0], 1);
	old = job_no_more_files(j);
	job_send(j, 0, 0, 1, 10);
	send_all(j);
	JOB_CHECK(j, !DRIVER.is_busy(&j->rail));
	JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
}

TEST(an_open_descriptor_makes_room_for_one_that_is_needed)
{
	run(3, reuse_body);
}
