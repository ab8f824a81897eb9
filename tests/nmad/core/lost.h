/*
 * A core of rank 0 and a peer, which the test plays, with three rails between
 * them: two resend and are used, the third does not, weighs more and is spare.
 */
#ifndef TESTS_NMAD_CORE_LOST_H
#define TESTS_NMAD_CORE_LOST_H

#include "played.h"

#include "../../../nmad/core/lost.h"

enum { RAILS = 3, SPARE = 2, XFERS = 32 };

/* --- the driver --- */

static bool full[RAILS]; /* it takes no packets */
static int why[RAILS];   /* the link dies now, by this error */
static bool silent;      /* it is not polled for what is given */

/* Of those that left over the rail: how many, and that it is unsure of. */
static uint32_t nposted[RAILS], sure[RAILS];
static int which[RAILS][PACKETS];
static uint32_t ncame[RAILS];
static int ngiven_up[RAILS];

static struct nm_xfer *sending[XFERS], *receiving[XFERS];
static int nsending, nreceiving;

static inline int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	int rail = link->rail->index;

	if (full[rail])
		return -EAGAIN;
	which[rail][nposted[rail]++] = nsent;
	return record(pkt);
}

static inline void report(struct nm_link *link)
{
	int rail = link->rail->index;

	if (rail == SPARE)
		return;
	for (uint32_t i = sure[rail]; i < nposted[rail]; i++) {
		const struct packet *p = &sent[which[rail][i]];

		nm_rail_unsure(link->rail, link, i, p->bytes, p->length);
	}
}

static inline void let_go(const struct nm_link *link)
{
	for (int i = 0; i < nsending; i++)
		if (sending[i] != NULL && sending[i]->link == link)
			sending[i] = NULL;
	for (int i = 0; i < nreceiving; i++)
		if (receiving[i] != NULL && receiving[i]->link == link)
			receiving[i] = NULL;
}

static inline void mock_give_up(struct nm_link *link)
{
	ngiven_up[link->rail->index]++;
	report(link);
	let_go(link);
}

static uint32_t mock_arrived(const struct nm_link *link)
{
	return ncame[link->rail->index];
}

static inline bool mock_poll(struct nm_rail *rail, int budget)
{
	struct nm_link *link = &rail->links[1];
	bool moved = false;

	for (int i = 0; i < ngiven && !silent; i++) {
		struct packet *p = &given[i];

		if (p->rail != rail->index || p->in.link != NULL ||
		    link->error != 0 || budget-- == 0)
			continue;
		p->in.link = link;
		p->in.data = p->bytes;
		p->in.length = p->length;
		ncame[rail->index]++;
		nm_rail_recv(rail, &p->in);
		moved = true;
	}
	if (why[rail->index] != 0 && link->error == 0) {
		report(link);
		let_go(link);
		nm_rail_link_dead(rail, link, why[rail->index]);
		moved = true;
	}
	return moved;
}

static inline int mock_connect(struct nm_link *link)
{
	return -EHOSTUNREACH;
}

static inline void mock_xfer_offer(struct nm_xfer *x)
{
	x->mine.length = 1;
	x->mine.bytes[0] = (unsigned char)('0' + x->link->rail->index);
}

static bool answers; /* a transfer is ready at once */

static inline int mock_xfer_recv(struct nm_xfer *x)
{
	CHECK_INT(x->peers.length, 1);
	CHECK_INT(x->peers.bytes[0], '0' + x->link->rail->index);
	CHECK_INT(x->drv[0], 0);
	x->drv[0] = 1;
	receiving[nreceiving++] = x;
	mock_xfer_offer(x);
	if (answers)
		nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static inline int mock_xfer_send(struct nm_xfer *x)
{
	CHECK_INT(x->drv[0], 0);
	x->drv[0] = 1;
	sending[nsending++] = x;
	return 0;
}

#define DRIVER                                                                 \
	.max_small = BYTES, .rdv_threshold = 500, .connect = mock_connect,     \
	.post_send = mock_post_send, .poll = mock_poll,                        \
	.release = mock_release, .give_up = mock_give_up,                      \
	.xfer_offer = mock_xfer_offer, .xfer_recv = mock_xfer_recv,            \
	.xfer_send = mock_xfer_send

static const struct nm_driver mock = { .name = "mock",
				       .caps = NM_CAP_RESENDS,
				       .weight = 10,
				       .arrived = mock_arrived,
				       DRIVER };
static const struct nm_driver plain = { .name = "plain", .weight = 50, DRIVER };

/* --- the core --- */

static inline void lost_setup(void)
{
	mock_core_rails(&core, &mock, 1 << 20, RAILS);
	core.config.strategy = nm_strategies[0];
	core.rails[SPARE].driver = &plain;
	peer = &core.gates[1];
	for (int i = 0; i < RAILS; i++) {
		peer->links[i]->may_lose = i != SPARE;
		core.rails[i].max_small -= 2 * (NM_WIRE_HEAD + NM_WIRE_RESENT);
	}
	nm_gate_relink(peer);
	CHECK_INT(peer->nlinks, SPARE);
	nsent = ngiven = ndelivered = nsending = nreceiving = 0;
	memset(given, 0, sizeof(given));
	memset(full, 0, sizeof(full));
	memset(why, 0, sizeof(why));
	memset(nposted, 0, sizeof(nposted));
	memset(sure, 0, sizeof(sure));
	memset(ncame, 0, sizeof(ncame));
	memset(ngiven_up, 0, sizeof(ngiven_up));
	answers = true;
	silent = false;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	nm_ids_put(&core.offers, nm_ids_get(&core.offers, &core));
	nm_ids_put(&core.syncs, nm_ids_get(&core.syncs, &core));
	taken = core.mem.taken;
}

static inline void lost_teardown(void)
{
	progress();
	CHECK_INT(load_relaxed(&core.pending), 0);
	CHECK_INT(nm_core_session_close(session), 0);
	progress();
	CHECK_INT(core.mem.taken, taken);
	mock_exit_rails(&core);
	nm_core_exit(&core);
}

/* --- what the test does --- */

static inline void lose(int rail, int error)
{
	why[rail] = error;
	progress();
}

static inline void send_bytes(int i, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	memset(text[i], 'a' + i, bytes);
	CHECK_INT(nm_sr_isend(session, peer, 0, &d, 0, &reqs[i]), 0);
}

static inline void recv_into(int i, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_irecv(session, peer, 0, NM_TAG_ANY, &d, &reqs[i]), 0);
	progress();
}

static inline void give_over(int rail, const struct nm_wire_chunk *c)
{
	give(c);
	CHECK(ngiven > 0);
	given[ngiven - 1].rail = rail;
	progress();
}

/* Message number `seq`, of one byte that tells which. */
static inline struct nm_wire_chunk message(uint32_t seq)
{
	static char payload[16];

	payload[seq] = (char)('0' + seq);
	return (struct nm_wire_chunk){ .kind = NM_WIRE_KIND_EAGER,
				       .seq = seq,
				       .session = SESSION,
				       .length = 1,
				       .payload = &payload[seq] };
}

static inline void give_message(int rail, uint32_t seq)
{
	struct nm_wire_chunk c = message(seq);

	give_over(rail, &c);
}

/* A packet of that chunk, as it would be given. */
static inline size_t packet_of(const struct nm_wire_chunk *c, unsigned char *to)
{
	struct nm_wire_head h = { 1, 0 };
	size_t length = NM_WIRE_HEAD;

	nm_wire_put_head(to, &h);
	nm_wire_put_chunk(to + length, c);
	length += nm_wire_chunk_size(c);
	if (c->kind == NM_WIRE_KIND_EAGER) {
		memcpy(to + length, c->payload, c->length);
		length += c->length;
	} else if (c->kind == NM_WIRE_KIND_RESENT) {
		memcpy(to + length, c->tail, c->tail_len);
		length += c->tail_len;
	}
	return length;
}

static inline struct nm_wire_chunk resent(int lost, uint32_t number,
					  unsigned flags,
					  const struct nm_wire_chunk *c,
					  unsigned char *memory)
{
	return (struct nm_wire_chunk){
		.kind = NM_WIRE_KIND_RESENT,
		.flags = (uint8_t)flags,
		.rail = (uint8_t)lost,
		.seq = number,
		.tail = memory,
		.tail_len = (uint32_t)packet_of(c, memory),
	};
}

static inline void give_resent(int rail, int lost, uint32_t number,
			       unsigned flags, const struct nm_wire_chunk *c)
{
	unsigned char memory[BYTES];
	struct nm_wire_chunk r = resent(lost, number, flags, c, memory);

	give_over(rail, &r);
}

static inline void give_resent_message(int rail, int lost, uint32_t number,
				       unsigned flags, uint32_t seq)
{
	struct nm_wire_chunk c = message(seq);

	give_resent(rail, lost, number, flags, &c);
}

static inline void give_lost(int rail, int lost)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_LOST,
				   .rail = (uint8_t)lost };

	give_over(rail, &c);
}

static inline struct nm_wire_chunk first_of(int kind, int after)
{
	struct nm_wire_chunk c = { 0 };

	for (int i = after; i < nsent; i++) {
		c = chunk_of(i);
		if (c.kind == kind)
			return c;
	}
	CHECK(!"a chunk of that kind has left");
	return c;
}

static inline int count(int kind)
{
	int n = 0;

	for (int i = 0; i < nsent; i++)
		n += chunk_of(i).kind == kind;
	return n;
}

/* The i-th packet is a RESENT with the k-th in it. */
static inline void check_resent(int i, int lost, uint32_t number,
				unsigned flags, int k)
{
	struct nm_wire_chunk c = chunk_of(i);

	CHECK_INT(c.kind, NM_WIRE_KIND_RESENT);
	CHECK_INT(c.rail, lost);
	CHECK_INT(c.flags, flags);
	if (!(flags & NM_WIRE_UNSENT))
		CHECK_INT(c.seq, number);
	CHECK_INT(c.tail_len, sent[k].length);
	CHECK_INT(memcmp(c.tail, sent[k].bytes, sent[k].length), 0);
}

static inline void expect_given_up(void)
{
	progress();
	CHECK_INT(peer->error, -EBADMSG);
	for (int i = 0; i < RAILS; i++)
		CHECK(core.rails[i].links[1].error != 0);
}

#endif
