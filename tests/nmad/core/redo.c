/*
 * Bodies whose rail is lost while the peer, which the test plays, lives: they
 * are offered anew, until they are over on both sides.
 */
#include "lost.h"

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(lost_setup, lost_teardown);
}

/* --- bodies that we send --- */

static struct nm_wire_part offered(void)
{
	struct nm_wire_chunk rts = first_of(NM_WIRE_KIND_RTS, 0);
	struct nm_wire_part part;
	size_t at = 0;

	nm_wire_get_part(rts.tail, &at, &part);
	return part;
}

static void give_rtr(int rail, uint64_t id, uint64_t length, unsigned flags)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTR,
				   .flags = (uint8_t)flags,
				   .id = id,
				   .length = length,
				   .tail = "r",
				   .tail_len = flags == 0 && length > 0 };

	give_over(rail, &c);
}

static uint64_t send_body(void)
{
	struct nm_wire_part part;

	send_bytes(0, 1000);
	part = offered();
	CHECK_INT(part.rail, 0);
	return part.id;
}

/* It has been offered anew, over that rail; then it is granted and moves. */
static void body_moves(uint64_t id, int rail, size_t length)
{
	struct nm_wire_chunk c = first_of(NM_WIRE_KIND_OFFER, 0);

	CHECK_INT(c.id, id);
	CHECK_INT(c.rail, rail);
	CHECK_INT(c.tail_len, 1);
	CHECK_INT(*(const char *)c.tail, '0' + rail);
	give_rtr(rail, id, length, 0);
	CHECK_INT(sending[nsending - 1]->link->rail->index, rail);
	CHECK_INT(sending[nsending - 1]->length, length);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	end(sending[nsending - 1]);
	CHECK_INT(status_of(0).error, 0);
}

TEST(a_body_that_moves_over_the_lost_link_is_offered_over_another)
{
	uint64_t id = send_body();

	give_rtr(1, id, 700, 0);
	CHECK_INT(sending[0]->link->rail->index, 0);
	lose(0, -ENETDOWN);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	body_moves(id, 1, 700);
	CHECK_INT(load_relaxed(&core.stats.redone), 1);
}

TEST(a_body_that_was_over_there_is_over_here)
{
	uint64_t id = send_body();

	give_rtr(1, id, 1000, 0);
	lose(0, -ENETDOWN);
	give_rtr(1, id, 0, 0);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(nsending, 1);
}

TEST(a_body_is_not_offered_anew_before_it_has_been_answered)
{
	uint64_t id = send_body();

	lose(0, -ENETDOWN);
	CHECK_INT(count(NM_WIRE_KIND_OFFER), 0);
	give_rtr(1, id, 1000, 0);
	CHECK_INT(nsending, 0);
	body_moves(id, 1, 1000);
}

TEST(who_wants_it_over_another_rail_has_lost_that_one)
{
	uint64_t id = send_body();

	give_rtr(1, id, 900, NM_WIRE_AGAIN);
	CHECK_INT(ngiven_up[0], 1);
	CHECK_INT(peer->nlinks, 1);
	body_moves(id, 1, 900);
}

TEST(a_body_goes_from_link_to_link_while_there_are_any)
{
	uint64_t id = send_body();

	give_rtr(1, id, 1000, 0);
	lose(0, -ENETDOWN);
	give_rtr(1, id, 1000, 0);
	CHECK_INT(sending[1]->link->rail->index, 1);
	lose(1, -ENETDOWN);
	CHECK_INT(count(NM_WIRE_KIND_OFFER), 2);
	give_rtr(SPARE, id, 1000, 0);
	CHECK_INT(sending[2]->link->rail->index, SPARE);
	end(sending[2]);
	CHECK_INT(status_of(0).error, 0);
}

TEST(a_body_that_waits_to_be_granted_anew_ends_with_the_gate)
{
	uint64_t id = send_body();

	give_rtr(1, id, 1000, 0);
	full[1] = true; /* so the offer does not even leave */
	lose(0, -ENETDOWN);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	for (int i = 1; i < RAILS; i++)
		lose(i, -EIO);
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

/* --- bodies that come --- */

static void give_rts(int rail, int over, uint32_t seq)
{
	unsigned char parts[NM_WIRE_PARTS_BYTES], token;
	struct nm_wire_part part = { .rail = (uint8_t)over,
				     .length = 1000,
				     .id = 70 + seq,
				     .token_len = 1,
				     .token = &token };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTS,
				   .nparts = 1,
				   .seq = seq,
				   .session = SESSION,
				   .tail = parts };

	token = (unsigned char)('0' + over);
	nm_wire_put_part(parts, &c.tail_len, &part);
	give_over(rail, &c);
}

static void give_offer(int rail, int over, uint64_t id)
{
	unsigned char token = (unsigned char)('0' + over);
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_OFFER,
				   .rail = (uint8_t)over,
				   .id = id,
				   .tail_len = 1,
				   .tail = &token };

	give_over(rail, &c);
}

static struct nm_wire_chunk last_rtr(void)
{
	for (int i = nsent; i-- > 0;)
		if (chunk_of(i).kind == NM_WIRE_KIND_RTR)
			return chunk_of(i);
	CHECK(!"an RTR has left");
	return chunk_of(0);
}

static void body_comes(int rail)
{
	CHECK_INT(receiving[nreceiving - 1]->link->rail->index, rail);
	CHECK_INT(last_rtr().flags, 0);
	CHECK_INT(last_rtr().length, 1000);
	CHECK_INT(last_rtr().tail_len, 1);
	CHECK_INT(*(const char *)last_rtr().tail, '0' + rail);
	end(receiving[nreceiving - 1]);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(status_of(0).length, 1000);
}

TEST(a_body_that_came_over_the_lost_link_waits_for_another_offer)
{
	recv_into(0, BYTES);
	give_rts(0, 0, 0);
	lose(0, -ENETDOWN);
	CHECK_INT(count(NM_WIRE_KIND_RTR), 1);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	give_offer(1, 1, 70);
	CHECK_INT(count(NM_WIRE_KIND_RTR), 2);
	body_comes(1);
}

/* The sender has lost the rail, and we hear of that only so. */
TEST(an_offer_over_another_rail_says_that_the_last_is_lost)
{
	recv_into(0, BYTES);
	give_rts(0, 0, 0);
	give_offer(1, 1, 70);
	CHECK_INT(ngiven_up[0], 1);
	body_comes(1);
}

TEST(what_the_driver_has_not_answered_is_wanted_over_another_rail)
{
	answers = false;
	recv_into(0, BYTES);
	give_rts(0, 0, 0);
	CHECK_INT(nreceiving, 1);
	CHECK_INT(count(NM_WIRE_KIND_RTR), 0);
	answers = true;
	lose(0, -ENETDOWN);
	CHECK_INT(last_rtr().flags, NM_WIRE_AGAIN);
	CHECK_INT(last_rtr().length, 1000);
	give_offer(1, 1, 70);
	body_comes(1);
}

TEST(what_is_announced_over_a_lost_rail_is_wanted_over_another)
{
	lose(0, -ENETDOWN);
	give_rts(1, 0, 0);
	recv_into(0, BYTES);
	CHECK_INT(nreceiving, 0);
	CHECK_INT(last_rtr().flags, NM_WIRE_AGAIN);
	give_offer(1, 0, 70);
	CHECK_INT(count(NM_WIRE_KIND_RTR), 2);
	CHECK_INT(last_rtr().flags, NM_WIRE_AGAIN);
	give_offer(1, SPARE, 70);
	body_comes(SPARE);
}

TEST(what_is_over_when_it_is_offered_anew_is_said_to_be_so)
{
	recv_into(0, BYTES);
	give_rts(0, 0, 0);
	end(receiving[0]);
	CHECK_INT(status_of(0).error, 0);
	give_offer(1, 1, 70);
	CHECK_INT(nreceiving, 1);
	CHECK_INT(last_rtr().length, 0);
	CHECK_INT(last_rtr().id, 70);
	CHECK_INT(peer->error, 0);
}

/* It ends while the order to let go of the link is on its way. */
TEST(what_ends_after_it_was_offered_anew_is_said_to_be_over)
{
	struct nm_news news;

	if (mock_rails_go_with_core())
		return;
	recv_into(0, BYTES);
	give_rts(0, 0, 0);
	base_pin();
	nm_news_init(&news, false);
	CHECK(nm_rail_enter(&core.rails[0].lock));
	give_offer(1, 1, 70);
	CHECK_INT(count(NM_WIRE_KIND_RTR), 1);
	core.rails[0].news = &news;
	nm_rail_xfer_done(&core.rails[0], receiving[0], 0);
	receiving[0] = NULL;
	CHECK(nm_rail_leave(&core.rails[0].lock));
	nm_core_run(&core, &news, NULL);
	base_unpin();
	progress();
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(count(NM_WIRE_KIND_RTR), 2);
	CHECK_INT(last_rtr().length, 0);
	CHECK_INT(peer->error, 0);
}

TEST(a_rail_that_is_not_to_be_had_here_may_be_offered)
{
	core.npolled = 1;
	core.rails[1].driver = NULL;
	peer->reach &= (uint8_t)~2u;
	nm_gate_relink(peer);
	recv_into(0, BYTES);
	give_rts(0, 1, 0);
	CHECK_INT(last_rtr().flags, NM_WIRE_AGAIN);
	give_offer(0, 0, 70);
	body_comes(0);
	give_lost(0, 1);
	CHECK_INT(peer->error, 0);
}

TEST(a_body_that_waits_for_another_offer_ends_with_the_gate)
{
	recv_into(0, BYTES);
	give_rts(0, 0, 0);
	recv_into(1, BYTES);
	give_rts(0, 1, 1);
	for (int i = 0; i < RAILS; i++)
		lose(i, -ENETDOWN);
	CHECK_INT(peer->error, -ENETDOWN);
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK_INT(status_of(0).length, 0);
	CHECK_INT(status_of(1).error, -ECONNRESET);
}

/* --- a peer that lies --- */

TEST(what_was_not_granted_is_not_offered_anew)
{
	answers = false;
	recv_into(0, BYTES);
	give_rts(0, 0, 0);
	give_offer(1, 1, 70);
	expect_given_up();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

TEST(an_answer_is_no_answer_to_an_offer_that_has_not_left)
{
	uint64_t id = send_body();

	give_rtr(1, id, 1000, 0);
	full[1] = true;
	send_bytes(1, 10); /* takes the turn */
	send_bytes(2, 10);
	lose(0, -ENETDOWN);
	CHECK_INT(count(NM_WIRE_KIND_OFFER), 0);
	give_rtr(1, id, 1000, 0);
	expect_given_up();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}
