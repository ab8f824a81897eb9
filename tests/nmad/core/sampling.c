/*
 * What is known of the rails: written, read back and refused if it is nonsense,
 * and which messages are eager then. The rails are a driver of the test's.
 */
#include "../../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mock.h"

enum { RAILS = 2, ROOM = 4096, DRIVERS = 700, SESSION = 5, TEXT = 4096 };

static struct nm_core core;
static char folder[] = "sampling-XXXXXX";
static char path[64];

/* --- the driver: what kind of chunk has left --- */

static unsigned kind;

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	unsigned char bytes[ROOM];
	struct nm_wire_chunk c;
	size_t at = NM_WIRE_HEAD;

	(void)link;
	nm_pkt_copy(pkt, bytes);
	CHECK_INT(nm_wire_get_chunk(bytes, nm_pkt_length(pkt), &at, &c), 0);
	kind = c.kind;
	return NM_SENT;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	(void)rail;
	(void)budget;
	return false;
}

static void mock_give_up(struct nm_link *link)
{
	(void)link;
}

static const struct nm_driver mock = {
	.name = "mock",
	.max_small = ROOM,
	.rdv_threshold = DRIVERS,
	.give_up = mock_give_up,
	.post_send = mock_post_send,
	.poll = mock_poll,
};

/* --- a core with two rails --- */

static void forget(void)
{
	for (int i = 0; i < core.nrails; i++) {
		free(core.rails[i].curve);
		free(core.rails[i].eager);
		core.rails[i].curve = core.rails[i].eager = NULL;
	}
}

static void clean(void)
{
	unlink(path);
	rmdir(folder);
}

static void setup(void)
{
	if (path[0] == 0) {
		CHECK(mkdtemp(folder) != NULL);
		snprintf(path, sizeof(path), "%s/rails", folder);
		atexit(clean);
	}
	mock_core_rails(&core, &mock, 1 << 20, RAILS);
}

static void teardown(void)
{
	forget();
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f != NULL);
	CHECK(fputs(text, f) >= 0);
	CHECK_INT(fclose(f), 0);
}

static const char *file(void)
{
	static char text[TEXT];
	FILE *f = fopen(path, "r");
	size_t n;

	CHECK(f != NULL);
	n = fread(text, 1, TEXT - 1, f);
	text[n] = 0;
	CHECK_INT(fclose(f), 0);
	return text;
}

static int load(const char *text)
{
	forget();
	write_file(text);
	return nm_sampling_load(&core, path);
}

static const char good[] = "nmad-sampling 1\n"
			   "# bytes ns\n"
			   "rail 0 mock\n"
			   "0 1000\n"
			   "1000000 1001000\n"
			   "eager\n"
			   "0 600\n"
			   "2000 3600\n"
			   "rail 1 mock\n"
			   "0 1000\n"
			   "4096 1500\n"
			   "1000000 251000\n";

/* --- the file --- */

TEST(a_file_says_what_bodies_and_eager_messages_take)
{
	CHECK_INT(load(good), 0);
	CHECK_INT(core.rails[0].curve->n, 2);
	CHECK(core.rails[0].curve->at[1].bytes == 1e6);
	CHECK(core.rails[0].curve->at[1].ns == 1001000);
	CHECK_INT(core.rails[0].eager->n, 2);
	CHECK(core.rails[0].eager->at[0].ns == 600);
	CHECK(core.rails[0].eager->at[1].ns == 3600);
	CHECK_INT(core.rails[1].curve->n, 3);
	CHECK(core.rails[1].eager == NULL);
}

TEST(what_is_written_is_what_was_read)
{
	CHECK_INT(load(good), 0);
	write_file("something else");
	CHECK_INT(nm_sampling_save(&core, path), 0);
	CHECK_STR(file(), good);
	CHECK_INT(load("nmad-sampling 1\n"), 0);
	CHECK(core.rails[0].curve == NULL && core.rails[1].curve == NULL);
	CHECK_INT(nm_sampling_save(&core, path), 0);
	CHECK_STR(file(), "nmad-sampling 1\n# bytes ns\n");
}

/* The list of NMAD_DRIVER begins behind the rail to oneself. */
TEST(rails_are_counted_as_they_are_listed)
{
	static const char one[] = "nmad-sampling 1\n# bytes ns\nrail 0 mock\n"
				  "0 5\n100 6\n";

	core.first_listed = 1;
	CHECK_INT(load(one), 0);
	CHECK(core.rails[0].curve == NULL);
	CHECK_INT(core.rails[1].curve->n, 2);
	CHECK_INT(nm_sampling_save(&core, path), 0);
	CHECK_STR(file(), one);
	CHECK_INT(load("nmad-sampling 1\nrail 1 mock\n0 5\n9 6\n"), -EINVAL);
}

TEST(any_curves_come_back_as_they_were)
{
	for (int round = 0; round < 50; round++) {
		char text[TEXT];
		int n = snprintf(text, TEXT, "nmad-sampling 1\n# bytes ns\n");

		for (int i = 0; i < 2 * RAILS; i++) {
			unsigned long bytes = 0, ns = check_random() % 1000;

			n += i % 2 == 0 ? snprintf(text + n, TEXT - (size_t)n,
						   "rail %d mock\n", i / 2)
					: snprintf(text + n, TEXT - (size_t)n,
						   "eager\n");
			for (int k = 0; k < NM_CURVE_POINTS; k++) {
				n += snprintf(text + n, TEXT - (size_t)n,
					      "%lu %lu\n", bytes, ns);
				bytes += 1 + check_random() % (1ul << 40);
				ns += 1 + check_random() % (1ul << 40);
			}
		}
		CHECK_INT(load(text), 0);
		CHECK_INT(nm_sampling_save(&core, path), 0);
		CHECK_STR(file(), text);
	}
}

TEST(a_file_that_cannot_be_written_leaves_the_old_one)
{
	char inside[128];

	CHECK_INT(load(good), 0);
	snprintf(inside, sizeof(inside), "%s/rails", path);
	CHECK_INT(nm_sampling_save(&core, inside), -ENOTDIR);
	CHECK_STR(file(), good);
	unlink(path);
	CHECK_INT(mkdir(path, 0700), 0);
	CHECK_INT(nm_sampling_save(&core, path), -EISDIR);
	CHECK_INT(rmdir(path), 0);
	CHECK_INT(rmdir(folder), 0); /* nothing else was left in it */
	CHECK_INT(mkdir(folder, 0700), 0);
}

TEST(nonsense_about_eager_messages_is_refused)
{
	static const char *const nonsense[] = {
		"nmad-sampling 1\neager\n0 1\n1 2\n",
		"nmad-sampling 1\nrail 0 mock\neager\n0 1\n1 2\n",
		"nmad-sampling 1\nrail 0 mock\n0 1\n1 2\neager\n",
		"nmad-sampling 1\nrail 0 mock\n0 1\n1 2\neager\n0 1\n",
		"nmad-sampling 1\nrail 0 mock\n0 1\n1 2\neager\n1 1\n2 2\n",
		"nmad-sampling 1\nrail 0 mock\n0 1\n1 2\neager 1\n0 1\n1 2\n",
		("nmad-sampling 1\nrail 0 mock\n0 1\n1 2\n"
		 "eager\n0 1\n1 2\neager\n0 1\n1 2\n"),
	};

	CHECK_INT(load("nmad-sampling 1\nrail 0 mock\n0 1\n1 2\n"
		       "eager\n0 1\n1 2\n"),
		  0);
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
		CHECK_INT(load(nonsense[i]), -EINVAL);
}

static void check_refused(const char *text, size_t bytes)
{
	FILE *f = fopen(path, "w");

	forget();
	CHECK(f != NULL);
	CHECK_INT(fwrite(text, 1, bytes, f), bytes);
	CHECK_INT(fclose(f), 0);
	CHECK_INT(nm_sampling_load(&core, path), -EINVAL);
}

/* Such as a file system leaves after a crash. */
TEST(zero_bytes_are_refused)
{
	static const char in_a_line[] = "nmad-sampling 1\nrail 0 mock\n0 1\n"
					"1 2\0x\n";
	static const char for_the_rest[200] = "nmad-sampling 1\n";
	static const char at_the_end[] = "nmad-sampling 1\n\0";

	check_refused(in_a_line, sizeof(in_a_line) - 1);
	check_refused(for_the_rest, sizeof(for_the_rest));
	check_refused(at_the_end, sizeof(at_the_end) - 1);
}

TEST(a_number_of_many_digits_is_not_two)
{
	CHECK_INT(load("nmad-sampling 1\nrail 0 mock\n0 1\n"
		       "100000000000000 9\n"),
		  0);
	CHECK_INT(load("nmad-sampling 1\nrail 0 mock\n0 1\n"
		       "1000000000000009\n"),
		  -EINVAL);
}

TEST(what_cannot_be_read_to_its_end_is_refused)
{
	CHECK_INT(nm_sampling_load(&core, folder), -EISDIR);
}

/* What is taken from it is a curve, whatever it says. */
TEST(garbage_is_refused_or_makes_curves)
{
	for (int round = 0; round < 300; round++) {
		char text[sizeof(good)];
		int rc;

		memcpy(text, good, sizeof(good));
		for (uint64_t n = 1 + check_random() % 3; n > 0; n--)
			text[check_random() % (sizeof(good) - 1)] =
				(char)(1 + check_random() % 255);
		rc = load(text);
		CHECK(rc == 0 || rc == -EINVAL);
		for (int i = 0; i < RAILS && rc == 0; i++) {
			const struct nm_curve *c = core.rails[i].curve;

			if (c == NULL)
				continue;
			CHECK(c->n >= 2 && c->n <= NM_CURVE_POINTS);
			CHECK(c->at[0].bytes == 0);
			for (int k = 1; k < c->n; k++)
				CHECK(c->at[k].bytes > c->at[k - 1].bytes &&
				      c->at[k].ns > c->at[k - 1].ns);
		}
	}
}

/* --- thresholds --- */

static size_t eager_max(void)
{
	nm_rails_thresholds(&core);
	CHECK_INT(load_relaxed(&core.gates[0].eager_max),
		  load_relaxed(&core.gates[1].eager_max));
	return load_relaxed(&core.gates[1].eager_max);
}

/* Lines: what 0 bytes take, and a byte. */
static void know(int i, double body, double per_byte, double eager,
		 double per_byte_eager)
{
	char text[TEXT];
	struct nm_rail *rail = &core.rails[i];

	free(rail->curve);
	free(rail->eager);
	rail->curve = rail->eager = NULL;
	snprintf(text, sizeof(text),
		 "nmad-sampling 1\nrail %d mock\n0 %.0f\n1000000 %.0f\n"
		 "eager\n0 %.0f\n2000 %.0f\n",
		 i, body, body + 1e6 * per_byte, eager,
		 eager + 2000 * per_byte_eager);
	write_file(text);
	CHECK_INT(nm_sampling_load(&core, path), 0);
}

TEST(rendezvous_begins_where_it_is_known_to_be_faster)
{
	CHECK_INT(eager_max(), DRIVERS);
	know(0, 2000, 1, 1000, 2);
	know(1, 5000, 1, 1000, 3);
	CHECK_INT(eager_max(), 1000);
	know(0, 9000, 1, 1000, 2); /* eager is faster as far as it goes */
	CHECK_INT(eager_max(), 2000);
	core.gates[1].nlinks = core.gates[0].nlinks = 1;
	CHECK_INT(eager_max(), 2000);
}

TEST(a_rail_of_which_nothing_is_known_has_its_drivers_threshold)
{
	know(0, 2000, 1, 1000, 2);
	CHECK_INT(eager_max(), DRIVERS);
	CHECK_INT(load("nmad-sampling 1\nrail 0 mock\n0 1\n1 2\n"
		       "rail 1 mock\n0 1\n1 2\n"),
		  0);
	CHECK_INT(eager_max(), DRIVERS);
}

TEST(what_needs_no_credit_is_eager_even_if_rendezvous_is_always_faster)
{
	know(0, 100, 1, 1000, 2);
	know(1, 100, 1, 1000, 2);
	CHECK_INT(eager_max(), NM_FREE_PAYLOAD);
}

TEST(the_users_threshold_goes_before_what_is_known)
{
	know(0, 2000, 1, 1000, 2);
	know(1, 2000, 1, 1000, 2);
	core.config.rdv_threshold = 10;
	CHECK_INT(eager_max(), 10);
	core.config.rdv_threshold = ROOM * 2;
	CHECK_INT(eager_max(), nm_rail_room(&core.rails[0]));
}

static unsigned kind_of(struct nm_session *s, size_t bytes,
			struct nm_sr_request *req)
{
	static char from[ROOM];
	struct nm_data d = nm_data_flat(from, bytes);

	kind = 0;
	CHECK_INT(nm_sr_isend(s, &core.gates[1], 1, &d, 0, req), 0);
	return kind;
}

TEST(messages_up_to_the_threshold_are_eager_and_others_are_not)
{
	struct nm_session *s;
	struct nm_sr_request reqs[2];
	struct nm_pass pass;

	know(0, 2000, 1, 1000, 2);
	know(1, 2000, 1, 1000, 2);
	nm_rails_thresholds(&core);
	CHECK_INT(nm_core_session_open(&core, SESSION, &s), 0);
	CHECK_INT(kind_of(s, 1000, &reqs[0]), NM_WIRE_KIND_EAGER);
	CHECK(nm_sr_is_complete(&reqs[0]));
	CHECK_INT(kind_of(s, 1001, &reqs[1]), NM_WIRE_KIND_RTS);
	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, &core.gates[1], -ECONNRESET);
	nm_core_unlock(&core, &pass);
	CHECK(nm_sr_is_complete(&reqs[1]));
	CHECK_INT(nm_core_session_close(s), 0);
}
