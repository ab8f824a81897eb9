/*
 * Bodies by priority: what the receiver grants and what it holds, and what the
 * sender cuts so that something can come between.
 */
#include "rails.h"

#include <unistd.h>

#include "../../../nmad/core/grant.h"

enum { AT_ONCE = 2, MIB = 1 << 20, LONG = 1000 };

static const struct nm_strategy by_priority = {
	.name = "by priority",
	.bodies = AT_ONCE,
	.pack = nm_fifo_pack,
	.cut = cut_as_told,
};

static struct nm_sr_request many[XFERS];

static void setup(void)
{
	rails_setup(&by_priority);
}

/* What a gate keeps once it has received a body. */
static void teardown(void)
{
	size_t bytes = NM_RAILS_MAX * sizeof(*peer->grants);

	if (peer->grants != NULL)
		nm_mem_put(&core.mem, nm_mem_class(bytes), peer->grants);
	rails_teardown();
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* The i-th that is announced is of LONG + i bytes. */
static int nbodies;

static void expect_body(int i)
{
	static char body[2 * LONG];
	struct nm_data d = nm_data_flat(body, sizeof(body));

	CHECK_INT(nm_sr_irecv(session, peer, 0, NM_TAG_ANY, &d, &many[i]), 0);
}

static void announce_body(int rail, int priority)
{
	struct said one = { rail, (uint64_t)(LONG + nbodies++) };

	give_urgent(&one, 1, priority);
}

static void body_comes(int rail, int priority)
{
	expect_body(nbodies);
	announce_body(rail, priority);
}

/* Which one the driver got as its i-th. */
static int granted(int i)
{
	CHECK(i < nreceiving);
	return (int)receiving[i]->length - LONG;
}

/* --- receiving --- */

TEST(few_run_at_once_and_the_highest_is_next)
{
	static const int priorities[] = { 0, -2, -2, 0, 3, 0, 3 };
	static const int order[] = { 0, 1, 4, 6, 3, 5, 2 };

	nbodies = 0;
	for (int i = 0; i < 7; i++)
		body_comes(0, priorities[i]);
	CHECK_INT(nreceiving, AT_ONCE);
	CHECK_INT(nsent, AT_ONCE); /* the others have not been asked for */
	for (int i = 0; i < 7; i++) {
		CHECK_INT(granted(i), order[i]);
		end(receiving[i]);
		CHECK(nm_sr_is_complete(&many[order[i]]));
		CHECK_INT(nreceiving,
			  i + 1 + AT_ONCE < 7 ? i + 1 + AT_ONCE : 7);
	}
	CHECK_INT(nsent, 7);
}

TEST(each_rail_has_bodies_of_its_own)
{
	nbodies = 0;
	for (int i = 0; i < 9; i++)
		body_comes(i % RAILS, 0);
	CHECK_INT(nreceiving, RAILS * AT_ONCE);
	end(receiving[1]);
	CHECK_INT(nreceiving, RAILS * AT_ONCE + 1);
	CHECK_INT(receiving[RAILS * AT_ONCE]->link->rail->index, 1);
	for (int i = 0; i < 9; i++)
		if (i != 1)
			end(receiving[i]);
	for (int i = 0; i < 9; i++)
		CHECK(nm_sr_is_complete(&many[i]));
}

/* The parts of one message do not hold each other up for ever. */
TEST(a_message_of_many_parts_ends)
{
	const struct said parts[] = { { 0, 10 }, { 0, 20 }, { 0, 30 },
				      { 0, 40 }, { 2, 50 }, { 0, 60 } };

	recv_into(0, BYTES);
	give_urgent(parts, 6, -1);
	CHECK_INT(nreceiving, AT_ONCE + 1);
	for (int i = 0; i < 6; i++) {
		CHECK(!nm_sr_is_complete(&reqs[0]));
		end(receiving[i]);
	}
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(status_of(0).length, 210);
}

TEST(the_priority_of_a_body_that_nobody_expected_is_kept)
{
	static const int order[] = { 0, 1, 3, 2 };

	nbodies = 0;
	body_comes(0, 0);
	body_comes(0, 0);
	announce_body(0, -1);
	announce_body(0, 5);
	expect_body(2);
	expect_body(3);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(granted(i), order[i]);
		end(receiving[i]);
	}
}

TEST(a_body_that_is_held_is_passed_a_bounded_number_of_times)
{
	int passed = 0, i = AT_ONCE;

	nbodies = 0;
	body_comes(0, 0);
	body_comes(0, 0);
	body_comes(0, -8);
	for (int k = 0; k < 2 * NM_LEVELS_PATIENCE; k++)
		body_comes(0, 7);
	for (end(receiving[0]); granted(i) != 2; i++, passed++)
		end(receiving[i - 1]);
	CHECK_INT(passed, NM_LEVELS_PATIENCE);
	for (i = i - 1; i < nreceiving; i++)
		end(receiving[i]);
	for (i = 0; i < nbodies; i++)
		CHECK(nm_sr_is_complete(&many[i]));
}

TEST(what_is_held_ends_with_the_peer)
{
	nbodies = 0;
	for (int i = 0; i < 7; i++)
		body_comes(0, i % 3);
	dead[0] = true;
	progress();
	for (int i = 0; i < 7; i++) {
		struct nm_sr_status s;

		CHECK(nm_sr_is_complete(&many[i]));
		nm_sr_status(&many[i], &s);
		CHECK_INT(s.error, -ECONNRESET);
	}
	CHECK_INT(nreceiving, AT_ONCE);
}

TEST(a_dump_shows_what_runs_and_what_is_held)
{
	int saved = dup(STDERR_FILENO), ends[2];
	static char seen[4096];
	ssize_t n;

	nbodies = 0;
	for (int i = 0; i < 5; i++)
		body_comes(0, 0);
	CHECK_INT(pipe(ends), 0);
	CHECK(dup2(ends[1], STDERR_FILENO) >= 0);
	nm_core_dump(&core);
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	n = read(ends[0], seen, sizeof(seen) - 1);
	close(ends[0]);
	close(ends[1]);
	close(saved);
	CHECK(n > 0);
	CHECK(strstr(seen, "0 offered; by priority 2 granted, 3 held") != NULL);
	for (int i = 0; i < 5; i++)
		end(receiving[i]);
}

/* --- sending --- */

static struct nm_wire_chunk send_long(size_t bytes, int priority)
{
	struct nm_data d = nm_data_flat(reqs, bytes); /* nobody looks */
	;

	CHECK_INT(nm_sr_isend_priority(session, peer, 0, &d, 0, priority,
				       &reqs[0]),
		  0);
	return chunk_of(0);
}

static void check_parts(const struct nm_wire_chunk *rts, int n)
{
	uint64_t sum = 0;

	CHECK_INT(rts->nparts, n);
	for (int i = 0; i < n; i++)
		sum += part_of(rts, i).length;
	CHECK_INT(sum, rts->length);
	dead[0] = true;
}

TEST(a_long_body_is_cut_so_that_others_get_between)
{
	struct nm_wire_chunk rts;

	shares_are(16 * MIB + 1, 0, 0);
	rts = send_long(16 * MIB + 1, -1);
	check_parts(&rts, NM_WIRE_PARTS_MAX);
	CHECK_INT(rts.priority, -1);
	for (int i = 0; i < NM_WIRE_PARTS_MAX; i++) {
		CHECK_INT(part_of(&rts, i).rail, 0);
		CHECK(part_of(&rts, i).length <= 2 * MIB + 64);
	}
}

TEST(of_several_rails_each_has_its_share_in_parts)
{
	static const int rails[] = { 0, 0, 1, 1, 2 };
	struct nm_wire_chunk rts;

	shares_are(4 * MIB, 2 * MIB, MIB / 4);
	rts = send_long(6 * MIB + MIB / 4, 0);
	check_parts(&rts, 5);
	for (int i = 0; i < 5; i++)
		CHECK_INT(part_of(&rts, i).rail, rails[i]);
	CHECK_INT(part_of(&rts, 0).length, 2 * MIB);
	CHECK_INT(part_of(&rts, 3).length, MIB);
}

TEST(what_is_short_or_most_urgent_goes_as_a_whole)
{
	struct nm_wire_chunk rts;

	shares_are(16 * MIB, 0, 0);
	if (check_random() % 2) {
		rts = send_long(16 * MIB, NM_PRIORITY_MAX);
	} else {
		shares_are(MIB / 2 - 1, 0, 0);
		rts = send_long(MIB / 2 - 1, 0);
	}
	check_parts(&rts, 1);
}
