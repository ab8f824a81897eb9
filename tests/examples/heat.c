/*
 * examples/heat: the main job, over each network, and what it says to bad
 * input.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>

#define MPIRUN   run_path("MPIRUN")
#define HEAT     run_path("HEAT")
#define PICTURES run_path("PICTURES")

/* The beginning of a command that is run in a folder of its own. */
#define IN_A_FOLDER                                                            \
	"d=$(mktemp -d) && trap 'rm -r \"$d\"' EXIT && cd \"$d\" && "

/*
 * TSan looks at each access to each cell, and has seen them all when the first
 * steps are over.
 */
#ifdef __SANITIZE_THREAD__
enum { FEWER = 5 };
#else
enum { FEWER = 1 };
#endif

/* What it has left there is shown, too. */
static void verified(const char *driver, int ranks, const char *options,
		     int steps, const char *picture)
{
	struct run r = run(NULL,
			   IN_A_FOLDER "NMAD_DRIVER=%s "
				       "'%s' -n %d '%s' --verify %s --steps %d "
				       "'%s/%s' && head -c 2 heat-out.pgm",
			   driver, MPIRUN, ranks, HEAT, options, steps / FEWER,
			   PICTURES, picture);

	CHECK(has(r.out, "those of a sequential run, bit for bit"));
	CHECK(has(r.out, "P5"));
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
}

TEST(the_result_is_the_sequential_one_over_shm)
{
	verified("shm", 2, "--tiles 8x8", 40, "sparks.pgm");
	verified("shm", 3, "--tiles 5x7", 20, "coals.ppm");
}

TEST(the_result_is_the_sequential_one_over_tcp)
{
	verified("tcp", 2, "--tiles 8x8", 40, "sparks.pgm");
	verified("tcp", 3, "--tiles 5x7", 20, "coals.ppm");
}

TEST(a_process_alone_needs_no_network)
{
	verified("self", 1, "--tiles 6x6", 20, "coals.ppm");
}

TEST(a_thousand_threads_block_in_mpi)
{
	verified("shm", 2, "--tiles 32x32", 20, "sparks.pgm");
	verified("tcp", 2, "--tiles 32x32", 20, "sparks.pgm");
}

TEST(more_ranks_than_tiles)
{
	verified("shm", 3, "--tiles 1x2", 5, "coals.ppm");
}

TEST(tiles_of_one_cell)
{
	struct run r = run(NULL,
			   IN_A_FOLDER
			   "echo P2 5 4 9  1 2 3 4 5  9 8 7 6 5  0 0 0 0 0 "
			   "9 9 9 9 9 > p.pgm && "
			   "'%s' -n 2 '%s' --tiles 4x5 --steps 7 --verify "
			   "p.pgm",
			   MPIRUN, HEAT);

	CHECK(has(r.out, "verify: all 20 cells"));
	CHECK_INT(r.code, 0);
}

TEST(without_threads_the_result_is_the_same)
{
	verified("shm", 2, "--single", 40, "sparks.pgm");
}

/* Two ranks refuse these arguments with this message, and soon. */
static void refused(const char *arguments, int code, const char *message)
{
	struct run r = run(NULL,
			   IN_A_FOLDER "printf 'P5 8 8 255\\nabc' > "
				       "short.pgm && echo hello > no.pgm && "
				       "'%s' -n 2 '%s' %s",
			   MPIRUN, HEAT, arguments);

	CHECK(has(r.err, message));
	CHECK_INT(r.code, code);
}

TEST(bad_pictures_are_refused)
{
	refused("short.pgm", 1, "short.pgm: truncated: ended after 3 of 64");
	refused("no.pgm", 1, "no.pgm: not a PGM or PPM picture");
	refused("none.pgm", 1, "none.pgm: No such file or directory");
	refused(".", 1, "heat: .: ");
}

TEST(bad_arguments_are_refused)
{
	refused("", 2, "the picture is missing");
	refused("--tiles 4 no.pgm", 2, "--tiles \"4\": expected rows and");
	refused("--tiles 0x4 no.pgm", 2, "--tiles \"0x4\": expected rows and");
	refused("--tiles 4x4x no.pgm", 2, "--tiles \"4x4x\": expected rows");
	refused("--steps many no.pgm", 2, "--steps \"many\": expected a");
	refused("--steps", 2, "--steps \"\": expected a number");
	refused("no.pgm --out", 2, "--out \"\": expected the beginning");
	refused("--fast no.pgm", 2, "unexpected \"--fast\"");
	refused("a b", 2, "unexpected \"b\"");
}

TEST(a_result_that_cannot_be_written_is_an_error)
{
	struct run r = run(NULL,
			   "'%s' -n 2 '%s' --steps 1 --out /no/such/x "
			   "'%s/coals.ppm'",
			   MPIRUN, HEAT, PICTURES);

	CHECK(has(r.err, "heat: /no/such/x.pgm: No such file or directory"));
	CHECK_INT(r.code, 1);
	r = run(NULL, "'%s' -n 2 '%s' --tiles 300x1 --steps 1 '%s/coals.ppm'",
		MPIRUN, HEAT, PICTURES);
	CHECK(has(r.err, "the picture has only 256 rows"));
	CHECK_INT(r.code, 1);
}
