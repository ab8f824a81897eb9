/*
 * What a call costs (<nmad/rpc.h>) beside messages that do the same: rank 0
 * asks, rank 1 answers.
 *
 *   message, call          there and back, one at a time; nothing in it
 *   message_4K, call_4K    the same with 4 KiB on the way there
 *   messages, calls        64 of them under way, time for each
 *
 *   mpirun -n 2 bench_rpc [TRIPS]
 */
#include <nmad/nmad.h>
#include <nmad/rpc.h>

#include "measure.h"

enum { BATCHES = 31, TRIPS = 1000, WINDOW = 64, BODY = 4096, TAG = 1 };
enum { NOTHING, WITH_BODY }; /* services */

static struct nm_session *session;
static struct nm_gate *peer;
static struct nm_rpc *rpc;
static int trips = TRIPS;
static char body[BODY];

static void send_bytes(size_t bytes)
{
	struct nm_data d = nm_data_flat(body, bytes);

	must(nm_sr_send(session, peer, TAG, &d, 0) == 0, "send");
}

static void receive_bytes(size_t bytes)
{
	struct nm_data d = nm_data_flat(body, bytes);
	struct nm_sr_status got;

	must(nm_sr_recv(session, peer, TAG, NM_TAG_EXACT, &d, &got) == 0 &&
		     got.length == bytes,
	     "receive");
}

/* --- messages --- */

static void message(size_t bytes)
{
	if (nm_rank() == 0) {
		send_bytes(bytes);
		receive_bytes(0);
	} else {
		receive_bytes(bytes);
		send_bytes(0);
	}
}

static void messages_one_by_one(size_t bytes)
{
	for (int i = 0; i < trips; i++)
		message(bytes);
}

/* Who asks sends before he waits for an answer, the other one answers. */
static void messages_many(size_t bytes)
{
	static struct nm_sr_request in[WINDOW], out[WINDOW];
	struct nm_data none = nm_data_flat(body, bytes);

	for (int i = 0; i < trips + WINDOW; i++) {
		struct nm_sr_request *r = &in[i % WINDOW];
		struct nm_sr_request *s = &out[i % WINDOW];

		if (i >= WINDOW) {
			nm_sr_wait(r);
			if (nm_rank() == 1)
				nm_sr_isend(session, peer, TAG, &none, 0, s);
			nm_sr_wait(s);
		}
		if (i >= trips)
			continue;
		nm_sr_irecv(session, peer, TAG, NM_TAG_EXACT, &none, r);
		if (nm_rank() == 0)
			nm_sr_isend(session, peer, TAG, &none, 0, s);
	}
}

/* --- calls --- */

static int do_nothing(struct nm_rpc_call *call, void *arg)
{
	(void)call;
	(void)arg;
	return 1;
}

static int take_body(struct nm_rpc_call *call, void *arg)
{
	char room[BODY];
	struct nm_data d = nm_data_flat(room, sizeof(room));

	(void)arg;
	return nm_rpc_receive(call, &d) == 0 ? 1 : -1;
}

static void start_call(size_t bytes, struct nm_rpc_request *req)
{
	struct nm_data d = nm_data_flat(body, bytes);

	must(nm_rpc_send(rpc, peer, bytes > 0 ? WITH_BODY : NOTHING, NULL, 0,
			 bytes > 0 ? &d : NULL, req) == 0,
	     "nm_rpc_send");
}

static void end_call(struct nm_rpc_request *req)
{
	struct nm_rpc_status status;

	nm_rpc_wait(req);
	nm_rpc_status(req, &status);
	must(status.error == 0 && status.result == 1, "call");
}

static void calls_one_by_one(size_t bytes)
{
	struct nm_rpc_request req;

	for (int i = 0; i < trips && nm_rank() == 0; i++) {
		start_call(bytes, &req);
		end_call(&req);
	}
}

static void calls_many(size_t bytes)
{
	static struct nm_rpc_request reqs[WINDOW];

	for (int i = 0; i < trips + WINDOW && nm_rank() == 0; i++) {
		if (i >= WINDOW)
			end_call(&reqs[i % WINDOW]);
		if (i < trips)
			start_call(bytes, &reqs[i % WINDOW]);
	}
}

/* --- measuring --- */

static const struct bench {
	const char *name;
	void (*fn)(size_t bytes);
	size_t bytes;
} benches[] = {
	{ "message", messages_one_by_one, 0 },
	{ "call", calls_one_by_one, 0 },
	{ "message_4K", messages_one_by_one, BODY },
	{ "call_4K", calls_one_by_one, BODY },
	{ "messages", messages_many, 0 },
	{ "calls", calls_many, 0 },
};

static void measure(const struct bench *b)
{
	double us[BATCHES];

	b->fn(b->bytes);
	for (int i = 0; i < BATCHES; i++) {
		uint64_t start = now_ns();

		b->fn(b->bytes);
		us[i] = (double)(now_ns() - start) / 1000 / trips;
	}
	if (nm_rank() == 0)
		printf("%s %.4f us\n", b->name, median(us, BATCHES));
	message(0); /* together to the next */
}

int main(int argc, char **argv)
{
	if (argc > 1)
		trips = atoi(argv[1]);
	must(trips >= WINDOW, "TRIPS: at least 64");
	must(nm_init() == 0 && nm_size() == 2, "nm_init, 2 ranks");
	peer = nm_gate_of(!nm_rank());
	must(nm_session_open(1, &session) == 0, "nm_session_open");
	must(nm_rpc_open(2, 0, &rpc) == 0, "nm_rpc_open");
	must(nm_rpc_register(rpc, NOTHING, do_nothing, NULL) == 0 &&
		     nm_rpc_register(rpc, WITH_BODY, take_body, NULL) == 0,
	     "nm_rpc_register");
	message(0);
	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
		measure(&benches[i]);
	must(nm_rpc_unregister(rpc, NOTHING) == 0 &&
		     nm_rpc_unregister(rpc, WITH_BODY) == 0 &&
		     nm_rpc_close(rpc) == 0,
	     "closing");
	nm_session_close(session);
	return nm_exit() < 0;
}
