/*
 * The forms of a collective call.
 */
#include "coll/forms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/compare.h"
#include "coll/node.h"
#include "core/background.h"
#include "core/state.h"
#include "info/info.h"

/* Whether its steps are what the others make, too. */
static bool fits(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	return likely(!madmpi_checks_all) || madmpi_coll_compare(c, x);
}

static void make_steps(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	if (fits(c, x))
		x->run(c, x);
}

int madmpi_collective_run(const struct madmpi_collective *x)
{
	struct madmpi_coll c;

	madmpi_coll_begin(&c, x->function, x->comm);
	if (fits(&c, x)) {
		/* Not before: to the others it may be no blocking one. */
		c.own = madmpi_node_of(x->comm);
		c.node = likely(x->comm->hosts == NULL) ? c.own : NULL;
		x->run(&c, x);
	}
	return madmpi_coll_end(&c);
}

/* --- in the background --- */

/* The memory of a request, with the arrays behind it. */
struct kept {
	/* -: const once started  t: the thread's, then the request's */
	struct madmpi_background b;
	struct madmpi_collective x; /* -: holds types and operation */
	struct madmpi_coll c;       /* t: */
};

static struct kept *kept_of(struct madmpi_background *b)
{
	return container_of(b, struct kept, b);
}

static size_t array_bytes(struct madmpi_array a, int n)
{
	size_t each = a.is_wide ? sizeof(MPI_Count) : sizeof(int);

	return a.at != NULL ? (size_t)n * each : 0;
}

/* Elements of each array are aligned where its copy begins. */
static size_t room_of(size_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

static size_t types_bytes(const struct madmpi_parts *p)
{
	return p->types != NULL ? (size_t)p->n * sizeof(*p->types) : 0;
}

static size_t parts_room(const struct madmpi_parts *p)
{
	return room_of(array_bytes(p->counts, p->n)) +
	       room_of(array_bytes(p->displs, p->n)) + room_of(types_bytes(p));
}

/* The copy, or NULL of none. */
static const void *keep(const void *from, size_t bytes, char **room)
{
	void *to = *room;

	if (bytes == 0)
		return NULL;
	memcpy(to, from, bytes);
	*room += room_of(bytes);
	return to;
}

static void parts_keep(struct madmpi_parts *p, char **room)
{
	p->counts.at = keep(p->counts.at, array_bytes(p->counts, p->n), room);
	p->displs.at = keep(p->displs.at, array_bytes(p->displs, p->n), room);
	p->types = keep(p->types, types_bytes(p), room);
	if (p->type != NULL)
		madmpi_type_get(p->type);
	for (int i = 0; p->types != NULL && i < p->n; i++)
		madmpi_type_get(madmpi_parts_type(p, i));
}

static void parts_let_go(const struct madmpi_parts *p)
{
	if (p->type != NULL)
		madmpi_type_put(p->type);
	for (int i = 0; p->types != NULL && i < p->n; i++)
		madmpi_type_put(madmpi_parts_type(p, i));
}

static int run(struct madmpi_background *b)
{
	struct kept *k = kept_of(b);

	/* As they were at first; it may have run before. */
	free(k->c.why);
	k->c.why = NULL;
	k->c.error = 0;
	k->c.is_told = false;
	madmpi_coll_home(&k->c);
	make_steps(&k->c, &k->x);
	b->why = k->c.why;
	return k->c.error;
}

static void release(struct madmpi_operation *op)
{
	struct kept *k = kept_of(madmpi_background_of(op));

	parts_let_go(&k->x.send);
	parts_let_go(&k->x.recv);
	if (k->x.op != NULL)
		madmpi_op_put(k->x.op);
	free(k->c.why);
	free(k);
}

/* NULL after an error that *rc says. */
static struct kept *new (const struct madmpi_collective *x,
			 const struct madmpi_coll *c, int *rc)
{
	struct kept *k;
	char *room;

	k = calloc(1, sizeof(*k) + parts_room(&x->send) + parts_room(&x->recv));
	if (k == NULL) {
		*rc = madmpi_error(x->comm, MPI_ERR_NO_MEM, x->function,
				   "no memory for a request");
		return NULL;
	}
	k->b.op.release = release;
	k->b.op.is_collective = true;
	k->b.run = run;
	k->x = *x;
	k->c = *c;
	room = (char *)(k + 1);
	parts_keep(&k->x.send, &room);
	parts_keep(&k->x.recv, &room);
	if (x->op != NULL)
		madmpi_op_get(x->op);
	return k;
}

int madmpi_collective_start(const struct madmpi_collective *x,
			    MPI_Request *request)
{
	struct madmpi_coll c;
	struct kept *k;
	int rc = MPI_SUCCESS;

	if (request == NULL)
		return madmpi_null_arg(x->comm, x->function, "request");
	/* Also if there is no memory: the others have begun it, and are told.
	 */
	madmpi_coll_begin_background(&c, x->function, x->comm);
	k = new (x, &c, &rc);
	if (k != NULL)
		rc = madmpi_background_start(x->function, x->comm, &k->b,
					     request);
	if (likely(rc == MPI_SUCCESS))
		return rc;
	madmpi_coll_fail(&c, -ENOMEM);
	make_steps(&c, x);
	return rc;
}

int madmpi_collective_init(const struct madmpi_collective *x, MPI_Info info,
			   MPI_Request *request)
{
	struct madmpi_info *hints;
	struct madmpi_coll c;
	struct kept *k;
	int rc = madmpi_check_info(x->comm, x->function, info, &hints);

	if (rc != MPI_SUCCESS)
		return rc;
	if (request == NULL)
		return madmpi_null_arg(x->comm, x->function, "request");
	madmpi_coll_begin_persistent(&c, x->function, x->comm);
	k = new (x, &c, &rc);
	return k != NULL ? madmpi_background_repeat(x->function, x->comm, &k->b,
						    request)
			 : rc;
}
