/*
 * Combining elements: in place where they lie as operations want them, else a
 * few at a time, in memory where they do.
 */
#include "rma/combine.h"

#include <string.h>

struct madmpi_op *madmpi_rma_replace(void)
{
	return madmpi_op_of(MPI_REPLACE);
}

struct madmpi_op *madmpi_rma_no_op(void)
{
	return madmpi_op_of(MPI_NO_OP);
}

bool madmpi_rma_op_takes(const struct madmpi_op *op,
			 const struct madmpi_type *elem)
{
	if (op->loops == NULL)
		return false;
	return op == madmpi_rma_replace() || op == madmpi_rma_no_op() ||
	       madmpi_op_takes(op, elem);
}

enum { STAGE = 2048 };

/* A few elements, as an operation wants them. */
struct stage {
	_Alignas(64) char bytes[STAGE];
};

/* Packed elements are not what a struct of C is, if there is padding. */
static bool is_dense(const struct madmpi_type *elem)
{
	return elem->size == madmpi_type_extent(elem);
}

static bool is_aligned(const void *p, const struct madmpi_type *elem)
{
	return (uintptr_t)p % (uintptr_t)elem->align == 0;
}

/* n packed elements, to where an operation can have them. */
static const void *unpacked(struct madmpi_type *elem, const char *packed,
			    MPI_Count n, struct stage *s)
{
	if (is_dense(elem) && is_aligned(packed, elem))
		return packed;
	if (is_dense(elem))
		memcpy(s->bytes, packed, (size_t)(n * elem->size));
	else
		madmpi_unpack_bytes(packed, s->bytes, n, elem);
	return s->bytes;
}

/* Some elements, of `there` from byte `at` on. */
static void combine_some(const struct madmpi_op *op, struct madmpi_type *elem,
			 const char *in, const struct nm_data *there, size_t at,
			 MPI_Count n)
{
	size_t bytes = (size_t)(n * elem->size);
	struct stage flat, left, right;

	nm_data_copy_out(there, at, flat.bytes, bytes);
	if (is_dense(elem)) {
		madmpi_op_apply(op, unpacked(elem, in + at, n, &left),
				flat.bytes, n, elem);
	} else {
		madmpi_unpack_bytes(flat.bytes, right.bytes, n, elem);
		madmpi_op_apply(op, unpacked(elem, in + at, n, &left),
				right.bytes, n, elem);
		madmpi_pack_bytes(right.bytes, n, elem, flat.bytes);
	}
	nm_data_copy_in(there, at, flat.bytes, bytes);
}

static void combine_all(const struct madmpi_op *op, struct madmpi_type *elem,
			const char *in, const struct nm_data *there,
			size_t bytes)
{
	MPI_Count n = (MPI_Count)bytes / elem->size;
	MPI_Count most = STAGE / madmpi_type_extent(elem), some;

	if (there->kind == NM_DATA_FLAT && is_dense(elem) &&
	    is_aligned(there->base, elem) && is_aligned(in, elem)) {
		madmpi_op_apply(op, in, there->base, n, elem);
		return;
	}
	for (MPI_Count i = 0; i < n; i += some) {
		some = n - i < most ? n - i : most;
		combine_some(op, elem, in, there, (size_t)(i * elem->size),
			     some);
	}
}

void madmpi_rma_combine(const struct madmpi_op *op, struct madmpi_type *elem,
			const void *in, const struct nm_data *there,
			size_t bytes, void *before)
{
	if (before != NULL)
		nm_data_copy_out(there, 0, before, bytes);
	if (op == madmpi_rma_replace())
		nm_data_copy_in(there, 0, in, bytes);
	else if (op != madmpi_rma_no_op())
		combine_all(op, elem, in, there, bytes);
}

void madmpi_rma_swap(struct madmpi_type *elem, const void *compare,
		     const void *new, const struct nm_data *there, void *before)
{
	size_t bytes = (size_t)elem->size;

	nm_data_copy_out(there, 0, before, bytes);
	if (memcmp(before, compare, bytes) == 0)
		nm_data_copy_in(there, 0, new, bytes);
}
