/*
 * One request: its life, waiting for it, testing it, giving it up.
 */
#include "pt2pt/request.h"

#include <stdlib.h>

#include <base/diag.h>
#include <nmad/nmad.h>

#include "bodies.h"
#include "core/pool.h"
#include "env/error.h"

static struct madmpi_pool pool;

/* A queue: who passes by looks at a few and puts those that wait behind. */
static struct {
	struct base_spin lock;
	struct madmpi_request *first; /* l: */
	struct madmpi_request **end;  /* l: where the next one goes */
} orphans = { .lock = BASE_SPIN_INIT(BASE_RANK_LEAF), .end = &orphans.first };

/* Faster than they come, and a short time under the lock. */
enum { ORPHANS_A_TIME = 8 };

struct madmpi_request *madmpi_request_new(const char *function,
					  enum madmpi_request_what what,
					  const struct madmpi_message *m,
					  int *rc)
{
	struct madmpi_request *r = madmpi_pool_get(&pool);

	if (unlikely(r == NULL)) {
		*rc = madmpi_error(m->comm, MPI_ERR_NO_MEM, function,
				   "no memory for a request");
		return NULL;
	}
	r->what = what;
	r->peer = m->peer;
	r->tag = m->tag;
	r->comm = m->comm;
	r->type = NULL;
	r->repeat = NULL;
	r->own = NULL;
	madmpi_comm_get(r->comm);
	return r;
}

struct madmpi_request *madmpi_request_adopt(const char *function,
					    struct madmpi_comm *c,
					    struct madmpi_operation *op,
					    int *rc)
{
	struct madmpi_message of = { .comm = c, .peer = MPI_PROC_NULL };
	struct madmpi_request *r;

	r = madmpi_request_new(function, MADMPI_REQUEST_OPERATION, &of, rc);
	if (r == NULL)
		return NULL;
	r->own = op;
	op->function = function;
	if (op->start != NULL)
		r->what = MADMPI_REQUEST_IDLE;
	else
		nm_sr_general_begin(&r->nm);
	return r;
}

int madmpi_request_start(struct madmpi_request *r,
			 const struct madmpi_message *m, unsigned flags)
{
	struct nm_data data = madmpi_message_data(m, &r->walked);
	int rc;

	if (r->what == MADMPI_REQUEST_SEND)
		rc = nm_sr_isend(m->comm->p2p, m->comm->gate[m->peer],
				 madmpi_tag(m->tag), &data, flags, &r->nm);
	else
		rc = nm_sr_irecv(m->comm->p2p, madmpi_gate(m->comm, m->peer),
				 madmpi_tag(m->tag), madmpi_tag_mask(m->tag),
				 &data, &r->nm);
	if (likely(rc == 0))
		madmpi_request_hold(r, m, &data);
	return rc;
}

/* What it holds. */
static void let_go(struct madmpi_request *r)
{
	madmpi_comm_put(r->comm);
	if (r->type != NULL)
		madmpi_type_put(r->type);
	if (unlikely(r->own != NULL))
		r->own->release(r->own);
	if (unlikely(r->repeat != NULL)) {
		if (r->repeat->m.type != NULL)
			madmpi_type_put(r->repeat->m.type);
		free(r->repeat);
	}
}

void madmpi_request_put(struct madmpi_request *r)
{
	let_go(r);
	madmpi_pool_put(&pool, r);
}

void madmpi_request_put_later(struct madmpi_request *r,
			      struct madmpi_pool_chain *chain)
{
	let_go(r);
	madmpi_pool_put_later(&pool, r, chain);
}

void madmpi_request_put_chain(struct madmpi_pool_chain *chain)
{
	madmpi_pool_put_chain(&pool, chain);
}

static void orphans_push_locked(struct madmpi_request *r)
{
	r->next = NULL;
	*orphans.end = r;
	orphans.end = &r->next;
}

static struct madmpi_request *orphans_take_locked(void)
{
	struct madmpi_request *r = orphans.first;

	if (r != NULL)
		orphans.first = r->next;
	if (orphans.first == NULL)
		orphans.end = &orphans.first;
	return r;
}

/* Take back orphans that are complete, among the next few. */
static void orphans_reap(void)
{
	struct madmpi_request *r, *done = NULL;

	base_spin_lock(&orphans.lock);
	for (int i = 0; i < ORPHANS_A_TIME; i++) {
		r = orphans_take_locked();
		if (r == NULL)
			break;
		if (madmpi_request_is_complete(r)) {
			r->next = done;
			done = r;
		} else {
			orphans_push_locked(r);
		}
	}
	base_spin_unlock(&orphans.lock);
	while ((r = done) != NULL) {
		done = r->next;
		madmpi_request_put(r);
	}
}

struct madmpi_outcome madmpi_request_outcome(const struct madmpi_request *r)
{
	struct madmpi_outcome o;
	struct nm_sr_status st;

	if (r->what == MADMPI_REQUEST_NOTHING)
		return madmpi_outcome_proc_null();
	if (unlikely(r->what == MADMPI_REQUEST_OPERATION))
		return r->own->outcome(r->own, r);
	nm_sr_status(&r->nm, &st);
	if (r->what != MADMPI_REQUEST_RECV)
		return madmpi_outcome_send(&st);
	o = madmpi_outcome_recv(r->comm, r->peer, &st);
	if (unlikely(r->type != NULL))
		madmpi_signed_check(&o, &r->walked);
	return o;
}

bool madmpi_request_is_well(const struct madmpi_request *r)
{
	struct nm_sr_status st;

	if ((r->what != MADMPI_REQUEST_SEND &&
	     r->what != MADMPI_REQUEST_RECV) ||
	    unlikely(r->type != NULL))
		return false;
	nm_sr_status(&r->nm, &st);
	return st.error == 0;
}

struct madmpi_outcome madmpi_request_last(const struct madmpi_request *r)
{
	struct madmpi_outcome o = madmpi_request_outcome(r);
	int error = 0;

	if (unlikely(r->own != NULL && r->own->end != NULL))
		error = r->own->end(r->own);
	if (unlikely(error != 0))
		o.error = error;
	return o;
}

bool madmpi_request_leave(MPI_Request *request)
{
	struct madmpi_request *r = (struct madmpi_request *)*request;

	if (unlikely(madmpi_request_is_persistent(r))) {
		r->what = MADMPI_REQUEST_IDLE;
		return false;
	}
	*request = MPI_REQUEST_NULL;
	return true;
}

int madmpi_request_end(const char *function, MPI_Request *request,
		       MPI_Status *status)
{
	struct madmpi_request *r = (struct madmpi_request *)*request;
	struct madmpi_outcome o;
	bool ended;
	int rc;

	if (unlikely(r->what == MADMPI_REQUEST_IDLE)) {
		madmpi_status_fill_empty(status);
		return MPI_SUCCESS;
	}
	o = madmpi_request_last(r);
	madmpi_status_fill(status, &o);
	ended = madmpi_request_leave(request);
	rc = madmpi_outcome_raise(r->comm, function, &o);
	if (likely(ended))
		madmpi_request_put(r);
	return rc;
}

void madmpi_status_fill_empty(MPI_Status *status)
{
	struct madmpi_outcome o = madmpi_outcome_empty();

	madmpi_status_fill(status, &o);
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = MPI_SUCCESS;
}

struct madmpi_request *madmpi_request_of(const char *function,
					 MPI_Request handle, int *rc)
{
	struct madmpi_request *r = NULL;

	if (likely(!madmpi_handle_is_constant(handle)))
		r = madmpi_handle_object(handle, MADMPI_REQUEST);
	if (unlikely(r == NULL))
		*rc = madmpi_error(NULL, MPI_ERR_REQUEST, function,
				   "request %p is not an active request",
				   (void *)handle);
	return r;
}

/* MPI_Wait */
int madmpi_wait(MPI_Request *request, MPI_Status *status)
{
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	if (unlikely(request == NULL))
		return madmpi_null_arg(NULL, "MPI_Wait", "request");
	if (*request == MPI_REQUEST_NULL) {
		madmpi_status_fill_empty(status);
		return MPI_SUCCESS;
	}
	r = madmpi_request_of("MPI_Wait", *request, &rc);
	if (unlikely(r == NULL))
		return rc;
	madmpi_request_wait(r);
	return madmpi_request_end("MPI_Wait", request, status);
}

/* MPI_Test */
int madmpi_test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	if (unlikely(request == NULL || flag == NULL))
		return madmpi_null_arg(NULL, "MPI_Test",
				       request ? "flag" : "request");
	if (*request == MPI_REQUEST_NULL) {
		*flag = 1;
		madmpi_status_fill_empty(status);
		return MPI_SUCCESS;
	}
	r = madmpi_request_of("MPI_Test", *request, &rc);
	if (unlikely(r == NULL))
		return rc;
	*flag = madmpi_request_poll(r);
	return *flag ? madmpi_request_end("MPI_Test", request, status)
		     : MPI_SUCCESS;
}

/* MPI_Request_get_status */
int madmpi_request_get_status(MPI_Request request, int *flag,
			      MPI_Status *status)
{
	const char *fn = "MPI_Request_get_status";
	struct madmpi_request *r;
	struct madmpi_outcome o;
	int rc = MPI_SUCCESS;

	if (flag == NULL)
		return madmpi_null_arg(NULL, fn, "flag");
	if (request == MPI_REQUEST_NULL) {
		*flag = 1;
		madmpi_status_fill_empty(status);
		return MPI_SUCCESS;
	}
	r = madmpi_request_of(fn, request, &rc);
	if (r == NULL)
		return rc;
	*flag = madmpi_request_poll(r);
	if (!*flag)
		return MPI_SUCCESS;
	if (r->what == MADMPI_REQUEST_IDLE) {
		madmpi_status_fill_empty(status);
		return MPI_SUCCESS;
	}
	o = madmpi_request_outcome(r);
	madmpi_status_fill(status, &o);
	return MPI_SUCCESS;
}

/* Active, of a collective operation. */
static bool is_collective(const struct madmpi_request *r)
{
	return r->what == MADMPI_REQUEST_OPERATION && r->own->is_collective;
}

static int bad_for_collective(const char *fn, const struct madmpi_request *r,
			      const char *what)
{
	return madmpi_error(r->comm, MPI_ERR_REQUEST, fn,
			    "request %p is of a collective operation, which "
			    "cannot be %s",
			    (const void *)r, what);
}

void madmpi_request_abandon(struct madmpi_request *r)
{
	/* The handle is invalid from now on, complete or not. */
	store_relaxed(&r->object.kind, MADMPI_FREED);
	if (madmpi_request_is_complete(r)) {
		madmpi_request_put(r);
		return;
	}
	base_spin_lock(&orphans.lock);
	orphans_push_locked(r);
	base_spin_unlock(&orphans.lock);
	orphans_reap();
}

/* MPI_Request_free */
int madmpi_request_free(MPI_Request *request)
{
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	if (request == NULL)
		return madmpi_null_arg(NULL, "MPI_Request_free", "request");
	r = madmpi_request_of("MPI_Request_free", *request, &rc);
	if (r == NULL)
		return rc;
	/* Programs do that where MPI_Request_get_status() has told them. */
	if (is_collective(r) && !madmpi_request_is_complete(r))
		return bad_for_collective("MPI_Request_free", r,
					  "freed before it is complete");
	if (r->own != NULL && r->own->give_up != NULL)
		return r->own->give_up(r->own, request);
	*request = MPI_REQUEST_NULL;
	madmpi_request_abandon(r);
	return MPI_SUCCESS;
}

/* MPI_Cancel */
int madmpi_cancel(MPI_Request *request)
{
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	if (request == NULL)
		return madmpi_null_arg(NULL, "MPI_Cancel", "request");
	r = madmpi_request_of("MPI_Cancel", *request, &rc);
	if (r == NULL)
		return rc;
	if (is_collective(r))
		return bad_for_collective("MPI_Cancel", r, "cancelled");
	/* Too late is no error. */
	if (r->what > MADMPI_REQUEST_NOTHING)
		nm_sr_cancel(&r->nm);
	if (r->what == MADMPI_REQUEST_OPERATION && r->own->cancel != NULL)
		rc = r->own->cancel(r->own, r);
	if (r->what == MADMPI_REQUEST_IDLE)
		return madmpi_error(r->comm, MPI_ERR_REQUEST, "MPI_Cancel",
				    "the persistent request %p is not active",
				    (void *)*request);
	return rc;
}

void madmpi_request_init(void)
{
	madmpi_pool_init(&pool, MADMPI_REQUEST, sizeof(struct madmpi_request));
	pool.refilled = orphans_reap;
}

/* All orphans of that session, or of the world model: in one walk. */
static struct madmpi_request *orphans_of(const struct madmpi_session *s)
{
	struct madmpi_request *r, *mine = NULL;
	struct madmpi_request **at = &orphans.first, **end = &mine;

	base_spin_lock(&orphans.lock);
	while ((r = *at) != NULL) {
		if (r->comm->session != s) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		*end = r;
		end = &r->next;
	}
	*end = NULL;
	orphans.end = at;
	base_spin_unlock(&orphans.lock);
	return mine;
}

void madmpi_request_walk_freed(void (*fn)(struct madmpi_request *r))
{
	struct madmpi_request *all, *r;

	base_spin_lock(&orphans.lock);
	all = orphans.first;
	orphans.first = NULL;
	orphans.end = &orphans.first;
	base_spin_unlock(&orphans.lock);
	while ((r = all) != NULL) {
		all = r->next;
		fn(r);
		base_spin_lock(&orphans.lock);
		orphans_push_locked(r);
		base_spin_unlock(&orphans.lock);
	}
}

void madmpi_request_reap(const struct madmpi_session *s)
{
	struct madmpi_request *r, *next;

	/* More may come while we wait. */
	while ((r = orphans_of(s)) != NULL)
		for (; r != NULL; r = next) {
			next = r->next;
			madmpi_request_wait(r);
			madmpi_request_put(r);
		}
}

static void reap_complete(struct madmpi_object *o)
{
	struct madmpi_request *r =
		container_of(o, struct madmpi_request, object);

	if (r->what != MADMPI_REQUEST_OPERATION || r->own->give_up != NULL ||
	    !madmpi_request_is_complete(r))
		return;
	r->own->release(r->own);
	r->own = NULL;
}

void madmpi_request_reap_complete(void)
{
	madmpi_pool_walk(&pool, reap_complete);
}

/* Persistent and generalised ones that the program did not free. */
static void reap(struct madmpi_object *o)
{
	struct madmpi_request *r =
		container_of(o, struct madmpi_request, object);

	free(r->repeat);
	if (r->own == NULL)
		return;
	/* What else there is may be half done. */
	if (r->what == MADMPI_REQUEST_IDLE || r->own->give_up != NULL)
		r->own->release(r->own);
}

void madmpi_request_exit(void)
{
	madmpi_pool_walk(&pool, reap);
	madmpi_pool_exit(&pool);
}
