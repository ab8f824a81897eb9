/*
 * Partitions that become ready: each is a message, sent by whoever says so.
 */
#include "bodies.h"
#include "env/error.h"
#include "part/part.h"

int madmpi_part_start_send(const char *fn, struct madmpi_operation *op,
			   struct madmpi_request *r)
{
	struct madmpi_part *p = madmpi_part_of(op);

	(void)fn;
	p->round++;
	p->error = 0;
	p->left = p->nmessages;
	if (p->nmessages == 0)
		nm_sr_general_end(&r->nm, 0);
	return MPI_SUCCESS;
}

/* Of one that is active; the only word that threads share is the message's. */
static int ready(const char *fn, struct madmpi_part *p, int partition)
{
	struct madmpi_part_message *msg = &p->message[partition];
	const struct madmpi_message *m = &p->m;
	struct nm_data data;

	if (unlikely(xchg_relaxed(&msg->round, p->round) == p->round))
		return madmpi_error(m->comm, MPI_ERR_ARG, fn,
				    "partition %d is ready already", partition);
	/* To nobody: it is over when all are ready. */
	if (unlikely(p->terms == NULL)) {
		nm_sr_general_begin(&msg->nm);
		nm_sr_general_end(&msg->nm, 0);
	} else {
		data = madmpi_part_data(p, msg, partition);
		nm_sr_isend(m->comm->part, m->comm->gate[m->peer],
			    madmpi_part_tag(p, partition), &data, 0, &msg->nm);
	}
	nm_sr_on_done(&msg->nm, madmpi_part_over, msg);
	return MPI_SUCCESS;
}

/* An active send behind the handle, or NULL and *rc. */
static struct madmpi_part *active(const char *fn, MPI_Request handle, int *rc)
{
	struct madmpi_request *r;
	struct madmpi_part *p =
		madmpi_part_of_request(fn, MADMPI_SEND, handle, &r, rc);

	if (likely(p != NULL && r->what != MADMPI_REQUEST_IDLE))
		return p;
	if (p != NULL)
		*rc = madmpi_error(r->comm, MPI_ERR_REQUEST, fn,
				   "request %p has not been started",
				   (void *)handle);
	return NULL;
}

/* MPI_Pready */
int madmpi_pready(int partition, MPI_Request request)
{
	const char *fn = "MPI_Pready";
	int rc = MPI_SUCCESS;
	struct madmpi_part *p = active(fn, request, &rc);

	if (unlikely(p == NULL))
		return rc;
	rc = madmpi_part_check(fn, p, partition);
	return rc ? rc : ready(fn, p, partition);
}

/* MPI_Pready_range */
int madmpi_pready_range(int partition_low, int partition_high,
			MPI_Request request)
{
	const char *fn = "MPI_Pready_range";
	int rc = MPI_SUCCESS;
	struct madmpi_part *p = active(fn, request, &rc);

	if (p == NULL)
		return rc;
	rc = madmpi_part_check(fn, p, partition_low);
	if (rc == MPI_SUCCESS)
		rc = madmpi_part_check(fn, p, partition_high);
	if (rc != MPI_SUCCESS)
		return rc;
	if (partition_low > partition_high)
		return madmpi_error(p->m.comm, MPI_ERR_ARG, fn,
				    "partition_low is %d, above "
				    "partition_high (%d)",
				    partition_low, partition_high);
	for (int i = partition_low; i <= partition_high && rc == 0; i++)
		rc = ready(fn, p, i);
	return rc;
}

/* MPI_Pready_list */
int madmpi_pready_list(int length, const int array_of_partitions[],
		       MPI_Request request)
{
	const char *fn = "MPI_Pready_list";
	int rc = MPI_SUCCESS;
	struct madmpi_part *p = active(fn, request, &rc);

	if (p == NULL)
		return rc;
	if (length < 0)
		return madmpi_error(p->m.comm, MPI_ERR_COUNT, fn,
				    "length is negative (%d)", length);
	if (length > 0 && array_of_partitions == NULL)
		return madmpi_null_arg(p->m.comm, fn, "array_of_partitions");
	for (int i = 0; i < length && rc == MPI_SUCCESS; i++)
		rc = madmpi_part_check(fn, p, array_of_partitions[i]);
	for (int i = 0; i < length && rc == MPI_SUCCESS; i++)
		rc = ready(fn, p, array_of_partitions[i]);
	return rc;
}
