/*
 * The predefined datatypes, found by the number in their handle.
 *
 * Fortran's types have the sizes of a compiler's defaults: INTEGER, REAL and
 * LOGICAL 4 bytes, DOUBLE PRECISION 8. On types of 16-bit and 128-bit floating
 * point (REAL2, REAL16 and their complex ones) no operation is defined, and
 * MPI_CHAR counts as an integer, as elsewhere, though the standard says it
 * need not. MPI_LB and MPI_UB of MPI-1 are still there for old programs.
 */
#include "datatype/type.h"

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include <mpi-compat.h>

#include "datatype/build.h"
#include "datatype/signature.h"

#define AT(handle) ((uintptr_t)(handle) - (uintptr_t)MPI_DATATYPE_NULL)

#define SIGNED(c)                                                              \
	(sizeof(c) == 2 ? MADMPI_I16 : sizeof(c) == 4 ? MADMPI_I32 : MADMPI_I64)
#define UNSIGNED(c)                                                            \
	(sizeof(c) == 2 ? MADMPI_U16 : sizeof(c) == 4 ? MADMPI_U32 : MADMPI_U64)

static const struct {
	MPI_Datatype handle;
	const char *name;
	enum madmpi_basic basic;
	unsigned char size, align;
} simple[] = {
/* clang-format off */
#define T(handle, c, basic) { handle, #handle, basic, sizeof(c), _Alignof(c) }
	T(MPI_AINT, MPI_Aint, SIGNED(MPI_Aint)),
	T(MPI_COUNT, MPI_Count, SIGNED(MPI_Count)),
	T(MPI_OFFSET, MPI_Offset, SIGNED(MPI_Offset)),
	T(MPI_PACKED, char, MADMPI_RAW),
	T(MPI_SHORT, short, SIGNED(short)),
	T(MPI_INT, int, SIGNED(int)),
	T(MPI_LONG, long, SIGNED(long)),
	T(MPI_LONG_LONG_INT, long long, SIGNED(long long)),
	T(MPI_UNSIGNED_SHORT, unsigned short, UNSIGNED(unsigned short)),
	T(MPI_UNSIGNED, unsigned, UNSIGNED(unsigned)),
	T(MPI_UNSIGNED_LONG, unsigned long, UNSIGNED(unsigned long)),
	T(MPI_UNSIGNED_LONG_LONG, unsigned long long, UNSIGNED(unsigned long long)),
	T(MPI_FLOAT, float, MADMPI_F32),
	T(MPI_C_COMPLEX, float _Complex, MADMPI_C32),
	T(MPI_CXX_FLOAT_COMPLEX, float _Complex, MADMPI_C32),
	T(MPI_DOUBLE, double, MADMPI_F64),
	T(MPI_C_DOUBLE_COMPLEX, double _Complex, MADMPI_C64),
	T(MPI_CXX_DOUBLE_COMPLEX, double _Complex, MADMPI_C64),
	T(MPI_LOGICAL, int32_t, MADMPI_L32),
	T(MPI_INTEGER, int32_t, MADMPI_I32),
	T(MPI_REAL, float, MADMPI_F32),
	T(MPI_COMPLEX, float _Complex, MADMPI_C32),
	T(MPI_DOUBLE_PRECISION, double, MADMPI_F64),
	T(MPI_DOUBLE_COMPLEX, double _Complex, MADMPI_C64),
	T(MPI_CHARACTER, char, MADMPI_RAW),
	T(MPI_LONG_DOUBLE, long double, MADMPI_FLONG),
	T(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex, MADMPI_CLONG),
	T(MPI_CXX_LONG_DOUBLE_COMPLEX, long double _Complex, MADMPI_CLONG),
	T(MPI_C_BOOL, _Bool, MADMPI_BOOL),
	T(MPI_CXX_BOOL, _Bool, MADMPI_BOOL),
	T(MPI_WCHAR, wchar_t, MADMPI_RAW),
	T(MPI_INT8_T, int8_t, MADMPI_I8),
	T(MPI_UINT8_T, uint8_t, MADMPI_U8),
	T(MPI_CHAR, char, MADMPI_I8),
	T(MPI_SIGNED_CHAR, signed char, MADMPI_I8),
	T(MPI_UNSIGNED_CHAR, unsigned char, MADMPI_U8),
	T(MPI_BYTE, char, MADMPI_BYTES),
	T(MPI_INT16_T, int16_t, MADMPI_I16),
	T(MPI_UINT16_T, uint16_t, MADMPI_U16),
	T(MPI_INT32_T, int32_t, MADMPI_I32),
	T(MPI_UINT32_T, uint32_t, MADMPI_U32),
	T(MPI_INT64_T, int64_t, MADMPI_I64),
	T(MPI_UINT64_T, uint64_t, MADMPI_U64),
	T(MPI_LOGICAL1, int8_t, MADMPI_L8),
	T(MPI_INTEGER1, int8_t, MADMPI_I8),
	T(MPI_LOGICAL2, int16_t, MADMPI_L16),
	T(MPI_INTEGER2, int16_t, MADMPI_I16),
	T(MPI_REAL2, int16_t, MADMPI_RAW),
	T(MPI_LOGICAL4, int32_t, MADMPI_L32),
	T(MPI_INTEGER4, int32_t, MADMPI_I32),
	T(MPI_REAL4, float, MADMPI_F32),
	T(MPI_COMPLEX4, int16_t[2], MADMPI_RAW),
	T(MPI_LOGICAL8, int64_t, MADMPI_L64),
	T(MPI_INTEGER8, int64_t, MADMPI_I64),
	T(MPI_REAL8, double, MADMPI_F64),
	T(MPI_COMPLEX8, float _Complex, MADMPI_C32),
	T(MPI_LOGICAL16, __int128, MADMPI_L128),
	T(MPI_INTEGER16, __int128, MADMPI_I128),
	T(MPI_REAL16, __int128, MADMPI_RAW),
	T(MPI_COMPLEX16, double _Complex, MADMPI_C64),
	T(MPI_COMPLEX32, __int128[2], MADMPI_RAW),
#undef T
	/* clang-format on */
};

struct float_int {
	float value;
	int index;
};
struct double_int {
	double value;
	int index;
};
struct long_int {
	long value;
	int index;
};
struct int_int {
	int value;
	int index;
};
struct short_int {
	short value;
	int index;
};
struct ldouble_int {
	long double value;
	int index;
};
struct float_2 {
	float value;
	float index;
};
struct double_2 {
	double value;
	double index;
};

/* A value and an index, which may lie apart. */
static const struct {
	MPI_Datatype handle;
	const char *name;
	enum madmpi_basic basic;
	MPI_Datatype value, index;
	unsigned char offset, extent, align;
} pairs[] = {
/* clang-format off */
#define P(handle, basic, s, of_value, of_index)                                \
	{ handle, #handle, basic, of_value, of_index,                          \
	  offsetof(struct s, index), sizeof(struct s), _Alignof(struct s) }
	P(MPI_FLOAT_INT, MADMPI_FLOAT_I, float_int, MPI_FLOAT, MPI_INT),
	P(MPI_DOUBLE_INT, MADMPI_DOUBLE_I, double_int, MPI_DOUBLE, MPI_INT),
	P(MPI_LONG_INT, MADMPI_LONG_I, long_int, MPI_LONG, MPI_INT),
	P(MPI_2INT, MADMPI_INT_I, int_int, MPI_INT, MPI_INT),
	P(MPI_SHORT_INT, MADMPI_SHORT_I, short_int, MPI_SHORT, MPI_INT),
	P(MPI_LONG_DOUBLE_INT, MADMPI_LDOUBLE_I, ldouble_int, MPI_LONG_DOUBLE,
	  MPI_INT),
	P(MPI_2REAL, MADMPI_FLOAT_2, float_2, MPI_REAL, MPI_REAL),
	P(MPI_2DOUBLE_PRECISION, MADMPI_DOUBLE_2, double_2,
	  MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION),
	P(MPI_2INTEGER, MADMPI_INT_I, int_int, MPI_INTEGER, MPI_INTEGER),
#undef P
	/* clang-format on */
};

/* Without data: they set one bound of a struct. */
static const struct {
	MPI_Datatype handle;
	const char *name;
} markers[] = { { MPI_LB, "MPI_LB" }, { MPI_UB, "MPI_UB" } };

struct madmpi_type madmpi_type_predefined[MADMPI_TYPE_CONSTANTS];

static struct madmpi_step simple_steps[BASE_ARRAY_LEN(simple)];
static struct madmpi_step pair_steps[BASE_ARRAY_LEN(pairs)][2];
static struct madmpi_run pair_runs[BASE_ARRAY_LEN(pairs)][2];

static struct madmpi_type *fill(MPI_Datatype handle, const char *name,
				enum madmpi_basic basic, int align)
{
	struct madmpi_type *t = &madmpi_type_predefined[AT(handle)];

	madmpi_object_init(&t->object, MADMPI_TYPE);
	store_relaxed(&t->committed, true);
	t->name = name;
	t->basic = basic;
	t->align = align;
	return t;
}

/* What the standard says, where it is not the size. */
static MPI_Count external(size_t i)
{
	MPI_Datatype t = simple[i].handle;

	if (t == MPI_LONG || t == MPI_UNSIGNED_LONG)
		return 4;
	if (t == MPI_WCHAR)
		return 2;
	if (simple[i].basic == MADMPI_FLONG)
		return 16;
	return simple[i].basic == MADMPI_CLONG ? 32 : simple[i].size;
}

static void fill_simple(size_t i)
{
	struct madmpi_type *t = fill(simple[i].handle, simple[i].name,
				     simple[i].basic, simple[i].align);

	t->size = t->ub = t->true_ub = simple[i].size;
	t->elements = 1;
	t->external = external(i);
	t->nsteps = 1;
	t->steps = &simple_steps[i];
	t->steps[0] = (struct madmpi_step){ .count = 1, .size = t->size };
}

static void fill_pair(size_t i)
{
	struct madmpi_type *t = fill(pairs[i].handle, pairs[i].name,
				     pairs[i].basic, pairs[i].align);
	struct madmpi_type *value, *index;

	value = &madmpi_type_predefined[AT(pairs[i].value)];
	index = &madmpi_type_predefined[AT(pairs[i].index)];
	t->size = value->size + index->size;
	t->ub = pairs[i].extent;
	t->true_ub = pairs[i].offset + index->size;
	t->elements = 2;
	t->external = value->external + index->external;
	t->steps = pair_steps[i];
	t->nsteps = value->size == pairs[i].offset ? 1 : 2;
	t->steps[0] = (struct madmpi_step){ .count = 1, .size = value->size };
	t->steps[1] = (struct madmpi_step){ .disp = pairs[i].offset,
					    .count = 1,
					    .size = index->size,
					    .before = value->size };
	if (t->nsteps == 1)
		t->steps[0].size = t->size;
	t->nruns = 2;
	t->runs = pair_runs[i];
	t->runs[0] = (struct madmpi_run){ 1, value };
	t->runs[1] = (struct madmpi_run){ 1, index };
}

static void fill_marker(size_t i)
{
	struct madmpi_type *t =
		fill(markers[i].handle, markers[i].name, MADMPI_RAW, 1);

	t->sets_lb = markers[i].handle == MPI_LB;
	t->sets_ub = markers[i].handle == MPI_UB;
}

void madmpi_type_fill_predefined(void)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(simple); i++)
		fill_simple(i);
	for (size_t i = 0; i < BASE_ARRAY_LEN(pairs); i++)
		fill_pair(i);
	for (size_t i = 0; i < BASE_ARRAY_LEN(markers); i++)
		fill_marker(i);
	for (size_t i = 0; i < BASE_ARRAY_LEN(madmpi_type_predefined); i++)
		if (madmpi_type_predefined[i].name != NULL)
			madmpi_signature_set(&madmpi_type_predefined[i]);
}
