/*
 * tools/schedules: which seed it names, how it says that, and what it refuses.
 */
#include "../check.h"
#include "../run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEDULES run_path("SCHEDULES")
#define TARGET    run_path("TARGET")

enum { SEEDS = 100 };

/* The driver with these arguments, then the target that does `what`. */
static struct run schedules(const char *arguments, const char *what)
{
	return run(NULL, "exec '%s' %s '%s' %s", SCHEDULES, arguments, TARGET,
		   what);
}

TEST(a_program_that_ends_well_has_no_failure)
{
	struct run r = schedules("-s 5", "well");

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "no failure: 5 seeds, 1 different schedules\n"));
	r = schedules("-s 4-9", "mix");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "no failure: 6 seeds, 6 different schedules\n"));
}

TEST(the_first_seed_that_fails_is_named_with_its_code)
{
	struct run r = schedules("--seeds 17-1000 --jobs 3", "fail 'a  b'");

	CHECK_INT(r.code, 1);
	CHECK(has(r.out, "seed 17: exit code 3\n"));
	CHECK(has(r.out, "again with: MARCEL_NVP=1 MARCEL_SCHED=random:17 "));
	CHECK(has(r.out, " fail 'a  b'\n"));
}

/* The seed in what the driver printed. */
static int seed_in(const char *text)
{
	int seed = -1;

	CHECK_INT(sscanf(text, "seed %d: ", &seed), 1);
	return seed;
}

TEST(a_bug_is_found_and_the_command_that_is_shown_repeats_it)
{
	struct run r = run(NULL, "ulimit -c 0; exec '%s' -s %d '%s' order",
			   SCHEDULES, SEEDS, TARGET);
	char command[512];
	int seed;

	CHECK_INT(r.code, 1);
	seed = seed_in(r.out);
	CHECK(has(r.out, ": ended by SIGABRT\nused before it was set up\n"));
	CHECK_INT(sscanf(strstr(r.out, "again with: "), "again with: %511[^\n]",
			 command),
		  1);
	r = run(NULL, "ulimit -c 0; %s", command);
	CHECK_INT(r.code, 128 + SIGABRT);
	CHECK(has(r.err, "used before it was set up\n"));
	r = run(NULL,
		"ulimit -c 0; MARCEL_NVP=4 exec '%s' -j 5 -s %d '%s' order",
		SCHEDULES, SEEDS, TARGET);
	CHECK_INT(seed_in(r.out), seed);
	if (seed > 0) {
		r = run(NULL, "exec '%s' -s %d '%s' order", SCHEDULES, seed,
			TARGET);
		CHECK_INT(r.code, 0);
	}
}

TEST(a_deadlock_ends_and_its_threads_are_shown)
{
	struct run r = schedules("-t 5 -j 2", "lock");

	CHECK_INT(r.code, 1);
	CHECK(seed_in(r.out) < SEEDS);
	CHECK(has(r.out, ": not done after 5 s\n"));
	CHECK(has(r.out, "waiting, for mutex\n"));
	CHECK(has(r.out, "waiting, for join\n"));
}

TEST(what_a_program_starts_ends_with_it)
{
	struct run r = run(NULL,
			   "exec '%s' -s 1 -- sh -c "
			   "'sleep 1000 & echo $!; exit 5'",
			   SCHEDULES);
	int child;

	CHECK_INT(r.code, 1);
	CHECK_INT(sscanf(r.out, "seed 0: exit code 5\n%d\n", &child), 1);
	/* It is gone, or about to be. */
	CHECK_INT(run(NULL,
		      "while [ -e /proc/%d ] && ! grep -q '^State:.Z' "
		      "/proc/%d/status; do :; done",
		      child, child)
			  .code,
		  0);
}

TEST(much_output_is_shown_from_its_end)
{
	struct run r = run(NULL,
			   "exec '%s' -s 1 -- sh -c "
			   "'seq 100000; exit 1'",
			   SCHEDULES);

	CHECK_INT(r.code, 1);
	CHECK(r.out_bytes < 70000);
	CHECK(has(r.out, "seed 0: exit code 1\n[the last 65536 of 588895 "));
	CHECK(has(r.out, "\n100000\nagain with: "));
}

TEST(a_program_without_marcel_is_found_out)
{
	struct run r = run(NULL, "exec '%s' -s 2 true", SCHEDULES);

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "2 seeds, 0 different"));
	CHECK(has(r.out, "does the program use marcel?"));
}

TEST(wrong_arguments_are_refused)
{
	static const char *const wrong[] = {
		"",
		"-s 0 true",
		"-s 3-2 true",
		"-s -1 true",
		"-s x true",
		"-s 1k true",
		"-s '' true",
		"-j 0 true",
		"-j -1 true",
		"-t 0 true",
		"-t 1.5 true",
		"--what true",
		"/etc/passwd",
		"no-such-program",
		"-s 9223372036854775809 true",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct run r = run(NULL, "exec '%s' %s", SCHEDULES, wrong[i]);

		CHECK_INT(r.code, 2);
		CHECK(has(r.err, "marcel-schedules: "));
		CHECK_STR(r.out, "");
	}
}

TEST(help_says_what_the_exit_codes_are)
{
	struct run r = run(NULL, "exec '%s' --help", SCHEDULES);

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "usage: marcel-schedules "));
	CHECK(has(r.out, "Exit code: 0, no seed failed; 1, one did;"));
	r = run(NULL, "exec '%s' --version", SCHEDULES);
	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "marcel-schedules (marcel) ", 26) == 0);
	CHECK(r.out[26] >= '0' && r.out[26] <= '9');
}

TEST(an_interruption_ends_it_and_the_program)
{
	struct run r = run(NULL,
			   "exec '%s' -s 1 -- sh -c "
			   "'kill -INT $PPID; exec sleep 1000'",
			   SCHEDULES);

	CHECK_INT(r.code, 130);
	CHECK_STR(r.err, "");
}
