/*
 * Functions that nmad calls, between two processes over a network: they post,
 * receive and answer while no thread does.
 */
#include <stdlib.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <pioman/cond.h>

#include "../peers.h"

enum { BALL = 7, BOUNCES = 1000, MESSAGES = 60 };

static piom_sem_t over;

/* --- a ball --- */

static struct nm_sr_request catching, throwing[BOUNCES + 1];
static uint64_t ball, hits, nthrown;

static void throw(void)
{
	isend_bytes(&throwing[nthrown++], BALL, &ball, sizeof(ball), 0);
}

static void await(void);

static void caught(struct nm_sr_request *req, void *arg)
{
	struct nm_sr_status status;

	MUST(arg == &hits);
	nm_sr_status(req, &status);
	MUST(status.error == 0 && status.gate == peer);
	hits++;
	ball++;
	if (hits < BOUNCES) {
		await();
		throw();
		return;
	}
	if (nm_rank() == 1)
		throw();
	piom_sem_post(&over);
}

static void await(void)
{
	irecv_bytes(&catching, peer, BALL, NM_TAG_EXACT, &ball, sizeof(ball));
	MUST(nm_sr_on_done(&catching, caught, &hits) == 0);
}

RULE(a_ball_goes_to_and_fro_without_a_thread)
{
	piom_sem_init(&over, 0);
	ball = hits = nthrown = 0;
	if (nm_rank() == 1)
		await();
	meet(1);
	if (nm_rank() == 0) {
		uint64_t first = 0;

		await();
		isend_bytes(&throwing[nthrown++], BALL, &first, sizeof(first),
			    0);
		wait_for(&throwing[0]);
	}
	piom_sem_wait(&over);
	for (uint64_t i = 0; i < nthrown; i++)
		MUST(wait_for(&throwing[i]).error == 0);
	MUST(hits == BOUNCES);
	/* Each hit has counted, and of two, rank 0's is the last. */
	MUST(ball == (uint64_t)(nm_size() * BOUNCES -
				(nm_size() == 2 && nm_rank() == 1)));
}

/* --- what comes unasked --- */

static struct parcel {
	struct nm_sr_request out, in;
	unsigned char *sent, *got;
	size_t bytes;
} parcels[MESSAGES];

static void received(struct nm_sr_request *req, void *arg)
{
	const struct parcel *p = arg;
	struct nm_sr_status status;

	nm_sr_status(req, &status);
	MUST(status.error == 0);
	MUST(status.length == p->bytes);
	piom_sem_post(&over);
}

/* Takes those of this test: others meet their receives. */
static void take(struct nm_session *s, const struct nm_sr_status *what,
		 void *arg)
{
	struct nm_sr_status probed;
	struct nm_message *msg;
	struct nm_data into;
	struct parcel *p;

	MUST(arg == &over);
	if (what->tag >= MESSAGES)
		return;
	p = &parcels[what->tag];
	into = nm_data_flat(p->got, p->bytes);
	MUST(what->length == p->bytes);
	MUST(nm_sr_mprobe(s, what->gate, what->tag, NM_TAG_EXACT, &msg,
			  &probed) == 0);
	MUST(nm_sr_mrecv(msg, &into, &p->in) == 0);
	MUST(nm_sr_on_done(&p->in, received, p) == 0);
}

RULE(a_monitor_takes_what_comes_unasked)
{
	piom_sem_init(&over, 0);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct parcel *p = &parcels[i];

		p->bytes = same_random() % (i % 4 == 0 ? 200000 : 2000);
		p->sent = malloc(p->bytes + 1);
		p->got = malloc(p->bytes + 1);
		MUST(p->sent != NULL && p->got != NULL);
		paint(p->sent, p->bytes, i);
	}
	for (uint32_t i = 0; i < MESSAGES; i++) {
		/* Some are here before anybody is to be told. */
		if (i == MESSAGES / 2)
			MUST(nm_session_monitor(session, take, &over) == 0);
		isend_bytes(&parcels[i].out, i, parcels[i].sent,
			    parcels[i].bytes, 0);
	}
	for (uint32_t i = 0; i < MESSAGES; i++)
		piom_sem_wait(&over);
	MUST(nm_session_unmonitor(session) == 0);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct parcel *p = &parcels[i];

		MUST(wait_for(&p->out).error == 0);
		MUST(is_painted(p->got, p->bytes, i, nm_gate_rank(peer)));
		free(p->sent);
		free(p->got);
	}
}

/* --- nobody looks --- */

static ATOMIC(int) called;

static void note(struct nm_sr_request *req, void *arg)
{
	(void)req;
	(void)arg;
	store_release(&called, 1);
}

RULE(functions_are_called_while_all_compute)
{
	const char *engine = getenv("PIOM_ENGINE");
	struct nm_sr_request in, out;

	if (engine != NULL && strcmp(engine, "none") == 0)
		return;
	/* No ticks: they poll only if a network was waited for before. */
	if (BASE_TSAN && (engine == NULL || strcmp(engine, "pthread") != 0))
		return;
	store_release(&called, 0);
	irecv_bytes(&in, peer, 1, NM_TAG_EXACT, NULL, 0);
	MUST(nm_sr_on_done(&in, note, NULL) == 0);
	meet(2);
	isend_bytes(&out, 1, NULL, 0, 0);
	while (load_acquire(&called) == 0)
		continue;
	MUST(wait_for(&out).error == 0);
}
