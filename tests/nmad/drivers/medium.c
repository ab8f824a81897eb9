/*
 * Medium messages over two simulated rails to oneself, of which one is slower
 * and lets packets overtake each other: which of them are cut (counts, no
 * times), and whether all of their bytes arrive.
 */
#include "../../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <pioman/pioman.h>

enum {
	LARGEST = 100000,
	FEWEST = 20000, /* bytes that are always worth a cut */
	MOST = 50000,   /* and that it always leaves below the threshold */
	MESSAGES = 100,
	THREADS = 4,
};

static char path[] = "medium-XXXXXX";

static const char samples[] = "nmad-sampling 1\n"
			      "rail 0 sim\n0 12300\n1000000 845633\n"
			      "eager\n0 2300\n65536 56913\n"
			      "rail 1 sim\n0 12300\n1000000 1012300\n"
			      "eager\n0 2300\n65536 67836\n";

/* Instead of pioman's: the answer must not depend on the moment. */
int piom_any_idle(void)
{
	return true;
}

static void setup(void)
{
	FILE *f;

	if (getenv("NMAD_SAMPLING") != NULL)
		return;
	CHECK(close(mkstemp(path)) == 0);
	f = fopen(path, "w");
	CHECK(f != NULL);
	CHECK(fputs(samples, f) >= 0);
	CHECK_INT(fclose(f), 0);
	setenv("NMAD_DRIVER",
	       "sim:self,latency=2,bandwidth=1200,packet=65792+"
	       "sim:self,latency=2,bandwidth=1000,packet=65792,reorder=3",
	       1);
	setenv("NMAD_SAMPLING", path, 1);
	setenv("NMAD_RDV_THRESHOLD", "32768", 1);
	/* No packets of credit alone: they would have a link. */
	setenv("NMAD_WINDOW", "64M", 1);
	setenv("MARCEL_NVP", "2", 1);
}

static void clean(void)
{
	unlink(path);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, NULL);
	atexit(clean);
}

static uint64_t count(const char *name)
{
	struct nm_counter c[64];
	size_t n = nm_stats_read(c, 64);

	CHECK(n <= 64);
	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	check_fail(__FILE__, __LINE__, "no counter %s", name);
}

/* --- one message at a time, so both links are free --- */

static unsigned char from[LARGEST], to[LARGEST];

static void post(struct nm_session *s, size_t room, struct nm_sr_request *got)
{
	struct nm_data in = nm_data_flat(to, room);

	CHECK_INT(nm_sr_irecv(s, nm_gate_of(0), 1, NM_TAG_EXACT, &in, got), 0);
}

static void pass_on(struct nm_session *s, size_t bytes, size_t room)
{
	struct nm_data out = nm_data_flat(from, bytes);
	unsigned flags = check_random() % 2 ? NM_SEND_SYNC : 0;
	size_t want = bytes < room ? bytes : room;
	struct nm_sr_request sent, got;
	struct nm_sr_status status;
	bool expected = check_random() % 2;

	for (size_t i = 0; i < bytes; i++)
		from[i] = (unsigned char)check_random();
	memset(to, 0, LARGEST);
	if (expected)
		post(s, room, &got);
	CHECK_INT(nm_sr_isend(s, nm_gate_of(0), 1, &out, flags, &sent), 0);
	if (!expected) {
		CHECK_INT(nm_sr_probe_wait(s, nm_gate_of(0), 1, NM_TAG_EXACT,
					   &status),
			  0);
		CHECK_INT(status.length, bytes);
		post(s, room, &got);
	}
	nm_sr_wait(&got);
	nm_sr_wait(&sent);
	nm_sr_status(&got, &status);
	CHECK_INT(status.error, bytes > room ? -EMSGSIZE : 0);
	CHECK_INT(status.length, want);
	CHECK_INT(status.sent, bytes);
	CHECK(memcmp(from, to, want) == 0);
	for (size_t i = want; i < LARGEST; i++)
		CHECK(to[i] == 0);
}

TEST(medium_messages_are_cut_and_no_others)
{
	struct nm_session *s;

	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_session_open(7, &s), 0);
	for (int i = 0; i < MESSAGES; i++)
		pass_on(s, FEWEST + check_random() % (MOST - FEWEST),
			check_random() % LARGEST);
	CHECK_INT(count("cut_out"), MESSAGES);
	CHECK_INT(count("cut_in"), MESSAGES);
	CHECK_INT(count("rdv_out"), 0);
	for (int i = 0; i < 10; i++) {
		pass_on(s, check_random() % 16384, LARGEST);
		pass_on(s, 2 * 32768 + 1000 + check_random() % 30000, LARGEST);
	}
	CHECK_INT(count("cut_out"), MESSAGES);
	CHECK_INT(count("rdv_out"), 10);
	CHECK_INT(nm_session_close(s), 0);
	CHECK_INT(nm_exit(), 0);
}

/* --- many at a time --- */

struct worker {
	struct nm_session *session;
	marcel_t thread;
	nm_tag_t tag;
	unsigned seed;
	unsigned char from[2][MOST], to[2][MOST];
	bool good;
};

static struct worker workers[THREADS];

static void two_messages(struct worker *w)
{
	struct nm_sr_request sent[2], got[2];
	size_t bytes[2];

	for (int i = 0; i < 2; i++) {
		struct nm_data in = nm_data_flat(w->to[i], MOST);

		bytes[i] = (size_t)rand_r(&w->seed) % MOST;
		memset(w->from[i], rand_r(&w->seed), bytes[i]);
		nm_sr_irecv(w->session, NULL, w->tag, NM_TAG_EXACT, &in,
			    &got[i]);
	}
	for (int i = 0; i < 2; i++) {
		struct nm_data out = nm_data_flat(w->from[i], bytes[i]);

		nm_sr_isend(w->session, nm_gate_of(0), w->tag, &out, 0,
			    &sent[i]);
	}
	for (int i = 0; i < 2; i++) {
		struct nm_sr_status status;

		nm_sr_wait(&got[i]);
		nm_sr_wait(&sent[i]);
		nm_sr_status(&got[i], &status);
		w->good &= status.error == 0 && status.length == bytes[i] &&
			   memcmp(w->from[i], w->to[i], bytes[i]) == 0;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < MESSAGES; i++)
		two_messages(w);
	return NULL;
}

TEST(many_threads_may_send_them_at_once)
{
	struct nm_session *s;

	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_session_open(7, &s), 0);
	for (int i = 0; i < THREADS; i++) {
		workers[i].session = s;
		workers[i].tag = (nm_tag_t)i;
		workers[i].seed = (unsigned)check_random();
		workers[i].good = true;
		CHECK_INT(marcel_create(&workers[i].thread, NULL, work,
					&workers[i]),
			  0);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK_INT(marcel_join(workers[i].thread, NULL), 0);
		CHECK(workers[i].good);
	}
	CHECK(count("cut_out") > 0);
	CHECK_INT(count("cut_in"), count("cut_out"));
	CHECK_INT(nm_session_close(s), 0);
	CHECK_INT(nm_exit(), 0);
}

TEST(packets_that_a_driver_does_not_take_are_refused)
{
	static const char *const bad[] = { "sim:self,packet=4095",
					   "sim:self,packet=65793",
					   "sim:shm,packet=16385" };

	for (int i = 0; i < 3; i++) {
		setenv("NMAD_DRIVER", bad[i], 1);
		CHECK_INT(nm_init(), -EINVAL);
	}
}
