/*
 * Descriptions of user memory: walking, slicing, copying. All kinds come down
 * to one walk over pieces; flat memory has its own short way.
 */
#include "place.h"

#include <string.h>

#include <base/diag.h>

BASE_PUBLIC struct nm_data nm_data_iovec(const struct iovec *iov, unsigned n)
{
	struct nm_data d = { .kind = NM_DATA_IOVEC, .niov = n, .iov = iov };

	for (unsigned i = 0; i < n; i++)
		d.length += iov[i].iov_len;
	return d;
}

BASE_PUBLIC struct nm_data nm_data_walker(const void *what, size_t bytes,
					  nm_walk_fn walk)
{
	struct nm_data d = { .kind = NM_DATA_WALK,
			     .length = bytes,
			     .what = what,
			     .walk = walk };

	return d;
}

/* From the last place, in whichever direction, to the piece with the offset. */
static void seek(const struct nm_data *d, struct nm_data_place *place,
		 size_t offset)
{
	while (offset < place->before)
		place->before -= d->iov[--place->piece].iov_len;
	while (offset - place->before >= d->iov[place->piece].iov_len)
		place->before += d->iov[place->piece++].iov_len;
}

static int walk_iovec(const struct nm_data *d, struct nm_data_place *place,
		      size_t offset, size_t length, nm_piece_fn each, void *arg)
{
	size_t skip;

	seek(d, place, offset);
	skip = offset - place->before;
	for (unsigned i = place->piece; length > 0; i++) {
		size_t bytes = d->iov[i].iov_len - skip;
		int rc;

		if (bytes == 0)
			continue;
		if (bytes > length)
			bytes = length;
		rc = each(arg, (char *)d->iov[i].iov_base + skip, bytes);
		if (rc != 0)
			return rc;
		skip = 0;
		length -= bytes;
	}
	return 0;
}

int nm_data_walk_on(const struct nm_data *d, struct nm_data_place *place,
		    size_t offset, size_t length, nm_piece_fn each, void *arg)
{
	base_assert(offset <= d->length && length <= d->length - offset);
	if (length == 0)
		return 0;
	switch (d->kind) {
	case NM_DATA_FLAT:
		return each(arg, (char *)d->base + offset, length);
	case NM_DATA_IOVEC:
		return walk_iovec(d, place, offset, length, each, arg);
	case NM_DATA_WALK:
		return d->walk(d->what, offset, length, each, arg);
	case NM_DATA_COPY:
		return d->walker->walk(d->what, offset, length, each, arg);
	}
	return 0;
}

BASE_PUBLIC int nm_data_walk(const struct nm_data *d, size_t offset,
			     size_t length, nm_piece_fn each, void *arg)
{
	struct nm_data_place beginning = { 0 };

	return nm_data_walk_on(d, &beginning, offset, length, each, arg);
}

static int copy_out(void *arg, void *piece, size_t bytes)
{
	char **to = arg;

	memcpy(*to, piece, bytes);
	*to += bytes;
	return 0;
}

static int copy_in(void *arg, void *piece, size_t bytes)
{
	const char **from = arg;

	memcpy(piece, *from, bytes);
	*from += bytes;
	return 0;
}

void nm_data_copy_out_on(const struct nm_data *d, struct nm_data_place *place,
			 size_t offset, void *to, size_t length)
{
	if (length == 0)
		return;
	if (d->kind == NM_DATA_FLAT)
		memcpy(to, (char *)d->base + offset, length);
	else if (d->kind == NM_DATA_COPY)
		d->walker->copy(d->what, offset, length, to, false);
	else
		nm_data_walk_on(d, place, offset, length, copy_out, &to);
}

void nm_data_copy_in_on(const struct nm_data *d, struct nm_data_place *place,
			size_t offset, const void *from, size_t length)
{
	if (length == 0)
		return;
	if (d->kind == NM_DATA_FLAT)
		memcpy((char *)d->base + offset, from, length);
	else if (d->kind == NM_DATA_COPY)
		d->walker->copy(d->what, offset, length, (void *)from, true);
	else
		nm_data_walk_on(d, place, offset, length, copy_in, &from);
}

BASE_PUBLIC void nm_data_copy_out(const struct nm_data *d, size_t offset,
				  void *to, size_t length)
{
	struct nm_data_place beginning = { 0 };

	nm_data_copy_out_on(d, &beginning, offset, to, length);
}

BASE_PUBLIC void nm_data_copy_in(const struct nm_data *d, size_t offset,
				 const void *from, size_t length)
{
	struct nm_data_place beginning = { 0 };

	nm_data_copy_in_on(d, &beginning, offset, from, length);
}
