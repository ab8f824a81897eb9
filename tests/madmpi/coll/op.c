/*
 * The predefined operations against plain loops, on every type they are
 * defined on, and refused on all others.
 */
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/op.h"

#include "../../check.h"

#define N 33

static void start(void)
{
	madmpi_type_init();
	madmpi_op_init();
}

static void end(void)
{
	madmpi_op_exit();
	madmpi_type_exit();
}

static void apply(MPI_Op op, const void *in, void *inout, MPI_Count n,
		  MPI_Datatype type)
{
	struct madmpi_op *o = madmpi_op_of(op);
	struct madmpi_type *t = madmpi_type_of(type);

	CHECK(o != NULL && t != NULL && madmpi_op_takes(o, t));
	madmpi_op_apply(o, in, inout, n, t);
}

/* Reference results, written out and computed apart from the library's. */
/* clang-format off */
#define SAME(mpi, type, op, expression)                                        \
	do {                                                                   \
		type a[N], b[N], r[N];                                         \
		for (int i = 0; i < N; i++) {                                  \
			a[i] = (type)(check_random() % 251);                   \
			b[i] = (type)(check_random() % 251);                   \
			if (i % 3 == 0)                                        \
				a[i] = 0;                                      \
			if (i % 5 == 0)                                        \
				b[i] = a[i];                                   \
			r[i] = b[i];                                           \
		}                                                              \
		apply(op, a, r, N, mpi);                                       \
		for (int i = 0; i < N; i++) {                                  \
			type x = a[i], y = b[i];                               \
			type want = (type)(expression);                        \
			CHECK(r[i] == want);                                   \
		}                                                              \
	} while (0)

#define ARITHMETIC(mpi, type)                                                  \
	do {                                                                   \
		SAME(mpi, type, MPI_SUM, x + y);                               \
		SAME(mpi, type, MPI_PROD, x * y);                              \
		SAME(mpi, type, MPI_MIN, x < y ? x : y);                       \
		SAME(mpi, type, MPI_MAX, x < y ? y : x);                       \
	} while (0)

#define BITS(mpi, type)                                                        \
	do {                                                                   \
		SAME(mpi, type, MPI_BAND, x & y);                              \
		SAME(mpi, type, MPI_BOR, x | y);                               \
		SAME(mpi, type, MPI_BXOR, x ^ y);                              \
	} while (0)

#define LOGIC(mpi, type)                                                       \
	do {                                                                   \
		SAME(mpi, type, MPI_LAND, (x != 0) & (y != 0));                \
		SAME(mpi, type, MPI_LOR, (x != 0) | (y != 0));                 \
		SAME(mpi, type, MPI_LXOR, (x != 0) ^ (y != 0));                \
	} while (0)

#define INTEGER(mpi, type)                                                     \
	do {                                                                   \
		ARITHMETIC(mpi, type);                                         \
		BITS(mpi, type);                                               \
		LOGIC(mpi, type);                                              \
	} while (0)
/* clang-format on */

TEST(integer_types_have_arithmetic_bits_and_logic)
{
	start();
	INTEGER(MPI_SIGNED_CHAR, signed char);
	INTEGER(MPI_UNSIGNED_CHAR, unsigned char);
	INTEGER(MPI_SHORT, short);
	INTEGER(MPI_UNSIGNED_SHORT, unsigned short);
	INTEGER(MPI_INT, int);
	INTEGER(MPI_UNSIGNED, unsigned);
	INTEGER(MPI_LONG, long);
	INTEGER(MPI_UNSIGNED_LONG, unsigned long);
	INTEGER(MPI_LONG_LONG, long long);
	INTEGER(MPI_UNSIGNED_LONG_LONG, unsigned long long);
	INTEGER(MPI_INT8_T, int8_t);
	INTEGER(MPI_UINT8_T, uint8_t);
	INTEGER(MPI_INT16_T, int16_t);
	INTEGER(MPI_UINT16_T, uint16_t);
	INTEGER(MPI_INT32_T, int32_t);
	INTEGER(MPI_UINT32_T, uint32_t);
	INTEGER(MPI_INT64_T, int64_t);
	INTEGER(MPI_UINT64_T, uint64_t);
	INTEGER(MPI_AINT, MPI_Aint);
	INTEGER(MPI_COUNT, MPI_Count);
	INTEGER(MPI_OFFSET, MPI_Offset);
	INTEGER(MPI_INTEGER, int);
	INTEGER(MPI_INTEGER16, __int128);
	end();
}

TEST(floating_point_types_have_arithmetic)
{
	start();
	ARITHMETIC(MPI_FLOAT, float);
	ARITHMETIC(MPI_DOUBLE, double);
	ARITHMETIC(MPI_LONG_DOUBLE, long double);
	ARITHMETIC(MPI_REAL, float);
	ARITHMETIC(MPI_DOUBLE_PRECISION, double);
	end();
}

TEST(complex_types_have_sums_and_products)
{
	start();
	SAME(MPI_C_FLOAT_COMPLEX, float _Complex, MPI_SUM, x + y);
	SAME(MPI_C_FLOAT_COMPLEX, float _Complex, MPI_PROD, x *y);
	SAME(MPI_C_DOUBLE_COMPLEX, double _Complex, MPI_SUM, x + y);
	SAME(MPI_C_DOUBLE_COMPLEX, double _Complex, MPI_PROD, x *y);
	SAME(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex, MPI_SUM, x + y);
	SAME(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex, MPI_PROD, x *y);
	end();
}

TEST(logical_types_have_logic_and_bytes_have_bits)
{
	start();
	LOGIC(MPI_C_BOOL, _Bool);
	LOGIC(MPI_CXX_BOOL, _Bool);
	LOGIC(MPI_LOGICAL, int);
	LOGIC(MPI_LOGICAL1, int8_t);
	LOGIC(MPI_LOGICAL8, int64_t);
	BITS(MPI_BYTE, unsigned char);
	end();
}

/* clang-format off */
#define LOCATION(mpi, v, x)                                                    \
	do {                                                                   \
		struct pair {                                                  \
			v value;                                               \
			x index;                                               \
		} a[N], b[N], low[N], high[N], *l, *h;                         \
		memset(a, 0, sizeof(a));                                       \
		memset(b, 0, sizeof(b));                                       \
		for (int i = 0; i < N; i++) {                                  \
			a[i].value = (v)(check_random() % 3);                  \
			b[i].value = (v)(check_random() % 3);                  \
			a[i].index = (x)(check_random() % 100);                \
			b[i].index = (x)(check_random() % 100);                \
		}                                                              \
		memcpy(low, b, sizeof(b));                                     \
		memcpy(high, b, sizeof(b));                                    \
		apply(MPI_MINLOC, a, low, N, mpi);                             \
		apply(MPI_MAXLOC, a, high, N, mpi);                            \
		for (int i = 0; i < N; i++) {                                  \
			l = a[i].value < b[i].value ? &a[i] : &b[i];           \
			h = a[i].value > b[i].value ? &a[i] : &b[i];           \
			if (a[i].value == b[i].value)                          \
				l = h = a[i].index < b[i].index ? &a[i]        \
								: &b[i];       \
			CHECK(low[i].value == l->value);                       \
			CHECK(low[i].index == l->index);                       \
			CHECK(high[i].value == h->value);                      \
			CHECK(high[i].index == h->index);                      \
		}                                                              \
	} while (0)
/* clang-format on */

TEST(of_equal_values_the_lowest_index_wins)
{
	start();
	LOCATION(MPI_FLOAT_INT, float, int);
	LOCATION(MPI_DOUBLE_INT, double, int);
	LOCATION(MPI_LONG_INT, long, int);
	LOCATION(MPI_2INT, int, int);
	LOCATION(MPI_SHORT_INT, short, int);
	LOCATION(MPI_LONG_DOUBLE_INT, long double, int);
	LOCATION(MPI_2REAL, float, float);
	LOCATION(MPI_2DOUBLE_PRECISION, double, double);
	LOCATION(MPI_2INTEGER, int, int);
	end();
}

TEST(signed_sums_wrap_instead_of_being_undefined)
{
	int a = INT32_MAX, b = 1;
	short c = INT16_MAX, d = INT16_MAX;

	start();
	apply(MPI_SUM, &a, &b, 1, MPI_INT);
	CHECK_INT(b, INT32_MIN);
	apply(MPI_PROD, &c, &d, 1, MPI_SHORT);
	CHECK_INT(d, 1);
	end();
}

static bool takes(MPI_Op op, MPI_Datatype type)
{
	return madmpi_op_takes(madmpi_op_of(op), madmpi_type_of(type));
}

TEST(operations_are_refused_where_the_standard_does_not_define_them)
{
	start();
	CHECK(!takes(MPI_MAX, MPI_C_DOUBLE_COMPLEX));
	CHECK(!takes(MPI_BAND, MPI_DOUBLE));
	CHECK(!takes(MPI_LAND, MPI_FLOAT));
	CHECK(!takes(MPI_SUM, MPI_BYTE));
	CHECK(!takes(MPI_SUM, MPI_C_BOOL));
	CHECK(!takes(MPI_SUM, MPI_DOUBLE_INT));
	CHECK(!takes(MPI_MINLOC, MPI_INT));
	CHECK(!takes(MPI_SUM, MPI_PACKED));
	CHECK(!takes(MPI_SUM, MPI_WCHAR));
	CHECK(!takes(MPI_REPLACE, MPI_INT));
	CHECK(!takes(MPI_NO_OP, MPI_INT));
	end();
}

TEST(no_handle_without_an_operation_is_taken_for_one)
{
	start();
	for (uintptr_t i = 0; i < 0x21; i++)
		CHECK(madmpi_op_of((MPI_Op)i) == NULL);
	CHECK(madmpi_op_of((MPI_Op)MPI_INT) == NULL);
	CHECK(madmpi_op_of((MPI_Op)0x3f) == NULL);
	end();
}

static int calls;
static MPI_Datatype seen;

static void weighted(void *in, void *inout, int *len, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	calls++;
	seen = *type;
	for (int i = 0; i < *len; i++)
		b[i] = 10 * a[i] + b[i];
}

static void weighted_large(void *in, void *inout, MPI_Count *len,
			   MPI_Datatype *type)
{
	int *a = in, *b = inout;

	calls++;
	seen = *type;
	for (MPI_Count i = 0; i < *len; i++)
		b[i] = 100 * a[i] + b[i];
}

TEST(user_operations_get_the_left_operand_first_and_the_handle_of_the_type)
{
	int a[2] = { 1, 2 }, b[2] = { 3, 4 };
	MPI_Op op, large;
	int commutes;

	start();
	CHECK_INT(madmpi_op_create(weighted, 0, &op), 0);
	CHECK_INT(madmpi_op_create_c(weighted_large, 1, &large), 0);
	CHECK_INT(madmpi_op_commutative(op, &commutes), 0);
	CHECK_INT(commutes, 0);
	CHECK_INT(madmpi_op_commutative(large, &commutes), 0);
	CHECK_INT(commutes, 1);
	calls = 0;
	apply(op, a, b, 2, MPI_INT);
	CHECK_INT(calls, 1);
	CHECK(seen == MPI_INT);
	CHECK_INT(b[0], 13);
	CHECK_INT(b[1], 24);
	apply(large, a, b, 2, MPI_INT);
	CHECK_INT(b[0], 113);
	CHECK_INT(b[1], 224);
	CHECK_INT(madmpi_op_free(&op), 0);
	CHECK_INT(madmpi_op_free(&large), 0);
	CHECK(op == MPI_OP_NULL && large == MPI_OP_NULL);
	end();
}
