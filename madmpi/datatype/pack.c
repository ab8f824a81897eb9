/*
 * Running the program of a type: the walk that nmad uses to send from and to
 * receive into memory that is not one piece, and copies on top of it.
 */
#include "datatype/type.h"

#include <errno.h>
#include <string.h>

#include <base/diag.h>

/* Where a walk is: so many bytes to pass over, so many to visit. */
struct cursor {
	MPI_Count skip;
	MPI_Count left;
	nm_piece_fn each;
	void *arg;
};

static int walk_step(const struct madmpi_step *s, uintptr_t base,
		     struct cursor *c);

/* The steps of a list, beginning with the one that holds byte `skip`. */
static int walk_list(const struct madmpi_step *s, uint32_t n, uintptr_t base,
		     struct cursor *c)
{
	uint32_t low = 0, high = n, middle;
	int rc = 0;

	while (c->skip > 0 && high - low > 1) {
		middle = low + (high - low) / 2;
		if (s[middle].before <= c->skip)
			low = middle;
		else
			high = middle;
	}
	c->skip -= s[low].before;
	for (; low < n && c->left > 0 && rc == 0; low++)
		rc = walk_step(&s[low], base, c);
	return rc;
}

static int walk_blocks(const struct madmpi_step *s, uintptr_t at, MPI_Count n,
		       struct cursor *c)
{
	MPI_Count bytes;
	int rc = 0;

	for (; n > 0 && c->left > 0 && rc == 0;
	     n--, at += (uintptr_t)s->stride) {
		bytes = s->size - c->skip;
		if (bytes > c->left)
			bytes = c->left;
		rc = c->each(c->arg, (void *)(at + (uintptr_t)c->skip),
			     (size_t)bytes);
		c->left -= bytes;
		c->skip = 0;
	}
	return rc;
}

static int walk_step(const struct madmpi_step *s, uintptr_t base,
		     struct cursor *c)
{
	MPI_Count first = c->skip / s->size, n = s->count - first;
	uintptr_t at = base + (uintptr_t)(s->disp + first * s->stride);
	int rc = 0;

	c->skip -= first * s->size;
	if (s->body == NULL)
		return walk_blocks(s, at, n, c);
	for (; n > 0 && c->left > 0 && rc == 0; n--, at += (uintptr_t)s->stride)
		rc = walk_list(s->body, s->nbody, at, c);
	return rc;
}

/* nm_walk_fn */
static int walk(const void *what, size_t offset, size_t length,
		nm_piece_fn each, void *arg)
{
	const struct madmpi_layout *l = what;
	struct madmpi_step all = {
		.stride = madmpi_type_extent(l->type),
		.count = l->count,
		.size = l->type->size,
		.body = l->type->steps,
		.nbody = l->type->nsteps,
	};
	struct cursor c = { .skip = l->start + (MPI_Count)offset,
			    .left = (MPI_Count)length,
			    .each = each,
			    .arg = arg };

	return length > 0 ? walk_step(&all, l->base, &c) : 0;
}

/* Base may be MPI_BOTTOM, so addresses are added as numbers. */
static const void *piece_at(const void *base, MPI_Aint disp)
{
	return (const void *)((uintptr_t)base + (uintptr_t)disp);
}

struct nm_data madmpi_layout_data(struct madmpi_layout *layout,
				  const void *base, MPI_Count count,
				  const struct madmpi_type *t)
{
	return madmpi_layout_slice(layout, base, count, t, 0, count * t->size);
}

struct nm_data madmpi_layout_slice(struct madmpi_layout *layout,
				   const void *base, MPI_Count count,
				   const struct madmpi_type *t, MPI_Count from,
				   MPI_Count bytes)
{
	struct nm_data d = nm_data_flat(base, 0);

	if (bytes == 0)
		return d;
	if (likely(madmpi_type_is_flat(t, count)))
		return nm_data_flat(piece_at(base, t->steps->disp + from),
				    (size_t)bytes);
	layout->base = (uintptr_t)base;
	layout->count = count;
	layout->type = t;
	layout->start = from;
	d.kind = NM_DATA_WALK;
	d.length = (size_t)bytes;
	d.what = layout;
	d.walk = walk;
	return d;
}

int madmpi_type_bytes(const struct madmpi_type *t, MPI_Count count,
		      MPI_Count *out)
{
	return __builtin_mul_overflow(t->size, count, out) ? -EOVERFLOW : 0;
}

static int pack_piece(void *arg, void *piece, size_t bytes)
{
	char **to = arg;

	memcpy(*to, piece, bytes);
	*to += bytes;
	return 0;
}

static int unpack_piece(void *arg, void *piece, size_t bytes)
{
	const char **from = arg;

	memcpy(piece, *from, bytes);
	*from += bytes;
	return 0;
}

void madmpi_pack_bytes(const void *base, MPI_Count count,
		       const struct madmpi_type *t, void *to)
{
	struct madmpi_layout l = { (uintptr_t)base, count, t, 0 };

	walk(&l, 0, (size_t)(count * t->size), pack_piece, &to);
}

void madmpi_unpack_bytes(const void *from, void *base, MPI_Count count,
			 const struct madmpi_type *t)
{
	struct madmpi_layout l = { (uintptr_t)base, count, t, 0 };

	walk(&l, 0, (size_t)(count * t->size), unpack_piece, &from);
}

/* Copying between layouts: for each piece of the source, walk the target. */
struct copy {
	const struct madmpi_layout *to;
	size_t done;
};

static int copy_piece(void *arg, void *piece, size_t bytes)
{
	struct copy *c = arg;
	const char *from = piece;

	walk(c->to, c->done, bytes, unpack_piece, &from);
	c->done += bytes;
	return 0;
}

void madmpi_copy_bytes(const void *from, MPI_Count nfrom,
		       const struct madmpi_type *from_type, void *to,
		       MPI_Count nto, const struct madmpi_type *to_type)
{
	struct madmpi_layout l = { (uintptr_t)from, nfrom, from_type, 0 };
	struct madmpi_layout target = { (uintptr_t)to, nto, to_type, 0 };
	struct copy c = { &target, 0 };

	base_assert(nfrom * from_type->size <= nto * to_type->size);
	walk(&l, 0, (size_t)(nfrom * from_type->size), copy_piece, &c);
}
