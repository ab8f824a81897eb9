/*
 * nmad/stats: what is counted, and where it can be read. A job of one, over
 * `self`, in which nobody polls but who tests.
 */
#include "../../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"

enum { MANY = 64, SESSION = 7, LARGE = 100000, SMALL = 100 };

static struct nm_session *session;
static char from[LARGE], to[LARGE];

static void setup(void)
{
	setenv("NMAD_DRIVER", "self", 1);
	setenv("PIOM_ENGINE", "none", 1);
	setenv("PIOM_MODE", "poll", 1);
	unsetenv("NMAD_STATS");
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, NULL);
}

static uint64_t count(const char *name)
{
	struct nm_counter c[MANY];
	size_t n = nm_stats_read(c, MANY);

	CHECK(n <= MANY);
	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	check_fail(__FILE__, __LINE__, "no counter %s", name);
}

static uint64_t sum(void)
{
	struct nm_counter c[MANY];
	size_t n = nm_stats_read(c, MANY);
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++)
		all += c[i].value;
	return all;
}

static void start(void)
{
	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_session_open(SESSION, &session), 0);
}

static void stop(void)
{
	CHECK_INT(nm_session_close(session), 0);
	CHECK_INT(nm_exit(), 0);
}

static void pass_on(size_t bytes, bool expected)
{
	struct nm_data out = nm_data_flat(from, bytes);
	struct nm_data in = nm_data_flat(to, bytes);
	struct nm_sr_request sent, got;
	struct nm_sr_status status;

	if (expected)
		CHECK_INT(nm_sr_irecv(session, nm_gate_of(0), 1, NM_TAG_EXACT,
				      &in, &got),
			  0);
	CHECK_INT(nm_sr_isend(session, nm_gate_of(0), 1, &out, 0, &sent), 0);
	if (!expected) {
		CHECK_INT(nm_sr_probe_wait(session, nm_gate_of(0), 1,
					   NM_TAG_EXACT, &status),
			  0);
		CHECK_INT(nm_sr_irecv(session, nm_gate_of(0), 1, NM_TAG_EXACT,
				      &in, &got),
			  0);
	}
	while (nm_sr_test(&got) == -EAGAIN || nm_sr_test(&sent) == -EAGAIN)
		;
}

/* --- rules --- */

TEST(all_are_nothing_while_nmad_does_not_run)
{
	CHECK(nm_stats_read(NULL, 0) > 0);
	CHECK_INT(sum(), 0);
	start();
	CHECK(sum() > 0);
	stop();
	CHECK_INT(sum(), 0);
}

TEST(each_has_a_name_of_its_own_and_no_more_are_read_than_there_is_room)
{
	struct nm_counter c[MANY];
	size_t n = nm_stats_read(c, MANY);

	for (size_t i = 0; i < n; i++) {
		CHECK(c[i].help[0] != 0);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(c[i].name, c[k].name) != 0);
	}
	memset(c, 0, sizeof(c));
	CHECK_INT(nm_stats_read(c, 2), n);
	CHECK(c[1].name != NULL && c[2].name == NULL);
}

TEST(messages_are_counted_by_the_way_they_take)
{
	uint64_t sends, receives;

	start();
	sends = count("sends");
	receives = count("receives");
	pass_on(SMALL, true);
	pass_on(SMALL, true);
	CHECK_INT(count("eager_out"), 2);
	CHECK_INT(count("eager_in"), 2);
	CHECK_INT(count("unexpected"), 0);
	CHECK_INT(count("blocks"), 1); /* the link's packet */
	pass_on(SMALL, false);
	CHECK_INT(count("eager_in"), 3);
	CHECK_INT(count("unexpected"), 1);
	CHECK_INT(count("blocks"), 2);
	CHECK_INT(count("slabs"), 2);
	pass_on(LARGE, true);
	CHECK_INT(count("eager_out"), 3);
	CHECK_INT(count("rdv_out"), 1);
	CHECK_INT(count("rdv_in"), 1);
	CHECK_INT(count("early"), 0);
	CHECK_INT(count("sends") - sends, 4);
	CHECK_INT(count("receives") - receives, 4);
	/* And the answer to what was announced. */
	CHECK_INT(count("packets_out"), 5);
	CHECK_INT(count("packets_in"), 5);
	CHECK(count("lock_taken") >= 8 && count("rail_taken") >= 5);
	CHECK_INT(count("lock_busy") + count("rail_busy"), 0);
	stop();
}

/* Nobody is at work once the messages have gone as far as they can. */
static void settle(struct nm_sr_request *r)
{
	uint64_t out = 1, in = 1;

	while (nm_motion(&out, &in) != 0)
		nm_sr_test(r);
	CHECK_INT(out + in, 0); /* there are no other processes */
}

TEST(a_message_that_no_receive_matches_does_not_move)
{
	struct nm_data out = nm_data_flat(from, LARGE);
	struct nm_data in = nm_data_flat(to, LARGE);
	struct nm_sr_request sent, got;
	struct nm_sr_status status;

	start();
	CHECK_INT(nm_sr_isend(session, nm_gate_of(0), 1, &out, 0, &sent), 0);
	CHECK_INT(nm_sr_probe_wait(session, nm_gate_of(0), 1, NM_TAG_EXACT,
				   &status),
		  0);
	settle(&sent);
	CHECK_INT(nm_sr_test(&sent), -EAGAIN);
	CHECK_INT(nm_sr_bytes(&sent), LARGE);
	CHECK_INT(
		nm_sr_irecv(session, nm_gate_of(0), 1, NM_TAG_EXACT, &in, &got),
		0);
	while (nm_sr_test(&got) == -EAGAIN || nm_sr_test(&sent) == -EAGAIN)
		;
	settle(&sent);
	stop();
}

/* What stderr got meanwhile. */
static const char *heard(void (*body)(void))
{
	static char text[8192];
	int saved = dup(STDERR_FILENO);
	FILE *f = tmpfile();
	size_t n;

	CHECK(saved >= 0 && f != NULL);
	CHECK(dup2(fileno(f), STDERR_FILENO) >= 0);
	body();
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static void one_message(void)
{
	start();
	pass_on(SMALL, true);
	stop();
}

TEST(they_are_printed_at_the_end_if_that_is_asked_for)
{
	const char *text;

	CHECK(strstr(heard(one_message), "eager_out") == NULL);
	setenv("NMAD_STATS", "1", 1);
	text = heard(one_message);
	CHECK(strstr(text, ": eager_out 1\n") != NULL);
	CHECK(strstr(text, ": sys_bells 0\n") != NULL);
	CHECK(strstr(text, ": rail 0 self sys_sends 0\n") != NULL);
	setenv("NMAD_STATS", "2", 1);
	CHECK_INT(nm_init(), -EINVAL);
}

static void dump(void)
{
	nm_core_dump(nm_core_self);
}

TEST(a_dump_shows_those_that_are_not_0)
{
	const char *text;

	start();
	pass_on(SMALL, false);
	text = heard(dump);
	CHECK(strstr(text, " unexpected 1\n") != NULL);
	CHECK(strstr(text, "rdv_out") == NULL);
	stop();
}
