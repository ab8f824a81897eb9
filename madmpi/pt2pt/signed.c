/*
 * Messages that say what they consist of, and comparing that.
 */
#include "pt2pt/signed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "datatype/copy.h"

enum { FRONT = sizeof(struct madmpi_signature) };

_Static_assert(FRONT == 24, "no padding travels");

/* struct nm_walker's copy(): the signature, then the data. */
static void copy(const void *what, size_t offset, size_t length, void *flat,
		 bool in)
{
	struct madmpi_signed *s = (struct madmpi_signed *)what;
	char *at = (char *)&s->sent, *to = flat;
	size_t front = offset < FRONT ? FRONT - offset : 0;

	if (front > length)
		front = length;
	if (front > 0 && in)
		memcpy(at + offset, to, front);
	else if (front > 0)
		memcpy(to, at + offset, front);
	if (front < length)
		madmpi_layout_copy(&s->layout, offset + front - FRONT,
				   length - front, to + front, in);
}

/* nm_walk_fn */
static int walk(const void *what, size_t offset, size_t length,
		nm_piece_fn each, void *arg)
{
	struct madmpi_signed *s = (struct madmpi_signed *)what;
	size_t front = offset < FRONT ? FRONT - offset : 0;
	int rc = 0;

	if (front > length)
		front = length;
	if (front > 0)
		rc = each(arg, (char *)&s->sent + offset, front);
	if (rc != 0 || front == length)
		return rc;
	return madmpi_layout_walk(&s->layout, offset + front - FRONT,
				  length - front, each, arg);
}

static const struct nm_walker walker = { walk, copy };

struct nm_data madmpi_signed_data(struct madmpi_signed *to, const void *base,
				  MPI_Count count,
				  const struct madmpi_type *type, MPI_Count n,
				  const struct madmpi_type *t)
{
	struct nm_data d = nm_data_flat(NULL, 0);

	to->layout = (struct madmpi_layout){ (uintptr_t)base, count, type, 0 };
	to->sent = madmpi_signature_of(t, n);
	d.kind = NM_DATA_COPY;
	d.length = FRONT + (size_t)(count * type->size);
	d.what = to;
	d.walker = &walker;
	return d;
}

uint64_t madmpi_signed_session(uint64_t id)
{
	return madmpi_checks_all ? id ^ (uint64_t)1 << 61 : id;
}

static void leave_out(MPI_Count *bytes)
{
	*bytes -= *bytes < FRONT ? *bytes : FRONT;
}

void madmpi_signed_probed(struct madmpi_outcome *o)
{
	if (likely(!madmpi_checks_all))
		return;
	leave_out(&o->bytes);
	leave_out(&o->sent);
}

void madmpi_signed_compare(struct madmpi_outcome *o,
			   const struct madmpi_signed *got)
{
	const struct madmpi_layout *l = &got->layout;

	if (o->error != 0 || o->is_cancelled || !madmpi_checks_all ||
	    madmpi_signature_fits(&got->sent, l->type, l->count))
		return;
	o->error = -EPROTOTYPE;
	o->unfit = got;
}

void madmpi_signed_check(struct madmpi_outcome *o,
			 const struct madmpi_signed *got)
{
	madmpi_signed_probed(o);
	madmpi_signed_compare(o, got);
	if (o->error == 0 && o->bytes > 0 &&
	    madmpi_type_elements(got->layout.type, o->bytes) < 0)
		o->error = -EPROTOTYPE;
}

void madmpi_signed_describe(const struct madmpi_signed *got, char *out,
			    size_t room)
{
	struct madmpi_signature own =
		madmpi_signature_of(got->layout.type, got->layout.count);
	char sent[64], here[64];

	madmpi_signature_describe(&got->sent, sent, sizeof(sent));
	madmpi_signature_describe(&own, here, sizeof(here));
	snprintf(out, room, "%s sent, up to %s received", sent, here);
}
