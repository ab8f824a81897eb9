/*
 * Partitions that arrive: a receive is posted for each message of a round when
 * it begins. How many there are the terms of the sender say. Where these have
 * not come when the first round begins, a thread waits for them.
 */
#include <endian.h>
#include <errno.h>

#include "bodies.h"
#include "env/error.h"
#include "part/part.h"

/* Take the terms, which have come. 0 or -errno. */
static int learn(struct madmpi_part *p)
{
	struct madmpi_part_terms *t = p->terms;
	struct nm_sr_status st;
	uint32_t n;
	uint64_t bytes;

	madmpi_part_terms_known(t);
	nm_sr_status(&t->nm, &st);
	if (st.error != 0)
		return st.error;
	n = le32toh(t->wire.partitions);
	bytes = le64toh(t->wire.bytes);
	if (st.length != sizeof(t->wire) || n > INT_MAX || bytes > INT64_MAX ||
	    (n > 0 && bytes > (uint64_t)INT64_MAX / n))
		return -EPROTO;
	p->got = (struct madmpi_signed){
		.layout = { .count = p->m.count, .type = p->m.type },
		.sent = { .kinds = le64toh(t->wire.kinds),
			  .elements = (MPI_Count)le64toh(t->wire.elements),
			  .only = (int64_t)le64toh(t->wire.only) },
	};
	return madmpi_part_agree(p, (int)n, (MPI_Count)bytes,
				 le32toh(t->wire.tag));
}

/* With the last call for a message, all this may be its owner's. */
static void post(struct madmpi_part *p)
{
	const struct madmpi_message *m = &p->m;
	struct madmpi_part_message *msg = p->message;
	int n = p->nmessages;

	p->left = n;
	for (int j = 0; j < n; j++) {
		struct nm_data data = madmpi_part_data(p, &msg[j], j);

		nm_sr_irecv(m->comm->part, m->comm->gate[m->peer],
			    madmpi_part_tag(p, j), NM_TAG_EXACT, &data,
			    &msg[j].nm);
	}
	if (!nm_sr_is_complete(&p->known))
		nm_sr_general_end(&p->known, 0);
	if (n == 0)
		nm_sr_general_end(p->waited, 0);
	for (int j = 0; j < n; j++)
		nm_sr_on_done(&msg[j].nm, madmpi_part_over, &msg[j]);
}

/* In a thread of its own: the first round has begun before they came. */
static int post_late(struct madmpi_background *b)
{
	struct madmpi_part *p = container_of(b, struct madmpi_part, b);
	int rc;

	nm_sr_wait(&p->terms->nm);
	rc = learn(p);
	if (rc == 0) {
		post(p);
	} else {
		p->error = rc;
		nm_sr_general_end(p->waited, 0);
	}
	return 0;
}

int madmpi_part_start_recv(const char *fn, struct madmpi_operation *op,
			   struct madmpi_request *r)
{
	struct madmpi_part *p = madmpi_part_of(op);
	int rc = 0;

	p->error = 0;
	if (p->terms == NULL) {
		nm_sr_general_end(&r->nm, 0);
		return MPI_SUCCESS;
	}
	if (p->message == NULL && !nm_sr_is_complete(&p->terms->nm)) {
		p->b.run = post_late;
		madmpi_part_terms_awaited(p->terms);
		rc = madmpi_background_run(&p->b);
		return rc ? madmpi_error_errno(r->comm, rc, fn,
					       "a thread that waits for the "
					       "other end")
			  : MPI_SUCCESS;
	}
	if (p->message == NULL)
		rc = learn(p);
	if (rc < 0)
		return madmpi_error_errno(r->comm, rc, fn, "the other end");
	post(p);
	return MPI_SUCCESS;
}

/* Whether all messages have come that reach into the partition. */
static bool has_arrived(struct madmpi_part *p, int partition)
{
	MPI_Count each = p->message_bytes;
	int first = 0, last = p->nmessages - 1;

	if (each > 0 && p->bytes > 0) {
		MPI_Count f = partition * p->bytes / each;
		MPI_Count l = ((partition + 1) * p->bytes - 1) / each;

		first = f < last ? (int)f : last;
		last = l < last ? (int)l : last;
	}
	for (int j = first; j <= last; j++)
		if (!nm_sr_is_complete(&p->message[j].nm) &&
		    nm_sr_test(&p->message[j].nm) != 0)
			return false;
	return true;
}

/* MPI_Parrived */
int madmpi_parrived(MPI_Request request, int partition, int *flag)
{
	const char *fn = "MPI_Parrived";
	struct madmpi_request *r;
	struct madmpi_part *p;
	int rc = MPI_SUCCESS;

	/* A null request is complete, as in MPI_Test(). */
	if (unlikely(request == MPI_REQUEST_NULL && flag != NULL)) {
		*flag = 1;
		return MPI_SUCCESS;
	}
	p = madmpi_part_of_request(fn, MADMPI_RECV, request, &r, &rc);
	if (unlikely(p == NULL))
		return rc;
	if (unlikely(flag == NULL))
		return madmpi_null_arg(r->comm, fn, "flag");
	rc = madmpi_part_check(fn, p, partition);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	/* What is not under way has arrived. */
	*flag = madmpi_request_is_complete(r) ||
		(nm_sr_test(&p->known) == 0 && has_arrived(p, partition));
	if (!*flag)
		madmpi_make_way();
	return MPI_SUCCESS;
}
