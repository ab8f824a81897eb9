/*
 * Put, get, and what combines: from the arguments of a call to what it asks for
 * (op.h).
 */
#include "bodies.h"
#include "env/error.h"
#include "pt2pt/message.h"
#include "rma/combine.h"
#include "rma/op.h"
#include "rma/type.h"

/* Whether the target may be accessed now; an operation that has a request only
 * while there is a lock. */
static int check_epoch(const struct madmpi_rma_call *c, bool has_request)
{
	struct madmpi_win *w = c->win;
	bool fits = true;

	if (c->target == MPI_PROC_NULL)
		return MPI_SUCCESS;
	base_spin_lock(&w->lock);
	switch (w->epoch) {
	case MADMPI_EPOCH_NONE:
		fits = false;
		break;
	case MADMPI_EPOCH_FENCE:
	case MADMPI_EPOCH_FENCED:
		w->epoch = MADMPI_EPOCH_FENCED;
		fits = !has_request;
		break;
	case MADMPI_EPOCH_STARTED:
		fits = !has_request && w->targets[c->target].started;
		break;
	case MADMPI_EPOCH_LOCKED:
		fits = w->targets[c->target].held > 0;
		break;
	case MADMPI_EPOCH_ALL:
		break;
	case MADMPI_EPOCH_BETWEEN:
		fits = false;
		break;
	}
	base_spin_unlock(&w->lock);
	if (likely(fits))
		return MPI_SUCCESS;
	return madmpi_error(w->comm, MPI_ERR_RMA_SYNC, c->fn,
			    "there is no epoch in which rank %d may be "
			    "accessed%s",
			    c->target, has_request ? " with a request" : "");
}

/* Where the target has the data, in bytes; and that it is in the window. */
static int check_place(struct madmpi_rma_call *c, MPI_Aint disp)
{
	const struct madmpi_win *w = c->win;
	MPI_Count low, high;

	c->disp = disp;
	if (c->target == MPI_PROC_NULL || w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return MPI_SUCCESS;
	if (disp < 0)
		return madmpi_error(w->comm, MPI_ERR_DISP, c->fn,
				    "target_disp is negative (%lld)",
				    (long long)disp);
	madmpi_win_hull(c->there.type, c->there.count, &low, &high);
	if (likely(!__builtin_mul_overflow(disp, w->member[c->target].unit,
					   &c->disp) &&
		   !__builtin_add_overflow(c->disp, low, &low) &&
		   !__builtin_add_overflow(c->disp, high, &high) && low >= 0 &&
		   high <= w->member[c->target].size))
		return MPI_SUCCESS;
	return madmpi_error(w->comm, MPI_ERR_RMA_RANGE, c->fn,
			    "bytes %lld to %lld are not in the window of rank "
			    "%d, which has %lld bytes",
			    (long long)low, (long long)high, c->target,
			    (long long)w->member[c->target].size);
}

/* A side that the process has. */
static int check_side(const struct madmpi_rma_call *c, const char *name,
		      const void *buf, MPI_Count count, MPI_Datatype datatype,
		      struct madmpi_side *out)
{
	struct madmpi_comm *comm = c->win->comm;
	int rc = madmpi_check_count(c->fn, comm, "count", count);

	if (unlikely(count == 0))
		datatype = madmpi_type_or_byte(datatype);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_type(c->fn, comm, "datatype", datatype,
				       &out->type);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_buffer(c->fn, comm, name, buf, count,
					 out->type);
	out->buf = buf;
	out->count = count;
	return rc;
}

/* The target's side, and that the epoch allows the call. */
static int check_there(struct madmpi_rma_call *c, MPI_Count count,
		       MPI_Datatype datatype, MPI_Aint disp, bool has_request)
{
	struct madmpi_comm *comm = c->win->comm;
	MPI_Count bytes;
	int rc = madmpi_check_target(c->fn, c->win, c->target);

	if (unlikely(count == 0))
		datatype = madmpi_type_or_byte(datatype);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_count(c->fn, comm, "target_count", count);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_type(c->fn, comm, "target_datatype", datatype,
				       &c->there.type);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	c->there.count = count;
	if (madmpi_type_bytes(c->there.type, count, &bytes) < 0)
		return madmpi_error(comm, MPI_ERR_COUNT, c->fn,
				    "target_count %lld is too large",
				    (long long)count);
	rc = check_epoch(c, has_request);
	return rc ? rc : check_place(c, disp);
}

static MPI_Count bytes_of(const struct madmpi_side *s)
{
	return s->count * s->type->size;
}

/* What has `bytes` must find room. */
static int check_room(const struct madmpi_rma_call *c, MPI_Count bytes,
		      const struct madmpi_side *to, const char *name)
{
	if (likely(bytes <= bytes_of(to)))
		return MPI_SUCCESS;
	return madmpi_error(c->win->comm, MPI_ERR_TRUNCATE, c->fn,
			    "there are %lld bytes, but only %lld at the %s",
			    (long long)bytes, (long long)bytes_of(to), name);
}

/* --- put and get --- */

/* `buf` is only read by a put. */
static int move(const char *fn, enum madmpi_rma_kind kind, const void *buf,
		MPI_Count count, MPI_Datatype datatype, int target,
		MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype,
		MPI_Win win, MPI_Request *request, bool has_request)
{
	struct madmpi_rma_call c = { .fn = fn, .kind = kind, .target = target };
	bool is_put = kind == MADMPI_RMA_PUT;
	struct madmpi_side *here = is_put ? &c.origin : &c.result;
	int rc = madmpi_check_win(fn, win, &c.win);

	if (likely(rc == MPI_SUCCESS))
		rc = check_side(&c, "origin_addr", buf, count, datatype, here);
	if (likely(rc == MPI_SUCCESS))
		rc = check_there(&c, tcount, ttype, disp, has_request);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (has_request && request == NULL)
		return madmpi_null_arg(c.win->comm, fn, "request");
	c.bytes = bytes_of(is_put ? here : &c.there);
	rc = is_put ? check_room(&c, c.bytes, &c.there, "target")
		    : check_room(&c, c.bytes, here, "origin");
	return rc ? rc : madmpi_rma_start(&c, request);
}

/* MPI_Put, MPI_Put_c */
int madmpi_put(const void *origin_addr, MPI_Count origin_count,
	       MPI_Datatype origin_datatype, int target_rank,
	       MPI_Aint target_disp, MPI_Count target_count,
	       MPI_Datatype target_datatype, MPI_Win win)
{
	return move("MPI_Put", MADMPI_RMA_PUT, origin_addr, origin_count,
		    origin_datatype, target_rank, target_disp, target_count,
		    target_datatype, win, NULL, false);
}

/* MPI_Rput, MPI_Rput_c */
int madmpi_rput(const void *origin_addr, MPI_Count origin_count,
		MPI_Datatype origin_datatype, int target_rank,
		MPI_Aint target_disp, MPI_Count target_count,
		MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
	return move("MPI_Rput", MADMPI_RMA_PUT, origin_addr, origin_count,
		    origin_datatype, target_rank, target_disp, target_count,
		    target_datatype, win, request, true);
}

/* MPI_Get, MPI_Get_c */
int madmpi_get(void *origin_addr, MPI_Count origin_count,
	       MPI_Datatype origin_datatype, int target_rank,
	       MPI_Aint target_disp, MPI_Count target_count,
	       MPI_Datatype target_datatype, MPI_Win win)
{
	return move("MPI_Get", MADMPI_RMA_GET, origin_addr, origin_count,
		    origin_datatype, target_rank, target_disp, target_count,
		    target_datatype, win, NULL, false);
}

/* MPI_Rget, MPI_Rget_c */
int madmpi_rget(void *origin_addr, MPI_Count origin_count,
		MPI_Datatype origin_datatype, int target_rank,
		MPI_Aint target_disp, MPI_Count target_count,
		MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
	return move("MPI_Rget", MADMPI_RMA_GET, origin_addr, origin_count,
		    origin_datatype, target_rank, target_disp, target_count,
		    target_datatype, win, request, true);
}

/* --- what combines --- */

/* The operation takes the target's elements; no elements fit to any. */
static int check_op(struct madmpi_rma_call *c, MPI_Op op)
{
	struct madmpi_comm *comm = c->win->comm;

	c->op = madmpi_op_of(op);
	c->op_handle = op;
	if (c->op == NULL)
		return madmpi_error(comm, MPI_ERR_OP, c->fn,
				    "op %p is not an operation", (void *)op);
	c->elem = madmpi_rma_element(c->there.type);
	if (c->elem == NULL && c->bytes > 0)
		return madmpi_error(comm, MPI_ERR_TYPE, c->fn,
				    "target_datatype consists of more than one "
				    "predefined type");
	if (c->op->name == NULL)
		return madmpi_error(comm, MPI_ERR_OP, c->fn,
				    "op %p is not predefined", (void *)op);
	if (c->op == madmpi_rma_no_op() && c->kind == MADMPI_RMA_ACCUMULATE)
		return madmpi_error(comm, MPI_ERR_OP, c->fn,
				    "MPI_NO_OP is for what is fetched");
	if (c->elem != NULL && c->bytes > 0 &&
	    !madmpi_rma_op_takes(c->op, c->elem))
		return madmpi_error(
			comm, MPI_ERR_OP, c->fn,
			"the operation %s is not defined on %s", c->op->name,
			c->elem->name ? c->elem->name : "the datatype");
	return MPI_SUCCESS;
}

/* What is combined with what must be of the same type. */
static int check_element(const struct madmpi_rma_call *c,
			 const struct madmpi_side *side, const char *name)
{
	if (madmpi_rma_element(side->type) == c->elem)
		return MPI_SUCCESS;
	return madmpi_error(c->win->comm, MPI_ERR_TYPE, c->fn,
			    "%s and target_datatype do not consist of the same "
			    "predefined type",
			    name);
}

/* What the two accumulates have in common. */
static int start(struct madmpi_rma_call *c, MPI_Op op, MPI_Request *request,
		 bool has_request)
{
	int rc;

	c->bytes = bytes_of(c->origin.type ? &c->origin : &c->there);
	rc = check_op(c, op);
	/* Nothing is of any type. */
	if (rc == MPI_SUCCESS && c->origin.type != NULL && c->bytes > 0)
		rc = check_element(c, &c->origin, "origin_datatype");
	if (rc == MPI_SUCCESS && c->result.type != NULL && c->bytes > 0)
		rc = check_element(c, &c->result, "result_datatype");
	if (rc != MPI_SUCCESS)
		return rc;
	if (has_request && request == NULL)
		return madmpi_null_arg(c->win->comm, c->fn, "request");
	rc = check_room(c, c->bytes, &c->there, "target");
	if (rc == MPI_SUCCESS && c->result.type != NULL)
		rc = check_room(c, c->bytes, &c->result, "result");
	return rc ? rc : madmpi_rma_start(c, request);
}

static int accumulate(const char *fn, const void *buf, MPI_Count count,
		      MPI_Datatype datatype, int target, MPI_Aint disp,
		      MPI_Count tcount, MPI_Datatype ttype, MPI_Op op,
		      MPI_Win win, MPI_Request *request, bool has_request)
{
	struct madmpi_rma_call c = { .fn = fn,
				     .kind = MADMPI_RMA_ACCUMULATE,
				     .target = target };
	int rc = madmpi_check_win(fn, win, &c.win);

	if (likely(rc == MPI_SUCCESS))
		rc = check_side(&c, "origin_addr", buf, count, datatype,
				&c.origin);
	if (likely(rc == MPI_SUCCESS))
		rc = check_there(&c, tcount, ttype, disp, has_request);
	return rc ? rc : start(&c, op, request, has_request);
}

/* MPI_Accumulate, MPI_Accumulate_c */
int madmpi_accumulate(const void *origin_addr, MPI_Count origin_count,
		      MPI_Datatype origin_datatype, int target_rank,
		      MPI_Aint target_disp, MPI_Count target_count,
		      MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
	return accumulate("MPI_Accumulate", origin_addr, origin_count,
			  origin_datatype, target_rank, target_disp,
			  target_count, target_datatype, op, win, NULL, false);
}

/* MPI_Raccumulate, MPI_Raccumulate_c */
int madmpi_raccumulate(const void *origin_addr, MPI_Count origin_count,
		       MPI_Datatype origin_datatype, int target_rank,
		       MPI_Aint target_disp, MPI_Count target_count,
		       MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
		       MPI_Request *request)
{
	return accumulate("MPI_Raccumulate", origin_addr, origin_count,
			  origin_datatype, target_rank, target_disp,
			  target_count, target_datatype, op, win, request,
			  true);
}

/* What comes back; MPI_NO_OP has nothing that goes there. */
struct fetch {
	const void *origin;
	MPI_Count origin_count;
	MPI_Datatype origin_type;
	void *result;
	MPI_Count result_count;
	MPI_Datatype result_type;
};

static int get_accumulate(const char *fn, const struct fetch *f, int target,
			  MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype,
			  MPI_Op op, MPI_Win win, MPI_Request *request,
			  bool has_request)
{
	struct madmpi_rma_call c = { .fn = fn,
				     .kind = MADMPI_RMA_GET_ACCUMULATE,
				     .target = target };
	int rc = madmpi_check_win(fn, win, &c.win);

	if (likely(rc == MPI_SUCCESS) && op != MPI_NO_OP)
		rc = check_side(&c, "origin_addr", f->origin, f->origin_count,
				f->origin_type, &c.origin);
	if (likely(rc == MPI_SUCCESS))
		rc = check_side(&c, "result_addr", f->result, f->result_count,
				f->result_type, &c.result);
	if (likely(rc == MPI_SUCCESS))
		rc = check_there(&c, tcount, ttype, disp, has_request);
	return rc ? rc : start(&c, op, request, has_request);
}

/* MPI_Get_accumulate, MPI_Get_accumulate_c */
int madmpi_get_accumulate(const void *origin_addr, MPI_Count origin_count,
			  MPI_Datatype origin_datatype, void *result_addr,
			  MPI_Count result_count, MPI_Datatype result_datatype,
			  int target_rank, MPI_Aint target_disp,
			  MPI_Count target_count, MPI_Datatype target_datatype,
			  MPI_Op op, MPI_Win win)
{
	struct fetch f = { origin_addr, origin_count, origin_datatype,
			   result_addr, result_count, result_datatype };

	return get_accumulate("MPI_Get_accumulate", &f, target_rank,
			      target_disp, target_count, target_datatype, op,
			      win, NULL, false);
}

/* MPI_Rget_accumulate, MPI_Rget_accumulate_c */
int madmpi_rget_accumulate(const void *origin_addr, MPI_Count origin_count,
			   MPI_Datatype origin_datatype, void *result_addr,
			   MPI_Count result_count, MPI_Datatype result_datatype,
			   int target_rank, MPI_Aint target_disp,
			   MPI_Count target_count, MPI_Datatype target_datatype,
			   MPI_Op op, MPI_Win win, MPI_Request *request)
{
	struct fetch f = { origin_addr, origin_count, origin_datatype,
			   result_addr, result_count, result_datatype };

	return get_accumulate("MPI_Rget_accumulate", &f, target_rank,
			      target_disp, target_count, target_datatype, op,
			      win, request, true);
}

static int check_predefined(const char *fn, struct madmpi_win *w,
			    MPI_Datatype datatype)
{
	struct madmpi_type *t;
	int rc = madmpi_check_type(fn, w->comm, "datatype", datatype, &t);

	if (rc != MPI_SUCCESS || t->basic != MADMPI_NOT_BASIC)
		return rc;
	return madmpi_error(w->comm, MPI_ERR_TYPE, fn,
			    "datatype %p is not predefined", (void *)datatype);
}

/* MPI_Fetch_and_op */
int madmpi_fetch_and_op(const void *origin_addr, void *result_addr,
			MPI_Datatype datatype, int target_rank,
			MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
	const char *fn = "MPI_Fetch_and_op";
	struct fetch f = { origin_addr, 1, datatype, result_addr, 1, datatype };
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (likely(rc == MPI_SUCCESS))
		rc = check_predefined(fn, w, datatype);
	return rc ? rc
		  : get_accumulate(fn, &f, target_rank, target_disp, 1,
				   datatype, op, win, NULL, false);
}

/* Integers, logicals and bytes can be compared as they are. */
static bool can_be_swapped(const struct madmpi_type *t)
{
	return (t->basic >= MADMPI_BYTES && t->basic <= MADMPI_U64) ||
	       (t->basic >= MADMPI_BOOL && t->basic <= MADMPI_L128);
}

/* MPI_Compare_and_swap */
int madmpi_compare_and_swap(const void *origin_addr, const void *compare_addr,
			    void *result_addr, MPI_Datatype datatype,
			    int target_rank, MPI_Aint target_disp, MPI_Win win)
{
	const char *fn = "MPI_Compare_and_swap";
	struct madmpi_rma_call c = { .fn = fn,
				     .kind = MADMPI_RMA_SWAP,
				     .target = target_rank,
				     .compare = compare_addr };
	int rc = madmpi_check_win(fn, win, &c.win);

	if (likely(rc == MPI_SUCCESS))
		rc = check_side(&c, "compare_addr", compare_addr, 1, datatype,
				&c.origin);
	if (likely(rc == MPI_SUCCESS))
		rc = check_side(&c, "origin_addr", origin_addr, 1, datatype,
				&c.origin);
	if (likely(rc == MPI_SUCCESS))
		rc = check_side(&c, "result_addr", result_addr, 1, datatype,
				&c.result);
	if (likely(rc == MPI_SUCCESS))
		rc = check_there(&c, 1, datatype, target_disp, false);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (!can_be_swapped(c.there.type))
		return madmpi_error(c.win->comm, MPI_ERR_TYPE, fn,
				    "elements of datatype %p cannot be "
				    "compared as they are",
				    (void *)datatype);
	c.elem = c.there.type;
	c.op = madmpi_rma_replace();
	c.op_handle = MPI_REPLACE;
	c.bytes = c.elem->size;
	return madmpi_rma_start(&c, NULL);
}
