/*
 * drivers/shm: a peer that was not used before. What it has left in our ring is
 * found whatever has become of it since, and it is woken though we have never
 * heard of it; and what it takes to know it may be lacking for a while.
 */
#include "job.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../nmad/drivers/shm/shm.h"
#include "shm_both.h"

/* Seen by all processes of a job. */
static ATOMIC(int) * step;

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

static void run(int n, void (*body)(struct job *), void *arg)
{
	step = mmap(NULL, sizeof(*step), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK((void *)step != MAP_FAILED);
	job_connects_late = true;
	job_run(&nm_driver_shm, n, body, arg);
	munmap((void *)step, sizeof(*step));
}

static void await(int value)
{
	while (load_acquire(step) < value)
		sched_yield();
}

static bool arm(struct job *j)
{
	j->rail.armed = false;
	j->rail.armed = !nm_driver_shm.is_busy(&j->rail) &&
			nm_driver_shm.arm(&j->rail) == 0;
	return j->rail.armed;
}

static void sleep_once(struct job *j)
{
	struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };

	if (arm(j))
		JOB_CHECK(j, poll(&p, 1, -1) == 1);
}

/* Rank 1 is gone, and nobody has taken it away. */
static void await_end(struct job *j)
{
	CHECK_INT(waitid(P_PID, (id_t)j->pids[1], NULL, WEXITED | WNOWAIT), 0);
}

static bool knows(struct job *j, int rank)
{
	return j->links[rank].conn != NULL;
}

/* --- while others are at it --- */

static struct nm_pkt_in *kept;

static void keep(struct job *j, int from, const struct job_msg *m,
		 struct nm_pkt_in *in)
{
	kept = in;
	j->keep = true;
}

static void *give_back(void *arg)
{
	struct job *j = arg;

	nm_driver_shm.release(&j->rail, kept);
	return NULL;
}

/* TSan looks on. */
static void beside_body(struct job *j)
{
	pthread_t other;

	j->recv = keep;
	if (j->rank == 1)
		job_send(j, 0, 0, 1, 2000);
	if (j->rank == 0) {
		while (job_progress(j), j->ngot == 0)
			;
		JOB_CHECK(j, pthread_create(&other, NULL, give_back, j) == 0);
		JOB_CHECK(j, nm_driver_shm.connect(&j->links[2]) == 0);
		pthread_join(other, NULL);
	}
}

TEST(a_peer_is_met_while_others_give_back_what_came)
{
	run(3, beside_body, NULL);
}

/* --- deaths --- */

static void last_words_body(struct job *j)
{
	enum { N = 20 };

	j->recv = ignore;
	if (j->rank == 1) {
		for (int i = 0; i < N; i++)
			job_send(j, 0, 0, 1, i % 2 ? 100 : 2000);
		while (!job_idle(j))
			job_progress(j);
		kill(getpid(), SIGKILL);
	}
	await_end(j);
	JOB_CHECK(j, !knows(j, 1));
	while (j->deaths[1] == 0)
		job_progress(j);
	CHECK_INT(j->ngot, N);
}

TEST(what_an_unknown_peer_said_before_it_died_is_taken_and_its_death_told)
{
	run(2, last_words_body, NULL);
}

/* It is used for the first time when it is dead already. */
static void late_body(struct job *j)
{
	j->recv = ignore;
	if (j->rank == 1)
		kill(getpid(), SIGKILL);
	await_end(j);
	JOB_CHECK(j, nm_driver_shm.connect(&j->links[1]) == 0);
	while (j->deaths[1] == 0)
		sleep_once(j), job_progress(j);
}

TEST(a_peer_that_died_before_it_was_used_is_dead)
{
	run(2, late_body, NULL);
}

/* As if rank 1 had gone, and its number to another process: to rank 0. */
static void reused_body(struct job *j)
{
	struct shm *shm = j->rail.drv;

	j->recv = ignore;
	if (j->rank == 1) {
		await(1);
		j->deaths[0] = 1; /* they do not meet */
		return;
	}
	shm->arena->card[1].pid = getpid();
	JOB_CHECK(j, nm_driver_shm.connect(&j->links[1]) == 0);
	while (j->deaths[1] == 0)
		job_progress(j);
	store_release(step, 1);
}

TEST(a_number_that_is_another_process_now_is_a_death)
{
	run(2, reused_body, NULL);
}

/* Rank 1 dies over its first slot, rank 2 has filled the next. */
static void claimed_body(struct job *j)
{
	const bool *sleeps = j->arg;
	struct shm_peer *p;
	uint64_t t;

	j->recv = ignore;
	if (j->rank == 1) {
		JOB_CHECK(j, nm_driver_shm.connect(&j->links[0]) == 0);
		p = j->links[0].conn;
		JOB_CHECK(j, shm_ring_claim(&p->tx, &t));
		kill(getpid(), SIGKILL);
	} else if (j->rank == 2) {
		await(1);
		job_send(j, 0, 0, 1, 100);
		while (!job_idle(j))
			job_progress(j);
		j->deaths[1] = 1; /* it has never heard of it */
	} else {
		await_end(j);
		store_release(step, 1);
		while (job_progress(j), j->ngot == 0)
			if (*sleeps)
				sleep_once(j);
		while (j->deaths[1] == 0)
			job_progress(j);
	}
}

TEST(a_slot_that_an_unknown_peer_has_claimed_and_never_fills_is_skipped)
{
	bool sleeps = false;

	run(3, claimed_body, &sleeps);
	sleeps = true;
	run(3, claimed_body, &sleeps);
}

/* --- room --- */

/*
 * Rank 1 fills its share, behind more than one poll takes, and sleeps, before
 * rank 0 has looked for once.
 */
static void hungry_body(struct job *j)
{
	enum { N = 10 * SHM_QUOTA, BEFORE = SHM_QUOTA - 1 };

	j->recv = ignore;
	if (j->rank == 2) {
		for (int i = 0; i < BEFORE; i++)
			job_send(j, 0, 0, 1, 10);
		while (!job_idle(j))
			job_progress(j);
		store_release(step, 1);
		return;
	}
	if (j->rank == 1) {
		struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };

		await(1);
		for (int i = 0; i < N; i++)
			job_send(j, 0, 0, 1, 10);
		while (job_progress(j), !job_idle(j))
			if (arm(j)) {
				store_release(step, 2);
				JOB_CHECK(j, poll(&p, 1, -1) == 1);
			}
		return;
	}
	await(2);
	JOB_CHECK(j, !knows(j, 1));
	while (j->ngot < N + BEFORE)
		job_progress(j);
}

TEST(who_lacks_room_at_a_peer_that_does_not_know_it_is_woken)
{
	run(3, hungry_body, NULL);
}

/* A note of one who is not here: it keeps nobody awake. */
static void nobody_body(struct job *j)
{
	struct shm *shm = j->rail.drv;
	bool sleeps;

	j->recv = ignore;
	if (j->rank == 1) {
		await(1);
		return;
	}
	shm->arena->card[1].there = 0;
	store_relaxed(&shm->seg->note[1].hungry, 1);
	store_relaxed(&shm->seg->bell.hungry, 1);
	job_progress(j);
	sleeps = arm(j);
	store_relaxed(&shm->seg->note[1].hungry, 0);
	shm->arena->card[1].there = 1;
	store_release(step, 1);
	JOB_CHECK(j, sleeps && !knows(j, 1));
}

TEST(a_note_of_nobody_keeps_nobody_awake)
{
	run(2, nobody_body, NULL);
}

/* --- descriptors --- */

/* Rank 0 has not one to spare, and sleeps between the other's words. */
static void none_body(struct job *j)
{
	enum { N = 20 };
	struct rlimit old;

	j->recv = ignore;
	if (j->rank == 0)
		old = job_no_more_files(j);
	for (uint64_t i = 1; i <= N; i++)
		for (int r = 0; r < j->size; r++) {
			if (r == j->rank)
				continue;
			job_send(j, r, 0, i, 100);
			while (job_progress(j), j->nfrom[r] < i || !job_idle(j))
				sleep_once(j);
		}
	JOB_CHECK(j, j->ngot == N * (unsigned)(j->size - 1));
	if (j->rank == 0)
		JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
}

TEST(who_can_open_nothing_any_more_meets_its_peers_and_wakes_them)
{
	run(2, none_body, NULL);
	run(4, none_body, NULL);
}

/* Another thread has taken the spare one. */
static void take_spare(struct job *j)
{
	struct shm *shm = j->rail.drv;

	JOB_CHECK(j, shm->spare >= 0);
	shm->spare = -1; /* it is closed with the process */
}

static void scarce_body(struct job *j)
{
	const bool *hears = j->arg;
	struct rlimit old;

	j->recv = ignore;
	if (j->rank == 1) {
		if (*hears)
			job_send(j, 0, 0, 1, 100);
		while (!job_idle(j))
			job_progress(j);
		store_release(step, 1);
		while (j->ngot == 0)
			job_progress(j);
		return;
	}
	await(1);
	take_spare(j);
	old = job_no_more_files(j);
	job_send(j, 1, 0, 1, 100);
	for (int i = 0; i < 10; i++) {
		job_progress(j);
		JOB_CHECK(j, !job_idle(j) && j->ngot == 0 && !knows(j, 1));
		JOB_CHECK(j, !arm(j)); /* who waits for it would sleep */
	}
	JOB_CHECK(j, setrlimit(RLIMIT_NOFILE, &old) == 0);
	while (j->ngot < *hears || !job_idle(j))
		job_progress(j);
}

TEST(a_peer_is_known_as_soon_as_there_is_a_descriptor_for_it)
{
	bool hears = false;

	run(2, scarce_body, &hears);
	hears = true;
	run(2, scarce_body, &hears);
}

static void share_body(struct job *j)
{
	struct shm *shm = j->rail.drv;

	j->recv = ignore;
	shm->maxpidfds = 2;
	shm->maxbells = 1;
	for (int r = 0; r < j->size; r++)
		if (r != j->rank)
			JOB_CHECK(j, nm_driver_shm.connect(&j->links[r]) == 0);
	JOB_CHECK(j, shm->npidfds == 2 && shm->nblind == 1);
	JOB_CHECK(j, shm->bells.n == 1);
	job_meet(j);
	if (j->rank == 1)
		kill(getpid(), SIGKILL);
	while (j->deaths[1] == 0)
		sleep_once(j), job_progress(j);
	JOB_CHECK(j, shm->npidfds + shm->nblind == 2);
}

TEST(a_share_of_the_descriptors_tells_of_deaths_and_the_clock_of_the_others)
{
	run(4, share_body, NULL);
}

/* --- who is reached at all --- */

static bool reach_each_other(const struct shm_addr *told)
{
	size_t len = told != NULL ? sizeof(*told) : 0;
	bool there, back;

	CHECK_INT(
		nm_driver_shm.join(&rails[0], rails[0].addr, rails[0].addr_len),
		0);
	CHECK_INT(nm_driver_shm.join(&rails[1], told, len), 0);
	there = nm_driver_shm.reaches(&rails[0], 1);
	back = nm_driver_shm.reaches(&rails[1], 0);
	CHECK_INT(there, back);
	CHECK(!nm_driver_shm.reaches(&rails[0], 0));
	return there;
}

TEST(who_does_not_share_memory_with_the_maker_is_left_to_other_drivers)
{
	enum { ALL_WELL, HOST, PIDNS, NONCE, VERSION, BYTES, FD, NONE, ENDS };

	for (int wrong = ALL_WELL; wrong < ENDS; wrong++) {
		struct shm_addr a;

		open_one(0);
		open_one(1);
		memcpy(&a, rails[0].addr, sizeof(a));
		a.host[0] ^= wrong == HOST;
		a.pidns[1] ^= wrong == PIDNS;
		a.nonce[0] ^= wrong == NONCE;
		a.version ^= wrong == VERSION;
		a.bytes += wrong == BYTES;
		a.fd = wrong == FD ? -1 : a.fd;
		CHECK_INT(reach_each_other(wrong == NONE ? NULL : &a),
			  wrong == ALL_WELL);
		nm_driver_shm.close(&rails[0]);
		nm_driver_shm.close(&rails[1]);
	}
}
