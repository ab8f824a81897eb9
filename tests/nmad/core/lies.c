/*
 * A peer that says whatever can be said, true or not, while requests come, are
 * given up and end, and links die, some without the peer: the core stays whole,
 * and when the peer is gone every request has ended and all memory is back.
 * Each rail's driver only keeps what it is given.
 */
#include "played.h"

#include "../../../nmad/core/grant.h"
#include "../../../nmad/core/levels.h"

enum {
	RAILS = 3,
	REQS = 64,
	BIG = 4 << 20,
	TAGS = 3,
	ROUNDS = BASE_TSAN ? 50 : 500, /* one thread */
	STEPS = 150
};

static struct nm_sr_request all[REQS];
static int nall;
static char memory[BIG];
/* Of its envelopes: the next, and one that is late. */
static uint32_t seq, late;
static bool has_late;
static bool dies[RAILS];

static unsigned any(unsigned n)
{
	return (unsigned)(check_random() % n);
}

static bool once_in(unsigned n)
{
	return any(n) == 0;
}

static bool honest; /* it tells the truth, and lives */

static bool lies(unsigned n)
{
	return !honest && once_in(n);
}

/* --- the driver: transfers that it has, and whether it has answered --- */

static struct {
	struct nm_xfer *x;
	bool ready;
} has[4096];
static int nhas;

static void keep(struct nm_xfer *x, bool ready)
{
	CHECK(nhas < (int)(sizeof(has) / sizeof(has[0])));
	has[nhas].x = x;
	has[nhas++].ready = ready;
}

static void let_go(const struct nm_link *link)
{
	int n = 0;

	for (int i = 0; i < nhas; i++)
		if (has[i].x->link != link)
			has[n++] = has[i];
	nhas = n;
}

/* Of a link that may be lost: some packets, whichever. */
static void report(struct nm_link *link)
{
	static const struct nm_wire_head h = { 0, 0 };
	unsigned char bytes[NM_WIRE_HEAD];

	nm_wire_put_head(bytes, &h);
	for (unsigned n = link->may_lose ? any(4) : 0; n > 0; n--)
		nm_rail_unsure(link->rail, link, any(100), bytes,
			       sizeof(bytes));
}

static void token(struct nm_xfer *x)
{
	x->mine.length = any(NM_TOKEN_MAX + 1);
	memset(x->mine.bytes, 'm', x->mine.length);
}

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	return once_in(8) ? -EAGAIN : record(pkt);
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	struct nm_link *link = &rail->links[1];
	bool moved = rail->index == 0 && deliver(rail, budget);

	for (int i = 0; i < nhas; i++)
		if (has[i].x->link == link && !has[i].ready && once_in(2)) {
			has[i].ready = true;
			nm_rail_xfer_ready(rail, has[i].x);
		}
	if (dies[rail->index] && link->error == 0) {
		report(link);
		let_go(link);
		nm_rail_link_dead(rail, link, -ECONNRESET);
	}
	return moved;
}

static int mock_xfer_recv(struct nm_xfer *x)
{
	token(x);
	keep(x, false);
	return 0;
}

static int mock_xfer_send(struct nm_xfer *x)
{
	if (lies(50)) {
		let_go(x->link);
		return -EPROTO;
	}
	keep(x, true);
	return 0;
}

static int mock_xfer_take(struct nm_xfer *x)
{
	(void)x;
	return once_in(2) ? -ECANCELED : 0;
}

static void mock_give_up(struct nm_link *link)
{
	report(link);
	let_go(link);
}

static uint32_t mock_arrived(const struct nm_link *link)
{
	(void)link;
	return any(100);
}

/* --- announced receives: the words that driver and peer both see --- */

enum state { RECALLED, OPEN, TAKEN };

static enum state places[4096];
static uint16_t nplaces;

static int mock_xfer_announce(struct nm_xfer *x)
{
	if (once_in(4) || nplaces == sizeof(places) / sizeof(places[0]))
		return -EAGAIN;
	x->mine.length = sizeof(nplaces);
	memcpy(x->mine.bytes, &nplaces, sizeof(nplaces));
	places[nplaces++] = OPEN;
	return 0;
}

static int mock_xfer_recall(struct nm_xfer *x, bool for_good)
{
	enum state was;
	uint16_t i;

	memcpy(&i, x->mine.bytes, sizeof(i));
	was = places[i];
	CHECK(was != RECALLED);
	if (was == TAKEN && !for_good)
		return -EALREADY;
	places[i] = RECALLED;
	return 0;
}

static int mock_xfer_meet(struct nm_xfer *x)
{
	if (x->link->error == 0)
		keep(x, true);
	else if (once_in(2))
		nm_rail_xfer_done(x->link->rail, x, 0);
	else
		return -ECONNRESET;
	return 0;
}

static const struct nm_driver mock = {
	.name = "mock",
	.arrived = mock_arrived,
	.max_small = BYTES,
	.fill = BYTES,
	.rdv_threshold = 500,
	.post_send = mock_post_send,
	.poll = mock_poll,
	.release = mock_release,
	.give_up = mock_give_up,
	.xfer_offer = token,
	.xfer_recv = mock_xfer_recv,
	.xfer_send = mock_xfer_send,
	.xfer_take = mock_xfer_take,
	.xfer_announce = mock_xfer_announce,
	.xfer_recall = mock_xfer_recall,
	.xfer_meet = mock_xfer_meet,
};

static void end_any(void)
{
	int i;

	if (nhas == 0)
		return;
	i = (int)any((unsigned)nhas);
	if (has[i].ready) {
		struct nm_xfer *x = has[i].x;

		has[i] = has[--nhas];
		end(x);
	}
}

/* --- what the core has asked the peer --- */

static struct {
	uint64_t id, length;
	uint32_t seq;
	bool is_part;
} asked[4096];
static int nasked;
static bool retracted[2 * REQS]; /* envelopes, by number */

static void note(uint64_t id, uint32_t number, uint64_t length, bool is_part)
{
	if (nasked == (int)(sizeof(asked) / sizeof(asked[0])))
		nasked = 0;
	CHECK(number < 2 * REQS);
	asked[nasked].id = id;
	asked[nasked].seq = number;
	asked[nasked].length = length;
	asked[nasked++].is_part = is_part;
}

/* The receive of each tag that was announced last, and what went there. */
static struct {
	bool known;
	uint64_t id, length;
	uint16_t place;
	uint32_t next; /* number behind the last of the tag */
} announced[TAGS];

static void note_announcement(const struct nm_wire_chunk *c)
{
	CHECK(c->tag < TAGS);
	if ((int32_t)(c->seq - announced[c->tag].next) < 0)
		return;
	announced[c->tag].known = true;
	announced[c->tag].id = c->id;
	announced[c->tag].length = c->length;
	memcpy(&announced[c->tag].place, c->tail, sizeof(uint16_t));
}

static void note_chunk(const struct nm_wire_chunk *c)
{
	struct nm_wire_part part;
	size_t at = 0;

	if (c->kind == NM_WIRE_KIND_ANNOUNCE)
		note_announcement(c);
	if (c->kind == NM_WIRE_KIND_RETRACT) {
		CHECK(c->seq < 2 * REQS && c->id < c->seq);
		retracted[c->id] = true;
	}
	if (c->kind == NM_WIRE_KIND_EAGER && (c->flags & NM_WIRE_SYNC))
		note(c->id, c->seq, 0, false);
	if (c->flags & NM_WIRE_ANNOUNCED)
		return; /* nothing is asked */
	for (int i = 0; i < c->nparts; i++) {
		nm_wire_get_part(c->tail, &at, &part);
		note(part.id, c->seq, part.length, true);
	}
}

/* What it sends is well formed, whatever it has been told. */
static void hear(void)
{
	for (int i = 0; i < nsent; i++) {
		size_t at = NM_WIRE_HEAD;
		struct nm_wire_chunk c;
		struct nm_wire_head h;

		CHECK_INT(nm_wire_get_head(sent[i].bytes, sent[i].length, &h),
			  0);
		for (int k = 0; k < h.nchunks; k++) {
			CHECK_INT(nm_wire_get_chunk(sent[i].bytes,
						    sent[i].length, &at, &c),
				  0);
			note_chunk(&c);
		}
		CHECK_INT(at, sent[i].length);
	}
	nsent = 0;
}

/* --- what it says --- */

static unsigned char parts[NM_WIRE_PARTS_BYTES], bytes[NM_TOKEN_MAX];

static unsigned any_rail(void)
{
	return any(lies(300) ? 256 : (unsigned)core.nrails);
}

static void answer(struct nm_wire_chunk *c)
{
	int i = nasked > 0 ? (int)any((unsigned)nasked) : 0;
	bool made_up = nasked == 0 || lies(200);

	c->kind = asked[i].is_part ? NM_WIRE_KIND_RTR : NM_WIRE_KIND_ACK;
	c->id = made_up ? check_random() % 8 << 32 | any(40) : asked[i].id;
	c->length = asked[i].length;
	if (once_in(4))
		c->length = any((unsigned)c->length + 1);
	c->length += lies(200);
	if (retracted[asked[i].seq] ? once_in(2) : lies(200)) {
		c->flags = NM_WIRE_RETRACTED;
		c->length = lies(200);
	}
	c->tail = bytes;
	c->tail_len = any(NM_TOKEN_MAX + 1);
	if (c->kind == NM_WIRE_KIND_RTR && c->length > 0 && lies(10)) {
		c->flags = NM_WIRE_AGAIN;
		c->tail_len = 0;
	}
	if (nasked > 0 && !lies(200))
		asked[i] = asked[--nasked];
}

static void offer(struct nm_wire_chunk *c)
{
	c->kind = NM_WIRE_KIND_RTS;
	c->nparts = (uint8_t)(1 + any(NM_WIRE_PARTS_MAX));
	c->priority = (int8_t)((int)any(16) + NM_PRIORITY_MIN);
	if (lies(300))
		c->priority = (int8_t)any(256);
	c->flags = lies(300) ? NM_WIRE_ANNOUNCED : 0;
	c->id = 1 + any(40);
	c->tail = parts;
	for (int i = 0; i < c->nparts; i++) {
		struct nm_wire_part part = {
			.rail = (uint8_t)any_rail(),
			.length = 1 + check_random() % (1ul << any(24)),
			.id = any(1000),
			.token_len = any(NM_TOKEN_MAX + 1),
			.token = bytes
		};

		if (once_in(100))
			part.length = UINT64_MAX / NM_WIRE_PARTS_MAX;
		nm_wire_put_part(parts, &c->tail_len, &part);
	}
}

static void small(struct nm_wire_chunk *c)
{
	c->kind = NM_WIRE_KIND_EAGER;
	c->flags = once_in(3) ? NM_WIRE_SYNC : 0;
	c->id = 1 + any(1000);
	c->length = any(600);
	c->payload = text;
}

static void announcement(struct nm_wire_chunk *c)
{
	c->kind = NM_WIRE_KIND_ANNOUNCE;
	c->rail = (uint8_t)any_rail();
	c->length = any(BIG);
	c->id = check_random();
	c->tail = bytes;
	c->tail_len = any(NM_TOKEN_MAX + 1);
}

static void retraction(struct nm_wire_chunk *c)
{
	c->kind = NM_WIRE_KIND_RETRACT;
	c->id = any(seq + 2);
}

/* That a rail is lost, in one of three ways. */
static void loss(struct nm_wire_chunk *c)
{
	static unsigned char packet[NM_WIRE_HEAD + NM_WIRE_ACK];
	const struct nm_wire_head h = { (uint16_t)any(2), 0 };
	const struct nm_wire_chunk inner = { .kind = NM_WIRE_KIND_ACK,
					     .id = any(40) };

	c->kind = (uint8_t)(NM_WIRE_KIND_LOST + any(3));
	c->rail = (uint8_t)any_rail();
	c->seq = any(100);
	c->id = any(1000);
	c->tail = bytes;
	c->tail_len = any(NM_TOKEN_MAX + 1);
	if (c->kind != NM_WIRE_KIND_RESENT)
		return;
	c->flags = once_in(3) ? NM_WIRE_UNSENT : 0;
	nm_wire_put_head(packet, &h);
	nm_wire_put_chunk(packet + NM_WIRE_HEAD, &inner);
	c->tail = packet;
	c->tail_len = NM_WIRE_HEAD + h.nchunks * NM_WIRE_ACK;
}

/* A message that takes the place that was announced, if it can. */
static void go_there(struct nm_wire_chunk *c)
{
	uint16_t place = announced[c->tag].place;
	struct nm_wire_part part = {
		.length = 1 + check_random() % announced[c->tag].length,
		.id = any(1000),
		.token_len = any(NM_TOKEN_MAX + 1),
		.token = bytes
	};

	if (places[place] != OPEN)
		return;
	places[place] = TAKEN;
	c->flags = NM_WIRE_ANNOUNCED;
	c->id = announced[c->tag].id;
	c->nparts = 1;
	c->tail_len = 0;
	nm_wire_put_part(parts, &c->tail_len, &part);
}

/* Of an envelope: most come in their turn, few twice. */
static uint32_t number(void)
{
	if (has_late && once_in(2)) {
		has_late = false;
		return late;
	}
	if (!has_late && once_in(5)) {
		has_late = true;
		late = seq++;
	}
	return lies(300) ? seq - any(3) : seq++;
}

static void say_anything(void)
{
	struct nm_wire_chunk c = { .tag = any(TAGS), .session = SESSION };

	ngiven = ndelivered = 0;
	switch (lies(8) ? 6 : any(6)) {
	case 0:
		small(&c);
		break;
	case 1:
		offer(&c);
		break;
	case 2:
		announcement(&c);
		break;
	case 3:
		retraction(&c);
		break;
	case 6:
		loss(&c);
		break;
	default:
		if (nasked == 0 && !lies(200))
			return;
		answer(&c);
	}
	if (c.kind <= NM_WIRE_KIND_RTS || c.kind == NM_WIRE_KIND_RETRACT) {
		if (c.kind == NM_WIRE_KIND_RTS && !has_late &&
		    announced[c.tag].known)
			go_there(&c);
		c.seq = c.flags & NM_WIRE_ANNOUNCED ? seq++ : number();
		announced[c.tag].known = false;
		if ((int32_t)(c.seq + 1 - announced[c.tag].next) > 0)
			announced[c.tag].next = c.seq + 1;
	}
	give(&c);
	if (lies(200))
		given[0].bytes[any((unsigned)given[0].length)] ^= 1;
	progress();
	hear();
}

/* --- what the user does --- */

static void start_any(void)
{
	static const size_t sizes[] = { 0, 60, 490, 700, 600 * 1024, BIG };
	struct nm_data d = nm_data_flat(memory, sizes[any(6)]);
	uint32_t tag = any(TAGS);

	if (nall == REQS)
		return;
	if (once_in(2))
		CHECK_INT(nm_sr_irecv(session, once_in(4) ? NM_ANY_GATE : peer,
				      tag,
				      once_in(4) ? NM_TAG_ANY : NM_TAG_EXACT,
				      &d, &all[nall]),
			  0);
	else
		CHECK_INT(nm_sr_isend_priority(session, peer, tag, &d, any(4),
					       (int)any(16) + NM_PRIORITY_MIN,
					       &all[nall]),
			  0);
	nall++;
}

static void cancel_any(void)
{
	int i = nall > 0 ? (int)any((unsigned)nall) : -1, rc;

	if (i < 0)
		return;
	rc = nm_sr_cancel(&all[i]);
	CHECK(rc == 0 || rc == -EALREADY);
}

static void step(void)
{
	switch (any(8)) {
	case 0:
	case 1:
		start_any();
		break;
	case 2:
	case 3:
		end_any();
		break;
	case 4:
		if (once_in(10))
			cancel_any();
		break;
	default:
		say_anything();
	}
	if (lies(1000))
		dies[any(RAILS)] = true;
	hear();
}

/* --- a round --- */

static void begin(const struct nm_strategy *strategy)
{
	mock_core_rails(&core, &mock, 4096, 1 + (int)any(RAILS));
	core.config.strategy = strategy;
	peer = &core.gates[1];
	peer->announces = core.nrails == 1 && strategy->bodies == 0;
	for (int i = 0; i < core.nrails && core.nrails > 1 && !honest; i++)
		peer->links[i]->may_lose = once_in(2);
	nplaces = 0;
	memset(announced, 0, sizeof(announced));
	nsent = nhas = nasked = nall = 0;
	seq = 0;
	has_late = false;
	memset(dies, 0, sizeof(dies));
	memset(retracted, 0, sizeof(retracted));
	nm_ids_put(&core.offers, nm_ids_get(&core.offers, &core));
	nm_ids_put(&core.syncs, nm_ids_get(&core.syncs, &core));
	taken = core.mem.taken;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

/* What a gate keeps once it needed it. */
static void give_back(void)
{
	struct nm_mem *mem = &core.mem;

	if (peer->grants != NULL)
		nm_mem_put(mem,
			   nm_mem_class(NM_RAILS_MAX * sizeof(*peer->grants)),
			   peer->grants);
	if (peer->levels != NULL)
		nm_mem_put(mem, nm_mem_class(sizeof(*peer->levels)),
			   peer->levels);
}

static void finish(void)
{
	struct nm_pass pass;

	for (int i = 0; i < RAILS; i++)
		dies[i] = true;
	while (peer->error == 0 || !nm_core_is_quiet(&core))
		nm_core_progress(&core);
	CHECK_INT(nhas, 0);
	for (int i = 0; i < nplaces; i++)
		CHECK(places[i] != OPEN);
	for (int i = 0; i < nall; i++)
		CHECK(nm_sr_is_complete(&all[i]));
	CHECK_INT(load_relaxed(&core.pending), 0);
	CHECK_INT(nm_core_session_close(session), 0);
	nm_core_lock(&core);
	nm_core_settle(&core, &pass); /* what has been copied is freed */
	nm_core_unlock(&core, &pass);
	give_back();
	if (nm_limbo_is_empty(&core.limbo) && nm_limbo_is_empty(&core.retracts))
		CHECK_INT(core.mem.taken, taken);
	for (int i = 0; i < core.nrails; i++)
		nm_mem_exit(&core.rails[i].mem);
	nm_core_exit(&core);
}

static void rounds(void)
{
	int n = 0;

	while (nm_strategies[n] != NULL)
		n++;
	for (int round = 0; round < ROUNDS; round++) {
		begin(nm_strategies[round % n]);
		for (int i = 0; i < STEPS; i++)
			step();
		CHECK(!honest || peer->error == 0);
		finish();
	}
}

TEST(whatever_a_peer_says_all_requests_end_and_nothing_is_lost)
{
	honest = false;
	rounds();
}

TEST(who_tells_the_truth_is_never_given_up)
{
	honest = true;
	rounds();
}
