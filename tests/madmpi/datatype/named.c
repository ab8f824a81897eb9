/*
 * Predefined types: their names, those that are found by size or by Fortran's
 * precision and range, and pairs of a value and an index.
 */
#include "../program.h"

#include <stdint.h>

static void expect_name(MPI_Datatype type, const char *want)
{
	char name[MPI_MAX_OBJECT_NAME];
	int n;

	EXPECT_INT(MPI_Type_get_name(type, name, &n), MPI_SUCCESS);
	EXPECT(strcmp(name, want) == 0);
	EXPECT_INT(n, strlen(want));
}

static void names(void)
{
	char name[MPI_MAX_OBJECT_NAME], longer[2 * MPI_MAX_OBJECT_NAME];
	MPI_Datatype type, copy;
	int n;

	expect_name(MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL");
	expect_name(MPI_INT, "MPI_INT");
	expect_name(MPI_AINT, "MPI_AINT");
	expect_name(MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION");
	/* Of two names for one type, that which the standard explains. */
	expect_name(MPI_LONG_LONG, "MPI_LONG_LONG_INT");
	expect_name(MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX");
	MPI_Type_set_name(MPI_WCHAR, "wide");
	expect_name(MPI_WCHAR, "wide");
	MPI_Type_contiguous(2, MPI_INT, &type);
	expect_name(type, "");
	MPI_Type_set_name(type, "two");
	MPI_Type_set_name(type, "a pair");
	expect_name(type, "a pair");
	MPI_Type_dup(type, &copy);
	expect_name(copy, "");
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	MPI_Type_set_name(type, longer);
	longer[MPI_MAX_OBJECT_NAME - 1] = '\0';
	expect_name(type, longer);
	FAILS(MPI_Type_set_name(MPI_DATATYPE_NULL, "x"), MPI_ERR_TYPE);
	FAILS(MPI_Type_set_name(type, NULL), MPI_ERR_ARG);
	FAILS(MPI_Type_get_name(type, NULL, &n), MPI_ERR_ARG);
	FAILS(MPI_Type_get_name(type, name, NULL), MPI_ERR_ARG);
	MPI_Type_free(&copy);
	MPI_Type_free(&type);
}

static void match_size(void)
{
	MPI_Datatype t;
	int size;

	for (int n = 1; n <= 32; n *= 2) {
		if (n <= 16) {
			MPI_Type_match_size(MPI_TYPECLASS_INTEGER, n, &t);
			MPI_Type_size(t, &size);
			EXPECT_INT(size, n);
		}
		if (n >= 4) {
			MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, n, &t);
			MPI_Type_size(t, &size);
			EXPECT_INT(size, n);
		}
	}
	MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t);
	EXPECT(t == MPI_REAL8);
	MPI_Type_match_size(MPIX_TYPECLASS_LOGICAL, 2, &t);
	EXPECT(t == MPI_LOGICAL2);
	FAILS(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_match_size(5, 4, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, NULL), MPI_ERR_ARG);
}

/* What it says of itself, how large it is, and that it cannot be freed. */
static void expect_f90(MPI_Datatype t, int combiner, int want_size, int n,
		       int first, int second)
{
	int ni, na, nd, how, bytes, args[2];

	MPI_Type_get_envelope(t, &ni, &na, &nd, &how);
	EXPECT_INT(how, combiner);
	EXPECT(ni == n && na == 0 && nd == 0);
	MPI_Type_get_contents(t, 2, 0, 0, args, NULL, NULL);
	EXPECT_INT(args[0], first);
	if (n == 2)
		EXPECT_INT(args[1], second);
	MPI_Type_size(t, &bytes);
	EXPECT_INT(bytes, want_size);
	FAILS(MPI_Type_free(&t), MPI_ERR_TYPE);
}

static void fortran(void)
{
	static const int sizes[][2] = { { 2, 1 },  { 4, 2 },   { 5, 4 },
					{ 18, 8 }, { 38, 16 }, { -3, 1 } };
	MPI_Datatype t, again, pair;
	int64_t mine = rank + 1, sum = 0;
	double x = 0.5, y = 0;

	for (int i = 0; i < 6; i++) {
		MPI_Type_create_f90_integer(sizes[i][0], &t);
		expect_f90(t, MPI_COMBINER_F90_INTEGER, sizes[i][1], 1,
			   sizes[i][0], 0);
	}
	MPI_Type_create_f90_real(6, 37, &t);
	expect_f90(t, MPI_COMBINER_F90_REAL, 4, 2, 6, 37);
	MPI_Type_create_f90_real(6, MPI_UNDEFINED, &again);
	EXPECT(t != again); /* other arguments */
	MPI_Type_create_f90_real(6, 37, &again);
	EXPECT(t == again);
	MPI_Type_create_f90_real(MPI_UNDEFINED, 300, &t);
	expect_f90(t, MPI_COMBINER_F90_REAL, 8, 2, MPI_UNDEFINED, 300);
	MPI_Allreduce(&x, &y, 1, t, MPI_SUM, MPI_COMM_WORLD);
	EXPECT(y == 0.5 * size);
	MPI_Type_create_f90_real(16, 0, &t);
	expect_f90(t, MPI_COMBINER_F90_REAL, 16, 2, 16, 0);
	MPI_Type_create_f90_complex(15, 307, &t);
	expect_f90(t, MPI_COMBINER_F90_COMPLEX, 16, 2, 15, 307);
	MPI_Type_create_f90_integer(18, &t);
	MPI_Allreduce(&mine, &sum, 1, t, MPI_SUM, MPI_COMM_WORLD);
	EXPECT_INT(sum, size * (size + 1) / 2);
	MPI_Type_contiguous(2, t, &pair);
	MPI_Type_free(&pair);
	FAILS(MPI_Type_create_f90_integer(39, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_create_f90_real(34, 1, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &t),
	      MPI_ERR_ARG);
	FAILS(MPI_Type_create_f90_complex(1, 5000, &t), MPI_ERR_ARG);
	FAILS(MPI_Type_create_f90_real(6, 37, NULL), MPI_ERR_ARG);
}

#define PAIR(v, vtype, x, xtype)                                               \
	do {                                                                   \
		struct {                                                       \
			v value;                                               \
			x index;                                               \
		} in[2] = { { (v)(rank + 3), (x)rank },                        \
			    { 7, (x)(rank + 1) } },                            \
		  out[2];                                                      \
		MPI_Aint lb_, extent_;                                         \
		MPI_Datatype t_, again_, d_[2];                                \
		int bytes_, ni_, na_, nd_, how_;                               \
                                                                               \
		memset(out, 0, sizeof(out));                                   \
		MPI_Type_get_value_index(vtype, xtype, &t_);                   \
		MPI_Type_get_value_index(vtype, xtype, &again_);               \
		EXPECT(t_ == again_ && t_ != MPI_DATATYPE_NULL);               \
		MPI_Type_get_extent(t_, &lb_, &extent_);                       \
		EXPECT_INT(lb_, 0);                                            \
		EXPECT_INT(extent_, sizeof(in[0]));                            \
		MPI_Type_size(t_, &bytes_);                                    \
		EXPECT_INT(bytes_, sizeof(v) + sizeof(x));                     \
		MPI_Type_get_envelope(t_, &ni_, &na_, &nd_, &how_);            \
		EXPECT_INT(how_, MPI_COMBINER_VALUE_INDEX);                    \
		EXPECT(ni_ == 0 && na_ == 0 && nd_ == 2);                      \
		MPI_Type_get_contents(t_, 0, 0, 2, NULL, NULL, d_);            \
		EXPECT(d_[0] == (vtype) && d_[1] == (xtype));                  \
		FAILS(MPI_Type_free(&t_), MPI_ERR_TYPE);                       \
		MPI_Allreduce(in, out, 2, t_, MPI_MAXLOC, MPI_COMM_WORLD);     \
		EXPECT(out[0].value == (v)(size + 2));                         \
		EXPECT(out[0].index == (x)(size - 1));                         \
		EXPECT(out[1].value == 7 && out[1].index == 1);                \
		MPI_Allreduce(in, out, 2, t_, MPI_MINLOC, MPI_COMM_WORLD);     \
		EXPECT(out[0].value == 3 && out[0].index == 0);                \
		EXPECT(out[1].value == 7 && out[1].index == 1);                \
	} while (0)

static void pairs(void)
{
	MPI_Datatype t;
	char in[32] = "", out[32];

	MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t);
	EXPECT(t == MPI_DOUBLE_INT);
	MPI_Type_get_value_index(MPI_INT, MPI_INT, &t);
	EXPECT(t == MPI_2INT);
	MPI_Type_get_value_index(MPI_REAL, MPI_REAL, &t);
	EXPECT(t == MPI_2REAL);
	PAIR(double, MPI_DOUBLE, int64_t, MPI_INT64_T);
	PAIR(long, MPI_LONG, long, MPI_LONG);
	PAIR(signed char, MPI_SIGNED_CHAR, MPI_Count, MPI_COUNT);
	PAIR(uint16_t, MPI_UINT16_T, uint8_t, MPI_UINT8_T);
	PAIR(long double, MPI_LONG_DOUBLE, short, MPI_SHORT);
	PAIR(float, MPI_FLOAT, uint64_t, MPI_UINT64_T);
	MPI_Type_get_value_index(MPI_FLOAT, MPI_UINT64_T, &t);
	FAILS(MPI_Allreduce(in, out, 1, t, MPI_SUM, MPI_COMM_WORLD),
	      MPI_ERR_OP);
	MPI_Type_get_value_index(MPI_BYTE, MPI_INT, &t);
	EXPECT(t == MPI_DATATYPE_NULL);
	MPI_Type_get_value_index(MPI_DOUBLE, MPI_C_BOOL, &t);
	EXPECT(t == MPI_DATATYPE_NULL);
	/* An index is an integer, but in Fortran's pairs of twice the same. */
	MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &t);
	EXPECT(t == MPI_DATATYPE_NULL);
	MPI_Type_get_value_index(MPI_LONG_DOUBLE, MPI_LONG_DOUBLE, &t);
	EXPECT(t == MPI_DATATYPE_NULL);
	FAILS(MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &t),
	      MPI_ERR_TYPE);
	FAILS(MPI_Type_get_value_index(MPI_INT, MPI_LONG, NULL), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	names();
	match_size();
	fortran();
	pairs();
	return program_end("datatype/named");
}
