/*
 * The judge: could a plain list, by MPI's rules, have given every message to
 * the receive that has got it?
 *
 * The list, of one receiver and session: what arrives goes to the receive that
 * was posted first among those that it fits and that still wait, else it is
 * kept; a receive that is posted takes what arrived first among what is kept
 * and fits, else it waits; cancelling takes it out; a probe shows what a
 * receive in its place would take, a matched probe takes it. Whatever is sent
 * arrives once, what one rank has sent in the order of sending.
 *
 * When something arrives is nobody's to see. But the outcome tells: let arr(m)
 * be the arrival of m, m -> r that r has got m, "before" the order of calls,
 * which the log's dates give. Then
 *
 *   1. a sent before b by one rank              arr(a) < arr(b)
 *   2. m -> r, and n fits r, unless n -> q and
 *      q was posted before r                    arr(m) < arr(n)
 *   3. r cancelled at c, and n fits r, unless
 *      n -> q and q was posted before r         c < arr(n)
 *   4. p has found nothing, and n fits p, unless
 *      n -> q and q was posted before p         p < arr(n)
 *   5. p has found m                            arr(m) < p, and 2. for p; and
 *                                               not m -> q posted before p
 *   6. m -> r, r known to be complete at d      arr(m) < d
 *   7. r could not be cancelled at c, m -> r    m sent before c
 *   8. a synchronous m known to be complete
 *      at d, m -> r                             r posted before d
 *   9. m sent at s                              s < arr(m)
 *
 * 2: if n arrived first and were there for r, r would have taken n. So
 * somebody else had, who was asked before r: this is "a receive posted earlier
 * matches first" and "messages do not overtake each other" in one rule, for
 * senders that know nothing of each other, too.
 *
 * 7 and 8 say no more, because a receive may have been announced: its message
 * moves as soon as it is sent, and cannot be stopped, while those before it, of
 * other tags, have not arrived. MPI lets it; it orders only what fits the same
 * receive.
 *
 * If there are dates for all arrivals by which all this is true, the list,
 * asked in that order, answers what the log says: by induction over the events,
 * as the first one where it does not would break 2 to 5. And if there are none
 * it cannot have answered so. Where several threads receive, calls that overlap
 * are not ordered, and a rule that would need to know is not applied: so what
 * is refused is wrong, but not all that is wrong is refused.
 *
 * Dates are to be had unless a chain of "<" leads to a date before its
 * beginning, or into itself.
 *
 * Whether each message came once and to whom it fits is asked before; the bytes
 * and the status, where they arrive (main.c).
 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nmad/sendrecv.h>

enum { EVENTS = 2048, TEXT = 8000 };

struct event {
	int number;         /* of its operation; for an arrival, the send */
	uint32_t low, high; /* it was after, and before */
	int why;            /* whose `low` this is */
	int before, from;   /* not yet dated that are before it; one of them */
	const struct model_op *op;
};

/* Arrivals first, then probes and cancels. */
static struct event events[EVENTS];
static int nevents, narrivals;
static uint8_t earlier[EVENTS][EVENTS]; /* [a][b]: a < b */
static int takers[EVENTS];              /* of each arrival; -1: none */
static char text[TEXT];

static const struct model *m;

size_t model_tell(const struct model *model, int number, char *to, size_t n)
{
	static const char *const kinds[] = { "send", "recv", "cancel", "probe",
					     "mprobe" };
	const struct model_op *op = model_op(model, number);
	char peer[16] = "any", tag[16] = "any";
	int thread = number / MODEL_OPS % MODEL_THREADS, length;

	if (op->kind == MODEL_CANCEL)
		op = model_op(model, number - number % MODEL_OPS + op->target);
	if (op->peer != MODEL_ANY)
		snprintf(peer, sizeof(peer), "%d", op->peer);
	if (op->kind == MODEL_SEND || !op->any_tag)
		snprintf(tag, sizeof(tag), "%u", op->tag);
	length = snprintf(
		to, n,
		"rank %d thread %d #%d: %s, peer %s tag %s session "
		"%d, %u bytes, flags %d; %u to %u, done %u\n",
		model_rank_of(number), thread, number % MODEL_OPS,
		kinds[model_op(model, number)->kind], peer, tag, op->session,
		op->length, op->flags, model_op(model, number)->begin,
		model_op(model, number)->end, model_op(model, number)->done);
	return length < 0 || (size_t)length >= n ? 0 : (size_t)length;
}

/* Two operations and what is wrong with them; -1: only one. */
static const char *complain(const char *what, int a, int b)
{
	size_t at = 0;

	at += (size_t)snprintf(text, TEXT, "%s\n", what);
	at += model_tell(m, a, text + at, TEXT - at);
	if (b >= 0)
		model_tell(m, b, text + at, TEXT - at);
	return text;
}

/* --- the events --- */

static struct event *add(int number, uint32_t low, uint32_t high)
{
	struct event *e = &events[nevents++];

	if (nevents > EVENTS)
		abort();
	*e = (struct event){
		number, low, high, -1, 0, -1, model_op(m, number)
	};
	return e;
}

static void add_arrivals(int rank, int session)
{
	for (int r = 0; r < m->ranks; r++)
		for (int t = 0; t < m->threads[r]; t++)
			for (int i = 0; i < m->thread[r][t].n; i++) {
				const struct model_op *op =
					&m->thread[r][t].ops[i];

				if (op->kind == MODEL_SEND &&
				    op->peer == rank && op->session == session)
					add(model_number(r, t, i), op->begin,
					    UINT32_MAX);
			}
	narrivals = nevents;
}

static bool is_of(const struct model_thread *th, const struct model_op *op,
		  int session)
{
	switch (op->kind) {
	case MODEL_RECV:
	case MODEL_PROBE:
	case MODEL_MPROBE:
		return op->session == session;
	case MODEL_CANCEL:
		return th->ops[op->target].session == session;
	default:
		return false;
	}
}

static void add_operations(int rank, int session)
{
	for (int t = 0; t < m->threads[rank]; t++) {
		const struct model_thread *th = &m->thread[rank][t];

		for (int i = 0; i < th->n; i++)
			if (is_of(th, &th->ops[i], session))
				add(model_number(rank, t, i), th->ops[i].begin,
				    th->ops[i].end);
	}
}

static int arrival_of(int number)
{
	for (int a = 0; a < narrivals; a++)
		if (events[a].number == number)
			return a;
	return -1;
}

static bool is_taker(const struct model_op *op)
{
	return op->got >= 0 &&
	       (op->kind == MODEL_RECV || op->kind == MODEL_MPROBE);
}

/* Who has got what: each message once, and what fits. */
static const char *match(void)
{
	for (int a = 0; a < narrivals; a++)
		takers[a] = -1;
	for (int e = narrivals; e < nevents; e++) {
		const struct model_op *op = events[e].op;
		int a = op->kind == MODEL_CANCEL || op->got < 0
				? -1
				: arrival_of(op->got);

		if (op->kind == MODEL_CANCEL || op->got < 0)
			continue;
		if (a < 0)
			return complain("got what is not its session's or "
					"its rank's",
					events[e].number, op->got);
		if (!model_fits(op, events[a].op, model_rank_of(op->got)))
			return complain("got what does not fit",
					events[e].number, op->got);
		if (!is_taker(op))
			continue;
		if (takers[a] >= 0)
			return complain("got what somebody else has got",
					events[e].number,
					events[takers[a]].number);
		takers[a] = e;
	}
	for (int a = 0; a < narrivals; a++)
		if (takers[a] < 0)
			return complain("nobody has got", events[a].number, -1);
	return NULL;
}

/* --- the rules --- */

/* Rules 1, 6 and 8. */
static const char *order_arrivals(void)
{
	for (int a = 0; a < narrivals; a++) {
		const struct model_op *send = events[a].op;
		const struct model_op *taker = events[takers[a]].op;

		for (int b = 0; b < narrivals; b++)
			if (model_rank_of(events[a].number) ==
				    model_rank_of(events[b].number) &&
			    send->end < events[b].op->begin)
				earlier[a][b] = 1;
		if (taker->done != 0 && taker->done < events[a].high)
			events[a].high = taker->done;
		if ((send->flags & NM_SEND_SYNC) && send->done != 0 &&
		    send->done < taker->begin)
			return complain("a synchronous send is complete before "
					"its receive",
					events[a].number,
					events[takers[a]].number);
	}
	return NULL;
}

/*
 * Rules 2 to 5: what event e says of all others that fit `op`; they are after
 * `first`, unless who has got them may have been before `op`.
 */
static void order_others(const struct model_op *op, int first)
{
	for (int a = 0; a < narrivals; a++)
		if (a != first &&
		    model_fits(op, events[a].op,
			       model_rank_of(events[a].number)) &&
		    events[takers[a]].op->begin > op->end)
			earlier[first][a] = 1;
}

static const char *order_by(int e)
{
	const struct model_op *op = events[e].op;
	int a = op->got < 0 ? -1 : arrival_of(op->got);

	if (op->kind == MODEL_CANCEL) {
		const struct model_op *recv = model_op(
			m, events[e].number - events[e].number % MODEL_OPS +
				   op->target);

		if (op->got == 0)
			order_others(recv, e);
		else if ((a = arrival_of(recv->got)) >= 0 &&
			 events[a].op->begin > op->end)
			return complain("it could have been cancelled",
					events[e].number, events[a].number);
		return NULL;
	}
	if (a >= 0 && op->kind != MODEL_RECV)
		earlier[a][e] = 1;
	if (op->kind == MODEL_PROBE && a >= 0 &&
	    events[takers[a]].op->end < op->begin)
		return complain("a probe has found what was taken",
				events[e].number, events[takers[a]].number);
	if (a >= 0)
		order_others(op, a);
	else if (op->kind != MODEL_RECV)
		order_others(op, e);
	return NULL;
}

/* --- whether there are such dates --- */

/* How it comes that e is too late: back along the chain. */
static const char *complain_of_chain(const char *what, int e, bool cycle)
{
	size_t at = (size_t)snprintf(text, TEXT,
				     "%s, each of these before "
				     "that above it:\n",
				     what);

	for (int n = 0; e >= 0 && n < 12; n++) {
		at += (size_t)snprintf(text + at, TEXT - at, "  %s",
				       e < narrivals ? "arrival of " : "");
		at += model_tell(m, events[e].number, text + at, TEXT - at);
		if (e < narrivals && takers[e] >= 0) {
			at += (size_t)snprintf(text + at, TEXT - at,
					       "    got by ");
			at += model_tell(m, events[takers[e]].number, text + at,
					 TEXT - at);
		}
		e = cycle ? events[e].from : events[e].why;
	}
	return text;
}

static const char *date(void)
{
	static int ready[EVENTS];
	int nready = 0, ndone = 0;

	for (int b = 0; b < nevents; b++) {
		if (events[b].low >= events[b].high)
			return complain_of_chain("too late", b, false);
		for (int a = 0; a < nevents; a++)
			events[b].before += earlier[a][b];
		if (events[b].before == 0)
			ready[nready++] = b;
	}
	while (ndone < nready) {
		int a = ready[ndone++];

		for (int b = 0; b < nevents; b++) {
			if (!earlier[a][b])
				continue;
			if (events[a].low > events[b].low) {
				events[b].low = events[a].low;
				events[b].why = a;
			}
			if (events[b].low >= events[b].high)
				return complain_of_chain("too late", b, false);
			if (--events[b].before == 0)
				ready[nready++] = b;
		}
	}
	for (int b = 0; b < nevents; b++) {
		if (events[b].before == 0)
			continue;
		for (int a = 0; a < nevents; a++)
			if (earlier[a][b] && events[a].before > 0)
				events[b].from = a;
	}
	for (int b = 0; b < nevents; b++)
		if (events[b].before > 0)
			return complain_of_chain("a circle", b, true);
	return NULL;
}

const char *model_judge(const struct model *model, int rank, int session)
{
	const char *wrong;

	m = model;
	nevents = 0;
	add_arrivals(rank, session);
	add_operations(rank, session);
	for (int a = 0; a < nevents; a++)
		memset(earlier[a], 0, (size_t)nevents);
	wrong = match();
	if (wrong == NULL)
		wrong = order_arrivals();
	for (int e = narrivals; e < nevents && wrong == NULL; e++)
		wrong = order_by(e);
	return wrong ? wrong : date();
}
