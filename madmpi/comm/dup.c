/*
 * Copies of communicators.
 *
 * The copy is made and gets its topology, attributes and hints in the call, as
 * the standard wants it of both forms. Then the processes have to agree on the
 * numbers of its contexts, which the first one sends down a tree: blocking, or
 * in the background. A process that could not make its copy tells the others
 * all the same.
 */
#include <stdlib.h>

#include "bodies.h"
#include "coll/compare.h"
#include "comm/comm.h"
#include "core/background.h"
#include "info/info.h"
#include "pt2pt/message.h"

struct birth {
	/* -: const once started  t: who agrees */
	struct madmpi_background b; /* of a non-blocking one */
	struct madmpi_coll c;       /* t: */
	struct madmpi_comm *made;   /* t: owned until it is handed out */
	MPI_Comm *newcomm;          /* -: */
};

static void drop(const char *fn, struct madmpi_comm *made)
{
	madmpi_attrs_delete(fn, (struct madmpi_bearer){ .comm = made });
	madmpi_comm_put(made);
}

/* x->made, or NULL: MPI_SUCCESS, or the class of what was reported. */
static int copy(const char *fn, struct madmpi_comm *c, MPI_Info info,
		struct birth *x)
{
	int rc = madmpi_comm_new_like(c, &x->made);

	if (rc < 0) {
		x->made = NULL;
		return madmpi_error_errno(c, rc, fn, "new communicator");
	}
	/* It is nobody's who ends a session in the meantime. */
	madmpi_object_let_go(&x->made->object);
	x->made->topo = madmpi_topo_get(c->topo);
	rc = madmpi_attrs_copy(fn, (struct madmpi_bearer){ .comm = c },
			       (struct madmpi_bearer){ .comm = x->made });
	if (rc == MPI_SUCCESS) {
		madmpi_comm_hint(x->made, info);
		return rc;
	}
	drop(fn, x->made);
	x->made = NULL;
	return rc;
}

/* All processes. 0, and the copy is the program's; or -errno. */
static int agree(struct birth *x)
{
	struct madmpi_comm *c = x->c.comm;
	uint64_t ids[2] = { 0, 0 };
	int rc;

	if (unlikely(!madmpi_coll_compare_function(&x->c)))
		return x->c.error;
	if (c->rank == 0)
		madmpi_comm_new_ids(ids);
	madmpi_coll_tell(&x->c, ids, sizeof(ids), 0);
	if (x->c.error != 0 || x->made == NULL)
		return x->c.error;
	rc = madmpi_comm_open(x->made, ids);
	if (rc < 0)
		return rc;
	madmpi_object_hand_out(&x->made->object);
	*x->newcomm = madmpi_comm_handle(x->made);
	x->made = NULL;
	return 0;
}

static int check(const char *fn, MPI_Comm comm, MPI_Info info,
		 MPI_Comm *newcomm, struct madmpi_comm **c)
{
	struct madmpi_info *hints;
	int rc = madmpi_check_new_comm(fn, comm, newcomm, c);

	return rc ? rc : madmpi_check_info(*c, fn, info, &hints);
}

static int dup(const char *fn, MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
	struct birth x = { .newcomm = newcomm };
	struct madmpi_comm *c;
	int rc = check(fn, comm, info, newcomm, &c), error;

	if (rc != MPI_SUCCESS)
		return rc;
	*newcomm = MPI_COMM_NULL;
	rc = copy(fn, c, info, &x);
	madmpi_coll_begin(&x.c, fn, c);
	error = agree(&x);
	if (x.made != NULL)
		drop(fn, x.made);
	if (error > 0)
		return madmpi_coll_end(&x.c);
	if (rc != MPI_SUCCESS || error == 0)
		return rc;
	return madmpi_error_errno(c, error, fn, "new communicator");
}

/* MPI_Comm_dup: the hints stay behind. */
int madmpi_comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
	return dup("MPI_Comm_dup", comm, MPI_INFO_NULL, newcomm);
}

/* MPI_Comm_dup_with_info */
int madmpi_comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
	return dup("MPI_Comm_dup_with_info", comm, info, newcomm);
}

/* --- in the background --- */

static struct birth *birth_of(struct madmpi_background *b)
{
	return container_of(b, struct birth, b);
}

static int run(struct madmpi_background *b)
{
	struct birth *x = birth_of(b);
	int error = agree(x);

	b->why = x->c.why;
	return error;
}

static void release(struct madmpi_operation *op)
{
	struct birth *x = birth_of(madmpi_background_of(op));

	if (x->made != NULL)
		drop(x->c.function, x->made);
	free(x->c.why);
	free(x);
}

/* There is no thread: the others have begun it, and are told. */
static void forsake(struct madmpi_coll *c)
{
	uint64_t ids[2] = { 0, 0 };

	if (madmpi_coll_compare_function(c)) {
		madmpi_coll_fail(c, -ENOMEM);
		madmpi_coll_tell(c, ids, sizeof(ids), 0);
	}
	free(c->why);
}

static int idup(const char *fn, MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm,
		MPI_Request *request)
{
	struct madmpi_comm *c;
	struct birth *x;
	struct madmpi_coll ours;
	int rc = check(fn, comm, info, newcomm, &c), started;

	if (rc != MPI_SUCCESS)
		return rc;
	if (request == NULL)
		return madmpi_null_arg(c, fn, "request");
	*newcomm = MPI_COMM_NULL;
	madmpi_coll_begin_background(&ours, fn, c);
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		forsake(&ours);
		return madmpi_error(c, MPI_ERR_NO_MEM, fn,
				    "no memory for a request");
	}
	x->c = ours;
	x->b.run = run;
	x->b.op.release = release;
	x->b.op.is_collective = true;
	x->newcomm = newcomm;
	rc = copy(fn, c, info, x);
	started = madmpi_background_start(fn, c, &x->b, request);
	if (started != MPI_SUCCESS)
		forsake(&ours);
	if (rc == MPI_SUCCESS || started != MPI_SUCCESS)
		return started;
	/* It is over here, but the others hear of the numbers from us. */
	madmpi_request_abandon((struct madmpi_request *)*request);
	*request = MPI_REQUEST_NULL;
	return rc;
}

/* MPI_Comm_idup */
int madmpi_comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
	return idup("MPI_Comm_idup", comm, MPI_INFO_NULL, newcomm, request);
}

/* MPI_Comm_idup_with_info */
int madmpi_comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm,
			       MPI_Request *request)
{
	return idup("MPI_Comm_idup_with_info", comm, info, newcomm, request);
}
