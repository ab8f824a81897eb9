/*
 * Generalised requests: the program says when they are complete, and its
 * functions tell how they ended. These are called by threads of the program
 * only, inside the function of MPI that the standard names, and without a lock:
 *
 *   query    whenever a status is asked for of a complete one
 *   free     once, when the last of both has happened: it is complete, and the
 *            program has waited for it or given it up
 *   cancel   by MPI_Cancel
 *
 * What free returns counts for more than what query does.
 */
#include <stdlib.h>

#include <base/spin.h>

#include "bodies.h"
#include "comm/comm.h"
#include "env/error.h"
#include "pt2pt/request.h"

struct general {
	/* -: const once started  l: lock */
	struct madmpi_operation op;
	MPI_Grequest_query_function *query;      /* -: */
	MPI_Grequest_free_function *free;        /* -: */
	MPI_Grequest_cancel_function *cancel_fn; /* -: */
	void *extra;                             /* -: the program's */
	struct base_spin lock;
	bool is_complete; /* l: the program has said so */
	bool is_given_up; /* l: and it was not complete then */
};

static struct general *general_of(const struct madmpi_operation *op)
{
	return container_of((struct madmpi_operation *)op, struct general, op);
}

/* What a function of the program's returned: no code is below zero. */
static int code_of(int returned)
{
	return returned >= 0 ? returned : MPI_ERR_OTHER;
}

static struct madmpi_outcome outcome(const struct madmpi_operation *op,
				     const struct madmpi_request *r)
{
	const struct general *g = general_of(op);
	MPI_Status st;
	int code;

	(void)r;
	madmpi_status_fill_empty(&st);
	code = code_of(g->query(g->extra, &st));
	return (struct madmpi_outcome){ .error = code,
					.source = st.MPI_SOURCE,
					.tag = st.MPI_TAG,
					.is_cancelled = st.MPI_internal[2] != 0,
					.bytes = madmpi_status_bytes(&st) };
}

static int end(struct madmpi_operation *op)
{
	struct general *g = general_of(op);

	return code_of(g->free(g->extra));
}

static void release(struct madmpi_operation *op)
{
	free(general_of(op));
}

static int cancel(struct madmpi_operation *op, struct madmpi_request *r)
{
	struct general *g = general_of(op);
	struct madmpi_outcome o = { 0 };
	bool is_complete;

	(void)r;
	base_spin_lock(&g->lock);
	is_complete = g->is_complete;
	base_spin_unlock(&g->lock);
	o.error = code_of(g->cancel_fn(g->extra, is_complete));
	return madmpi_outcome_raise(NULL, "MPI_Cancel", &o);
}

/* The end of one that nobody waits for. */
static int over(const char *fn, struct madmpi_request *r)
{
	struct madmpi_outcome o = { .error = end(r->own) };

	madmpi_request_put(r);
	return madmpi_outcome_raise(NULL, fn, &o);
}

static int give_up(struct madmpi_operation *op, MPI_Request *request)
{
	struct madmpi_request *r = (struct madmpi_request *)*request;
	struct general *g = general_of(op);
	bool is_complete;

	*request = MPI_REQUEST_NULL;
	base_spin_lock(&g->lock);
	is_complete = g->is_complete;
	if (!is_complete) {
		g->is_given_up = true;
		store_relaxed(&r->object.kind, MADMPI_REQUEST_GIVEN_UP);
	}
	base_spin_unlock(&g->lock);
	if (!is_complete)
		return MPI_SUCCESS;
	/* Whoever completes it may be about to use it for the last time. */
	nm_sr_wait(&r->nm);
	return over("MPI_Request_free", r);
}

/* MPI_Grequest_start */
int madmpi_grequest_start(MPI_Grequest_query_function *query_fn,
			  MPI_Grequest_free_function *free_fn,
			  MPI_Grequest_cancel_function *cancel_fn,
			  void *extra_state, MPI_Request *request)
{
	const char *fn = "MPI_Grequest_start";
	struct madmpi_comm *c = madmpi_error_comm();
	struct madmpi_request *r;
	struct general *g;
	int rc = MPI_SUCCESS;

	if (query_fn == NULL || free_fn == NULL || cancel_fn == NULL)
		return madmpi_null_arg(NULL, fn,
				       query_fn == NULL  ? "query_fn"
				       : free_fn == NULL ? "free_fn"
							 : "cancel_fn");
	if (request == NULL)
		return madmpi_null_arg(NULL, fn, "request");
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory for a request");
	g->op.outcome = outcome;
	g->op.cancel = cancel;
	g->op.end = end;
	g->op.give_up = give_up;
	g->op.release = release;
	g->op.may_stay = true;
	g->query = query_fn;
	g->free = free_fn;
	g->cancel_fn = cancel_fn;
	g->extra = extra_state;
	base_spin_init(&g->lock, BASE_RANK_LEAF);
	r = madmpi_request_adopt(fn, c ? c : madmpi_self, &g->op, &rc);
	if (r == NULL)
		free(g);
	else
		*request = (MPI_Request)r;
	return rc;
}

/* One that is not over, given up or not; NULL: none. */
static struct madmpi_request *request_of(MPI_Request handle)
{
	struct madmpi_request *r;

	if (madmpi_handle_is_constant(handle))
		return NULL;
	r = madmpi_handle_object(handle, MADMPI_REQUEST);
	if (r == NULL)
		r = madmpi_handle_object(handle, MADMPI_REQUEST_GIVEN_UP);
	if (r == NULL || r->own == NULL || r->own->outcome != outcome)
		return NULL;
	return r;
}

/* MPI_Grequest_complete */
int madmpi_grequest_complete(MPI_Request request)
{
	const char *fn = "MPI_Grequest_complete";
	struct madmpi_request *r = request_of(request);
	bool again, is_given_up;
	struct general *g;

	if (r == NULL)
		return madmpi_error(NULL, MPI_ERR_REQUEST, fn,
				    "request %p is not an active generalised "
				    "request",
				    (void *)request);
	g = general_of(r->own);
	base_spin_lock(&g->lock);
	again = g->is_complete;
	is_given_up = g->is_given_up;
	g->is_complete = true;
	base_spin_unlock(&g->lock);
	if (again)
		return madmpi_error(NULL, MPI_ERR_REQUEST, fn,
				    "request %p is complete already",
				    (void *)request);
	if (is_given_up)
		return over(fn, r);
	/* Whoever waits may end it now. */
	nm_sr_general_end(&r->nm, 0);
	return MPI_SUCCESS;
}
