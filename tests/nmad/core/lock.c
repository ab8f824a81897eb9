/*
 * NMAD_LOCK: who finds the core or a rail busy waits for it, or for all, and
 * leaves his work there only where he may not wait.
 *
 * The threads here are foreign ones, and nothing else runs. The second meets a
 * lock that the first holds, and is known to wait for it when he gives his CPU
 * away.
 */
#include "../../check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <nmad/nmad.h>

#include <base/compiler.h>
#include "../../../nmad/core/core.h"
#include "mock.h"

enum { SESSION = 5, WINDOW = 1000 };

static struct nm_core core;
static struct nm_session *session;
static int nsent, npolled, nreleased;
static int nloose; /* of these, by one who might have been preempted */
static bool comes; /* a packet, when polled */
static struct nm_sr_request *sends;   /* a message, while it is polled */
static uint32_t core_word, rail_word; /* while the driver was at work */
static ATOMIC(int) waits, through;    /* the second thread */

/* --- the driver --- */

static void look(const struct nm_rail *rail)
{
	core_word = load_relaxed(&rail->core->lock.held);
	rail_word = load_relaxed(&rail->lock.owned);
}

static int post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)pkt;
	look(link->rail);
	nsent++;
	return NM_SENT;
}

static void deliver(struct nm_rail *rail)
{
	static unsigned char bytes[256];
	static struct nm_pkt_in in;
	struct nm_wire_head h = { .nchunks = 1 };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = 1,
				   .session = SESSION,
				   .length = 4 };
	size_t head = NM_WIRE_HEAD + nm_wire_chunk_size(&c);

	nm_wire_put_head(bytes, &h);
	nm_wire_put_chunk(bytes + NM_WIRE_HEAD, &c);
	memcpy(bytes + head, "text", 4);
	in.link = &rail->links[1];
	in.data = bytes;
	in.length = head + 4;
	nm_rail_recv(rail, &in);
}

static void send_one(struct nm_sr_request *req)
{
	static char text[] = "text";
	struct nm_data d = nm_data_flat(text, sizeof(text));

	CHECK_INT(nm_sr_isend(session, &core.gates[1], 1, &d, 0, req), 0);
}

static bool poll_driver(struct nm_rail *rail, int budget)
{
	bool moves = comes;

	(void)budget;
	look(rail);
	npolled++;
	if (comes)
		deliver(rail);
	comes = false;
	if (sends != NULL)
		send_one(sends);
	sends = NULL;
	return moves;
}

static void release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
	nreleased++;
	nloose += !base_is_pinned();
}

static int arm(struct nm_rail *rail)
{
	look(rail);
	return 0;
}

static bool is_busy(const struct nm_rail *rail)
{
	(void)rail;
	return false;
}

static const struct nm_driver driver = {
	.name = "paper",
	.max_small = 1024,
	.rdv_threshold = 500,
	.post_send = post_send,
	.poll = poll_driver,
	.release = release,
	.arm = arm,
	.is_busy = is_busy,
};

/* --- a core of each scheme --- */

static void start(enum nm_lock_scheme scheme)
{
	static const char *const names[] = { "deferred", "fine", "coarse" };

	setenv("NMAD_LOCK", names[scheme], 1);
	mock_core(&core, &driver, WINDOW);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	nsent = npolled = nreleased = nloose = 0;
	comes = false;
	store_relaxed(&waits, 0);
	store_relaxed(&through, 0);
}

static void stop(void)
{
	CHECK_INT(load_relaxed(&core.lock.held), nm_core_idle_word(&core.lock));
	CHECK(nm_core_is_heeded(&core.lock));
	CHECK(nm_core_is_quiet(&core));
	CHECK_INT(nm_core_session_close(session), 0);
	nm_core_exit(&core);
}

/* --- two threads --- */

/* The waiter's: libc's is not asked. */
BASE_PUBLIC int sched_yield(void)
{
	store_release(&waits, 1);
	return 0;
}

static void *send_it(void *arg)
{
	send_one(arg);
	store_release(&through, 1);
	return NULL;
}

static void *poll_it(void *arg)
{
	(void)arg;
	nm_core_progress(&core);
	store_release(&through, 1);
	return NULL;
}

static pthread_t meet(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	CHECK_INT(pthread_create(&t, NULL, fn, arg), 0);
	while (!load_acquire(&waits) && !load_acquire(&through))
		;
	CHECK(!load_acquire(&through));
	return t;
}

TEST(fine_a_sender_waits_for_the_core)
{
	struct nm_sr_request req;
	pthread_t t;

	start(NM_LOCK_FINE);
	base_pin();
	CHECK(nm_core_enter(&core.lock));
	t = meet(send_it, &req);
	CHECK(nm_core_is_heeded(&core.lock));
	CHECK_INT(nsent, 0);
	CHECK(!nm_core_leave(&core.lock)); /* nothing was left for us */
	base_unpin();
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(nsent, 1);
	CHECK(nm_sr_is_complete(&req));
	stop();
}

TEST(fine_a_sender_waits_for_the_rail_and_holds_nothing)
{
	struct nm_sr_request req;
	struct nm_rail *rail;
	pthread_t t;

	start(NM_LOCK_FINE);
	rail = &core.rails[0];
	base_pin();
	CHECK(nm_rail_enter(&rail->lock));
	t = meet(send_it, &req);
	CHECK_INT(nsent, 0);
	base_pin();
	CHECK(nm_core_enter(&core.lock));
	CHECK(!nm_core_leave(&core.lock));
	base_unpin();
	CHECK(!nm_rail_leave(&rail->lock));
	base_unpin();
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(nsent, 1);
	stop();
}

TEST(coarse_a_sender_waits_for_all)
{
	struct nm_sr_request req;
	pthread_t t;

	start(NM_LOCK_COARSE);
	base_pin();
	CHECK(nm_core_try(&core.lock));
	t = meet(send_it, &req);
	CHECK(nm_core_is_heeded(&core.lock));
	CHECK_INT(nsent, 0);
	CHECK(!nm_core_end(&core.lock));
	base_unpin();
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(nsent, 1);
	stop();
}

TEST(coarse_who_polls_waits_for_all)
{
	pthread_t t;

	start(NM_LOCK_COARSE);
	base_pin();
	CHECK(nm_core_try(&core.lock));
	t = meet(poll_it, NULL);
	CHECK_INT(npolled, 0);
	CHECK(!nm_core_end(&core.lock));
	base_unpin();
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(npolled, 1);
	stop();
}

/* --- who may not wait: he would wait for himself --- */

static void own_request_is_left(enum nm_lock_scheme scheme)
{
	struct nm_sr_request req;

	start(scheme);
	base_pin();
	CHECK(nm_core_try(&core.lock));
	send_one(&req);
	CHECK_INT(nsent, 0);
	CHECK(!nm_core_progress(&core));
	CHECK_INT(npolled, scheme == NM_LOCK_COARSE ? 0 : 1);
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	CHECK(nm_core_end(&core.lock)); /* something was left */
	base_unpin();
	CHECK(nm_core_progress(&core));
	CHECK_INT(nsent, 1);
	CHECK(nm_sr_is_complete(&req));
	stop();
}

TEST(fine_a_holders_own_request_is_left)
{
	own_request_is_left(NM_LOCK_FINE);
}

TEST(coarse_a_holders_own_request_is_left)
{
	own_request_is_left(NM_LOCK_COARSE);
}

TEST(fine_a_packet_for_a_rail_of_ones_own_is_left)
{
	struct nm_sr_request req;
	struct nm_rail *rail;

	start(NM_LOCK_FINE);
	rail = &core.rails[0];
	base_pin();
	CHECK(nm_rail_enter(&rail->lock));
	send_one(&req);
	CHECK_INT(nsent, 0);
	CHECK(nm_rail_leave(&rail->lock)); /* a packet was left */
	base_unpin();
	CHECK(nm_core_progress(&core));
	CHECK_INT(nsent, 1);
	stop();
}

/* An ltask is run pinned, as base_pin_handler() does it. */
TEST(a_handler_waits_for_nobody)
{
	struct nm_sr_request req;
	const void *outer;

	for (int scheme = NM_LOCK_FINE; scheme <= NM_LOCK_COARSE; scheme++) {
		start((enum nm_lock_scheme)scheme);
		store_seq(&core.lock.held, NM_LOCK_HELD); /* by another */
		outer = base_pin_handler(&req);
		send_one(&req);
		base_unpin_handler(outer);
		CHECK_INT(nsent, 0);
		CHECK(!nm_core_is_quiet(&core));
		store_seq(&core.lock.held, nm_core_idle_word(&core.lock));
		CHECK(nm_core_progress(&core));
		CHECK_INT(nsent, 1);
		stop();
	}
}

/* --- what is covered --- */

static void expect_words(uint32_t c, uint32_t r)
{
	CHECK_INT(core_word, c);
	CHECK_INT(rail_word, r);
	core_word = rail_word = 100;
}

static void drive_each_way(uint32_t c, uint32_t r)
{
	struct nm_sr_request req;

	send_one(&req);
	expect_words(c, r);
	nm_core_progress(&core);
	expect_words(c, r);
	CHECK_INT(nm_core_arm(&core), 0);
	expect_words(c, r);
}

TEST(a_rail_is_driven_under_its_own_lock_or_the_one_of_all)
{
	start(NM_LOCK_DEFERRED);
	drive_each_way(NM_LOCK_FREE, NM_LOCK_HELD);
	stop();
	start(NM_LOCK_FINE);
	drive_each_way(NM_LOCK_FREE, NM_LOCK_HELD);
	stop();
	start(NM_LOCK_COARSE);
	drive_each_way(NM_LOCK_HELD, NM_LOCK_OUTER);
	stop();
}

/* By a handler, say: then he who polls must enter the core. */
TEST(coarse_what_is_left_while_a_rail_is_polled_is_heard_of)
{
	struct nm_sr_request req;
	struct nm_news news;

	start(NM_LOCK_COARSE);
	sends = &req;
	base_pin();
	nm_news_init(&news, true);
	nm_rail_run(&core.rails[0], NULL, true, &news);
	CHECK_INT(nsent, 0);
	CHECK(news.hungry);
	nm_core_run(&core, &news, NULL);
	base_unpin();
	CHECK_INT(nsent, 1);
	stop();
}

/* The user's function, which copies into his memory. */
static uint32_t word_in_walk;

static bool pinned_in_walk;

static int walk(const void *what, size_t offset, size_t length,
		nm_piece_fn each, void *arg)
{
	word_in_walk = load_relaxed(&core.lock.held);
	pinned_in_walk = base_is_pinned();
	return each(arg, (char *)(uintptr_t)what + offset, length);
}

TEST(coarse_the_user_is_served_with_no_lock_held)
{
	char into[8] = "";
	struct nm_data d = nm_data_walker(into, 4, walk);
	struct nm_sr_request req;

	start(NM_LOCK_COARSE);
	CHECK_INT(
		nm_sr_irecv(session, &core.gates[1], 1, NM_TAG_EXACT, &d, &req),
		0);
	comes = true;
	word_in_walk = NM_LOCK_HELD;
	nm_core_progress(&core);
	CHECK(nm_sr_is_complete(&req));
	CHECK_STR(into, "text");
	CHECK_INT(word_in_walk, NM_LOCK_OUTER);
	CHECK_INT(nreleased, 1);
	stop();
}

/* Whoever is served by this frame would wait for it to be picked again. */
TEST(who_has_news_for_others_is_not_preempted)
{
	char into[8] = "";
	struct nm_data d = nm_data_walker(into, 4, walk);
	struct nm_sr_request req;

	for (int scheme = 0; scheme <= NM_LOCK_COARSE; scheme++) {
		start((enum nm_lock_scheme)scheme);
		CHECK_INT(nm_sr_irecv(session, &core.gates[1], 1, NM_TAG_EXACT,
				      &d, &req),
			  0);
		CHECK(!base_is_pinned());
		comes = true;
		nm_core_progress(&core);
		CHECK(!base_is_pinned());
		CHECK(nm_sr_is_complete(&req));
		CHECK(pinned_in_walk);
		CHECK_INT(nreleased, 1);
		CHECK_INT(nloose, 0);
		stop();
	}
}

/* But what is copied for himself, who has just come, keeps nobody waiting. */
TEST(who_takes_a_message_that_was_kept_may_be_preempted)
{
	char into[8] = "";
	struct nm_data d = nm_data_walker(into, 4, walk);
	struct nm_sr_request req;

	for (int scheme = 0; scheme <= NM_LOCK_COARSE; scheme++) {
		start((enum nm_lock_scheme)scheme);
		comes = true;
		nm_core_progress(&core);
		pinned_in_walk = true;
		CHECK_INT(nm_sr_irecv(session, &core.gates[1], 1, NM_TAG_EXACT,
				      &d, &req),
			  0);
		CHECK(nm_sr_is_complete(&req));
		CHECK_STR(into, "text");
		CHECK(!pinned_in_walk);
		stop();
	}
}

/* --- the option --- */

TEST(nonsense_is_refused)
{
	setenv("NMAD_LOCK", "course", 1);
	CHECK_INT(nm_init(), -EINVAL);
	CHECK_INT(nm_size(), 0);
}
