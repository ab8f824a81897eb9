/*
 * Aggregation: what one packet takes, by a core with one rail whose driver
 * records packets and ends their turn when the test says so.
 */
#include "busy.h"

enum { WINDOW = 1000 };

extern const struct nm_strategy nm_strategy_aggreg;

static void setup(void)
{
	busy_setup(&nm_strategy_aggreg, WINDOW);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, busy_teardown);
}

static int asked;

static void ask(struct nm_link *link, struct nm_pkt *pkt)
{
	asked++;
	nm_aggreg_pack(link, pkt);
}

/* --- rules --- */

TEST(a_plain_strategy_is_asked_unless_an_eager_message_is_alone)
{
	const struct nm_strategy plain = { .plain = true, .pack = ask };
	const struct nm_strategy other = { .pack = ask };
	struct nm_wire_chunk c[1];

	at_once = true;
	asked = 0;
	core.config.strategy = &plain;
	send_in(0, 0, 8, 0);
	CHECK_INT(asked, 0);
	send_in(0, 1, NM_FREE_PAYLOAD + 1, 0);
	CHECK_INT(asked, 0);
	CHECK_INT(peer->credit_used, NM_FREE_PAYLOAD + 1);
	send_in(0, 2, 8, NM_SEND_SYNC);
	CHECK_INT(asked, 1);
	at_once = false;
	send_in(0, 3, 8, 0);
	send_in(0, 4, 8, 0); /* behind it */
	CHECK_INT(asked, 1);
	go();
	CHECK_INT(asked, 2);
	go();
	core.config.strategy = &other;
	send_in(0, 5, 8, 0);
	CHECK_INT(asked, 3);
	go();
	core.config.strategy = &nm_strategy_aggreg;
	CHECK_INT(nsent, 6);
	for (int i = 0; i < 6; i++) {
		CHECK_INT(chunks_of(i, c), 1);
		CHECK_INT(c[0].tag, i);
		CHECK_INT(c[0].seq, i);
		CHECK_INT(memcmp(c[0].payload, text[i], c[0].length), 0);
	}
}

TEST(the_first_message_does_not_wait_for_company)
{
	struct nm_wire_chunk c[1];

	send_in(0, 7, 8, 0);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunks_of(0, c), 1);
}

TEST(what_comes_while_the_link_is_busy_leaves_as_one_packet_in_order)
{
	struct nm_wire_chunk c[REQS];

	send_in(0, 0, 8, 0);
	for (uint32_t i = 1; i < 40; i++)
		send_in((int)(i % 2), i, 8, 0);
	CHECK_INT(nsent, 1);
	go();
	CHECK_INT(nsent, 2);
	CHECK_INT(chunks_of(1, c), 39);
	for (uint32_t i = 1; i < 40; i++) {
		CHECK_INT(c[i - 1].tag, i);
		CHECK_INT(c[i - 1].session, SESSION + i % 2);
		CHECK_INT(c[i - 1].seq, i / 2);
		CHECK_INT(c[i - 1].length, 8);
		CHECK_INT(memcmp(c[i - 1].payload, text[i], 8), 0);
	}
	CHECK(!nm_sr_is_complete(&reqs[39]));
	go();
	for (int i = 0; i < 40; i++)
		CHECK(nm_sr_is_complete(&reqs[i]));
	CHECK_INT(nsent, 2);
}

TEST(what_does_not_fit_comes_first_in_the_next_packet)
{
	struct nm_wire_chunk c[REQS];

	send_in(0, 0, 8, 0);
	for (uint32_t i = 1; i <= 6; i++)
		send_in(0, i, i < 6 ? 60 : 400, 0);
	send_in(0, 7, 480, 0);
	send_in(0, 8, 60, 0);
	go();
	CHECK_INT(chunks_of(1, c), 8); /* all of them */
	CHECK_INT(c[5].length, 400);
	CHECK_INT(c[5].kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(c[6].length, 480);
	CHECK_INT(c[7].tag, 8);
	for (uint32_t i = 0; i < 33; i++)
		send_in(0, 100 + i, 60, 0);
	go();
	CHECK_INT(chunks_of(2, c), (BYTES - NM_WIRE_HEAD) / (24 + 60));
	go();
	CHECK_INT(c[0].tag, 100);
	CHECK_INT(chunks_of(3, c), 33 - (BYTES - NM_WIRE_HEAD) / (24 + 60));
	CHECK_INT(c[0].tag, 100 + (BYTES - NM_WIRE_HEAD) / (24 + 60));
}

/* It is an envelope all the same, and keeps its place. */
TEST(the_envelope_of_a_large_message_travels_among_the_small_ones)
{
	struct nm_wire_chunk c[REQS];

	send_in(0, 0, 8, 0);
	send_in(0, 1, 8, 0);
	send_in(0, 2, 501, 0);
	send_in(0, 3, 8, 0);
	go();
	CHECK_INT(chunks_of(1, c), 3);
	CHECK_INT(c[0].kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(c[1].kind, NM_WIRE_KIND_RTS);
	CHECK_INT(c[1].length, 501);
	CHECK_INT(c[1].seq, 2);
	CHECK_INT(c[2].kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(c[2].seq, 3);
}

TEST(answers_ride_in_front_of_messages)
{
	struct nm_wire_chunk c[REQS];
	struct nm_pass pass;

	send_in(0, 0, 8, 0);
	send_in(0, 1, 8, 0);
	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_out_ack(peer, 77);
	nm_out_ack(peer, 78);
	nm_core_unlock(&core, &pass);
	go();
	CHECK_INT(chunks_of(1, c), 3);
	CHECK_INT(c[0].kind, NM_WIRE_KIND_ACK);
	CHECK_INT(c[0].id, 77);
	CHECK_INT(c[1].id, 78);
	CHECK_INT(c[2].tag, 1);
}

TEST(a_synchronous_send_among_others_waits_for_its_answer_alone)
{
	int plain, sync;

	send_in(0, 0, 8, 0);
	sync = send_in(0, 1, 8, NM_SEND_SYNC);
	plain = send_in(0, 2, 8, 0);
	go();
	go();
	CHECK(nm_sr_is_complete(&reqs[plain]));
	CHECK(!nm_sr_is_complete(&reqs[sync]));
}

TEST(all_of_a_packet_fail_with_the_link_that_dies_under_it)
{
	struct nm_sr_status status;
	struct nm_news news;

	send_in(0, 0, 8, 0);
	for (uint32_t i = 1; i < 30; i++)
		send_in((int)(i % 2), i, i % 3 == 0 ? 300 : 8,
			i % 5 == 0 ? NM_SEND_SYNC : 0);
	go();
	CHECK(under_way != NULL && under_way->nchunks > 5);
	nm_news_init(&news, true);
	core.rails[0].news = &news;
	nm_rail_link_dead(&core.rails[0], peer->links[0], -ECONNRESET);
	under_way = NULL;
	base_pin();
	nm_core_run(&core, &news, NULL);
	base_unpin();
	for (int i = 1; i < nreqs; i++) {
		CHECK(nm_sr_is_complete(&reqs[i]));
		nm_sr_status(&reqs[i], &status);
		CHECK_INT(status.error, -ECONNRESET);
	}
}
