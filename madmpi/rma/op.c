/*
 * Operations that are messages: sent, and counted until they are over.
 *
 * An operation consists of up to three messages, each of which has a function
 * that nmad calls at its end (<nmad/event.h>). The last of these functions
 * hands it to a list, from which a thread that comes by gives its memory back,
 * and takes it out of the count of its target, which is the last it does: who
 * waits for that count may then free the window.
 *
 * An operation counts in one of two phases. Who waits begins a new one and
 * waits for the end of the old one, so others may go on issuing.
 */
#include "rma/op.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <nmad/nmad.h>

#include "core/pool.h"
#include "env/error.h"
#include "pt2pt/request.h"
#include "rma/combine.h"
#include "rma/type.h"

static struct madmpi_pool pool;

/* Operations that one request stands for. */
struct work {
	/* -: const once begun  a: atomic */
	struct madmpi_operation op;   /* -: */
	struct nm_sr_request *waited; /* -: the request's */
	ATOMIC(int) left;  /* a: operations, and who issues; order(object) */
	ATOMIC(int) error; /* a: the first failure; order(object) of left */
};

struct madmpi_rma_op {
	/* -: const once issued  l: the window's lock  h: who ends its messages,
	 * one after the other */
	struct madmpi_object object;
	struct madmpi_win *win;      /* -: */
	int target;                  /* -: */
	unsigned phase;              /* -: */
	struct work *work;           /* -: or NULL */
	struct madmpi_type *held[2]; /* -: that are walked: references */
	void *extra;                 /* -: description and payload: owned */
	bool has_reply;              /* -: */
	size_t expected;             /* -: bytes of it */
	struct madmpi_rma_op *next;  /* l: */
	int parts;                   /* h: messages that are not over */
	int error;                   /* h: -errno */
	madmpi_rma_word_t why;       /* h: of a refusal */
	struct madmpi_rma_head head; /* -: */
	struct iovec iov[3];         /* -: the first message */
	struct madmpi_layout out, in;
	struct nm_sr_request sends[2], reply; /* nmad's */
};

/* --- the end --- */

static void work_put(struct work *work, int error)
{
	if (error != 0)
		store_relaxed(&work->error, error);
	/* order(object): the others' errors come before the end */
	if (fetch_sub_acq_rel(&work->left, 1) == 1)
		nm_sr_general_end(work->waited, load_relaxed(&work->error));
}

/* All its messages are over. */
static void op_over(struct madmpi_rma_op *op)
{
	struct madmpi_win *w = op->win;
	struct madmpi_target *t = &w->targets[op->target];
	struct work *work = op->work;
	unsigned phase = op->phase;
	piom_cond_t *idle = NULL;
	int error = op->error;

	base_spin_lock(&w->lock);
	if (error != 0 && t->error == 0 && work == NULL)
		t->error = error;
	op->next = w->over;
	w->over = op;
	/* The last of the phase that is waited for. */
	if (--t->active[phase] == 0 && phase != t->phase) {
		idle = t->idle;
		t->idle = NULL;
	}
	base_spin_unlock(&w->lock);
	if (work != NULL)
		work_put(work, error);
	if (idle != NULL)
		piom_cond_signal(idle);
}

static void why_has_come(struct nm_sr_request *part, void *arg)
{
	struct madmpi_rma_op *op = arg;

	(void)part;
	op->error = op->why > 0 && op->why < INT_MAX ? -(int)op->why : -EPROTO;
	if (--op->parts == 0)
		op_over(op);
}

/* The answer was empty. Why has come before it. */
static void ask_why(struct madmpi_rma_op *op)
{
	struct madmpi_comm *c = op->win->comm;
	struct nm_data word = nm_data_flat(&op->why, sizeof(op->why));
	struct nm_message *message;
	struct nm_sr_status st;

	op->why = 0;
	op->error = -EPROTO;
	if (nm_sr_mprobe(c->p2p, c->gate[op->target],
			 MADMPI_RMA_WHY | op->head.id, NM_TAG_EXACT, &message,
			 &st) < 0)
		return;
	op->parts++;
	nm_sr_mrecv(message, &word, &op->reply);
	nm_sr_on_done(&op->reply, why_has_come, op);
}

static void part_over(struct nm_sr_request *part, void *arg)
{
	struct madmpi_rma_op *op = arg;
	struct nm_sr_status st;

	nm_sr_status(part, &st);
	if (st.error != 0)
		op->error = st.error;
	else if (part == &op->reply && st.length != op->expected)
		ask_why(op);
	if (--op->parts == 0)
		op_over(op);
}

static void op_free(struct madmpi_rma_op *op)
{
	for (int i = 0; i < 2; i++)
		if (op->held[i] != NULL)
			madmpi_type_put(op->held[i]);
	free(op->extra);
	madmpi_pool_put(&pool, op);
}

static void free_all(struct madmpi_rma_op *op)
{
	struct madmpi_rma_op *next;

	for (; op != NULL; op = next) {
		next = op->next;
		op_free(op);
	}
}

void madmpi_rma_reap(struct madmpi_win *w)
{
	struct madmpi_rma_op *over;

	base_spin_lock(&w->lock);
	over = w->over;
	w->over = NULL;
	base_spin_unlock(&w->lock);
	free_all(over);
}

/* --- the beginning --- */

static struct madmpi_rma_op *op_new(const struct madmpi_rma_call *c)
{
	struct madmpi_rma_op *op = madmpi_pool_get(&pool);

	if (op == NULL)
		return NULL;
	op->win = c->win;
	op->target = c->target;
	op->work = NULL;
	op->held[0] = op->held[1] = NULL;
	op->extra = NULL;
	op->has_reply = false;
	op->error = 0;
	memset(&op->head, 0, sizeof(op->head));
	op->head.kind = c->kind;
	op->head.disp = (uint64_t)c->disp;
	op->head.count = (uint64_t)c->there.count;
	if (c->elem != NULL) {
		op->head.op = (uint32_t)(uintptr_t)c->op_handle;
		madmpi_rma_tell_element(c->elem, op->head.elem);
	}
	return op;
}

/* The data are walked while they travel: their type stays. */
static void hold(struct madmpi_rma_op *op, int i, const struct nm_data *d,
		 struct madmpi_type *t)
{
	if (!madmpi_data_is_walked(d))
		return;
	op->held[i] = t;
	madmpi_type_get(t);
}

/*
 * The first message: head, description, payload if it is short. What is in one
 * piece is sent from where it lies. False: no memory.
 */
static bool fill_head(struct madmpi_rma_op *op, const struct madmpi_rma_call *c,
		      const struct nm_data *payload)
{
	bool packs =
		payload->length <= MADMPI_RMA_INLINE &&
		(payload->kind != NM_DATA_FLAT || c->kind == MADMPI_RMA_SWAP);
	size_t room = packs ? payload->length : 0, told = 0;
	char *packed;

	room = (room + 15) / 16 * 16;
	if (c->there.type->name != NULL) {
		op->head.type =
			(uint32_t)(uintptr_t)madmpi_type_handle(c->there.type);
		op->extra = room > 0 ? malloc(room) : NULL;
	} else {
		op->extra = madmpi_rma_describe(c->there.type, room, &told);
	}
	if (op->extra == NULL && room + told > 0)
		return false;
	packed = op->extra;
	if (packs)
		nm_data_copy_out(payload, 0, packed, payload->length);
	else if (payload->kind == NM_DATA_FLAT)
		packed = payload->base;
	op->head.described = (uint32_t)told;
	if (payload->length <= MADMPI_RMA_INLINE)
		op->head.inlined = (uint32_t)payload->length;
	op->iov[0] = (struct iovec){ &op->head, sizeof(op->head) };
	op->iov[1] = (struct iovec){ (char *)op->extra + room, told };
	op->iov[2] = (struct iovec){ packed, op->head.inlined };
	return true;
}

/*
 * It is counted, and gets its number. What was over before is given back by the
 * way, after the lock.
 */
static struct madmpi_rma_op *count(struct madmpi_rma_op *op)
{
	struct madmpi_win *w = op->win;
	struct madmpi_target *t = &w->targets[op->target];
	struct madmpi_rma_op *over;

	base_spin_lock(&w->lock);
	op->head.id = w->next_id++ % MADMPI_RMA_IDS;
	op->phase = t->phase;
	t->active[op->phase]++;
	over = w->over;
	w->over = NULL;
	base_spin_unlock(&w->lock);
	return over;
}

/*
 * It was sent, and no answer will tell of its end. Whoever takes note of this
 * asks the target, and must not ask before the operation was sent: another one
 * would be covered by that question, but its own flush would then ask none.
 */
static void mark(struct madmpi_win *w, int target)
{
	base_spin_lock(&w->lock);
	w->targets[target].dirty = true;
	base_spin_unlock(&w->lock);
}

/* 0 by what was checked before: nmad has nothing to refuse. */
static void must(int rc)
{
	base_check(rc == 0);
}

/* The operation may be over, and gone, when this returns. */
static void issue(struct madmpi_rma_op *op, const struct nm_data *payload,
		  const struct nm_data *answer)
{
	struct nm_session *s = op->win->comm->p2p;
	struct nm_gate *gate = op->win->comm->gate[op->target];
	bool has_body = payload->length > MADMPI_RMA_INLINE;
	bool has_reply = answer != NULL;
	struct madmpi_rma_op *over = count(op);
	struct nm_data head = nm_data_iovec(op->iov, 3);
	uint32_t id = op->head.id;

	op->parts = 1 + has_body + has_reply;
	op->expected = has_reply ? answer->length : 0;
	if (has_reply)
		must(nm_sr_irecv(s, gate, MADMPI_RMA_REPLY | id, NM_TAG_EXACT,
				 answer, &op->reply));
	must(nm_sr_isend(s, gate, MADMPI_RMA_HEAD, &head, 0, &op->sends[0]));
	if (has_body)
		must(nm_sr_isend(s, gate, MADMPI_RMA_BODY | id, payload, 0,
				 &op->sends[1]));
	if (!has_reply)
		mark(op->win, op->target);
	/* --- with the last of these it may be over --- */
	if (has_reply)
		must(nm_sr_on_done(&op->reply, part_over, op));
	if (has_body)
		must(nm_sr_on_done(&op->sends[1], part_over, op));
	must(nm_sr_on_done(&op->sends[0], part_over, op));
	free_all(over);
}

static struct nm_data slice(struct madmpi_layout *layout,
			    const struct madmpi_side *side, MPI_Count from,
			    MPI_Count bytes)
{
	return madmpi_layout_slice(layout, side->buf, side->count, side->type,
				   from, bytes);
}

/* The payload of a swap is two elements in a row. False: no memory. */
static bool fill_swap(struct madmpi_rma_op *op, const struct madmpi_rma_call *c)
{
	struct madmpi_side compare = { c->compare, 1, c->elem };
	size_t bytes = (size_t)c->bytes;
	char both[2 * MADMPI_RMA_ELEMENT];
	struct nm_data d, payload = nm_data_flat(both, 2 * bytes);

	d = slice(&op->out, &compare, 0, c->bytes);
	nm_data_copy_out(&d, 0, both, bytes);
	d = slice(&op->out, &c->origin, 0, c->bytes);
	nm_data_copy_out(&d, 0, both + bytes, bytes);
	return fill_head(op, c, &payload);
}

/* The bytes [from, from + bytes) of a call. 0 or -ENOMEM. */
static int start_part(const struct madmpi_rma_call *c, MPI_Count from,
		      MPI_Count bytes, struct work *work)
{
	struct madmpi_rma_op *op = op_new(c);
	struct nm_data payload = nm_data_flat(NULL, 0), answer = payload;
	bool filled;

	if (op == NULL)
		return -ENOMEM;
	op->head.from = (uint64_t)from;
	op->head.bytes = (uint64_t)bytes;
	if (c->kind == MADMPI_RMA_SWAP) {
		filled = fill_swap(op, c);
	} else {
		if (c->origin.type != NULL) {
			payload = slice(&op->out, &c->origin, from, bytes);
			hold(op, 0, &payload, c->origin.type);
		}
		filled = fill_head(op, c, &payload);
	}
	if (!filled) {
		op_free(op);
		return -ENOMEM;
	}
	if (c->result.type != NULL) {
		answer = slice(&op->in, &c->result, from, bytes);
		hold(op, 1, &answer, c->result.type);
	}
	op->work = work;
	if (work != NULL)
		fetch_add_relaxed(&work->left, 1);
	issue(op, &payload, c->result.type != NULL ? &answer : NULL);
	return 0;
}

/* What combines goes in parts, so that the target needs memory for one. */
static int start_parts(const struct madmpi_rma_call *c, struct work *work)
{
	MPI_Count most = c->bytes, part;
	int rc = 0;

	if (c->elem != NULL && most > MADMPI_RMA_SEGMENT)
		most = MADMPI_RMA_SEGMENT / c->elem->size * c->elem->size;
	for (MPI_Count at = 0; at < c->bytes && rc == 0; at += part) {
		part = c->bytes - at < most ? c->bytes - at : most;
		rc = start_part(c, at, part, work);
	}
	return rc;
}

/* --- requests --- */

static struct madmpi_outcome outcome(const struct madmpi_operation *op,
				     const struct madmpi_request *r)
{
	struct madmpi_outcome o = madmpi_outcome_empty();

	(void)r;
	o.error = load_relaxed(&container_of(op, struct work, op)->error);
	return o;
}

static void release(struct madmpi_operation *op)
{
	free(container_of(op, struct work, op));
}

static int no_memory(const struct madmpi_rma_call *c)
{
	return madmpi_error(c->win->comm, MPI_ERR_NO_MEM, c->fn,
			    "no memory for an operation");
}

/* A request for operations, the caller being counted as one. */
static int work_new(const struct madmpi_rma_call *c, struct work **out,
		    MPI_Request *request)
{
	struct work *work = calloc(1, sizeof(*work));
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	if (work == NULL)
		return no_memory(c);
	work->op.outcome = outcome;
	work->op.release = release;
	store_relaxed(&work->left, 1);
	r = madmpi_request_adopt(c->fn, c->win->comm, &work->op, &rc);
	if (r == NULL) {
		free(work);
		return rc;
	}
	work->waited = &r->nm;
	*out = work;
	*request = (MPI_Request)r;
	return MPI_SUCCESS;
}

/* One that is complete. */
static int request_nothing(const struct madmpi_rma_call *c,
			   MPI_Request *request)
{
	struct madmpi_message m = { .comm = c->win->comm,
				    .peer = MPI_PROC_NULL };
	int rc = MPI_SUCCESS;
	struct madmpi_request *r =
		madmpi_request_new(c->fn, MADMPI_REQUEST_NOTHING, &m, &rc);

	if (r != NULL)
		*request = (MPI_Request)r;
	return rc;
}

int madmpi_rma_start(const struct madmpi_rma_call *c, MPI_Request *request)
{
	struct work *work = NULL;
	int rc = MPI_SUCCESS, error;

	if (c->target == MPI_PROC_NULL || c->bytes == 0)
		return request ? request_nothing(c, request) : MPI_SUCCESS;
	if (madmpi_win_is_near(c->win, c->target)) {
		rc = madmpi_rma_direct(c);
		if (rc == MPI_SUCCESS && request != NULL)
			rc = request_nothing(c, request);
		return rc;
	}
	if (madmpi_rma_reach(c))
		return request ? request_nothing(c, request) : MPI_SUCCESS;
	if (request != NULL)
		rc = work_new(c, &work, request);
	if (rc != MPI_SUCCESS)
		return rc;
	error = start_parts(c, work);
	if (work != NULL)
		work_put(work, error);
	else if (error < 0)
		return no_memory(c);
	return MPI_SUCCESS;
}

/* --- questions --- */

void madmpi_ask_begin(struct madmpi_win *w, struct madmpi_ask *a, int target,
		      enum madmpi_rma_kind kind, uint64_t count)
{
	struct nm_data head = nm_data_flat(&a->head, sizeof(a->head));
	struct nm_data word = nm_data_flat(&a->word, sizeof(a->word));
	struct nm_gate *gate = w->comm->gate[target];
	uint32_t id;

	base_spin_lock(&w->lock);
	id = w->next_id++ % MADMPI_RMA_IDS;
	base_spin_unlock(&w->lock);
	memset(&a->head, 0, sizeof(a->head));
	a->head.kind = kind;
	a->head.id = id;
	a->head.count = count;
	must(nm_sr_irecv(w->comm->p2p, gate, MADMPI_RMA_REPLY | id,
			 NM_TAG_EXACT, &word, &a->recv));
	must(nm_sr_isend(w->comm->p2p, gate, MADMPI_RMA_HEAD, &head,
			 NM_SEND_NOW, &a->send));
}

int madmpi_ask_end(struct madmpi_ask *a, madmpi_rma_word_t *word)
{
	struct nm_sr_status st;

	nm_sr_wait(&a->recv);
	nm_sr_wait(&a->send);
	nm_sr_status(&a->recv, &st);
	if (st.error != 0)
		return st.error;
	if (st.length != sizeof(a->word))
		return -ENOMEM;
	*word = a->word;
	return 0;
}

void madmpi_rma_init(void)
{
	madmpi_pool_init(&pool, MADMPI_RMA, sizeof(struct madmpi_rma_op));
}

void madmpi_rma_exit(void)
{
	madmpi_pool_exit(&pool);
}
