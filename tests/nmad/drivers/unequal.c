/*
 * Two simulated rails to oneself, of which one has four times the other's
 * bandwidth, as the file of samples says: how many bytes go over which (counts,
 * no times), and whether all arrive. And files that say nonsense.
 */
#include "../../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "../pattern.h"

enum { BYTES = 4 << 20 };

static char path[] = "unequal-XXXXXX";
static unsigned char *from, *to;

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f != NULL);
	CHECK(fputs(text, f) >= 0);
	CHECK_INT(fclose(f), 0);
}

static const char good[] = "nmad-sampling 1\n"
			   "\n"
			   "# one byte a ns, and four\n"
			   "rail 0 sim\n"
			   "0 1000\n"
			   "1000000 1001000\n"
			   "rail 1 sim\n"
			   "0 1000\n"
			   "1000000 251000\n";

static void setup(void)
{
	if (from != NULL)
		return;
	CHECK(close(mkstemp(path)) == 0);
	from = malloc(BYTES);
	to = malloc(BYTES);
	CHECK(from != NULL && to != NULL);
	setenv("NMAD_DRIVER", "sim:self,bandwidth=1000+sim:self,bandwidth=4000",
	       1);
	setenv("NMAD_SAMPLING", path, 1);
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

/* A message to oneself; every byte is looked at. */
static void pass_on(struct nm_session *s, size_t bytes, size_t room)
{
	struct nm_data out = nm_data_flat(from, bytes);
	struct nm_data in = nm_data_flat(to, room);
	size_t want = bytes < room ? bytes : room;
	struct nm_sr_request sent, got;
	struct nm_sr_status status;

	pattern(check_random(), from, bytes);
	memset(to, 0, BYTES);
	CHECK_INT(nm_sr_irecv(s, nm_gate_of(0), 1, NM_TAG_EXACT, &in, &got), 0);
	CHECK_INT(nm_sr_isend(s, nm_gate_of(0), 1, &out, 0, &sent), 0);
	nm_sr_wait(&sent);
	nm_sr_wait(&got);
	nm_sr_status(&got, &status);
	CHECK_INT(status.error, bytes > room ? -EMSGSIZE : 0);
	CHECK_INT(status.length, want);
	CHECK(memcmp(from, to, want) == 0);
	/* All zero: each byte as the next. */
	CHECK(want == BYTES ||
	      (to[want] == 0 &&
	       memcmp(to + want, to + want + 1, BYTES - want - 1) == 0));
}

static uint64_t bytes_over(int i)
{
	const struct nm_core *core = nm_core_self;

	return core->rails[core->first_listed + i].nbytes;
}

TEST(bytes_go_over_two_rails_in_the_ratio_of_their_bandwidths)
{
	struct nm_session *s;

	write_file(good);
	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_gate_of(0)->nlinks, 2);
	CHECK_INT(nm_session_open(7, &s), 0);
	for (int i = 0; i < 10; i++)
		pass_on(s, BYTES, BYTES);
	CHECK_INT(bytes_over(0) + bytes_over(1), 10ul * BYTES);
	/* The latencies are worth 1000 bytes a message, a line is 64. */
	CHECK(bytes_over(0) >= 10ul * (BYTES / 5 - 1000));
	CHECK(bytes_over(0) <= 10ul * (BYTES / 5 + 1000));
	for (int i = 0; i < 20; i++)
		pass_on(s, check_random() % BYTES, check_random() % BYTES);
	CHECK_INT(nm_session_close(s), 0);
	CHECK_INT(nm_exit(), 0);
}

TEST(without_samples_the_first_rail_has_all)
{
	struct nm_session *s;

	setenv("NMAD_SAMPLING", "off", 1);
	CHECK_INT(nm_init(), 0);
	CHECK_INT(nm_session_open(7, &s), 0);
	pass_on(s, BYTES, BYTES);
	CHECK_INT(bytes_over(0), BYTES);
	CHECK_INT(bytes_over(1), 0);
	CHECK_INT(nm_session_close(s), 0);
	CHECK_INT(nm_exit(), 0);
	setenv("NMAD_SAMPLING", path, 1);
}

TEST(a_file_of_nonsense_is_refused)
{
	static const char *const nonsense[] = {
		"",
		"nmad-sampling 2\n",
		"nmad-sampling 1\n0 5\n",
		"nmad-sampling 1\nrail\n",
		"nmad-sampling 1\nrail 2 sim\n0 1\n1 2\n",
		"nmad-sampling 1\nrail -1 sim\n0 1\n1 2\n",
		"nmad-sampling 1\nrail 0 tcp\n0 1\n1 2\n",
		"nmad-sampling 1\nrail 0 sim\n",
		"nmad-sampling 1\nrail 0 sim\n0 1\n",
		"nmad-sampling 1\nrail 0 sim\n1 1\n2 2\n",
		"nmad-sampling 1\nrail 0 sim\n0 1\n1 1\n",
		"nmad-sampling 1\nrail 0 sim\n0 1\n1 2 3\n",
		"nmad-sampling 1\nrail 0 sim\n0 1\n1 -2\n",
		"nmad-sampling 1\nrail 0 sim\n0 1\n1 2\nrail 0 sim\n",
		"nmad-sampling 1\nrail 0 sim\n0 1\n1 99999999999999999999\n",
	};

	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		write_file(nonsense[i]);
		CHECK_INT(nm_init(), -EINVAL);
	}
	unlink(path);
	CHECK_INT(nm_init(), -ENOENT);
}
