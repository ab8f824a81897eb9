/*
 * Collective operations through the memory of a node (node.h).
 *
 * What a process gives lies in its slot, and all who need it read it there.
 * Reductions go from the last rank to the first in every process and for every
 * element: the result is the same everywhere and for each way to cut the data,
 * and operations which do not commute come out right.
 */
#include <errno.h>
#include <string.h>

#include "coll/node.h"

static MPI_Count least(MPI_Count a, MPI_Count b)
{
	return a < b ? a : b;
}

/* A part without data, of another process. */
static void await_nothing(struct madmpi_coll *c, struct madmpi_lane *l,
			  int rank, uint64_t part)
{
	struct madmpi_slot *s = madmpi_node_await(c, l, rank, part);

	madmpi_coll_check_bytes(c, s->bytes, 0);
}

void madmpi_barrier_shared(struct madmpi_coll *c)
{
	struct madmpi_lane *l = madmpi_node_lane(c, 0);
	uint64_t part = l->next++;

	madmpi_node_tell(c, madmpi_node_take(c, l, part), part, 0);
	for (int i = 1; i < c->size; i++)
		await_nothing(c, l, (c->rank + i) % c->size, part);
	madmpi_lane_all_done(l, part - 1);
	madmpi_node_done(c, l, part);
}

/* --- from one to all --- */

/* Bytes [from, from + bytes) of a buffer: into memory, or from there. */
static void move(const struct madmpi_coll *c, void *buf, MPI_Count n,
		 const struct madmpi_type *t, MPI_Count from, char *memory,
		 MPI_Count bytes, bool in)
{
	struct madmpi_layout l;
	struct nm_data d;
	char *at;

	if (unlikely(c->error != 0))
		return;
	if (madmpi_type_is_flat(t, n)) {
		at = (char *)((uintptr_t)buf + (uintptr_t)t->true_lb) + from;
		memcpy(in ? at : memory, in ? memory : at, (size_t)bytes);
		return;
	}
	d = madmpi_layout_slice(&l, buf, n, t, from, bytes);
	if (in)
		nm_data_copy_in(&d, 0, memory, (size_t)bytes);
	else
		nm_data_copy_out(&d, 0, memory, (size_t)bytes);
}

/* A slot of another process, into a buffer. */
static void move_in(struct madmpi_coll *c, const struct madmpi_slot *s,
		    const char *data, void *buf, MPI_Count n,
		    const struct madmpi_type *t, MPI_Count from,
		    MPI_Count bytes)
{
	madmpi_coll_check_bytes(c, s->bytes, bytes);
	move(c, buf, n, t, from, (char *)(uintptr_t)data,
	     least(s->bytes, bytes), true);
}

/* The root is ahead by as many parts as there are slots. */
void madmpi_bcast_shared(struct madmpi_coll *c, void *buf, MPI_Count n,
			 const struct madmpi_type *t, int root)
{
	MPI_Count bytes = n * t->size, from = 0, here, most;
	struct madmpi_lane *l = madmpi_node_lane(c, bytes);
	struct madmpi_slot *s;
	uint64_t part;

	most = madmpi_node_piece(c, l);
	do {
		part = l->next++;
		here = least(bytes - from, most);
		if (c->rank == root) {
			s = madmpi_node_take(c, l, part);
			move(c, buf, n, t, from, s->data, here, false);
			madmpi_node_tell(c, s, part, here);
		} else {
			s = madmpi_node_await(c, l, root, part);
			move_in(c, s, s->data, buf, n, t, from, here);
		}
		madmpi_node_done(c, l, part);
		from += most;
	} while (from < bytes);
}

/* The root has pieces of all parts in a slot, one after the other. */
void madmpi_scatter_shared(struct madmpi_coll *c, const struct madmpi_parts *s,
			   const struct madmpi_parts *r, int root)
{
	const struct madmpi_parts *known = c->rank == root ? s : r;
	MPI_Count bytes = known->count * known->type->size, from, here, most;
	struct madmpi_lane *l = madmpi_node_lane(c, bytes * c->size);
	struct madmpi_slot *slot;
	uint64_t part;

	most = l->bytes / c->size;
	for (from = 0; from < bytes; from += most) {
		part = l->next++;
		here = least(bytes - from, most);
		if (c->rank == root) {
			slot = madmpi_node_take(c, l, part);
			for (int i = 0; i < c->size; i++)
				if (i != root)
					move(c, madmpi_parts_at(s, i), s->count,
					     s->type, from,
					     slot->data + i * here, here,
					     false);
			madmpi_node_tell(c, slot, part, here);
		} else {
			slot = madmpi_node_await(c, l, root, part);
			move_in(c, slot, slot->data + c->rank * slot->bytes,
				r->base, r->count, r->type, from, here);
		}
		madmpi_node_done(c, l, part);
	}
}

/* --- from all to one --- */

/* All others are ahead by as many parts as there are slots. */
void madmpi_gather_shared(struct madmpi_coll *c, const struct madmpi_parts *s,
			  const struct madmpi_parts *r, int root)
{
	const struct madmpi_parts *known = c->rank == root ? r : s;
	MPI_Count bytes = known->count * known->type->size, from, here, most;
	struct madmpi_lane *l = madmpi_node_lane(c, bytes);
	struct madmpi_slot *slot;
	uint64_t part;
	int peer;

	most = madmpi_node_piece(c, l);
	for (from = 0; from < bytes; from += most) {
		part = l->next++;
		here = least(bytes - from, most);
		if (c->rank != root) {
			slot = madmpi_node_take(c, l, part);
			move(c, s->base, s->count, s->type, from, slot->data,
			     here, false);
			madmpi_node_tell(c, slot, part, here);
		}
		for (int i = 1; c->rank == root && i < c->size; i++) {
			peer = (root + i) % c->size;
			slot = madmpi_node_await(c, l, peer, part);
			move_in(c, slot, slot->data, madmpi_parts_at(r, peer),
				r->count, r->type, from, here);
		}
		madmpi_node_done(c, l, part);
	}
}

/* --- reductions --- */

/* One of n elements, without gaps between them. */
struct reduction {
	struct madmpi_coll *c;
	struct madmpi_lane *lane;
	const char *from; /* mine */
	char *to;         /* the result's; may be the same */
	MPI_Count n;
	struct madmpi_type *t;
	struct madmpi_op *op;
	int root; /* who gets the result, or ALL */
};

enum {
	ALL = -1,
	/* Bytes that whoever gets them reduces alone. */
	LITTLE_TO_ALL = 4 * 1024,
	LITTLE_TO_ONE = 16 * 1024, /* for whom the others need not wait */
};

static bool gets_it(const struct reduction *r)
{
	return r->root == ALL || r->root == r->c->rank;
}

/*
 * Little: each has all of it in a slot, and who gets the result reduces it. In
 * place it overwrites what it gives itself.
 */
static void reduce_little(const struct reduction *r)
{
	struct madmpi_coll *c = r->c;
	size_t bytes = (size_t)(r->n * r->t->size);
	uint64_t part = r->lane->next++;
	const char *mine = r->from, *from;
	struct madmpi_slot *s;

	if (r->root != c->rank || r->from == r->to) {
		s = madmpi_node_take(c, r->lane, part);
		memcpy(s->data, r->from, bytes);
		mine = s->data;
		if (r->root != c->rank)
			madmpi_node_tell(c, s, part, (MPI_Count)bytes);
	}
	for (int i = c->size - 1; gets_it(r) && i >= 0; i--) {
		from = mine;
		if (i != c->rank) {
			s = madmpi_node_await(c, r->lane, i, part);
			madmpi_coll_check_bytes(c, s->bytes, (MPI_Count)bytes);
			from = s->data;
		}
		if (c->error != 0)
			continue;
		if (i == c->size - 1)
			memcpy(r->to, from, bytes);
		else
			madmpi_coll_apply(c, r->op, from, r->to, r->n, r->t);
	}
	if (r->root == ALL)
		madmpi_lane_all_done(r->lane, part - 1);
	madmpi_node_done(c, r->lane, part);
}

/*
 * Much is cut into pieces, and each piece into a slice for each process. The
 * last rank's slot holds a whole piece, and becomes the result: each process
 * adds to its slice there what all the others have given.
 *
 *     give     the slices of the others, and the last rank its own too
 *     reduce   mine, in the last rank's slot; then another part, of no data
 *     collect  the whole piece, where the result is wanted
 *
 * The next piece is given before this one is reduced, so that few wait:
 *
 *     give 0, give 1, reduce 0, collect 0, give 2, reduce 1, collect 1, ...
 *
 * When all have given piece j, all have reduced and collected j - 2.
 */
struct piece {
	MPI_Count first, n, each; /* elements; of a slice, but for the last */
	uint64_t given, reduced;  /* parts */
};

enum { NPIECES = 2 };

static MPI_Count slice(const struct piece *p, int i, MPI_Count *n)
{
	MPI_Count at = least(i * p->each, p->n);

	*n = least(p->each, p->n - at);
	return at;
}

static void give(const struct reduction *r, struct piece *p, MPI_Count first,
		 MPI_Count most)
{
	struct madmpi_coll *c = r->c;
	MPI_Count size = r->t->size, at, n;
	const char *from = r->from + first * size;
	struct madmpi_slot *s;

	p->first = first;
	p->n = least(most, r->n - first);
	p->each = (p->n + c->size - 1) / c->size;
	p->given = r->lane->next++;
	s = madmpi_node_take(c, r->lane, p->given);
	/* What lies before my slice, and behind it. */
	at = slice(p, c->rank, &n);
	if (c->rank == c->size - 1)
		n = 0;
	memcpy(s->data, from, (size_t)(at * size));
	at += n;
	memcpy(s->data + at * size, from + at * size,
	       (size_t)((p->n - at) * size));
	madmpi_node_tell(c, s, p->given, p->n * size);
}

static void reduce(const struct reduction *r, struct piece *p)
{
	struct madmpi_coll *c = r->c;
	MPI_Count size = r->t->size, n, at = slice(p, c->rank, &n) * size;
	int last = c->size - 1;
	char *result = madmpi_node_slot(r->lane, last, p->given)->data + at;
	const struct madmpi_slot *s;
	const char *other;

	for (int i = last; i >= 0; i--) {
		other = r->from + p->first * size + at;
		if (i != c->rank) {
			s = madmpi_node_await(c, r->lane, i, p->given);
			madmpi_coll_check_bytes(c, s->bytes, p->n * size);
			other = s->data + at;
		}
		if (i != last && likely(c->error == 0))
			madmpi_coll_apply(c, r->op, other, result, n, r->t);
	}
	p->reduced = r->lane->next++;
	madmpi_node_tell(c, madmpi_node_take(c, r->lane, p->reduced),
			 p->reduced, 0);
}

static void collect(const struct reduction *r, const struct piece *p)
{
	struct madmpi_coll *c = r->c;
	MPI_Count size = r->t->size, at, n;
	const char *result =
		madmpi_node_slot(r->lane, c->size - 1, p->given)->data;
	char *to = r->to + p->first * size;

	for (int i = 0; i < c->size; i++) {
		at = slice(p, i, &n) * size;
		if (i != c->rank)
			await_nothing(c, r->lane, i, p->reduced);
		if (likely(c->error == 0))
			memcpy(to + at, result + at, (size_t)(n * size));
	}
}

static void reduce_much(const struct reduction *r)
{
	struct madmpi_lane *l = r->lane;
	MPI_Count most = madmpi_node_piece(r->c, l) / r->t->size, next = 0;
	uint64_t done = l->next - 1;
	struct piece piece[NPIECES], *p;

	give(r, &piece[0], 0, most);
	for (unsigned j = 0; next < r->n; j++) {
		p = &piece[j % NPIECES];
		next += most;
		if (next < r->n)
			give(r, &piece[(j + 1) % NPIECES], next, most);
		reduce(r, p);
		madmpi_lane_all_done(l, done);
		if (gets_it(r))
			collect(r, p);
		done = p->given - 1;
		madmpi_node_done(r->c, l, p->given);
	}
	madmpi_node_done(r->c, l, l->next - 1);
}

static void run(struct reduction *r)
{
	MPI_Count bytes = r->n * r->t->size;

	r->lane = madmpi_node_lane(r->c, bytes);
	if (bytes <= (r->root == ALL ? LITTLE_TO_ALL : LITTLE_TO_ONE))
		reduce_little(r);
	else
		reduce_much(r);
}

void madmpi_reduce_shared(struct madmpi_coll *c, const void *from, void *to,
			  MPI_Count n, struct madmpi_type *t,
			  struct madmpi_op *op, int root)
{
	struct reduction r = { c, NULL, from, to, n, t, op, root };

	run(&r);
}

void madmpi_allreduce_shared(struct madmpi_coll *c, const void *from, void *to,
			     MPI_Count n, struct madmpi_type *t,
			     struct madmpi_op *op)
{
	struct reduction r = { c, NULL, from, to, n, t, op, ALL };

	run(&r);
}

/* --- from all to all --- */

/* n elements of each, whose own ones are in buf. */
void madmpi_allgather_shared(struct madmpi_coll *c, void *buf, MPI_Count n,
			     struct madmpi_type *t)
{
	MPI_Count bytes = n * t->size, from, here, most;
	struct madmpi_lane *l = madmpi_node_lane(c, bytes);
	struct madmpi_slot *s;
	uint64_t part;
	int peer;

	most = madmpi_node_piece(c, l);
	for (from = 0; from < bytes; from += most) {
		part = l->next++;
		here = least(bytes - from, most);
		s = madmpi_node_take(c, l, part);
		move(c, madmpi_at(buf, c->rank * n, t), n, t, from, s->data,
		     here, false);
		madmpi_node_tell(c, s, part, here);
		for (int i = 1; i < c->size; i++) {
			peer = (c->rank + i) % c->size;
			s = madmpi_node_await(c, l, peer, part);
			move_in(c, s, s->data, madmpi_at(buf, peer * n, t), n,
				t, from, here);
		}
		madmpi_lane_all_done(l, part - 1);
		madmpi_node_done(c, l, part);
	}
}

/* Bytes [from, from + bytes) of all parts, those of a process in one slot. */
static void swap(struct madmpi_coll *c, struct madmpi_lane *l,
		 const struct madmpi_parts *s, const struct madmpi_parts *r,
		 MPI_Count from, MPI_Count bytes)
{
	uint64_t part = l->next++;
	struct madmpi_slot *slot = madmpi_node_take(c, l, part);
	int peer;

	for (int i = 0; i < c->size; i++)
		if (i != c->rank)
			move(c, madmpi_parts_at(s, i), s->count, s->type, from,
			     slot->data + i * bytes, bytes, false);
	madmpi_node_tell(c, slot, part, bytes);
	for (int i = 1; i < c->size; i++) {
		peer = (c->rank + i) % c->size;
		slot = madmpi_node_await(c, l, peer, part);
		move_in(c, slot, slot->data + c->rank * slot->bytes,
			madmpi_parts_at(r, peer), r->count, r->type, from,
			bytes);
	}
	madmpi_lane_all_done(l, part - 1);
	madmpi_node_done(c, l, part);
}

void madmpi_alltoall_shared(struct madmpi_coll *c, const struct madmpi_parts *s,
			    const struct madmpi_parts *r)
{
	MPI_Count bytes = r->count * r->type->size;
	struct madmpi_lane *l = madmpi_node_lane(c, bytes * c->size);
	MPI_Count most = l->bytes / c->size;

	for (MPI_Count from = 0; from < bytes; from += most)
		swap(c, l, s, r, from, least(bytes - from, most));
	if (s->base != r->base)
		madmpi_coll_copy(c, madmpi_parts_at(s, c->rank), s->count,
				 s->type, madmpi_parts_at(r, c->rank), r->count,
				 r->type);
}
