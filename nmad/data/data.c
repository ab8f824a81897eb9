/*
 * Descriptions of user memory: walking, slicing, copying. All kinds come down
 * to one walk over pieces; flat memory has its own short way.
 */
#include <nmad/data.h>

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

static int walk_iovec(const struct nm_data *d, size_t offset, size_t length,
		      nm_piece_fn each, void *arg)
{
	for (unsigned i = 0; i < d->niov && length > 0; i++) {
		size_t bytes = d->iov[i].iov_len;
		int rc;

		if (offset >= bytes) {
			offset -= bytes;
			continue;
		}
		bytes -= offset;
		if (bytes > length)
			bytes = length;
		rc = each(arg, (char *)d->iov[i].iov_base + offset, bytes);
		if (rc != 0)
			return rc;
		offset = 0;
		length -= bytes;
	}
	return 0;
}

BASE_PUBLIC int nm_data_walk(const struct nm_data *d, size_t offset,
			     size_t length, nm_piece_fn each, void *arg)
{
	base_assert(offset <= d->length && length <= d->length - offset);
	if (length == 0)
		return 0;
	switch (d->kind) {
	case NM_DATA_FLAT:
		return each(arg, (char *)d->base + offset, length);
	case NM_DATA_IOVEC:
		return walk_iovec(d, offset, length, each, arg);
	case NM_DATA_WALK:
		return d->walk(d->what, offset, length, each, arg);
	}
	return 0;
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

BASE_PUBLIC void nm_data_copy_out(const struct nm_data *d, size_t offset,
				  void *to, size_t length)
{
	if (length == 0)
		return;
	if (d->kind == NM_DATA_FLAT)
		memcpy(to, (char *)d->base + offset, length);
	else
		nm_data_walk(d, offset, length, copy_out, &to);
}

BASE_PUBLIC void nm_data_copy_in(const struct nm_data *d, size_t offset,
				 const void *from, size_t length)
{
	if (length == 0)
		return;
	if (d->kind == NM_DATA_FLAT)
		memcpy((char *)d->base + offset, from, length);
	else
		nm_data_walk(d, offset, length, copy_in, &from);
}
