/*
 * tools/modes: what it prints of which combinations, how failures are named,
 * and what it refuses.
 */
#include "../check.h"
#include "../run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODES  run_path("MODES")
#define MPIRUN run_path("MPIRUN")
#define START  run_path("START")
#define MANUAL run_path("MANUAL")
#define INFO   run_path("INFO")

static char folder[PATH_MAX];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "%s/modes.XXXXXX", run_folder());
	CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
	run(NULL, "exec rm -r '%s'", folder);
}

__attribute__((constructor)) static void set_up(void)
{
	check_fixture(make_folder, remove_folder);
}

/* With our mpirun, in the folder. */
static struct run modes(const char *arguments)
{
	return run(NULL, "cd '%s' && exec '%s' --mpirun '%s' %s", folder, MODES,
		   MPIRUN, arguments);
}

/* An MPI program of ours, behind these options. */
static struct run modes_of_start(const char *options)
{
	return run(NULL,
		   "cd '%s' && NMAD_DRIVER=tcp exec '%s' --mpirun '%s' %s '%s' "
		   "barrier",
		   folder, MODES, MPIRUN, options, START);
}

/* The line of the table that begins so, in words. */
static int columns(const char *text, const char *begin, double out[6])
{
	const char *at = strstr(text, begin);
	double least, most;

	CHECK(at != NULL);
	return sscanf(at + strlen(begin), "%lf %lf..%lf %lf %lf %lf %lf %lf",
		      &out[0], &least, &most, &out[1], &out[2], &out[3],
		      &out[4], &out[5]);
}

TEST(each_combination_has_times_and_counters)
{
	static const char *const lines[] = {
		"marcel   poll       fifo ",
		"marcel   poll       prio ",
		"marcel   interrupt  fifo ",
		"marcel   interrupt  prio ",
	};
	struct run r = modes_of_start(
		"-e marcel -m poll,interrupt -s fifo,prio -r 2 --csv o.csv");
	double v[6]; /* wall, CPU, polls, hits, interrupts, packets */

	CHECK_INT(r.code, 0);
	CHECK_STR(r.err, "");
	for (int i = 0; i < 4; i++) {
		CHECK_INT(columns(r.out, lines[i], v), 8);
		CHECK(v[0] > 0 && v[1] > 0);
		CHECK(v[2] >= v[3] && v[3] > 0);
		CHECK(v[5] > 0);
		if (i < 2)
			CHECK_INT(v[4], 0); /* who polls is not interrupted */
	}
	CHECK(!strstr(r.out, "failed"));
	CHECK(!strstr(r.out, "no counters"));
	/* Rounds, not combinations, are outside. */
	r = run(NULL, "grep ,wall, '%s/o.csv' | cut -d, -f 1-5", folder);
	CHECK_STR(r.out, "launch_start,fifo,ours marcel poll,0,wall\n"
			 "launch_start,prio,ours marcel poll,0,wall\n"
			 "launch_start,fifo,ours marcel interrupt,0,wall\n"
			 "launch_start,prio,ours marcel interrupt,0,wall\n"
			 "launch_start,fifo,ours marcel poll,1,wall\n"
			 "launch_start,prio,ours marcel poll,1,wall\n"
			 "launch_start,fifo,ours marcel interrupt,1,wall\n"
			 "launch_start,prio,ours marcel interrupt,1,wall\n");
}

TEST(counters_of_all_processes_are_added_and_of_gaps_the_highest_counts)
{
	struct run r = modes("-e none -m poll -s fifo -r 1 --csv o.csv "
			     "sh -c 'echo \"pioman[7]: polls 5\" >&2; "
			     "echo \"pioman[7]: longest_gap 9 ns\" >&2; "
			     "echo \"nmad[7]: packets_out 2\" >&2; "
			     "echo \"pioman[7]: polls are 3\"'");

	CHECK_INT(r.code, 0);
	r = run(NULL, "cut -d, -f 5- '%s/o.csv' | grep -v 'wall\\|cpu'",
		folder);
	CHECK_STR(r.out, "name,value,unit\n"
			 "polls,10,times\n"
			 "longest_gap,9,ns\n"
			 "packets_out,4,times\n");
}

TEST(all_combinations_are_run_unless_some_are_asked_for)
{
	struct run r = modes("-r 1 -n 1 sh -c "
			     "'echo $PIOM_ENGINE $PIOM_MODE $NMAD_STRATEGY "
			     "$PIOM_STATS$NMAD_STATS >>all'");

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "(no counters: does the program use this library"));
	r = run(NULL,
		"cd '%s' && wc -l <all && sort -u all | wc -l && "
		"head -n 2 all",
		folder);
	CHECK_STR(r.out, "45\n45\nmarcel auto default 11\n"
			 "marcel auto fifo 11\n");
}

/* What it knows is what the libraries do: they name what they allow. */
TEST(engines_modes_and_strategies_are_those_that_there_are)
{
	static const struct {
		const char *variable, *option;
	} all[] = { { "PIOM_ENGINE", "-e" },
		    { "PIOM_MODE", "-m" },
		    { "NMAD_STRATEGY", "-s" } };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char theirs[512], ours[512];
		struct run r = run(NULL,
				   "%s=x '%s' 2>&1 | "
				   "sed -n 's/.*%s.*not one of //p'",
				   all[i].variable, INFO, all[i].variable);

		snprintf(theirs, sizeof(theirs), "%s", r.out);
		r = run(NULL,
			"'%s' %s x true 2>&1 | "
			"sed -n 's/.*is not one of //p'",
			MODES, all[i].option);
		snprintf(ours, sizeof(ours), "%s", r.out);
		CHECK(strlen(ours) > 10);
		CHECK_STR(ours, theirs);
	}
}

TEST(what_fails_is_named_and_not_run_again)
{
	struct run r = modes("-e marcel,none -m poll,auto -s fifo -r 3 -n 1 "
			     "sh -c 'echo x >>$PIOM_MODE; "
			     "[ $PIOM_MODE != poll ] || "
			     "{ echo not so; exit 7; }'");

	CHECK_INT(r.code, 1);
	CHECK(has(r.out,
		  "PIOM_ENGINE=marcel PIOM_MODE=poll NMAD_STRATEGY=fifo, "
		  "round 1: exit code 7\n    not so\n"));
	CHECK(has(r.out, "none     poll       fifo         exit code 7\n"));
	CHECK(has(r.out, "2 of 4 combinations failed\n"));
	r = run(NULL, "cd '%s' && wc -l <poll && wc -l <auto", folder);
	CHECK_STR(r.out, "2\n6\n");
}

TEST(what_is_not_done_in_time_is_ended)
{
	struct run r = modes("-e none -m poll -s fifo -r 2 -n 1 -t 1 "
			     "sh -c 'echo $$ >pid; exec sleep 1000'");

	CHECK_INT(r.code, 1);
	CHECK(has(r.out, "round 1: not done after 1 s\n"));
	CHECK_INT(
		run(NULL, "! kill -0 $(cat '%s/pid') 2>/dev/null", folder).code,
		0);
}

TEST(an_interruption_shows_what_is_known)
{
	struct run r = modes("-e none -m poll,auto -s fifo -r 1 -n 1 "
			     "sh -c '[ $PIOM_MODE = poll ] || "
			     "{ kill -INT $(ps -o ppid= $PPID); "
			     "exec sleep 1000; }'");

	CHECK_INT(r.code, 130);
	CHECK(has(r.out, "none     poll       fifo "));
	CHECK(has(r.out, "none     auto       fifo         not run\n"));
}

TEST(a_picture_shows_combinations_times_and_counters)
{
	struct run r;

	if (run(NULL, "command -v gnuplot").code != 0)
		check_skip("there is no gnuplot");
	r = modes("-e none -m poll -s fifo,prio -r 2 -n 1 --plot \"it's.svg\" "
		  "sh -c 'echo \"pioman[7]: polls 5\"; "
		  "echo \"pioman[7]: interrupts 2\"'");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "drawn: it's.svg\n"));
	r = run(NULL, "exec cat '%s/it'\\''s.svg'", folder);
	CHECK(has(r.out, "none poll fifo"));
	CHECK(has(r.out, "none poll prio"));
	CHECK(has(r.out, "wall time"));
	CHECK(has(r.out, "interrupts"));
	r = modes("-e none -m poll -s fifo -r 1 -n 1 --plot p.png true");
	CHECK_INT(r.code, 0);
	r = run(NULL, "exec head -c 4 '%s/p.png' | tail -c 3", folder);
	CHECK_STR(r.out, "PNG");
}

TEST(without_gnuplot_it_says_so_before_anything_runs)
{
	struct run r = run(NULL,
			   "cd '%s' && mkdir bin && "
			   "ln -s \"$(command -v touch)\" bin && "
			   "python=$(python3 -c 'import sys; "
			   "print(sys.executable)') && "
			   "PATH=$PWD/bin exec \"$python\" '%s' --mpirun '%s' "
			   "--plot p.svg touch ran",
			   folder, MODES, MPIRUN);

	CHECK_INT(r.code, 2);
	CHECK(has(r.err, "--plot needs gnuplot"));
	CHECK_INT(run(NULL, "test -e '%s/ran'", folder).code, 1);
}

TEST(a_picture_that_gnuplot_cannot_draw_is_an_error)
{
	struct run r = run(NULL,
			   "cd '%s' && mkdir bin && printf "
			   "'#!/bin/sh\\necho no fonts >&2\\nexit 1\\n' "
			   ">bin/gnuplot && chmod +x bin/gnuplot && "
			   "PATH=$PWD/bin:$PATH exec '%s' --mpirun '%s' -r 1 "
			   "-e none -m poll -s fifo --plot p.svg true",
			   folder, MODES, MPIRUN);

	CHECK_INT(r.code, 2);
	CHECK(has(r.err, "gnuplot could not draw p.svg\nno fonts\n"));
}

TEST(wrong_arguments_are_refused)
{
	static const char *const wrong[][2] = {
		{ "", "PROGRAM" },
		{ "-e mercel true", "'mercel' is not one of marcel, " },
		{ "-m poll,, true", "'' is not one of auto, poll, interrupt" },
		{ "-s fifo,fifo true", "'fifo' is there twice" },
		{ "-n 0 true", "'0': not a whole number from 1" },
		{ "-r x true", "'x': not a whole number from 1" },
		{ "-t 1.5 true", "'1.5': not a whole number from 1" },
		{ "--plot p.jpg true",
		  "'p.jpg': expected a name that ends in" },
		{ "--plot .svg true", "'.svg': expected a name" },
		{ "--csv /no/such/o.csv true",
		  "/no/such/o.csv cannot be written: No such file" },
		{ "--what true", "--what" },
		{ "no-such-program", "no-such-program: no such program" },
		{ "/etc/passwd", "/etc/passwd: no such program" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct run r = modes(wrong[i][0]);

		CHECK_INT(r.code, 2);
		CHECK(has(r.err, "marcel-modes: "));
		CHECK(has(r.err, wrong[i][1]));
		CHECK_STR(r.out, "");
	}
}

TEST(a_launcher_that_is_not_there_is_named)
{
	struct run r = run(NULL, "exec '%s' --mpirun /no/mpirun true", MODES);

	CHECK_INT(r.code, 2);
	CHECK_STR(r.err, "marcel-modes: /no/mpirun: no such launcher; --mpirun "
			 "says where it is\n");
	r = run(NULL, "exec '%s' --mpirun \"a'b\" true", MODES);
	CHECK_INT(r.code, 2);
	CHECK(has(r.err, "--mpirun 'a'b': No closing quotation"));
}

TEST(options_and_exit_codes_are_in_help_and_manual)
{
	struct run r = run(NULL, "exec '%s' --help", MODES);

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "Exit code: 0, all ran well; 1, some combination"));
	r = run(NULL,
		"for o in $('%s' --help | grep -o -- '--[a-z]\\+' | sort -u | "
		"grep -v help); do grep -q -- \"Fl -${o#--} \" '%s' || "
		"echo $o; done",
		MODES, MANUAL);
	CHECK_STR(r.out, "");
}
