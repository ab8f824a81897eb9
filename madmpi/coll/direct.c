/*
 * Collective operations in which a process reads what is for it where it lies
 * in the memory of another one, by one copy of the kernel's (nm_gate_read()).
 *
 * Who gives says in its slot where its data are. Who gets reads them, and says
 * that it needs nothing any more up to this part; who gives waits for that. No
 * system call reads data with gaps: these come by messages, as the slot says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/node.h"
#include "pt2pt/message.h"

/* In a slot: where the parts are that a process gives. */
struct place {
	uint64_t at;     /* of the one for rank 0 */
	int64_t stride;  /* to the one for the next rank */
	int64_t bytes;   /* of each */
	int64_t is_sent; /* by messages instead */
};

/* An operation, as one part of the lane. */
struct direct {
	struct madmpi_coll *c;
	struct madmpi_lane *lane;
	uint64_t part;
	struct madmpi_flight *flight; /* by rank, where there are messages */
};

/* Who gets something: n ranks from `first` on, round the communicator. */
struct getters {
	int first, n;
};

static struct direct begin(struct madmpi_coll *c)
{
	struct madmpi_lane *l = madmpi_node_lane(c, sizeof(struct place));
	struct direct d = { .c = c, .lane = l, .part = l->next++ };

	return d;
}

static struct getters all_others(const struct madmpi_coll *c)
{
	struct getters to = { .first = c->rank + 1, .n = c->size - 1 };

	return to;
}

static bool send_parts(struct direct *d, const struct madmpi_parts *p, bool one,
		       struct getters to)
{
	struct madmpi_coll *c = d->c;
	int peer;

	d->flight = calloc((size_t)c->size, sizeof(*d->flight));
	if (d->flight == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		return false;
	}
	for (int i = 0; i < to.n; i++) {
		peer = (to.first + i) % c->size;
		madmpi_coll_isend(c, &d->flight[peer],
				  madmpi_parts_at(p, one ? 0 : peer), p->count,
				  p->type, peer);
	}
	return true;
}

/* Equal parts, one for each rank; or one for all. */
static void give(struct direct *d, const struct madmpi_parts *p, bool one,
		 struct getters to)
{
	struct madmpi_slot *s = madmpi_node_take(d->c, d->lane, d->part);
	const struct madmpi_type *t = p->type;
	struct place place = {
		.at = (uintptr_t)p->base + (uintptr_t)t->true_lb,
		.stride = one ? 0 : p->count * madmpi_type_extent(t),
		.bytes = p->count * t->size,
	};

	if (!madmpi_type_is_flat(t, p->count))
		place.is_sent = send_parts(d, p, one, to);
	memcpy(s->data, &place, sizeof(place));
	madmpi_node_tell(d->c, s, d->part, sizeof(place));
}

/* Where the part for this process is. False: it is lost, or comes otherwise. */
static bool find(struct direct *d, int rank, MPI_Count expected,
		 struct place *place)
{
	struct madmpi_coll *c = d->c;
	struct madmpi_slot *s = madmpi_node_await(c, d->lane, rank, d->part);

	/* A slot may have what was in it before, or what is of another call. */
	memset(place, 0, sizeof(*place));
	if (likely(madmpi_node_is_written(c, s, d->part)))
		memcpy(place, s->data, sizeof(*place));
	place->at += (uint64_t)(place->stride * c->rank);
	madmpi_coll_check_bytes(c, place->bytes, expected);
	return c->error == 0;
}

static void read_from(struct madmpi_coll *c, int rank, uint64_t at,
		      const struct nm_data *to, MPI_Count bytes)
{
	int rc = nm_gate_read(c->gate[rank], to, 0, (size_t)bytes, at);

	/* It could be read: it is gone, or nmad knows that already. */
	if (rc == -ESRCH || rc == -ENOTSUP)
		rc = -ECONNRESET;
	if (rc < 0)
		madmpi_coll_fail(c, rc);
}

/* What a process gives this one. */
static void get(struct direct *d, int rank, void *buf, MPI_Count n,
		const struct madmpi_type *t)
{
	struct madmpi_coll *c = d->c;
	struct madmpi_layout layout;
	struct nm_data data;
	struct place place;
	bool found = find(d, rank, n * t->size, &place);

	if (place.is_sent) {
		madmpi_coll_recv(c, buf, n, t, rank);
	} else if (found) {
		data = madmpi_layout_data(&layout, buf, n, t);
		read_from(c, rank, place.at, &data, place.bytes);
	}
}

/* All that was given to these is there. */
static void given(struct direct *d, struct getters to)
{
	struct madmpi_coll *c = d->c;
	int peer;

	for (int i = 0; i < to.n; i++) {
		peer = (to.first + i) % c->size;
		madmpi_node_await_done(c, d->lane, peer, d->part);
		if (d->flight != NULL)
			madmpi_coll_wait(c, &d->flight[peer]);
	}
	if (to.n == c->size - 1)
		madmpi_lane_all_done(d->lane, d->part);
	madmpi_node_done(c, d->lane, d->part);
	free(d->flight);
}

static void got(struct direct *d)
{
	madmpi_node_done_now(d->c, d->lane, d->part);
}

void madmpi_bcast_direct(struct madmpi_coll *c, void *buf, MPI_Count n,
			 const struct madmpi_type *t, int root)
{
	struct madmpi_parts whole = { .base = buf,
				      .count = n,
				      .type = (struct madmpi_type *)t };
	struct direct d = begin(c);

	if (c->rank == root) {
		give(&d, &whole, true, all_others(c));
		given(&d, all_others(c));
	} else {
		get(&d, root, buf, n, t);
		got(&d);
	}
}

void madmpi_scatter_direct(struct madmpi_coll *c, const struct madmpi_parts *s,
			   const struct madmpi_parts *r, int root)
{
	struct direct d = begin(c);

	if (c->rank == root) {
		give(&d, s, false, all_others(c));
		given(&d, all_others(c));
	} else {
		get(&d, root, r->base, r->count, r->type);
		got(&d);
	}
}

void madmpi_allgather_direct(struct madmpi_coll *c,
			     const struct madmpi_parts *s,
			     const struct madmpi_parts *r)
{
	struct madmpi_parts own = {
		.base = madmpi_parts_at(r, c->rank),
		.count = r->count,
		.type = r->type,
	};
	struct direct d = begin(c);
	int peer;

	give(&d, s->base != MPI_IN_PLACE ? s : &own, true, all_others(c));
	for (int i = 1; i < c->size; i++) {
		peer = (c->rank + i) % c->size;
		get(&d, peer, madmpi_parts_at(r, peer), r->count, r->type);
	}
	got(&d);
	given(&d, all_others(c));
}

void madmpi_alltoall_direct(struct madmpi_coll *c, const struct madmpi_parts *s,
			    const struct madmpi_parts *r)
{
	struct direct d = begin(c);
	int peer;

	give(&d, s, false, all_others(c));
	for (int i = 1; i < c->size; i++) {
		peer = (c->rank + i) % c->size;
		get(&d, peer, madmpi_parts_at(r, peer), r->count, r->type);
	}
	got(&d);
	given(&d, all_others(c));
}

/* --- a reduction --- */

struct reduction {
	const char *from; /* the root's */
	char *to;         /* may be the same */
	MPI_Count n;
	struct madmpi_type *t;
	struct madmpi_op *op;
};

enum { PIECE = 32 * 1024 }; /* bytes that stay in the cache */

/*
 * Elements [first, first + n): from the last rank's to the first's, as with
 * shared memory. In place the own ones are put aside first.
 */
static void reduce_piece(struct direct *d, const struct reduction *r,
			 const struct place *place, MPI_Count first,
			 MPI_Count n, char *theirs, char *own)
{
	struct madmpi_coll *c = d->c;
	MPI_Count at = first * r->t->size, bytes = n * r->t->size;
	const char *mine = r->from + at, *from;
	int last = c->size - 1;
	struct nm_data data;
	char *to;

	if (r->from == r->to && c->rank != last)
		mine = memcpy(own, mine, (size_t)bytes);
	for (int i = last; i >= 0; i--) {
		from = mine;
		if (i != c->rank) {
			to = i == last ? r->to + at : theirs;
			data = nm_data_flat(to, (size_t)bytes);
			read_from(c, i, place[i].at + (uint64_t)at, &data,
				  bytes);
			from = to;
		}
		if (c->error != 0)
			return;
		if (i != last)
			madmpi_coll_apply(c, r->op, from, r->to + at, n, r->t);
		else if (from != r->to + at)
			memcpy(r->to + at, from, (size_t)bytes);
	}
}

static void reduce_all(struct direct *d, const struct reduction *r)
{
	struct madmpi_coll *c = d->c;
	MPI_Count most = PIECE / r->t->size, bytes = r->n * r->t->size;
	struct place *place = calloc((size_t)c->size, sizeof(*place));
	char *room = malloc(2 * PIECE);

	for (int i = 0; i < c->size; i++)
		if (i != c->rank && place != NULL)
			find(d, i, bytes, &place[i]);
	if (place == NULL || room == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	for (MPI_Count at = 0; at < r->n && c->error == 0; at += most)
		reduce_piece(d, r, place, at,
			     r->n - at < most ? r->n - at : most, room,
			     room + PIECE);
	free(place);
	free(room);
}

void madmpi_reduce_direct(struct madmpi_coll *c, const void *from, void *to,
			  MPI_Count n, struct madmpi_type *t,
			  struct madmpi_op *op, int root)
{
	struct madmpi_parts mine = { .base = (void *)(uintptr_t)from,
				     .count = n,
				     .type = t };
	struct reduction r = { from, to, n, t, op };
	struct getters the_root = { .first = root, .n = 1 };
	struct direct d = begin(c);

	if (c->rank == root) {
		reduce_all(&d, &r);
		got(&d);
	} else {
		give(&d, &mine, true, the_root);
		given(&d, the_root);
	}
}
