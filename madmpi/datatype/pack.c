/*
 * Running the program of a type: the walk that nmad uses to send from and to
 * receive into memory that is not one piece, where it does not copy (copy.c).
 */
#include <errno.h>

#include <base/diag.h>

#include "datatype/copy.h"

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
	uint32_t low = madmpi_step_find(s, n, &c->skip);
	int rc = 0;

	for (; low < n && c->left > 0 && rc == 0; low++)
		rc = walk_step(&s[low], base, c);
	return rc;
}

/* n blocks from number `first` on. */
static int walk_blocks(const struct madmpi_step *s, uintptr_t base,
		       MPI_Count first, MPI_Count n, struct cursor *c)
{
	MPI_Count bytes;
	MPI_Aint at;
	int rc = 0;

	for (MPI_Count i = first; i < first + n && c->left > 0 && rc == 0;
	     i++) {
		at = s->places != NULL ? s->places[i] : i * s->stride;
		bytes = s->size - c->skip;
		if (bytes > c->left)
			bytes = c->left;
		rc = c->each(c->arg, (void *)(base + (uintptr_t)(at + c->skip)),
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
	uintptr_t at = base + (uintptr_t)s->disp;
	int rc = 0;

	c->skip -= first * s->size;
	if (s->body == NULL)
		return walk_blocks(s, at, first, n, c);
	at += (uintptr_t)(first * s->stride);
	for (; n > 0 && c->left > 0 && rc == 0; n--, at += (uintptr_t)s->stride)
		rc = walk_list(s->body, s->nbody, at, c);
	return rc;
}

int madmpi_layout_walk(const void *what, size_t offset, size_t length,
		       nm_piece_fn each, void *arg)
{
	const struct madmpi_layout *l = what;
	struct madmpi_step all = madmpi_type_step(l->type, 0, l->count);
	struct cursor c = { .skip = l->start + (MPI_Count)offset,
			    .left = (MPI_Count)length,
			    .each = each,
			    .arg = arg };

	return length > 0 ? walk_step(&all, l->base, &c) : 0;
}

static const struct nm_walker walker = { madmpi_layout_walk,
					 madmpi_layout_copy };

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
	d.kind = NM_DATA_COPY;
	d.length = (size_t)bytes;
	d.what = layout;
	d.walker = &walker;
	return d;
}

int madmpi_type_bytes(const struct madmpi_type *t, MPI_Count count,
		      MPI_Count *out)
{
	return __builtin_mul_overflow(t->size, count, out) ? -EOVERFLOW : 0;
}

void madmpi_pack_bytes(const void *base, MPI_Count count,
		       const struct madmpi_type *t, void *to)
{
	struct madmpi_layout l = { (uintptr_t)base, count, t, 0 };

	madmpi_layout_copy(&l, 0, (size_t)(count * t->size), to, false);
}

void madmpi_unpack_bytes(const void *from, void *base, MPI_Count count,
			 const struct madmpi_type *t)
{
	struct madmpi_layout l = { (uintptr_t)base, count, t, 0 };

	madmpi_layout_copy(&l, 0, (size_t)(count * t->size), (void *)from,
			   true);
}

/* Between two layouts in pieces, a little at a time. */
void madmpi_copy_bytes(const void *from, MPI_Count nfrom,
		       const struct madmpi_type *from_type, void *to,
		       MPI_Count nto, const struct madmpi_type *to_type)
{
	struct madmpi_layout l = { (uintptr_t)from, nfrom, from_type, 0 };
	struct madmpi_layout target = { (uintptr_t)to, nto, to_type, 0 };
	size_t bytes = (size_t)(nfrom * from_type->size), done, n;
	char stage[4096];

	base_assert((MPI_Count)bytes <= nto * to_type->size);
	if (bytes == 0)
		return;
	if (madmpi_type_is_flat(from_type, nfrom)) {
		madmpi_layout_copy(
			&target, 0, bytes,
			(void *)piece_at(from, from_type->steps->disp), true);
		return;
	}
	if (madmpi_type_is_flat(to_type, nto)) {
		madmpi_layout_copy(&l, 0, bytes,
				   (void *)piece_at(to, to_type->steps->disp),
				   false);
		return;
	}
	for (done = 0; done < bytes; done += n) {
		n = bytes - done < sizeof(stage) ? bytes - done : sizeof(stage);
		madmpi_layout_copy(&l, done, n, stage, false);
		madmpi_layout_copy(&target, done, n, stage, true);
	}
}
