/*
 * How many packets a burst takes, between two processes: fewer than messages
 * where a packet is dear and the strategy gathers (GATHERS=1), else one each.
 */
#include "../../check.h"

#include <stdlib.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"

enum {
	BURST = 64,
	ROUNDS = 200,
	FIRST = 5, /* rounds that are not counted: they also connect */
	FEW = BURST / 2,
	SESSION = 7,
	ANSWER = 1,
};

static struct nm_session *session;
static struct nm_gate *peer;

static uint64_t packets(void)
{
	struct nm_pass pass;
	uint64_t n;

	nm_core_lock(nm_core_self);
	nm_core_settle(nm_core_self, &pass);
	n = peer->nsent;
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

TEST(a_burst_takes_few_packets_only_where_they_are_dear)
{
	bool gathers = getenv("GATHERS") != NULL;
	int few = 0;

	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_size(), 2);
	peer = nm_gate_of(1 - nm_rank());
	CHECK_INT(nm_session_open(SESSION, &session), 0);
	for (int i = 0; i < ROUNDS; i++) {
		if (nm_rank() != 0)
			receive_round();
		else if (send_round() <= FEW && i >= FIRST)
			few++;
	}
	/* Not always: it is held up now and then, and trusts less then. */
	if (nm_rank() == 0)
		CHECK(gathers ? few > 0 : few == 0);
	CHECK_INT(nm_session_close(session), 0);
	CHECK_INT(nm_exit(), 0);
}
