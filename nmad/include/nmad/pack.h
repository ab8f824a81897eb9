/*
 * Packing (NewMadeleine's interface, after Madeleine's): a message is put
 * together from pieces of memory that lie anywhere, one call a piece, and taken
 * apart in the same way.
 *
 *   struct nm_packing p;
 *
 *   nm_begin_packing(s, peer, tag, 0, &p);
 *   nm_pack(&p, &head, sizeof(head));
 *   nm_pack(&p, row[3], bytes);
 *   rc = nm_end_packing(&p);
 *
 * and there
 *
 *   nm_begin_unpacking(s, peer, tag, mask, &p);
 *   nm_unpack(&p, &head, sizeof(head));
 *   nm_unpack(&p, row[3], bytes);
 *   rc = nm_end_unpacking(&p, NULL);
 *
 * One message travels, whatever the number of pieces, as if it had been sent
 * with an iovec: only its bytes count, so the receiver may cut them in other
 * places, or take them by nm_sr_recv(), and unpack what nm_sr_send() has sent.
 *
 * Pieces are copied nowhere. Between the call that names a piece and the end it
 * is nmad's: the sender may not change it, and to the receiver nothing of it is
 * there before nm_end_unpacking(). Nothing is received piece by piece: who must
 * see a length before it can name the next piece sends two messages, or asks
 * nm_sr_probe_wait() for the length of the whole.
 *
 * The first NM_PACK_PIECES pieces are listed in the structure; for more of them
 * a list is allocated. Pieces that touch, in their order, are one.
 *
 * An error is kept: nothing is sent or received any more and the end returns
 * it, so it is enough to look there. Every packing that was begun is ended, or
 * dropped, by one thread at a time; the structure stays where it is until then.
 * Afterwards, and if it is the wrong way round, every call answers -EINVAL.
 */
#ifndef NMAD_PACK_H
#define NMAD_PACK_H

#include <nmad/sendrecv.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NM_PACK_PIECES = 16 };

/* The caller's memory, nmad's content. */
struct nm_packing {
	struct nm_session *nm_session;
	struct nm_gate *nm_gate;
	nm_tag_t nm_tag, nm_mask;
	unsigned nm_flags;
	unsigned nm_state;
	int nm_error;
	unsigned nm_n, nm_room;  /* pieces: listed, and that may be */
	size_t nm_length;        /* of all */
	struct iovec *nm_pieces; /* nm_few or allocated */
	struct iovec nm_few[NM_PACK_PIECES];
	struct nm_sr_request nm_request;
};

/*
 * Begin a message; arguments as of nm_sr_isend() and nm_sr_irecv(). Neither
 * blocks nor allocates. 0, or -EINVAL: a null pointer (flags and masks are
 * looked at when the message is posted).
 */
int nm_begin_packing(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
		     unsigned flags, struct nm_packing *p);
int nm_begin_unpacking(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		       nm_tag_t mask, struct nm_packing *p);

/*
 * The next piece; one of 0 bytes may be anywhere. Does not block. 0; -ENOMEM:
 * no memory for a longer list; -EINVAL: a null pointer, more bytes than a
 * size_t can count, a packing that is not begun or is posted; or an error from
 * before. Unless it is the packing that is wrong the error is kept.
 */
int nm_pack(struct nm_packing *p, const void *piece, size_t bytes);
int nm_unpack(struct nm_packing *p, void *piece, size_t bytes);

/*
 * No more pieces: send, or receive, without waiting. 0, or an error, which is
 * kept. It must be ended all the same.
 */
int nm_post_packing(struct nm_packing *p);

/*
 * The request of one that is posted, else NULL: to be tested, waited for among
 * others, or given up (nm_sr_cancel()) before the end.
 */
struct nm_sr_request *nm_packing_request(struct nm_packing *p);

/*
 * Post it, unless that is done, wait until it is complete, blocking only the
 * calling thread, and give back what was allocated. 0, the error that was kept,
 * or that of the request (nm_sr_status()). Of an unpacking also:
 *
 *   -EMSGSIZE  the message is longer: the pieces are full, its end is lost;
 *   -ENODATA   it is shorter: what it does not reach is as it was.
 *
 * *out, unless NULL, is the status of the receive, whose own error is 0 where
 * the message is shorter; not written if nothing was posted.
 */
int nm_end_packing(struct nm_packing *p);
int nm_end_unpacking(struct nm_packing *p, struct nm_sr_status *out);

/* Give up one that is not posted. 0; -EBUSY: it is, so end it; -EINVAL. */
int nm_drop_packing(struct nm_packing *p);

#ifdef __cplusplus
}
#endif

#endif
