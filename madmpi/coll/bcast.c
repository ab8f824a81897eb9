/*
 * MPI_Bcast.
 */
#include "bodies.h"
#include "coll/forms.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

/* A binomial tree: log2(size) messages deep, all the data in each. */
void madmpi_bcast_binomial(struct madmpi_coll *c, void *buf, MPI_Count n,
			   const struct madmpi_type *t, int root)
{
	int me = (c->rank - root + c->size) % c->size, mask = 1;

	for (; mask < c->size; mask *= 2)
		if (me & mask) {
			madmpi_coll_recv(c, buf, n, t,
					 (c->rank - mask + c->size) % c->size);
			break;
		}
	for (mask /= 2; mask > 0; mask /= 2)
		if (me + mask < c->size)
			madmpi_coll_send(c, buf, n, t,
					 (c->rank + mask) % c->size);
}

/* The data of one MPI_Bcast, cut into as many blocks as processes. */
struct whole {
	struct madmpi_coll *c;
	void *buf;
	MPI_Count n, bytes;
	const struct madmpi_type *t;
	int root;
};

/* Block i, counted from the root's. */
static struct nm_data block(const struct whole *w, int i,
			    struct madmpi_layout *l)
{
	MPI_Count each = (w->bytes + w->c->size - 1) / w->c->size;
	MPI_Count from = i * each < w->bytes ? i * each : w->bytes;
	MPI_Count left = w->bytes - from;

	return madmpi_layout_slice(l, w->buf, w->n, w->t, from,
				   left < each ? left : each);
}

static void block_isend(const struct whole *w, struct madmpi_flight *f, int i,
			int peer)
{
	struct nm_data d = block(w, i, &f->layout);

	madmpi_coll_isend_data(w->c, f, &d, peer);
}

static void block_irecv(const struct whole *w, struct madmpi_flight *f, int i,
			int peer)
{
	struct nm_data d = block(w, i, &f->layout);

	madmpi_coll_irecv_data(w->c, f, &d, peer);
}

/* The root sends every process its block. */
static void scatter_blocks(const struct whole *w, int me)
{
	struct madmpi_coll *c = w->c;
	struct madmpi_flight f;

	if (me != 0) {
		block_irecv(w, &f, me, w->root);
		madmpi_coll_wait(c, &f);
		return;
	}
	for (int i = 1; i < c->size; i++) {
		block_isend(w, &f, i, (w->root + i) % c->size);
		madmpi_coll_wait(c, &f);
	}
}

/*
 * Scatter, then allgather in a ring (van de Geijn): each process moves about
 * twice the data, however many they are.
 */
void madmpi_bcast_scatter_ring(struct madmpi_coll *c, void *buf, MPI_Count n,
			       const struct madmpi_type *t, int root)
{
	struct whole w = { c, buf, n, n * t->size, t, root };
	int me = (c->rank - root + c->size) % c->size;
	struct madmpi_flight s, r;

	scatter_blocks(&w, me);
	for (int step = 0; step < c->size - 1; step++) {
		block_irecv(&w, &r, (me - step - 1 + c->size) % c->size,
			    (c->rank - 1 + c->size) % c->size);
		block_isend(&w, &s, (me - step + c->size) % c->size,
			    (c->rank + 1) % c->size);
		madmpi_coll_wait(c, &s);
		madmpi_coll_wait(c, &r);
	}
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *b = &x->recv;
	MPI_Count bytes;

	if (x->root == MPI_PROC_NULL)
		return;
	bytes = b->count * b->type->size;
	if (unlikely(madmpi_comm_is_inter(x->comm)))
		madmpi_inter_bcast(c, b->base, b->count, b->type, x->root);
	else if (c->size > 1 && bytes > 0)
		madmpi_choose_bcast(c, bytes)(c, b->base, b->count, b->type,
					      x->root);
}

static int prepare(struct madmpi_collective *x, const char *fn, void *buffer,
		   MPI_Count count, MPI_Datatype datatype, int root,
		   MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run);
	x->recv.base = buffer;
	x->recv.count = count;
	x->root = root;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_root(fn, x->comm, root);
	if (likely(rc == MPI_SUCCESS) && root != MPI_PROC_NULL)
		rc = madmpi_check_data(fn, x->comm, buffer, count, datatype,
				       &x->recv.type);
	return rc;
}

/* MPI_Bcast, MPI_Bcast_c */
int madmpi_bcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root,
		 MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Bcast", buffer, count, datatype, root, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ibcast, MPI_Ibcast_c */
int madmpi_ibcast(void *buffer, MPI_Count count, MPI_Datatype datatype,
		  int root, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Ibcast", buffer, count, datatype, root, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Bcast_init, MPI_Bcast_init_c */
int madmpi_bcast_init(void *buffer, MPI_Count count, MPI_Datatype datatype,
		      int root, MPI_Comm comm, MPI_Info info,
		      MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Bcast_init", buffer, count, datatype, root,
			 comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
