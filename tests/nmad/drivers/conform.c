/*
 * One suite for every driver: what users of nmad may rely on, whatever lies
 * beneath. Run by one process (with itself) or by two (with each other), with
 * the driver in NMAD_DRIVER; a driver adds a line in tests/nmad/meson.build.
 */
#include "../fewer.h"
#include "../peers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

enum { MAX_BYTES = 4 << 20 };

/* --- sizes and shapes of data --- */

/* In shared memory packets of 16, 80 and 464 bytes end where a line ends. */
static const size_t sizes[] = {
	0,         1,     2,      7,      8,      15,      16,
	17,        31,    63,     64,     65,     79,      80,
	81,        255,   256,    463,    464,    465,     1000,
	2015,      2047,  2048,   2049,   4000,   4056,    4095,
	4096,      4097,  8100,   8151,   8191,   8192,    8193,
	12345,     16383, 16384,  16385,  32768,  32769,   65535,
	65536,     65537, 100000, 262144, 524287, 1 << 20, (1 << 20) + 3,
	MAX_BYTES,
};

/* Every second piece of 3 bytes of a memory twice as large. */
static int walk_gaps(const void *what, size_t offset, size_t length,
		     nm_piece_fn each, void *arg)
{
	char *base = (char *)what;

	while (length > 0) {
		size_t in = offset % 3, n = 3 - in;
		int rc;

		if (n > length)
			n = length;
		rc = each(arg, base + offset / 3 * 6 + in, n);
		if (rc != 0)
			return rc;
		offset += n;
		length -= n;
	}
	return 0;
}

enum { IOVS = 9 };

struct shaped {
	unsigned char *memory;
	struct iovec iov[IOVS];
	struct nm_data data;
};

/* `bytes` as flat memory, pieces or a walker, in fresh memory. */
static void shape(struct shaped *s, int kind, size_t bytes)
{
	size_t at = 0, left = bytes;

	s->memory = calloc(1, 2 * bytes + 6 + IOVS * 5);
	MUST(s->memory != NULL);
	for (int i = 0; i < IOVS; i++) {
		size_t n = i == IOVS - 1 ? left : bytes / IOVS * (size_t)i / 4;

		if (n > left)
			n = left;
		s->iov[i].iov_base = s->memory + at;
		s->iov[i].iov_len = n;
		at += n + 5;
		left -= n;
	}
	if (kind == 0)
		s->data = nm_data_flat(s->memory, bytes);
	else if (kind == 1)
		s->data = nm_data_iovec(s->iov, IOVS);
	else
		s->data = nm_data_walker(s->memory, bytes, walk_gaps);
}

static void exchange(int out_kind, int in_kind, size_t bytes, uint32_t number)
{
	unsigned char *plain = malloc(bytes + 1);
	struct nm_sr_request out, in;
	struct nm_sr_status status;
	struct shaped to, from;

	MUST(plain != NULL);
	shape(&from, out_kind, bytes);
	shape(&to, in_kind, bytes);
	paint(plain, bytes, number);
	nm_data_copy_in(&from.data, 0, plain, bytes);
	MUST(nm_sr_irecv(session, peer, number, NM_TAG_EXACT, &to.data, &in) ==
	     0);
	MUST(nm_sr_isend(session, peer, number, &from.data, 0, &out) == 0);
	status = wait_for(&in);
	MUST(status.error == 0);
	MUST(status.length == bytes);
	MUST(status.sent == bytes);
	MUST(status.tag == number);
	MUST(status.gate == peer);
	MUST(wait_for(&out).error == 0);
	nm_data_copy_out(&to.data, 0, plain, bytes);
	MUST(is_painted(plain, bytes, number, nm_gate_rank(peer)));
	free(plain);
	free(to.memory);
	free(from.memory);
}

RULE(every_size_arrives_byte_for_byte)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		exchange(0, 0, sizes[i], (uint32_t)i);
}

RULE(every_shape_of_data_arrives_in_every_other)
{
	uint32_t number = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i += 3)
		for (int out = 0; out < 3; out++)
			for (int in = 0; in < 3; in++)
				if (sizes[i] <= 1 << 20)
					exchange(out, in, sizes[i], number++);
}

/* --- many messages --- */

enum { MANY = 1000 / FEWER };

static struct nm_sr_request outs[2 * MANY], ins[2 * MANY];
static unsigned char *buffers[2 * MANY];
static size_t lengths[2 * MANY];

/* Mostly small, some large, the same in both processes. */
static size_t some_size(void)
{
	uint64_t r = same_random();

	switch (r % 16) {
	case 0:
		return (r >> 8) % 100000;
	case 1:
	case 2:
	case 3:
		return (r >> 8) % 9000;
	default:
		return (r >> 8) % 300;
	}
}

static void send_many(int n, nm_tag_t same_tag)
{
	for (int i = 0; i < n; i++) {
		lengths[i] = some_size();
		buffers[i] = malloc(lengths[i] + 1);
		MUST(buffers[i] != NULL);
		paint(buffers[i], lengths[i], (uint32_t)i);
		isend_bytes(&outs[i], same_tag ? same_tag : (nm_tag_t)i + 1,
			    buffers[i], lengths[i], 0);
	}
}

static void wait_sends(int n)
{
	for (int i = 0; i < n; i++) {
		MUST(wait_for(&outs[i]).error == 0);
		free(buffers[i]);
	}
}

/* Receive message i of send_many() and look at it. */
static void receive(int i, struct nm_gate *from, nm_tag_t tag, nm_tag_t mask)
{
	unsigned char *p = malloc(lengths[i] + 1);
	struct nm_sr_status status;
	struct nm_sr_request in;

	irecv_bytes(&in, from, tag, mask, p, lengths[i]);
	status = wait_for(&in);
	MUST(status.error == 0);
	MUST(status.gate == peer);
	MUST(status.length == lengths[i]);
	MUST(is_painted(p, lengths[i], (uint32_t)i, nm_gate_rank(peer)));
	free(p);
}

RULE(messages_of_one_tag_arrive_in_the_order_of_sending)
{
	send_many(MANY, 5);
	for (int i = 0; i < MANY; i++)
		receive(i, peer, 5, NM_TAG_EXACT);
	wait_sends(MANY);
}

RULE(any_tag_sees_messages_in_the_order_of_sending)
{
	send_many(MANY, 0);
	for (int i = 0; i < MANY; i++)
		receive(i, i % 2 ? peer : NM_ANY_GATE, 0, NM_TAG_ANY);
	wait_sends(MANY);
}

static void shuffle(int *order, int n)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)(same_random() % (uint64_t)(i + 1));
		int t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

RULE(messages_can_be_received_in_any_order_of_tags)
{
	static int order[MANY];

	send_many(MANY, 0);
	shuffle(order, MANY);
	for (int i = 0; i < MANY; i++)
		receive(order[i], i % 3 ? peer : NM_ANY_GATE,
			(nm_tag_t)order[i] + 1, NM_TAG_EXACT);
	wait_sends(MANY);
}

RULE(receives_posted_before_take_their_messages)
{
	static unsigned char *into[MANY];
	static size_t expected[MANY];
	uint64_t before = same_random_stream;

	for (int i = 0; i < MANY; i++) {
		expected[i] = some_size();
		into[i] = malloc(expected[i] + 1);
		irecv_bytes(&ins[i], i % 2 ? peer : NM_ANY_GATE,
			    (nm_tag_t)i + 1, NM_TAG_EXACT, into[i],
			    expected[i]);
	}
	same_random_stream = before;
	send_many(MANY, 0);
	for (int i = MANY; i-- > 0;) {
		struct nm_sr_status status = wait_for(&ins[i]);

		MUST(status.error == 0);
		MUST(status.length == expected[i]);
		MUST(is_painted(into[i], expected[i], (uint32_t)i,
				nm_gate_rank(peer)));
		free(into[i]);
	}
	wait_sends(MANY);
}

/* All is sent before anything is received: neither side may wait for room. */
RULE(two_that_flood_each_other_complete)
{
	enum { N = 2 * MANY, BYTES = 1500 };
	unsigned char *block = malloc(BYTES), *got = malloc(BYTES);

	paint(block, BYTES, 1);
	for (int i = 0; i < N; i++)
		isend_bytes(&outs[i], (nm_tag_t)i, block, BYTES, 0);
	for (int i = N; i-- > 0;) {
		struct nm_sr_request in;

		irecv_bytes(&in, peer, (nm_tag_t)i, NM_TAG_EXACT, got, BYTES);
		MUST(wait_for(&in).error == 0);
		MUST(is_painted(got, BYTES, 1, nm_gate_rank(peer)));
	}
	for (int i = 0; i < N; i++)
		MUST(wait_for(&outs[i]).error == 0);
	free(block);
	free(got);
}

/* --- truncation, synchronous sends, cancel, probe --- */

static void truncate_to(size_t bytes, size_t room, uint32_t number)
{
	unsigned char *from = malloc(bytes), *to = malloc(room + 64);
	struct nm_sr_request out, in;
	struct nm_sr_status status;

	paint(from, bytes, number);
	memset(to, 0xee, room + 64);
	irecv_bytes(&in, peer, number, NM_TAG_EXACT, to, room);
	isend_bytes(&out, number, from, bytes, 0);
	status = wait_for(&in);
	MUST(status.error == -EMSGSIZE);
	MUST(status.length == room);
	MUST(status.sent == bytes);
	MUST(is_painted(to, room, number, nm_gate_rank(peer)));
	for (int i = 0; i < 64; i++)
		MUST(to[room + (size_t)i] == 0xee);
	MUST(wait_for(&out).error == 0);
	free(from);
	free(to);
}

RULE(a_message_longer_than_its_buffer_is_cut_and_says_so)
{
	static const size_t pairs[][2] = {
		{ 1, 0 },          { 100, 99 },
		{ 3000, 17 },      { 100000, 0 },
		{ 100000, 5 },     { 100000, 70001 },
		{ 1 << 20, 4096 }, { MAX_BYTES, 1 << 20 },
	};

	for (uint32_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		truncate_to(pairs[i][0], pairs[i][1], i);
}

RULE(a_synchronous_send_completes_only_when_a_receive_has_matched)
{
	static const size_t lens[] = { 0, 8, 1000, 50000 };

	for (nm_tag_t i = 0; i < 4; i++) {
		unsigned char *from = malloc(lens[i] + 1);
		unsigned char *to = malloc(lens[i] + 1);
		struct nm_sr_request out, in;

		paint(from, lens[i], i);
		isend_bytes(&out, i, from, lens[i], NM_SEND_SYNC);
		/* The peer's packets pass ours, and ours is not matched. */
		meet(1000 + i);
		meet(2000 + i);
		MUST(nm_sr_test(&out) == -EAGAIN);
		meet(3000 + i);
		irecv_bytes(&in, peer, i, NM_TAG_EXACT, to, lens[i]);
		MUST(wait_for(&in).error == 0);
		MUST(wait_for(&out).error == 0);
		MUST(is_painted(to, lens[i], i, nm_gate_rank(peer)));
		free(from);
		free(to);
	}
}

RULE(a_cancelled_receive_takes_nothing)
{
	struct nm_sr_request in, other, out;
	unsigned char a = 0, b = 0, c = 42;

	irecv_bytes(&in, peer, 1, NM_TAG_EXACT, &a, 1);
	MUST(nm_sr_cancel(&in) == 0);
	MUST(wait_for(&in).error == -ECANCELED);
	MUST(nm_sr_cancel(&in) == -EALREADY);
	meet(2);
	isend_bytes(&out, 1, &c, 1, 0);
	irecv_bytes(&other, peer, 1, NM_TAG_EXACT, &b, 1);
	MUST(wait_for(&other).error == 0);
	MUST(a == 0 && b == 42);
	MUST(nm_sr_cancel(&other) == -EALREADY);
	MUST(wait_for(&out).error == 0);
}

static void take_back(size_t bytes, unsigned flags, nm_tag_t tag)
{
	unsigned char *from = malloc(bytes + 1), *to = malloc(bytes + 1);
	bool awaits_match = flags != 0 || bytes == MAX_BYTES;
	struct nm_sr_request out, in;
	int rc, error;

	paint(from, bytes, tag);
	isend_bytes(&out, tag, from, bytes, flags);
	rc = nm_sr_cancel(&out);
	error = wait_for(&out).error;
	MUST(error == -ECANCELED || (error == 0 && !awaits_match));
	MUST(rc == 0 || (rc == -EALREADY && error == 0));
	meet(1000 + tag);
	if (error != 0)
		isend_bytes(&out, tag, from, bytes, 0);
	irecv_bytes(&in, peer, tag, NM_TAG_EXACT, to, bytes);
	MUST(wait_for(&in).error == 0);
	MUST(is_painted(to, bytes, tag, nm_gate_rank(peer)));
	MUST(wait_for(&out).error == 0);
	free(from);
	free(to);
}

RULE(a_send_that_is_taken_back_ends_though_nobody_receives_it)
{
	static const size_t lens[] = { 0, 8, 1000, 50000, MAX_BYTES };

	for (nm_tag_t i = 0; i < 5; i++) {
		take_back(lens[i], NM_SEND_SYNC, i);
		take_back(lens[i], 0, 10 + i);
	}
}

RULE(a_probe_shows_a_message_and_leaves_it)
{
	static unsigned char from[5000], to[5000];
	struct nm_sr_status status;
	struct nm_sr_request out, in;

	MUST(nm_sr_probe(session, peer, 1, NM_TAG_EXACT, &status) == -EAGAIN);
	meet(7);
	paint(from, sizeof(from), 1);
	for (size_t bytes = 0; bytes <= 5000; bytes += 2500) {
		isend_bytes(&out, 1, from, bytes, 0);
		MUST(nm_sr_probe_wait(session, NM_ANY_GATE, 1, NM_TAG_EXACT,
				      &status) == 0);
		MUST(status.length == bytes);
		MUST(status.tag == 1 && status.gate == peer);
		MUST(nm_sr_probe(session, peer, 0, NM_TAG_ANY, &status) == 0);
		MUST(status.length == bytes);
		irecv_bytes(&in, peer, 1, NM_TAG_EXACT, to, bytes);
		MUST(wait_for(&in).error == 0);
		MUST(wait_for(&out).error == 0);
		MUST(is_painted(to, bytes, 1, nm_gate_rank(peer)));
	}
}

RULE(a_message_taken_by_mprobe_is_received_only_by_its_handle)
{
	static const size_t lens[] = { 0, 100, 60000 };
	static unsigned char from[60000], to[60000];

	paint(from, sizeof(from), 9);
	for (nm_tag_t i = 0; i < 3; i++) {
		struct nm_data data = nm_data_flat(to, lens[i]);
		struct nm_sr_request out, in;
		struct nm_sr_status status;
		struct nm_message *message;

		isend_bytes(&out, i, from, lens[i], 0);
		MUST(nm_sr_probe_wait(session, peer, i, NM_TAG_EXACT,
				      &status) == 0);
		MUST(nm_sr_mprobe(session, peer, i, NM_TAG_EXACT, &message,
				  &status) == 0);
		MUST(status.length == lens[i]);
		MUST(nm_sr_probe(session, peer, i, NM_TAG_EXACT, &status) ==
		     -EAGAIN);
		MUST(nm_sr_mrecv(message, &data, &in) == 0);
		status = wait_for(&in);
		MUST(status.error == 0 && status.length == lens[i]);
		MUST(status.tag == i && status.gate == peer);
		MUST(wait_for(&out).error == 0);
		MUST(is_painted(to, lens[i], 9, nm_gate_rank(peer)));
	}
}

/* --- sessions --- */

RULE(sessions_do_not_mix_and_messages_wait_for_theirs_to_open)
{
	struct nm_session *first = session, *second;
	uint64_t id = (uint64_t)1 << 32 | session_id;
	unsigned char a = 0, b[3000], c[3000];
	struct nm_sr_request out[3], in;
	int early = nm_rank();

	/* Rank 0 (or the only one) opens late: rank 1's messages are early. */
	if (nm_size() == 1 || early) {
		MUST(nm_session_open(id, &second) == 0);
		session = second;
		paint(b, sizeof(b), 3);
		isend_bytes(&out[0], 1, b, sizeof(b), 0);
		isend_bytes(&out[1], 1, "x", 1, 0);
		session = first;
		isend_bytes(&out[2], 1, "y", 1, 0);
	}
	if (nm_size() == 1 || !early) {
		irecv_bytes(&in, peer, 1, NM_TAG_EXACT, &a, 1);
		MUST(wait_for(&in).error == 0);
		MUST(a == 'y');
		if (nm_size() > 1)
			MUST(nm_session_open(id, &second) == 0);
		session = second;
		irecv_bytes(&in, peer, 1, NM_TAG_EXACT, c, sizeof(c));
		MUST(wait_for(&in).length == sizeof(c));
		MUST(is_painted(c, sizeof(c), 3, nm_gate_rank(peer)));
		irecv_bytes(&in, peer, 1, NM_TAG_EXACT, &a, 1);
		MUST(wait_for(&in).error == 0);
		MUST(a == 'x');
	}
	if (nm_size() == 1 || early)
		for (int i = 0; i < 3; i++)
			MUST(wait_for(&out[i]).error == 0);
	MUST(nm_session_close(second) == 0);
	session = first;
}

RULE(bad_arguments_are_refused)
{
	struct nm_data d = nm_data_flat(NULL, 0);
	struct nm_sr_request r;
	struct nm_sr_status s;
	struct nm_session *again;

	MUST(nm_sr_isend(NULL, peer, 0, &d, 0, &r) == -EINVAL);
	MUST(nm_sr_isend(session, NULL, 0, &d, 0, &r) == -EINVAL);
	MUST(nm_sr_isend(session, peer, 0, NULL, 0, &r) == -EINVAL);
	MUST(nm_sr_isend(session, peer, 0, &d, 128, &r) == -EINVAL);
	MUST(nm_sr_isend_priority(session, peer, 0, &d, 0, 8, &r) == -EINVAL);
	MUST(nm_sr_isend_priority(session, peer, 0, &d, 0, -9, &r) == -EINVAL);
	MUST(nm_sr_irecv(session, peer, 0, 1, &d, &r) == -EINVAL);
	MUST(nm_sr_irecv(session, peer, 0, 0, &d, NULL) == -EINVAL);
	MUST(nm_sr_probe(session, peer, 0, 77, &s) == -EINVAL);
	MUST(nm_session_open(session_id, &again) == -EEXIST);
	MUST(nm_gate_of(-1) == NULL && nm_gate_of(nm_size()) == NULL);
	irecv_bytes(&r, peer, 1, NM_TAG_EXACT, NULL, 0);
	MUST(nm_session_close(session) == -EBUSY);
	MUST(nm_sr_cancel(&r) == 0);
	MUST(wait_for(&r).error == -ECANCELED);
}

/* --- threads --- */

enum { THREADS = 32, ROUNDS = FEWER > 1 ? 16 : 50 };

static void *talk(void *arg)
{
	nm_tag_t tag = (nm_tag_t)(uintptr_t)arg;
	struct nm_sr_request out, in;
	unsigned char *from = malloc(20000), *to = malloc(20000);

	for (uint32_t i = 0; i < ROUNDS; i++) {
		size_t bytes = (tag * 997u + i * 131u) % (i % 8 ? 500 : 20000);

		paint(from, bytes, tag * 1000 + i);
		irecv_bytes(&in, peer, tag, NM_TAG_EXACT, to, bytes);
		isend_bytes(&out, tag, from, bytes, 0);
		MUST(wait_for(&in).error == 0);
		MUST(is_painted(to, bytes, tag * 1000 + i, nm_gate_rank(peer)));
		MUST(wait_for(&out).error == 0);
	}
	free(from);
	free(to);
	return NULL;
}

RULE(threads_that_talk_at_once_each_get_their_own)
{
	marcel_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		MUST(marcel_create(&threads[i], NULL, talk, (void *)(i + 1)) ==
		     0);
	for (int i = 0; i < THREADS; i++)
		MUST(marcel_join(threads[i], NULL) == 0);
}

static marcel_sem_t foreign_ended;

static void *talk_and_tell(void *arg)
{
	talk(arg);
	MUST(marcel_sem_post(&foreign_ended) == 0);
	return NULL;
}

/* Main waits in marcel's way, so that its VP polls while they sleep. */
RULE(kernel_threads_of_the_program_may_send_and_receive_too)
{
	enum { FOREIGN = 3 };
	pthread_t foreign[FOREIGN];
	marcel_t threads[FOREIGN];

	MUST(marcel_sem_init(&foreign_ended, 0, 0) == 0);
	for (uintptr_t i = 0; i < FOREIGN; i++) {
		MUST(pthread_create(&foreign[i], NULL, talk_and_tell,
				    (void *)(i + 1)) == 0);
		MUST(marcel_create(&threads[i], NULL, talk,
				   (void *)(i + 100)) == 0);
	}
	for (int i = 0; i < FOREIGN; i++) {
		MUST(marcel_join(threads[i], NULL) == 0);
		MUST(marcel_sem_wait(&foreign_ended) == 0);
	}
	for (int i = 0; i < FOREIGN; i++)
		MUST(pthread_join(foreign[i], NULL) == 0);
	MUST(marcel_sem_destroy(&foreign_ended) == 0);
}

RULE(wait_any_returns_one_that_is_complete)
{
	struct nm_sr_request *list[MANY + 1];
	int left = 100;

	list[0] = NULL;
	for (int i = 1; i <= left; i++) {
		irecv_bytes(&ins[i], peer, (nm_tag_t)i, NM_TAG_EXACT, NULL, 0);
		list[i] = &ins[i];
	}
	for (int i = 100; i > 0; i--)
		isend_bytes(&outs[i], (nm_tag_t)i, NULL, 0, 0);
	for (; left > 0; left--) {
		size_t i = nm_sr_wait_any(list, 101);

		MUST(list[i] != NULL && nm_sr_is_complete(list[i]));
		list[i] = NULL;
	}
	for (int i = 100; i > 0; i--)
		MUST(wait_for(&outs[i]).error == 0);
}

enum { BURST = 40 };

static void send_burst(void)
{
	for (int i = 0; i < BURST; i++)
		isend_bytes(&outs[i], (nm_tag_t)i, NULL, 0, 0);
}

static void await_burst(struct nm_sr_request *reqs)
{
	for (int i = 0; i < BURST; i++)
		MUST(wait_for(&reqs[i]).error == 0);
}

/*
 * Engine none polls for nobody who does not call; and TSan lets no tick through
 * to who computes.
 */
static void compute_until_they_have_left(void)
{
	const char *engine = getenv("PIOM_ENGINE");
	bool calls = engine != NULL && strcmp(engine, "none") == 0;

#ifdef __SANITIZE_THREAD__
	calls = true;
#endif
	for (int i = 0; i < BURST; i++)
		while (!nm_sr_is_complete(&outs[i]))
			if (calls)
				nm_sr_test(&outs[i]);
}

/*
 * What gathers does not wait for a call of the sender's, nor for anything from
 * outside. Bursts that are waited for, at once, let the others gather; and who
 * sends these has slept before, so that nobody polls any more.
 */
RULE(a_burst_leaves_though_its_sender_only_computes)
{
	for (int turn = 0; turn < 8; turn++) {
		bool sends = nm_size() == 1 || turn % 2 == nm_rank();

		for (int i = 0; i < BURST; i++)
			irecv_bytes(&ins[i], peer, (nm_tag_t)i, NM_TAG_EXACT,
				    NULL, 0);
		meet(1000);
		send_burst();
		await_burst(outs);
		await_burst(ins);
		if (!sends || nm_size() == 1) {
			for (int i = 0; i < BURST; i++)
				irecv_bytes(&ins[i], peer, (nm_tag_t)i,
					    NM_TAG_EXACT, NULL, 0);
			usleep(20000);
		}
		meet(1001);
		if (sends) {
			send_burst();
			compute_until_they_have_left();
			await_burst(outs);
		}
		if (!sends || nm_size() == 1)
			await_burst(ins);
	}
}
