/*
 * With NMAD_STRATEGY=prio, over simulated rails to oneself: what arrives before
 * what. Nobody polls but this thread (PIOM_ENGINE=none), and without latency a
 * poll brings what is under way and no more, so that arrivals have an order.
 */
#include "../../check.h"

#include <errno.h>
#include <stdlib.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "../../../nmad/core/grant.h"

enum {
	MANY = 64,
	MIB = 1 << 20,
	BODIES = 4,
	BODY = 4 * MIB,
	URGENT = MIB / 4,
	FEW = 20
};

static struct nm_session *bulk, *quick;
static struct nm_gate *self;
static struct nm_sr_request out[MANY + 1], in[MANY + 1];
static char *from, *to;

static void setup(void)
{
	if (from != NULL)
		return;
	from = calloc(BODIES, BODY);
	to = calloc(BODIES, BODY);
	CHECK(from != NULL && to != NULL);
	setenv("PIOM_ENGINE", "none", 1);
	setenv("PIOM_MODE", "poll", 1);
	setenv("MARCEL_NVP", "1", 1);
	setenv("MARCEL_TIMESLICE_US", "0", 1);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, NULL);
}

static void start(const char *strategy, const char *rails)
{
	setenv("NMAD_STRATEGY", strategy, 1);
	setenv("NMAD_DRIVER", rails, 1);
	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_session_open(7, &bulk), 0);
	CHECK_INT(nm_session_open(8, &quick), 0);
	self = nm_gate_of(0);
}

static void stop(void)
{
	CHECK_INT(nm_session_close(bulk), 0);
	CHECK_INT(nm_session_close(quick), 0);
	CHECK_INT(nm_exit(), 0);
}

static void expect(int i, struct nm_session *s, void *where, size_t bytes)
{
	struct nm_data d = nm_data_flat(where, bytes);

	CHECK_INT(nm_sr_irecv(s, self, 1, NM_TAG_EXACT, &d, &in[i]), 0);
}

static void say(int i, struct nm_session *s, const void *what, size_t bytes,
		int priority)
{
	struct nm_data d = nm_data_flat(what, bytes);

	CHECK_INT(nm_sr_isend_priority(s, self, 1, &d, 0, priority, &out[i]),
		  0);
}

/* Poll until this has come: how many of the first n came before. */
static int before(const struct nm_sr_request *r, int n)
{
	int came = 0;

	while (!nm_sr_is_complete(r))
		nm_core_progress(nm_core_self);
	for (int i = 0; i < n; i++)
		came += nm_sr_is_complete(&in[i]);
	return came;
}

static void finish(int n)
{
	for (int i = 0; i < n; i++) {
		nm_sr_wait(&in[i]);
		nm_sr_wait(&out[i]);
	}
}

/* MANY small ones, no poll between, and an urgent one. */
static int small_before_the_urgent(const char *strategy, const char *rails)
{
	int came;

	start(strategy, rails);
	for (int i = 0; i < MANY; i++)
		expect(i, bulk, to + i, 1);
	expect(MANY, quick, to + MANY, 1);
	for (int i = 0; i < MANY; i++)
		say(i, bulk, from + i, 1, 0);
	say(MANY, quick, from + MANY, 1, 1);
	came = before(&in[MANY], MANY);
	finish(MANY + 1);
	stop();
	return came;
}

/* A link has one small packet under way; those leave before it. */
TEST(an_urgent_message_arrives_before_those_that_waited)
{
	CHECK_INT(small_before_the_urgent("prio", "sim:self"), 1);
	CHECK_INT(small_before_the_urgent("fifo", "sim:self"), MANY);
}

/* The rails are polled in turn, so that one more may leave beside it. */
TEST(over_two_rails_few_come_first)
{
	CHECK(small_before_the_urgent("prio", "sim:self+sim:self") <= 3);
	CHECK(small_before_the_urgent("fifo", "sim:self+sim:self") >= MANY - 1);
}

static unsigned parts_left(void)
{
	const struct nm_grants *g = self->grants;

	if (g == NULL)
		return 0;
	g += self->links[0]->rail->index;
	return g->nheld + g->running;
}

/*
 * BODIES long ones, one of them under way, and an urgent one. *left: parts of
 * theirs that are to come when it has.
 */
static int bodies_before_the_urgent(const char *strategy, unsigned *left)
{
	int came;

	start(strategy, "sim:self");
	for (int i = 0; i < BODIES; i++) {
		expect(i, bulk, to + i * BODY, BODY);
		say(i, bulk, from + i * BODY, BODY, -1);
	}
	for (int i = 0; i < FEW; i++)
		nm_core_progress(nm_core_self);
	expect(BODIES, quick, to, URGENT);
	say(BODIES, quick, from, URGENT, 1);
	came = before(&in[BODIES], BODIES);
	*left = parts_left();
	finish(BODIES + 1);
	stop();
	return came;
}

TEST(an_urgent_body_waits_for_parts_and_not_for_bodies)
{
	const unsigned parts = BODIES * NM_WIRE_PARTS_MAX;
	unsigned left;

	CHECK_INT(bodies_before_the_urgent("prio", &left), 0);
	/* Those that came meanwhile, that ran, and one beside it. */
	CHECK(left >= parts - FEW * 65536u / (BODY / NM_WIRE_PARTS_MAX) - 4);
	CHECK_INT(bodies_before_the_urgent("default", &left), BODIES);
	CHECK_INT(left, 0);
}
