/*
 * MPI_Pack_external: "external32", which all machines read alike. Numbers are
 * big-endian, without padding, and of the sizes that the standard lists, which
 * for some types are fewer bytes than ours.
 *
 * The data is packed as for a message, a little at a time, and these bytes are
 * converted along the signature of the type; or the other way round.
 */
#include <endian.h>
#include <float.h>
#include <string.h>

#include "bodies.h"
#include "pt2pt/message.h"

enum how {
	SWAP,            /* the same bytes, the most significant one first */
	NARROW,          /* the 4 low bytes of a long ... */
	NARROW_UNSIGNED, /* ... or of an unsigned one */
	NARROW_WIDE,     /* the 2 low bytes of a wchar_t */
	BOOL,            /* 0, or anything else */
	LONG_DOUBLE,     /* IEEE's binary128 */
};

/* Of a basic type: numbers of so many bytes. */
struct format {
	enum how how;
	size_t native, external;
};

static struct format format_of(const struct madmpi_type *t)
{
	MPI_Datatype handle = madmpi_type_handle((struct madmpi_type *)t);
	bool two = t->basic == MADMPI_C32 || t->basic == MADMPI_C64 ||
		   t->basic == MADMPI_CLONG || handle == MPI_COMPLEX4 ||
		   handle == MPI_COMPLEX32;
	struct format f = { SWAP, (size_t)t->size >> two,
			    (size_t)t->external >> two };

	if (t->basic == MADMPI_FLONG || t->basic == MADMPI_CLONG)
		f.how = LONG_DOUBLE;
	else if (t->basic == MADMPI_BOOL)
		f.how = BOOL;
	else if (f.external == 2 && f.native == 4)
		f.how = NARROW_WIDE;
	else if (f.external < f.native)
		f.how = t->basic == MADMPI_U64 ? NARROW_UNSIGNED : NARROW;
	return f;
}

#define EACH(type, from, to, n, expression)                                    \
	do {                                                                   \
		type x_;                                                       \
		for (size_t i_ = 0; i_ < (n); i_++) {                          \
			memcpy(&x_, (from) + i_ * sizeof(x_), sizeof(x_));     \
			x_ = (expression);                                     \
			memcpy((to) + i_ * sizeof(x_), &x_, sizeof(x_));       \
		}                                                              \
	} while (0)

static void swap(char *to, const char *from, size_t n, size_t size)
{
	uint64_t high, low;

	switch (size) {
	case 1:
		memcpy(to, from, n);
		break;
	case 2:
		EACH(uint16_t, from, to, n, htobe16(x_));
		break;
	case 4:
		EACH(uint32_t, from, to, n, htobe32(x_));
		break;
	case 8:
		EACH(uint64_t, from, to, n, htobe64(x_));
		break;
	case 16:
		for (size_t i = 0; i < 16 * n; i += 16) {
			memcpy(&low, from + i, 8);
			memcpy(&high, from + i + 8, 8);
			low = htobe64(low);
			high = htobe64(high);
			memcpy(to + i, &high, 8);
			memcpy(to + i + 8, &low, 8);
		}
		break;
	}
}

/*
 * The x87's long double has the sign and 15 bits of exponent as binary128 does,
 * but 64 bits of mantissa of which the first, which the other omits, stands in
 * the memory. Where long double is binary128 itself it is only turned round.
 */
static void put_long_double(char *to, const char *from)
{
	uint64_t mantissa, high, low;
	uint16_t head; /* sign and exponent */

	if (LDBL_MANT_DIG == 113) {
		swap(to, from, 1, 16);
		return;
	}
	memcpy(&mantissa, from, 8);
	memcpy(&head, from + 8, 2);
	if ((head & 0x7fff) == 0 && mantissa >> 63)
		head++; /* the least exponent, written as 0 */
	mantissa <<= 1;
	high = htobe64((uint64_t)head << 48 | mantissa >> 16);
	low = htobe64(mantissa << 48);
	memcpy(to, &high, 8);
	memcpy(to + 8, &low, 8);
}

/* Rounds to the nearest, of two to the even one, as the processor does. */
static void get_long_double(char *to, const char *from)
{
	uint64_t fraction, high, low, lost;
	uint16_t head;
	bool is_special;

	if (LDBL_MANT_DIG == 113) {
		swap(to, from, 1, 16);
		return;
	}
	memcpy(&high, from, 8);
	memcpy(&low, from + 8, 8);
	high = be64toh(high);
	low = be64toh(low);
	head = (uint16_t)(high >> 48);
	is_special = (head & 0x7fff) == 0x7fff;
	fraction = (high & 0xffffffffffff) << 15 | low >> 49;
	lost = low << 15;
	if (is_special && lost != 0 && fraction == 0)
		fraction = 1; /* a NaN stays one */
	else if (!is_special &&
		 (lost > 1ull << 63 || (lost == 1ull << 63 && (fraction & 1))))
		fraction++;
	if (fraction >> 63) { /* 2.0: the next exponent */
		fraction = 0;
		head++;
	}
	if ((head & 0x7fff) != 0)
		fraction |= 1ull << 63;
	memset(to, 0, sizeof(long double));
	memcpy(to, &fraction, 8);
	memcpy(to + 8, &head, 2);
}

/* n numbers of this format to external32. */
static void put(const struct format *f, char *to, const char *from, size_t n)
{
	uint64_t wide;
	uint32_t word;
	uint16_t half;

	for (size_t i = 0; i < n && f->how != SWAP;
	     i++, from += f->native, to += f->external) {
		switch (f->how) {
		case NARROW:
		case NARROW_UNSIGNED:
			memcpy(&wide, from, sizeof(wide));
			word = htobe32((uint32_t)wide);
			memcpy(to, &word, sizeof(word));
			break;
		case NARROW_WIDE:
			memcpy(&word, from, sizeof(word));
			half = htobe16((uint16_t)word);
			memcpy(to, &half, sizeof(half));
			break;
		case BOOL:
			*to = *from != 0;
			break;
		default:
			put_long_double(to, from);
			break;
		}
	}
	if (f->how == SWAP)
		swap(to, from, n, f->native);
}

/* And from it. */
static void get(const struct format *f, char *to, const char *from, size_t n)
{
	uint64_t wide;
	uint32_t word;
	uint16_t half;

	for (size_t i = 0; i < n && f->how != SWAP;
	     i++, from += f->external, to += f->native) {
		switch (f->how) {
		case NARROW:
		case NARROW_UNSIGNED:
			memcpy(&word, from, sizeof(word));
			word = be32toh(word);
			wide = f->how == NARROW
				       ? (uint64_t)(int64_t)(int32_t)word
				       : word;
			memcpy(to, &wide, sizeof(wide));
			break;
		case NARROW_WIDE:
			memcpy(&half, from, sizeof(half));
			word = be16toh(half);
			memcpy(to, &word, sizeof(word));
			break;
		case BOOL:
			*to = *from != 0;
			break;
		default:
			get_long_double(to, from);
			break;
		}
	}
	if (f->how == SWAP)
		swap(to, from, n, f->native);
}

/* The native bytes of the data pass through here, in their order. */
struct stage {
	struct nm_data data; /* of the program */
	size_t at;           /* bytes of it that have been read, or written */
	char *external;      /* where the other form goes on */
	bool is_pack;
	size_t begin, end; /* of the bytes in here */
	char bytes[2048];
};

/* As much as there is room for, and data; what is here is kept. */
static void fill(struct stage *s)
{
	size_t kept = s->end - s->begin, more = sizeof(s->bytes) - kept;

	memmove(s->bytes, s->bytes + s->begin, kept);
	if (more > s->data.length - s->at)
		more = s->data.length - s->at;
	nm_data_copy_out(&s->data, s->at, s->bytes + kept, more);
	s->at += more;
	s->begin = 0;
	s->end = kept + more;
}

static void flush(struct stage *s)
{
	nm_data_copy_in(&s->data, s->at, s->bytes, s->end);
	s->at += s->end;
	s->end = 0;
}

/* `count` elements of one basic type. */
static void convert_basic(struct stage *s, const struct madmpi_type *t,
			  MPI_Count count)
{
	struct format f = format_of(t);
	MPI_Count left = count * (t->size / (MPI_Count)f.native);
	size_t n;

	while (left > 0) {
		if (s->is_pack && s->end - s->begin < f.native)
			fill(s);
		else if (!s->is_pack && sizeof(s->bytes) - s->end < f.native)
			flush(s);
		n = (s->is_pack ? s->end - s->begin
				: sizeof(s->bytes) - s->end) /
		    f.native;
		if ((MPI_Count)n > left)
			n = (size_t)left;
		if (s->is_pack)
			put(&f, s->external, s->bytes + s->begin, n);
		else
			get(&f, s->bytes + s->end, s->external, n);
		*(s->is_pack ? &s->begin : &s->end) += n * f.native;
		s->external += n * f.external;
		left -= (MPI_Count)n;
	}
}

/* Along the signature, which nests as the types do. */
static void convert(struct stage *s, const struct madmpi_type *t,
		    MPI_Count count)
{
	if (t->nruns == 0) {
		convert_basic(s, t, count);
		return;
	}
	if (t->nruns == 1) {
		convert(s, t->runs->type, count * t->runs->count);
		return;
	}
	for (; count > 0; count--)
		for (uint32_t i = 0; i < t->nruns; i++)
			convert(s, t->runs[i].type, t->runs[i].count);
}

static void convert_all(const void *buf, MPI_Count count,
			const struct madmpi_type *t, char *external,
			bool is_pack)
{
	struct madmpi_layout layout;
	struct stage s;

	if (count * t->size == 0)
		return;
	s.data = madmpi_layout_data(&layout, buf, count, t);
	s.at = s.begin = s.end = 0;
	s.external = external;
	s.is_pack = is_pack;
	convert(&s, t, count);
	if (!is_pack)
		flush(&s);
}

static int check_datarep(const char *fn, const char *datarep)
{
	if (datarep == NULL)
		return madmpi_null_arg(NULL, fn, "datarep");
	if (strcmp(datarep, "external32") == 0)
		return MPI_SUCCESS;
	return madmpi_error(NULL, MPI_ERR_ARG, fn,
			    "datarep is \"%.64s\", but only \"external32\" is "
			    "known",
			    datarep);
}

static int check(const char *fn, const char *datarep, const void *buf,
		 MPI_Count count, MPI_Datatype datatype, const void *external,
		 MPI_Count size, const MPI_Count *position,
		 struct madmpi_type **t)
{
	int rc = check_datarep(fn, datarep);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_count(fn, NULL, "count", count);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_type(fn, NULL, "datatype", datatype, t);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_buffer(fn, NULL, "buf", buf, count, *t);
	if (rc != MPI_SUCCESS)
		return rc;
	if (position == NULL)
		return madmpi_null_arg(NULL, fn, "position");
	if (*position < 0 || *position > size ||
	    count * (*t)->external > size - *position)
		return madmpi_error(NULL, MPI_ERR_TRUNCATE, fn,
				    "%lld bytes at position %lld do not fit "
				    "in %lld",
				    (long long)(count * (*t)->external),
				    (long long)*position, (long long)size);
	return madmpi_check_buffer(fn, NULL, "the packed buffer", external,
				   count * (*t)->external,
				   madmpi_type_of(MPI_BYTE));
}

/* MPI_Pack_external, MPI_Pack_external_c */
int madmpi_pack_external(const char *datarep, const void *inbuf,
			 MPI_Count incount, MPI_Datatype datatype, void *outbuf,
			 MPI_Count outsize, MPI_Count *position)
{
	struct madmpi_type *t;
	int rc = check("MPI_Pack_external", datarep, inbuf, incount, datatype,
		       outbuf, outsize, position, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	convert_all(inbuf, incount, t, (char *)outbuf + *position, true);
	*position += incount * t->external;
	return MPI_SUCCESS;
}

/* MPI_Unpack_external, MPI_Unpack_external_c */
int madmpi_unpack_external(const char datarep[], const void *inbuf,
			   MPI_Count insize, MPI_Count *position, void *outbuf,
			   MPI_Count outcount, MPI_Datatype datatype)
{
	struct madmpi_type *t;
	int rc = check("MPI_Unpack_external", datarep, outbuf, outcount,
		       datatype, inbuf, insize, position, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	convert_all(outbuf, outcount, t, (char *)inbuf + *position, false);
	*position += outcount * t->external;
	return MPI_SUCCESS;
}

/* MPI_Pack_external_size, MPI_Pack_external_size_c */
int madmpi_pack_external_size(const char *datarep, MPI_Count incount,
			      MPI_Datatype datatype, MPI_Count *size)
{
	const char *fn = "MPI_Pack_external_size";
	struct madmpi_type *t;
	int rc = check_datarep(fn, datarep);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_count(fn, NULL, "incount", incount);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_type(fn, NULL, "datatype", datatype, &t);
	if (rc != MPI_SUCCESS)
		return rc;
	if (size == NULL)
		return madmpi_null_arg(NULL, fn, "size");
	if (__builtin_mul_overflow(incount, t->external, size))
		return madmpi_error(NULL, MPI_ERR_COUNT, fn,
				    "%lld elements are too many",
				    (long long)incount);
	return MPI_SUCCESS;
}
