/*
 * Priorities: what leaves before what, while the envelopes of each session keep
 * their order.
 */
#include "busy.h"

#include "../../../nmad/core/levels.h"

enum { WINDOW = 1 << 20, LARGE = 1400 };

extern const struct nm_strategy nm_strategy_prio;

static void setup(void)
{
	busy_setup(&nm_strategy_prio, WINDOW);
	mock.caps = 0;
	store_relaxed(&peer->eager_max, LARGE);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, busy_teardown);
}

static struct nm_wire_chunk the_chunk_of(int i)
{
	struct nm_wire_chunk c[1];

	CHECK_INT(chunks_of(i, c), 1);
	return c[0];
}

static uint32_t tag_of(int i)
{
	return the_chunk_of(i).tag;
}

/* The link is busy with a packet that nothing is said of. */
static void occupy(void)
{
	send_in(0, 0, 8, 0);
	CHECK_INT(nsent, 1);
}

/* These tags leave next, one a packet, in this order. */
static void check_leave(const uint32_t *tags, int n)
{
	for (int i = 0; i < n; i++) {
		int at = nsent;

		go();
		CHECK_INT(nsent, at + 1);
		CHECK_INT(tag_of(at), tags[i]);
	}
}

#define CHECK_LEAVE(...)                                                       \
	do {                                                                   \
		static const uint32_t tags[] = { __VA_ARGS__ };                \
		check_leave(tags, (int)(sizeof(tags) / sizeof(tags[0])));      \
	} while (0)

/* --- rules --- */

TEST(the_highest_priority_of_other_sessions_leaves_first)
{
	occupy();
	send_prio(0, 10, 8, 0, 0);
	send_prio(0, 11, 8, 0, 0);
	send_prio(1, 20, 8, 0, -3);
	send_prio(0, 12, 8, 0, -3);
	go();
	CHECK_INT(tag_of(1), 10);
	send_prio(1, 21, 8, 0, 5);
	CHECK_LEAVE(20, 21, 11, 12);
}

TEST(equals_leave_as_they_came)
{
	occupy();
	for (uint32_t i = 0; i < 10; i++)
		send_prio((int)(i % 2), i, 8, 0, 3);
	CHECK_LEAVE(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
}

/* Those before it in its session leave first: short ones with their payload. */
TEST(an_urgent_message_hurries_the_envelopes_before_it)
{
	occupy();
	send_prio(1, 20, 8, 0, 2);
	send_prio(0, 10, 8, 0, 0);
	send_prio(0, 11, LARGE, 0, 0);
	send_prio(0, 12, 1024, NM_SEND_SYNC, 0);
	send_prio(0, 13, LARGE, 0, 7);
	send_prio(0, 14, LARGE, 0, 0);
	CHECK_LEAVE(10, 11, 12, 13, 20, 14);
	CHECK_INT(the_chunk_of(1).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(the_chunk_of(2).kind, NM_WIRE_KIND_RTS);
	CHECK_INT(the_chunk_of(2).length, LARGE);
	CHECK_INT(the_chunk_of(3).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(the_chunk_of(4).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(the_chunk_of(6).kind, NM_WIRE_KIND_EAGER);
	for (int i = 1; i < 5; i++)
		CHECK_INT(the_chunk_of(i).seq, i);
}

TEST(what_has_waited_longest_is_passed_a_bounded_number_of_times)
{
	int passed = 0;

	occupy();
	send_prio(0, 10, LARGE, 0, -8);
	send_prio(0, 11, 8, 0, -8);
	for (uint32_t i = 0; i < 100; i++)
		send_prio(1, 100 + i, 8, 0, 7);
	for (go(); tag_of(nsent - 1) != 10; go())
		CHECK_INT(tag_of(nsent - 1), 100 + passed++);
	CHECK_INT(passed, NM_LEVELS_PATIENCE);
	CHECK_INT(the_chunk_of(nsent - 1).kind, NM_WIRE_KIND_EAGER);
	for (go(); tag_of(nsent - 1) != 11; go())
		CHECK_INT(tag_of(nsent - 1), 100 + passed++);
	CHECK_INT(passed, 2 * NM_LEVELS_PATIENCE);
}

TEST(a_quarter_of_the_window_is_for_what_is_urgent)
{
	core.config.window = 4 * LARGE;
	at_once = true;
	for (uint32_t i = 0; i < 6; i++)
		send_prio(0, i, LARGE, 0, i < 4 ? 0 : 1);
	CHECK_INT(the_chunk_of(2).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(the_chunk_of(3).kind, NM_WIRE_KIND_RTS);
	CHECK_INT(the_chunk_of(4).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(the_chunk_of(5).kind, NM_WIRE_KIND_RTS);
}

TEST(where_packets_are_dear_one_takes_what_fits_by_priority)
{
	struct nm_wire_chunk c[REQS];

	mock.caps = NM_CAP_DEAR;
	occupy();
	for (uint32_t i = 1; i < 30; i++)
		send_prio((int)(i % 2), i, 8, 0, i % 2 ? 1 : -1);
	go();
	CHECK_INT(chunks_of(1, c), 29);
	for (uint32_t i = 0; i < 29; i++)
		CHECK_INT(c[i].tag, i < 15 ? 2 * i + 1 : 2 * (i - 15) + 2);
}

TEST(an_urgent_message_gathers_nothing)
{
	mock.caps = NM_CAP_DEAR;
	peer->is_dear = true;
	core.distrust = 0;
	at_once = true;
	for (uint32_t i = 0; i < 4; i++)
		send_prio(0, i, 8, 0, 0);
	CHECK(peer->gathers);
	CHECK_INT(nsent, 3);
	send_prio(1, 4, 8, 0, 1);
	CHECK(!peer->gathers);
	CHECK_INT(nsent, 4); /* and took along what had gathered */
}

TEST(other_strategies_pass_over_priorities)
{
	core.config.strategy = nm_strategies[1];
	occupy();
	for (uint32_t i = 0; i < 6; i++)
		send_prio((int)(i % 2), i, 8, 0, (int)i);
	CHECK_LEAVE(0, 1, 2, 3, 4, 5);
}

TEST(a_priority_out_of_range_is_refused)
{
	struct nm_data d = nm_data_flat(text[0], 1);

	CHECK_INT(nm_sr_isend_priority(sessions[0], peer, 1, &d, 0,
				       NM_PRIORITY_MIN - 1, &reqs[0]),
		  -EINVAL);
	CHECK_INT(nm_sr_isend_priority(sessions[0], peer, 1, &d, 0,
				       NM_PRIORITY_MAX + 1, &reqs[0]),
		  -EINVAL);
	CHECK_INT(nsent, 0);
	send_prio(0, 1, 1, 0, NM_PRIORITY_MIN);
	send_prio(0, 2, 1, 0, NM_PRIORITY_MAX);
	CHECK_INT(tag_of(0), 1);
}

/* The teardown has the peer die and looks at each. */
TEST(all_that_waits_ends_with_the_peer)
{
	occupy();
	for (uint32_t i = 0; i < 40; i++)
		send_prio((int)(i % 2), i, i % 3 ? 8 : LARGE, 0,
			  (int)(i % 16) - 8);
	go();
	go();
}

/* --- against a model that looks at all that waits --- */

struct waiting {
	uint32_t tag;
	int session, priority;
};

static struct waiting model[REQS];
static int nmodel;

/* Which of those that wait leaves next. */
static int choose(int passed)
{
	int best = 0;

	if (passed < NM_LEVELS_PATIENCE)
		for (int i = 1; i < nmodel; i++)
			if (model[i].priority > model[best].priority)
				best = i;
	for (int i = 0; i < best; i++)
		if (model[i].session == model[best].session)
			return i;
	return best;
}

static void drop(int i)
{
	nmodel--;
	for (; i < nmodel; i++)
		model[i] = model[i + 1];
}

TEST(whatever_is_sent_leaves_as_the_rule_says)
{
	uint32_t seq[2] = { 1, 0 };
	int passed = 0;

	occupy();
	nmodel = 0;
	while (nreqs < REQS || nmodel > 0) {
		struct nm_wire_chunk c;
		int next;

		if (nreqs < REQS && (nmodel == 0 || check_random() % 8 < 5)) {
			struct waiting *w = &model[nmodel++];

			w->tag = (uint32_t)nreqs;
			w->session = (int)(check_random() % 2);
			w->priority = (int)(check_random() % 16) - 8;
			send_prio(w->session, w->tag, check_random() % TEXT,
				  check_random() % 2 ? NM_SEND_SYNC : 0,
				  w->priority);
			continue;
		}
		next = choose(passed);
		go();
		c = the_chunk_of(nsent - 1);
		CHECK_INT(c.tag, model[next].tag);
		CHECK_INT(c.session, SESSION + model[next].session);
		CHECK_INT(c.seq, seq[model[next].session]++);
		passed = next == 0 ? 0 : passed + 1;
		drop(next);
	}
	CHECK_INT(nsent, REQS);
}
