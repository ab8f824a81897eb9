/*
 * What a send makes of a receive that its peer has announced.
 */
#include "announce.h"

extern const struct nm_strategy nm_strategy_aggreg;

TEST(the_next_message_of_the_tag_goes_without_asking)
{
	struct nm_wire_chunk c;

	give_announcement(7, 0, LARGE);
	send_bytes(0, 8, 10); /* of another tag */
	CHECK_INT(theirs, OPEN);
	send_bytes(1, 7, 900);
	CHECK_INT(theirs, TAKEN);
	c = chunk_of(1);
	CHECK_INT(c.kind, NM_WIRE_KIND_RTS);
	CHECK_INT(c.flags, NM_WIRE_ANNOUNCED);
	CHECK_INT(c.id, ID);
	CHECK_INT(c.seq, 1);
	CHECK_INT(c.length, 900);
	CHECK(sending != NULL);
	CHECK_INT(sending->length, 900);
	end(sending);
	CHECK_INT(error_of(1), 0);
	/* Only that one. */
	send_bytes(2, 7, 900);
	CHECK_INT(chunk_of(2).flags, 0);
	finish();
}

TEST(its_envelope_alone_is_for_who_waits_for_it)
{
	give_announcement(7, 0, LARGE);
	send_bytes(0, 7, LARGE);
	CHECK_INT(nsent, 1);
	CHECK(told[0] == &theirs_awaited);
	send_bytes(1, 8, LARGE);
	send_bytes(2, 7, LARGE);
	CHECK_INT(nsent, 3);
	CHECK(told[1] == NULL && told[2] == NULL);
	finish();
}

TEST(an_envelope_with_other_messages_is_for_all)
{
	const struct nm_pkt *pkt = core.gates[1].links[0]->pkt;

	core.config.strategy = &nm_strategy_aggreg;
	give_announcement(7, 0, LARGE);
	full = true;
	send_bytes(0, 1, 10);
	send_bytes(1, 7, LARGE);
	send_bytes(2, 1, 10);
	full = false;
	progress();
	CHECK_INT(nsent, 2);
	CHECK_INT(pkt->nchunks, 2);
	CHECK(told[0] == NULL && told[1] == NULL);
	finish();
}

TEST(a_send_that_leaves_later_takes_its_place_in_its_turn)
{
	full = true;
	send_bytes(0, 8, 10);
	progress();
	give_announcement(7, 1, LARGE);
	send_bytes(1, 8, 10);
	send_bytes(2, 7, LARGE);
	send_bytes(3, 7, LARGE);
	CHECK_INT(nsent, 0);
	CHECK_INT(theirs, OPEN);
	full = false;
	progress();
	CHECK_INT(nsent, 4);
	CHECK_INT(chunk_of(2).flags, NM_WIRE_ANNOUNCED);
	CHECK_INT(chunk_of(2).seq, 2);
	CHECK_INT(chunk_of(3).flags, 0);
	end(sending);
	CHECK_INT(error_of(2), 0);
	finish();
}

/* How many large sends do not look for announcements first, until one does. */
static int blind(void)
{
	static struct nm_sr_request many[64];
	static int nmany;
	struct nm_data d = nm_data_flat(text[0], LARGE);
	int n = 0;

	for (int before = npolls;; n++) {
		CHECK(nmany < 64);
		CHECK_INT(nm_sr_isend(session, peer, 9, &d, 0, &many[nmany++]),
			  0);
		if (npolls != before)
			return n;
	}
}

TEST(a_send_looks_for_announcements_first_unless_that_was_in_vain)
{
	static const int want[] = { 0, 1, 2, 4, 8 };

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		CHECK_INT(blind(), want[i]);
	/* That one was of use. */
	give_announcement(7, chunk_of(nsent - 1).seq + 1, LARGE);
	send_bytes(0, 7, LARGE);
	end(sending);
	CHECK_INT(error_of(0), 0);
	CHECK_INT(blind(), 0);
	finish();
}

TEST(what_has_been_recalled_is_asked_for)
{
	give_announcement(7, 0, LARGE);
	theirs = RECALLED;
	send_bytes(0, 7, LARGE);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTS);
	CHECK_INT(chunk_of(0).flags, 0);
	CHECK_PTR(sending, NULL);
	finish();
	CHECK_INT(error_of(0), -ECONNRESET);
}

TEST(a_message_that_does_not_go_there_uses_it_up)
{
	give_announcement(7, 0, LARGE);
	give_announcement(8, 0, LARGE);
	send_bytes(0, 7, 10);
	send_bytes(1, 7, LARGE);
	CHECK_INT(chunk_of(1).flags, 0);
	send_bytes(2, 8, LARGE + 1);
	CHECK_INT(chunk_of(2).flags, 0);
	send_bytes(3, 8, LARGE);
	CHECK_INT(chunk_of(3).flags, 0);
	CHECK_INT(theirs, OPEN);
	finish();
}

TEST(an_announcement_from_before_such_a_message_was_sent_is_forgotten)
{
	for (int i = 0; i < 7; i++)
		send_bytes(0, 8, 10);
	send_bytes(0, 7, 10);
	give_announcement(7, 7, LARGE); /* it is that one's */
	CHECK_PTR(peer->announced, NULL);
	give_announcement(9, 0, LARGE); /* none of eight had that tag */
	CHECK(peer->announced != NULL);
	send_bytes(1, 9, LARGE);
	CHECK_INT(chunk_of(8).flags, NM_WIRE_ANNOUNCED);
	end(sending);
	give_announcement(9, 0, LARGE); /* of nine, who knows */
	CHECK_PTR(peer->announced, NULL);
	give_announcement(7, 9, LARGE);
	CHECK(peer->announced != NULL);
	finish();
}

TEST(a_later_announcement_of_a_tag_replaces_an_earlier_one)
{
	struct nm_wire_chunk c = announcement(7, 0, LARGE);

	give_announcement(7, 0, LARGE);
	c.id = ID + 1;
	say(&c);
	send_bytes(0, 7, LARGE);
	CHECK_INT(chunk_of(0).id, ID + 1);
	end(sending);
	send_bytes(1, 7, LARGE);
	CHECK_INT(chunk_of(1).flags, 0);
	finish();
}

TEST(of_too_many_the_oldest_are_forgotten)
{
	enum { MANY = 40, KEPT = 32 };
	static struct nm_sr_request many[MANY];
	struct nm_data d = nm_data_flat(text[0], LARGE);

	for (uint32_t tag = 0; tag < MANY; tag++)
		give_announcement(tag, 0, LARGE);
	for (uint32_t tag = 0; tag < MANY; tag++) {
		theirs = OPEN;
		CHECK_INT(nm_sr_isend(session, peer, tag, &d, 0, &many[tag]),
			  0);
		CHECK_INT(chunk_of((int)tag).flags,
			  tag < MANY - KEPT ? 0 : NM_WIRE_ANNOUNCED);
		if (tag >= MANY - KEPT)
			end(sending);
	}
	finish();
}

TEST(an_announcement_for_a_session_that_is_not_open_is_forgotten)
{
	struct nm_wire_chunk c = announcement(7, 0, LARGE);

	c.session = SESSION + 1;
	theirs = OPEN;
	say(&c);
	CHECK_INT(peer->error, 0);
	CHECK_PTR(peer->announced, NULL);
}

TEST(a_death_ends_a_send_that_has_its_place)
{
	full = true;
	send_bytes(0, 8, 10);
	progress();
	give_announcement(7, 1, LARGE);
	give_announcement(9, 1, LARGE);
	send_bytes(1, 7, LARGE);
	finish();
	CHECK_INT(error_of(1), -ECONNRESET);
	CHECK_INT(theirs, OPEN);
}

TEST(an_announcement_over_no_rail_of_ours_is_given_up)
{
	struct nm_wire_chunk c = announcement(7, 0, LARGE);

	c.rail = 3;
	say(&c);
	CHECK(peer->error != 0);
}

TEST(an_announcement_over_a_rail_that_cannot_take_any_is_given_up)
{
	struct nm_wire_chunk c = announcement(7, 0, LARGE);
	struct nm_driver plain = mock;

	plain.xfer_take = NULL;
	core.rails[0].driver = &plain;
	say(&c);
	CHECK(peer->error != 0);
	core.rails[0].driver = &mock;
}
