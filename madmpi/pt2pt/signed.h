/*
 * MADMPI_CHECK=2: every point-to-point message begins with the signature of
 * what is sent, and its receiver compares that with its own type.
 *
 *   |<- struct madmpi_signature ->|<- data, as without the check ->|
 *
 * The signature is part of the message, so whatever path the message takes and
 * whichever receive matches it, the two arrive together, also where the data
 * are cut. All processes have the same setting: with the check the sessions of
 * communicators have other numbers, so a process without it does not take a
 * signature for data. nmad counts the signature's bytes, and the program must
 * not: outcomes leave them out. Partitioned messages send one signature with
 * their terms.
 */
#ifndef MADMPI_PT2PT_SIGNED_H
#define MADMPI_PT2PT_SIGNED_H

#include "datatype/signature.h"
#include "datatype/type.h"
#include "pt2pt/status.h"

/*
 * A request walks over this, with the check always. `layout` is the data of
 * this process, and `sent` the signature in the message: after a receive the
 * sender's.
 */
struct madmpi_signed {
	struct madmpi_layout layout;
	struct madmpi_signature sent;
};

/*
 * Describe a message to nmad, with room for a signature in front: of n elements
 * of type t, which may be another than that of the data (a packed copy).
 */
struct nm_data madmpi_signed_data(struct madmpi_signed *to, const void *base,
				  MPI_Count count,
				  const struct madmpi_type *type, MPI_Count n,
				  const struct madmpi_type *t);

/* The number of a communicator's session, for messages of this process. */
uint64_t madmpi_signed_session(uint64_t id);

/*
 * Compares what was sent with the type of its receive. With the check a
 * mismatch is an error of the outcome, unless that has another one already.
 */
void madmpi_signed_compare(struct madmpi_outcome *o,
			   const struct madmpi_signed *got);

/*
 * The end of a receive that walks. With the check all receives do, and this
 * leaves the signature out of the outcome and compares it. A message that ends
 * within an element is an error, with the check or without.
 */
void madmpi_signed_check(struct madmpi_outcome *o,
			 const struct madmpi_signed *got);

/* The end of a probe: leaves the signature out of the outcome. */
void madmpi_signed_probed(struct madmpi_outcome *o);

/* Writes the mismatch: "3 x MPI_DOUBLE sent, up to 6 x MPI_FLOAT received". */
void madmpi_signed_describe(const struct madmpi_signed *got, char *out,
			    size_t room);

#endif
