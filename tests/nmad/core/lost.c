/*
 * Links that are lost while the peer, which the test plays, lives: what was in
 * doubt leaves again, and what comes again counts once.
 */
#include "lost.h"

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(lost_setup, lost_teardown);
}

/* --- what leaves again --- */

TEST(what_is_in_doubt_leaves_again_over_the_other_link)
{
	int from;

	for (int i = 0; i < 6; i++)
		send_bytes(i, 100);
	CHECK_INT(nposted[0], 3);
	sure[0] = 1;
	from = nsent;
	lose(0, -ENETDOWN);
	CHECK_INT(peer->error, 0);
	CHECK_INT(peer->nlinks, 1);
	CHECK_INT(nsent, from + 3);
	CHECK_INT(first_of(NM_WIRE_KIND_LOST, from).rail, 0);
	check_resent(from + 1, 0, 1, 0, which[0][1]);
	check_resent(from + 2, 0, 2, 0, which[0][2]);
	for (int i = from; i < nsent; i++)
		CHECK_INT(sent[i].rail, 1);
	for (int i = 0; i < 6; i++)
		CHECK_INT(status_of(i).error, 0);
	CHECK_INT(load_relaxed(&core.stats.lost), 1);
	CHECK_INT(load_relaxed(&core.stats.resent_out), 2);
}

TEST(the_peers_word_is_enough_and_is_not_answered_by_another)
{
	send_bytes(0, 100);
	send_bytes(1, 100);
	give_lost(1, 0);
	CHECK_INT(ngiven_up[0], 1);
	CHECK_INT(count(NM_WIRE_KIND_LOST), 0);
	CHECK_INT(count(NM_WIRE_KIND_RESENT), 1);
	give_lost(1, 0);
	CHECK_INT(ngiven_up[0], 1);
	CHECK_INT(peer->error, 0);
}

TEST(a_packet_that_found_no_room_leaves_over_the_other_link)
{
	full[0] = true;
	send_bytes(0, 100);
	send_bytes(1, 100);
	CHECK_INT(nsent, 1);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	lose(0, -ENETDOWN);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(first_of(NM_WIRE_KIND_RESENT, 0).flags, NM_WIRE_UNSENT);
	CHECK_INT(sent[nsent - 1].rail, 1);
}

TEST(a_link_that_is_lost_while_it_carries_what_was_lost_has_that_in_its_own)
{
	int first, second;

	send_bytes(0, 100);
	first = nsent - 1;
	CHECK_INT(sent[first].rail, 0);
	lose(0, -ENETDOWN);
	second = nsent - 1;
	check_resent(second, 0, 0, 0, first);
	CHECK_INT(sent[second].rail, 1);
	sure[1] = nposted[1] - 1;
	lose(1, -EIO);
	CHECK_INT(peer->error, 0);
	CHECK_INT(peer->nlinks, 1);
	check_resent(nsent - 1, 1, nposted[1] - 1, 0, second);
	CHECK_INT(sent[nsent - 1].rail, SPARE);
	lose(SPARE, -ECONNRESET);
	CHECK_INT(peer->error, -ENETDOWN);
}

TEST(the_largest_packet_leaves_again_within_two_others)
{
	size_t room = nm_rail_room(&core.rails[0]);

	store_relaxed(&peer->eager_max, room);
	send_bytes(0, room);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_EAGER);
	lose(0, -ENETDOWN);
	lose(1, -ENETDOWN);
	CHECK_INT(peer->error, 0);
	CHECK_INT(sent[nsent - 1].rail, SPARE);
	CHECK(sent[nsent - 1].length > room);
}

TEST(a_peer_that_has_no_such_rail_is_not_said_to_have_lost_it)
{
	peer->links[0]->conn = NULL;
	send_bytes(0, 100);
	progress();
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(peer->nlinks, 1);
	CHECK_INT(load_relaxed(&core.stats.lost), 0);
	CHECK_INT(first_of(NM_WIRE_KIND_RESENT, 0).flags, NM_WIRE_UNSENT);
	lose(1, -EIO);
	lose(SPARE, -EPIPE);
	CHECK_INT(peer->error, -EIO);
}

/* --- what comes again --- */

static int ngot;

static void expect_messages(int n)
{
	for (; ngot < n; ngot++) {
		CHECK_INT(status_of(ngot).error, 0);
		CHECK_INT(text[ngot][0], '0' + ngot);
	}
	CHECK(!nm_sr_is_complete(&reqs[ngot]));
}

static void post_receives(int n)
{
	ngot = 0;
	for (int i = 0; i < n; i++)
		recv_into(i, 1);
}

/* All receives end, so that nothing is pending. */
static void cancel_from(int first, int n)
{
	for (int i = first; i < n; i++)
		CHECK_INT(nm_sr_cancel(&reqs[i]), 0);
}

TEST(what_comes_again_counts_if_it_has_not_come)
{
	post_receives(6);
	give_message(0, 0);
	give_message(0, 1);
	give_resent_message(1, 0, 1, 0, 1);
	expect_messages(2);
	give_resent_message(1, 0, 3, 0, 3);
	give_resent_message(1, 0, 0, 0, 0);
	expect_messages(2);
	give_resent_message(1, 0, 2, 0, 2);
	expect_messages(4);
	CHECK_INT(load_relaxed(&core.stats.resent_in), 2);
	CHECK_INT(peer->error, 0);
	CHECK_INT(ngiven_up[0], 1);
	cancel_from(4, 6);
}

TEST(what_cannot_have_come_counts_whatever_has)
{
	post_receives(3);
	give_message(0, 0);
	give_resent_message(1, 0, 0, NM_WIRE_UNSENT, 1);
	expect_messages(2);
	cancel_from(2, 3);
}

TEST(numbers_go_round)
{
	post_receives(3);
	ncame[0] = (uint32_t)-1;
	give_message(0, 0);
	CHECK_INT(ncame[0], 0);
	give_resent_message(1, 0, (uint32_t)-1, 0, 0);
	expect_messages(1);
	give_resent_message(1, 0, 0, 0, 1);
	expect_messages(2);
	cancel_from(2, 3);
}

TEST(a_packet_is_held_while_its_own_link_may_still_bring_it)
{
	struct nm_news news;

	if (mock_rails_go_with_core())
		return;
	post_receives(3);
	base_pin();
	nm_news_init(&news, false);
	CHECK(nm_rail_enter(&core.rails[0].lock));
	give_resent_message(1, 0, 0, 0, 0);
	give_resent_message(1, 0, 1, 0, 1);
	expect_messages(0);
	/* It does bring the first, to who owns it now. */
	give_message(0, 0);
	core.rails[0].news = &news;
	mock_poll(&core.rails[0], 1);
	CHECK(nm_rail_leave(&core.rails[0].lock));
	nm_core_run(&core, &news, NULL);
	base_unpin();
	progress();
	expect_messages(2);
	CHECK_INT(load_relaxed(&core.stats.resent_in), 1);
	cancel_from(2, 3);
}

TEST(what_is_held_goes_with_the_gate)
{
	if (mock_rails_go_with_core())
		return;
	base_pin();
	CHECK(nm_rail_enter(&core.rails[0].lock));
	give_resent_message(1, 0, 0, 0, 0);
	for (int i = 1; i < RAILS; i++)
		lose(i, -EIO);
	CHECK(peer->error != 0);
	CHECK_PTR(peer->held.first, NULL);
	CHECK(nm_rail_leave(&core.rails[0].lock));
	base_unpin();
}

TEST(a_packet_within_a_packet_within_a_packet_counts_once)
{
	unsigned char memory[BYTES];
	struct nm_wire_chunk c = message(1);
	struct nm_wire_chunk r = resent(0, 1, 0, &c, memory);

	post_receives(3);
	give_message(0, 0);
	give_resent(SPARE, 1, 0, 0, &r);
	expect_messages(2);
	c = message(0);
	r = resent(0, 0, 0, &c, memory);
	give_resent(SPARE, 1, 1, 0, &r);
	CHECK_INT(peer->error, 0);
	expect_messages(2);
	CHECK_INT(ngiven_up[0], 1);
	CHECK_INT(ngiven_up[1], 1);
	cancel_from(2, 3);
}

TEST(both_may_lose_it_at_once)
{
	send_bytes(0, 100);
	post_receives(3);
	give_message(0, 0);
	lose(0, -ENETDOWN);
	give_lost(1, 0);
	give_resent_message(1, 0, 0, 0, 0);
	give_resent_message(1, 0, 1, 0, 1);
	expect_messages(2);
	CHECK_INT(ngiven_up[0], 0);
	CHECK_INT(count(NM_WIRE_KIND_RESENT), 1);
	cancel_from(2, 3);
}

/* --- a peer that lies --- */

TEST(a_rail_that_does_not_resend_is_not_lost)
{
	unsigned way = (unsigned)(check_random() % 4);

	if (way == 0)
		give_lost(0, SPARE);
	else if (way == 1)
		give_lost(0, RAILS);
	else
		give_resent_message(0, SPARE, 0, way == 2 ? NM_WIRE_UNSENT : 0,
				    0);
	expect_given_up();
}

TEST(what_is_in_a_packet_that_comes_again_is_looked_at)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_ACK, .id = 5 };

	give_resent(1, 0, 0, 0, &c);
	expect_given_up();
}

TEST(no_other_chunk_is_in_the_packet_of_one_that_comes_again)
{
	struct nm_wire_chunk c = message(0);
	struct packet *p;

	silent = true;
	give_resent_message(1, 0, 0, NM_WIRE_UNSENT, 0);
	silent = false;
	p = &given[ngiven - 1];
	p->bytes[2]++;
	CHECK_INT(nm_wire_put_chunk(p->bytes + p->length, &c), NM_WIRE_EAGER);
	p->bytes[p->length + NM_WIRE_EAGER] = 'x';
	p->length += NM_WIRE_EAGER + 1;
	expect_given_up();
}
