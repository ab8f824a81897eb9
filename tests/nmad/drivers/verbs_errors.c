/*
 * drivers/verbs: a work request that fails, in whatever way and whatever it
 * was, ends the link to that peer, by a line that names peer and status; all
 * that was under way with it ends, others go on, and nothing of it is left.
 *
 * Rank 0 sends, each of its peers meets with another error, and the last with
 * none. Over the libibverbs of fake_verbs/.
 */
#include "job.h"

#include <errno.h>
#include <stdio.h>

#include "fake_verbs/fake_verbs.h"
#include "said.h"
#include "verbs_talk.h"

extern const struct nm_driver nm_driver_ibverbs;

/* Of rank r: statuses[r - 1]. */
static const struct {
	enum ibv_wc_status status;
	int error;
	const char *name;
} statuses[] = {
	{ IBV_WC_RETRY_EXC_ERR, ETIMEDOUT, "transport retry counter exceeded" },
	{ IBV_WC_RNR_RETRY_EXC_ERR, ETIMEDOUT, "RNR retry counter exceeded" },
	{ IBV_WC_REM_ACCESS_ERR, EREMOTEIO, "remote access error" },
	{ IBV_WC_REM_OP_ERR, EREMOTEIO, "remote operation error" },
	{ IBV_WC_LOC_PROT_ERR, EIO, "local protection error" },
	{ IBV_WC_WR_FLUSH_ERR, ECONNRESET, "Work Request Flushed Error" },
	{ IBV_WC_FATAL_ERR, EIO, "fatal error" },
	{ IBV_WC_GENERAL_ERR, EIO, "general error" },
};

enum {
	BAD = sizeof(statuses) / sizeof(statuses[0]),
	GOOD = BAD + 1, /* the last rank */
	ALL,
	WRITE = 256 * 1024, /* of the driver's work requests */
	BYTES = 2 * WRITE,
};

_Static_assert((int)ALL <= (int)JOB_MAX, "ranks");

enum what { SEND, FIRST_WRITE, LAST_WRITE, KEEP_ALIVE };

struct plan {
	enum what what;
	bool delivered;
};

static bool is_large(const struct plan *p)
{
	return p->what == FIRST_WRITE || p->what == LAST_WRITE;
}

static size_t bytes_of(const struct plan *p)
{
	return p->what == FIRST_WRITE ? BYTES : WRITE;
}

/* --- rank 0 --- */

static void arm(struct job *j, const struct plan *p)
{
	for (int r = 1; r <= BAD; r++) {
		struct fake_verbs_fault f = {
			.pid = j->pids[r],
			.device = -1,
			.count = 1,
			.status = statuses[r - 1].status,
			.vendor_err = 0x50u + (unsigned)r,
			.delivered = p->delivered,
		};

		fake_verbs()->fail(&f);
	}
}

static void await_deaths(struct job *j)
{
	for (int r = 1; r <= BAD; r++)
		while (j->deaths[r] == 0)
			job_progress(j);
}

static void attack(struct job *j, const struct plan *p)
{
	static struct job_large large[ALL];
	unsigned char *data = malloc(BYTES);

	job_pattern(9, data, BYTES);
	for (int r = 1; r <= BAD && is_large(p); r++)
		job_large_send(j, r, &large[r], nm_data_flat(data, bytes_of(p)),
			       0, bytes_of(p));
	leave(j);
	arm(j, p);
	job_meet(j);
	for (int r = 1; r <= BAD && p->what == SEND; r++)
		job_send(j, r, 0, 2, 3000);
	await_deaths(j);
	for (int r = 1; r <= BAD; r++) {
		JOB_CHECK(j, j->errors[r] == -statuses[r - 1].error);
		JOB_CHECK(j, !is_large(p) ||
				     large[r].status == -statuses[r - 1].error);
	}
	/* What is left: the pair for hellos, and the good peer's. */
	while (counts().qps != 2 || counts().waiting != 0)
		job_progress(j);
	fake_verbs()->fail(NULL);
	free(data);
}

/* --- the others --- */

/* It is noticed by who sends, or asks. */
static void suffer(struct job *j, const struct plan *p)
{
	unsigned char *data = calloc(1, BYTES);
	struct job_large l;
	bool comes = p->what == LAST_WRITE && p->delivered;
	uint64_t before = j->ngot;

	job_meet(j);
	if (is_large(p)) {
		job_large_recv(j, 0, &l, nm_data_flat(data, bytes_of(p)), 0,
			       bytes_of(p));
		leave(j);
		while (!l.posted)
			job_progress(j);
	}
	while (comes && l.status == -EINPROGRESS)
		job_progress(j);
	while (p->what == SEND && p->delivered && j->ngot == before)
		job_progress(j);
	/* The adapter of rank 0 answers until it has failed there. */
	for (uint64_t i = 0; j->deaths[0] == 0; i++) {
		if (job_idle(j) && p->what != KEEP_ALIVE && i % 100 == 0)
			job_send(j, 0, 0, i, 100);
		job_progress(j);
	}
	JOB_CHECK(j, !is_large(p) || comes == (l.status == 0));
	JOB_CHECK(j, !is_large(p) || l.status != -EINPROGRESS);
	JOB_CHECK(j, !comes || job_is_pattern(9, data, bytes_of(p)));
	JOB_CHECK(j, j->ngot - before ==
			     (p->what == SEND && p->delivered ? 1 : 0));
	while (counts().qps != 1)
		job_progress(j);
	free(data);
}

static void body(struct job *j)
{
	const struct plan *p = j->arg;
	int from = j->rank == 0 ? 1 : 0, to = j->rank == 0 ? ALL : 1;

	j->recv = count_only;
	for (int r = from; r < to; r++)
		job_send(j, r, 0, 1, 100);
	while (j->ngot < (uint64_t)(to - from))
		job_progress(j);
	leave(j);
	if (j->rank == 0)
		attack(j, p);
	else if (j->rank <= BAD)
		suffer(j, p);
	else
		job_meet(j);
	if (j->rank != 0 && j->rank != GOOD)
		return;
	/* The living go on. */
	for (uint64_t i = 0; i < 500; i++)
		job_send(j, GOOD - j->rank, 0, i, i);
	while (j->nfrom[GOOD - j->rank] < 501 || !job_idle(j))
		job_progress(j);
	JOB_CHECK(j, j->deaths[GOOD - j->rank] == 0);
	for (int r = 1; r <= BAD && j->rank == 0; r++)
		JOB_CHECK(j, j->deaths[r] == 1);
}

static void nothing_is_left(struct job *j)
{
	struct fake_verbs_counts c = counts();

	JOB_CHECK(j, c.contexts + c.pds + c.mrs + c.cqs + c.channels + c.srqs +
				     c.qps + c.ahs ==
			     0);
	JOB_CHECK(j, c.pinned == 0 && c.waiting == 0 && c.unread == 0);
}

static void fails(enum what what, bool delivered)
{
	struct plan p = { what, delivered };
	char line[200];
	char *said;

	/* Who is not sent to is asked for life a third of that time after. */
	setenv("NMAD_IBVERBS_DEAD_S", what == KEEP_ALIVE ? "1" : "60", 1);
	job_connects_late = true;
	job_closed = nothing_is_left;
	said_begin();
	job_run(&nm_driver_ibverbs, ALL, body, &p);
	said = said_end();
	for (int r = 1; r <= BAD; r++) {
		snprintf(line, sizeof(line),
			 "nmad[%d]: ibverbs: rank %d: %s (status %d, vendor "
			 "error %#x)\n",
			 (int)getpid(), r, statuses[r - 1].name,
			 (int)statuses[r - 1].status, 0x50u + (unsigned)r);
		said_times(said, line, 1);
	}
	snprintf(line, sizeof(line), "nmad[%d]", (int)getpid());
	said_times(said, line, BAD);
	free(said);
}

TEST(a_send_that_fails_ends_its_link)
{
	fails(SEND, false);
}

TEST(a_send_whose_acknowledgement_is_lost_has_arrived_and_ends_its_link)
{
	fails(SEND, true);
}

TEST(a_write_that_fails_ends_its_transfer_and_its_link)
{
	fails(FIRST_WRITE, false);
}

TEST(a_write_whose_acknowledgement_is_lost_ends_its_transfer_and_its_link)
{
	fails(FIRST_WRITE, true);
}

TEST(a_last_write_that_fails_ends_its_transfer_and_its_link)
{
	fails(LAST_WRITE, false);
}

TEST(a_last_write_whose_acknowledgement_is_lost_has_filled_its_place)
{
	fails(LAST_WRITE, true);
}

TEST(a_question_for_life_that_fails_ends_its_link)
{
	fails(KEEP_ALIVE, false);
}

TEST(a_question_for_life_whose_answer_is_lost_ends_its_link)
{
	fails(KEEP_ALIVE, true);
}
