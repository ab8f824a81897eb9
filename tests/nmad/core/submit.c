/*
 * nmad/core/submit.c: receives that find no memory in the match tables wait in
 * their order, can be given up, and belong to their session. The first that
 * names a peer has it connected.
 */
#include "../../check.h"

#include <errno.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "mock.h"

/* The tables have room for 4,096 at the start. */
enum { MANY = 20000 };

extern const struct nm_strategy *const nm_strategies[];

static int nasked; /* to connect */
static int answer;

static int mock_connect(struct nm_link *link)
{
	nasked++;
	if (answer == 0)
		link->conn = link;
	return answer;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	return false;
}

static const struct nm_driver mock = { .name = "mock",
				       .connect = mock_connect,
				       .poll = mock_poll };
static struct nm_core core;
static struct nm_session *session, *other;
static struct nm_sr_request reqs[MANY], last;

static void setup(void)
{
	mock_core(&core, &mock, 1000);
	CHECK_INT(nm_core_session_open(&core, 5, &session), 0);
	CHECK_INT(nm_core_session_open(&core, 6, &other), 0);
}

static void teardown(void)
{
	nm_match_check(&core.match);
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(nm_core_session_close(other), 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static void post(struct nm_session *s, uint32_t tag, struct nm_sr_request *req)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);

	CHECK_INT(nm_sr_irecv(s, &core.gates[1], tag, NM_TAG_EXACT, &nothing,
			      req),
		  0);
}

/*
 * So many at once that the tables cannot take them: while somebody is inside
 * nobody is told to bring memory, and then all come together. `last` is the
 * last of them, of the other session.
 */
static void flood(void)
{
	base_pin();
	CHECK(nm_core_enter(&core.lock));
	for (uint32_t i = 0; i < MANY; i++)
		post(session, i, &reqs[i]);
	post(other, 0, &last);
	nm_core_leave(&core.lock);
	base_unpin();
}

static void give_up(struct nm_sr_request *req)
{
	struct nm_sr_status s;

	CHECK_INT(nm_sr_cancel(req), 0);
	CHECK(nm_sr_is_complete(req));
	nm_sr_status(req, &s);
	CHECK_INT(s.error, -ECANCELED);
	CHECK_PTR(s.gate, NULL);
	CHECK_INT(nm_sr_cancel(req), -EALREADY);
}

/* As the refiller does, as long as it is asked. */
static void refill(void)
{
	while (core.stalled.first != NULL) {
		CHECK(core.refill_asked);
		marcel_event_init(&core.refill);
		nm_core_refill(&core, true);
	}
}

TEST(a_receive_that_waits_for_memory_can_be_given_up)
{
	flood();
	give_up(&reqs[MANY - 1]);
	CHECK(core.stalled.first != NULL);
	give_up(&last); /* the end of the list, then one amidst it */
	give_up(&reqs[MANY - 3]);
	refill();
	for (int i = 0; i < MANY; i++)
		if (!nm_sr_is_complete(&reqs[i]))
			give_up(&reqs[i]);
}

TEST(the_list_goes_on_when_its_end_was_given_up)
{
	flood();
	give_up(&last);
	store_relaxed(&core.low, 0); /* so that it brings no memory */
	post(other, 1, &last);
	give_up(&reqs[MANY - 1]);
	CHECK_PTR(core.stalled.last, &nm_req_of(&last)->node.next);
	refill();
	CHECK(nm_match_is_posted(&nm_req_of(&last)->recv));
	for (int i = 0; i < MANY - 1; i++)
		give_up(&reqs[i]);
	give_up(&last);
}

/* Nobody else may come: what was brought for the first may not do for all. */
TEST(memory_is_asked_for_until_all_have_found_some)
{
	flood();
	give_up(&reqs[0]);
	refill();
	for (int i = 1; i < MANY; i++)
		give_up(&reqs[i]);
	give_up(&last);
}

TEST(a_session_whose_receives_wait_for_memory_is_in_use)
{
	flood();
	CHECK_INT(nm_core_session_close(other), -EBUSY);
	CHECK(core.stalled.first != NULL);
	give_up(&last);
	CHECK_INT(nm_core_session_close(other), 0);
	CHECK_INT(nm_core_session_open(&core, 6, &other), 0);
	for (int i = 0; i < MANY; i++)
		give_up(&reqs[i]);
}

/* --- the first that names a peer --- */

static void forget_peer(int then)
{
	links[0][1].conn = NULL;
	nasked = 0;
	answer = then;
}

TEST(the_first_receive_that_names_a_peer_connects_it)
{
	struct nm_data nothing = nm_data_flat(NULL, 0);

	forget_peer(0);
	CHECK_INT(nm_sr_irecv(session, NULL, 1, NM_TAG_EXACT, &nothing, &last),
		  0);
	CHECK_INT(nasked, 1); /* from anyone: it may be each member */
	post(session, 1, &reqs[0]);
	CHECK_INT(nasked, 1);
	post(session, 2, &reqs[1]);
	CHECK_INT(nasked, 1);
	for (int i = 0; i < 2; i++)
		give_up(&reqs[i]);
	give_up(&last);
}

/* Who only looks hears of its death, too. */
TEST(the_first_probe_that_names_a_peer_connects_it)
{
	struct nm_message *msg;
	struct nm_sr_status s;

	forget_peer(0);
	CHECK_INT(nm_sr_probe(session, NULL, 1, NM_TAG_EXACT, &s), -EAGAIN);
	CHECK_INT(nasked, 1); /* from anyone: it may be each member */
	CHECK_INT(nm_sr_probe(session, &core.gates[1], 1, NM_TAG_EXACT, &s),
		  -EAGAIN);
	CHECK_INT(nasked, 1);
	CHECK_INT(nm_sr_mprobe(session, &core.gates[1], 1, NM_TAG_EXACT, &msg,
			       &s),
		  -EAGAIN);
	CHECK_INT(nasked, 1);
}

TEST(a_peer_that_cannot_be_connected_now_is_tried_again_by_each_poll)
{
	forget_peer(-EAGAIN);
	post(session, 1, &reqs[0]);
	CHECK_INT(nasked, 1);
	nm_core_progress(&core);
	CHECK_INT(nasked, 2);
	answer = 0;
	nm_core_progress(&core);
	CHECK_INT(nasked, 3);
	nm_core_progress(&core);
	CHECK_INT(nasked, 3);
	give_up(&reqs[0]);
}

TEST(a_peer_that_cannot_be_connected_is_lost)
{
	struct nm_sr_status s;

	forget_peer(-EPROTO);
	post(session, 1, &reqs[0]);
	CHECK(nm_sr_is_complete(&reqs[0]));
	nm_sr_status(&reqs[0], &s);
	CHECK_INT(s.error, -ECONNRESET);
	CHECK_INT(core.gates[1].error, -EPROTO);
}
