/*
 * A job of several processes that share memory: after the start the others cost
 * rank 0 nothing. Then it talks with rank 1, and has that one; the others wait
 * for a word of rank 0's, and send nothing.
 */
#include "../../check.h"

#include <sys/resource.h>

#include <nmad/nmad.h>

#include "has.h"

enum { SESSION = 5, TALK = 1, GO = 2, FDS = 32 };

static struct nm_session *session;

static void send_to(int rank, nm_tag_t tag)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_sr_request req;

	CHECK_INT(
		nm_sr_isend(session, nm_gate_of(rank), tag, &nothing, 0, &req),
		0);
	nm_sr_wait(&req);
}

static void hear_from(int rank, nm_tag_t tag)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct nm_sr_request req;

	CHECK_INT(nm_sr_irecv(session, nm_gate_of(rank), tag, NM_TAG_EXACT,
			      &nothing, &req),
		  0);
	nm_sr_wait(&req);
}

static void be_first(void)
{
	struct has start = look(), then;

	CHECK_INT(start.pidfds, 0);
	CHECK(start.maps <= 2); /* the beginning, and its own segment */
	CHECK(start.bytes > 0 && start.bytes < 3400000);
	send_to(1, TALK);
	hear_from(1, TALK);
	then = look();
	CHECK_INT(then.pidfds, 1);
	CHECK_INT(then.fds, start.fds + 2); /* and a bell */
	CHECK(then.maps <= 3);
	CHECK(then.bytes > start.bytes && then.bytes < 2 * start.bytes);
	for (int rank = 1; rank < nm_size(); rank++)
		send_to(rank, GO);
}

TEST(who_has_started_has_no_peers_yet)
{
	struct rlimit limit;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < FDS)
		check_skip("too few descriptors for nmad and a look");
	CHECK_INT(nm_init(), 0);
	CHECK(nm_size() > 2);
	CHECK_INT(nm_session_open(SESSION, &session), 0);
	if (nm_rank() == 0) {
		be_first();
	} else if (nm_rank() == 1) {
		hear_from(0, TALK);
		send_to(0, TALK);
		hear_from(0, GO);
	} else {
		hear_from(0, GO);
	}
	CHECK_INT(nm_session_close(session), 0);
	CHECK_INT(nm_exit(), 0);
}
