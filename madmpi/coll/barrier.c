/*
 * MPI_Barrier.
 */
#include "bodies.h"
#include "coll/coll.h"
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

/* MPI_Barrier */
int madmpi_barrier(MPI_Comm comm)
{
	struct madmpi_comm *mc;
	struct madmpi_coll c;
	int rc = madmpi_check_comm("MPI_Barrier", comm, &mc);

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (unlikely(madmpi_comm_is_inter(mc)))
		return madmpi_inter_barrier("MPI_Barrier", mc);
	madmpi_coll_begin(&c, "MPI_Barrier", mc);
	madmpi_barrier_dissemination(&c);
	return madmpi_coll_end(&c);
}
