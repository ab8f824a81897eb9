/*
 * What a peer has sent before its death counts, also where two owners of the
 * rail enter the core in the other order than they had the rail in: the one who
 * has taken its last packets may be stopped anywhere, and the next one finds
 * it dead.
 */
#include "../../check.h"

#include <errno.h>

#include <nmad/sendrecv.h>

#include "mock.h"

enum { BYTES = 256, SESSION = 5, WINDOW = 1000, PACKETS = 2 };

static struct nm_core core;
static struct nm_session *session;
static struct nm_pkt_in packets[PACKETS];
static unsigned char bytes[PACKETS][BYTES];
static int nreleased;

static void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
	nreleased++;
}

static const struct nm_driver mock = {
	.name = "mock",
	.max_small = BYTES,
	.release = mock_release,
};

static void setup(void)
{
	mock_core(&core, &mock, WINDOW);
	nreleased = 0;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

static void teardown(void)
{
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* An owner takes the i-th packet: one message of a byte. */
static void take(struct nm_news *news, int i)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = 1,
				   .seq = (uint32_t)i,
				   .session = SESSION,
				   .length = 1,
				   .payload = "x" };
	struct nm_wire_head h = { 1, 0 };
	struct nm_rail *rail = &core.rails[0];
	struct nm_pkt_in *in = &packets[i];

	nm_wire_put_head(bytes[i], &h);
	nm_wire_put_chunk(bytes[i] + NM_WIRE_HEAD, &c);
	in->length = NM_WIRE_HEAD + nm_wire_chunk_size(&c) + 1;
	bytes[i][in->length - 1] = 'x';
	in->data = bytes[i];
	in->link = &rail->links[1];
	rail->news = news;
	nm_rail_recv(rail, in);
}

/* Another one finds the peer dead. */
static void find_dead(struct nm_news *news)
{
	struct nm_rail *rail = &core.rails[0];

	rail->news = news;
	nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
}

static void receive(struct nm_sr_request *req, char *byte)
{
	struct nm_data data = nm_data_flat(byte, 1);

	CHECK_INT(nm_sr_irecv(session, &core.gates[1], 1, NM_TAG_EXACT, &data,
			      req),
		  0);
}

static int error_of(const struct nm_sr_request *req)
{
	struct nm_sr_status status;

	CHECK(nm_sr_is_complete(req));
	nm_sr_status(req, &status);
	return status.error;
}

TEST(a_death_does_not_overtake_what_was_sent_before_it)
{
	struct nm_sr_request req[PACKETS + 1];
	struct nm_news slow[PACKETS], fast;
	char byte[PACKETS + 1] = "";

	for (int i = 0; i < PACKETS; i++) {
		nm_news_init(&slow[i], false);
		take(&slow[i], i);
	}
	nm_news_init(&fast, false);
	find_dead(&fast);
	for (int i = 0; i <= PACKETS; i++)
		receive(&req[i], &byte[i]);
	mock_settle(&core, &fast);
	for (int i = PACKETS; i-- > 0;)
		mock_settle(&core, &slow[i]);
	for (int i = 0; i < PACKETS; i++) {
		CHECK_INT(error_of(&req[i]), 0);
		CHECK_INT(byte[i], 'x');
	}
	CHECK_INT(error_of(&req[PACKETS]), -ECONNRESET);
	CHECK_INT(nreleased, PACKETS);
}

TEST(a_death_that_comes_last_is_heard_of_at_once)
{
	struct nm_sr_request req[2];
	struct nm_news news;
	char byte[2] = "";

	nm_news_init(&news, false);
	take(&news, 0);
	find_dead(&news);
	receive(&req[0], &byte[0]);
	receive(&req[1], &byte[1]);
	mock_settle(&core, &news);
	CHECK_INT(error_of(&req[0]), 0);
	CHECK_INT(error_of(&req[1]), -ECONNRESET);
}
