/*
 * What a message consists of: one piece of memory, a list of pieces, or a
 * function that walks over the pieces (an MPI datatype). The core copies and
 * slices; it knows nothing of types.
 */
#ifndef NMAD_DATA_H
#define NMAD_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Given each contiguous piece in order; nonzero stops the walk. */
typedef int (*nm_piece_fn)(void *arg, void *piece, size_t bytes);

/*
 * Walk over the bytes [offset, offset + length) of the message. Must not block,
 * allocate or call nmad: it may run in an ltask, and while a lock of nmad's is
 * held. Walks over other bytes of the same message may run at the same time.
 * Returns what `each` returned last.
 */
typedef int (*nm_walk_fn)(const void *what, size_t offset, size_t length,
			  nm_piece_fn each, void *arg);

/*
 * A walk, and what copies without a call for each piece: these bytes out of
 * the message to `flat`, or `in` from there. The same rules hold.
 */
struct nm_walker {
	nm_walk_fn walk;
	void (*copy)(const void *what, size_t offset, size_t length, void *flat,
		     bool in);
};

enum nm_data_kind {
	NM_DATA_FLAT,  /* base */
	NM_DATA_IOVEC, /* iov, niov */
	NM_DATA_WALK,  /* walk(what, ...) */
	NM_DATA_COPY,  /* walker->walk(what, ...), and ->copy() */
};

/* Copied by value into requests; what it points to is the caller's. */
struct nm_data {
	enum nm_data_kind kind;
	unsigned niov;
	size_t length; /* bytes in all */
	__extension__ union {
		void *base;
		const struct iovec *iov;
		const void *what;
	};
	__extension__ union {
		nm_walk_fn walk;
		const struct nm_walker *walker;
	};
};

static inline struct nm_data nm_data_flat(const void *base, size_t bytes)
{
	struct nm_data d;

	d.kind = NM_DATA_FLAT;
	d.niov = 0;
	d.length = bytes;
	d.base = (void *)base;
	d.walk = 0;
	return d;
}

/*
 * Pieces, one after the other; some may be empty, and the lengths must not be
 * more than a size_t can hold. The array must live, and stay as it is, as long
 * as the request. Their number costs no more than each of them: a network takes
 * a message up where it has left it.
 */
struct nm_data nm_data_iovec(const struct iovec *iov, unsigned n);

/*
 * A walker, which knows of itself where an offset is; `what` must live as long
 * as the request.
 */
struct nm_data nm_data_walker(const void *what, size_t bytes, nm_walk_fn walk);

/* Walk over [offset, offset + length) of any kind; it must lie inside. */
int nm_data_walk(const struct nm_data *d, size_t offset, size_t length,
		 nm_piece_fn each, void *arg);

/* Copy bytes [offset, offset + length) out of the message, or into it. */
void nm_data_copy_out(const struct nm_data *d, size_t offset, void *to,
		      size_t length);
void nm_data_copy_in(const struct nm_data *d, size_t offset, const void *from,
		     size_t length);

#ifdef __cplusplus
}
#endif

#endif
