/*
 * NMAD_OFFLOAD: a large packet is left to an idle VP, if there is one and
 * nobody waits for it, and leaves when somebody polls.
 */
#include "../../check.h"

#include <errno.h>

#include <nmad/nmad.h>
#include <pioman/pioman.h>

#include "mock.h"

enum { BYTES = 2048, SESSION = 5, OFFLOAD = 300 };

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static char text[BYTES];
static struct nm_sr_request reqs[8];
static int nsent;
static bool idle;

/* Instead of pioman's. */
int piom_any_idle(void)
{
	return idle;
}

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	(void)pkt;
	nsent++;
	return NM_SENT;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	(void)rail;
	(void)budget;
	return false;
}

static const struct nm_driver mock = {
	.name = "mock",
	.max_small = BYTES,
	.post_send = mock_post_send,
	.poll = mock_poll,
};

static void setup(void)
{
	mock_core(&core, &mock, 1 << 20);
	core.config.offload = OFFLOAD;
	peer = &core.gates[1];
	store_relaxed(&peer->eager_max, 1000);
	nsent = 0;
	idle = true;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

static void teardown(void)
{
	CHECK_INT(load_relaxed(&core.pending), 0);
	CHECK(nm_core_is_quiet(&core));
	CHECK_INT(nm_core_session_close(session), 0);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static void send_bytes(int i, size_t bytes, unsigned flags)
{
	struct nm_data d = nm_data_flat(text, bytes);

	CHECK_INT(nm_sr_isend(session, peer, 0, &d, flags, &reqs[i]), 0);
}

TEST(a_large_packet_is_left_to_who_is_idle)
{
	send_bytes(0, OFFLOAD, 0);
	CHECK_INT(nsent, 0);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	CHECK(!nm_core_is_quiet(&core));
	CHECK(nm_core_progress(&core));
	CHECK_INT(nsent, 1);
	CHECK(nm_sr_is_complete(&reqs[0]));
}

TEST(what_comes_behind_it_waits_for_its_turn)
{
	send_bytes(0, OFFLOAD, 0);
	send_bytes(1, 10, 0);
	CHECK_INT(nsent, 0);
	nm_core_progress(&core);
	CHECK_INT(nsent, 2);
	CHECK(nm_sr_is_complete(&reqs[1]));
}

TEST(a_small_one_leaves_at_once)
{
	send_bytes(0, 10, 0);
	CHECK_INT(nsent, 1);
}

TEST(who_waits_at_once_sends_it_himself)
{
	send_bytes(0, OFFLOAD, NM_SEND_NOW);
	CHECK_INT(nsent, 1);
}

TEST(who_waits_for_a_rendezvous_asks_himself)
{
	struct nm_pass pass;

	core.config.offload = 10;
	send_bytes(0, 1500, NM_SEND_NOW);
	CHECK_INT(nsent, 1);
	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	nm_core_unlock(&core, &pass);
	CHECK(nm_sr_is_complete(&reqs[0]));
}

TEST(where_nobody_is_idle_the_sender_sends)
{
	idle = false;
	send_bytes(0, OFFLOAD, 0);
	CHECK_INT(nsent, 1);
}

TEST(it_leaves_though_the_idle_one_has_got_something_to_do)
{
	send_bytes(0, OFFLOAD, 0);
	CHECK_INT(nsent, 0);
	CHECK_INT(nm_sr_test(&reqs[0]), -EAGAIN); /* there is no nm_core_self */
	idle = false;
	nm_core_progress(&core);
	CHECK_INT(nsent, 1);
}

TEST(by_default_nothing_is_left_to_others)
{
	core.config.offload = 0;
	send_bytes(0, 900, 0);
	CHECK_INT(nsent, 1);
}
