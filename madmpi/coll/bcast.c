/*
 * MPI_Bcast.
 */
#include "bodies.h"
#include "coll/coll.h"
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

/* MPI_Bcast, MPI_Bcast_c */
int madmpi_bcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root,
		 MPI_Comm comm)
{
	const char *fn = "MPI_Bcast";
	struct madmpi_comm *mc;
	struct madmpi_type *t = NULL;
	struct madmpi_coll c;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_root(fn, mc, root);
	if (likely(rc == MPI_SUCCESS) && root != MPI_PROC_NULL)
		rc = madmpi_check_data(fn, mc, buffer, count, datatype, &t);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (unlikely(madmpi_comm_is_inter(mc)))
		return madmpi_inter_bcast(fn, mc, buffer, count, t, root);
	if (mc->size == 1 || count * t->size == 0)
		return MPI_SUCCESS;
	madmpi_coll_begin(&c, fn, mc);
	madmpi_choose_bcast(&c, count * t->size)(&c, buffer, count, t, root);
	return madmpi_coll_end(&c);
}
