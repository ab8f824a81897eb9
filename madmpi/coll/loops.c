/*
 * The typed loops of the predefined reductions, one table per operation.
 *
 * Sums and products of signed integers are made in unsigned arithmetic, which
 * wraps where the signed one would be undefined.
 */
#include "coll/op.h"

#include <complex.h>
#include <stdint.h>

/* clang-format off */
#define LOOP(name, type, expression)                                           \
	static void name(const void *in, void *inout, MPI_Count n)             \
	{                                                                      \
		const type *a = in;                                            \
		type *b = inout;                                               \
                                                                               \
		for (MPI_Count i = 0; i < n; i++)                              \
			b[i] = (type)(expression);                             \
	}

/* Types with the unsigned type of at least the rank of int to compute in. */
#define INTEGERS(X, op)                                                        \
	X(op, I8, int8_t, unsigned) X(op, I16, int16_t, unsigned)              \
	X(op, I32, int32_t, uint32_t) X(op, I64, int64_t, uint64_t)            \
	X(op, I128, __int128, unsigned __int128)                               \
	X(op, U8, uint8_t, unsigned) X(op, U16, uint16_t, unsigned)            \
	X(op, U32, uint32_t, uint32_t) X(op, U64, uint64_t, uint64_t)

#define FLOATS(X, op)                                                          \
	X(op, F32, float, float) X(op, F64, double, double)                    \
	X(op, FLONG, long double, long double)

#define COMPLEXES(X, op)                                                       \
	X(op, C32, float _Complex, float _Complex)                             \
	X(op, C64, double _Complex, double _Complex)                           \
	X(op, CLONG, long double _Complex, long double _Complex)

#define LOGICALS(X, op)                                                        \
	X(op, BOOL, _Bool, _Bool) X(op, L8, int8_t, int8_t)                    \
	X(op, L16, int16_t, int16_t) X(op, L32, int32_t, int32_t)              \
	X(op, L64, int64_t, int64_t) X(op, L128, __int128, __int128)

#define SUM(op, name, type, wide)                                              \
	LOOP(op##_##name, type, (wide)a[i] + (wide)b[i])
#define PROD(op, name, type, wide)                                             \
	LOOP(op##_##name, type, (wide)a[i] * (wide)b[i])
#define MIN(op, name, type, wide)                                              \
	LOOP(op##_##name, type, a[i] < b[i] ? a[i] : b[i])
#define MAX(op, name, type, wide)                                              \
	LOOP(op##_##name, type, a[i] > b[i] ? a[i] : b[i])
#define BAND(op, name, type, wide) LOOP(op##_##name, type, a[i] & b[i])
#define BOR(op, name, type, wide)  LOOP(op##_##name, type, a[i] | b[i])
#define BXOR(op, name, type, wide) LOOP(op##_##name, type, a[i] ^ b[i])
#define LAND(op, name, type, wide) LOOP(op##_##name, type, a[i] && b[i])
#define LOR(op, name, type, wide)  LOOP(op##_##name, type, a[i] || b[i])
#define LXOR(op, name, type, wide) LOOP(op##_##name, type, !a[i] != !b[i])

#define SLOT(op, name, type, wide) [MADMPI_##name] = op##_##name,

INTEGERS(SUM, sum) FLOATS(SUM, sum) COMPLEXES(SUM, sum)
INTEGERS(PROD, prod) FLOATS(PROD, prod) COMPLEXES(PROD, prod)
INTEGERS(MIN, min) FLOATS(MIN, min)
INTEGERS(MAX, max) FLOATS(MAX, max)
INTEGERS(BAND, band) BAND(band, BYTES, uint8_t, unsigned)
INTEGERS(BOR, bor) BOR(bor, BYTES, uint8_t, unsigned)
INTEGERS(BXOR, bxor) BXOR(bxor, BYTES, uint8_t, unsigned)
INTEGERS(LAND, land) LOGICALS(LAND, land)
INTEGERS(LOR, lor) LOGICALS(LOR, lor)
INTEGERS(LXOR, lxor) LOGICALS(LXOR, lxor)

const madmpi_loop_fn madmpi_loops_sum[MADMPI_BASICS] = {
	INTEGERS(SLOT, sum) FLOATS(SLOT, sum) COMPLEXES(SLOT, sum)
};
const madmpi_loop_fn madmpi_loops_prod[MADMPI_BASICS] = {
	INTEGERS(SLOT, prod) FLOATS(SLOT, prod) COMPLEXES(SLOT, prod)
};
const madmpi_loop_fn madmpi_loops_min[MADMPI_BASICS] = {
	INTEGERS(SLOT, min) FLOATS(SLOT, min)
};
const madmpi_loop_fn madmpi_loops_max[MADMPI_BASICS] = {
	INTEGERS(SLOT, max) FLOATS(SLOT, max)
};
const madmpi_loop_fn madmpi_loops_band[MADMPI_BASICS] = {
	INTEGERS(SLOT, band) SLOT(band, BYTES, , )
};
const madmpi_loop_fn madmpi_loops_bor[MADMPI_BASICS] = {
	INTEGERS(SLOT, bor) SLOT(bor, BYTES, , )
};
const madmpi_loop_fn madmpi_loops_bxor[MADMPI_BASICS] = {
	INTEGERS(SLOT, bxor) SLOT(bxor, BYTES, , )
};
const madmpi_loop_fn madmpi_loops_land[MADMPI_BASICS] = {
	INTEGERS(SLOT, land) LOGICALS(SLOT, land)
};
const madmpi_loop_fn madmpi_loops_lor[MADMPI_BASICS] = {
	INTEGERS(SLOT, lor) LOGICALS(SLOT, lor)
};
const madmpi_loop_fn madmpi_loops_lxor[MADMPI_BASICS] = {
	INTEGERS(SLOT, lxor) LOGICALS(SLOT, lxor)
};

/* A value and an index; of equal values the lower index wins. */
#define LOC(op, name, v, x, before)                                            \
	static void op##_##name(const void *in, void *inout, MPI_Count n)      \
	{                                                                      \
		struct pair {                                                  \
			v value;                                               \
			x index;                                               \
		};                                                             \
		const struct pair *a = in;                                     \
		struct pair *b = inout;                                        \
                                                                               \
		for (MPI_Count i = 0; i < n; i++)                              \
			if (a[i].value before b[i].value ||                    \
			    (a[i].value == b[i].value &&                       \
			     a[i].index < b[i].index)) {                       \
				b[i].value = a[i].value;                       \
				b[i].index = a[i].index;                       \
			}                                                      \
	}

#define PAIRS(op, before)                                                      \
	LOC(op, FLOAT_I, float, int, before)                                   \
	LOC(op, DOUBLE_I, double, int, before)                                 \
	LOC(op, LONG_I, long, int, before)                                     \
	LOC(op, INT_I, int, int, before)                                       \
	LOC(op, SHORT_I, short, int, before)                                   \
	LOC(op, LDOUBLE_I, long double, int, before)                           \
	LOC(op, FLOAT_2, float, float, before)                                 \
	LOC(op, DOUBLE_2, double, double, before)

#define PAIR_SLOTS(op)                                                         \
	SLOT(op, FLOAT_I, , ) SLOT(op, DOUBLE_I, , ) SLOT(op, LONG_I, , )      \
	SLOT(op, INT_I, , ) SLOT(op, SHORT_I, , ) SLOT(op, LDOUBLE_I, , )      \
	SLOT(op, FLOAT_2, , ) SLOT(op, DOUBLE_2, , )

PAIRS(minloc, <)
PAIRS(maxloc, >)

const madmpi_loop_fn madmpi_loops_minloc[MADMPI_BASICS] = {
	PAIR_SLOTS(minloc)
};
const madmpi_loop_fn madmpi_loops_maxloc[MADMPI_BASICS] = {
	PAIR_SLOTS(maxloc)
};
/* clang-format on */

/* MPI_REPLACE and MPI_NO_OP are for one-sided communication only. */
const madmpi_loop_fn madmpi_loops_none[MADMPI_BASICS];
