/*
 * tools/launch: what mpirun promises to its users and to its ranks.
 */
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* --- the command line --- */

static void refused(const char *arguments, const char *message)
{
	struct run r = run(NULL, "exec '%s' %s", MPIRUN, arguments);

	CHECK(has(r.err, message));
	CHECK_INT(r.code, 2);
	CHECK_STR(r.out, "");
}

TEST(a_wrong_command_line_is_explained_and_runs_nothing)
{
	refused("", "the program to run is missing");
	refused("-n 2", "the program to run is missing");
	refused("-n", "-n: its value is missing");
	refused("-n 0 echo hi", "-n 0: expected a number from 1");
	refused("-n -1 echo hi", "-n -1: expected a number from 1");
	refused("-n two echo hi", "-n two: expected a number from 1");
	refused("-np 2x echo hi", "-np 2x: expected a number from 1");
	refused("-n '' echo hi", "-n : expected a number from 1");
	refused("-n 99999999999999999999 echo hi", "expected a number from 1");
	refused("--nonsense echo hi", "unknown option --nonsense");
	refused("--nonsense=3 echo hi", "unknown option --nonsense=3");
	refused("--bind-to socket echo hi",
		"--bind-to socket: expected core, hwthread");
	refused("--timeout 0 echo hi", "--timeout 0: expected a number");
	refused("-n 2 echo hi : -n 2", "the program to run is missing");
	refused(": echo hi", "the program to run is missing");
	refused("-soft 4:8 -n 2 echo hi", "-soft 4:8: it has no number from 1");
	refused("-soft 2: echo hi", "-soft 2:: expected numbers");
	refused("-soft 1:2:0 echo hi", "-soft 1:2:0: expected numbers");
	refused("-soft 1,x echo hi", "-soft 1,x: expected numbers");
	refused("-wdir '' echo hi", "-wdir: its value is empty");
	refused("-n 4096 echo hi : echo hi", "more than 4096 processes");
	refused("-host a echo hi", "-host: mpirun starts processes on this");
	refused("-hostfile a echo hi", "srun (Slurm), mpiexec.hydra");
	refused("-genv A 1 echo hi", "-genv: here it is -x VAR=VALUE");
	refused("-configfile /no/such", "-configfile /no/such: No such file");
	refused("-configfile /dev/null", "it names no program");
	refused("-configfile", "expected a file and nothing else");
	refused("--tag-output --output-filename /tmp echo hi", "has no tags");
	refused("-x =3 echo hi", "-x =3: expected VAR");
	refused("-x NO_SUCH_VARIABLE echo hi", "it is not set");
}

TEST(the_manual_has_the_options_that_help_has)
{
	char help[4096];
	struct run r = run(NULL,
			   "'%s' --help | sed -n '/^  -/p' | "
			   "grep -oE '(^ | )--?[a-z-]+' | tr -d ' ' | sort -u",
			   MPIRUN);

	CHECK(count(r.out, "\n") >= 18);
	snprintf(help, sizeof(help), "%s", r.out);
	/* In the manual --wdir is "Fl -wdir". */
	r = run(NULL,
		"grep '^.It Fl' '%s' | grep -oE 'Fl [a-z-]+' | "
		"sed 's/Fl /-/' | sort -u",
		run_path("MANUAL"));
	CHECK_STR(r.out, help);
	if (run(NULL, "command -v mandoc").code != 0)
		return;
	r = run(NULL, "mandoc -Tlint -Wwarning '%s'", run_path("MANUAL"));
	CHECK_STR(r.out, "");
}

TEST(a_program_that_cannot_run_is_named)
{
	struct run r = run(NULL, "exec '%s' -n 3 no-such-program", MPIRUN);

	CHECK(has(r.err, "cannot run \"no-such-program\": No such file"));
	CHECK_INT(r.code, 127);
	r = run(NULL, "exec '%s' -n 3 /etc/passwd", MPIRUN);
	CHECK(has(r.err, "cannot run \"/etc/passwd\": Permission denied"));
	CHECK_INT(r.code, 126);
	r = run(NULL, "cd /bin; PATH=/nowhere exec '%s' true", MPIRUN);
	CHECK(has(r.err, "it is in this directory: ./true"));
	CHECK_INT(r.code, 127);
}

TEST(variables_reach_all_ranks)
{
	struct run r = run(NULL,
			   "SEEN=3 exec '%s' -n 2 -x T_A='1 2' -x SEEN "
			   "sh -c 'echo \"$T_A/$SEEN\"'",
			   MPIRUN);

	CHECK_STR(r.out, "1 2/3\n1 2/3\n");
	CHECK_INT(r.code, 0);
}

TEST(options_after_the_program_are_the_programs)
{
	struct run r = run(NULL, "exec '%s' -n 1 -- echo -n 2", MPIRUN);

	CHECK_STR(r.out, "2");
	r = run(NULL, "exec '%s' echo --bind-to", MPIRUN);
	CHECK_STR(r.out, "--bind-to\n");
}

/* --- input and output --- */

TEST(lines_of_ranks_never_mix)
{
	struct run r = run(NULL,
			   "exec '%s' -n 4 sh -c 'i=0; "
			   "while [ $i -lt 2000 ]; do "
			   "printf %%s aaaaaaaaaa; printf %%s bbbbbbbbbbbb; "
			   "echo ccccc; i=$((i+1)); done'",
			   MPIRUN);

	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, "aaaaaaaaaabbbbbbbbbbbbccccc\n"), 8000);
	CHECK_INT(r.out_bytes, 8000 * 28);
}

TEST(the_last_line_needs_no_newline)
{
	struct run r = run(NULL, "exec '%s' printf 'a\\nb'", MPIRUN);

	CHECK_STR(r.out, "a\nb");
	r = run(NULL, "exec '%s' --tag-output sh -c 'printf err >&2'", MPIRUN);
	CHECK_STR(r.err, "[0] err\n");
}

TEST(tags_stand_before_every_line)
{
	struct run r = run(NULL,
			   "exec '%s' -n 2 --tag-output sh -c "
			   "'echo x$PMI_RANK; echo; echo y'",
			   MPIRUN);

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "[0] x0\n"));
	CHECK(has(r.out, "[1] x1\n"));
	CHECK_INT(count(r.out, "[0] \n"), 1);
	CHECK_INT(count(r.out, "[1] y\n"), 1);
}

TEST(much_output_arrives_whole_and_binary)
{
	struct run r = run(NULL,
			   "exec '%s' -n 2 head -c 8000000 /dev/zero | "
			   "wc -c",
			   MPIRUN);

	CHECK_STR(r.out, "16000000\n");
}

TEST(stdin_goes_to_rank_0_only)
{
	struct run r =
		run("one\ntwo\n", "exec '%s' -n 3 --tag-output cat", MPIRUN);

	CHECK_STR(r.out, "[0] one\n[0] two\n");
	CHECK_INT(r.code, 0);
	/* What no rank reads is left to the next program. */
	r = run("one\n", "'%s' -n 2 true; cat", MPIRUN);
	CHECK_STR(r.out, "one\n");
}

TEST(closed_standard_descriptors_hurt_no_rank)
{
	struct run r =
		run(NULL, "exec '%s' -n 2 '%s' exchange <&-", MPIRUN, RANK);

	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	r = run(NULL, "exec '%s' -n 2 '%s' exchange >&-", MPIRUN, RANK);
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	r = run(NULL, "exec '%s' -n 2 '%s' exchange <&- >&- 2>&-", MPIRUN,
		RANK);
	CHECK_INT(r.code, 0);
}

TEST(ranks_end_when_nobody_reads_them)
{
	struct run r =
		run(NULL, "'%s' -n 2 yes | head -n 1; echo done", MPIRUN);

	CHECK_STR(r.out, "y\ndone\n");
}

TEST(stdout_that_cannot_be_written_is_an_error)
{
	struct run r = run(NULL, "exec '%s' -n 1 echo hi > /dev/full", MPIRUN);

	CHECK(has(r.err, "cannot write to standard output: No space left"));
	CHECK_INT(r.code, 1);
}

/* --- how jobs end --- */

TEST(the_first_bad_exit_code_counts)
{
	struct run r = run(NULL, "exec '%s' -n 4 true", MPIRUN);

	CHECK_INT(r.code, 0);
	CHECK_STR(r.err, "");
	r = run(NULL, "exec '%s' -n 3 sh -c 'exit $((PMI_RANK * 7))'", MPIRUN);
	CHECK(r.code == 7 || r.code == 14);
	CHECK(has(r.err, "exited with code"));
	r = run(NULL, "exec '%s' -n 1 sh -c 'kill -SEGV $$'", MPIRUN);
	CHECK_INT(r.code, 128 + SIGSEGV);
}

TEST(a_dead_rank_is_named_and_the_others_are_ended)
{
	char pid[32];
	struct run r = run(NULL, "exec '%s' -n 3 '%s' die 1 6", MPIRUN, RANK);

	CHECK_INT(r.code, 128 + 6);
	CHECK_INT(sscanf(r.out, "pid %20[0-9]", pid), 1);
	CHECK(has(r.err, "rank 1 (pid "));
	CHECK(has(r.err, pid));
	CHECK(has(r.err, "killed by signal 6 (Aborted)"));
	CHECK(has(r.err, "ending the other ranks"));
}

TEST(ranks_that_ignore_sigterm_are_killed)
{
	struct run r = run(NULL,
			   "exec '%s' -n 2 sh -c '[ $PMI_RANK = 0 ] && exit 5; "
			   "trap \"\" TERM; while :; do sleep 1000; done'",
			   MPIRUN);

	CHECK_INT(r.code, 5);
}

TEST(what_a_dead_rank_has_started_ends_with_it)
{
	struct run r = run(NULL,
			   "exec '%s' sh -c 'sleep 1000 & echo pid $!; "
			   "kill -KILL $$'",
			   MPIRUN);
	int pid = 0;

	CHECK_INT(r.code, 128 + 9);
	CHECK_INT(sscanf(r.out, "pid %d", &pid), 1);
	becomes(pid, 0);
}

TEST(exits_out_of_turn_end_the_job)
{
	struct run r = run(NULL, "exec '%s' -n 2 '%s' exit 1 0", MPIRUN, RANK);

	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "exited with code 0 without MPI_Finalize"));
	r = run(NULL, "exec '%s' -n 2 '%s' exit 1 6", MPIRUN, RANK);
	CHECK_INT(r.code, 6);
	CHECK(has(r.err, "exited with code 6 without MPI_Finalize"));
	r = run(NULL, "exec '%s' -n 2 '%s' early 1 0", MPIRUN, RANK);
	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "before MPI_Init"));
	r = run(NULL, "exec '%s' -n 2 '%s' leave 0", MPIRUN, RANK);
	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "waits for all ranks, but rank 0 has left the job"));
}

TEST(a_lost_connection_ends_the_job)
{
	struct run r = run(NULL, "exec '%s' -n 2 '%s' hangup 1", MPIRUN, RANK);

	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "has closed its connection without MPI_Finalize"));
}

TEST(an_abort_ends_the_job_with_its_code)
{
	struct run r =
		run(NULL, "exec '%s' -n 3 '%s' abort 2 42", MPIRUN, RANK);

	CHECK_INT(r.code, 42);
	CHECK(has(r.err, "the test wants an abort"));
	CHECK(has(r.err, "has aborted the job with code 42"));
}

TEST(an_abort_never_looks_like_success)
{
	struct run r = run(NULL,
			   "exec '%s' -n 2 bash -c "
			   "'echo cmd=abort exitcode=256 >&$PMI_FD; "
			   "sleep 1000'",
			   MPIRUN);

	CHECK_INT(r.code, 1);
}

TEST(a_request_that_is_too_long_is_none)
{
	struct run r = run(NULL,
			   "exec '%s' -n 2 bash -c "
			   "'printf \"cmd=put key=k value=%%05000d\\n\" 0 "
			   ">&$PMI_FD; sleep 1000'",
			   MPIRUN);

	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "sent \"cmd=put key=k value=000"));
}

TEST(a_request_that_is_none_ends_the_job)
{
	struct run r = run(NULL,
			   "exec '%s' -n 2 bash -c "
			   "'echo Hello >&$PMI_FD; sleep 1000'",
			   MPIRUN);

	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "sent \"Hello\", which is no request"));
}

TEST(a_timeout_ends_the_job)
{
	struct run r =
		run(NULL, "exec '%s' -n 2 --timeout 1 sleep 1000", MPIRUN);

	CHECK_INT(r.code, 124);
	CHECK(has(r.err, "not done after 1 s"));
}

/* --- signals --- */

/* But SIGUSR2 where somebody looks for hangs: tests/deadlock. */
TEST(signals_are_passed_on)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1,
				       SIGUSR2 };
	static const char *const names[] = { "HUP", "INT", "TERM", "USR1",
					     "USR2" };

	for (int i = 0; i < 5; i++) {
		struct run r;
		pid_t pid = run_start(
			NULL,
			"MARCEL_DEADLOCK=off exec '%s' -n 2 sh -c "
			"'trap \"echo got %s; exit 0\" %s;"
			" echo ready$PMI_RANK; while :; do sleep 0.01; done'",
			MPIRUN, names[i], names[i]);

		CHECK(run_has_printed("ready0"));
		CHECK(run_has_printed("ready1"));
		kill(pid, signals[i]);
		r = run_wait();
		CHECK_INT(r.code, 0);
		CHECK_INT(count(r.out, "got"), 2);
	}
}

static int started_sleeper(pid_t *mpirun)
{
	int pid = 0;

	*mpirun = run_start(NULL,
			    "exec '%s' sh -c 'echo pid $$.; "
			    "exec sleep 1000'",
			    MPIRUN);
	CHECK(run_has_printed("."));
	CHECK_INT(sscanf(run_printed(), "pid %d", &pid), 1);
	return pid;
}

TEST(a_stopped_job_goes_on_when_told)
{
	pid_t mpirun;
	int pid = started_sleeper(&mpirun);

	kill(mpirun, SIGTSTP);
	becomes(pid, 'T');
	becomes(mpirun, 'T');
	kill(mpirun, SIGCONT);
	becomes(pid, 'S');
	kill(mpirun, SIGTERM);
	CHECK_INT(run_wait().code, 128 + SIGTERM);
}

TEST(ranks_die_with_mpirun)
{
	pid_t mpirun;
	int pid = started_sleeper(&mpirun);

	kill(mpirun, SIGKILL);
	CHECK_INT(run_wait().code, -1);
	becomes(pid, 0);
}

/* Also those that are no child of it. */
TEST(ranks_of_scripts_end_with_mpirun)
{
	pid_t mpirun = run_start(
		NULL, "exec '%s' -n 2 sh -c '\"$TALK\" hang; :'", MPIRUN);

	CHECK(run_has_printed("2 talked"));
	kill(mpirun, SIGKILL);
	CHECK_INT(run_wait().code, -1);
	job_ends_without_launcher("\"$MPIRUN\"");
}

/* --- CPUs --- */

TEST(bound_ranks_share_no_core)
{
	int cpus = atoi(run(NULL, "nproc").out);
	struct run r = run(NULL,
			   "exec '%s' -n $(nproc) --bind-to core "
			   "grep Cpus_allowed_list /proc/self/status",
			   MPIRUN);
	char *line = strdup(r.out), *end;

	CHECK_INT(r.code, 0);
	for (char *at = line; *at != '\0'; at = end + 1) {
		end = strchr(at, '\n');
		CHECK(end != NULL);
		*end = '\0';
		if (count(r.out, "\n") > 1 && strchr(at, '-') == NULL)
			CHECK_INT(count(r.out, strchr(at, ':')), 1);
	}
	free(line);
	r = run(NULL, "exec '%s' -n 3 nproc", MPIRUN);
	CHECK_INT(r.code, 0);
	CHECK_INT(atoi(r.out), cpus);
}

/* Of a machine on paper, nobody is bound to it. */
static void on_paper(const char *options, const char *said)
{
	struct run r = run(NULL,
			   "HWLOC_SYNTHETIC='package:2 core:2 pu:2' "
			   "exec '%s' --report-bindings %s true",
			   MPIRUN, options);

	CHECK_INT(r.code, 0);
	CHECK_STR(r.err, said);
}

TEST(bindings_are_reported)
{
	on_paper("-n 3 --bind-to core",
		 "mpirun: rank 0 is bound to: package 0, core 0, CPU 0-1\n"
		 "mpirun: rank 1 is bound to: package 0, core 1, CPU 2-3\n"
		 "mpirun: rank 2 is bound to: package 1, core 2, CPU 4-5\n");
	on_paper("-n 3 --bind-to=package",
		 "mpirun: --bind-to package: 3 ranks share 2\n"
		 "mpirun: rank 0 is bound to: package 0, core 0-1, CPU 0-3\n"
		 "mpirun: rank 1 is bound to: package 1, core 2-3, CPU 4-7\n"
		 "mpirun: rank 2 is bound to: package 0, core 0-1, CPU 0-3\n");
	on_paper("-n 2 --bind-to hwthread",
		 "mpirun: rank 0 is bound to: package 0, core 0, CPU 0\n"
		 "mpirun: rank 1 is bound to: package 0, core 0, CPU 1\n");
	on_paper("", "mpirun: rank 0 is not bound: package 0-1, core 0-3, "
		     "CPU 0-7\n");
}

TEST(what_a_machine_has_not_is_not_bound_to)
{
	struct run r = run(NULL,
			   "HWLOC_SYNTHETIC='package:2 core:2 pu:2' "
			   "exec '%s' --bind-to l3cache true",
			   MPIRUN);

	CHECK_INT(r.code, 2);
	CHECK_STR(r.err, "mpirun: --bind-to l3cache: this machine has none\n");
}

TEST(only_allowed_cpus_are_bound_to)
{
	int cpu = atoi(run(NULL, "grep Cpus_allowed_list /proc/self/status | "
				 "cut -f 2")
			       .out);
	struct run r = run(NULL,
			   "exec taskset -c %d '%s' -n 2 --bind-to hwthread "
			   "grep Cpus_allowed_list /proc/self/status",
			   cpu, MPIRUN);
	char want[32];

	snprintf(want, sizeof(want), ":\t%d\n", cpu);
	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, want), 2);
	CHECK(has(r.err, "2 ranks share 1"));
}

/* --- ranks that speak to their launcher --- */

TEST(ranks_exchange_values)
{
	job_exchanges("\"$MPIRUN\"");
}

TEST(a_job_has_one_key)
{
	job_has_one_key("\"$MPIRUN\"");
}

TEST(a_start_asks_nothing_about_each_rank)
{
	job_asks_little("\"$MPIRUN\"");
}

TEST(programs_that_ranks_start_are_singletons)
{
	job_children_are_singletons("\"$MPIRUN\"");
}

TEST(a_forked_child_is_not_the_rank)
{
	struct run r = run(NULL, "exec '%s' -n 2 '%s' fork", MPIRUN, RANK);
	char want[32];

	snprintf(want, sizeof(want), "in the child: %d", -EPERM);
	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, want), 2);
	CHECK(has(r.err, "only the process that was launched is part of"));
}

TEST(many_ranks)
{
	struct run r = run(NULL, "exec '%s' -n 100 '%s' info", MPIRUN, RANK);

	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, "/100 local "), 100);
}
