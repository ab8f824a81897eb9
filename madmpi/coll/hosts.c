/*
 * Collective operations in three steps: within hosts, among hosts, within
 * hosts.
 *
 * Each step is a collective operation of some of the processes, and all have
 * one number: two processes meet in one of the steps only, or in both of those
 * within their host, and messages keep their order. A failure goes on from step
 * to step as from message to message.
 */
#include "coll/hosts.h"

#include <errno.h>
#include <stdlib.h>

enum { LEADER = 0 };

/* --- who is where --- */

/*
 * The number of the host of a rank, which may be a new one. As a rule it is
 * that of the rank before, or, if the ranks take turns, the next.
 */
static int number_of(const struct madmpi_hosts *h, struct nm_gate *gate,
		     int before)
{
	int host = nm_gate_host(gate), n = h->leaders.n;

	for (int i = 0; i < n; i++)
		if (nm_gate_host(h->leaders.gate[(before + i) % n]) == host)
			return (before + i) % n;
	return n;
}

static void spread_out(struct madmpi_hosts *h, struct nm_gate **gate, int size,
		       int rank)
{
	int own = nm_gate_host(gate[rank]);

	h->in_order = true;
	for (int r = 0; r < size; r++) {
		int before = r > 0 ? h->host[r - 1] : 0;
		int i = h->host[r] = number_of(h, gate[r], before);

		if (i == h->leaders.n)
			h->leaders.gate[h->leaders.n++] = gate[r];
		else if (before != i)
			h->in_order = false;
		if (r == rank)
			h->here.rank = h->here.n;
		if (nm_gate_host(gate[r]) == own)
			h->here.gate[h->here.n++] = gate[r];
	}
	h->leaders.rank = h->host[rank];
}

/* How many of its host each rank has before it. */
static int number_places(struct madmpi_hosts *h, int size)
{
	int *n = calloc((size_t)h->leaders.n, sizeof(*n));

	for (int r = 0; n != NULL && r < size; r++)
		h->place[r] = n[h->host[r]]++;
	free(n);
	return n != NULL ? 0 : -ENOMEM;
}

int madmpi_hosts_new(struct nm_gate **gate, int size, int rank,
		     struct madmpi_hosts **out)
{
	size_t n = (size_t)size;
	struct madmpi_hosts *h;
	int rc;

	*out = NULL;
	for (rc = 1; rc < size; rc++)
		if (nm_gate_host(gate[rc]) != nm_gate_host(gate[0]))
			break;
	if (rc >= size)
		return 0;
	h = calloc(1,
		   sizeof(*h) + 2 * n * (sizeof(*h->here.gate) + sizeof(int)));
	if (h == NULL)
		return -ENOMEM;
	h->here.gate = (struct nm_gate **)(h + 1);
	h->leaders.gate = h->here.gate + n;
	h->host = (int *)(h->leaders.gate + n);
	h->place = h->host + n;
	spread_out(h, gate, size, rank);
	rc = number_places(h, size);
	if (rc == 0 && h->leaders.n < size)
		*out = h;
	else
		free(h);
	return rc;
}

/* --- the steps --- */

static const struct madmpi_hosts *hosts_of(const struct madmpi_coll *c)
{
	return c->comm->hosts;
}

static void go_among(struct madmpi_coll *c, const struct madmpi_members *m,
		     struct madmpi_node *node)
{
	c->gate = m->gate;
	c->size = m->n;
	c->rank = m->rank;
	c->node = node;
}

void madmpi_coll_in_host(struct madmpi_coll *c)
{
	go_among(c, &hosts_of(c)->here, c->own);
}

/* Whether this process is one of them; if not, it has nothing to do there. */
static bool among_leaders(struct madmpi_coll *c)
{
	const struct madmpi_hosts *h = hosts_of(c);

	go_among(c, &h->leaders, NULL);
	return h->here.rank == LEADER;
}

static void spread(struct madmpi_coll *c, void *buf, MPI_Count n,
		   const struct madmpi_type *t, int from)
{
	madmpi_coll_in_host(c);
	if (c->size > 1)
		madmpi_choose_bcast(c, n * t->size)(c, buf, n, t, from);
}

void madmpi_barrier_hosts(struct madmpi_coll *c)
{
	madmpi_coll_in_host(c);
	madmpi_choose_barrier(c)(c);
	if (among_leaders(c))
		madmpi_barrier_dissemination(c);
	madmpi_coll_in_host(c);
	madmpi_choose_barrier(c)(c);
	madmpi_coll_home(c);
}

/*
 * Leaders are sent the data before the rest of a host, which is nearer; but
 * where the root is none, all of its host get them together with its leader.
 */
void madmpi_bcast_hosts(struct madmpi_coll *c, void *buf, MPI_Count n,
			const struct madmpi_type *t, int root)
{
	const struct madmpi_hosts *h = hosts_of(c);
	bool first =
		h->host[root] == h->leaders.rank && h->place[root] != LEADER;

	if (first)
		spread(c, buf, n, t, h->place[root]);
	if (among_leaders(c))
		madmpi_choose_bcast(c, n * t->size)(c, buf, n, t,
						    h->host[root]);
	if (!first)
		spread(c, buf, n, t, LEADER);
	madmpi_coll_home(c);
}

static void reduce(struct madmpi_coll *c, const void *from, void *to,
		   MPI_Count n, struct madmpi_type *t, struct madmpi_op *op,
		   int root)
{
	if (c->size > 1)
		madmpi_choose_reduce(c, n, t, op)(c, from, to, n, t, op, root);
	else if (from != to)
		madmpi_coll_copy(c, from, n, t, to, n, t);
}

/* The root's leader has the result, and passes it on. */
void madmpi_reduce_hosts(struct madmpi_coll *c, const void *from, void *to,
			 MPI_Count n, struct madmpi_type *t,
			 struct madmpi_op *op, int root)
{
	const struct madmpi_hosts *h = hosts_of(c);
	bool is_root = c->rank == root, leads = h->here.rank == LEADER;
	bool is_near = h->host[root] == h->leaders.rank;
	void *part = leads ? madmpi_coll_alloc(t, n) : NULL;

	if (leads && part == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	madmpi_coll_in_host(c);
	reduce(c, from, part, n, t, op, LEADER);
	if (among_leaders(c))
		reduce(c, part, is_root ? to : part, n, t, op, h->host[root]);
	madmpi_coll_in_host(c);
	if (is_near && h->place[root] != LEADER) {
		if (leads)
			madmpi_coll_send(c, part, n, t, h->place[root]);
		else if (is_root)
			madmpi_coll_recv(c, to, n, t, LEADER);
	}
	madmpi_coll_home(c);
	madmpi_coll_free(part, t, n);
}

void madmpi_allreduce_hosts(struct madmpi_coll *c, void *buf, MPI_Count n,
			    struct madmpi_type *t, struct madmpi_op *op)
{
	madmpi_coll_in_host(c);
	reduce(c, buf, buf, n, t, op, LEADER);
	if (among_leaders(c))
		madmpi_choose_allreduce(c, n, t, op)(c, buf, n, t, op);
	spread(c, buf, n, t, LEADER);
	madmpi_coll_home(c);
}
