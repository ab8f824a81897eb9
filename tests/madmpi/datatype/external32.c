/*
 * external32: the bytes of each type as the standard has them, and back; types
 * of several elements, wherever these lie; what does not fit.
 */
#include "../program.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define DATAREP "external32"

static void expect_bytes(const void *value, MPI_Datatype type, size_t native,
			 const char *want, int n)
{
	char got[64], back[64], zero[64] = "";
	MPI_Aint room, at = 0;

	EXPECT_INT(MPI_Pack_external_size(DATAREP, 1, type, &room), 0);
	EXPECT_INT(room, n);
	memset(got, 0x55, sizeof(got));
	EXPECT_INT(MPI_Pack_external(DATAREP, value, 1, type, got, n, &at),
		   MPI_SUCCESS);
	EXPECT_INT(at, n);
	EXPECT(memcmp(got, want, (size_t)n) == 0);
	EXPECT_INT(got[n], 0x55);
	at = 0;
	memcpy(back, zero, sizeof(back));
	EXPECT_INT(MPI_Unpack_external(DATAREP, got, n, &at, back, 1, type), 0);
	EXPECT_INT(at, n);
	EXPECT(memcmp(back, value, native) == 0);
	EXPECT(memcmp(back + native, zero, sizeof(back) - native) == 0);
}

#define BYTES(ctype, type, value, bytes)                                       \
	do {                                                                   \
		ctype v_;                                                      \
		memset(&v_, 0, sizeof(v_));                                    \
		v_ = (value);                                                  \
		expect_bytes(&v_, type, sizeof(v_), bytes, sizeof(bytes) - 1); \
	} while (0)

static void integers(void)
{
	BYTES(char, MPI_CHAR, 'a', "a");
	BYTES(signed char, MPI_SIGNED_CHAR, -2, "\xfe");
	BYTES(char, MPI_BYTE, 7, "\x07");
	BYTES(char, MPI_PACKED, 7, "\x07");
	BYTES(bool, MPI_C_BOOL, true, "\x01");
	BYTES(wchar_t, MPI_WCHAR, 0x20ac, "\x20\xac");
	BYTES(short, MPI_SHORT, -2, "\xff\xfe");
	BYTES(unsigned short, MPI_UNSIGNED_SHORT, 0x1234, "\x12\x34");
	BYTES(int, MPI_INT, -3, "\xff\xff\xff\xfd");
	BYTES(unsigned, MPI_UNSIGNED, 0x12345678, "\x12\x34\x56\x78");
	BYTES(long, MPI_LONG, -4, "\xff\xff\xff\xfc");
	BYTES(long, MPI_LONG, 0x7ffffffe, "\x7f\xff\xff\xfe");
	BYTES(unsigned long, MPI_UNSIGNED_LONG, 0xfffffffful,
	      "\xff\xff\xff\xff");
	BYTES(long long, MPI_LONG_LONG, -5, "\xff\xff\xff\xff\xff\xff\xff\xfb");
	BYTES(uint64_t, MPI_UINT64_T, 0x0123456789abcdefull,
	      "\x01\x23\x45\x67\x89\xab\xcd\xef");
	BYTES(int8_t, MPI_INT8_T, -1, "\xff");
	BYTES(int16_t, MPI_INT16_T, 258, "\x01\x02");
	BYTES(int32_t, MPI_INT32_T, 1, "\0\0\0\1");
	BYTES(MPI_Aint, MPI_AINT, 1, "\0\0\0\0\0\0\0\1");
	BYTES(MPI_Count, MPI_COUNT, -1, "\xff\xff\xff\xff\xff\xff\xff\xff");
	BYTES(MPI_Offset, MPI_OFFSET, 2, "\0\0\0\0\0\0\0\2");
	BYTES(int32_t, MPI_INTEGER, 9, "\0\0\0\x09");
	BYTES(int32_t, MPI_LOGICAL, 1, "\0\0\0\1");
	BYTES(__int128, MPI_INTEGER16, (__int128)1 << 64 | 2,
	      "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2");
}

static void floats(void)
{
	BYTES(float, MPI_FLOAT, 1.0f, "\x3f\x80\0\0");
	BYTES(double, MPI_DOUBLE, -2.0, "\xc0\0\0\0\0\0\0\0");
	BYTES(double, MPI_DOUBLE_PRECISION, 0.1,
	      "\x3f\xb9\x99\x99\x99\x99\x99\x9a");
	BYTES(float _Complex, MPI_C_FLOAT_COMPLEX, 1 - 2 * I,
	      "\x3f\x80\0\0\xc0\0\0\0");
	BYTES(float _Complex, MPI_COMPLEX, 1 - 2 * I, "\x3f\x80\0\0\xc0\0\0\0");
	BYTES(double _Complex, MPI_C_DOUBLE_COMPLEX, 1 - 2 * I,
	      "\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0");
}

static void expect_long_double(long double x, const char *want)
{
	char got[16];
	long double back = 0;
	MPI_Aint at = 0;

	MPI_Pack_external(DATAREP, &x, 1, MPI_LONG_DOUBLE, got, 16, &at);
	EXPECT(memcmp(got, want, 16) == 0);
	at = 0;
	MPI_Unpack_external(DATAREP, got, 16, &at, &back, 1, MPI_LONG_DOUBLE);
	EXPECT(isnan(x) ? isnan(back) : back == x);
}

/* Of more bits than ours: to the nearest one, and to the even one. */
static void expect_rounded(const char *external, long double want)
{
	long double got = 0;
	MPI_Aint at = 0;

	MPI_Unpack_external(DATAREP, external, 16, &at, &got, 1,
			    MPI_LONG_DOUBLE);
	EXPECT(got == want);
}

static void long_doubles(void)
{
	static const char third[] = "\x3f\xfd\x55\x55\x55\x55\x55\x55"
				    "\x55\x56\0\0\0\0\0\0";
	long double complex z, y = 0;
	char bytes[32];
	MPI_Aint at = 0;

	expect_long_double(1, "\x3f\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	expect_long_double(-1.5L, "\xbf\xff\x80\0\0\0\0\0\0\0\0\0\0\0\0\0");
	expect_long_double(0, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	expect_long_double(-HUGE_VALL, "\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	/* The least positive normal number. */
	expect_long_double(LDBL_MIN, "\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	expect_long_double(LDBL_MIN / 2, "\0\0\x80\0\0\0\0\0\0\0\0\0\0\0\0\0");
	if (LDBL_MANT_DIG == 64) {
		expect_long_double(1.0L / 3, third);
		expect_rounded("\x3f\xff\0\0\0\0\0\0\0\1\0\0\0\0\0\0", 1);
		expect_rounded("\x3f\xff\0\0\0\0\0\0\0\1\0\0\0\0\0\1",
			       1 + LDBL_EPSILON);
		expect_rounded("\x3f\xff\0\0\0\0\0\0\0\3\0\0\0\0\0\0",
			       1 + 2 * LDBL_EPSILON);
		expect_rounded("\x3f\xff\xff\xff\xff\xff\xff\xff"
			       "\xff\xff\xff\xff\xff\xff\xff\xff",
			       2);
	}
	__real__ z = 3;
	__imag__ z = -4;
	MPI_Pack_external(DATAREP, &z, 1, MPI_C_LONG_DOUBLE_COMPLEX, bytes, 32,
			  &at);
	EXPECT_INT(at, 32);
	EXPECT(memcmp(bytes, "\x40\0\x80\0", 4) == 0);
	EXPECT(memcmp(bytes + 16, "\xc0\1\0\0", 4) == 0);
	at = 0;
	MPI_Unpack_external(DATAREP, bytes, 32, &at, &y, 1,
			    MPI_C_LONG_DOUBLE_COMPLEX);
	EXPECT(y == z);
}

struct mixed {
	char c;
	long l;
	short s[3];
	long double x;
	int i;
};

/* Long enough to go through more than one piece of what converts. */
static void structs(void)
{
	enum { N = 1000, EACH = 1 + 4 + 6 + 16 + 4 };
	static struct mixed in[N], out[N];
	static char bytes[N * EACH + 3], want[EACH];
	int blocks[] = { 1, 1, 3, 1, 1 };
	MPI_Aint displs[] = { offsetof(struct mixed, c),
			      offsetof(struct mixed, l),
			      offsetof(struct mixed, s),
			      offsetof(struct mixed, x),
			      offsetof(struct mixed, i) };
	MPI_Datatype types[] = { MPI_CHAR, MPI_LONG, MPI_SHORT, MPI_LONG_DOUBLE,
				 MPI_INT };
	MPI_Datatype type, fields;
	MPI_Aint room, at = 3;

	for (int i = 0; i < N; i++) {
		in[i].c = (char)i;
		in[i].l = -i;
		for (int k = 0; k < 3; k++)
			in[i].s[k] = (short)(i + k);
		in[i].x = i / 8.0L;
		in[i].i = i * 1000;
	}
	MPI_Type_create_struct(5, blocks, displs, types, &fields);
	MPI_Type_create_resized(fields, 0, sizeof(struct mixed), &type);
	FAILS(MPI_Pack_external_size(DATAREP, N, type, &room), MPI_ERR_TYPE);
	MPI_Type_commit(&type);
	MPI_Pack_external_size(DATAREP, N, type, &room);
	EXPECT_INT(room, N * EACH);
	MPI_Pack_external(DATAREP, in, N, type, bytes, sizeof(bytes), &at);
	EXPECT_INT(at, sizeof(bytes));
	for (int i = 0; i < N; i++) {
		int32_t l = -i;

		want[0] = (char)i;
		for (int k = 0; k < 4; k++) {
			want[1 + k] = (char)(l >> (24 - 8 * k));
			want[27 + k] = (char)(i * 1000 >> (24 - 8 * k));
		}
		for (int k = 0; k < 6; k++)
			want[5 + k] = (char)((i + k / 2) >> (8 - k % 2 * 8));
		memcpy(want + 11, bytes + 3 + i * EACH + 11, 16);
		EXPECT(memcmp(bytes + 3 + i * EACH, want, EACH) == 0);
	}
	at = 3;
	MPI_Unpack_external(DATAREP, bytes, sizeof(bytes), &at, out, N, type);
	for (int i = 0; i < N; i++) {
		EXPECT(out[i].c == in[i].c && out[i].l == in[i].l);
		EXPECT(out[i].x == in[i].x && out[i].i == in[i].i);
		EXPECT(memcmp(out[i].s, in[i].s, sizeof(in[i].s)) == 0);
	}
	MPI_Type_free(&fields);
	MPI_Type_free(&type);
}

static void large_form(void)
{
	int in[2] = { 1, 2 }, out[2] = { 0 };
	char bytes[8];
	MPI_Count at = 0, room;
	MPI_Datatype type;

	MPI_Pack_external_size_c(DATAREP, (MPI_Count)1 << 40, MPI_LONG, &room);
	EXPECT_INT(room, (MPI_Count)1 << 42);
	MPI_Pack_external_c(DATAREP, in, 2, MPI_INT, bytes, 8, &at);
	EXPECT_INT(at, 8);
	at = 4;
	MPI_Unpack_external_c(DATAREP, bytes, 8, &at, out, 1, MPI_INT);
	EXPECT_INT(out[0], 2);
	MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_INT, &type);
	MPI_Type_commit(&type);
	FAILS(MPI_Pack_external_size_c(DATAREP, (MPI_Count)1 << 40, type,
				       &room),
	      MPI_ERR_COUNT);
	MPI_Type_free(&type);
}

static void refused(void)
{
	int x[2] = { 0 };
	char bytes[8];
	MPI_Aint at = 0, room;

	FAILS(MPI_Pack_external("native", x, 1, MPI_INT, bytes, 8, &at),
	      MPI_ERR_ARG);
	FAILS(MPI_Pack_external(NULL, x, 1, MPI_INT, bytes, 8, &at),
	      MPI_ERR_ARG);
	FAILS(MPI_Pack_external(DATAREP, x, -1, MPI_INT, bytes, 8, &at),
	      MPI_ERR_COUNT);
	FAILS(MPI_Pack_external(DATAREP, x, 1, MPI_DATATYPE_NULL, bytes, 8,
				&at),
	      MPI_ERR_TYPE);
	FAILS(MPI_Pack_external(DATAREP, NULL, 1, MPI_INT, bytes, 8, &at),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Pack_external(DATAREP, x, 1, MPI_INT, NULL, 8, &at),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Pack_external(DATAREP, x, 1, MPI_INT, bytes, 8, NULL),
	      MPI_ERR_ARG);
	FAILS(MPI_Pack_external(DATAREP, x, 2, MPI_INT, bytes, 7, &at),
	      MPI_ERR_TRUNCATE);
	at = 5;
	FAILS(MPI_Unpack_external(DATAREP, bytes, 8, &at, x, 1, MPI_INT),
	      MPI_ERR_TRUNCATE);
	EXPECT_INT(at, 5);
	at = 8;
	EXPECT_INT(
		MPI_Unpack_external(DATAREP, bytes, 8, &at, NULL, 0, MPI_INT),
		MPI_SUCCESS);
	FAILS(MPI_Pack_external_size(DATAREP, 1, MPI_INT, NULL), MPI_ERR_ARG);
	FAILS(MPI_Pack_external_size("", 1, MPI_INT, &room), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	integers();
	floats();
	long_doubles();
	structs();
	large_form();
	refused();
	return program_end("datatype/external32");
}
