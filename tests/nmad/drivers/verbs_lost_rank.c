/*
 * One of the ranks of verbs_lost.c: messages of all sizes to and from each
 * other rank, while adapters fail at random moments:
 *
 *   verbs_lost_rank SEED FAULT MESSAGES
 *
 * Each message has a number, by which both sides know its size, tag and bytes;
 * those of one tag match in their order, so a receive knows what must come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/compiler.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <pioman/pioman.h>

#include "../../../nmad/core/core.h"
#include "../../../nmad/drivers/verbs/verbs.h"
#include "../pattern.h"
#include "fake_verbs/fake_verbs.h"

enum {
	WINDOW = 12, /* messages under way, to and from each */
	TAGS = 3,
	RANKS = 3,
	LARGEST = 1100000,
	FAULTS = 4, /* at most, of a rank */
};

enum fault { NOTHING, PORT, DEVICE, QP, ACK, ANY, BLINK, LAST, NFAULTS };
static const char *const faults[NFAULTS] = {
	"nothing", "port", "device", "qp", "ack", "any", "blink", "last"
};

#define MUST(x) ((x) ? (void)0 : failed(__LINE__, #x))

static struct nm_session *session;
static uint64_t seed, total;

static void __attribute__((noreturn)) failed(int line, const char *what)
{
	fprintf(stderr, "verbs_lost_rank.c:%d: rank %d: %s does not hold\n",
		line, nm_rank(), what);
	nm_abort(1, "a test failed");
}

/* --- messages --- */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t number(int from, int to, uint64_t i)
{
	return mix(seed ^ mix((uint64_t)(from * RANKS + to) << 32 | i));
}

static size_t size_of(uint64_t number)
{
	static const size_t most[] = { 16,    200,   3000,   8192,
				       20000, 70000, 300000, LARGEST };

	return (number >> 8) % (most[number % 8] + 1);
}

static nm_tag_t tag_of(uint64_t number)
{
	return (nm_tag_t)(number >> 40) % TAGS;
}

/* Messages one way, between this rank and `peer`. */
struct stream {
	int peer;
	bool sends;
	uint64_t begun, over;
	unsigned char *memory;
	struct nm_sr_request reqs[WINDOW];
};

static uint64_t number_in(const struct stream *s, uint64_t i)
{
	return s->sends ? number(nm_rank(), s->peer, i)
			: number(s->peer, nm_rank(), i);
}

static unsigned char *place(const struct stream *s, uint64_t i)
{
	return s->memory + i % WINDOW * (size_t)(LARGEST + 64);
}

static void begin(struct stream *s)
{
	uint64_t i = s->begun++, n = number_in(s, i);
	struct nm_gate *gate = nm_gate_of(s->peer);
	struct nm_data d = nm_data_flat(place(s, i), size_of(n));

	if (s->sends)
		pattern(n, place(s, i), size_of(n));
	else
		memset(place(s, i), 0xee, size_of(n) + 64);
	MUST((s->sends ? nm_sr_isend(session, gate, tag_of(n), &d, 0,
				     &s->reqs[i % WINDOW])
		       : nm_sr_irecv(session, gate, tag_of(n), NM_TAG_EXACT, &d,
				     &s->reqs[i % WINDOW])) == 0);
}

static void look_at(const struct stream *s, uint64_t i,
		    const struct nm_sr_status *status)
{
	uint64_t n = number_in(s, i);
	size_t bytes = size_of(n);

	MUST(status->error == 0);
	if (s->sends)
		return;
	MUST(status->length == bytes && status->sent == bytes);
	MUST(is_pattern(n, place(s, i), bytes));
	for (size_t k = 0; k < 64; k++)
		MUST(place(s, i)[bytes + k] == 0xee);
}

/* In their order: the oldest leaves the window first. */
static void go_on(struct stream *s)
{
	struct nm_sr_status status;

	while (s->over < s->begun &&
	       nm_sr_test(&s->reqs[s->over % WINDOW]) == 0) {
		nm_sr_status(&s->reqs[s->over % WINDOW], &status);
		look_at(s, s->over, &status);
		s->over++;
	}
	while (s->begun < total && s->begun - s->over < WINDOW)
		begin(s);
}

/* --- faults, of device fake0 --- */

static struct {
	uint64_t when; /* so many messages are over */
	enum fault what;
	bool to_all;
} plan[FAULTS];
static unsigned nplan;

static uint64_t draw(void)
{
	static uint64_t n;

	return mix(seed ^ mix((uint64_t)nm_rank() + ++n * 1000));
}

/* The owner of the rail changes it meanwhile; an old number is nobody's. */
BASE_NO_TSAN static uint32_t queue_of(int peer)
{
	for (int i = 0; i < nm_core_self->nrails; i++) {
		const struct nm_rail *rail = &nm_core_self->rails[i];
		const struct verbs *v = rail->drv;

		if (rail->driver != NULL &&
		    strcmp(rail->driver->name, "ibverbs") == 0 &&
		    strcmp(v->port.name, "fake0") == 0)
			return v->peers[peer].qp != NULL
				       ? v->peers[peer].qp->qp_num
				       : 0;
	}
	return 0;
}

static void lose_acknowledgement(void)
{
	struct fake_verbs_fault f = { .device = 0,
				      .after = (unsigned)(draw() % 10),
				      .count = 1 + (unsigned)(draw() % 2),
				      .status = IBV_WC_RETRY_EXC_ERR,
				      .delivered = draw() % 4 != 0 };

	fake_verbs()->fail(&f);
}

static void happen(enum fault what, bool to_all)
{
	const struct fake_verbs *f = fake_verbs();
	uint32_t qp;

	MUST(f != NULL);
	switch (what) {
	case PORT:
		f->happen(FAKE_PORT_DOWN, 0, 1, to_all);
		break;
	case DEVICE:
		f->happen(FAKE_DEVICE_FATAL, 0, 0, to_all);
		break;
	case QP:
		qp = queue_of((nm_rank() + 1) % nm_size());
		if (qp != 0)
			f->happen(FAKE_QP_FATAL, 0, qp, false);
		break;
	case ACK:
		lose_acknowledgement();
		break;
	case BLINK:
		f->happen(FAKE_PORT_DOWN, 0, 1, to_all);
		usleep(30000);
		f->happen(FAKE_PORT_UP, 0, 1, to_all);
		break;
	default:
		break;
	}
}

/* Rank 0 has one at least; the others may. */
static void make_plan(enum fault what)
{
	uint64_t all = total * (uint64_t)(nm_size() - 1) * 2;

	if (nm_rank() == 0)
		nplan = 1 + (unsigned)(draw() % 2);
	else
		nplan = (unsigned)(draw() % 3);
	for (unsigned i = 0; i < nplan; i++) {
		plan[i].when = draw() % all;
		plan[i].what = what == ANY ? PORT + draw() % 4 : what;
		plan[i].to_all = draw() % 3 == 0;
	}
}

/* --- the fence at the end --- */

static bool leaves; /* with such a fault */
int __wrap_nm_boot_fence(struct nm_boot *boot);
int __real_nm_boot_fence(struct nm_boot *boot);

/*
 * Rank 0 has a fault when it goes into the fence, and the last rank does not
 * come before the test has read of the loss, and has made a file: until then
 * nobody is out.
 */
int __wrap_nm_boot_fence(struct nm_boot *boot)
{
	const char *path = getenv("VERBS_LOST_SEEN");

	if (leaves && nm_rank() == 0)
		happen(DEVICE, draw() % 2 == 0);
	while (leaves && nm_rank() == nm_size() - 1 &&
	       access(path, F_OK) != 0) {
		piom_poll();
		marcel_yield();
	}
	return __real_nm_boot_fence(boot);
}

static void see_plan(uint64_t over)
{
	for (unsigned i = 0; i < nplan; i++) {
		if (plan[i].what == NOTHING || over < plan[i].when)
			continue;
		happen(plan[i].what, plan[i].to_all);
		plan[i].what = NOTHING;
	}
}

/* --- the whole --- */

static void traffic(struct stream *streams, int n)
{
	uint64_t over = 0;

	while (over < total * (uint64_t)n) {
		over = 0;
		for (int i = 0; i < n; i++) {
			go_on(&streams[i]);
			over += streams[i].over;
		}
		see_plan(over);
	}
}

static int exchange(int peer)
{
	struct nm_data none = nm_data_flat(NULL, 0);
	struct nm_sr_request in, out;
	struct nm_sr_status a, b;

	MUST(nm_sr_irecv(session, nm_gate_of(peer), TAGS, NM_TAG_EXACT, &none,
			 &in) == 0);
	MUST(nm_sr_isend(session, nm_gate_of(peer), TAGS, &none, NM_SEND_SYNC,
			 &out) == 0);
	nm_sr_wait(&in);
	nm_sr_wait(&out);
	nm_sr_status(&in, &a);
	nm_sr_status(&out, &b);
	return a.error != 0 ? a.error : b.error;
}

static void meet(void)
{
	for (int r = 0; r < nm_size(); r++)
		if (r != nm_rank())
			MUST(exchange(r) == 0);
}

/* What nobody has sent would lie here. */
static void nothing_more(void)
{
	struct nm_sr_status status;

	for (int r = 0; r < nm_size(); r++)
		for (nm_tag_t t = 0; t < TAGS && r != nm_rank(); t++)
			MUST(nm_sr_probe(session, nm_gate_of(r), t,
					 NM_TAG_EXACT, &status) == -EAGAIN);
}

static void print_counts(void)
{
	struct nm_counter c[100];
	size_t n = nm_stats_read(c, 100);

	printf("rank %d:", nm_rank());
	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, "lost") == 0 ||
		    strcmp(c[i].name, "resent_out") == 0 ||
		    strcmp(c[i].name, "resent_in") == 0 ||
		    strcmp(c[i].name, "redone") == 0)
			printf(" %s %" PRIu64, c[i].name, c[i].value);
	printf("\n");
	fflush(stdout);
}

/* Rank 1 has met rank 0: before that nothing is to fail. */
static void await_rank_1(void)
{
	struct nm_data none = nm_data_flat(NULL, 0);
	struct nm_gate *other = nm_gate_of(!nm_rank());
	struct nm_sr_request req;

	if (nm_rank() == 0)
		MUST(nm_sr_irecv(session, other, TAGS + 2, NM_TAG_EXACT, &none,
				 &req) == 0);
	else
		MUST(nm_sr_isend(session, other, TAGS + 2, &none, 0, &req) ==
		     0);
	nm_sr_wait(&req);
}

/* Now there is no other rail: all ends, with an error. */
static void lose_all(void)
{
	struct nm_sr_request reqs[2];
	struct nm_sr_status status;
	unsigned char *large = malloc(LARGEST);
	struct nm_data d = nm_data_flat(large, LARGEST);

	pattern(1, large, LARGEST);
	await_rank_1();
	MUST(nm_sr_irecv(session, nm_gate_of(!nm_rank()), TAGS, NM_TAG_EXACT,
			 &d, &reqs[0]) == 0);
	if (nm_rank() == 0)
		fake_verbs()->happen(FAKE_PORT_DOWN, 1, 1, true);
	MUST(nm_sr_isend(session, nm_gate_of(!nm_rank()), TAGS + 1, &d, 0,
			 &reqs[1]) == 0);
	for (int i = 0; i < 2; i++) {
		nm_sr_wait(&reqs[i]);
		nm_sr_status(&reqs[i], &status);
		MUST(status.error == -ECONNRESET);
	}
	MUST(exchange(!nm_rank()) == -ECONNRESET);
	free(large);
}

static enum fault fault_of(const char *name)
{
	for (enum fault f = 0; f < NFAULTS; f++)
		if (strcmp(name, faults[f]) == 0)
			return f;
	failed(__LINE__, name);
}

int main(int argc, char **argv)
{
	struct stream streams[2 * (RANKS - 1)] = { 0 };
	enum fault what;
	int n = 0, rc;

	MUST(nm_init() == 0);
	MUST(argc >= 4 && nm_size() <= RANKS);
	MUST(nm_session_open(1, &session) == 0);
	seed = strtoull(argv[1], NULL, 0);
	total = strtoull(argv[3], NULL, 0);
	meet();
	what = fault_of(argv[2]);
	make_plan(what);
	for (int r = 0; r < nm_size(); r++)
		for (int k = 0; k < 2 && r != nm_rank(); k++, n++) {
			streams[n].peer = r;
			streams[n].sends = k;
			streams[n].memory =
				malloc(WINDOW * (size_t)(LARGEST + 64));
		}
	traffic(streams, n);
	meet();
	nothing_more();
	meet();
	print_counts();
	if (argc > 4)
		lose_all();
	for (int i = 0; i < n; i++)
		free(streams[i].memory);
	MUST(nm_session_close(session) == 0);
	leaves = what == LAST;
	rc = nm_exit();
	return rc == 0 || argc > 4 ? 0 : 1;
}
