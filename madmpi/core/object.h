/*
 * What all MPI objects begin with, and how a handle becomes an object.
 *
 * A handle of the ABI is a pointer. Below 4096 it is a constant that names a
 * predefined object; above, it is the address of the object. Objects come from
 * type-stable pools, and their kind is erased when they are freed: a handle
 * that was freed, or that belongs to another kind of object, is found out by
 * one comparison. Handle 0 is no handle at all, and not a null handle either.
 */
#ifndef MADMPI_CORE_OBJECT_H
#define MADMPI_CORE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

/* Numbers that do not turn up by chance. */
enum madmpi_kind {
	MADMPI_FREED = 0x4d46,
	MADMPI_COMM = 0x4d431a01,
	MADMPI_GROUP = 0x4d431a02,
	MADMPI_TYPE = 0x4d431a03,
	MADMPI_OP = 0x4d431a04,
	MADMPI_ERRHANDLER = 0x4d431a05,
	MADMPI_REQUEST = 0x4d431a06,
	MADMPI_INFO = 0x4d431a07,
	MADMPI_MESSAGE = 0x4d431a08,
	MADMPI_WIN = 0x4d431a09,
	MADMPI_RMA = 0x4d431a0a,
	MADMPI_SESSION = 0x4d431a0c,
	MADMPI_T_CVAR = 0x4d431a0d,
	MADMPI_T_PVAR = 0x4d431a0e,
	MADMPI_T_SESSION = 0x4d431a0f,
	MADMPI_T_EVENT = 0x4d431a0b,
	MADMPI_T_INSTANCE = 0x4d431a10,
	MADMPI_FILE = 0x4d431a11, /* of error handlers: there are no files */
	/* Freed by the program before it is complete (ext/grequest.c). */
	MADMPI_REQUEST_GIVEN_UP = 0x4d431b06,
};

#define MADMPI_HANDLE_CONSTANTS 4096

struct madmpi_object {
	void *link;            /* l: the pool's, while the object is free;
				* else its number or NULL (number.c) */
	ATOMIC(uint32_t) kind; /* a: relaxed; enum madmpi_kind */
	ATOMIC(uint32_t) refs; /* a: order(object) */
};

static inline bool madmpi_handle_is_constant(const void *handle)
{
	return (uintptr_t)handle < MADMPI_HANDLE_CONSTANTS;
}

/* The object behind a handle that is no constant, or NULL if it is not one. */
static inline void *madmpi_handle_object(const void *handle, uint32_t kind)
{
	struct madmpi_object *o = (struct madmpi_object *)handle;

	if (unlikely((uintptr_t)handle % sizeof(void *) != 0))
		return 0;
	return likely(load_relaxed(&o->kind) == kind) ? o : 0;
}

static inline void madmpi_object_init(struct madmpi_object *o,
				      enum madmpi_kind kind)
{
	o->link = NULL;
	store_relaxed(&o->kind, (uint32_t)kind);
	store_relaxed(&o->refs, 1);
}

static inline void madmpi_object_get(struct madmpi_object *o)
{
	fetch_add_relaxed(&o->refs, 1);
}

/* In refs: the program has no handle, or none any more; others use it. */
#define MADMPI_LET_GO 0x80000000u

/* True if this was the last reference: the caller frees the object. */
static inline bool madmpi_object_put(struct madmpi_object *o)
{
	/* order(object): what others did with it comes before its end */
	return (fetch_sub_acq_rel(&o->refs, 1) & ~MADMPI_LET_GO) == 1;
}

/*
 * The program frees its handle, before the reference that this was is put. Of
 * objects of which it has one handle; groups and error handlers count theirs.
 */
static inline void madmpi_object_let_go(struct madmpi_object *o)
{
	fetch_or_relaxed(&o->refs, MADMPI_LET_GO);
}

/* The program gets a handle of one that was let go when it was made. */
static inline void madmpi_object_hand_out(struct madmpi_object *o)
{
	fetch_and_relaxed(&o->refs, ~MADMPI_LET_GO);
}

static inline bool madmpi_object_is_let_go(const struct madmpi_object *o)
{
	return (load_relaxed(&o->refs) & MADMPI_LET_GO) != 0;
}

#endif
