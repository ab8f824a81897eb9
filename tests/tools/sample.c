/*
 * nm-sample: what it refuses, what it writes and draws. How fast anything is
 * here nobody knows, but a simulated rail is never faster than it says.
 */
#include "../check.h"
#include "../run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE run_path("SAMPLE")
#define MPIRUN run_path("MPIRUN")

enum { POINTS = 16, MAX = 1 << 20 };

static char folder[PATH_MAX];

static void setup(void)
{
	snprintf(folder, sizeof(folder), "%s/sample", run_folder());
	mkdir(folder, 0700);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, NULL);
}

/* --- the command line --- */

TEST(help_and_version)
{
	struct run r = run(NULL, "exec '%s' --help", SAMPLE);

	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "usage: mpirun -n 2 nm-sample ", 29) == 0);
	CHECK_STR(r.err, "");
	r = run(NULL, "exec '%s' --version", SAMPLE);
	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "nm-sample ", 10) == 0);
	CHECK_INT(run(NULL, "exec '%s' --help >/dev/full", SAMPLE).code, 1);
}

TEST(bad_arguments_are_named)
{
	static const char *const bad[][2] = {
		{ "", "file to write is missing" },
		{ "''", "file to write is missing" },
		{ "a b", "b: the file to write is a already" },
		{ "--tim 5 a", "unknown option --tim" },
		{ "a --time", "--time: its value is missing" },
		{ "--time 0 a", "--time 0: expected a number from 1 to" },
		{ "--time 1k a", "--time 1k: expected a number" },
		{ "--max 1 a", "--max 1: expected a number from 65536 to" },
		{ "--max 17m a", "--max 17m: expected a number" },
		{ "--rounds -1 a", "--rounds -1: expected a number from 1" },
		{ "--rounds many a", "--rounds many: expected a number" },
		{ "--plot a.gif a", "--plot a.gif: expected a name that ends" },
		{ "--plot .png a", "--plot .png: expected a name" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run r = run(NULL, "cd '%s'; exec '%s' %s", folder,
				   SAMPLE, bad[i][0]);

		CHECK_INT(r.code, 2);
		CHECK_STR(r.out, "");
		CHECK(has(r.err, bad[i][1]));
	}
	CHECK_STR(run(NULL, "ls '%s'", folder).out, "");
}

TEST(what_cannot_be_written_or_drawn_is_not_measured)
{
	struct run r = run(NULL, "exec '%s' -n 2 '%s' /no/such/folder/f",
			   MPIRUN, SAMPLE);

	CHECK_INT(r.code, 1);
	CHECK_STR(r.out, "");
	CHECK(has(r.err, "/no/such/folder/f cannot be written"));
	r = run(NULL, "exec '%s' -n 2 '%s' --plot /no/such/p.png f", MPIRUN,
		SAMPLE);
	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "/no/such/p.png cannot be written"));
	r = run(NULL,
		"cd '%s' && mkfifo f && ln -s f g; '%s' -n 2 '%s' f; "
		"'%s' -n 2 '%s' g; test -p f && test -L g && rm f g",
		folder, MPIRUN, SAMPLE, MPIRUN, SAMPLE);
	CHECK_INT(r.code, 0);
	CHECK_STR(r.out, "");
	CHECK(has(r.err, "f is there already, and is no file"));
	CHECK(has(r.err, "g is there already, and is no file"));
	r = run(NULL, "cd '%s'; PATH=/none exec '%s' -n 2 '%s' --plot p.svg f",
		folder, MPIRUN, SAMPLE);
	CHECK_INT(r.code, 1);
	CHECK_STR(r.out, "");
	CHECK(has(r.err, "--plot needs gnuplot"));
	CHECK(strstr(strstr(r.err, "gnuplot") + 1, "--plot needs") == NULL);
	CHECK_STR(run(NULL, "ls '%s'", folder).out, "");
}

TEST(rails_that_lead_to_nobody_are_not_measured)
{
	struct run r = run(NULL, "cd '%s'; NMAD_DRIVER=shm exec '%s' f", folder,
			   SAMPLE);

	CHECK_INT(r.code, 1);
	CHECK(has(r.out, "rail 0, shm, is not used"));
	CHECK(has(r.err, "no rail was measured, f is not written"));
	CHECK_STR(run(NULL, "ls '%s'", folder).out, "");
}

/* --- files --- */

struct points {
	int n;
	unsigned long bytes[POINTS], ns[POINTS];
};

/* The points below these words; what must hold for any file. */
static struct points points_below(const char *text, const char *words)
{
	struct points p = { 0 };
	char want[64];
	int used;

	CHECK(strncmp(text, "nmad-sampling 1\n", 16) == 0);
	snprintf(want, sizeof(want), "\n%s\n", words);
	text = strstr(text, want);
	CHECK(text != NULL);
	text += strlen(want);
	while (p.n < POINTS && sscanf(text, "%lu %lu\n%n", &p.bytes[p.n],
				      &p.ns[p.n], &used) == 2) {
		CHECK(p.n == 0 ? p.bytes[0] == 0
			       : p.bytes[p.n] > p.bytes[p.n - 1] &&
					 p.ns[p.n] > p.ns[p.n - 1]);
		text += used;
		p.n++;
	}
	CHECK(p.n >= 2);
	return p;
}

/* As often as is asked for, however long that takes here. */
static struct run measure(const char *driver, const char *more)
{
	struct run r = run(NULL,
			   "cd '%s'; NMAD_DRIVER='%s' '%s' -n 2 '%s' --time "
			   "600000 --rounds 2 --max 1m %s f && exec cat f",
			   folder, driver, MPIRUN, SAMPLE, more);

	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "written: f\n"));
	return r;
}

/* The file alone, behind what the tool says. */
static const char *file_of(struct run r)
{
	const char *file = strstr(r.out, "nmad-sampling 1\n");

	CHECK(file != NULL);
	return file;
}

TEST(a_file_has_the_rail_and_a_job_reads_it)
{
	struct run r = measure("shm", "");
	struct points p = points_below(file_of(r), "rail 0 shm");

	CHECK(has(r.out, "rail 0, shm, with rank 1: "));
	CHECK_INT(p.bytes[p.n - 1], MAX);
	CHECK(strstr(file_of(r), "rail 1") == NULL);
	r = run(NULL,
		"NMAD_DRIVER=shm NMAD_SAMPLING='%s/f' exec '%s' -n 2 '%s' "
		"every_size_arrives_byte_for_byte",
		folder, MPIRUN, run_path("CONFORM"));
	CHECK_INT(r.code, 0);
	/* And one with other rails does not. */
	r = run(NULL,
		"NMAD_DRIVER=tcp NMAD_SAMPLING='%s/f' exec '%s' -n 2 '%s'",
		folder, MPIRUN, run_path("CONFORM"));
	CHECK(r.code != 0);
	CHECK(has(r.err, "that rail has another driver"));
}

TEST(the_setting_that_it_makes_files_for_is_not_heeded)
{
	run(NULL, "echo nonsense >'%s/g'", folder);
	setenv("NMAD_SAMPLING", "g", 1);
	measure("shm", "");
	unsetenv("NMAD_SAMPLING");
}

/* A slow rail is never faster than it can be; the other one is, once the
 * machine has let it: it is measured until then. */
TEST(of_two_rails_the_one_with_four_times_the_bandwidth_is_faster)
{
	struct points slow, fast;

	do {
		struct run r = measure("sim:shm,bandwidth=50"
				       "+sim:shm,bandwidth=200",
				       "");

		slow = points_below(file_of(r), "rail 0 sim");
		fast = points_below(file_of(r), "rail 1 sim");
		CHECK_INT(slow.bytes[slow.n - 1], MAX);
		CHECK_INT(fast.bytes[fast.n - 1], MAX);
		CHECK(slow.ns[slow.n - 1] >= MAX * 1000ul / 50);
		CHECK(fast.ns[fast.n - 1] >= MAX * 1000ul / 200);
	} while (fast.ns[fast.n - 1] > slow.ns[slow.n - 1] / 2);
}

/* --- pictures --- */

TEST(samples_are_drawn)
{
	struct run r;

	if (run(NULL, "command -v gnuplot").code != 0)
		check_skip("there is no gnuplot");
	r = measure("sim:shm,bandwidth=500+sim:shm,bandwidth=2000",
		    "--plot \"it's.png\"");
	CHECK(has(r.out, "drawn: it's.png\n"));
	r = run(NULL, "exec cat '%s/it'\\''s.png'", folder);
	CHECK(r.out_bytes > 1000);
	CHECK(memcmp(r.out, "\x89PNG\r\n", 6) == 0);
	r = measure("shm", "--plot p.svg");
	r = run(NULL, "exec cat '%s/p.svg'", folder);
	CHECK(has(r.out, "<svg "));
	CHECK(has(r.out, "</svg>"));
	CHECK(has(r.out, "rail 0, shm, with rank 1"));
}

TEST(a_picture_that_gnuplot_cannot_draw_is_an_error)
{
	struct run r =
		run(NULL,
		    "cd '%s'; mkdir bin; printf '#!/bin/sh\\nexit 3\\n' "
		    ">bin/gnuplot; chmod +x bin/gnuplot; PATH=$PWD/bin:$PATH "
		    "NMAD_DRIVER=self '%s' --rounds 1 --plot q.png f; c=$?; "
		    "rm -r bin; exit $c",
		    folder, SAMPLE);

	CHECK_INT(r.code, 1);
	CHECK(has(r.out, "written: f\n"));
	CHECK(has(r.err, "gnuplot could not draw q.png"));
}
