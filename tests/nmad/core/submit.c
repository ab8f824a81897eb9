/*
 * nmad/core/submit.c: receives that find no memory in the match tables wait in
 * their order, can be given up, and belong to their session.
 */
#include "../../check.h"

#include <errno.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "mock.h"

/* The tables have room for 4,096 at the start. */
enum { MANY = 20000 };

extern const struct nm_strategy *const nm_strategies[];

static const struct nm_driver mock = { .name = "mock" };
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
	CHECK(nm_core_enter(&core.lock));
	for (uint32_t i = 0; i < MANY; i++)
		post(session, i, &reqs[i]);
	post(other, 0, &last);
	nm_core_leave(&core.lock);
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
