/*
 * Every driver that connects processes: what a peer costs, and that only those
 * cost anything that are used: by who sends first, by who hears from it, by
 * both at once, never twice. DRIVER is chosen by the build.
 */
#include "has.h"
#include "job.h"

extern const struct nm_driver DRIVER;

enum { RANKS = 8, ROUNDS = 10 };

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

#ifdef IS_TCP
#include "../../../nmad/drivers/tcp/tcp.h"

static bool is_settled(struct job *j, unsigned npeers)
{
	const struct tcp *tcp = j->rail.drv;

	return tcp->nopen == npeers && tcp->nhands == 0;
}

static void check_peers(struct job *j, const struct has *before,
			unsigned npeers)
{
	struct has now = look();

	JOB_CHECK(j, now.sockets == before->sockets + npeers);
	JOB_CHECK(j, now.fds == before->fds + npeers);
	JOB_CHECK(j, now.maps == 0);
}
#elif defined(IS_IBVERBS)
#include "../../../nmad/drivers/verbs/verbs.h"

static bool is_settled(struct job *j, unsigned npeers)
{
	return true;
}

/* A queue pair: what it sends and, if receives are not shared, receives. */
static void check_peers(struct job *j, const struct has *before,
			unsigned npeers)
{
	const struct verbs *v = j->rail.drv;
	unsigned each = v->srq != NULL ? 1 : 2;
	struct has now = look();

	JOB_CHECK(j, now.queues == before->queues + each * npeers);
	JOB_CHECK(j, now.fds == before->fds);
	JOB_CHECK(j, now.maps == 0);
}
#else
#include "../../../nmad/drivers/shm/shm.h"

static bool is_settled(struct job *j, unsigned npeers)
{
	return true;
}

/* A segment, a pidfd and, of the first 64, a bell. */
static void check_peers(struct job *j, const struct has *before,
			unsigned npeers)
{
	const struct shm *shm = j->rail.drv;
	struct has now = look();

	/* The beginning and its own; the kernel may join neighbours. */
	JOB_CHECK(j, before->maps <= 2);
	JOB_CHECK(j, now.maps <= 2 + npeers);
	JOB_CHECK(j, now.bytes == before->bytes + npeers * shm->bytes);
	JOB_CHECK(j, shm->bytes < 3400000);
	JOB_CHECK(j, now.pidfds == before->pidfds + npeers);
	JOB_CHECK(j, now.pipes == before->pipes + npeers);
	JOB_CHECK(j, now.fds == before->fds + 2 * npeers);
	JOB_CHECK(j, now.sockets == before->sockets);
}
#endif

/* Nobody goes on, and is heard by who still looks, before all have. */
static void check_all(struct job *j, const struct has *before, unsigned npeers)
{
	check_peers(j, before, npeers);
	job_meet(j);
}

/* One packet to each of them, and one from each, whoever is first. */
static void talk(struct job *j, const int *with, int n)
{
	uint64_t want = j->ngot + (uint64_t)n;

	for (int i = 0; i < n; i++)
		job_send(j, with[i], 0, 1, 100);
	while (j->ngot < want || !job_idle(j))
		job_progress(j);
	job_meet(j);
}

static void settle(struct job *j, unsigned npeers)
{
	while (!is_settled(j, npeers))
		job_progress(j);
	job_meet(j);
}

static void circles_body(struct job *j)
{
	struct has before = look();
	int with[RANKS], n = 0;

	j->recv = ignore;
	job_meet(j);
	check_all(j, &before, 0);

	with[0] = j->rank ^ 1;
	talk(j, with, 1);
	settle(j, 1);
	check_all(j, &before, 1);

	with[0] = (j->rank + 1) % RANKS;
	with[1] = (j->rank + RANKS - 1) % RANKS;
	talk(j, with, 2);
	settle(j, 2);
	check_all(j, &before, 2);

	for (int r = 0; r < RANKS; r++)
		if (r != j->rank)
			with[n++] = r;
	talk(j, with, n);
	settle(j, RANKS - 1);
	check_all(j, &before, RANKS - 1);
}

static void run(int n, void (*body)(struct job *))
{
	job_connects_late = true;
	job_run(&DRIVER, n, body, NULL);
}

TEST(who_talks_with_some_has_so_many_connections)
{
	run(RANKS, circles_body);
}

/* Both ends of each pair begin at the same time, over and over. */
static void crossing_body(struct job *j)
{
	struct has before = look();
	int with[RANKS], n = 0;

	j->recv = ignore;
	for (int r = 0; r < RANKS; r++)
		if (r != j->rank)
			with[n++] = r;
	job_meet(j);
	talk(j, with, n);
	settle(j, RANKS - 1);
	check_all(j, &before, RANKS - 1);
}

TEST(two_that_begin_at_once_have_one_connection)
{
	for (int i = 0; i < ROUNDS; i++)
		run(RANKS, crossing_body);
}

/* Rank 1 never sends. */
static void one_way_body(struct job *j)
{
	struct has before = look();

	j->recv = ignore;
	job_meet(j);
	if (j->rank == 0)
		job_send(j, 1, 0, 1, 5000);
	while ((j->rank == 1 && j->ngot == 0) || !job_idle(j))
		job_progress(j);
	job_meet(j);
	settle(j, j->rank < 2 ? 1 : 0);
	check_all(j, &before, j->rank < 2 ? 1 : 0);
}

TEST(who_only_hears_has_the_connection_too)
{
	run(3, one_way_body);
}
