/*
 * MPI_Barrier.
 */
#include "bodies.h"
#include "coll/forms.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

/* Dissemination: in round k tell rank + 2^k; log2(size) rounds. */
void madmpi_barrier_dissemination(struct madmpi_coll *c)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);

	for (int far = 1; far < c->size; far *= 2)
		madmpi_coll_exchange(c, NULL, 0, byte,
				     (c->rank + far) % c->size, NULL, 0, byte,
				     (c->rank - far + c->size) % c->size);
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	if (unlikely(madmpi_comm_is_inter(x->comm)))
		madmpi_inter_barrier(c);
	else
		madmpi_choose_barrier(c)(c);
}

static int prepare(struct madmpi_collective *x, const char *fn, MPI_Comm comm)
{
	madmpi_collective_set(x, fn, run);
	return madmpi_check_comm(fn, comm, &x->comm);
}

/* MPI_Barrier */
int madmpi_barrier(MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Barrier", comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ibarrier */
int madmpi_ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Ibarrier", comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Barrier_init */
int madmpi_barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Barrier_init", comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
