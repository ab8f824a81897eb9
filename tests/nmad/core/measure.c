/*
 * Measuring rails against a peer that the test plays itself: which messages
 * leave over which rail, what becomes of a peer that cannot or that dies, and
 * what a rank answers to orders, good and bad. Nobody but who waits polls.
 */
#include "../../../nmad/core/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <pioman/pioman.h>

#include "../../../nmad/boot/boot.h"
#include "mock.h"

enum { RAILS = 2, ROOM = 2048, MAX = 65536, PINGS = 3, FOREVER = 1 << 30 };

/* The protocol, as core/measure.c has it. */
enum { EAGER, BODY, OVER };
enum { TAG_ORDER, TAG_READY, TAG_UNABLE, TAG_PING };
struct order {
	uint32_t rail, kind;
	uint64_t bytes;
};
static const uint64_t session_id = ~(uint64_t)1;

static struct nm_core core;
static int him; /* the rank that the test plays */

/* --- what the launcher keeps --- */

static struct {
	char name[NM_BOOT_NAME_MAX + 1];
	char text[2 * NM_BOOT_VALUE_MAX + 1];
} values[64];
static int nvalues, nfences;

static int boot_put(struct nm_boot *b, const char *name, const char *text)
{
	(void)b;
	CHECK(nvalues < 64);
	snprintf(values[nvalues].name, sizeof(values[0].name), "%s", name);
	snprintf(values[nvalues++].text, sizeof(values[0].text), "%s", text);
	return 0;
}

static int boot_get(struct nm_boot *b, int rank, const char *name, char *out,
		    size_t room)
{
	(void)b;
	CHECK_INT(rank, 0);
	for (int i = 0; i < nvalues; i++)
		if (strcmp(values[i].name, name) == 0) {
			snprintf(out, room, "%s", values[i].text);
			return 0;
		}
	return -ENOENT;
}

static int boot_fence(struct nm_boot *b)
{
	(void)b;
	nfences++;
	return 0;
}

static const struct nm_boot_client client = {
	.name = "test", .put = boot_put, .get = boot_get, .fence = boot_fence
};
static struct nm_boot boot = { .client = &client,
			       .info.size = 2,
			       .has_key = true };

/* --- what he says --- */

struct packet {
	struct nm_pkt_in in;
	struct packet *next;
	int rail;
	unsigned char bytes[ROOM];
};

static struct packet *given, **last;
static uint32_t seq;
static int nheld; /* packets that have not been given back */

static void give(int rail, struct nm_wire_chunk *c)
{
	struct packet *p = calloc(1, sizeof(*p));
	struct nm_wire_head h = { 1, 0 };
	size_t at = NM_WIRE_HEAD;

	CHECK(p != NULL);
	if (c->kind != NM_WIRE_KIND_RTR) {
		c->session = session_id;
		c->seq = seq++;
	}
	nm_wire_put_head(p->bytes, &h);
	nm_wire_put_chunk(p->bytes + at, c);
	at += nm_wire_chunk_size(c);
	if (c->kind == NM_WIRE_KIND_EAGER && c->payload != NULL)
		memcpy(p->bytes + at, c->payload, c->length);
	p->in.data = p->bytes;
	p->in.length = at + (c->kind == NM_WIRE_KIND_EAGER ? c->length : 0);
	p->rail = rail;
	*last = p;
	last = &p->next;
	nheld++;
}

static void give_eager(int rail, uint32_t tag, const void *what, size_t bytes)
{
	static const char nothing[ROOM];
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = tag,
				   .length = bytes,
				   .payload = what != NULL ? what : nothing };

	give(rail, &c);
}

static void give_body(int rail, uint64_t bytes)
{
	unsigned char parts[NM_WIRE_PARTS_BYTES];
	struct nm_wire_part part = { .rail = (uint8_t)rail,
				     .length = bytes,
				     .id = 70 };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTS,
				   .nparts = 1,
				   .tag = TAG_PING,
				   .tail = parts };

	nm_wire_put_part(parts, &c.tail_len, &part);
	give(rail, &c);
}

static void give_rtr(int rail, uint64_t id, uint64_t bytes)
{
	struct nm_wire_chunk c = {
		.kind = NM_WIRE_KIND_RTR, .id = id, .length = bytes, .tail = ""
	};

	give(rail, &c);
}

/* --- what he does, by who he is --- */

static bool is_unable;
static bool dies_ready; /* with the first that he says */
static int dies_after;  /* packets that leave for him, or FOREVER */
static int nsent;
static struct order now;                /* that holds */
static int norders[RAILS][OVER], nover; /* that were given */
static int npings[RAILS][OVER];         /* that have come */
static struct nm_xfer *receiving;

/* As rank 1: he is told what comes. */
static void on_order(const struct order *o)
{
	now = *o;
	if (o->kind == OVER) {
		nover++;
		return;
	}
	CHECK(o->rail < RAILS && o->kind < OVER);
	norders[o->rail][o->kind]++;
	give_eager((int)(check_random() % RAILS),
		   is_unable ? TAG_UNABLE : TAG_READY, NULL, 0);
}

/* As rank 0: what he asks for, in turn, and what has come of it. */
static const struct order *orders, *orders_end;
static int nready, nunable, nleft;

/* One that is over is not answered. */
static void next_order(void)
{
	nleft = PINGS;
	while (orders < orders_end) {
		now = *orders++;
		give_eager((int)(check_random() % RAILS), TAG_ORDER, &now,
			   sizeof(now));
		if (now.kind != OVER)
			break;
	}
}

static void give_orders(const struct order *list, size_t n)
{
	orders = list;
	orders_end = list + n;
	next_order();
}

static void give_ping(void)
{
	if (now.kind == EAGER)
		give_eager((int)now.rail, TAG_PING, NULL, now.bytes);
	else
		give_body((int)now.rail, now.bytes);
}

static void on_ping(int rail, unsigned kind, uint64_t bytes)
{
	CHECK_INT(rail, now.rail);
	CHECK_INT(kind, now.kind);
	CHECK_INT(bytes, now.bytes);
	npings[rail][kind]++;
	if (him == 1)
		give_ping();
	else if (--nleft > 0)
		give_ping();
	else
		next_order();
}

static void on_eager(int rail, const struct nm_wire_chunk *c)
{
	struct order o;

	switch (c->tag) {
	case TAG_ORDER:
		CHECK_INT(c->length, sizeof(o));
		memcpy(&o, c->payload, sizeof(o));
		on_order(&o);
		break;
	case TAG_READY:
		nready++;
		give_ping();
		break;
	case TAG_UNABLE:
		nunable++;
		next_order();
		break;
	default:
		CHECK_INT(c->tag, TAG_PING);
		on_ping(rail, EAGER, c->length);
	}
}

/* --- the driver --- */

static uint64_t asked; /* the body that has been offered to him */

static void on_chunk(struct nm_rail *rail, const struct nm_wire_chunk *c)
{
	struct nm_wire_part part;
	size_t at = 0;

	switch (c->kind) {
	case NM_WIRE_KIND_EAGER:
		on_eager(rail->index, c);
		break;
	case NM_WIRE_KIND_RTS:
		CHECK_INT(c->nparts, 1);
		nm_wire_get_part(c->tail, &at, &part);
		CHECK_INT(part.rail, rail->index);
		asked = part.length;
		give_rtr(rail->index, part.id, part.length);
		break;
	case NM_WIRE_KIND_RTR:
		CHECK_INT(c->id, 70);
		CHECK(receiving != NULL);
		nm_rail_xfer_done(rail, receiving, 0);
		receiving = NULL;
		break;
	}
}

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	unsigned char bytes[ROOM];
	size_t at = NM_WIRE_HEAD, length = nm_pkt_length(pkt);
	struct nm_wire_chunk c;

	CHECK_INT(link->rank, him);
	if (nsent++ >= dies_after)
		return -ECONNRESET;
	nm_pkt_copy(pkt, bytes);
	while (at < length) {
		CHECK_INT(nm_wire_get_chunk(bytes, length, &at, &c), 0);
		on_chunk(link->rail, &c);
	}
	return NM_SENT;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	struct packet *p = given;

	if (p == NULL || p->rail != rail->index || budget == 0)
		return false;
	given = p->next;
	if (given == NULL)
		last = &given;
	p->in.link = &rail->links[him];
	nm_rail_recv(rail, &p->in);
	if (dies_ready && given == NULL)
		nm_rail_link_dead(rail, &rail->links[him], -ECONNRESET);
	return true;
}

static void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	free(container_of(in, struct packet, in));
	nheld--;
}

static int ngiven_up;

static void mock_give_up(struct nm_link *link)
{
	CHECK_INT(link->rank, him);
	ngiven_up++;
}

static int mock_xfer_recv(struct nm_xfer *x)
{
	receiving = x;
	nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static int mock_xfer_send(struct nm_xfer *x)
{
	CHECK_INT(x->length, asked);
	nm_rail_xfer_done(x->link->rail, x, 0);
	on_ping(x->link->rail->index, BODY, asked);
	return 0;
}

/* Whoever announces receives while he measures does not measure offers. */
static int nannounced;

static int mock_xfer_announce(struct nm_xfer *x)
{
	(void)x;
	nannounced++;
	return -EAGAIN;
}

static const struct nm_driver mock = {
	.name = "mock",
	.max_small = ROOM,
	.rdv_threshold = 500,
	.post_send = mock_post_send,
	.poll = mock_poll,
	.release = mock_release,
	.give_up = mock_give_up,
	.xfer_recv = mock_xfer_recv,
	.xfer_send = mock_xfer_send,
	.xfer_announce = mock_xfer_announce,
};

/* --- a core with two rails to him --- */

static void begin(int rank)
{
	mock_core_rails(&core, &mock, 1 << 20, RAILS);
	core.rank = rank;
	for (int i = 0; i < RAILS; i++)
		core.rails[i].rank = rank;
	him = 1 - rank;
	core.gates[him].announces = true;
	nannounced = 0;
	nm_core_self = &core;
	CHECK_INT(nm_core_start(&core), 0);
	boot.info.rank = rank;
	boot.info.size = 2;
	boot.pid = getpid();
	nvalues = nfences = nheld = nsent = nover = ngiven_up = 0;
	nready = nunable = nleft = 0;
	given = NULL;
	last = &given;
	seq = 0;
	is_unable = dies_ready = false;
	dies_after = FOREVER;
	receiving = NULL;
	memset(norders, 0, sizeof(norders));
	memset(npings, 0, sizeof(npings));
}

/* Of a gate that lives: as before, and with thresholds by what is known. */
static void gate_is_whole(void)
{
	struct nm_gate *gate = &core.gates[him];
	size_t least = ROOM;

	CHECK_INT(gate->nlinks, RAILS);
	for (int i = 0; i < RAILS; i++) {
		CHECK_PTR(gate->links[i], &links[i][him]);
		if (nm_rail_threshold(&core.rails[i]) < least)
			least = nm_rail_threshold(&core.rails[i]);
	}
	if (gate->error == 0)
		CHECK_INT(load_relaxed(&gate->eager_max), least);
	CHECK(gate->announces);
	CHECK_INT(nannounced, 0);
}

static void end(void)
{
	for (int i = 0; i < RAILS; i++) {
		free(core.rails[i].curve);
		free(core.rails[i].eager);
	}
	for (struct packet *p = given; p != NULL; p = given) {
		given = p->next;
		free(p);
		nheld--;
	}
	CHECK_INT(nheld, 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_self = NULL;
	nm_core_stop(&core);
	nm_core_exit(&core);
}

static void setup(void)
{
	static bool started;

	if (started)
		return;
	started = true;
	setenv("MARCEL_NVP", "1", 1);
	setenv("MARCEL_TIMESLICE_US", "0", 1);
	setenv("PIOM_MODE", "poll", 1);
	setenv("PIOM_WAIT", "active", 1);
	CHECK_INT(marcel_init(NULL), 0);
	CHECK_INT(piom_init(), 0);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, NULL);
}

static int measure(int rounds)
{
	struct nm_measure m = { .ns = 1000000000000u,
				.max = MAX,
				.rounds = rounds };
	int rc = nm_measure(&core, &boot, &m);

	for (int i = 0; i < NM_RAILS_MAX && rc == 0; i++)
		CHECK_INT(m.peer[i], i < RAILS ? 1 : -1);
	return rc;
}

static bool was_put(const char *name)
{
	char text[2 * NM_BOOT_VALUE_MAX + 1];

	return boot_get(NULL, 0, name, text, sizeof(text)) == 0;
}

/* --- rank 0 --- */

TEST(each_rail_is_tried_alone_with_eager_messages_and_with_bodies)
{
	begin(0);
	CHECK_INT(measure(2), 0);
	CHECK_INT(nfences, 2);
	CHECK_INT(nover, RAILS);
	for (int i = 0; i < RAILS; i++) {
		const struct nm_rail *rail = &core.rails[i];

		/* Two rounds of 0 bytes, 1 KiB and its doubles to 64 KiB. */
		CHECK_INT(norders[i][BODY], 2 * 8);
		CHECK_INT(npings[i][BODY], 2 * 8 * PINGS);
		CHECK(norders[i][EAGER] > 2);
		CHECK_INT(npings[i][EAGER], norders[i][EAGER] * PINGS);
		CHECK_INT(was_put(i == 0 ? "sampling-0-bodies"
					 : "sampling-1-bodies"),
			  rail->curve != NULL);
	}
	gate_is_whole();
	end();
}

TEST(a_peer_that_cannot_is_passed_over)
{
	begin(0);
	is_unable = true;
	CHECK_INT(measure(2), 0);
	CHECK_INT(nover, RAILS);
	for (int i = 0; i < RAILS; i++) {
		CHECK_INT(norders[i][EAGER], 1);
		CHECK(core.rails[i].curve == NULL);
		CHECK(core.rails[i].eager == NULL);
	}
	/* The peers, and of each rail that it has no curve. */
	CHECK_INT(nvalues, 1 + 2 * NM_RAILS_MAX);
	gate_is_whole();
	end();
}

/* However far it has come, nothing hangs or is lost, and all links go. */
TEST(a_peer_may_die_at_any_message)
{
	int whole;

	begin(0);
	CHECK_INT(measure(1), 0);
	whole = nsent;
	end();
	for (int n = 0; n < whole; n++) {
		begin(0);
		dies_after = n;
		CHECK_INT(measure(1), 0);
		CHECK_INT(core.gates[1].error, -ECONNRESET);
		CHECK_INT(ngiven_up, RAILS - 1);
		for (int i = 0; i < RAILS; i++)
			CHECK(links[i][1].error != 0);
		CHECK(core.rails[1].curve == NULL);
		CHECK_INT(nfences, 2);
		gate_is_whole();
		end();
	}
}

TEST(a_peer_may_die_as_it_says_that_it_is_ready)
{
	for (int i = 0; i < 20; i++) {
		begin(0);
		dies_ready = true;
		CHECK_INT(measure(1), 0);
		CHECK_INT(nsent, 1);
		CHECK_INT(core.gates[1].error, -ECONNRESET);
		CHECK_INT(ngiven_up, RAILS - 1);
		gate_is_whole();
		end();
	}
}

/* --- the rail's peer --- */

static void put(const char *name, const void *value, size_t bytes)
{
	CHECK_INT(nm_boot_put(&boot, name, value, bytes), 0);
}

static void put_peers(void)
{
	int peer[NM_RAILS_MAX];

	for (int i = 0; i < NM_RAILS_MAX; i++)
		peer[i] = i < RAILS ? 1 : -1;
	put("sampling-peers", peer, sizeof(peer));
}

static const double good[] = { 0, 100, 1000, 200, 1000000, 100200 };

TEST(orders_are_carried_out_and_bad_ones_refused)
{
	static const struct order list[] = {
		{ 0, EAGER, 100 },    { 99, EAGER, 100 }, { 0, BODY, MAX },
		{ 1, EAGER, 100 },    { 0, 7, 100 },      { RAILS, BODY, 1 },
		{ 0, BODY, MAX + 1 }, { 1, BODY, 1 },     { 0, OVER, 0 },
		{ 1, EAGER, 0 },      { 1, EAGER, MAX },  { 1, OVER, 0 },
	};

	begin(1);
	put_peers();
	put("sampling-1-bodies", good, sizeof(good));
	put("sampling-1-eager", good, sizeof(good) / 3 * 2);
	give_orders(list, sizeof(list) / sizeof(list[0]));
	CHECK_INT(measure(1), 0);
	CHECK_INT(nready, 5);
	CHECK_INT(nunable, 5);
	CHECK_INT(npings[0][EAGER], PINGS);
	CHECK_INT(npings[0][BODY], PINGS);
	CHECK_INT(npings[1][EAGER], 2 * PINGS);
	CHECK_INT(npings[1][BODY], PINGS);
	CHECK(core.rails[0].curve == NULL);
	CHECK_INT(core.rails[1].curve->n, 3);
	CHECK(core.rails[1].curve->at[2].ns == 100200);
	CHECK_INT(core.rails[1].eager->n, 2);
	gate_is_whole();
	end();
}

TEST(what_rank_0_has_left_is_looked_at)
{
	static const double falling[] = { 0, 100, 1000, 50 };
	static const struct order over[] = { { 0, OVER, 0 }, { 1, OVER, 0 } };

	begin(1);
	CHECK_INT(measure(1), -EPROTO);
	put("sampling-peers", good, sizeof(int));
	CHECK_INT(measure(1), -EPROTO);
	end();
	for (int i = 0; i < 3; i++) {
		begin(1);
		put_peers();
		put("sampling-0-bodies", i == 0 ? falling : good,
		    i == 1 ? sizeof(good) / 3 : sizeof(falling));
		if (i == 2)
			put("sampling-0-eager", falling, sizeof(falling));
		give_orders(over, RAILS);
		CHECK_INT(measure(1), -EPROTO);
		CHECK(core.rails[0].curve == NULL);
		end();
	}
}
