/* nmad/core/match.c: the rules of matching, one a test. */
#include "../../check.h"

#include <errno.h>
#include <stdlib.h>

#include <base/compiler.h>

#include "../../../nmad/core/match.h"

/* Gates are keys only; any different addresses will do. */
static char gates[4];
#define GATE(n) ((struct nm_gate *)&gates[n])
#define ANY     ((struct nm_gate *)NULL)

static struct nm_match m;
static struct nm_match_session s, other;
static struct base_list woken;

static void setup(void)
{
	nm_match_init(&m);
	nm_match_session_init(&m, &s);
	nm_match_session_init(&m, &other);
	base_list_init(&woken);
	CHECK_INT(nm_match_reserve(&m, 64), 0);
}

/* Takes everything out that a test left. */
static void teardown(void)
{
	struct base_list out;

	base_list_init(&out);
	nm_match_check(&m);
	for (int i = 0; i < 2; i++) {
		struct nm_match_session *each = i ? &other : &s;

		while (nm_match_drain(&m, each))
			;
		for (int g = 0; g < 4; g++)
			nm_match_take_gate(&m, each, GATE(g), &out);
		nm_match_take_gate(&m, each, ANY, &out);
		nm_match_session_exit(&m, each);
	}
	nm_match_exit(&m);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static struct nm_match_msg *post_in(struct nm_match_session *in,
				    struct nm_match_recv *r,
				    struct nm_gate *gate, int tag)
{
	struct nm_match_msg *msg = NULL;

	nm_match_recv_init(r, in, gate, (uint32_t)tag, tag < 0);
	CHECK_INT(nm_match_post(&m, r, &msg), 0);
	nm_match_check(&m);
	return msg;
}

/* tag < 0: any */
static struct nm_match_msg *post(struct nm_match_recv *r, struct nm_gate *gate,
				 int tag)
{
	return post_in(&s, r, gate, tag);
}

/* The receive that takes the message, which is kept if there is none. */
static struct nm_match_recv *arrive(struct nm_match_msg *msg,
				    struct nm_gate *gate, int tag)
{
	struct nm_match_recv *r = nm_match_arrival(&m, &s, gate, (uint32_t)tag);

	nm_match_check(&m);
	if (r != NULL)
		return r;
	msg->session = &s;
	msg->gate = gate;
	msg->tag = (uint32_t)tag;
	CHECK_INT(nm_match_keep(&m, msg, &woken), 0);
	nm_match_check(&m);
	return NULL;
}

TEST(a_receive_takes_only_what_it_names)
{
	static struct nm_match_recv r;
	static struct nm_match_msg msgs[2];

	CHECK_PTR(post(&r, GATE(1), 7), NULL);
	CHECK_PTR(arrive(&msgs[0], GATE(2), 7), NULL);
	CHECK_PTR(arrive(&msgs[1], GATE(1), 8), NULL);
	CHECK_PTR(nm_match_arrival(&m, &other, GATE(1), 7), NULL);
	CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 7), &r);
	CHECK(!nm_match_is_posted(&r));
}

TEST(receives_of_one_key_match_in_the_order_of_posting)
{
	static struct nm_match_recv r[5];

	for (int i = 0; i < 5; i++)
		CHECK_PTR(post(&r[i], GATE(1), 7), NULL);
	for (int i = 0; i < 5; i++)
		CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 7), &r[i]);
	CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 7), NULL);
}

TEST(messages_are_taken_in_the_order_of_arrival)
{
	static struct nm_match_msg msg[4];
	static struct nm_match_recv r;

	for (int i = 0; i < 4; i++)
		CHECK_PTR(arrive(&msg[i], GATE(1), 7), NULL);
	for (int i = 0; i < 4; i++)
		CHECK_PTR(post(&r, GATE(1), 7), &msg[i]);
	CHECK_PTR(post(&r, GATE(1), 7), NULL);
}

/* Each order of posting of the four kinds: the first posted wins. */
TEST(earliest_posted_receive_wins_whatever_it_leaves_open)
{
	static struct nm_match_recv r[4];

	for (int first = 0; first < 24; first++) {
		int order[4] = { 0, 1, 2, 3 }, code = first;

		for (int i = 4; i > 1; i--) {
			int j = code % i, t = order[i - 1];

			code /= i;
			order[i - 1] = order[j];
			order[j] = t;
		}
		for (int i = 0; i < 4; i++)
			post(&r[order[i]], order[i] & 1 ? ANY : GATE(1),
			     order[i] & 2 ? -1 : 7);
		for (int i = 0; i < 4; i++)
			CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 7),
				  &r[order[i]]);
	}
}

/* Algorithm 2 of CCGrid 2019 has the branches of this swapped. */
TEST(any_source_looks_by_tag_and_any_tag_looks_by_source)
{
	static struct nm_match_msg by_tag, by_source;
	static struct nm_match_recv r[2];

	CHECK_PTR(arrive(&by_tag, GATE(2), 7), NULL);
	CHECK_PTR(arrive(&by_source, GATE(1), 8), NULL);
	CHECK_PTR(post(&r[0], GATE(1), -1), &by_source);
	CHECK_PTR(post(&r[1], ANY, 7), &by_tag);
}

TEST(a_wildcard_takes_the_oldest_message_of_any_source_and_tag)
{
	static struct nm_match_msg msg[3];
	static struct nm_match_recv r;

	arrive(&msg[0], GATE(2), 9);
	arrive(&msg[1], GATE(1), 7);
	arrive(&msg[2], GATE(3), 8);
	CHECK_PTR(post(&r, GATE(1), 7), &msg[1]);
	CHECK_PTR(post(&r, ANY, -1), &msg[0]);
	CHECK_PTR(post(&r, ANY, -1), &msg[2]);
	CHECK_PTR(post(&r, ANY, -1), NULL);
}

TEST(a_taken_message_leaves_all_four_places)
{
	static struct nm_match_msg msg;
	static struct nm_match_recv r;

	for (int kind = 0; kind < 4; kind++) {
		arrive(&msg, GATE(1), 7);
		CHECK_PTR(post(&r, kind & 1 ? ANY : GATE(1), kind & 2 ? -1 : 7),
			  &msg);
		CHECK_PTR(nm_match_probe(&m, &s, GATE(1), 7, false), NULL);
		CHECK_PTR(nm_match_probe(&m, &s, ANY, 7, false), NULL);
		CHECK_PTR(nm_match_probe(&m, &s, GATE(1), 0, true), NULL);
		CHECK_PTR(nm_match_probe(&m, &s, ANY, 0, true), NULL);
		for (int table = 0; table < NM_MATCH_TABLES; table++)
			CHECK_INT(m.tables[table].count, 0);
	}
}

TEST(sessions_are_worlds_of_their_own)
{
	static struct nm_match_msg msg;
	static struct nm_match_recv r[4];

	arrive(&msg, GATE(1), 7);
	for (int kind = 0; kind < 4; kind++)
		CHECK_PTR(post_in(&other, &r[kind], kind & 1 ? ANY : GATE(1),
				  kind & 2 ? -1 : 7),
			  NULL);
	CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 7), NULL);
}

TEST(tag_zero_and_all_ones_are_ordinary_tags)
{
	static struct nm_match_recv r[2];
	static struct nm_match_msg msg;

	post(&r[0], GATE(1), 0);
	nm_match_recv_init(&r[1], &s, GATE(1), UINT32_MAX, false);
	struct nm_match_msg *out;
	CHECK_INT(nm_match_post(&m, &r[1], &out), 0);
	CHECK_PTR(arrive(&msg, GATE(1), 5), NULL);
	CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), UINT32_MAX), &r[1]);
	CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 0), &r[0]);
}

TEST(a_cancelled_receive_takes_nothing_and_the_next_keeps_its_turn)
{
	static struct nm_match_recv r[3];

	for (int i = 0; i < 3; i++)
		post(&r[i], i == 1 ? ANY : GATE(1), 7);
	CHECK_INT(nm_match_cancel(&m, &r[0]), 0);
	CHECK_INT(nm_match_cancel(&m, &r[0]), -ENOENT);
	nm_match_check(&m);
	CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 7), &r[1]);
	CHECK_INT(nm_match_cancel(&m, &r[1]), -ENOENT);
	CHECK_PTR(nm_match_arrival(&m, &s, GATE(1), 7), &r[2]);
}

TEST(a_probe_sees_what_a_receive_would_take_and_leaves_it)
{
	static struct nm_match_msg msg[2];
	static struct nm_match_recv r;

	CHECK_PTR(nm_match_probe(&m, &s, ANY, 0, true), NULL);
	arrive(&msg[0], GATE(1), 7);
	arrive(&msg[1], GATE(2), 8);
	CHECK_PTR(nm_match_probe(&m, &s, ANY, 0, true), &msg[0]);
	CHECK_PTR(nm_match_probe(&m, &s, ANY, 8, false), &msg[1]);
	CHECK_PTR(nm_match_probe(&m, &s, GATE(2), 0, true), &msg[1]);
	CHECK_PTR(nm_match_probe(&m, &s, GATE(2), 7, false), NULL);
	CHECK_PTR(nm_match_probe(&m, &other, ANY, 0, true), NULL);
	CHECK_PTR(post(&r, GATE(1), 7), &msg[0]);
}

TEST(a_posted_receive_is_no_message_for_a_probe)
{
	static struct nm_match_recv r;

	post(&r, GATE(1), 7);
	CHECK_PTR(nm_match_probe(&m, &s, GATE(1), 7, false), NULL);
}

TEST(a_message_taken_by_mprobe_is_for_nobody_else)
{
	static struct nm_match_msg msg[2];
	static struct nm_match_recv r;

	arrive(&msg[0], GATE(1), 7);
	arrive(&msg[1], GATE(1), 7);
	nm_match_take(&m, nm_match_probe(&m, &s, ANY, 0, true));
	nm_match_check(&m);
	CHECK_PTR(post(&r, GATE(1), 7), &msg[1]);
	CHECK_PTR(post(&r, GATE(1), 7), NULL);
}

TEST(waiting_probes_see_only_messages_that_no_receive_took)
{
	static struct nm_match_recv probes[5], r;
	static struct nm_match_msg msg;
	int count = 0;

	for (int i = 0; i < 4; i++) {
		nm_match_recv_init(&probes[i], &s, i & 1 ? ANY : GATE(1), 7,
				   i & 2);
		CHECK_INT(nm_match_post_probe(&m, &probes[i]), 0);
	}
	nm_match_recv_init(&probes[4], &s, GATE(1), 8, false);
	CHECK_INT(nm_match_post_probe(&m, &probes[4]), 0);
	nm_match_check(&m);
	post(&r, GATE(1), 7);
	CHECK_PTR(arrive(&msg, GATE(1), 7), &r);
	CHECK(base_list_is_empty(&woken));
	CHECK_PTR(arrive(&msg, GATE(1), 7), NULL);
	base_list_for_each (link, &woken)
		count++;
	CHECK_INT(count, 4);
	while (base_list_take_front(&woken))
		;
	CHECK(nm_match_is_posted(&probes[4]));
	CHECK_INT(nm_match_cancel(&m, &probes[4]), 0);
	CHECK_PTR(nm_match_probe(&m, &s, GATE(1), 7, false), &msg);
}

TEST(all_that_wait_for_one_gate_can_be_taken_out)
{
	static struct nm_match_recv r[6], probe;
	struct base_list out;
	int count = 0;

	base_list_init(&out);
	post(&r[0], GATE(1), 7);
	post(&r[1], GATE(1), 8);
	post(&r[2], GATE(1), -1);
	post(&r[3], GATE(2), 7);
	post(&r[4], ANY, 7);
	post(&r[5], ANY, -1);
	nm_match_recv_init(&probe, &s, GATE(1), 9, false);
	CHECK_INT(nm_match_post_probe(&m, &probe), 0);
	nm_match_take_gate(&m, &s, GATE(1), &out);
	nm_match_check(&m);
	while (base_list_take_front(&out))
		count++;
	CHECK_INT(count, 4);
	CHECK(!nm_match_is_posted(&r[2]) && nm_match_is_posted(&r[3]));
	nm_match_take_gate(&m, &s, ANY, &out);
	nm_match_check(&m);
	for (count = 0; base_list_take_front(&out);)
		count++;
	CHECK_INT(count, 2);
}

TEST(without_reserve_a_call_fails_and_changes_nothing)
{
	enum { N = 4096 };
	struct nm_match_recv *r = calloc(N, sizeof(*r));
	struct nm_match_msg *out = NULL,
			    msg = { .session = &s, .gate = GATE(1), .tag = N };
	int n = 0, err = 0;

	for (; n < N; n++) {
		nm_match_recv_init(&r[n], &s, GATE(1), (uint32_t)n, false);
		err = nm_match_post(&m, &r[n], &out);
		if (err < 0)
			break;
	}
	CHECK_INT(err, -ENOMEM);
	CHECK(n >= 64);
	CHECK(!nm_match_is_posted(&r[n]));
	CHECK_INT(nm_match_keep(&m, &msg, &woken), -ENOMEM);
	CHECK_INT(s.nmsgs, 0);
	nm_match_check(&m);
	CHECK_INT(nm_match_reserve(&m, 2), 0);
	CHECK_INT(nm_match_post(&m, &r[n], &out), 0);
	CHECK_INT(nm_match_keep(&m, &msg, &woken), 0);
	nm_match_check(&m);
	/* A wildcard needs no memory, nor does a key that is in use. */
	while (n-- > 0)
		CHECK_INT(nm_match_cancel(&m, &r[n]), 0);
	teardown();
	setup();
	free(r);
}

TEST(tables_tell_when_little_is_left_of_what_was_reserved)
{
	struct nm_match_msg *out;
	struct nm_match_recv *r;
	size_t room, n;

	CHECK(m.is_low);
	CHECK_INT(nm_match_reserve(&m, NM_MATCH_LOW), 0);
	room = nm_match_room(&m);
	n = room - NM_MATCH_LOW + 1;
	r = calloc(room, sizeof(*r));
	for (size_t i = 0; i < n; i++) {
		CHECK(!m.is_low);
		nm_match_recv_init(&r[i], &s, GATE(1), (uint32_t)i, false);
		CHECK_INT(nm_match_post(&m, &r[i], &out), 0);
	}
	CHECK(m.is_low);
	CHECK_INT(nm_match_reserve(&m, NM_MATCH_LOW), 0);
	CHECK(!m.is_low);
	for (size_t i = 0; i < n; i++)
		CHECK_INT(nm_match_cancel(&m, &r[i]), 0);
	free(r);
}

/* A task runtime uses fresh tags for ever. */
TEST(keys_that_are_no_longer_in_use_cost_nothing)
{
	static struct nm_match_recv r;
	size_t room = nm_match_room(&m);

	for (int tag = 0; tag < 100000; tag++) {
		struct nm_match_msg msg = { .session = &s,
					    .gate = GATE(1),
					    .tag = (uint32_t)tag };
		struct nm_match_msg *out;

		CHECK_INT(nm_match_keep(&m, &msg, &woken), 0);
		nm_match_recv_init(&r, &s, ANY, (uint32_t)tag, false);
		CHECK_INT(nm_match_post(&m, &r, &out), 0);
		CHECK_PTR(out, &msg);
	}
	CHECK_INT(nm_match_room(&m), room);
}

static unsigned longest_chain(const struct base_hash *table)
{
	unsigned longest = 0;

	for (uint32_t i = 0; i < table->now.size; i++) {
		const struct base_link *list = table->now.slots[i].first;
		unsigned length = 0;

		for (; list != NULL; list = base_hash_plain(list)->prev->next)
			length++;
		longest = length > longest ? length : longest;
	}
	return longest;
}

/* Random places in the index would give chains of 7 or 8. */
TEST(whatever_the_step_of_the_tags_no_chain_is_long)
{
	enum { N = 20000 };
	static const uint32_t steps[] = {
		1, 2, 3, 4, 16, 64, 1000, 4096, 24593, 49157, 65536, 98317
	};
	struct nm_match_recv *r = calloc(N, sizeof(*r));
	struct nm_match_msg *out;

	CHECK_INT(nm_match_reserve(&m, N), 0);
	for (size_t k = 0; k < BASE_ARRAY_LEN(steps); k++) {
		for (uint32_t i = 0; i < N; i++) {
			nm_match_recv_init(&r[i], &s, GATE(i % 4),
					   i / 4 * steps[k], false);
			CHECK_INT(nm_match_post(&m, &r[i], &out), 0);
		}
		CHECK(longest_chain(&m.tables[NM_MATCH_FULL]) <= 12);
		for (uint32_t i = 0; i < N; i++)
			CHECK_INT(nm_match_cancel(&m, &r[i]), 0);
	}
	free(r);
}
