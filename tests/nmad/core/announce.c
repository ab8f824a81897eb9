/*
 * Receives that are announced: which and when, and that every announcement is
 * met, recalled or forgotten, whoever dies or lies.
 */
#include "announce.h"

TEST(a_large_receive_of_one_source_and_tag_is_announced)
{
	struct nm_wire_chunk c;

	give_eager(8, 0);
	give_eager(8, 1);
	recv_into(0, 7);
	CHECK_INT(nsent, 1);
	c = chunk_of(0);
	CHECK_INT(c.kind, NM_WIRE_KIND_ANNOUNCE);
	CHECK_INT(c.tag, 7);
	CHECK_INT(c.seq, 2);
	CHECK_INT(c.session, SESSION);
	CHECK_INT(c.length, LARGE);
	CHECK_INT(c.rail, 0);
	CHECK_INT(c.tail_len, 2);
	CHECK(c.id != 0);
	recv_into(1, 8);
	recv_into(2, 8);
	CHECK_INT(nsent, 1); /* they have their messages */
	finish();
}

TEST(what_its_next_message_may_not_be_for_is_not_announced)
{
	struct iovec iov = { text[0], LARGE };

	recv_data(0, peer, 7, NM_TAG_EXACT, nm_data_flat(text[0], 500));
	recv_data(1, peer, 8, NM_TAG_EXACT, nm_data_iovec(&iov, 1));
	CHECK_INT(nsent, 0);
	recv_data(2, peer, 0, NM_TAG_ANY, nm_data_flat(text[2], LARGE));
	recv_into(3, 9); /* the one before may take it */
	CHECK_INT(nm_sr_cancel(&reqs[2]), 0);
	CHECK_INT(nsent, 0);
	recv_data(4, NM_ANY_GATE, 9, NM_TAG_EXACT, nm_data_flat(text[4], 10));
	recv_into(5, 10);
	CHECK_INT(nm_sr_cancel(&reqs[4]), 0);
	recv_data(6, NM_ANY_GATE, 0, NM_TAG_ANY, nm_data_flat(text[6], 10));
	recv_into(7, 11);
	CHECK_INT(nm_sr_cancel(&reqs[6]), 0);
	CHECK_INT(nsent, 0);
	recv_into(8, 7); /* one of that tag was posted before */
	CHECK_INT(nsent, 0);
	peer->announces = false;
	recv_into(9, 12);
	CHECK_INT(nsent, 0);
	CHECK_INT(nplaces, 0);
	finish();
}

TEST(the_next_of_a_tag_is_announced_when_the_first_has_its_message)
{
	recv_into(0, 7);
	recv_into(1, 7);
	recv_into(2, 7);
	CHECK_INT(nsent, 1);
	places[0] = TAKEN;
	give_rts(7, 0, LARGE, chunk_of(0).id);
	CHECK_INT(nsent, 2);
	CHECK_INT(chunk_of(1).seq, 1);
	CHECK_INT(places[1], OPEN);
	end(receiving);
	/* An early envelope, too, when its turn has come. */
	places[1] = TAKEN;
	give_rts(7, 2, LARGE, chunk_of(1).id);
	give_eager(9, 1);
	end(receiving);
	CHECK_INT(error_of(1), 0);
	CHECK_INT(nsent, 3);
	CHECK_INT(chunk_of(2).seq, 3);
	CHECK_INT(places[2], OPEN);
	recv_into(3, 9);
	CHECK_INT(error_of(3), 0);
	finish();
	CHECK_INT(error_of(2), -ECONNRESET);
	CHECK_INT(places[2], RECALLED);
}

/* How many receives are not announced, after what happened. */
static int skipped(void)
{
	int n = 0, before = nsent;

	for (; nsent == before; n++) {
		recv_into(15, 99);
		CHECK_INT(nm_sr_cancel(&reqs[15]), 0);
	}
	return n - 1;
}

TEST(what_was_in_vain_costs_the_next_theirs_until_one_is_of_use)
{
	static const int want[] = { 1, 2, 4, 8, 16, 32, 32 };
	uint32_t seq = 0;

	CHECK_INT(skipped(), 0);
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		recv_into(0, 7);
		give_eager(7, seq++);
		CHECK_INT(error_of(0), 0);
		CHECK_INT(skipped(), want[i]);
	}
	recv_into(0, 7);
	places[nplaces - 1] = TAKEN;
	give_rts(7, seq, LARGE, chunk_of(nsent - 1).id);
	end(receiving);
	CHECK_INT(skipped(), 0);
}

TEST(where_the_driver_has_no_place_the_message_comes_as_ever)
{
	no_place = true;
	recv_into(0, 7);
	CHECK_INT(nsent, 0);
	give_rts(7, 0, 800, 0);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTR);
	end(receiving);
	CHECK_INT(error_of(0), 0);
}

TEST(a_peer_that_answers_it_like_an_offer_is_given_up)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTR,
				   .length = 1,
				   .tail = "r",
				   .tail_len = 1 };

	recv_into(0, 7);
	c.id = chunk_of(0).id;
	say(&c);
	CHECK_INT(peer->error, -EBADMSG);
	CHECK_INT(error_of(0), -ECONNRESET);
}

/* --- and met --- */

TEST(a_message_that_took_the_place_is_met_and_not_answered)
{
	recv_into(0, 7);
	places[0] = TAKEN;
	give_eager(8, 0);
	give_rts(7, 1, 800, chunk_of(0).id);
	CHECK_INT(nsent, 1);
	CHECK(receiving != NULL);
	CHECK_INT(receiving->length, 800);
	CHECK_INT(receiving->peers.length, 1);
	CHECK_INT(receiving->peers.bytes[0], 'o');
	CHECK_INT(nm_sr_is_complete(&reqs[0]), 0);
	end(receiving);
	CHECK_INT(error_of(0), 0);
	CHECK_INT(status_of(0).length, 800);
	CHECK_INT(status_of(0).sent, 800);
	CHECK_INT(status_of(0).tag, 7);
	CHECK_PTR(status_of(0).gate, peer);
	CHECK_INT(nsent, 1);
	recv_into(1, 8);
}

TEST(one_that_comes_before_its_turn_is_met_in_its_turn)
{
	recv_into(0, 7);
	places[0] = TAKEN;
	give_rts(7, 1, LARGE, chunk_of(0).id);
	CHECK_PTR(receiving, NULL);
	give_eager(8, 0);
	CHECK(receiving != NULL);
	end(receiving);
	CHECK_INT(error_of(0), 0);
	recv_into(1, 8);
}

TEST(a_message_that_asks_finds_the_place_recalled)
{
	recv_into(0, 7);
	give_rts(7, 0, 2 * LARGE, 0);
	CHECK_INT(places[0], RECALLED);
	CHECK_INT(nsent, 2);
	CHECK_INT(chunk_of(1).kind, NM_WIRE_KIND_RTR);
	end(receiving);
	CHECK_INT(error_of(0), -EMSGSIZE);
}

TEST(a_cancelled_receive_is_recalled_unless_it_is_taken)
{
	recv_into(0, 7);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(error_of(0), -ECANCELED);
	CHECK_INT(places[0], RECALLED);
	recv_into(1, 7);
	CHECK_INT(nsent, 2);
	places[1] = TAKEN;
	CHECK_INT(nm_sr_cancel(&reqs[1]), -EALREADY);
	give_rts(7, 0, LARGE, chunk_of(1).id);
	end(receiving);
	CHECK_INT(error_of(1), 0);
}

TEST(what_is_recalled_before_it_was_said_is_not_said)
{
	full = true;
	send_bytes(1, 0, 10); /* has the turn */
	recv_into(0, 7);
	CHECK_INT(places[0], OPEN);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(places[0], RECALLED);
	full = false;
	progress();
	CHECK_INT(nsent, 1);
}

TEST(what_is_over_before_the_driver_was_asked_is_recalled_then)
{
	base_pin();
	CHECK(nm_rail_enter(&core.rails[0].lock));
	recv_into(0, 7);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(error_of(0), -ECANCELED);
	CHECK_INT(nplaces, 0);
	nm_rail_leave(&core.rails[0].lock);
	base_unpin();
	progress();
	CHECK_INT(nplaces, 1);
	CHECK_INT(places[0], RECALLED);
	CHECK_INT(nsent, 0);
}

TEST(a_death_ends_a_receive_though_it_was_taken)
{
	recv_into(0, 7);
	recv_into(1, 8);
	places[0] = TAKEN;
	finish();
	CHECK_INT(error_of(0), -ECONNRESET);
	CHECK_INT(error_of(1), -ECONNRESET);
	CHECK_INT(places[0], IN_VAIN);
	CHECK_INT(places[1], RECALLED);
}

/* What the next announcement will be called: the same, a round later. */
static uint64_t next_id(void)
{
	recv_into(0, 7);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	return chunk_of(0).id + ((uint64_t)1 << 32);
}

TEST(who_says_he_took_what_was_not_said_yet_is_given_up)
{
	uint64_t id = next_id();

	full = true;
	send_bytes(1, 0, 10); /* has the turn */
	recv_into(0, 7);
	CHECK_INT(places[1], OPEN);
	give_rts(7, 0, LARGE, id);
	CHECK(peer->error != 0);
	CHECK_INT(error_of(0), -ECONNRESET);
	CHECK_PTR(receiving, NULL);
	full = false;
	progress();
	CHECK_INT(error_of(1), -ECONNRESET);
}

TEST(who_says_he_took_what_the_driver_has_not_made_yet_is_given_up)
{
	uint64_t id = next_id();
	struct nm_rail *rail = &core.rails[0];
	struct packet *p = &given[0];

	base_pin();
	CHECK(nm_rail_enter(&rail->lock));
	recv_into(0, 7);
	give_rts(7, 0, LARGE, id); /* nobody polls */
	p->in.link = &rail->links[1];
	p->in.data = p->bytes;
	p->in.length = p->length;
	p->in.event.kind = NM_EVENT_PKT_IN;
	ndelivered = ngiven;
	nm_core_push(&core.lock.events, &p->in.event.node);
	progress();
	CHECK(peer->error != 0);
	CHECK_INT(error_of(0), -ECONNRESET);
	nm_rail_leave(&rail->lock);
	base_unpin();
	progress();
	CHECK_INT(places[1], RECALLED);
}

TEST(who_took_a_place_and_sends_otherwise_is_given_up)
{
	recv_into(0, 7);
	places[0] = TAKEN;
	give_eager(7, 0);
	CHECK(peer->error != 0);
	CHECK_INT(places[0], IN_VAIN);
	CHECK_INT(error_of(0), 0);
}

TEST(a_peer_that_says_it_took_what_it_cannot_have_is_given_up)
{
	for (int lie = 0; lie < 6; lie++) {
		unsigned char parts[NM_WIRE_PARTS_BYTES];
		struct nm_wire_chunk c;
		uint64_t id;

		if (lie > 0) {
			teardown();
			setup();
		}
		recv_into(0, 7);
		id = chunk_of(0).id;
		c = rts_of(parts, 7, 0, lie == 1 ? LARGE + 1 : LARGE,
			   lie == 0 ? id + 1 : id);
		if (lie == 2)
			parts[0] = 1; /* another rail */
		if (lie == 3)
			c.tag = 8; /* nobody's */
		if (lie == 4) {
			struct nm_wire_part more = {
				.rail = 1, .length = 1, .id = 71, .token = ""
			};

			c.nparts = 2;
			nm_wire_put_part(parts, &c.tail_len, &more);
		}
		if (lie == 5)
			recv_into(1, 8);
		if (lie == 5)
			c.tag = 8; /* another's */
		say(&c);
		if (lie == 3)
			recv_into(1, 8);
		CHECK(peer->error != 0);
		CHECK_INT(error_of(0), -ECONNRESET);
		if (lie == 3 || lie == 5)
			CHECK_INT(error_of(1), -ECONNRESET);
	}
}

/* --- who waits for it --- */

static void ignore(struct nm_sr_request *request, void *arg)
{
	(void)request;
	(void)arg;
}

TEST(its_sender_is_told_that_somebody_waits)
{
	nm_core_self = &core;
	recv_into(0, 7);
	recv_into(1, 8);
	recv_into(2, 9);
	for (int i = 0; i < 3; i++)
		CHECK_INT(load_relaxed(&awaited[i].is), 0);
	CHECK_INT(nm_sr_test(&reqs[0]), -EAGAIN);
	CHECK_INT(load_relaxed(&awaited[0].is), 0);
	CHECK_INT(nm_sr_on_done(&reqs[0], ignore, NULL), 0);
	CHECK_INT(load_relaxed(&awaited[0].is), 1);
	CHECK_INT(load_relaxed(&awaited[1].is), 0);
	finish();
	nm_core_self = NULL;
}

TEST(who_waits_before_there_is_a_place_has_said_so)
{
	recv_into(0, 7);
	recv_into(1, 7);
	recv_into(2, 7);
	CHECK_INT(nplaces, 1);
	nm_req_await(nm_req_of(&reqs[1]));
	places[0] = TAKEN;
	give_rts(7, 0, LARGE, chunk_of(0).id);
	end(receiving);
	CHECK_INT(nplaces, 2);
	CHECK_INT(load_relaxed(&awaited[0].is), 0);
	CHECK_INT(load_relaxed(&awaited[1].is), 1);
	places[1] = TAKEN;
	give_rts(7, 1, LARGE, chunk_of(1).id);
	end(receiving);
	CHECK_INT(nplaces, 3);
	CHECK_INT(load_relaxed(&awaited[2].is), 0);
	finish();
}
