/*
 * A core with one rail, whose driver records packets and keeps each under way
 * until the test lets it go: what waits for the gate meanwhile is the
 * strategy's.
 */
#ifndef TESTS_NMAD_STRATEGIES_BUSY_H
#define TESTS_NMAD_STRATEGIES_BUSY_H

#include "../../check.h"

#include <errno.h>

#include <nmad/nmad.h>

#include "../core/mock.h"

enum { BYTES = 2048, PACKETS = 256, SESSION = 5, REQS = 256, TEXT = 1500 };

static struct nm_core core;
static struct nm_session *sessions[2];
static struct nm_gate *peer;
static struct nm_sr_request reqs[REQS];
static char text[REQS][TEXT];
static unsigned char sent[PACKETS][BYTES];
static size_t length[PACKETS];
static int nsent, nreqs;
static struct nm_pkt *under_way;
static bool at_once; /* it does not keep them */

/* --- the driver: one packet at a time, until it is let go --- */

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	CHECK(nsent < PACKETS);
	length[nsent] = nm_pkt_length(pkt);
	nm_pkt_copy(pkt, sent[nsent++]);
	if (at_once)
		return NM_SENT;
	under_way = pkt;
	return NM_POSTED;
}

static bool may_go;

static bool mock_poll(struct nm_rail *rail, int budget)
{
	struct nm_pkt *pkt = under_way;

	(void)budget;
	if (pkt == NULL || !may_go)
		return false;
	may_go = false;
	under_way = NULL;
	nm_rail_sent(rail, pkt);
	return true;
}

static void mock_xfer_offer(struct nm_xfer *x)
{
	x->mine.length = 3;
	memcpy(x->mine.bytes, "abc", 3);
}

static struct nm_driver mock = {
	.name = "mock",
	.max_small = BYTES,
	.fill = BYTES,
	.rdv_threshold = 500,
	.post_send = mock_post_send,
	.poll = mock_poll,
	.xfer_offer = mock_xfer_offer,
};

static inline void busy_setup(const struct nm_strategy *strategy,
			      uint64_t window)
{
	mock_core(&core, &mock, window);
	core.config.strategy = strategy;
	peer = &core.gates[1];
	nsent = nreqs = 0;
	may_go = at_once = false;
	under_way = NULL;
	for (uint64_t i = 0; i < 2; i++)
		CHECK_INT(
			nm_core_session_open(&core, SESSION + i, &sessions[i]),
			0);
}

/* The packet under way has left: what has gathered follows. */
static inline void go(void)
{
	may_go = true;
	while (may_go)
		CHECK(nm_core_progress(&core));
}

static inline void busy_teardown(void)
{
	struct nm_pass pass;

	while (under_way != NULL)
		go();
	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	nm_core_unlock(&core, &pass);
	for (int i = 0; i < nreqs; i++)
		CHECK(nm_sr_is_complete(&reqs[i]));
	for (int i = 0; i < 2; i++)
		CHECK_INT(nm_core_session_close(sessions[i]), 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_exit(&core);
}

static inline int send_prio(int session, uint32_t tag, size_t bytes,
			    unsigned flags, int priority)
{
	struct nm_data d = nm_data_flat(text[nreqs], bytes);

	CHECK(nreqs < REQS && bytes <= TEXT);
	memset(text[nreqs], 'a' + nreqs % 26, bytes);
	CHECK_INT(nm_sr_isend_priority(sessions[session], peer, tag, &d, flags,
				       priority, &reqs[nreqs]),
		  0);
	return nreqs++;
}

static inline int send_in(int session, uint32_t tag, size_t bytes,
			  unsigned flags)
{
	return send_prio(session, tag, bytes, flags, 0);
}

/* The chunks of the i-th packet that left; their number. */
static inline int chunks_of(int i, struct nm_wire_chunk *c)
{
	struct nm_wire_head h;
	size_t at = NM_WIRE_HEAD;

	CHECK(i < nsent);
	CHECK_INT(nm_wire_get_head(sent[i], length[i], &h), 0);
	for (int n = 0; n < h.nchunks; n++)
		CHECK_INT(nm_wire_get_chunk(sent[i], length[i], &at, c++), 0);
	CHECK_INT(at, length[i]);
	return h.nchunks;
}

#endif
