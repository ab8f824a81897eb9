/* nmad/sr/pack.c: messages that are put together and taken apart. */
#include "../peers.h"

#include <errno.h>
#include <stdlib.h>

/* Pieces of random lengths with gaps between them. */
enum { PIECES = 60, BYTES = 400000 };

struct pieces {
	int n;
	size_t bytes;
	unsigned char *at[PIECES];
	size_t length[PIECES];
	unsigned char memory[2 * BYTES];
};

static struct pieces out, in;
static unsigned char plain[BYTES];
static struct nm_packing packing, unpacking;

/* So many bytes in so many pieces, some of which are empty or touch. */
static void cut(struct pieces *p, int n, size_t bytes)
{
	size_t left = bytes, at = 0;

	p->n = n;
	p->bytes = bytes;
	memset(p->memory, 0xee, sizeof(p->memory));
	for (int i = 0; i < n; i++) {
		size_t length =
			i == n - 1 ? left : same_random() % (left / 4 + 2);

		if (length > left)
			length = left;
		p->at[i] = p->memory + at;
		p->length[i] = length;
		at += length + same_random() % 3 * 7;
		left -= length;
	}
	MUST(left == 0 && at <= sizeof(p->memory));
}

static void fill(struct pieces *p, uint32_t number)
{
	size_t done = 0;

	paint(plain, p->bytes, number);
	for (int i = 0; i < p->n; i++) {
		memcpy(p->at[i], plain + done, p->length[i]);
		done += p->length[i];
	}
}

/* The first `bytes` of them are the message's, and what follows is as it was.
 */
static void look(const struct pieces *p, size_t bytes, uint32_t number)
{
	size_t done = 0;

	for (int i = 0; i < p->n; i++) {
		memcpy(plain + done, p->at[i], p->length[i]);
		done += p->length[i];
	}
	MUST(is_painted(plain, bytes, number, nm_gate_rank(peer)));
	for (; bytes < done; bytes++)
		MUST(plain[bytes] == 0xee);
}

static void begin(nm_tag_t tag, const struct pieces *o, struct pieces *i)
{
	MUST(nm_begin_unpacking(session, peer, tag, NM_TAG_EXACT, &unpacking) ==
	     0);
	for (int k = 0; k < i->n; k++)
		MUST(nm_unpack(&unpacking, i->at[k], i->length[k]) == 0);
	MUST(nm_begin_packing(session, peer, tag, 0, &packing) == 0);
	for (int k = 0; k < o->n; k++)
		MUST(nm_pack(&packing, o->at[k], o->length[k]) == 0);
}

static void exchange(nm_tag_t number, int error)
{
	struct nm_sr_status status;
	size_t less = in.bytes < out.bytes ? in.bytes : out.bytes;

	fill(&out, number);
	begin(number, &out, &in);
	MUST(nm_post_packing(&unpacking) == 0);
	MUST(nm_end_packing(&packing) == 0);
	MUST(nm_end_unpacking(&unpacking, &status) == error);
	MUST(status.error == (error == -ENODATA ? 0 : error));
	MUST(status.gate == peer && status.tag == number);
	MUST(status.length == less && status.sent == out.bytes);
	look(&in, less, number);
}

static const size_t sizes[] = { 0, 1, 60, 1000, 5000, 70000, BYTES };

RULE(pieces_arrive_in_whatever_other_pieces)
{
	static const int ns[] = { 1, 2, NM_PACK_PIECES, NM_PACK_PIECES + 1,
				  PIECES };
	nm_tag_t number = 0;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (int i = 0; i < 5; i++) {
			cut(&out, ns[i], sizes[s]);
			cut(&in, ns[same_random() % 5], sizes[s]);
			exchange(number++, 0);
		}
}

RULE(lengths_that_differ_are_told_and_nothing_else_is_touched)
{
	nm_tag_t number = 0;

	for (size_t s = 1; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		cut(&out, 20, sizes[s]);
		cut(&in, 30, sizes[s] - 1 - same_random() % sizes[s]);
		exchange(number++, -EMSGSIZE);
		cut(&out, 20, sizes[s] - 1 - same_random() % sizes[s]);
		cut(&in, 30, sizes[s]);
		exchange(number++, -ENODATA);
	}
}

/* It is one message like any other. */
RULE(packed_and_unpacked_messages_meet_those_that_are_not)
{
	static unsigned char flat[BYTES];
	struct nm_sr_request req;
	nm_tag_t number = 0;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		cut(&out, 25, sizes[s]);
		cut(&in, 25, sizes[s]);
		fill(&out, number);
		begin(number, &out, &in);
		irecv_bytes(&req, peer, number, NM_TAG_EXACT, flat, sizes[s]);
		MUST(nm_end_packing(&packing) == 0);
		MUST(wait_for(&req).length == sizes[s]);
		MUST(is_painted(flat, sizes[s], number, nm_gate_rank(peer)));
		MUST(nm_post_packing(&unpacking) == 0);
		meet(1000);
		paint(plain, sizes[s], number);
		isend_bytes(&req, number, plain, sizes[s], 0);
		MUST(wait_for(&req).error == 0);
		MUST(nm_end_unpacking(&unpacking, NULL) == 0);
		look(&in, sizes[s], number++);
	}
}

RULE(unpacking_takes_from_anyone_and_any_tag)
{
	struct nm_sr_status status;
	int got = 0, said = 42;

	MUST(nm_begin_packing(session, peer, 77, NM_SEND_SYNC, &packing) == 0);
	MUST(nm_pack(&packing, &said, sizeof(said)) == 0);
	MUST(nm_post_packing(&packing) == 0);
	MUST(nm_begin_unpacking(session, NM_ANY_GATE, 0, NM_TAG_ANY,
				&unpacking) == 0);
	MUST(nm_unpack(&unpacking, &got, sizeof(got)) == 0);
	MUST(nm_end_unpacking(&unpacking, &status) == 0);
	MUST(status.gate == peer && status.tag == 77 && got == 42);
	MUST(nm_end_packing(&packing) == 0);
}

RULE(a_posted_packing_is_waited_for_among_others)
{
	struct nm_sr_request *reqs[2];

	cut(&out, 20, 50000);
	cut(&in, 20, 50000);
	fill(&out, 1);
	begin(1, &out, &in);
	MUST(nm_packing_request(&packing) == NULL);
	MUST(nm_post_packing(&unpacking) == 0);
	MUST(nm_post_packing(&packing) == 0);
	reqs[0] = nm_packing_request(&packing);
	reqs[1] = nm_packing_request(&unpacking);
	MUST(reqs[0] != NULL && reqs[1] != NULL);
	nm_sr_wait_all(reqs, 2);
	MUST(nm_end_packing(&packing) == 0);
	MUST(nm_end_unpacking(&unpacking, NULL) == 0);
	look(&in, in.bytes, 1);
}

/* --- giving up --- */

RULE(what_was_not_posted_is_dropped_and_what_was_is_cancelled)
{
	cut(&out, PIECES, 1000);
	cut(&in, PIECES, 1000);
	begin(1, &out, &in);
	MUST(nm_drop_packing(&packing) == 0);
	MUST(nm_post_packing(&unpacking) == 0);
	MUST(nm_drop_packing(&unpacking) == -EBUSY);
	MUST(nm_sr_cancel(nm_packing_request(&unpacking)) == 0);
	MUST(nm_end_unpacking(&unpacking, NULL) == -ECANCELED);
	/* Nothing was sent, and nothing was left. */
	meet(2);
	begin(1, &out, &in);
	MUST(nm_drop_packing(&unpacking) == 0);
	MUST(nm_drop_packing(&packing) == 0);
	cut(&out, 3, 1000);
	cut(&in, 3, 1000);
	exchange(1, 0);
}

/* --- errors --- */

RULE(an_error_is_kept_and_the_message_is_not_sent)
{
	struct nm_sr_status status = { .tag = 5 };
	char a[4] = "abc";

	MUST(nm_begin_packing(session, peer, 1, 0, &packing) == 0);
	MUST(nm_pack(&packing, a, 1) == 0);
	MUST(nm_pack(&packing, NULL, 1) == -EINVAL);
	MUST(nm_pack(&packing, a + 2, 1) == -EINVAL);
	MUST(nm_end_packing(&packing) == -EINVAL);
	MUST(nm_begin_packing(session, peer, 1, 0, &packing) == 0);
	MUST(nm_pack(&packing, a, 2) == 0);
	MUST(nm_pack(&packing, a, SIZE_MAX - 1) == -EINVAL);
	MUST(nm_post_packing(&packing) == -EINVAL);
	MUST(nm_packing_request(&packing) == NULL);
	MUST(nm_end_packing(&packing) == -EINVAL);
	MUST(nm_begin_unpacking(session, peer, 1, 12, &unpacking) == 0);
	MUST(nm_end_unpacking(&unpacking, &status) == -EINVAL);
	MUST(status.tag == 5);
	MUST(nm_begin_packing(session, peer, 1, ~0u, &packing) == 0);
	MUST(nm_end_packing(&packing) == -EINVAL);
	meet(2);
	MUST(nm_sr_probe(session, peer, 1, NM_TAG_EXACT, &status) == -EAGAIN);
}

RULE(nonsense_is_refused)
{
	int x = 0;

	MUST(nm_begin_packing(session, peer, 0, 0, NULL) == -EINVAL);
	MUST(nm_begin_packing(NULL, peer, 0, 0, &packing) == -EINVAL);
	MUST(nm_end_packing(&packing) == -EINVAL);
	MUST(nm_begin_packing(session, NULL, 0, 0, &packing) == -EINVAL);
	MUST(nm_pack(&packing, &x, 4) == -EINVAL);
	MUST(nm_drop_packing(&packing) == 0);
	MUST(nm_begin_unpacking(session, peer, 0, 0, NULL) == -EINVAL);
	MUST(nm_begin_unpacking(NULL, peer, 0, 0, &packing) == -EINVAL);
	MUST(nm_end_unpacking(&packing, NULL) == -EINVAL);
	MUST(nm_pack(NULL, &x, 4) == -EINVAL);
	MUST(nm_unpack(NULL, &x, 4) == -EINVAL);
	MUST(nm_post_packing(NULL) == -EINVAL);
	MUST(nm_drop_packing(NULL) == -EINVAL);
	MUST(nm_end_packing(NULL) == -EINVAL);
	MUST(nm_end_unpacking(NULL, NULL) == -EINVAL);
	MUST(nm_packing_request(NULL) == NULL);
}

/* The wrong way round, too late, and once more. */
RULE(what_does_not_belong_to_a_packing_is_refused_and_harms_nothing)
{
	int x = 7, y = 0;

	MUST(nm_begin_unpacking(session, peer, 1, NM_TAG_EXACT, &unpacking) ==
	     0);
	MUST(nm_pack(&unpacking, &x, sizeof(x)) == -EINVAL);
	MUST(nm_end_packing(&unpacking) == -EINVAL);
	MUST(nm_unpack(&unpacking, &y, sizeof(y)) == 0);
	MUST(nm_post_packing(&unpacking) == 0);
	MUST(nm_post_packing(&unpacking) == -EINVAL);
	MUST(nm_unpack(&unpacking, &y, sizeof(y)) == -EINVAL);
	MUST(nm_begin_packing(session, peer, 1, 0, &packing) == 0);
	MUST(nm_unpack(&packing, &y, sizeof(y)) == -EINVAL);
	MUST(nm_end_unpacking(&packing, NULL) == -EINVAL);
	MUST(nm_pack(&packing, &x, sizeof(x)) == 0);
	MUST(nm_end_packing(&packing) == 0);
	MUST(nm_end_packing(&packing) == -EINVAL);
	MUST(nm_pack(&packing, &x, sizeof(x)) == -EINVAL);
	MUST(nm_drop_packing(&packing) == -EINVAL);
	MUST(nm_end_unpacking(&unpacking, NULL) == 0);
	MUST(nm_packing_request(&unpacking) == NULL);
	MUST(y == 7);
}
