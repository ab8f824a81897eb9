/*
 * How many packets a burst takes, between two processes, by GATHERS:
 *
 *   dear    fewer than messages, as a packet is dear and the strategy gathers
 *   full    one a message as long as there is room for it
 *   never   one a message, always
 *
 * A core that has been polled late gathers less, and a machine that is busy
 * with others polls late. So who gathers is asked until it does; what it does
 * when, tests/nmad/core/burst.c says. Under TSan a burst takes longer than a
 * poll may be late, and nothing is asked. Room is short where the receiver is
 * held up.
 */
#include "../../check.h"

#include <stdlib.h>
#include <string.h>

#include <base/compiler.h>
#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"

enum {
	BURST = 64,
	ROUNDS = 200,
	FIRST = 5, /* rounds before, which also connect */
	FEW = BURST / 2,
	SESSION = 7,
	ANSWER = 1,
	ENOUGH = 2, /* holds whether the round before was the last */
};

static struct nm_session *session;
static struct nm_gate *peer;

static uint64_t packets(void)
{
	struct nm_pass pass;
	uint64_t n;

	nm_core_lock(nm_core_self);
	nm_core_settle(nm_core_self, &pass);
	n = load_relaxed(&peer->nsent);
	nm_core_unlock(nm_core_self, &pass);
	return n;
}

/* BURST messages and an answer. What they took. */
static uint64_t send_round(void)
{
	static struct nm_sr_request reqs[BURST];
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_sr_request answer;
	uint64_t before = packets();

	CHECK_INT(nm_sr_irecv(session, peer, ANSWER, NM_TAG_EXACT, &nothing,
			      &answer),
		  0);
	for (int i = 0; i < BURST; i++)
		CHECK_INT(nm_sr_isend(session, peer, 0, &nothing, 0, &reqs[i]),
			  0);
	for (int i = 0; i < BURST; i++)
		nm_sr_wait(&reqs[i]);
	nm_sr_wait(&answer);
	return packets() - before;
}

static void receive_round(void)
{
	static struct nm_sr_request reqs[BURST];
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_sr_request answer;

	for (int i = 0; i < BURST; i++)
		CHECK_INT(nm_sr_irecv(session, peer, 0, NM_TAG_EXACT, &nothing,
				      &reqs[i]),
			  0);
	for (int i = 0; i < BURST; i++)
		nm_sr_wait(&reqs[i]);
	CHECK_INT(nm_sr_isend(session, peer, ANSWER, &nothing, NM_SEND_NOW,
			      &answer),
		  0);
	nm_sr_wait(&answer);
}

/* Rank 0 says to rank 1 whether that is enough. */
static bool agree(bool enough)
{
	struct nm_data data = nm_data_flat(&enough, sizeof(enough));
	struct nm_sr_request req;

	if (nm_rank() == 0)
		CHECK_INT(nm_sr_isend(session, peer, ENOUGH, &data, NM_SEND_NOW,
				      &req),
			  0);
	else
		CHECK_INT(nm_sr_irecv(session, peer, ENOUGH, NM_TAG_EXACT,
				      &data, &req),
			  0);
	nm_sr_wait(&req);
	return enough;
}

/* In how many of these rounds a burst took few packets. */
static int few_of(int rounds)
{
	int few = 0;

	for (int i = 0; i < rounds; i++) {
		if (nm_rank() != 0)
			receive_round();
		else if (send_round() <= FEW)
			few++;
	}
	return few;
}

TEST(a_burst_takes_few_packets_only_where_they_are_dear)
{
	const char *gathers = getenv("GATHERS");
	bool dear = strcmp(gathers, "dear") == 0;
	int few;

	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_size(), 2);
	peer = nm_gate_of(1 - nm_rank());
	CHECK_INT(nm_session_open(SESSION, &session), 0);
	few_of(FIRST);
	do {
		few = few_of(ROUNDS);
	} while (!agree(few > 0 || !dear || BASE_TSAN));
	if (strcmp(gathers, "full") == 0)
		CHECK(few < ROUNDS);
	if (strcmp(gathers, "never") == 0)
		CHECK_INT(few, 0);
	CHECK_INT(nm_session_close(session), 0);
	CHECK_INT(nm_exit(), 0);
}
