/*
 * Messages from each member to any, whose tag is their number. A member sends
 * by one thread and receives by one or two, so that who sends may wait for who
 * receives.
 */
#include "traffic.h"

#include <marcel/marcel.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	UNSENT = 1 << 20, /* a tag that nobody sends with */
	BATCH = 8,
	RECEIVERS = 2,
	CANCELS = 6,
};

/* What a round is like: how large messages are, how many, at once. */
static const struct kind {
	size_t most;
	int n, window;
} kinds[] = {
	{ 64, 200, 16 },
	{ 4096, 100, 16 },
	{ 128 << 10, 24, 4 },
	{ 4 << 20, 4, 2 },
};

enum by {
	BY_RECV,
	BY_MPROBE,
	BY_IMPROBE,
	BY_BATCH,   /* several receives of anything at once */
	BY_PROBE,   /* these by one thread only */
	BY_ALL,     /* a receive for each, in any order */
	BY_ALL_ANY, /* the same, from any source */
	BYS,
};

struct message {
	int to, how;
	size_t bytes;
	uint64_t key;
};

struct round {
	struct group *g;
	const struct kind *kind;
	enum by by;
	int receivers;
	_Atomic int left;      /* to be received, and nobody has begun that */
	_Atomic uint8_t *seen; /* by source and tag */
	int *last;             /* tag of each source, if they come in order */
};

struct receiver {
	struct round *r;
	uint64_t lot;
};

static struct message message_of(const struct round *r, int from, int tag)
{
	uint64_t lot =
		mix(lot_of(r->g, 1), (uint64_t)from << 32 | (unsigned)tag);
	struct message m = { .to = (int)draw_below(&lot,
						   (unsigned)r->g->size) };
	unsigned bits = 0;

	while ((size_t)1 << bits < r->kind->most)
		bits++;
	m.bytes = draw_below(&lot, (1u << draw_below(&lot, bits + 1)) + 1);
	if (m.bytes > 2048 && draw_below(&lot, 2) == 0)
		m.bytes -= m.bytes % 1024;
	m.how = (int)draw_below(&lot, 6);
	m.key = draw(&lot);
	return m;
}

/* --- sending --- */

struct slot {
	struct place place;
	MPI_Request request;
};

static void send_one(struct round *r, struct slot *s, int tag)
{
	struct message m = message_of(r, r->g->rank, tag);
	MPI_Comm comm = r->g->comm;
	MPI_Datatype type;
	int n;

	if (s->request != MPI_REQUEST_NULL) {
		MPI_Wait(&s->request, MPI_STATUS_IGNORE);
		if (s->request != MPI_REQUEST_NULL)
			MPI_Request_free(&s->request); /* a persistent one */
	}
	place_fill(&s->place, m.bytes, m.key);
	n = place_type(&s->place, m.bytes, &type);
	switch (m.how) {
	case 0:
		MPI_Send(s->place.buf, n, type, m.to, tag, comm);
		break;
	case 1:
		MPI_Ssend(s->place.buf, n, type, m.to, tag, comm);
		break;
	case 2:
		MPI_Issend(s->place.buf, n, type, m.to, tag, comm, &s->request);
		break;
	case 3:
		MPI_Send_init(s->place.buf, n, type, m.to, tag, comm,
			      &s->request);
		MPI_Start(&s->request);
		break;
	default:
		MPI_Isend(s->place.buf, n, type, m.to, tag, comm, &s->request);
	}
	place_untype(&type);
	counts[SENT]++;
	counts[SENT_BYTES] += m.bytes;
}

static void send_all(struct round *r)
{
	struct slot slots[BATCH * 2];
	uint64_t lot = mix(lot_of(r->g, 2), (uint64_t)r->g->rank);

	for (int i = 0; i < r->kind->window; i++) {
		place_make(r->g, &slots[i].place, &lot, r->kind->most);
		slots[i].request = MPI_REQUEST_NULL;
	}
	for (int tag = 0; tag < r->kind->n; tag++)
		send_one(r, &slots[tag % r->kind->window], tag);
	for (int i = 0; i < r->kind->window; i++) {
		MPI_Wait(&slots[i].request, MPI_STATUS_IGNORE);
		if (slots[i].request != MPI_REQUEST_NULL)
			MPI_Request_free(&slots[i].request);
		place_free(&slots[i].place);
	}
}

/* --- receiving --- */

static void take(struct round *r, const struct place *p, const MPI_Status *s,
		 bool in_order)
{
	int from = s->MPI_SOURCE, tag = s->MPI_TAG, bytes;
	struct message m;

	MUST(r->g, from >= 0 && from < r->g->size);
	MUST(r->g, tag >= 0 && tag < r->kind->n);
	m = message_of(r, from, tag);
	MUST_INT(r->g, m.to, r->g->rank);
	MPI_Get_count(s, MPI_BYTE, &bytes);
	MUST_INT(r->g, bytes, m.bytes);
	if (!place_holds(p, m.bytes, m.key))
		fail(r->g, __FILE__, __LINE__,
		     "message %d of %d (%zu bytes, blocks of %zu, received by "
		     "%d) has other bytes",
		     tag, from, m.bytes, p->block, (int)r->by);
	MUST_INT(r->g, r->seen[from * r->kind->n + tag]++, 0);
	if (in_order) {
		MUST(r->g, tag > r->last[from]);
		r->last[from] = tag;
	}
	counts[RECEIVED]++;
	counts[RECEIVED_BYTES] += m.bytes;
}

/* True: this thread is to receive one more. */
static bool claim(struct round *r)
{
	if (r->left-- > 0)
		return true;
	r->left++;
	return false;
}

static void one_by_one(struct round *r, uint64_t *lot)
{
	MPI_Comm comm = r->g->comm;
	MPI_Message message;
	MPI_Request request;
	MPI_Datatype type;
	MPI_Status status;
	struct place p;
	int n, flag;

	place_make(r->g, &p, lot, r->kind->most);
	n = place_type(&p, p.most, &type);
	while (claim(r)) {
		switch (r->by) {
		case BY_MPROBE:
			MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message,
				   &status);
			MPI_Mrecv(p.buf, n, type, &message, &status);
			break;
		case BY_IMPROBE:
			do
				MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
					    &flag, &message, &status);
			while (!flag);
			MPI_Imrecv(p.buf, n, type, &message, &request);
			MPI_Wait(&request, &status);
			break;
		case BY_PROBE:
			MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
			MPI_Recv(p.buf, n, type, status.MPI_SOURCE,
				 status.MPI_TAG, comm, &status);
			break;
		default:
			MPI_Recv(p.buf, n, type, MPI_ANY_SOURCE, MPI_ANY_TAG,
				 comm, &status);
		}
		take(r, &p, &status, r->receivers == 1);
	}
	place_untype(&type);
	place_free(&p);
}

/* In one of the ways that there are to wait for several. */
static void wait_for(struct round *r, uint64_t *lot, int n,
		     MPI_Request *requests, const struct place *places)
{
	int *which = must_alloc(r->g, sizeof(*which) * (size_t)n), done = 0;
	MPI_Status *s = must_alloc(r->g, sizeof(*s) * (size_t)n);
	int how = (int)draw_below(lot, 4), some, flag = 1;

	while (done < n) {
		some = 1;
		switch (how) {
		case 0:
			MPI_Waitany(n, requests, which, s);
			break;
		case 1:
			MPI_Testany(n, requests, which, &flag, s);
			some = flag ? 1 : 0;
			break;
		case 2:
			MPI_Waitsome(n, requests, &some, which, s);
			break;
		default:
			MPI_Testsome(n, requests, &some, which, s);
		}
		MUST(r->g, some >= 0 && some <= n - done);
		for (int i = 0; i < some; i++)
			take(r, &places[which[i]], &s[i], false);
		done += some;
	}
	free(which);
	free(s);
}

static void in_batches(struct round *r, uint64_t *lot)
{
	MPI_Request requests[BATCH], unsent;
	struct place places[BATCH];
	int n, window = r->kind->window < BATCH ? r->kind->window : BATCH, flag;
	MPI_Status status;

	MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, UNSENT, r->g->comm,
		  &unsent);
	for (int i = 0; i < window; i++)
		place_make(r->g, &places[i], lot, r->kind->most);
	do {
		for (n = 0; n < window && claim(r); n++) {
			MPI_Datatype type;
			int k = place_type(&places[n], r->kind->most, &type);

			MPI_Irecv(places[n].buf, k, type, MPI_ANY_SOURCE,
				  MPI_ANY_TAG, r->g->comm, &requests[n]);
			place_untype(&type);
		}
		if (n > 0)
			wait_for(r, lot, n, requests, places);
	} while (n == window);
	MPI_Cancel(&unsent);
	MPI_Wait(&unsent, &status);
	MPI_Test_cancelled(&status, &flag);
	MUST(r->g, flag);
	for (int i = 0; i < window; i++)
		place_free(&places[i]);
}

/* All of them, in an order drawn by lot: who waits for which is not known. */
static void all_at_once(struct round *r, uint64_t *lot)
{
	int n = r->left, at = 0;
	struct place *places = must_alloc(r->g, sizeof(*places) * (size_t)n);
	MPI_Request *requests = must_alloc(r->g, sizeof(*requests) * (size_t)n);
	struct order {
		int from, tag;
	} *order = must_alloc(r->g, sizeof(*order) * (size_t)n);

	for (int from = 0; from < r->g->size; from++)
		for (int tag = 0; tag < r->kind->n; tag++) {
			int other = (int)draw_below(lot, (unsigned)at + 1);

			if (message_of(r, from, tag).to != r->g->rank)
				continue;
			order[at] = order[other];
			order[other] = (struct order){ from, tag };
			at++;
		}
	MUST_INT(r->g, at, n);
	for (int i = 0; i < n; i++) {
		bool any = r->by == BY_ALL_ANY;
		struct message m = message_of(r, order[i].from, order[i].tag);
		MPI_Datatype type;
		int k;

		place_make(r->g, &places[i], lot,
			   any ? r->kind->most : m.bytes);
		k = place_type(&places[i], places[i].most, &type);
		MPI_Irecv(places[i].buf, k, type,
			  any ? MPI_ANY_SOURCE : order[i].from, order[i].tag,
			  r->g->comm, &requests[i]);
		place_untype(&type);
	}
	if (n > 0)
		wait_for(r, lot, n, requests, places);
	for (int i = 0; i < n; i++)
		place_free(&places[i]);
	free(order);
	free(requests);
	free(places);
}

static void *receive(void *arg)
{
	struct receiver *me = arg;

	switch (me->r->by) {
	case BY_BATCH:
		in_batches(me->r, &me->lot);
		break;
	case BY_ALL:
	case BY_ALL_ANY:
		all_at_once(me->r, &me->lot);
		break;
	default:
		one_by_one(me->r, &me->lot);
	}
	return NULL;
}

void messages(struct group *g)
{
	uint64_t lot = lot_of(g, 0), mine = mix(lot, (uint64_t)g->rank);
	struct round r = { .g = g };
	struct receiver receivers[RECEIVERS];
	marcel_t threads[RECEIVERS];
	size_t n;

	r.kind = &kinds[draw_below(&lot, sizeof(kinds) / sizeof(kinds[0]))];
	r.by = (enum by)draw_below(&mine, BYS);
	r.receivers = r.by < BY_PROBE ? 1 + (int)draw_below(&mine, 2) : 1;
	n = (size_t)g->size * (size_t)r.kind->n;
	r.seen = must_alloc(g, n);
	r.last = must_alloc(g, sizeof(int) * (size_t)g->size);
	for (size_t i = 0; i < n; i++)
		r.seen[i] = 0;
	for (int from = 0; from < g->size; from++) {
		r.last[from] = -1;
		for (int tag = 0; tag < r.kind->n; tag++)
			r.left += message_of(&r, from, tag).to == g->rank;
	}
	for (int i = 0; i < r.receivers; i++) {
		receivers[i] = (struct receiver){ &r, draw(&mine) };
		MUST_INT(g,
			 marcel_create(&threads[i], NULL, receive,
				       &receivers[i]),
			 0);
	}
	send_all(&r);
	for (int i = 0; i < r.receivers; i++)
		MUST_INT(g, marcel_join(threads[i], NULL), 0);
	free((void *)r.seen);
	free(r.last);
	/* Or a receive of anything would take what is of the next round. */
	MPI_Barrier(g->comm);
}

/* --- sends that are taken back --- */

/*
 * Each sends to some, and takes it back: what has not been, those receive.
 * Nobody has posted a receive, so all may be taken back; none must be.
 */
void cancel(struct group *g)
{
	uint64_t lot = mix(lot_of(g, 3), (uint64_t)g->rank), key = lot_of(g, 4);
	size_t most = kinds[draw_below(&lot, 3)].most;
	MPI_Request requests[CANCELS];
	struct place places[CANCELS];
	int to[CANCELS], flag;
	int *out = must_alloc(g, sizeof(int) * (size_t)g->size * 2);
	int *in = out + g->size;
	MPI_Status status;

	for (int i = 0; i < g->size; i++)
		out[i] = 0;
	for (int i = 0; i < CANCELS; i++) {
		places[i] = (struct place){ .most = most };
		places[i].buf = must_alloc(g, most + 64);
		place_fill(&places[i], most, key);
		to[i] = (int)draw_below(&lot, (unsigned)g->size);
		MPI_Isend(places[i].buf, (int)most, MPI_BYTE, to[i], 0, g->comm,
			  &requests[i]);
	}
	for (int i = 0; i < CANCELS; i++) {
		MPI_Cancel(&requests[i]);
		MPI_Wait(&requests[i], &status);
		MPI_Test_cancelled(&status, &flag);
		counts[CANCELLED] += flag != 0;
		out[to[i]] += !flag;
		place_free(&places[i]);
	}
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, g->comm);
	for (int from = 0; from < g->size; from++)
		for (int i = 0; i < in[from]; i++) {
			struct place p;
			int bytes;

			MPI_Probe(from, 0, g->comm, &status);
			MPI_Get_count(&status, MPI_BYTE, &bytes);
			place_make(g, &p, &lot, (size_t)bytes);
			p.block = 0;
			MPI_Recv(p.buf, bytes, MPI_BYTE, from, 0, g->comm,
				 &status);
			MUST(g, place_holds(&p, (size_t)bytes, key));
			place_free(&p);
		}
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, g->comm, &flag, &status);
	MUST(g, !flag);
	free(out);
	MPI_Barrier(g->comm);
}
