/*
 * What a peer has sent before its death counts, also where two owners of the
 * rail enter the core in the other order than they had the rail in: the one who
 * has taken its last packets may be stopped anywhere, and the next one finds
 * it dead. So it is where the link may be lost and the peer live, for the gate
 * may have no other.
 */
#include "../../check.h"

#include <errno.h>

#include <nmad/sendrecv.h>

#include "../../../nmad/core/lost.h"
#include "mock.h"

enum { BYTES = 256, SESSION = 5, WINDOW = 1000, PACKETS = 2, RAILS = 2 };

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct nm_pkt_in packets[PACKETS + 1];
static unsigned char bytes[PACKETS + 1][BYTES];
static int nreleased;

static struct nm_xfer *receiving;

static void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
	nreleased++;
}

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	(void)pkt;
	return NM_SENT;
}

static void mock_give_up(struct nm_link *link)
{
	(void)link;
}

static uint32_t mock_arrived(const struct nm_link *link)
{
	return link->told;
}

static int mock_xfer_recv(struct nm_xfer *x)
{
	receiving = x;
	nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

#define DRIVER                                                                 \
	.max_small = BYTES, .post_send = mock_post_send,                       \
	.release = mock_release, .give_up = mock_give_up,                      \
	.xfer_recv = mock_xfer_recv

static const struct nm_driver mock = { .name = "mock", DRIVER };
static const struct nm_driver resends = { .name = "resends",
					  .caps = NM_CAP_RESENDS,
					  .arrived = mock_arrived,
					  DRIVER };

static void setup(void)
{
	mock_core_rails(&core, &mock, WINDOW, RAILS);
	peer = &core.gates[1];
	nreleased = 0;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

static void teardown(void)
{
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	mock_exit_rails(&core);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* Each link may be lost, and the peer live. */
static void let_resend(void)
{
	for (int i = 0; i < RAILS; i++) {
		core.rails[i].driver = &resends;
		peer->links[i]->may_lose = true;
	}
}

/* An owner takes the i-th packet, which has this chunk only. */
static void take_chunk(struct nm_news *news, int over, int i,
		       const struct nm_wire_chunk *c)
{
	struct nm_wire_head h = { 1, 0 };
	struct nm_rail *rail = &core.rails[over];
	struct nm_pkt_in *in = &packets[i];

	nm_wire_put_head(bytes[i], &h);
	nm_wire_put_chunk(bytes[i] + NM_WIRE_HEAD, c);
	in->length = NM_WIRE_HEAD + nm_wire_chunk_size(c);
	if (c->kind == NM_WIRE_KIND_EAGER)
		bytes[i][in->length++] = 'x';
	in->data = bytes[i];
	in->link = &rail->links[1];
	rail->news = news;
	nm_rail_recv(rail, in);
}

/* One message of a byte. */
static struct nm_wire_chunk message(int i)
{
	return (struct nm_wire_chunk){ .kind = NM_WIRE_KIND_EAGER,
				       .tag = 1,
				       .seq = (uint32_t)i,
				       .session = SESSION,
				       .length = 1,
				       .payload = "x" };
}

static void take(struct nm_news *news, int i)
{
	struct nm_wire_chunk c = message(i);

	nm_news_init(news, false);
	take_chunk(news, 0, i, &c);
}

/* Another one finds the peer dead. */
static void find_dead(struct nm_news *news, int over)
{
	struct nm_rail *rail = &core.rails[over];

	rail->news = news;
	nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
}

/* All that he hears of is that the other link is dead. */
static void lose_the_other(void)
{
	struct nm_news news;

	nm_news_init(&news, false);
	find_dead(&news, 1);
	mock_settle(&core, &news);
	CHECK_INT(peer->error, 0);
	CHECK_INT(peer->nlinks, 1);
}

static void receive(struct nm_sr_request *req, char *byte)
{
	struct nm_data data = nm_data_flat(byte, 1);

	CHECK_INT(nm_sr_irecv(session, peer, 1, NM_TAG_EXACT, &data, req), 0);
}

static int error_of(const struct nm_sr_request *req)
{
	struct nm_sr_status status;

	CHECK(nm_sr_is_complete(req));
	nm_sr_status(req, &status);
	return status.error;
}

static struct nm_sr_request req[PACKETS + 1];
static struct nm_news slow[PACKETS], fast;
static char byte[PACKETS + 1];

/* The owners of two messages are slow, and somebody else is about to enter. */
static void owners_are_slow(void)
{
	for (int i = 0; i < PACKETS; i++)
		take(&slow[i], i);
	nm_news_init(&fast, false);
	for (int i = 0; i <= PACKETS; i++) {
		byte[i] = 0;
		receive(&req[i], &byte[i]);
	}
}

/* He enters; then they do. What they have brought counts, and is the last. */
static void fast_is_first(void)
{
	mock_settle(&core, &fast);
	CHECK_INT(peer->error, 0);
	for (int i = PACKETS; i-- > 0;)
		mock_settle(&core, &slow[i]);
	for (int i = 0; i < PACKETS; i++) {
		CHECK_INT(error_of(&req[i]), 0);
		CHECK_INT(byte[i], 'x');
	}
	CHECK_INT(error_of(&req[PACKETS]), -ECONNRESET);
	CHECK(nreleased >= PACKETS);
	CHECK_INT(peer->error, -ECONNRESET);
}

/* --- the peer dies --- */

TEST(a_death_does_not_overtake_what_was_sent_before_it)
{
	owners_are_slow();
	find_dead(&fast, 0);
	fast_is_first();
}

TEST(a_death_that_comes_last_is_heard_of_at_once)
{
	nm_news_init(&fast, false);
	take(&fast, 0);
	find_dead(&fast, 0);
	receive(&req[0], &byte[0]);
	receive(&req[1], &byte[1]);
	mock_settle(&core, &fast);
	CHECK_INT(error_of(&req[0]), 0);
	CHECK_INT(error_of(&req[1]), -ECONNRESET);
}

/* --- the last link of a gate is lost --- */

TEST(the_last_link_is_not_lost_before_what_it_has_brought)
{
	let_resend();
	lose_the_other();
	owners_are_slow();
	find_dead(&fast, 0);
	fast_is_first();
}

TEST(a_packet_in_doubt_does_not_overtake_what_was_sent_before)
{
	struct nm_rail *rail = &core.rails[0];

	let_resend();
	lose_the_other();
	owners_are_slow();
	rail->news = &fast;
	nm_rail_unsure(rail, &rail->links[1], 0, "12345678", 8);
	find_dead(&fast, 0);
	fast_is_first();
}

/* A body of 1000 bytes comes over the first rail. */
static void body_begins(struct nm_sr_request *body, char *memory)
{
	struct nm_data data = nm_data_flat(memory, 1000);
	struct nm_wire_part part = { .rail = 0, .length = 1000, .id = 7 };
	unsigned char parts[NM_WIRE_PARTS_BYTES];
	struct nm_wire_chunk rts = { .kind = NM_WIRE_KIND_RTS,
				     .nparts = 1,
				     .tag = 2,
				     .session = SESSION,
				     .tail = parts };
	struct nm_news news;

	nm_wire_put_part(parts, &rts.tail_len, &part);
	CHECK_INT(nm_sr_irecv(session, peer, 2, NM_TAG_EXACT, &data, body), 0);
	nm_news_init(&news, false);
	take_chunk(&news, 0, PACKETS, &rts);
	mock_settle(&core, &news);
	CHECK(receiving != NULL);
}

TEST(a_body_that_is_lost_does_not_overtake_what_was_sent_before)
{
	struct nm_sr_request body;
	char memory[1000];

	let_resend();
	lose_the_other();
	body_begins(&body, memory);
	for (int i = 0; i < PACKETS; i++) {
		struct nm_wire_chunk c = message(i + 1);

		nm_news_init(&slow[i], false);
		take_chunk(&slow[i], 0, i, &c);
	}
	nm_news_init(&fast, false);
	for (int i = 0; i <= PACKETS; i++)
		receive(&req[i], &byte[i]);
	find_dead(&fast, 0);
	mock_settle(&core, &fast);
	CHECK(!nm_sr_is_complete(&body));
	fast_is_first();
	CHECK_INT(error_of(&body), -ECONNRESET);
}

/* The peer has lost the one rail and said so over the other; then it dies. */
TEST(a_gate_waits_for_what_came_over_a_link_that_was_lost_before)
{
	struct nm_wire_chunk lost = { .kind = NM_WIRE_KIND_LOST, .rail = 0 };

	let_resend();
	owners_are_slow();
	take_chunk(&fast, 1, PACKETS, &lost);
	find_dead(&fast, 1);
	fast_is_first();
}

/* It was in doubt and sent again over the other link, which is dead. */
TEST(a_gate_waits_for_what_is_held_until_its_own_link_is_over)
{
	unsigned char inner[BYTES];
	struct nm_wire_chunk c = message(2);
	struct nm_wire_head h = { 1, 0 };
	struct nm_wire_chunk r = { .kind = NM_WIRE_KIND_RESENT,
				   .rail = 0,
				   .seq = PACKETS,
				   .tail = inner };
	struct nm_news news;

	nm_wire_put_head(inner, &h);
	nm_wire_put_chunk(inner + NM_WIRE_HEAD, &c);
	r.tail_len = (uint32_t)(NM_WIRE_HEAD + nm_wire_chunk_size(&c));
	inner[r.tail_len++] = 'x';
	let_resend();
	owners_are_slow();
	nm_news_init(&news, false);
	take_chunk(&news, 1, PACKETS, &r);
	memcpy(bytes[PACKETS] + packets[PACKETS].length, inner, r.tail_len);
	packets[PACKETS].length += r.tail_len;
	find_dead(&news, 1);
	mock_settle(&core, &news);
	find_dead(&fast, 0);
	mock_settle(&core, &fast);
	CHECK(!nm_sr_is_complete(&req[PACKETS]));
	for (int i = 0; i < PACKETS; i++)
		mock_settle(&core, &slow[i]);
	for (int i = 0; i <= PACKETS; i++) {
		CHECK_INT(error_of(&req[i]), 0);
		CHECK_INT(byte[i], 'x');
	}
	CHECK_INT(peer->error, -ECONNRESET);
}
