/*
 * The tcp driver when a host dies, seems to, or only a process of it stops. A
 * host that loses power is one whose packets are dropped from then on, without
 * a word: "silence" (tools/lab/net). The ranks are host_rank.c.
 */
#include "lab.h"

/*
 * Three seconds are the least. Until then all ranks may wait for each other,
 * and no message will come: a deadlock, but for that time.
 */
#define IMPATIENT                                                              \
	"export MARCEL_DEADLOCK=off NMAD_DRIVER=tcp:eth0 NMAD_TCP_DEAD_S=3; "

/* For a fault that ends when what heals it has run: however long that takes. */
#define PATIENT                                                                \
	"export MARCEL_DEADLOCK=off NMAD_DRIVER=tcp:eth0 "                     \
	"NMAD_TCP_DEAD_S=3600; "

static void ends(const struct run *r)
{
	CHECK_INT(r->code, 3);
	CHECK(strstr(r->err, "rank 0: lost rank 1: ") != NULL ||
	      has(r->err, "rank 1: lost rank 0: "));
	CHECK(has(r->err, "a message has ended with an error"));
}

/* --- a host dies --- */

TEST(the_death_of_a_host_is_seen_by_who_only_receives_from_it)
{
	struct run r = lab("max", IMPATIENT RANKS(2)
					  OBEYED("listen \"silence 1 0\" 0"));

	ends(&r);
}

/* What is on its way, and not acknowledged, is repeated: no keep-alive. */
TEST(the_death_of_a_host_is_seen_by_who_has_just_sent_to_it)
{
	struct run r = lab("max", IMPATIENT RANKS(2)
					  OBEYED("listen \"silence 1 0\" 1"));

	ends(&r);
}

TEST(the_death_of_a_host_is_seen_in_the_middle_of_a_large_message)
{
	struct run r =
		lab("max",
		    IMPATIENT RANKS(2) OBEYED("cut \"silence 1 0\" 1000000"));

	ends(&r);
}

TEST(a_job_whose_only_rail_is_cut_ends_and_names_the_peer)
{
	struct run r = lab("max", IMPATIENT RANKS(2)
					  OBEYED("cut \"cut 1 0\" 1000000"));

	ends(&r);
}

/* What was under way on the dead one cannot be known: doc/nmad.md, "Rails". */
TEST(a_job_that_loses_one_of_two_rails_ends_and_names_the_peer)
{
	struct run r = lab("max,max",
			   IMPATIENT "export NMAD_DRIVER=tcp:eth0+tcp:eth1 "
				     "NMAD_SAMPLING=$EQUAL; " RANKS(2)
					     OBEYED("cut \"cut 1 1\" 1000000"));

	ends(&r);
}

TEST(the_death_of_a_host_is_seen_over_the_one_of_two_rails_that_is_idle)
{
	struct run r = lab("max,max", IMPATIENT
			   "export NMAD_DRIVER=tcp:eth0+tcp:eth1 "
			   "NMAD_SAMPLING=$EQUAL; " RANKS(2)
				   OBEYED("listen \"silence 1 1\" 0"));

	ends(&r);
}

/* --- it was dead before --- */

static void unreached(const char *what)
{
	char script[512];
	struct run r;

	snprintf(script, sizeof(script),
		 IMPATIENT "export NMAD_TCP_TIMEOUT_MS=1000; "
			   "\"$NET\" silence 1 0; " RANKS(2) RANK "%s",
		 what);
	r = lab("max", script);
	CHECK_INT(r.code, 3);
	CHECK(has(r.err, "does not answer") || has(r.err, "cannot connect"));
	ends(&r);
}

TEST(who_calls_a_dead_host_does_not_wait_for_ever)
{
	unreached("first send");
}

TEST(who_waits_for_a_dead_host_finds_out)
{
	unreached("first recv");
}

/* --- it is not dead: how long that may seem so, tcp_alive.c tries --- */

TEST(a_cable_that_is_plugged_in_again_in_time_loses_nothing)
{
	struct run r =
		lab("max", PATIENT RANKS(2) OBEYED(
				   "heal \"cut 1 0\" \"heal 1 0\" 1000000"));

	went_well(&r);
	CHECK_STR(r.out, "net: cut 1 0\nnet: heal 1 0\n");
}

TEST(a_switch_that_drops_packets_for_a_while_loses_nothing)
{
	struct run r = lab(
		"max", PATIENT RANKS(2) OBEYED(
			       "heal \"silence 1 0\" \"heal 1 0\" 1000000"));

	went_well(&r);
	CHECK_STR(r.out, "net: silence 1 0\nnet: heal 1 0\n");
}

/*
 * For longer than a host may be silent; its kernel answers. Idle, in the middle
 * of a large message, which soon finds no room there any more, and before it
 * has answered a call. The shell is between: nsenter stops with its child.
 */
TEST(a_process_that_is_stopped_is_not_dead)
{
	struct run r = lab(
		"max", IMPATIENT "for how in idle body call; do " RANKS(
			       2) "sh -c \"$RANK stop $how; exit \\$?\" & "
				  "jobs=\"$jobs $!\"; done; "
				  "for j in $jobs; do wait $j || exit; done");

	went_well(&r);
	CHECK_STR(r.out, "");
}
