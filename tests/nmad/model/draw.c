/*
 * Draw a programme.
 *
 * No operation of the list blocks but AWAIT, which waits for an operation with
 * a smaller index than its own: so nothing waits in a circle. Messages of one
 * (sender, receiver, session, tag) have all different lengths: a receive tells
 * by its status which it has got, a probe too.
 */
#include "model.h"

#include <nmad/sendrecv.h>

static const uint32_t tags[] = { 0, 7, 0xffffffff };
enum { TAGS = sizeof(tags) / sizeof(tags[0]) };

uint32_t model_length(uint64_t *s, bool large)
{
	static const uint32_t steps[] = { 64, 1024, 2048, 4096, 8192, 65536 };
	uint32_t step = steps[model_pick(s, sizeof(steps) / sizeof(steps[0]))];

	if (large && model_pick(s, 2))
		return 8000 + model_pick(s, 30000);
	switch (model_pick(s, 16)) {
	case 0:
	case 1:
		return 0;
	case 2:
	case 3:
	case 4:
	case 5:
		return 1 + model_pick(s, 64);
	case 6:
	case 7:
		return model_pick(s, 1000);
	case 8:
	case 9:
		return model_pick(s, 20000);
	case 10:
		return 20000 + model_pick(s, MODEL_BYTES - 20000);
	default:
		return step - 40 + model_pick(s, 80);
	}
}

/* --- messages --- */

static bool is_used(const struct model *m, int rank, const struct model_op *op)
{
	for (int t = 0; t < m->threads[rank]; t++)
		for (int i = 0; i < m->thread[rank][t].n; i++) {
			const struct model_op *o = &m->thread[rank][t].ops[i];

			if (o != op && o->kind == MODEL_SEND &&
			    o->peer == op->peer && o->session == op->session &&
			    o->tag == op->tag && o->length == op->length)
				return true;
		}
	return false;
}

/* Where messages are large few tags and plain memory, so that many meet. */
static uint32_t draw_tag(const struct model *m, uint64_t *s)
{
	return tags[m->large ? 0 : model_pick(s, TAGS)];
}

static uint8_t draw_shape(const struct model *m, uint64_t *s)
{
	return (uint8_t)(m->large && model_pick(s, 4) ? 0 : model_pick(s, 8));
}

static void draw_send(struct model *m, uint64_t *s, int rank,
		      struct model_op *op)
{
	op->peer = (int8_t)model_pick(s, (unsigned)m->ranks);
	op->session = (uint8_t)model_pick(s, (unsigned)m->sessions);
	op->tag = draw_tag(m, s);
	op->length = model_length(s, m->large);
	while (is_used(m, rank, op))
		op->length++;
	op->flags = model_pick(s, 4) == 0 ? NM_SEND_SYNC : 0;
	if (model_pick(s, 8) == 0)
		op->flags |= NM_SEND_NOW;
	op->priority = (int8_t)((int)model_pick(s, 16) + NM_PRIORITY_MIN);
	op->shape = draw_shape(m, s);
}

/* Some message to this rank, for receives to look like. */
static const struct model_op *some_message(const struct model *m, uint64_t *s,
					   int rank, int *from)
{
	for (int tries = 0; tries < 200; tries++) {
		int r = (int)model_pick(s, (unsigned)m->ranks);
		int t = (int)model_pick(s, (unsigned)m->threads[r]);
		const struct model_thread *th = &m->thread[r][t];
		int i = (int)model_pick(s, (unsigned)th->n);

		*from = r;
		if (th->ops[i].kind == MODEL_SEND && th->ops[i].peer == rank)
			return &th->ops[i];
	}
	return NULL;
}

/* --- what takes them --- */

static void draw_envelope(const struct model *m, uint64_t *s, int rank,
			  struct model_op *op)
{
	int from = rank;
	const struct model_op *like = some_message(m, s, rank, &from);

	op->session = like ? like->session : 0;
	op->tag = like ? like->tag : 0;
	op->peer = (int8_t)from;
	if (!m->named[op->session]) {
		unsigned rarely = m->large ? 8 : 3;

		if (model_pick(s, rarely) == 0)
			op->peer = MODEL_ANY;
		op->any_tag = model_pick(s, rarely + 1) == 0;
	}
	op->length = like ? like->length : 0;
	switch (model_pick(s, 8)) {
	case 0: /* as likely as not too short */
		op->length = model_length(s, m->large);
		break;
	case 1:
		op->length -= op->length > 0;
		break;
	case 2:
	case 3:
		break;
	default:
		op->length = op->length * 2 + 100;
	}
	op->shape = draw_shape(m, s);
}

/* An earlier operation of these kinds, or -1. */
static int earlier(const struct model_thread *th, uint64_t *s, int i,
		   bool sends)
{
	for (int tries = 0; i > 0 && tries < 10; tries++) {
		int k = (int)model_pick(s, (unsigned)i);

		if (th->ops[k].kind == MODEL_RECV ||
		    (sends && (th->ops[k].kind == MODEL_SEND ||
			       th->ops[k].kind == MODEL_MPROBE)))
			return k;
	}
	return -1;
}

static void draw_other(const struct model *m, uint64_t *s, int rank,
		       struct model_thread *th, int i)
{
	struct model_op *op = &th->ops[i];
	unsigned what = model_pick(s, 100);

	if (what < 60) {
		op->kind = MODEL_RECV;
		draw_envelope(m, s, rank, op);
	} else if (what < 78) {
		op->kind = what < 72 ? MODEL_PROBE : MODEL_MPROBE;
		draw_envelope(m, s, rank, op);
	} else if (what < 92) {
		op->kind = what < 85 ? MODEL_CANCEL : MODEL_TEST;
		op->target = earlier(th, s, i, op->kind == MODEL_TEST);
		if (op->target < 0)
			op->kind = MODEL_YIELD;
	} else if (what < 98) {
		op->kind = MODEL_AWAIT;
		op->peer = (int8_t)model_pick(s, (unsigned)m->ranks);
		op->tag = model_pick(s, (unsigned)m->threads[op->peer]);
		op->target = i - (int)model_pick(s, 3);
	}
}

/* --- all of it --- */

static void draw_size(struct model *m, uint64_t *s)
{
	m->sessions = 1 + (int)model_pick(s, MODEL_SESSIONS);
	for (int i = 0; i < m->sessions; i++)
		m->named[i] = model_pick(s, 3) == 0;
	m->large = model_pick(s, 4) == 0;
	for (int r = 0; r < m->ranks; r++) {
		m->threads[r] = 1;
		if (model_pick(s, 2))
			m->threads[r] += (int)model_pick(s, MODEL_THREADS);
		for (int t = 0; t < m->threads[r]; t++) {
			struct model_thread *th = &m->thread[r][t];

			th->n = 5 + (int)model_pick(s, MODEL_DRAWN - 4);
			th->foreign = t > 0 && model_pick(s, 3) == 0;
			for (int i = 0; i < th->n; i++)
				th->ops[i] = (struct model_op){
					.kind = MODEL_YIELD,
					.got = -1,
				};
		}
	}
}

/* Two turns: what receives is drawn to meet what was sent. */
void model_draw(struct model *m, uint64_t seed, int ranks)
{
	uint64_t stream = seed, *s = &stream;

	m->seed = seed;
	m->ranks = ranks;
	draw_size(m, s);
	for (int r = 0; r < ranks; r++) {
		unsigned sends = 2 + model_pick(s, 6);

		for (int t = 0; t < m->threads[r]; t++)
			for (int i = 0; i < m->thread[r][t].n; i++) {
				struct model_op *op = &m->thread[r][t].ops[i];

				if (model_pick(s, 10) < sends) {
					op->kind = MODEL_SEND;
					draw_send(m, s, r, op);
				}
			}
	}
	for (int r = 0; r < ranks; r++)
		for (int t = 0; t < m->threads[r]; t++)
			for (int i = 0; i < m->thread[r][t].n; i++)
				if (m->thread[r][t].ops[i].kind != MODEL_SEND)
					draw_other(m, s, r, &m->thread[r][t],
						   i);
}
