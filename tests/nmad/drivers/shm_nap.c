/*
 * drivers/shm: who cannot be rung, or would not be told of a death, sleeps all
 * the same, and wakes by the clock.
 */
#include "job.h"

#include <poll.h>
#include <unistd.h>

#include <base/clock.h>

#include "../../../nmad/drivers/shm/shm.h"

extern const struct nm_driver nm_driver_shm;

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

static struct shm_peer *peer(struct job *j)
{
	return j->links[1 - j->rank].conn;
}

static bool arm(struct job *j)
{
	return !nm_driver_shm.is_busy(&j->rail) &&
	       nm_driver_shm.arm(&j->rail) == 0;
}

static void sleep_once(struct job *j)
{
	struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };

	if (arm(j))
		JOB_CHECK(j, poll(&p, 1, -1) == 1);
}

/* --- deaf --- */

/* As if some process of the host could not be rung by some other. */
static void deafen(struct job *j)
{
	struct shm *shm = j->rail.drv;

	store_relaxed(&shm->arena->deaf, 1);
}

enum { N = 200 };

/* No ring comes: each message waits for the receiver's own look. */
static void deaf_body(struct job *j)
{
	j->recv = ignore;
	deafen(j);
	job_meet(j);
	for (uint64_t i = 0; i < N; i++) {
		if (j->rank == 0)
			job_send(j, 1, 0, i, 100);
		while (job_progress(j), j->ngot <= i)
			sleep_once(j);
		JOB_CHECK(j, load_relaxed(&peer(j)->seg->bell.asleep) == 0);
		if (j->rank == 1)
			job_send(j, 0, 0, i, 100);
	}
	while (!job_idle(j))
		job_progress(j);
}

TEST(who_cannot_be_rung_looks_by_the_clock)
{
	job_run(&nm_driver_shm, 2, deaf_body, NULL);
}

/* It must be told that it is over; how often it looked until then. */
static void quiet_body(struct job *j)
{
	struct pollfd p[2] = { { .fd = j->rail.fd, .events = POLLIN } };
	int *ends = j->arg;
	uint64_t start = base_now_ns(), looks = 0;
	char c = 0;

	j->recv = ignore;
	deafen(j);
	job_meet(j);
	if (j->rank == 1) {
		usleep(300000);
		JOB_CHECK(j, write(ends[1], &c, 1) == 1);
		return;
	}
	p[1] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	for (; (p[1].revents & POLLIN) == 0; looks++) {
		job_progress(j);
		if (arm(j))
			JOB_CHECK(j, poll(p, 2, -1) > 0);
	}
	/* One in 2 ms or so, however long it was; who polls has thousands. */
	JOB_CHECK(j, looks < 10000 + (base_now_ns() - start) / 30000);
}

TEST(who_cannot_be_rung_does_not_look_all_the_time)
{
	int ends[2];

	CHECK_INT(pipe(ends), 0);
	job_run(&nm_driver_shm, 2, quiet_body, ends);
	close(ends[0]);
	close(ends[1]);
}

/* --- blind --- */

/* Nothing comes, and it looks again. */
static void blind_body(struct job *j)
{
	struct shm *shm = j->rail.drv;

	j->recv = ignore;
	nm_shm_live_remove(shm, peer(j));
	peer(j)->blind = true;
	shm->nblind++;
	job_meet(j);
	for (int looks = 0; looks < 5 && j->rank == 0;) {
		struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };

		job_progress(j);
		if (!arm(j))
			continue;
		JOB_CHECK(j, poll(&p, 1, -1) == 1);
		looks++;
	}
}

TEST(who_would_not_be_told_of_a_death_looks_for_it)
{
	job_run(&nm_driver_shm, 2, blind_body, NULL);
}

enum { SHORTEST_NAP_NS = 50000 }; /* as in bell.c */

/*
 * Readable at once, and not by the clock: so often of `times`. With `naps`, who
 * was held up for as long as one in between has seen nothing.
 */
static int count_at_once(struct job *j, int times, bool naps)
{
	struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };
	int n = 0;

	for (int looks = 0; looks < times;) {
		uint64_t before;

		job_progress(j);
		before = base_now_ns();
		if (!arm(j))
			continue;
		looks++;
		n += poll(&p, 1, 0) == 1 &&
		     (!naps || base_now_ns() - before < SHORTEST_NAP_NS);
	}
	return n;
}

static void no_more_blind_body(struct job *j)
{
	struct shm *shm = j->rail.drv;

	j->recv = ignore;
	nm_shm_live_remove(shm, peer(j));
	peer(j)->blind = true;
	shm->nblind++;
	job_meet(j);
	if (j->rank == 0) {
		struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };

		while (job_progress(j), !arm(j))
			;
		JOB_CHECK(j, poll(&p, 1, -1) == 1);
		nm_shm_live_remove(shm, peer(j)); /* as if it were gone */
		JOB_CHECK(j, shm->nblind == 0);
		JOB_CHECK(j, count_at_once(j, 100, false) == 0);
	}
	job_meet(j);
}

TEST(an_alarm_is_over_with_its_reason)
{
	job_run(&nm_driver_shm, 2, no_more_blind_body, NULL);
}

/* Something rang before it was deaf. It may nap too short to be seen asleep. */
static void rung_and_deaf_body(struct job *j)
{
	j->recv = ignore;
	job_meet(j);
	deafen(j);
	job_meet(j);
	if (j->rank == 0) {
		nm_shm_bell_self(j->rail.drv);
		JOB_CHECK(j, count_at_once(j, 100, true) < 50);
	}
	job_meet(j);
}

TEST(who_is_deaf_does_not_hear_an_old_bell_for_ever)
{
	job_run(&nm_driver_shm, 2, rung_and_deaf_body, NULL);
}
