/*
 * drivers/shm: announced transfers. Rank 0 sends to places that rank 1 has
 * announced, and they tell each other of it through memory of the test's own,
 * so that nobody polls but where it is said.
 */
#include "job.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/atomic.h>

#include "../../../nmad/drivers/shm/shm.h"

extern const struct nm_driver nm_driver_shm;

enum { BYTES = 3000000, MORE = 5000, FREE = SHM_CTLS - SHM_PIPES };

/* What the two know of each other. */
struct board {
	ATOMIC(uint32_t) step; /* a: */
	struct nm_token place, offer;
};

static struct board *board;
static unsigned char *bytes;

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

/* The next step is reached, and awaited, with or without progress. */
static void reach(uint32_t step)
{
	store_release(&board->step, step);
}

static void await(struct job *j, uint32_t step, bool progress)
{
	while (load_acquire(&board->step) < step) {
		if (progress)
			job_progress(j);
		else
			sched_yield();
	}
}

static void run(void (*body)(struct job *), int nprocesses)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(board != MAP_FAILED);
	bytes = malloc(BYTES + MORE);
	CHECK(bytes != NULL);
	job_run(&nm_driver_shm, nprocesses, body, NULL);
	free(bytes);
	munmap(board, sizeof(*board));
}

/* Where the kernel refuses, the driver says so and nothing is announced. */
static bool can_announce(struct job *j)
{
	const struct shm_peer *p = j->links[j->rank == 0].conn;

	j->recv = ignore;
	if (!nm_shm_has_cma(p) && j->rank == 0)
		check_skip("the kernel lets nobody into others' memory here");
	return nm_shm_has_cma(p);
}

static struct nm_data flat(size_t length)
{
	return nm_data_flat(bytes, length);
}

/* --- the sender alone --- */

static void alone_body(struct job *j)
{
	struct job_large l;

	if (!can_announce(j))
		return;
	if (j->rank == 0) {
		await(j, 1, true);
		job_pattern(7, bytes, BYTES);
		JOB_CHECK(j, job_large_take(j, 1, &l, flat(BYTES), BYTES,
					    &board->place) == 0);
		board->offer = l.x.mine;
		while (l.status == -EINPROGRESS)
			job_progress(j);
		JOB_CHECK(j, l.status == 0);
		reach(2);
		return;
	}
	memset(bytes, 0, BYTES + MORE);
	JOB_CHECK(j, job_large_announce(j, 0, &l, flat(BYTES + MORE),
					BYTES + MORE) == 0);
	board->place = l.x.mine;
	reach(1);
	await(j, 2, false);
	JOB_CHECK(j, job_is_pattern(7, bytes, BYTES));
	JOB_CHECK(j, bytes[BYTES] == 0 && bytes[BYTES + MORE - 1] == 0);
	JOB_CHECK(j, job_large_meet(j, &l, BYTES, &board->offer) == 0);
	while (l.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, l.status == 0);
}

TEST(the_sender_alone_brings_it_to_its_place)
{
	run(alone_body, 2);
}

/* --- both --- */

static void both_body(struct job *j)
{
	struct job_large l;

	if (!can_announce(j))
		return;
	for (uint32_t i = 0; i < 20; i++) {
		size_t length = BYTES - i * 137211;

		if (j->rank == 0) {
			await(j, 3 * i + 1, true);
			job_pattern(i, bytes, length);
			JOB_CHECK(j,
				  job_large_take(j, 1, &l, flat(length), length,
						 &board->place) == 0);
			board->offer = l.x.mine;
			reach(3 * i + 2);
		} else {
			JOB_CHECK(j, job_large_announce(j, 0, &l, flat(BYTES),
							BYTES) == 0);
			board->place = l.x.mine;
			reach(3 * i + 1);
			await(j, 3 * i + 2, true);
			JOB_CHECK(j, job_large_meet(j, &l, length,
						    &board->offer) == 0);
		}
		while (l.status == -EINPROGRESS)
			job_progress(j);
		JOB_CHECK(j, l.status == 0);
		if (j->rank == 1) {
			JOB_CHECK(j, job_is_pattern(i, bytes, length));
			reach(3 * i + 3);
		}
		await(j, 3 * i + 3, true);
	}
}

TEST(the_receiver_joins_when_it_hears_of_it)
{
	run(both_body, 2);
}

/* --- who is woken --- */

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Rank 0 brings the body to rank 1, which sleeps; bells that it rang. */
static uint64_t bells_for_one(struct job *j)
{
	uint64_t before = load_relaxed(&j->stats.calls[NM_CALL_BELL]);
	struct job_large l;

	JOB_CHECK(j, job_large_take(j, 1, &l, flat(BYTES), BYTES,
				    &board->place) == 0);
	board->offer = l.x.mine;
	while (l.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, l.status == 0);
	return load_relaxed(&j->stats.calls[NM_CALL_BELL]) - before;
}

/* Rank 1 sleeps, and waits for it or not; what came is read then. */
static void sleep_over(struct job *j, uint32_t step, bool waits)
{
	struct job_large l;

	JOB_CHECK(j, job_large_announce(j, 0, &l, flat(BYTES), BYTES) == 0);
	board->place = l.x.mine;
	if (waits)
		nm_awaited_set(l.x.awaited);
	while (j->driver->arm(&j->rail) != 0)
		j->driver->poll(&j->rail, 1);
	reach(step);
	await(j, step + 1, false);
	JOB_CHECK(j, is_readable(j->rail.fd) == waits);
	JOB_CHECK(j, job_large_meet(j, &l, BYTES, &board->offer) == 0);
	while (l.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, l.status == 0);
}

static void woken_body(struct job *j)
{
	if (!can_announce(j))
		return;
	for (uint32_t i = 0; i < 10; i++) {
		bool waits = i % 3 == 1;

		if (j->rank == 1) {
			sleep_over(j, 2 * i + 1, waits);
			continue;
		}
		await(j, 2 * i + 1, true);
		JOB_CHECK(j, bells_for_one(j) == waits);
		reach(2 * i + 2);
	}
}

TEST(who_sleeps_is_woken_if_somebody_waits_for_it)
{
	run(woken_body, 2);
}

/* --- recalled --- */

/* The block that a token names: its sixth word. */
static uint32_t block_of(const struct nm_token *place)
{
	uint32_t block;

	memcpy(&block, place->bytes + 20, sizeof(block));
	return block;
}

static void announce(struct job *j, struct job_large *l)
{
	JOB_CHECK(j, job_large_announce(j, 0, l, flat(BYTES), BYTES) == 0);
}

/* Until it has the block that the first one had. */
static void announce_there(struct job *j, struct job_large *l, uint32_t block)
{
	announce(j, l);
	for (int i = 0; block_of(&l->x.mine) != block; i++) {
		JOB_CHECK(j, i < 2 * FREE);
		JOB_CHECK(j, job_large_recall(j, l, false) == 0);
		announce(j, l);
	}
}

static void take(struct job *j, struct job_large *l, int expected,
		 const struct nm_token *place)
{
	JOB_CHECK(j, job_large_take(j, 1, l, flat(10000), 10000, place) ==
			     expected);
}

static void recalled_body(struct job *j)
{
	struct job_large l;

	if (!can_announce(j))
		return;
	if (j->rank == 0) {
		await(j, 1, true);
		take(j, &l, -ECANCELED, &board->place);
		reach(2);
		await(j, 3, true);
		take(j, &l, -ECANCELED, &board->place);
		take(j, &l, 0, &board->offer);
		board->offer = l.x.mine;
		reach(4);
	} else {
		announce(j, &l);
		board->place = l.x.mine;
		JOB_CHECK(j, job_large_recall(j, &l, false) == 0);
		reach(1);
		await(j, 2, true);
		announce_there(j, &l, block_of(&board->place));
		board->offer = l.x.mine;
		reach(3);
		await(j, 4, true);
		JOB_CHECK(j, job_large_recall(j, &l, false) == -EALREADY);
		JOB_CHECK(j, job_large_meet(j, &l, 10000, &board->offer) == 0);
	}
	while (l.status == -EINPROGRESS)
		job_progress(j);
	JOB_CHECK(j, l.status == 0);
}

TEST(what_is_recalled_cannot_be_taken_nor_what_replaces_it_by_its_number)
{
	run(recalled_body, 2);
}

/* Both at once, again and again: exactly one gets it. */
static void race_body(struct job *j)
{
	struct job_large l;

	if (!can_announce(j))
		return;
	for (uint32_t i = 0; i < 2000; i++) {
		bool won;

		if (j->rank == 0) {
			await(j, 4 * i + 1, false);
			won = job_large_take(j, 1, &l, flat(10000), 10000,
					     &board->place) == 0;
			if (won)
				board->offer = l.x.mine;
			board->place.length = won;
			reach(4 * i + 2);
		} else {
			announce(j, &l);
			board->place = l.x.mine;
			reach(4 * i + 1);
			won = job_large_recall(j, &l, false) == 0;
			await(j, 4 * i + 2, false);
			JOB_CHECK(j, won == (board->place.length == 0));
			if (!won)
				JOB_CHECK(j,
					  job_large_meet(j, &l, 10000,
							 &board->offer) == 0);
		}
		if (won != (j->rank == 1))
			while (l.status == -EINPROGRESS)
				job_progress(j);
		if (j->rank == 1)
			reach(4 * i + 3);
		await(j, 4 * i + 3, true);
	}
}

TEST(of_who_takes_and_who_recalls_exactly_one_gets_it)
{
	run(race_body, 2);
}

/* --- how many, and whose --- */

static void many_body(struct job *j)
{
	static struct job_large all[SHM_CTLS];
	struct job_large l;
	int n = 0;

	if (!can_announce(j) || j->rank == 0)
		return;
	for (int round = 0; round < 3; round++) {
		for (n = 0; n < SHM_CTLS; n++)
			if (job_large_announce(j, 0, &all[n], flat(BYTES),
					       BYTES) < 0)
				break;
		JOB_CHECK(j, n == FREE - SHM_CTLS / 2);
		JOB_CHECK(j, job_large_announce(j, 0, &l, flat(BYTES), BYTES) ==
				     -EAGAIN);
		while (n > 0)
			JOB_CHECK(j,
				  job_large_recall(j, &all[--n], false) == 0);
	}
}

TEST(some_blocks_are_left_for_who_asks)
{
	run(many_body, 2);
}

/* As many as there may be are to be had, for rank 2; and then again. */
static void take_all_blocks(struct job *j)
{
	static struct job_large all[SHM_CTLS];
	int n;

	for (n = 0; n < FREE - SHM_CTLS / 2; n++)
		JOB_CHECK(j, job_large_announce(j, 2, &all[n], flat(BYTES),
						BYTES) == 0);
	while (n-- > 0)
		JOB_CHECK(j, job_large_recall(j, &all[n], false) == 0);
}

/* Rank 1 is the sender here, and dies when it has taken half of them. */
static void dead_body(struct job *j)
{
	static struct job_large all[SHM_CTLS];
	struct job_large l;
	uint32_t n = 0;

	if (!can_announce(j) || j->rank == 2)
		return;
	if (j->rank == 1) {
		for (;; n += 2) {
			await(j, n + 1, false);
			if (board->place.length == 0)
				kill(getpid(), SIGKILL);
			JOB_CHECK(j, job_large_take(j, 0, &all[n], flat(10000),
						    10000, &board->place) == 0);
			reach(n + 2);
		}
	}
	for (; n < 50; n++) {
		JOB_CHECK(j, job_large_announce(j, 1, &all[n], flat(BYTES),
						BYTES) == 0);
		if (n % 2 == 0) {
			board->place = all[n].x.mine;
			reach(n + 1);
			await(j, n + 2, false);
		}
	}
	board->place.length = 0;
	reach(n + 1);
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j,
		  job_large_announce(j, 1, &l, flat(BYTES), BYTES) == -EAGAIN);
	while (n-- > 0)
		JOB_CHECK(j, job_large_recall(j, &all[n], true) == 0);
	take_all_blocks(j);
}

TEST(a_death_is_no_end_of_the_blocks_that_were_taken)
{
	run(dead_body, 3);
}

/* Rank 1 dies when it has moved all, or nothing, of what it took. */
static void brought_body(struct job *j)
{
	struct job_large all, nothing;

	if (!can_announce(j) || j->rank == 2)
		return;
	if (j->rank == 1) {
		await(j, 1, false);
		job_pattern(7, bytes, BYTES);
		JOB_CHECK(j, job_large_take(j, 0, &all, flat(BYTES), BYTES,
					    &board->place) == 0);
		while (all.status == -EINPROGRESS)
			job_progress(j);
		board->place = all.x.mine;
		reach(2);
		await(j, 3, false);
		JOB_CHECK(j, job_large_take(j, 0, &nothing, flat(BYTES), BYTES,
					    &board->offer) == 0);
		board->offer = nothing.x.mine;
		reach(4);
		kill(getpid(), SIGKILL);
	}
	JOB_CHECK(j, job_large_announce(j, 1, &all, flat(BYTES), BYTES) == 0);
	JOB_CHECK(j,
		  job_large_announce(j, 1, &nothing, flat(BYTES), BYTES) == 0);
	board->place = all.x.mine;
	reach(1);
	await(j, 2, false);
	board->offer = nothing.x.mine;
	reach(3);
	await(j, 4, false);
	while (j->deaths[1] == 0)
		job_progress(j);
	JOB_CHECK(j, job_large_meet(j, &all, BYTES, &board->place) == 0);
	JOB_CHECK(j, all.status == 0);
	JOB_CHECK(j, job_is_pattern(7, bytes, BYTES));
	JOB_CHECK(j, job_large_meet(j, &nothing, BYTES, &board->offer) ==
			     -ECONNRESET);
	take_all_blocks(j);
}

TEST(what_the_dead_have_brought_is_there)
{
	run(brought_body, 3);
}

/* --- nonsense --- */

static void nonsense_body(struct job *j)
{
	struct nm_token good, bad;
	struct job_large l;

	if (!can_announce(j))
		return;
	if (j->rank == 1) {
		announce(j, &l);
		board->place = l.x.mine;
		reach(1);
		await(j, 2, true);
		JOB_CHECK(j, job_large_recall(j, &l, false) == 0);
		return;
	}
	await(j, 1, true);
	good = board->place;
	bad = good;
	bad.length--;
	take(j, &l, -EPROTO, &bad);
	for (int at = 16; at < 24; at++) { /* flags, block */
		bad = good;
		bad.bytes[at] ^= 0xff;
		if (at != 20) /* may be another's block */
			take(j, &l, -EPROTO, &bad);
	}
	JOB_CHECK(j, job_large_take(j, 1, &l, flat(BYTES), BYTES + 1, &good) ==
			     -EPROTO);
	reach(2);
}

TEST(a_place_that_cannot_be_is_not_taken)
{
	run(nonsense_body, 2);
}

/* It says that the place is here, and we have never heard of it here. */
static void unused_body(struct job *j)
{
	struct job_large l;

	if (j->rank == 1) {
		JOB_CHECK(j, nm_driver_shm.connect(&j->links[0]) == 0);
		if (!can_announce(j))
			l.x.mine.length = 0;
		else
			announce(j, &l);
		board->place = l.x.mine;
		reach(1);
		await(j, 2, true);
		if (can_announce(j))
			JOB_CHECK(j, job_large_recall(j, &l, false) == 0);
		return;
	}
	j->recv = ignore;
	await(j, 1, false);
	if (board->place.length > 0)
		take(j, &l, -EINVAL, &board->place);
	reach(2);
}

TEST(a_place_at_a_peer_that_is_not_used_is_not_taken)
{
	job_connects_late = true;
	run(unused_body, 2);
	job_connects_late = false;
}

/* --- those who wait for other things --- */

/* Rank 1 has claimed a slot, and fills it when rank 0 sleeps. */
static void hold_it(struct job *j)
{
	reach(1);
	await(j, 3, false);
	job_copies = NULL;
}

/* What rank 1 brings nobody waits for; what rank 2 has sent lies behind it. */
static void behind_body(struct job *j)
{
	static struct nm_awaited nobody;

	j->recv = ignore;
	if (j->rank == 1) {
		job_awaited = &nobody;
		job_copies = hold_it;
		job_send(j, 0, 0, 1, 10);
		while (!job_idle(j))
			job_progress(j);
		job_awaited = NULL;
		reach(4);
	} else if (j->rank == 2) {
		await(j, 1, false);
		job_send(j, 0, 0, 1, 10);
		while (!job_idle(j))
			job_progress(j);
		reach(2);
	} else {
		struct pollfd p = { .fd = j->rail.fd, .events = POLLIN };

		await(j, 2, false);
		while (job_progress(j), nm_driver_shm.arm(&j->rail) != 0)
			;
		JOB_CHECK(j, j->ngot == 0);
		reach(3);
		await(j, 4, false);
		JOB_CHECK(j, poll(&p, 1, 0) == 1);
		while (j->ngot < 2)
			job_progress(j);
	}
}

TEST(a_message_behind_one_that_nobody_waits_for_wakes_who_waits_for_it)
{
	run(behind_body, 3);
}
