/*
 * Between two processes: a large message is brought to the receive that waits
 * for it by its sender alone. Nobody but who calls nmad makes progress here
 * (the environment says so), and the receiver calls nothing until it has seen
 * the last byte.
 */
#include "../../check.h"

#include <stdlib.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "../../../nmad/drivers/shm/shm.h"

enum { ROUNDS = 50, BYTES = 1000000, SESSION = 7, READY = 1, TAG = 2 };

static struct nm_session *session;
static struct nm_gate *peer;
static unsigned char text[BYTES];

static void say(nm_tag_t tag)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_sr_request req;

	CHECK_INT(nm_sr_isend(session, peer, tag, &nothing, NM_SEND_NOW, &req),
		  0);
	nm_sr_wait(&req);
}

static void hear(nm_tag_t tag)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_sr_request req;

	CHECK_INT(nm_sr_irecv(session, peer, tag, NM_TAG_EXACT, &nothing, &req),
		  0);
	nm_sr_wait(&req);
}

static void send_round(int i, size_t length)
{
	struct nm_data data = nm_data_flat(text, length);
	struct nm_sr_request req;

	memset(text, i, length);
	hear(READY);
	CHECK_INT(nm_sr_isend(session, peer, TAG, &data, 0, &req), 0);
	nm_sr_wait(&req);
}

static void receive_round(int i, size_t length)
{
	struct nm_data data = nm_data_flat(text, sizeof(text));
	const volatile unsigned char *seen = text;
	struct nm_sr_request req;
	struct nm_sr_status status;

	memset(text, 0, sizeof(text));
	CHECK_INT(nm_sr_irecv(session, peer, TAG, NM_TAG_EXACT, &data, &req),
		  0);
	say(READY);
	/* The sender begins with the last block. */
	for (size_t at = 0; at < length; at += 1000)
		while (seen[at] != i)
			;
	nm_sr_wait(&req);
	nm_sr_status(&req, &status);
	CHECK_INT(status.error, 0);
	CHECK_INT(status.length, length);
	for (size_t at = 0; at < length; at++)
		CHECK_INT(text[at], i);
}

/*
 * Without it everything goes through the receiver's hands. That is seen when
 * the peer is used for the first time.
 */
static bool can_announce(void)
{
	say(READY);
	hear(READY);
	return nm_shm_has_cma(peer->links[0]->conn);
}

TEST(the_receiver_only_computes)
{
	bool can;

	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_size(), 2);
	peer = nm_gate_of(1 - nm_rank());
	CHECK_INT(nm_session_open(SESSION, &session), 0);
	can = can_announce();
	for (int i = 1; i <= ROUNDS && can; i++) {
		size_t length = BYTES - (size_t)i * 17000;

		if (nm_rank() == 0)
			send_round(i, length);
		else
			receive_round(i, length);
	}
	CHECK_INT(nm_session_close(session), 0);
	CHECK_INT(nm_exit(), 0);
	if (!can)
		check_skip("the kernel lets nobody into others' memory here");
}
