/*
 * tools/launch: mpirun --keep-going. The others go on without a rank that fails
 * in whatever way; it is named once, and nobody waits for it.
 */
#include "launch.h"

#include <signal.h>
#include <stdlib.h>

/* Of three ranks one fails as `what` says; the other two are well. */
static void goes_on(const char *what, int code, const char *message)
{
	struct run r = run(NULL, "exec '%s' --keep-going -n 3 '%s' %s", MPIRUN,
			   RANK, what);

	CHECK_INT(r.code, code);
	CHECK(has(r.err, message));
	CHECK_INT(count(r.err, "mpirun:"), message[0] != '\0');
	CHECK_INT(count(r.out, "goes on"), 2);
}

TEST(the_others_go_on_without_a_rank_that_dies)
{
	goes_on("die 1 9", 128 + 9, "was killed by signal 9 (Killed)");
	goes_on("die 0 6", 128 + 6, "was killed by signal 6 (Aborted)");
	goes_on("exit 2 0", 1, "exited with code 0 without MPI_Finalize");
	goes_on("exit 0 6", 6, "exited with code 6 without MPI_Finalize");
}

TEST(the_others_go_on_without_a_rank_that_never_joined)
{
	goes_on("early 1 0", 1, "before MPI_Init");
	goes_on("early 2 5", 5, "exited with code 5");
}

TEST(who_has_left_is_not_waited_for)
{
	goes_on("leave 1", 0, "");
}

TEST(a_bad_code_after_the_end_is_only_passed_on)
{
	struct run r = run(NULL, "exec '%s' --keep-going -n 3 '%s' late 1 42",
			   MPIRUN, RANK);

	CHECK_INT(r.code, 42);
	CHECK_STR(r.err, "");
	CHECK_INT(count(r.out, "goes on"), 3);
}

TEST(the_others_go_on_without_a_rank_that_talks_nonsense)
{
	struct run r = run(NULL,
			   "exec '%s' --keep-going -n 3 bash -c "
			   "'[ $PMI_RANK != 1 ] && exec %s go; "
			   "echo Hello >&$PMI_FD; read answer <&$PMI_FD'",
			   MPIRUN, RANK);

	CHECK(has(r.err, "sent \"Hello\", which is no request"));
	CHECK_INT(r.code, 1);
	CHECK_INT(count(r.out, "goes on"), 2);
}

/* It lives and is no part of the job; what ends it is mpirun's signal. */
TEST(the_others_go_on_without_a_rank_that_hangs_up)
{
	struct run r;
	pid_t pid = run_start(NULL, "exec '%s' --keep-going -n 2 '%s' hangup 1",
			      MPIRUN, RANK);

	CHECK(run_has_printed("rank 0 goes on"));
	kill(pid, SIGTERM);
	r = run_wait();
	CHECK(has(r.err, "has closed its connection without MPI_Finalize"));
	CHECK_INT(r.code, 128 + SIGTERM);
}

TEST(each_that_dies_is_named_and_the_first_gives_the_code)
{
	struct run r = run(NULL,
			   "exec '%s' --keep-going -n 3 sh -c "
			   "'kill -$((PMI_RANK + 4)) $$'",
			   MPIRUN);

	CHECK(r.code >= 128 + 4 && r.code <= 128 + 6);
	CHECK_INT(count(r.err, "was killed by signal"), 3);
	CHECK_INT(count(r.err, "ending the other ranks"), 0);
	r = run(NULL, "exec '%s' --keep-going -n 1 '%s' die 0 9", MPIRUN, RANK);
	CHECK_INT(r.code, 128 + 9);
}

TEST(an_abort_ends_the_whole_job)
{
	struct run r = run(NULL, "exec '%s' --keep-going -n 3 '%s' abort 2 42",
			   MPIRUN, RANK);

	CHECK_INT(r.code, 42);
	CHECK(has(r.err, "has aborted the job with code 42"));
	CHECK_INT(count(r.out, "goes on"), 0);
}

TEST(a_signal_to_mpirun_ends_the_whole_job)
{
	struct run r;
	pid_t pid = run_start(NULL,
			      "exec '%s' --keep-going -n 2 sh -c "
			      "'echo ready$PMI_RANK; exec sleep 1000'",
			      MPIRUN);

	CHECK(run_has_printed("ready0"));
	CHECK(run_has_printed("ready1"));
	kill(pid, SIGINT);
	r = run_wait();
	CHECK_INT(r.code, 128 + SIGINT);
	CHECK_INT(count(r.err, "was killed by signal"), 1);
}

TEST(what_a_dead_rank_has_started_ends_with_it)
{
	struct run r = run(NULL,
			   "exec '%s' --keep-going -n 2 sh -c '"
			   "[ $PMI_RANK = 1 ] && exit; sleep 1000 & "
			   "echo pid $!; kill -KILL $$'",
			   MPIRUN);
	int pid = 0;

	CHECK_INT(r.code, 128 + 9);
	CHECK_INT(sscanf(r.out, "pid %d", &pid), 1);
	becomes(pid, 0);
}

TEST(a_program_outlives_one_of_its_ranks)
{
	job_outlives_a_rank("\"$MPIRUN\" --keep-going");
}
