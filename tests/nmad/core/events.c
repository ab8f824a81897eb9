/*
 * Functions that are called when something has happened: when, in what order,
 * with what held, and when not any more. A core with one rail whose driver
 * does as it is told.
 */
#include "../../check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <base/pin.h>
#include <nmad/nmad.h>

#include "../../marcel/child.h"
#include "mock.h"

enum { BYTES = 2048, PACKETS = 64, SESSION = 5, MANY = 1000 };

struct packet {
	struct nm_pkt_in in;
	unsigned char bytes[BYTES];
	size_t length;
};

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct packet given[PACKETS];
static int ngiven, ndelivered;
static uint32_t seq;

/* --- the driver --- */

static int send_at_once(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	(void)pkt;
	return NM_SENT;
}

static bool bring(struct nm_rail *rail, int budget)
{
	bool moved = ndelivered < ngiven;

	for (; ndelivered < ngiven && budget > 0; ndelivered++, budget--) {
		struct packet *p = &given[ndelivered];

		p->in.link = &rail->links[1];
		p->in.data = p->bytes;
		p->in.length = p->length;
		nm_rail_recv(rail, &p->in);
	}
	return moved;
}

static void take_back(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
}

static int arm(struct nm_rail *rail)
{
	(void)rail;
	return 0;
}

static bool is_busy(const struct nm_rail *rail)
{
	(void)rail;
	return false;
}

static const struct nm_driver driver = {
	.name = "mock",
	.max_small = BYTES,
	.rdv_threshold = 500,
	.post_send = send_at_once,
	.poll = bring,
	.release = take_back,
	.arm = arm,
	.is_busy = is_busy,
};

static void setup(void)
{
	mock_core(&core, &driver, 100000);
	core.event = -1;
	nm_core_self = &core;
	peer = &core.gates[1];
	ngiven = ndelivered = 0;
	seq = 0;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

static void teardown(void)
{
	if (session != NULL)
		CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_exit(&core);
	nm_core_self = NULL;
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* --- what the peer sends, and what we post --- */

/* Lies there until the next progress. */
static void give(nm_tag_t tag, const char *text)
{
	struct nm_wire_head h = { 1, 0 };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = tag,
				   .seq = seq++,
				   .session = SESSION,
				   .length = strlen(text),
				   .payload = text };
	struct packet *p = &given[ngiven++];

	CHECK(ngiven <= PACKETS);
	nm_wire_put_head(p->bytes, &h);
	nm_wire_put_chunk(p->bytes + NM_WIRE_HEAD, &c);
	p->length = NM_WIRE_HEAD + nm_wire_chunk_size(&c);
	memcpy(p->bytes + p->length, text, c.length);
	p->length += c.length;
}

static void receive(nm_tag_t tag, char *into, struct nm_sr_request *req)
{
	struct nm_data d = nm_data_flat(into, 8);

	CHECK_INT(nm_sr_irecv(session, peer, tag, NM_TAG_EXACT, &d, req), 0);
}

static void send(struct nm_sr_request *req)
{
	struct nm_data d = nm_data_flat("hello", 5);

	CHECK_INT(nm_sr_isend(session, peer, 1, &d, 0, req), 0);
}

static void progress(void)
{
	while (nm_core_progress(&core))
		continue;
}

/* What a call has seen. */
static int ncalls, errors[MANY], depth;
static nm_tag_t tags[MANY];

static void note(struct nm_sr_request *req, void *arg)
{
	struct nm_sr_status status;

	CHECK_INT(load_relaxed(&core.lock.held), 0);
	CHECK_INT(load_relaxed(&core.rails[0].lock.owned), 0);
	CHECK_INT(++depth, 1);
	CHECK(nm_sr_is_complete(req));
	nm_sr_status(req, &status);
	errors[ncalls] = status.error;
	tags[ncalls++] = status.tag;
	if (arg != NULL)
		CHECK_PTR(arg, req);
	depth--;
}

static void note_arrival(struct nm_session *s, const struct nm_sr_status *what,
			 void *arg)
{
	CHECK_PTR(s, session);
	CHECK_PTR(arg, &ncalls);
	CHECK_PTR(what->gate, peer);
	CHECK_INT(load_relaxed(&core.lock.held), 0);
	CHECK_INT(what->length, 4);
	tags[ncalls++] = what->tag;
}

static void begin(void)
{
	ncalls = depth = 0;
}

/* --- requests --- */

TEST(a_function_is_called_once_when_the_receive_is_complete)
{
	struct nm_sr_request req;
	char got[8];

	begin();
	receive(7, got, &req);
	CHECK_INT(nm_sr_on_done(&req, note, &req), 0);
	CHECK_INT(ncalls, 0);
	give(7, "text");
	CHECK_INT(ncalls, 0);
	progress();
	CHECK_INT(ncalls, 1);
	CHECK_INT(errors[0], 0);
	CHECK_INT(tags[0], 7);
	CHECK(memcmp(got, "text", 4) == 0);
}

TEST(what_is_complete_already_is_told_at_once)
{
	struct nm_sr_request req;

	begin();
	send(&req);
	CHECK(nm_sr_is_complete(&req));
	CHECK_INT(nm_sr_on_done(&req, note, &req), 0);
	CHECK_INT(ncalls, 1);
}

TEST(whatever_ends_a_request_is_told)
{
	struct nm_sr_request cancelled, failed;
	struct nm_pass pass;
	char got[2][8];

	begin();
	receive(7, got[0], &cancelled);
	receive(8, got[1], &failed);
	CHECK_INT(nm_sr_on_done(&cancelled, note, &cancelled), 0);
	CHECK_INT(nm_sr_on_done(&failed, note, &failed), 0);
	CHECK_INT(nm_sr_cancel(&cancelled), 0);
	CHECK_INT(ncalls, 1);
	CHECK_INT(errors[0], -ECANCELED);
	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	CHECK_INT(ncalls, 1);
	nm_core_unlock(&core, &pass);
	CHECK_INT(ncalls, 2);
	CHECK_INT(errors[1], -ECONNRESET);
}

static char text[8];

/* The request is ours again, so it may wait for the next message. */
static void receive_next(struct nm_sr_request *req, void *left)
{
	int *n = left;

	note(req, NULL);
	if (--*n == 0)
		return;
	receive(7, text, req);
	CHECK_INT(nm_sr_on_done(req, receive_next, left), 0);
}

TEST(a_function_may_post_the_same_request_again)
{
	struct nm_sr_request req;
	int left = 10;

	begin();
	receive(7, text, &req);
	CHECK_INT(nm_sr_on_done(&req, receive_next, &left), 0);
	for (int i = 0; i < 10; i++)
		give(7, "text");
	progress();
	CHECK_INT(left, 0);
	CHECK_INT(ncalls, 10);
	CHECK_INT(session->match.nmsgs, 0);
}

static void send_next(struct nm_sr_request *req, void *left)
{
	int *n = left;

	note(req, NULL);
	if (--*n == 0)
		return;
	send(req);
	CHECK_INT(nm_sr_on_done(req, send_next, left), 0);
}

/* Each send is over at once; the thread that began has other things to do. */
TEST(calls_that_bring_calls_do_not_nest_and_hold_nobody_up)
{
	struct nm_sr_request req;
	int left = MANY, before;

	begin();
	send(&req);
	CHECK_INT(nm_sr_on_done(&req, send_next, &left), 0);
	CHECK(left > MANY / 2);
	do {
		before = left;
		CHECK(!nm_core_is_quiet(&core));
		nm_core_progress(&core);
		CHECK(left < before && left > before - MANY / 2);
	} while (left > MANY / 4);
	while (left > 0)
		CHECK_INT(nm_core_arm(&core), -EAGAIN);
	CHECK_INT(ncalls, MANY);
	CHECK(nm_core_is_quiet(&core));
	CHECK_INT(nm_core_arm(&core), 0);
}

/* Nothing is allocated in a call: somebody else refills the tables. */
static void post_when_memory_is_low(struct nm_sr_request *req, void *other)
{
	note(req, NULL);
	store_relaxed(&core.low, 1);
	send(other);
	CHECK_INT(load_relaxed(&core.low), 1);
}

TEST(who_posts_in_a_call_refills_nothing)
{
	struct nm_sr_request req, other;

	begin();
	send(&req);
	CHECK_INT(nm_sr_on_done(&req, post_when_memory_is_low, &other), 0);
	CHECK_INT(ncalls, 1);
	send(&other);
	CHECK_INT(load_relaxed(&core.low), 0);
}

/* --- watching --- */

static struct nm_sight sights[MANY];
static int nsights;

static void see(const struct nm_sight *sight)
{
	CHECK_INT(load_relaxed(&core.lock.held), 0);
	CHECK(base_in_handler());
	if (nsights > 0)
		CHECK(sight->when_ns >= sights[nsights - 1].when_ns);
	sights[nsights++] = *sight;
}

static void lose_peer(void)
{
	struct nm_pass pass;

	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	nm_core_unlock(&core, &pass);
}

TEST(a_watcher_is_told_of_what_he_watches_and_no_more)
{
	struct nm_sr_request req;
	char got[8];

	nsights = 0;
	give(3, "text");
	progress();
	nm_watch(NM_SAW_UNEXPECTED | NM_SAW_LOST, see);
	receive(7, got, &req);
	give(7, "text");
	progress();
	CHECK_INT(nsights, 0);
	give(8, "a text");
	give(9, "");
	progress();
	CHECK_INT(nsights, 2);
	CHECK_INT(sights[0].what, NM_SAW_UNEXPECTED);
	CHECK_INT(sights[0].rank, 1);
	CHECK_INT(sights[0].tag, 8);
	CHECK_INT(sights[0].length, 6);
	CHECK_INT(sights[1].tag, 9);
	nm_watch(NM_SAW_LOST, see);
	give(10, "text");
	progress();
	CHECK_INT(nsights, 2);
	lose_peer();
	CHECK_INT(nsights, 3);
	CHECK_INT(sights[2].what, NM_SAW_LOST);
	CHECK_INT(sights[2].rank, 1);
	nm_watch(0, NULL);
}

/* --- sessions --- */

TEST(a_monitor_is_told_of_what_finds_no_receive_in_its_order)
{
	struct nm_sr_request req;
	char got[8];

	begin();
	give(1, "text");
	give(2, "text");
	progress();
	CHECK(nm_core_is_quiet(&core));
	CHECK_INT(nm_session_monitor(session, note_arrival, &ncalls), 0);
	CHECK_INT(ncalls, 2);
	CHECK(!nm_core_is_quiet(&core));
	receive(3, got, &req);
	give(3, "text");
	give(4, "text");
	give(5, "text");
	progress();
	CHECK(nm_sr_is_complete(&req));
	CHECK_INT(ncalls, 4);
	CHECK_INT(tags[0], 1);
	CHECK_INT(tags[1], 2);
	CHECK_INT(tags[2], 4);
	CHECK_INT(tags[3], 5);
	CHECK_INT(nm_session_unmonitor(session), 0);
	CHECK(nm_core_is_quiet(&core));
	give(6, "text");
	progress();
	CHECK_INT(ncalls, 4);
}

/* Told, it takes the message, and waits for that in its own way. */
static void take(struct nm_session *s, const struct nm_sr_status *what,
		 void *req)
{
	struct nm_data d = nm_data_flat(text, what->length);
	struct nm_message *msg;
	struct nm_sr_status probed;

	CHECK_INT(nm_sr_mprobe(s, what->gate, what->tag, NM_TAG_EXACT, &msg,
			       &probed),
		  0);
	CHECK_INT(probed.length, what->length);
	CHECK_INT(nm_sr_mrecv(msg, &d, req), 0);
	CHECK_INT(nm_sr_on_done(req, note, req), 0);
	CHECK_INT(ncalls, 0);
}

TEST(a_monitor_may_take_the_message)
{
	struct nm_sr_request req;

	begin();
	memset(text, 0, sizeof(text));
	CHECK_INT(nm_session_monitor(session, take, &req), 0);
	give(7, "text");
	progress();
	CHECK_INT(ncalls, 1);
	CHECK(memcmp(text, "text", 4) == 0);
}

static void end_it(struct nm_session *s, const struct nm_sr_status *what,
		   void *arg)
{
	note_arrival(s, what, arg);
	CHECK_INT(nm_session_unmonitor(s), 0);
}

TEST(a_monitor_that_ends_itself_is_told_no_more)
{
	begin();
	CHECK_INT(nm_session_monitor(session, end_it, &ncalls), 0);
	for (nm_tag_t tag = 1; tag < 5; tag++)
		give(tag, "text");
	progress();
	CHECK_INT(ncalls, 1);
	CHECK_INT(nm_session_unmonitor(session), -ENOENT);
	CHECK_INT(nm_session_monitor(session, note_arrival, &ncalls), 0);
	CHECK_INT(ncalls, 5);
}

TEST(a_session_has_one_monitor_and_nonsense_is_refused)
{
	struct nm_sr_request req;

	CHECK_INT(nm_session_monitor(NULL, note_arrival, NULL), -EINVAL);
	CHECK_INT(nm_session_monitor(session, NULL, NULL), -EINVAL);
	CHECK_INT(nm_session_unmonitor(NULL), -EINVAL);
	CHECK_INT(nm_session_unmonitor(session), -ENOENT);
	CHECK_INT(nm_session_monitor(session, note_arrival, &ncalls), 0);
	CHECK_INT(nm_session_monitor(session, note_arrival, &ncalls), -EBUSY);
	send(&req);
	CHECK_INT(nm_sr_on_done(NULL, note, NULL), -EINVAL);
	CHECK_INT(nm_sr_on_done(&req, NULL, NULL), -EINVAL);
	nm_core_self = NULL;
	CHECK_INT(nm_sr_on_done(&req, note, NULL), -EINVAL);
	nm_core_self = &core;
}

TEST(who_closes_a_session_makes_all_calls_that_are_due)
{
	enum { REQS = 300 };
	static struct nm_sr_request reqs[REQS];
	static char got[REQS][8];
	struct nm_pass pass;

	begin();
	for (int i = 0; i < REQS; i++) {
		receive(7, got[i], &reqs[i]);
		CHECK_INT(nm_sr_on_done(&reqs[i], note, &reqs[i]), 0);
	}
	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	nm_core_unlock(&core, &pass);
	CHECK(ncalls > 0 && ncalls < REQS / 2);
	CHECK_INT(nm_core_session_close(session), 0);
	session = NULL;
	CHECK_INT(ncalls, REQS);
}

/* --- another thread is inside --- */

static ATOMIC(int) entered, ending;
static int inside; /* plain: who ends the calls sees what they did */

static void linger(void)
{
	inside++;
	store_seq(&entered, 1);
	while (load_seq(&ending) == 0)
		sched_yield();
	/* If nobody waits for us now he is gone before we are. */
	for (int i = 0; i < 100; i++)
		sched_yield();
	inside--;
}

static void linger_arrival(struct nm_session *s,
			   const struct nm_sr_status *what, void *arg)
{
	(void)s;
	(void)what;
	(void)arg;
	linger();
	ncalls++;
}

static void linger_done(struct nm_sr_request *req, void *arg)
{
	(void)arg;
	linger();
	memset(req, 0, sizeof(*req));
	ncalls++;
}

static void *poll_once(void *arg)
{
	nm_core_progress(&core);
	return arg;
}

/* Its thread is inside a call. */
static pthread_t someone_inside(void)
{
	pthread_t t;

	begin();
	store_seq(&entered, 0);
	store_seq(&ending, 0);
	CHECK_INT(pthread_create(&t, NULL, poll_once, NULL), 0);
	while (load_seq(&entered) == 0)
		sched_yield();
	return t;
}

TEST(who_ends_a_monitor_waits_for_the_call_that_goes_on)
{
	pthread_t t;

	CHECK_INT(nm_session_monitor(session, linger_arrival, NULL), 0);
	give(1, "text");
	give(2, "text");
	give(3, "text");
	t = someone_inside();
	store_seq(&ending, 1);
	CHECK_INT(nm_session_unmonitor(session), 0);
	CHECK_INT(inside, 0);
	CHECK(ncalls >= 1);
	CHECK_INT(pthread_join(t, NULL), 0);
}

TEST(who_closes_a_session_waits_for_its_calls)
{
	struct nm_sr_request reqs[3];
	char got[3][8];
	pthread_t t;

	for (int i = 0; i < 3; i++) {
		receive(7, got[i], &reqs[i]);
		CHECK_INT(nm_sr_on_done(&reqs[i], linger_done, NULL), 0);
		give(7, "text");
	}
	t = someone_inside();
	store_seq(&ending, 1);
	CHECK_INT(nm_core_session_close(session), 0);
	session = NULL;
	CHECK_INT(inside, 0);
	CHECK_INT(ncalls, 3);
	CHECK_INT(pthread_join(t, NULL), 0);
}

/* Who is late leaves what he brings to the one inside, and goes. */
TEST(a_call_that_lingers_holds_up_no_thread)
{
	struct nm_sr_request req;
	pthread_t t;

	CHECK_INT(nm_session_monitor(session, linger_arrival, NULL), 0);
	give(1, "text");
	t = someone_inside();
	send(&req);
	CHECK_INT(nm_sr_on_done(&req, linger_done, NULL), 0);
	CHECK_INT(ncalls, 0);
	CHECK(!nm_core_is_quiet(&core));
	store_seq(&ending, 1);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(ncalls, 2);
}

/* --- what may not be --- */

static void close_it(struct nm_sr_request *req, void *arg)
{
	(void)req;
	nm_session_close(arg);
}

static void close_in_a_call(void)
{
	struct nm_sr_request req;

	send(&req);
	nm_sr_on_done(&req, close_it, session);
}

static void give_a_second_function(void)
{
	struct nm_sr_request req;
	char got[8];

	receive(7, got, &req);
	nm_sr_on_done(&req, note, NULL);
	nm_sr_on_done(&req, note, NULL);
}

/* Complete, but the first call is not made, since we are inside another. */
static void give_two(struct nm_sr_request *req, void *other)
{
	(void)req;
	send(other);
	nm_sr_on_done(other, note, NULL);
	nm_sr_on_done(other, note, NULL);
}

static void give_a_second_function_too_late(void)
{
	struct nm_sr_request req, other;

	send(&req);
	nm_sr_on_done(&req, give_two, &other);
}

static void must_end(void (*body)(void))
{
	int status = in_child(body);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(strstr(said, "the request has a function already") != NULL);
}

TEST(a_second_function_for_a_request_ends_the_process)
{
	must_end(give_a_second_function);
	must_end(give_a_second_function_too_late);
}

/* And it has none when it has been posted again. */
TEST(a_request_that_is_posted_anew_may_get_another_function)
{
	struct nm_sr_request req;
	char got[8];

	begin();
	for (int i = 0; i < 2; i++) {
		send(&req);
		CHECK_INT(nm_sr_on_done(&req, note, NULL), 0);
		receive(7, got, &req);
		CHECK_INT(nm_sr_on_done(&req, note, NULL), 0);
		give(7, "text");
		progress();
	}
	CHECK_INT(ncalls, 4);
}

TEST(a_function_that_would_wait_is_named)
{
	char words[128];
	int status = in_child(close_in_a_call);

	snprintf(words, sizeof(words),
		 "a handler blocks: nm_session_close(), in the function at %p",
		 (void *)(uintptr_t)close_it);
	CHECK(WIFSIGNALED(status));
	CHECK(strstr(said, words) != NULL);
}
