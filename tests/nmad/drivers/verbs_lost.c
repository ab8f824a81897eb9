/*
 * drivers/verbs: an adapter fails, at any moment and on any side, and its peers
 * live: what is said to them goes on over other rails, and arrives once, in its
 * order, each byte. When there is no other rail, all ends with an error. The
 * ranks are verbs_lost_rank.c, over the libibverbs of fake_verbs/.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <base/compiler.h>

#include "../../check.h"
#include "../../run.h"

static const char two[] = "ibverbs:fake0+ibverbs:fake1";
static const char spare[] = "ibverbs:fake0+tcp";

/* A job of n ranks, each with a network of its own. */
static void start(int n, const char *drivers, const char *fault,
		  unsigned messages, const char *more)
{
	static unsigned number;
	unsigned long long seed = check_random();

	printf("# %d ranks, %s, %s, seed %llu\n", n, drivers, fault, seed);
	run_start(NULL,
		  "NMAD_DRIVER=%s FAKE_VERBS_JOB=$FAKE_VERBS_JOB.%u exec "
		  "\"$MPIRUN\" -n %d \"$RANK\" %llu %s %u %s",
		  drivers, number++, n, seed, fault, messages, more);
}

static struct run end(void)
{
	struct run r = run_wait();

	if (r.code != 0)
		printf("# code %d\n%s\n%s\n", r.code, r.out, r.err);
	CHECK_INT(r.code, 0);
	return r;
}

static struct run job(int n, const char *drivers, const char *fault,
		      unsigned messages, const char *more)
{
	start(n, drivers, fault, messages, more);
	return end();
}

/*
 * How many rails were lost, each once; rail 0 is to oneself. A rank may hear of
 * it when it has printed its counters.
 */
static unsigned lost(const struct run *r, int n)
{
	unsigned said = count(r->err, ": lost rail "), sum = 0, value;
	const char *at = r->out;
	char line[64];

	for (; (at = strstr(at, ": lost ")) != NULL; at++) {
		CHECK_INT(sscanf(at, ": lost %u", &value), 1);
		sum += value;
	}
	CHECK(sum <= said);
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++) {
			snprintf(line, sizeof(line),
				 "rank %d: lost rail 1 (ibverbs) to rank %d: ",
				 a, b);
			CHECK(count(r->err, line) <= 1);
			snprintf(line, sizeof(line),
				 "rank %d: lost rail 2 (ibverbs) to rank %d: ",
				 a, b);
			CHECK_INT(count(r->err, line), 0);
		}
	return said;
}

/* Both have lost it, or none: surely, or if a fault has met with a message. */
static void goes_on(const char *drivers, const char *fault, bool surely)
{
	struct run r;
	unsigned n, sum = 0;

	for (int i = 0; i < 2; i++) {
		r = job(2, drivers, fault, 100, "");
		n = lost(&r, 2);
		CHECK(n == 2 || (n == 0 && !surely));
		sum += n;
	}
	r = job(3, drivers, fault, 40, "");
	CHECK(sum + lost(&r, 3) > 0);
}

/*
 * What is left is another adapter, or tcp. Where it goes is decided before a
 * driver is asked, so one of them for each fault is enough for sanitizers.
 */
static void costs_a_rail(const char *fault, bool surely, const char *drivers)
{
	if (!(BASE_TSAN || BASE_ASAN) || drivers == two)
		goes_on(two, fault, surely);
	if (!(BASE_TSAN || BASE_ASAN) || drivers == spare)
		goes_on(spare, fault, surely);
}

TEST(a_port_that_goes_down_costs_a_rail)
{
	costs_a_rail("port", true, two);
}

TEST(a_device_that_fails_costs_a_rail)
{
	costs_a_rail("device", true, spare);
}

TEST(a_queue_pair_that_fails_costs_a_rail)
{
	costs_a_rail("qp", false, two);
}

/* If it is the last that is sent, or of what was given up: none. */
TEST(an_acknowledgement_that_is_lost_costs_a_rail)
{
	costs_a_rail("ack", false, spare);
}

/*
 * The last rank awaits a file, which says that rank 0 was heard of its loss.
 * What they say is all that is looked at, as it comes.
 */
static void leave(int n, const char *seen)
{
	struct run said = { .out = "" };
	bool is_lost;
	FILE *f;

	remove(seen);
	start(n, spare, "last", 1, "2>&1 >/dev/null");
	is_lost = run_has_printed("rank 0: lost rail 1 (ibverbs) to rank 1: ");
	f = fopen(seen, "w");
	CHECK(f != NULL);
	fclose(f);
	said.err = end().out;
	lost(&said, n);
	CHECK(is_lost);
}

/*
 * Who is in the fence loses one, and might ask the launcher where tcp leads:
 * one message is too little for having asked before. What the launcher answers
 * may still come in time, so more than once.
 */
TEST(a_rail_that_is_lost_while_all_leave_disturbs_no_fence)
{
	char seen[PATH_MAX + 8];

	snprintf(seen, sizeof(seen), "%s/seen", run_folder());
	setenv("VERBS_LOST_SEEN", seen, 1);
	for (int i = 0; i < 5; i++) {
		leave(2, seen);
		leave(3, seen);
	}
}

TEST(whatever_happens_at_once_costs_a_rail)
{
	costs_a_rail("any", false, two);
}

TEST(when_the_second_rail_is_lost_all_ends_with_an_error)
{
	struct run r = job(2, two, "port", 60, "and all");

	CHECK_INT(count(r.err, "rank 0: lost rail 1 (ibverbs) to rank 1"), 1);
	CHECK_INT(count(r.err, "rank 1: lost rail 1 (ibverbs) to rank 0"), 1);
	CHECK(has(r.err, "rank 0: lost rank 1: "));
	CHECK(has(r.err, "rank 1: lost rank 0: "));
}

TEST(the_only_rail_that_is_lost_ends_all_with_an_error)
{
	struct run r = job(2, "ibverbs:fake1", "nothing", 60, "and all");

	CHECK_INT(count(r.err, ": lost rail "), 0);
	CHECK(has(r.err, "rank 0: lost rank 1: "));
	CHECK(has(r.err, "rank 1: lost rank 0: "));
}

/* Within a third of NMAD_IBVERBS_DEAD_S; the adapter tries again meanwhile. */
TEST(a_port_that_is_down_for_a_moment_costs_nothing)
{
	struct run r;

	setenv("FAKE_VERBS_TIMEOUT_MS", "30000", 1);
	setenv("NMAD_IBVERBS_DEAD_S", "60", 1);
	r = job(2, two, "blink", 100, "");
	CHECK_INT(lost(&r, 2), 0);
	CHECK(has(r.err, "port 1 of fake0 is up again"));
	r = job(2, "ibverbs:fake0", "blink", 100, "");
	CHECK_INT(lost(&r, 2), 0);
}
