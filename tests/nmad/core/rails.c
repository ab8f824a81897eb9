/*
 * A large message in parts over several links of a gate, against a peer that
 * the test plays itself: what is offered, wanted, granted and ended for each
 * part, in whatever order, and what becomes of it when the peer lies or a link
 * dies.
 */
#include "chain.h"
#include "rails.h"

static const struct nm_strategy told = {
	.name = "told",
	.pack = nm_fifo_pack,
	.cut = cut_as_told,
};

static void setup(void)
{
	rails_setup(&told);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, rails_teardown);
}

/* --- sending --- */

TEST(an_rts_offers_each_part_to_the_rail_that_it_is_cut_for)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	CHECK_INT(nsent, 1);
	rts = chunk_of(0);
	CHECK_INT(rts.nparts, 3);
	CHECK_INT(rts.length, 1000);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(part_of(&rts, i).rail, i);
		CHECK_INT(part_of(&rts, i).length, shares[i]);
		CHECK_INT(part_of(&rts, i).token_len, 1);
		CHECK_INT(*(const char *)part_of(&rts, i).token, '0' + i);
	}
	CHECK(part_of(&rts, 0).id != part_of(&rts, 1).id);
	dead[2] = true;
}

TEST(a_rail_that_gets_no_bytes_is_not_named)
{
	struct nm_wire_chunk rts;

	shares_are(0, 900, 100);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	CHECK_INT(rts.nparts, 2);
	CHECK_INT(part_of(&rts, 0).rail, 1);
	CHECK_INT(part_of(&rts, 1).rail, 2);
	dead[0] = true;
}

TEST(each_part_moves_once_it_is_granted_and_the_last_ends_the_send)
{
	static const int order[] = { 2, 0, 1 };
	size_t at[] = { 0, 500, 800 };
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	for (int i = 0; i < 3; i++) {
		give_rtr(part_of(&rts, order[i]).id, shares[order[i]]);
		CHECK_INT(nsending, i + 1);
		CHECK_INT(sending[i]->link->rail->index, order[i]);
		CHECK_INT(sending[i]->offset, at[order[i]]);
		CHECK_INT(sending[i]->length, shares[order[i]]);
		CHECK_INT(sending[i]->peers.length, 1);
	}
	end(sending[1]);
	end(sending[2]);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	end(sending[0]);
	CHECK_INT(status_of(0).error, 0);
}

TEST(parts_that_are_not_wanted_are_over_and_one_may_be_cut)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	give_rtr(part_of(&rts, 2).id, 0);
	give_rtr(part_of(&rts, 1).id, 7);
	CHECK_INT(nsending, 1);
	CHECK_INT(sending[0]->offset, 500);
	CHECK_INT(sending[0]->length, 7);
	end(sending[0]);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	give_rtr(part_of(&rts, 0).id, 0);
	CHECK_INT(status_of(0).error, 0);
}

/* --- receiving --- */

static const struct said three[] = { { 1, 400 }, { 0, 500 }, { 2, 100 } };

static void three_parts_arrive(void)
{
	CHECK_INT(nreceiving, 3);
	CHECK_INT(nsent, 3);
	for (int i = 0; i < 3; i++) {
		struct nm_wire_chunk c = chunk_of(i);

		CHECK_INT(receiving[i]->link->rail->index, three[i].rail);
		CHECK_INT(receiving[i]->length, three[i].length);
		CHECK_INT(receiving[i]->offset, i == 0   ? 0
						: i == 1 ? 400
							 : 900);
		CHECK_INT(c.kind, NM_WIRE_KIND_RTR);
		CHECK_INT(c.id, 70 + i);
		CHECK_INT(c.length, three[i].length);
		CHECK_INT(c.tail_len, 1);
		CHECK_INT(*(const char *)c.tail, '0' + three[i].rail);
	}
	end(receiving[2]);
	end(receiving[0]);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	end(receiving[1]);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(status_of(0).length, 1000);
}

TEST(each_part_is_answered_for_itself_and_the_last_ends_the_receive)
{
	recv_into(0, BYTES);
	give_rts(three, 3);
	three_parts_arrive();
}

TEST(the_parts_of_a_message_that_nobody_expected_are_kept)
{
	give_rts(three, 3);
	CHECK_INT(nreceiving, 0);
	CHECK_INT(nsent, 0);
	recv_into(0, BYTES);
	three_parts_arrive();
}

TEST(several_parts_may_come_over_one_rail)
{
	const struct said twice[] = { { 1, 400 }, { 0, 500 }, { 1, 100 } };

	recv_into(0, BYTES);
	give_rts(twice, 3);
	CHECK_INT(nreceiving, 3);
	CHECK_INT(receiving[2]->link->rail->index, 1);
	CHECK_INT(receiving[2]->offset, 900);
	CHECK_INT(chunk_of(2).id, 72);
	end(receiving[2]);
	end(receiving[0]);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	end(receiving[1]);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(status_of(0).length, 1000);
}

/* Numbers are for what is answered: so many offers do not end the process. */
TEST(a_message_comes_though_there_are_no_more_numbers)
{
	struct nm_ids offers = core.offers;

	core.offers.n = NM_IDS_CHUNK * NM_IDS_CHUNKS;
	core.offers.free = 0;
	CHECK_INT(nm_ids_get(&core.offers, &core), 0);
	recv_into(0, BYTES);
	give_rts(three, 3);
	three_parts_arrive();
	core.offers = offers;
}

TEST(a_short_buffer_takes_its_parts_and_refuses_the_others)
{
	recv_into(0, 450);
	give_rts(three, 3);
	CHECK_INT(nreceiving, 2);
	CHECK_INT(receiving[0]->length, 400);
	CHECK_INT(receiving[1]->offset, 400);
	CHECK_INT(receiving[1]->length, 50);
	CHECK_INT(nsent, 3);
	for (int i = 0; i < 3; i++) {
		struct nm_wire_chunk c = chunk_of(i);

		CHECK_INT(c.length, c.id == 70 ? 400 : c.id == 71 ? 50 : 0);
	}
	end(receiving[0]);
	end(receiving[1]);
	CHECK_INT(status_of(0).error, -EMSGSIZE);
	CHECK_INT(status_of(0).length, 450);
}

TEST(an_empty_buffer_refuses_all_parts_at_once)
{
	recv_into(0, 0);
	give_rts(three, 3);
	CHECK_INT(nreceiving, 0);
	CHECK_INT(nsent, 3);
	for (int i = 0; i < 3; i++)
		CHECK_INT(chunk_of(i).length, 0);
	CHECK_INT(status_of(0).error, -EMSGSIZE);
}

/* --- a link dies, the gate does --- */

TEST(a_link_that_dies_under_one_part_fails_the_send)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	give_rtr(part_of(&rts, 0).id, 500);
	give_rtr(part_of(&rts, 1).id, 300);
	end(sending[0]);
	dead[1] = true;
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK(peer->error != 0);
	send_bytes(1, 1000);
	CHECK_INT(status_of(1).error, -ECONNRESET);
}

TEST(a_link_that_dies_under_one_part_fails_the_receive)
{
	recv_into(0, BYTES);
	give_rts(three, 3);
	end(receiving[1]);
	dead[2] = true;
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK_INT(status_of(0).length, 0);
}

/* Its buffer is still being written to until the other rail has let go. */
TEST(a_request_that_has_failed_waits_for_the_rails_that_have_its_parts)
{
	struct nm_rail *rail = &core.rails[0];
	struct nm_news news;

	if (mock_rails_go_with_core())
		return;
	recv_into(0, BYTES);
	give_rts(three, 3);
	nm_news_init(&news, false);
	base_pin();
	CHECK(nm_rail_enter(&core.rails[1].lock));
	rail->news = &news;
	nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	nm_core_run(&core, &news, NULL);
	CHECK(peer->error != 0);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	CHECK(nm_rail_leave(&core.rails[1].lock));
	base_unpin();
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

/* --- envelopes before their turn --- */

enum { MANY = 70000, LONGEST = 12 };

static void give_eager(uint32_t seq, const char *said)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .session = SESSION,
				   .seq = seq,
				   .length = strlen(said),
				   .payload = said };

	ngiven = ndelivered = 0;
	give(&c);
	progress();
	CHECK_INT(peer->error, 0);
}

/* The most that are compared until one is found, of those that wait. */
static int longest_chain(void)
{
	int longest = 0;

	base_list_for_each (n, &session->peers[1].parked) {
		const struct base_link *link =
			&container_of(n, struct nm_msg, early.on)->early.by_seq;
		int steps = chain_steps(&core.parked, link);

		longest = steps > longest ? steps : longest;
	}
	return longest;
}

/*
 * A preempted thread or a slow rail may hold one packet for long; the other
 * rails bring all that comes meanwhile. Of these, one may be far ahead.
 */
TEST(one_late_envelope_may_be_overtaken_by_very_many)
{
	for (uint32_t i = MANY / 2 + 1; i <= MANY; i++)
		give_eager(i, "");
	for (uint32_t i = 1; i <= MANY / 2; i++)
		give_eager(i, "");
	CHECK_INT((int)core.parked.count, MANY);
	CHECK(longest_chain() <= LONGEST);
	memset(text[0], 0, sizeof(text[0]));
	recv_into(0, sizeof(text[0]));
	CHECK(!nm_sr_is_complete(&reqs[0]));
	give_eager(0, "late");
	CHECK_INT(status_of(0).error, 0);
	CHECK_STR(text[0], "late");
	CHECK_INT((int)core.parked.count, 0);
	for (int i = 0; i < MANY; i++) {
		recv_into(1, 0);
		CHECK_INT(status_of(1).error, 0);
	}
}

/* --- a peer that lies --- */

static void expect_given_up(void)
{
	progress();
	CHECK_INT(peer->error, -EBADMSG);
	for (int i = 0; i < RAILS; i++)
		CHECK(peer->links[i]->error != 0);
}

TEST(a_peer_that_names_a_rail_that_does_not_lead_to_it_is_given_up)
{
	const struct said unknown[] = { { 1, 400 }, { 3, 500 } };
	const struct said huge[] = { { 255, 400 } };

	if (check_random() % 2)
		give_rts(unknown, 2);
	else
		give_rts(huge, 1);
	expect_given_up();
}

TEST(a_peer_that_grants_a_part_twice_or_more_of_it_than_there_is_is_given_up)
{
	struct nm_wire_chunk rts;
	uint64_t id;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	id = part_of(&rts, 1).id;
	if (check_random() % 2) {
		give_rtr(id, 301);
	} else {
		give_rtr(id, 300);
		CHECK_INT(peer->error, 0);
		give_rtr(id, 300);
	}
	expect_given_up();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

TEST(a_peer_that_grants_what_it_has_refused_is_given_up)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	give_rtr(part_of(&rts, 1).id, 0);
	CHECK_INT(peer->error, 0);
	give_rtr(part_of(&rts, 1).id, 300);
	expect_given_up();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

/* --- any order of everything --- */

/* Take a random one of the n out of the list. */
static struct nm_xfer *take_any(struct nm_xfer **list, int *n)
{
	int i = (int)(check_random() % (uint64_t)*n);
	struct nm_xfer *x = list[i];

	list[i] = list[--*n];
	return x;
}

TEST(parts_of_many_messages_may_be_granted_and_end_in_any_order)
{
	enum { MANY = 6 };
	uint64_t ids[MANY * RAILS], lengths[MANY * RAILS];
	int nids = 0, left = MANY * RAILS;

	for (int i = 0; i < MANY; i++) {
		struct nm_wire_chunk rts;

		shares_are(500 + check_random() % 100, 1 + check_random() % 100,
			   1 + check_random() % 100);
		send_bytes(i, shares[0] + shares[1] + shares[2]);
		rts = chunk_of(i);
		for (int k = 0; k < RAILS; k++) {
			ids[nids] = part_of(&rts, k).id;
			lengths[nids++] = shares[k];
		}
	}
	while (left > 0) {
		if (nids > 0 && check_random() % 2) {
			int i = (int)(check_random() % (uint64_t)nids--);
			uint64_t want = check_random() % (lengths[i] + 1);

			give_rtr(ids[i], want);
			left -= want == 0;
			ids[i] = ids[nids];
			lengths[i] = lengths[nids];
		} else if (nsending > 0) {
			end(take_any(sending, &nsending));
			left--;
		}
	}
	for (int i = 0; i < MANY; i++)
		CHECK_INT(status_of(i).error, 0);
}
