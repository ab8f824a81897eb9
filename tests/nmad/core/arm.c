/*
 * When the core's ltask may wait in the kernel: a rail over a driver that does
 * as the test says, and nobody who polls.
 */
#include "../../check.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "mock.h"

enum { BYTES = 2048, SESSION = 5 };

extern const struct nm_strategy *const nm_strategies[];

static struct nm_core core;
static struct nm_session *session;
static bool full, busy, unable, dies;
static int nsent, narmed;

/* --- the driver --- */

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	(void)pkt;
	if (full)
		return -EAGAIN;
	nsent++;
	return NM_SENT;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	(void)rail;
	(void)budget;
	return false;
}

static void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
}

static int mock_arm(struct nm_rail *rail)
{
	narmed++;
	if (dies)
		nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	return unable ? -EAGAIN : 0;
}

static bool mock_is_busy(const struct nm_rail *rail)
{
	(void)rail;
	return busy;
}

static const struct nm_driver mock = {
	.name = "mock",
	.max_small = BYTES,
	.rdv_threshold = 500,
	.post_send = mock_post_send,
	.poll = mock_poll,
	.release = mock_release,
	.arm = mock_arm,
	.is_busy = mock_is_busy,
};

static struct nm_driver roomy; /* likewise, and promises room */

static void setup(void)
{
	roomy = mock;
	roomy.caps |= NM_CAP_ROOM;
	mock_core(&core, &mock, 1000);
	core.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(core.event >= 0);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	full = busy = unable = dies = false;
	nsent = narmed = 0;
}

static void teardown(void)
{
	CHECK_INT(nm_core_session_close(session), 0);
	close(core.event);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static bool is_nudged(void)
{
	struct pollfd p = { .fd = core.event, .events = POLLIN };

	CHECK(poll(&p, 1, 0) >= 0);
	return p.revents & POLLIN;
}

static void send_small(struct nm_sr_request *req)
{
	struct nm_data d = nm_data_flat("hello", 5);

	CHECK_INT(nm_sr_isend(session, &core.gates[1], 7, &d, 0, req), 0);
}

/* --- rules --- */

TEST(where_nothing_is_to_be_done_it_is_armed)
{
	CHECK_INT(nm_core_arm(&core), 0);
	CHECK_INT(narmed, 1);
	CHECK(!is_nudged());
}

/* Who nudges says so and then writes; an arming may come between. */
TEST(a_nudge_that_is_written_late_is_taken_by_the_next_arming)
{
	store_relaxed(&core.nudged, 1);
	CHECK_INT(nm_core_arm(&core), 0);
	nm_core_nudge(&core);
	CHECK(!is_nudged());
	CHECK_INT(eventfd_write(core.event, 1), 0);
	CHECK(is_nudged());
	CHECK_INT(nm_core_arm(&core), 0);
	CHECK(!is_nudged());
	nm_core_nudge(&core);
	CHECK(is_nudged());
}

TEST(a_driver_that_cannot_promise_is_polled_on)
{
	unable = true;
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	unable = false;
	CHECK_INT(nm_core_arm(&core), 0);
}

TEST(a_rail_that_must_be_polled_is_not_asked_for_a_promise)
{
	busy = true;
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	CHECK_INT(narmed, 0);
}

/* Its owner may be about to give it anything. */
TEST(a_rail_that_somebody_owns_is_not_armed)
{
	if (mock_rails_go_with_core())
		return;
	base_pin();
	CHECK(nm_rail_enter(&core.rails[0].lock));
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	CHECK_INT(narmed, 0);
	CHECK(!nm_rail_leave(&core.rails[0].lock));
	base_unpin();
	CHECK_INT(nm_core_arm(&core), 0);
}

TEST(what_leaves_at_once_makes_nobody_poll)
{
	struct nm_sr_request req;

	CHECK_INT(nm_core_arm(&core), 0);
	send_small(&req);
	CHECK_INT(nsent, 1);
	CHECK(!is_nudged());
}

TEST(a_packet_that_finds_no_room_ends_the_sleep)
{
	struct nm_sr_request req;

	CHECK_INT(nm_core_arm(&core), 0);
	full = true;
	send_small(&req);
	CHECK(is_nudged());
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	CHECK(!nm_core_progress(&core));
	full = false;
	CHECK(nm_core_progress(&core)); /* somebody may be ready by that */
	CHECK_INT(nsent, 1);
	CHECK_INT(nm_core_arm(&core), 0);
	CHECK(!is_nudged());
}

static void lose_gate(void)
{
	struct nm_pass pass;

	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, &core.gates[1], -EBADMSG);
	nm_core_unlock(&core, &pass);
}

static void check_lost(const struct nm_sr_request *req)
{
	struct nm_sr_status status;

	CHECK(nm_sr_is_complete(req));
	nm_sr_status(req, &status);
	CHECK_INT(status.error, -ECONNRESET);
	CHECK_INT(nsent, 0);
}

/* Room is what the driver promises to tell of, and there will be none. */
TEST(what_a_lost_gate_holds_back_is_over_at_once)
{
	struct nm_sr_request req;

	core.rails[0].driver = &roomy;
	full = true;
	CHECK_INT(nm_core_arm(&core), 0);
	send_small(&req);
	CHECK(!nm_sr_is_complete(&req));
	lose_gate();
	check_lost(&req);
}

TEST(what_a_lost_gate_holds_back_is_over_before_anybody_sleeps)
{
	struct nm_sr_request req;

	core.rails[0].driver = &roomy;
	full = true;
	send_small(&req);
	lose_gate();
	CHECK_INT(nm_core_arm(&core), 0);
	check_lost(&req);
}

TEST(work_that_only_polls_move_ends_the_sleep)
{
	struct nm_sr_request req;

	for (int i = 0; i < 3; i++) {
		CHECK_INT(nm_core_arm(&core), 0);
		busy = true;
		send_small(&req);
		CHECK(is_nudged());
		CHECK_INT(nm_core_arm(&core), -EAGAIN);
		busy = false;
	}
}

static bool mock_peek(const struct nm_rail *rail)
{
	(void)rail;
	return true;
}

static void nothing_to_do(struct nm_sr_request *req, void *arg)
{
	(void)req;
	(void)arg;
}

/* It came when nobody waited, and told nobody; the rail is in use just now. */
TEST(what_lies_there_for_one_who_begins_to_wait_ends_the_sleep)
{
	static struct nm_awaited word;
	struct nm_data d = nm_data_flat(NULL, 0);
	struct nm_sr_request request;
	struct nm_req *req = nm_req_of(&request);

	if (mock_rails_go_with_core())
		return;
	roomy.peek = mock_peek;
	core.rails[0].driver = &roomy;
	CHECK_INT(nm_sr_irecv(session, &core.gates[1], 7, NM_TAG_EXACT, &d,
			      &request),
		  0);
	nm_await_init(&req->await, true);
	nm_await_announce(&req->await, &word);
	CHECK_INT(nm_core_arm(&core), 0);
	base_pin();
	CHECK(nm_rail_enter(&core.rails[0].lock));
	nm_core_self = &core;
	CHECK_INT(nm_sr_on_done(&request, nothing_to_do, NULL), 0);
	CHECK(!nm_rail_leave(&core.rails[0].lock));
	base_unpin();
	CHECK(is_nudged());
	CHECK_INT(nm_sr_cancel(&request), 0);
	nm_calls_look(&core);
	nm_core_self = NULL;
}

/* Nobody sleeps: nothing is written anywhere. */
TEST(who_is_not_armed_is_not_nudged)
{
	struct nm_sr_request req;

	busy = full = true;
	send_small(&req);
	CHECK(!is_nudged());
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	full = false;
	nm_core_progress(&core);
	CHECK(!is_nudged());
}

TEST(a_death_that_the_arming_finds_is_told)
{
	struct nm_sr_request req;
	struct nm_sr_status status;
	char into[8] = "";
	struct nm_data d = nm_data_flat(into, sizeof(into));

	CHECK_INT(
		nm_sr_irecv(session, &core.gates[1], 7, NM_TAG_EXACT, &d, &req),
		0);
	dies = true;
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	CHECK(nm_sr_is_complete(&req));
	nm_sr_status(&req, &status);
	CHECK_INT(status.error, -ECONNRESET);
}
