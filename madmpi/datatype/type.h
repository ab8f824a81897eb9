/*
 * Datatypes.
 *
 * A constructor turns its description into a small program, once: a list of
 * steps that tell where the bytes of one element lie, in the order in which
 * they travel. Neighbouring blocks are merged, so most types are one step. A
 * type never changes afterwards; commit only permits its use. A program is
 * walked from any byte on, without a scan over what lies before it.
 *
 *   step { disp, count, stride, size, body, places }
 *
 *   body NULL:   |<-size->|            |<-size->|            ...
 *                ^disp                 ^disp + stride        count blocks
 *   places:      count blocks at disp + places[0], places[1], ...
 *   body b[n]:   the n steps of b, count times, stride apart
 *
 * Every step moves at least one byte. Walks, and the end of a type, call
 * themselves for every type inside a type, on the stack of any thread: types
 * that nest deeper than MADMPI_TYPE_DEEPEST are refused.
 */
#ifndef MADMPI_DATATYPE_TYPE_H
#define MADMPI_DATATYPE_TYPE_H

#include <stdbool.h>

#include <mpi.h>
#include <nmad/data.h>

#include "comm/attr.h"
#include "core/object.h"
#include "datatype/contents.h"

/* What a predefined type is to a reduction. */
enum madmpi_basic {
	MADMPI_NOT_BASIC, /* derived */
	MADMPI_RAW,       /* moved only: no operation is defined on it */
	MADMPI_BYTES,     /* MPI_BYTE: bitwise operations */
	MADMPI_I8,
	MADMPI_I16,
	MADMPI_I32,
	MADMPI_I64,
	MADMPI_I128,
	MADMPI_U8,
	MADMPI_U16,
	MADMPI_U32,
	MADMPI_U64,
	MADMPI_F32,
	MADMPI_F64,
	MADMPI_FLONG, /* long double */
	MADMPI_C32,   /* complex of two F32 */
	MADMPI_C64,   /* of two F64 */
	MADMPI_CLONG, /* of two FLONG */
	MADMPI_BOOL,  /* C and C++ */
	MADMPI_L8,    /* Fortran's LOGICAL of 1 byte */
	MADMPI_L16,
	MADMPI_L32,
	MADMPI_L64,
	MADMPI_L128,
	MADMPI_FLOAT_I, /* pairs of a value and an int: MINLOC, MAXLOC */
	MADMPI_DOUBLE_I,
	MADMPI_LONG_I,
	MADMPI_INT_I,
	MADMPI_SHORT_I,
	MADMPI_LDOUBLE_I,
	MADMPI_FLOAT_2, /* Fortran's pairs of twice the same */
	MADMPI_DOUBLE_2,
	MADMPI_VALUE_INDEX, /* any other pair: see its contents */
	MADMPI_BASICS
};

/* The value of a pair that has no name, and its index. */
static inline bool madmpi_basic_is_number(enum madmpi_basic b)
{
	return b >= MADMPI_I8 && b <= MADMPI_FLONG;
}

static inline bool madmpi_basic_is_integer(enum madmpi_basic b)
{
	return b >= MADMPI_I8 && b <= MADMPI_U64;
}

struct madmpi_step {
	MPI_Aint disp;    /* of the first repetition */
	MPI_Aint stride;  /* to the next one */
	MPI_Count count;  /* of repetitions, >= 1 */
	MPI_Count size;   /* bytes moved by one repetition, >= 1 */
	MPI_Count before; /* bytes moved by earlier steps of the list */
	const struct madmpi_step *body;
	const MPI_Aint *places; /* NULL: regular; else body is NULL */
	uint32_t nbody;
};

#define MADMPI_TYPE_DEEPEST 128

struct madmpi_type;

/* A run of elements of the signature: so many of that type. */
struct madmpi_run {
	MPI_Count count;
	struct madmpi_type *type; /* holds a reference */
};

/* The elements of one type, in their order (signature.h). */
struct madmpi_kinds {
	uint64_t mul, add; /* they change a hash x to x * mul + add */
	/* All are this predefined type, or one is MPI_PACKED; -1: several
	 * types; -2: there are no elements. */
	int64_t only;
};

struct madmpi_type {
	/* -: const once published; a: atomic */
	struct madmpi_object object;
	ATOMIC(bool) committed;  /* a: only ever set; no order hangs on it */
	bool sets_lb, sets_ub;   /* -: by resized, or MPI-1's MPI_LB, MPI_UB */
	enum madmpi_basic basic; /* -: */
	const char *name;        /* -: of a predefined type, else NULL */
	char *given;             /* name.c's: by the program, or NULL */
	MPI_Count size;          /* -: bytes of data */
	MPI_Count lb, ub;        /* -: */
	MPI_Count true_lb, true_ub; /* -: */
	MPI_Count elements;         /* -: basic elements in one */
	struct madmpi_kinds kinds;  /* -: of these */
	MPI_Count external;         /* -: bytes of data in external32 */
	int align;                  /* -: of the most demanding element */
	int depth;                  /* -: types within types; predefined: 0 */
	uint32_t nsteps;            /* -: */
	struct madmpi_step *steps;  /* -: owned, or the original's */
	MPI_Aint *places;           /* -: of its steps; as these */
	uint32_t nruns;             /* -: */
	struct madmpi_run *runs;    /* -: owned, or the original's */
	/* -: with a reference: whose steps, ... these are; or NULL */
	struct madmpi_type *original;
	/* -: owned, or the original's; NULL: predefined, with a name */
	struct madmpi_contents *contents;
	struct madmpi_attrs attrs; /* attr.c's */
};

void madmpi_type_init(void);
void madmpi_type_exit(void);

extern struct madmpi_type madmpi_type_predefined[];
#define MADMPI_TYPE_CONSTANTS 256

/* The object behind a handle, or NULL if it is not a datatype. */
static inline struct madmpi_type *madmpi_type_of(MPI_Datatype handle)
{
	uintptr_t i = (uintptr_t)handle - (uintptr_t)MPI_DATATYPE_NULL;

	if (likely(i < MADMPI_TYPE_CONSTANTS))
		return madmpi_type_predefined[i].name != 0
			       ? &madmpi_type_predefined[i]
			       : 0;
	if (madmpi_handle_is_constant(handle))
		return 0;
	return madmpi_handle_object(handle, MADMPI_TYPE);
}

/* A call that moves nothing need not name a type: bytes stand for none. */
static inline MPI_Datatype madmpi_type_or_byte(MPI_Datatype datatype)
{
	return likely(datatype != MPI_DATATYPE_NULL) ? datatype : MPI_BYTE;
}

MPI_Datatype madmpi_type_handle(struct madmpi_type *t);

/* Predefined types with a name are not counted. */
void madmpi_type_get(struct madmpi_type *t);
void madmpi_type_put(struct madmpi_type *t);

/* Not to be freed by the program. Those without a name are made on demand. */
static inline bool madmpi_type_is_predefined(const struct madmpi_type *t)
{
	return t->name != 0 ||
	       (t->contents->combiner >= MPI_COMBINER_F90_REAL &&
		t->contents->combiner <= MPI_COMBINER_F90_INTEGER) ||
	       t->contents->combiner == MPI_COMBINER_VALUE_INDEX;
}

/*
 * A new type that is like t, with the same contents, but without its name and
 * attributes. It keeps t's program alive. NULL: no memory.
 */
struct madmpi_type *madmpi_type_clone(struct madmpi_type *t);

static inline MPI_Count madmpi_type_extent(const struct madmpi_type *t)
{
	return t->ub - t->lb;
}

/* The step that moves `count` elements, of 1 byte at least, from disp on. */
struct madmpi_step madmpi_type_step(const struct madmpi_type *t, MPI_Count disp,
				    MPI_Count count);

/* True if count elements are one piece of memory, at true_lb. */
static inline bool madmpi_type_is_flat(const struct madmpi_type *t,
				       MPI_Count count)
{
	return t->nsteps == 1 && t->steps->body == 0 && t->steps->count == 1 &&
	       (count == 1 || t->size == madmpi_type_extent(t));
}

/* Basic elements in the first `bytes` bytes of many t; -1: ends within one. */
MPI_Count madmpi_type_elements(const struct madmpi_type *t, MPI_Count bytes);

/* The other way round: bytes of the first n basic elements. 0; -EOVERFLOW. */
int madmpi_type_bytes_of_elements(const struct madmpi_type *t, MPI_Count n,
				  MPI_Count *out);

/*
 * count elements of a type at base: what a request walks over. It must live as
 * long as the request, and holds no reference to the type.
 */
struct madmpi_layout {
	uintptr_t base; /* a number: MPI_BOTTOM is 0 */
	MPI_Count count;
	const struct madmpi_type *type;
	MPI_Count start; /* bytes of the data that are left out in front */
};

/*
 * Describe a message to nmad; *layout is filled and used only if the data is
 * not one piece. Never fails: count * size must not overflow (checked by
 * madmpi_type_bytes()).
 */
struct nm_data madmpi_layout_data(struct madmpi_layout *layout,
				  const void *base, MPI_Count count,
				  const struct madmpi_type *t);

/* The bytes [from, from + bytes) of such a message. */
struct nm_data madmpi_layout_slice(struct madmpi_layout *layout,
				   const void *base, MPI_Count count,
				   const struct madmpi_type *t, MPI_Count from,
				   MPI_Count bytes);

/* True if the data is in pieces, so that the layout must stay. */
static inline bool madmpi_data_is_walked(const struct nm_data *d)
{
	return d->kind == NM_DATA_COPY;
}

/* count * size in *out. 0, or -EOVERFLOW. */
int madmpi_type_bytes(const struct madmpi_type *t, MPI_Count count,
		      MPI_Count *out);

/* Move all the data between a layout and one piece of memory. */
void madmpi_pack_bytes(const void *base, MPI_Count count,
		       const struct madmpi_type *t, void *to);
void madmpi_unpack_bytes(const void *from, void *base, MPI_Count count,
			 const struct madmpi_type *t);

/* From one layout to another, as if by a message; both of the same size. */
void madmpi_copy_bytes(const void *from, MPI_Count nfrom,
		       const struct madmpi_type *from_type, void *to,
		       MPI_Count nto, const struct madmpi_type *to_type);

#endif
