/*
 * drivers/verbs: how a link ends on the side that is the first to know. What
 * the peer takes for arrived has arrived; nothing of the link is left, though
 * adapters do not tell of all that they have sent. Over the libibverbs of
 * fake_verbs/.
 */
#include "job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../nmad/drivers/verbs/verbs.h"
#include "fake_verbs/fake_verbs.h"
#include "verbs_talk.h"

extern const struct nm_driver nm_driver_ibverbs;

/* What all processes see. */
static ATOMIC(int) * step;

/* But for the one for hellos. */
static void await_queue_pairs(struct job *j, uint64_t n)
{
	while (counts().qps != n + 1)
		job_progress(j);
}

static void give_up(struct job *j, int peer)
{
	nm_driver_ibverbs.give_up(&j->links[peer]);
	nm_rail_link_dead(&j->rail, &j->links[peer], -ECONNRESET);
}

static void await_death(struct job *j, int peer)
{
	while (j->deaths[peer] == 0)
		job_progress(j);
}

static void run(void (*body)(struct job *), int ranks)
{
	step = mmap(NULL, sizeof(*step), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(step != MAP_FAILED);
	job_connects_late = true;
	job_run(&nm_driver_ibverbs, ranks, body, NULL);
	munmap(step, sizeof(*step));
}

/* --- given up --- */

enum { FEW = 3 }; /* frames of which nobody is told */

static void unseen_body(struct job *j)
{
	j->recv = count_only;
	if (j->rank == 0) {
		for (uint64_t i = 0; i < FEW; i++)
			job_send(j, 1, 0, i, 100);
		leave(j);
		while (counts().waiting != 0)
			job_progress(j);
		store_release(step, 1);
		await_death(j, 1);
	} else {
		/* The clerk answers; nobody polls. */
		while (load_acquire(step) == 0)
			;
		JOB_CHECK(j, j->links[0].conn == NULL);
		give_up(j, 0);
		JOB_CHECK(j, nm_driver_ibverbs.arrived(&j->links[0]) == FEW);
	}
	await_queue_pairs(j, 0);
}

TEST(what_has_come_counts_though_nobody_has_polled)
{
	run(unseen_body, 2);
}

/* The frames have arrived, but no completion says so. */
static void untold_body(struct job *j)
{
	j->recv = count_only;
	for (uint64_t i = 0; i < FEW && j->rank == 0; i++)
		job_send(j, 1, 0, i, 100);
	while (j->rank == 1 && j->ngot < FEW)
		job_progress(j);
	leave(j);
	job_meet(j);
	if (j->rank == 0)
		give_up(j, 1);
	else
		await_death(j, 0);
	await_queue_pairs(j, 0);
}

TEST(frames_of_which_nobody_is_told_keep_no_queue_pair)
{
	run(untold_body, 2);
}

/* --- left --- */

/* Its goodbye, by hand: the process stays. */
static void say_goodbye(struct job *j)
{
	struct verbs *v = j->rail.drv;

	nm_verbs_bye(v, &v->peers[0]);
	while (!v->peers[0].bye_left)
		job_progress(j);
}

static void left_body(struct job *j)
{
	struct verbs *v = j->rail.drv;
	static struct job_large l;
	static unsigned char data[100000];

	j->recv = count_only;
	if (j->rank == 1) {
		job_large_send(j, 0, &l, nm_data_flat(data, 100000), 0, 100000);
		leave(j);
		say_goodbye(j);
		store_release(step, 1);
	}
	while (load_acquire(step) == 0 ||
	       (j->rank == 0 && v->peers[1].state != VERBS_LEFT))
		job_progress(j);
	if (j->rank == 0) {
		l = (struct job_large){ .x = { .link = &j->links[1],
					       .data = nm_data_flat(data,
								    100000),
					       .length = 100000 } };
		JOB_CHECK(j, nm_driver_ibverbs.xfer_recv(&l.x) == -ECONNRESET);
		nm_rail_link_dead(&j->rail, &j->links[1], -ECONNRESET);
	}
	job_meet(j);
}

TEST(what_who_has_left_was_to_send_is_not_waited_for)
{
	run(left_body, 2);
}

/* --- the device --- */

static void broken_body(struct job *j)
{
	struct pollfd fd = { .fd = j->rail.fd, .events = POLLIN };

	j->recv = count_only;
	job_send(j, 1 - j->rank, 0, 1, 100);
	while (j->ngot == 0)
		job_progress(j);
	leave(j);
	job_meet(j);
	if (j->rank == 0)
		fake_verbs()->happen(FAKE_DEVICE_FATAL, 0, 0, false);
	await_death(j, 1 - j->rank);
	JOB_CHECK(j, j->rank == 1 || j->errors[1] == -EIO);
	/* There is nothing more to be polled for. */
	while (nm_driver_ibverbs.arm(&j->rail) != 0 || poll(&fd, 1, 0) != 0)
		job_progress(j);
	JOB_CHECK(j, !nm_driver_ibverbs.is_busy(&j->rail));
	job_meet(j);
}

TEST(a_device_that_has_failed_keeps_nobody_busy)
{
	run(broken_body, 2);
}

/* --- frames --- */

static void starved_body(struct job *j)
{
	struct verbs *v = j->rail.drv;
	struct verbs_peer *p = &v->peers[1 - j->rank];
	uint16_t free[VERBS_SENDS];
	unsigned n;

	j->recv = count_only;
	job_send(j, 1 - j->rank, 0, 1, 100);
	while (j->ngot == 0)
		job_progress(j);
	leave(j);
	job_meet(j);
	/* A question for life, which is answered, tells of all before it. */
	while (p->done == p->posted) {
		job_send(j, 1 - j->rank, 0, 1, 100);
		leave(j);
	}
	n = v->nfree;
	memcpy(free, v->free, sizeof(free));
	v->nfree = 0;
	JOB_CHECK(j, !nm_verbs_has_frame(v, p, false));
	JOB_CHECK(j, !nm_driver_ibverbs.is_busy(&j->rail));
	while (v->nfree == 0 || p->done != p->posted)
		job_progress(j);
	for (unsigned i = 0; i < v->nfree; i++)
		free[n + i] = v->free[i];
	v->nfree += n;
	memcpy(v->free, free, sizeof(free));
	job_meet(j);
}

TEST(who_finds_no_frame_sleeps_until_there_is_one)
{
	run(starved_body, 2);
}

/* --- goodbyes --- */

static void unseen_goodbye_body(struct job *j)
{
	struct verbs *v = j->rail.drv;

	j->recv = count_only;
	if (j->rank == 0) {
		job_send(j, 1, 0, 1, 100);
		leave(j);
		store_release(step, 1);
		while (v->peers[1].state != VERBS_LEFT)
			job_progress(j);
		JOB_CHECK(j, j->deaths[1] == 0);
		give_up(j, 1); /* it is not to be met any more */
		return;
	}
	/* The clerk answers; nobody polls. */
	while (load_acquire(step) == 0)
		;
	JOB_CHECK(j, j->links[0].conn == NULL);
	nm_driver_ibverbs.close(&j->rail);
	kill(getpid(), SIGKILL);
}

TEST(who_goes_says_goodbye_to_whom_he_has_not_seen)
{
	run(unseen_goodbye_body, 2);
}
