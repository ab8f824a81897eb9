/*
 * drivers/tcp: no descriptor for who calls. Rank 0 has the driver and no number
 * left; rank 1 calls.
 */
#include "bare.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct nm_driver nm_driver_tcp;

/* Rank 0 calls nobody; rank 1 when a test says so. */
__attribute__((constructor)) static void nobody_calls_unasked(void)
{
	job_connects_late = true;
}

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

/* In a ms: far less is made, by the clock; who does not sleep makes hundreds.
 */
enum { LOOKS_MAX = 2 };

/* Asleep wherever that is possible, until fd is readable. How many looks. */
static uint64_t sleep_until_told(struct job *j, int fd)
{
	struct pollfd p[2] = { { .fd = j->rail.fd, .events = POLLIN },
			       { .fd = fd, .events = POLLIN } };
	uint64_t looks = 0;

	for (; (p[1].revents & POLLIN) == 0; looks++) {
		job_progress(j);
		if (nm_driver_tcp.is_busy(&j->rail) ||
		    nm_driver_tcp.arm(&j->rail) < 0)
			continue;
		JOB_CHECK(j, poll(p, 2, -1) > 0);
	}
	return looks;
}

struct scarce {
	int ends[4];
	bool no_spare; /* another thread has taken that, too */
	bool no_way;   /* nobody answers at rank 0's second address */
};

/* From now on rank 0 has none. What it could have before. */
static struct rlimit take_all(struct job *j)
{
	const struct scarce *s = j->arg;
	struct tcp *tcp = j->rail.drv;

	if (s->no_spare) {
		close(tcp->spare);
		tcp->spare = -1;
	}
	return job_no_more_files(j);
}

static void run_with(void (*body)(struct job *), struct scarce s)
{
	CHECK_INT(pipe(s.ends), 0);
	CHECK_INT(pipe(s.ends + 2), 0);
	job_run(&nm_driver_tcp, 2, body, &s);
	for (int i = 0; i < 4; i++)
		close(s.ends[i]);
}

static void run_scarce(void (*body)(struct job *), bool no_spare)
{
	run_with(body, (struct scarce){ .no_spare = no_spare });
}

/* Else closing it would not make room in a table of files that is full. */
static void check_spare_is_a_file(struct job *j)
{
	const struct tcp *tcp = j->rail.drv;
	struct stat spare, listener;

	JOB_CHECK(j, fstat(tcp->spare, &spare) == 0);
	JOB_CHECK(j, fstat(tcp->listener.fd, &listener) == 0);
	JOB_CHECK(j, spare.st_ino != listener.st_ino);
}

/* As long as rank 0 has none rank 1 calls; then it is heard. */
static void scarce_body(struct job *j)
{
	const struct scarce *s = j->arg;
	uint64_t start = nm_tcp_now(), end = start + 500, looks;
	struct rlimit old = { .rlim_cur = 0 };
	char c = 0;

	j->recv = ignore;
	check_spare_is_a_file(j);
	if (j->rank == 0)
		old = take_all(j);
	job_meet(j);
	if (j->rank == 1) {
		job_send(j, 0, 0, 1, 100);
		while (nm_tcp_now() < end)
			job_progress(j);
		JOB_CHECK(j, write(s->ends[1], &c, 1) == 1);
		while (!job_idle(j))
			job_progress(j);
		JOB_CHECK(j, write(s->ends[3], &c, 1) == 1);
	} else {
		looks = sleep_until_told(j, s->ends[0]);
		JOB_CHECK(j, looks < LOOKS_MAX * (nm_tcp_now() - start + 500));
		JOB_CHECK(j, j->ngot == 0);
		if (!s->no_spare)
			check_spare_is_a_file(j);
		JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
		sleep_until_told(j, s->ends[2]);
		while (j->ngot == 0)
			job_progress(j);
	}
}

TEST(who_has_no_descriptor_for_a_caller_sleeps_and_hears_it_later)
{
	run_scarce(scarce_body, false);
	run_scarce(scarce_body, true);
}

/* Rank 0, which calls nobody itself, has none as long as rank 1 calls. */
static void vain_body(struct job *j)
{
	const struct scarce *s = j->arg;
	struct rlimit old;
	char c = 0;

	j->recv = ignore;
	if (j->rank == 0) {
		old = take_all(j);
		job_meet(j);
		sleep_until_told(j, s->ends[0]);
		JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
	} else {
		job_meet(j);
		job_send(j, 0, 0, 1, 100);
		while (j->deaths[0] == 0)
			job_progress(j);
		JOB_CHECK(j, j->death_error == -EBUSY);
		JOB_CHECK(j, write(s->ends[1], &c, 1) == 1);
	}
}

TEST(who_calls_where_no_descriptor_is_left_does_not_wait_for_ever)
{
	setenv("NMAD_TCP_TIMEOUT_MS", "300", 1);
	run_scarce(vain_body, false);
	unsetenv("NMAD_TCP_TIMEOUT_MS");
}

/* Rank 1 calls, several times, for the case that rank 0 should send. */
static void listens_body(struct job *j)
{
	const struct scarce *s = j->arg;
	uint64_t end = nm_tcp_now() + 400;
	int silent[2] = { -1, -1 };
	struct tcp_peer *p;
	struct rlimit old;
	char c = 0;

	j->recv = ignore;
	if (j->rank == 0) {
		old = take_all(j);
		job_meet(j);
		sleep_until_told(j, s->ends[0]);
		JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
		job_send(j, 1, 0, 1, 100);
	} else {
		job_meet(j);
		p = bare_peer(j, 0);
		if (s->no_way) {
			p->addr[p->naddrs++] = bare_elsewhere;
			silent[0] = bare_listen(j, p);
			silent[1] = bare_fill_queue(j, p);
		}
		while (nm_tcp_now() < end)
			job_progress(j);
		JOB_CHECK(j, write(s->ends[1], &c, 1) == 1);
	}
	while (j->ngot < (unsigned)j->rank || !job_idle(j))
		job_progress(j);
	JOB_CHECK(j, j->deaths[1 - j->rank] == 0);
	if (silent[0] >= 0) {
		close(silent[0]);
		close(silent[1]);
	}
}

TEST(who_only_listens_waits_until_there_is_a_descriptor_for_him)
{
	setenv("NMAD_TCP_TIMEOUT_MS", "50", 1);
	run_scarce(listens_body, false);
	run_with(listens_body, (struct scarce){ .no_way = true });
	unsetenv("NMAD_TCP_TIMEOUT_MS");
}

/* Rank 0 says that it has none, until nobody listens where it was. */
static void gone_body(struct job *j)
{
	const struct tcp *tcp = j->rail.drv;
	struct rlimit old;

	j->recv = ignore;
	if (j->rank == 0) {
		old = take_all(j);
		job_meet(j);
		while (!tcp->was_short)
			job_progress(j);
		JOB_CHECK(j, shutdown(tcp->listener.fd, SHUT_RDWR) == 0);
		JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
	} else {
		job_meet(j);
		JOB_CHECK(j, nm_driver_tcp.connect(&j->links[0]) == 0);
		while (j->deaths[0] == 0)
			job_progress(j);
	}
}

TEST(who_only_listens_hears_of_the_death_of_who_had_no_descriptor)
{
	run_scarce(gone_body, false);
}

/*
 * Rank 0 has none, nor a spare, and rank 1 neither answers nor gets through:
 * were all like rank 0, each would wait for another.
 */
static void ring_body(struct job *j)
{
	const struct scarce *s = j->arg;
	struct tcp *tcp = j->rail.drv;
	struct rlimit old;
	char c = 0;

	j->recv = ignore;
	if (j->rank == 0) {
		job_send(j, 1, 0, 1, 100);
		while (nm_tcp_peer(tcp, 1)->state != TCP_CALLING)
			job_progress(j);
		old = take_all(j);
		JOB_CHECK(j, write(s->ends[3], &c, 1) == 1);
		while (j->deaths[1] == 0)
			job_progress(j);
		JOB_CHECK(j, j->death_error == -EMFILE);
		JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
		JOB_CHECK(j, write(s->ends[1], &c, 1) == 1);
	} else {
		int fd;

		JOB_CHECK(j, read(s->ends[2], &c, 1) == 1);
		fd = bare_dial_rank(j, 0);
		JOB_CHECK(j, read(s->ends[0], &c, 1) == 1);
		close(fd);
	}
}

TEST(who_can_hear_nobody_does_not_wait_for_ever_either)
{
	setenv("NMAD_TCP_TIMEOUT_MS", "300", 1);
	run_scarce(ring_body, true);
	unsetenv("NMAD_TCP_TIMEOUT_MS");
}
