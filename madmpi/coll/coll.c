/*
 * The steps of collective operations, and the checks they share.
 */
#include "coll/coll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/compare.h"
#include "coll/inter.h"
#include "core/state.h"
#include "pt2pt/message.h"

static void begin(struct madmpi_coll *c, const char *function,
		  struct madmpi_comm *comm, nm_tag_t tag, uint32_t others)
{
	c->function = function;
	c->comm = comm;
	c->node = c->own = NULL;
	c->gate = comm->local_gate;
	c->rank = comm->rank;
	c->size = comm->size;
	c->tag = tag;
	c->others = others;
	c->error = 0;
	c->why = NULL;
	c->is_told = false;
}

void madmpi_coll_begin(struct madmpi_coll *c, const char *function,
		       struct madmpi_comm *comm)
{
	begin(c, function, comm, comm->collectives++ % MADMPI_COLL_BACKGROUND,
	      comm->persistents);
}

void madmpi_coll_begin_background(struct madmpi_coll *c, const char *function,
				  struct madmpi_comm *comm)
{
	/* In one sequence with the blocking ones, the order is compared. */
	if (unlikely(madmpi_checks_all))
		madmpi_coll_begin(c, function, comm);
	else
		begin(c, function, comm,
		      MADMPI_COLL_BACKGROUND |
			      comm->backgrounds++ % MADMPI_COLL_BACKGROUND,
		      comm->persistents);
}

bool madmpi_coll_begin_call(struct madmpi_coll *c, const char *function,
			    struct madmpi_comm *comm)
{
	madmpi_coll_begin(c, function, comm);
	return likely(madmpi_coll_compare_function(c));
}

void madmpi_coll_begin_persistent(struct madmpi_coll *c, const char *function,
				  struct madmpi_comm *comm)
{
	begin(c, function, comm,
	      MADMPI_COLL_PERSISTENT |
		      comm->persistents++ %
			      (MADMPI_COLL_FINALIZE - MADMPI_COLL_PERSISTENT),
	      comm->collectives);
}

void madmpi_coll_begin_finalize(struct madmpi_coll *c, struct madmpi_comm *comm)
{
	begin(c, "MPI_Finalize", comm, MADMPI_COLL_FINALIZE, 0);
}

void madmpi_coll_across(struct madmpi_coll *c)
{
	c->gate = c->comm->gate;
	c->size = c->comm->npeers;
}

void madmpi_coll_home(struct madmpi_coll *c)
{
	c->gate = c->comm->local_gate;
	c->size = c->comm->size;
	c->rank = c->comm->rank;
	c->node = c->comm->hosts == NULL ? c->own : NULL;
}

void madmpi_coll_fail(struct madmpi_coll *c, int error)
{
	if (c->error == 0)
		c->error = error;
}

int madmpi_coll_end(struct madmpi_coll *c)
{
	int rc;

	if (likely(c->error == 0))
		return MPI_SUCCESS;
	if (c->error > 0) {
		rc = madmpi_error(c->comm, c->error, c->function, "%s",
				  c->why ? c->why : "no memory to say why");
		free(c->why);
		return rc;
	}
	if (c->is_told)
		return madmpi_error(c->comm,
				    madmpi_error_class_of_errno(c->error),
				    c->function,
				    "another process could not do its part: %s",
				    strerror(-c->error));
	if (c->error == -EMSGSIZE)
		return madmpi_error(c->comm, MPI_ERR_TRUNCATE, c->function,
				    "a process sent more data than this one "
				    "expects");
	if (c->error == -ENODATA)
		return madmpi_error(c->comm, MPI_ERR_COUNT, c->function,
				    "a process sent less data than this one "
				    "expects");
	if (c->error == -EBADE)
		return madmpi_error(c->comm, MPI_ERR_OTHER, c->function,
				    "a process is in another call: this one or "
				    "those before do not fit together");
	return madmpi_error_errno(c->comm, c->error, c->function,
				  "a step of the operation failed");
}

/* --- how the others are told of a failure --- */

static nm_tag_t why_tag(nm_tag_t tag)
{
	return MADMPI_COLL_WHY | tag % MADMPI_COLL_WHY;
}

/*
 * Why goes ahead: messages keep their order, so it is there when what takes the
 * place of the data comes, and nobody has to wait for it.
 */
static BASE_COLD struct nm_data failed_data(struct madmpi_coll *c,
					    const struct nm_data *d, int peer)
{
	static const char any = 0;
	int32_t why = c->error;
	struct nm_data reason = nm_data_flat(&why, sizeof(why));

	/* If he is gone, what is to be sent next finds that out, too. */
	nm_sr_send(c->comm->coll, c->gate[peer], why_tag(c->tag), &reason, 0);
	return nm_data_flat((void *)&any, d->length == 0);
}

/* Whether it was sent by a process that has failed. */
static bool is_told(struct madmpi_coll *c, struct nm_gate *from)
{
	int32_t why = 0;
	struct nm_data reason = nm_data_flat(&why, sizeof(why));
	struct nm_message *message;
	struct nm_sr_request nm;
	struct nm_sr_status st;

	if (nm_sr_mprobe(c->comm->coll, from, why_tag(c->tag), NM_TAG_EXACT,
			 &message, &st) < 0)
		return false;
	nm_sr_mrecv(message, &reason, &nm);
	nm_sr_wait(&nm);
	c->is_told |= c->error == 0;
	madmpi_coll_fail(c, why < 0 ? why : -EPROTO);
	return true;
}

/* A message that has failed, or is not as long as it should be. */
static BASE_COLD void ended_badly(struct madmpi_coll *c,
				  const struct madmpi_flight *f,
				  const struct nm_sr_status *st)
{
	if (st->error != 0 && st->error != -EMSGSIZE)
		madmpi_coll_fail(c, st->error);
	else if (st->sent != f->bytes && is_told(c, st->gate))
		return;
	else
		madmpi_coll_check_bytes(c, (MPI_Count)st->sent,
					(MPI_Count)f->bytes);
}

/* --- steps --- */

void madmpi_coll_isend_data(struct madmpi_coll *c, struct madmpi_flight *f,
			    const struct nm_data *d, int peer)
{
	struct nm_data failed;
	int rc;

	if (unlikely(c->error != 0)) {
		failed = failed_data(c, d, peer);
		d = &failed;
	}
	f->bytes = d->length;
	rc = nm_sr_isend(c->comm->coll, c->gate[peer], c->tag, d, NM_SEND_NOW,
			 &f->nm);

	f->is_active = rc == 0;
	if (unlikely(rc < 0))
		madmpi_coll_fail(c, rc);
}

void madmpi_coll_irecv_data(struct madmpi_coll *c, struct madmpi_flight *f,
			    const struct nm_data *d, int peer)
{
	static const struct nm_data nowhere = { .kind = NM_DATA_FLAT };
	int rc;

	f->bytes = d->length;
	if (unlikely(c->error != 0))
		d = &nowhere;
	rc = nm_sr_irecv(c->comm->coll, c->gate[peer], c->tag, NM_TAG_EXACT, d,
			 &f->nm);

	f->is_active = rc == 0;
	if (unlikely(rc < 0))
		madmpi_coll_fail(c, rc);
}

void madmpi_coll_isend(struct madmpi_coll *c, struct madmpi_flight *f,
		       const void *buf, MPI_Count count,
		       const struct madmpi_type *t, int peer)
{
	struct nm_data d = madmpi_layout_data(&f->layout, buf, count, t);

	madmpi_coll_isend_data(c, f, &d, peer);
}

void madmpi_coll_irecv(struct madmpi_coll *c, struct madmpi_flight *f,
		       void *buf, MPI_Count count, const struct madmpi_type *t,
		       int peer)
{
	struct nm_data d = madmpi_layout_data(&f->layout, buf, count, t);

	madmpi_coll_irecv_data(c, f, &d, peer);
}

void madmpi_coll_wait(struct madmpi_coll *c, struct madmpi_flight *f)
{
	struct nm_sr_status st;

	if (!f->is_active)
		return;
	nm_sr_wait(&f->nm);
	nm_sr_status(&f->nm, &st);
	f->is_active = false;
	if (unlikely(st.error != 0 || st.sent != f->bytes))
		ended_badly(c, f, &st);
}

void madmpi_coll_send(struct madmpi_coll *c, const void *buf, MPI_Count count,
		      const struct madmpi_type *t, int peer)
{
	struct madmpi_flight f;

	madmpi_coll_isend(c, &f, buf, count, t, peer);
	madmpi_coll_wait(c, &f);
}

void madmpi_coll_recv(struct madmpi_coll *c, void *buf, MPI_Count count,
		      const struct madmpi_type *t, int peer)
{
	struct madmpi_flight f;

	madmpi_coll_irecv(c, &f, buf, count, t, peer);
	madmpi_coll_wait(c, &f);
}

void madmpi_coll_exchange(struct madmpi_coll *c, const void *sbuf,
			  MPI_Count scount, const struct madmpi_type *st,
			  int to, void *rbuf, MPI_Count rcount,
			  const struct madmpi_type *rt, int from)
{
	struct madmpi_flight s, r;

	madmpi_coll_irecv(c, &r, rbuf, rcount, rt, from);
	madmpi_coll_isend(c, &s, sbuf, scount, st, to);
	madmpi_coll_wait(c, &s);
	madmpi_coll_wait(c, &r);
}

void madmpi_window_init(struct madmpi_window *w, struct madmpi_coll *c)
{
	w->coll = c;
	w->next = 0;
	w->n = MADMPI_WINDOW;
	w->flight = malloc(MADMPI_WINDOW * sizeof(*w->flight));
	if (w->flight == NULL) {
		w->n = 1;
		w->flight = &w->last;
	}
	for (unsigned i = 0; i < w->n; i++)
		w->flight[i].is_active = false;
}

struct madmpi_flight *madmpi_window_next(struct madmpi_window *w)
{
	struct madmpi_flight *f = &w->flight[w->next++ % w->n];

	madmpi_coll_wait(w->coll, f);
	return f;
}

void madmpi_window_exit(struct madmpi_window *w)
{
	for (unsigned i = 0; i < w->n; i++)
		madmpi_coll_wait(w->coll, &w->flight[i]);
	if (w->flight != &w->last)
		free(w->flight);
}

/* The lowest byte of count elements, seen from the buffer's address. */
static MPI_Count lowest(const struct madmpi_type *t, MPI_Count count)
{
	MPI_Count span = madmpi_type_extent(t) * (count - 1);

	return t->true_lb + (span < 0 ? span : 0);
}

void *madmpi_coll_alloc(const struct madmpi_type *t, MPI_Count count)
{
	MPI_Count span = madmpi_type_extent(t) * (count - 1);
	MPI_Count bytes = t->true_ub - t->true_lb + (span < 0 ? -span : span);
	char *memory;

	if (count == 0 || t->size == 0)
		bytes = 0;
	memory = malloc((size_t)bytes + 16);
	if (memory == NULL)
		return NULL;
	return (void *)((uintptr_t)memory - (uintptr_t)lowest(t, count));
}

void madmpi_coll_free(void *buffer, const struct madmpi_type *t,
		      MPI_Count count)
{
	if (buffer != NULL)
		free((void *)((uintptr_t)buffer + (uintptr_t)lowest(t, count)));
}

void madmpi_coll_tell(struct madmpi_coll *c, void *bytes, MPI_Count n, int root)
{
	if (madmpi_comm_is_inter(c->comm))
		root = madmpi_inter_tell_bytes(c, bytes, n, root);
	madmpi_bcast_binomial(c, bytes, n, madmpi_type_of(MPI_BYTE), root);
}

int madmpi_coll_least(struct madmpi_coll *c, int mine)
{
	const struct madmpi_type *t = madmpi_type_of(MPI_INT);
	int theirs;

	for (int ahead = 1; ahead < c->size; ahead *= 2) {
		theirs = 0;
		madmpi_coll_exchange(c, &mine, 1, t,
				     (c->rank + ahead) % c->size, &theirs, 1, t,
				     (c->rank - ahead + c->size) % c->size);
		mine = theirs < mine ? theirs : mine;
	}
	return c->error != 0 ? madmpi_coll_errno(c) : mine;
}

void madmpi_coll_allgather_bytes(struct madmpi_coll *c, const void *mine,
				 MPI_Count n, void *all)
{
	int size = c->comm->size;

	if (all != NULL)
		memcpy((char *)all + c->rank * n, mine, (size_t)n);
	else
		madmpi_coll_fail(c, -ENOMEM);
	madmpi_allgather_bruck(c, all, n, madmpi_type_of(MPI_BYTE));
	if (madmpi_comm_is_inter(c->comm))
		madmpi_inter_swap_bytes(c, all, size * n,
					all ? (char *)all + size * n : NULL,
					c->comm->npeers * n);
}

int madmpi_check_root(const char *function, struct madmpi_comm *c, int root)
{
	bool inter = madmpi_comm_is_inter(c);

	if (likely(root >= 0 && root < c->npeers) ||
	    (inter && (root == MPI_ROOT || root == MPI_PROC_NULL)))
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_ROOT, function,
			    "root is %d, but the %s has %d process%s", root,
			    inter ? "other group" : "communicator", c->npeers,
			    c->npeers > 1 ? "es" : "");
}

int madmpi_check_op(const char *function, struct madmpi_comm *c, MPI_Op op,
		    MPI_Count count, const struct madmpi_type *t,
		    struct madmpi_op **out)
{
	*out = madmpi_op_of(op);
	if (unlikely(*out == NULL))
		return madmpi_error(c, MPI_ERR_OP, function,
				    "op %p is not an operation", (void *)op);
	if (unlikely(!madmpi_op_takes(*out, t)) && count > 0)
		return madmpi_error(c, MPI_ERR_OP, function,
				    "the operation %s is not defined on %s",
				    (*out)->name,
				    t->name ? t->name : "a derived datatype");
	return MPI_SUCCESS;
}

static int check_in_place(const char *function, struct madmpi_comm *c,
			  const void *buf)
{
	if (likely(buf != MPI_IN_PLACE) || c == NULL ||
	    !madmpi_comm_is_inter(c))
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_BUFFER, function,
			    "a buffer is MPI_IN_PLACE, but the communicator "
			    "has two groups");
}

int madmpi_check_data(const char *function, struct madmpi_comm *c,
		      const void *buf, MPI_Count count, MPI_Datatype datatype,
		      struct madmpi_type **out)
{
	int rc = madmpi_check_count(function, c, "count", count);

	if (unlikely(count == 0))
		datatype = madmpi_type_or_byte(datatype);
	if (likely(rc == MPI_SUCCESS))
		rc = check_in_place(function, c, buf);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_type(function, c, "datatype", datatype, out);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_buffer(function, c, "buffer", buf, count,
					 *out);
	return rc;
}

static int check_arrays(const char *function, struct madmpi_comm *c,
			struct madmpi_parts *p)
{
	if (p->n == 0 || (p->counts.at != NULL && p->displs.at != NULL))
		return check_in_place(function, c, p->base);
	return madmpi_error(c, MPI_ERR_ARG, function,
			    "the array of %s is a null pointer",
			    p->counts.at ? "displacements" : "counts");
}

static int check_part(const char *function, struct madmpi_comm *c,
		      const struct madmpi_parts *p, int i,
		      const struct madmpi_type *t)
{
	MPI_Count n = madmpi_array_get(p->counts, (size_t)i);
	int rc = madmpi_check_count(function, c, "a count", n);

	if (rc != MPI_SUCCESS || madmpi_array_get(p->displs, (size_t)i) != 0)
		return rc;
	return madmpi_check_buffer(function, c, "buffer", p->base, n, t);
}

int madmpi_check_n_parts(const char *function, struct madmpi_comm *c,
			 MPI_Datatype datatype, int n, struct madmpi_parts *p)
{
	int rc, empty = 0;

	p->n = n;
	rc = check_arrays(function, c, p);
	if (rc != MPI_SUCCESS)
		return rc;
	while (empty < n && madmpi_array_get(p->counts, (size_t)empty) == 0)
		empty++;
	if (empty == n)
		datatype = madmpi_type_or_byte(datatype);
	rc = madmpi_check_type(function, c, "datatype", datatype, &p->type);
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
		rc = check_part(function, c, p, i, p->type);
	return rc;
}

int madmpi_check_n_typed_parts(const char *function, struct madmpi_comm *c,
			       int n, struct madmpi_parts *p)
{
	MPI_Datatype datatype;
	struct madmpi_type *t;
	int rc;

	p->n = n;
	rc = check_arrays(function, c, p);
	if (rc == MPI_SUCCESS && n > 0 && p->types == NULL)
		return madmpi_error(c, MPI_ERR_ARG, function,
				    "the array of datatypes is a null pointer");
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		datatype = p->types[i];
		if (madmpi_array_get(p->counts, (size_t)i) == 0)
			datatype = madmpi_type_or_byte(datatype);
		rc = madmpi_check_type(function, c, "a datatype", datatype, &t);
		if (rc == MPI_SUCCESS)
			rc = check_part(function, c, p, i, t);
	}
	return rc;
}

int madmpi_check_alias(const char *function, struct madmpi_comm *c,
		       const void *sendbuf, const void *recvbuf,
		       MPI_Count bytes)
{
	if (likely(sendbuf != recvbuf) || bytes == 0 || sendbuf == MPI_BOTTOM)
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_BUFFER, function,
			    "both buffers are %p: say MPI_IN_PLACE", sendbuf);
}

int madmpi_check_alias_own(const char *function, struct madmpi_comm *c,
			   const void *buf, MPI_Count bytes,
			   const struct madmpi_parts *p)
{
	int rc = MPI_SUCCESS;

	/* In an intercommunicator no part is its own. */
	if (!madmpi_comm_is_inter(c))
		rc = madmpi_check_alias(function, c, buf,
					madmpi_parts_at(p, c->rank), bytes);
	/* Of equal parts in a row the first one begins where all do. */
	if (rc == MPI_SUCCESS && p->counts.at == NULL)
		rc = madmpi_check_alias(function, c, buf, p->base, bytes);
	return rc;
}

int madmpi_check_own(const char *function, struct madmpi_comm *c,
		     MPI_Count scount, const struct madmpi_type *st,
		     MPI_Count rcount, const struct madmpi_type *rt)
{
	if (likely(scount * st->size <= rcount * rt->size))
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_TRUNCATE, function,
			    "the own part has %lld bytes, its place %lld",
			    (long long)(scount * st->size),
			    (long long)(rcount * rt->size));
}
