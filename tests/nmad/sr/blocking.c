/* nmad/sr: nm_sr_send() and nm_sr_recv(). */
#include "../peers.h"

#include <errno.h>
#include <string.h>

enum { BYTES = 200000 };

static unsigned char from[BYTES], to[BYTES];

/* One sends while the other receives; alone, both cannot wait at once. */
static void pass(int sender, size_t bytes, size_t room, int error)
{
	struct nm_data out = nm_data_flat(from, bytes);
	struct nm_data in = nm_data_flat(to, room);
	struct nm_sr_request req;
	struct nm_sr_status status;

	if (nm_rank() == sender && nm_size() == 2) {
		MUST(nm_sr_send(session, peer, 3, &out, 0) == 0);
		return;
	}
	if (nm_size() == 1)
		MUST(nm_sr_isend(session, peer, 3, &out, 0, &req) == 0);
	MUST(nm_sr_recv(session, NM_ANY_GATE, 0, NM_TAG_ANY, &in, &status) ==
	     error);
	MUST(status.error == error && status.sent == bytes);
	MUST(status.tag == 3 && status.gate == peer);
	MUST(status.length == (room < bytes ? room : bytes));
	MUST(is_painted(to, status.length, (uint32_t)bytes,
			nm_gate_rank(peer)));
	if (nm_size() == 1)
		MUST(wait_for(&req).error == 0);
}

RULE(a_blocking_receive_gives_the_status_of_its_message)
{
	static const size_t sizes[] = { 0, 1, 100, 5000, BYTES };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		paint(from, sizes[i], (uint32_t)sizes[i]);
		for (int sender = 0; sender < 2; sender++) {
			pass(sender, sizes[i], BYTES, 0);
			if (sizes[i] > 0)
				pass(sender, sizes[i], sizes[i] - 1, -EMSGSIZE);
		}
	}
}

/* What the message took when the blocking call returned is the caller's. */
RULE(a_blocking_send_is_over_when_its_data_may_be_changed)
{
	static const size_t sizes[] = { 8, 5000, BYTES };

	for (size_t i = 0; i < 3; i++) {
		struct nm_data out = nm_data_flat(from, sizes[i]);
		struct nm_sr_request in;

		irecv_bytes(&in, peer, 1, NM_TAG_EXACT, to, sizes[i]);
		meet(2);
		paint(from, sizes[i], 7);
		MUST(nm_sr_send(session, peer, 1, &out,
				i % 2 ? NM_SEND_SYNC : 0) == 0);
		memset(from, 0, sizes[i]);
		MUST(wait_for(&in).error == 0);
		MUST(is_painted(to, sizes[i], 7, nm_gate_rank(peer)));
	}
}

RULE(a_blocking_call_needs_no_status_and_refuses_nonsense)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);
	const struct nm_data bad[] = {
		nm_data_flat(NULL, 1),
		nm_data_walker(from, 1, NULL),
		{ .kind = NM_DATA_IOVEC, .niov = 1, .length = 1 },
		{ .kind = NM_DATA_COPY + 1, .length = 1, .base = from },
	};
	struct nm_sr_status status = { .tag = 77 };
	struct nm_sr_request out;

	MUST(nm_sr_send(NULL, peer, 0, &nothing, 0) == -EINVAL);
	MUST(nm_sr_send(session, NULL, 0, &nothing, 0) == -EINVAL);
	MUST(nm_sr_send(session, peer, 0, NULL, 0) == -EINVAL);
	MUST(nm_sr_send(session, peer, 0, &nothing, ~0u) == -EINVAL);
	MUST(nm_sr_recv(NULL, peer, 0, 0, &nothing, &status) == -EINVAL);
	MUST(nm_sr_recv(session, peer, 0, 0, NULL, &status) == -EINVAL);
	MUST(nm_sr_recv(session, peer, 0, 1, &nothing, &status) == -EINVAL);
	MUST(status.tag == 77);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		MUST(nm_sr_send(session, peer, 0, &bad[i], 0) == -EINVAL);
		MUST(nm_sr_recv(session, peer, 0, 0, &bad[i], NULL) == -EINVAL);
	}
	isend_bytes(&out, 5, NULL, 0, 0);
	MUST(nm_sr_recv(session, peer, 5, NM_TAG_EXACT, &nothing, NULL) == 0);
	MUST(wait_for(&out).error == 0);
}
