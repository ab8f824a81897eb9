/*
 * Packing: pieces are listed until the message is complete, then it is an
 * ordinary request over an iovec.
 */
#include <nmad/pack.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "req.h"

/* Of nm_state. */
enum state {
	ENDED,
	PACKING,
	UNPACKING,
	POSTED = 4, /* added to one of the two */
};

static bool is(const struct nm_packing *p, unsigned state)
{
	return p != NULL && p->nm_state == state;
}

static bool is_posted(const struct nm_packing *p)
{
	return is(p, PACKING | POSTED) || is(p, UNPACKING | POSTED);
}

static int fail(struct nm_packing *p, int error)
{
	p->nm_error = error;
	return error;
}

/* --- begin --- */

static void begin(struct nm_packing *p, enum state state, struct nm_session *s,
		  struct nm_gate *gate, nm_tag_t tag)
{
	p->nm_session = s;
	p->nm_gate = gate;
	p->nm_tag = tag;
	p->nm_mask = NM_TAG_EXACT;
	p->nm_flags = 0;
	p->nm_state = state;
	p->nm_error = 0;
	p->nm_n = 0;
	p->nm_room = NM_PACK_PIECES;
	p->nm_length = 0;
	p->nm_pieces = p->nm_few;
	p->nm_few[0].iov_base = NULL; /* the message may have no piece */
}

BASE_PUBLIC int nm_begin_packing(struct nm_session *s, struct nm_gate *to,
				 nm_tag_t tag, unsigned flags,
				 struct nm_packing *p)
{
	if (p == NULL)
		return -EINVAL;
	begin(p, PACKING, s, to, tag);
	p->nm_flags = flags;
	return s != NULL && to != NULL ? 0 : fail(p, -EINVAL);
}

BASE_PUBLIC int nm_begin_unpacking(struct nm_session *s, struct nm_gate *from,
				   nm_tag_t tag, nm_tag_t mask,
				   struct nm_packing *p)
{
	if (p == NULL)
		return -EINVAL;
	begin(p, UNPACKING, s, from, tag);
	p->nm_mask = mask;
	return s != NULL ? 0 : fail(p, -EINVAL);
}

/* --- pieces --- */

/* The list moves to the heap, or to a larger place there. */
static int grow(struct nm_packing *p)
{
	bool few = p->nm_pieces == p->nm_few;
	unsigned room = p->nm_room * 2;
	struct iovec *list;

	if (room < p->nm_room)
		return -ENOMEM;
	list = realloc(few ? NULL : p->nm_pieces, room * sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	if (few)
		memcpy(list, p->nm_few, sizeof(p->nm_few));
	p->nm_pieces = list;
	p->nm_room = room;
	return 0;
}

/* The last piece goes on here. */
static bool touches(const struct nm_packing *p, const void *piece)
{
	const struct iovec *last;

	if (p->nm_n == 0)
		return false;
	last = &p->nm_pieces[p->nm_n - 1];
	return (const char *)last->iov_base + last->iov_len == piece;
}

static int add(struct nm_packing *p, enum state state, void *piece,
	       size_t bytes)
{
	if (unlikely(!is(p, state)))
		return -EINVAL;
	if (unlikely(p->nm_error != 0))
		return p->nm_error;
	if (bytes == 0)
		return 0;
	if (unlikely(piece == NULL || bytes > SIZE_MAX - p->nm_length))
		return fail(p, -EINVAL);
	if (touches(p, piece)) {
		p->nm_pieces[p->nm_n - 1].iov_len += bytes;
	} else {
		if (p->nm_n == p->nm_room && grow(p) < 0)
			return fail(p, -ENOMEM);
		p->nm_pieces[p->nm_n++] = (struct iovec){ piece, bytes };
	}
	p->nm_length += bytes;
	return 0;
}

BASE_PUBLIC int nm_pack(struct nm_packing *p, const void *piece, size_t bytes)
{
	return add(p, PACKING, (void *)piece, bytes);
}

BASE_PUBLIC int nm_unpack(struct nm_packing *p, void *piece, size_t bytes)
{
	return add(p, UNPACKING, piece, bytes);
}

/* --- end --- */

static int post(struct nm_packing *p, unsigned flags)
{
	struct nm_data d =
		p->nm_n > 1 ? nm_data_iovec(p->nm_pieces, p->nm_n)
			    : nm_data_flat(p->nm_few[0].iov_base, p->nm_length);
	int rc;

	if (p->nm_error != 0)
		return p->nm_error;
	if (p->nm_state == PACKING)
		rc = nm_sr_isend(p->nm_session, p->nm_gate, p->nm_tag, &d,
				 p->nm_flags | flags, &p->nm_request);
	else
		rc = nm_sr_irecv(p->nm_session, p->nm_gate, p->nm_tag,
				 p->nm_mask, &d, &p->nm_request);
	if (rc < 0)
		return fail(p, rc);
	p->nm_state |= POSTED;
	return 0;
}

BASE_PUBLIC int nm_post_packing(struct nm_packing *p)
{
	if (!is(p, PACKING) && !is(p, UNPACKING))
		return -EINVAL;
	return post(p, 0);
}

BASE_PUBLIC struct nm_sr_request *nm_packing_request(struct nm_packing *p)
{
	return is_posted(p) ? &p->nm_request : NULL;
}

static void release(struct nm_packing *p)
{
	if (p->nm_pieces != p->nm_few)
		free(p->nm_pieces);
	p->nm_state = ENDED;
}

static int end(struct nm_packing *p, enum state state, unsigned flags,
	       struct nm_sr_status *out)
{
	int rc = 0;

	if (is(p, state))
		rc = post(p, flags);
	else if (!is(p, state | POSTED))
		return -EINVAL;
	if (rc == 0) {
		nm_sr_wait(&p->nm_request);
		nm_sr_status(&p->nm_request, out);
		rc = out->error;
	}
	release(p);
	return rc;
}

BASE_PUBLIC int nm_end_packing(struct nm_packing *p)
{
	struct nm_sr_status status;

	return end(p, PACKING, NM_SEND_NOW, &status);
}

BASE_PUBLIC int nm_end_unpacking(struct nm_packing *p, struct nm_sr_status *out)
{
	struct nm_sr_status unused;
	int rc;

	if (out == NULL)
		out = &unused;
	rc = end(p, UNPACKING, 0, out);
	return rc == 0 && out->length < p->nm_length ? -ENODATA : rc;
}

BASE_PUBLIC int nm_drop_packing(struct nm_packing *p)
{
	if (is_posted(p))
		return -EBUSY;
	if (!is(p, PACKING) && !is(p, UNPACKING))
		return -EINVAL;
	release(p);
	return 0;
}
