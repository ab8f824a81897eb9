/*
 * MPI_MINLOC and MPI_MAXLOC on pairs that have no name: the value is of any
 * type of numbers, the index of any type of integers.
 */
#include "coll/op.h"

#include <string.h>

/* clang-format off */
#define COMPARE(name, c)                                                       \
	case MADMPI_##name: {                                                  \
		c x, y;                                                        \
                                                                               \
		memcpy(&x, a, sizeof(x));                                      \
		memcpy(&y, b, sizeof(y));                                      \
		*equal = x == y;                                               \
		return x < y;                                                  \
	}
/* clang-format on */

/* Whether *a < *b, and whether they are equal; a NaN is neither. */
static bool is_less(enum madmpi_basic basic, const void *a, const void *b,
		    bool *equal)
{
	switch (basic) {
		COMPARE(I8, int8_t)
		COMPARE(I16, int16_t)
		COMPARE(I32, int32_t)
		COMPARE(I64, int64_t)
		COMPARE(I128, __int128)
		COMPARE(U8, uint8_t)
		COMPARE(U16, uint16_t)
		COMPARE(U32, uint32_t)
		COMPARE(U64, uint64_t)
		COMPARE(F32, float)
		COMPARE(F64, double)
		COMPARE(FLONG, long double)
	default:
		*equal = false;
		return false;
	}
}

void madmpi_pairs_apply(const struct madmpi_op *op, const char *in, char *inout,
			MPI_Count n, const struct madmpi_type *t)
{
	const struct madmpi_type *value = t->contents->types[0];
	const struct madmpi_type *index = t->contents->types[1];
	MPI_Count extent = madmpi_type_extent(t);
	MPI_Count offset = t->true_ub - index->size;
	bool wins, equal, same;

	for (; n > 0; n--, in += extent, inout += extent) {
		wins = op->loops == madmpi_loops_minloc
			       ? is_less(value->basic, in, inout, &equal)
			       : is_less(value->basic, inout, in, &equal);
		if (equal)
			wins = is_less(index->basic, in + offset,
				       inout + offset, &same);
		if (!wins)
			continue;
		memcpy(inout, in, (size_t)value->size);
		memcpy(inout + offset, in + offset, (size_t)index->size);
	}
}
