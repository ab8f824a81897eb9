/*
 * MARCEL_DEADLOCK finds what hangs, says who waits for what, and is silent
 * where something may still move.
 */
#include "../check.h"
#include "../run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define DEAD  "deadlock: nothing in this process can ever move again"
#define QUIET "quiet, not provably dead"

enum { EXIT_DEADLOCK = 123 };

/* What a test does not set is not set, either, where all others run with it. */
static void forget(void)
{
	unsetenv("MARCEL_DEADLOCK");
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(forget, NULL);
}

static struct run dead(const char *which)
{
	struct run r = run(NULL, "MARCEL_DEADLOCK=abort exec '%s' %s",
			   run_path("THREADS"), which);

	CHECK(has(r.err, DEAD));
	CHECK(has(r.err, "end of report"));
	CHECK_INT(r.code, EXIT_DEADLOCK);
	CHECK_STR(r.out, "ready\n");
	return r;
}

/* --- threads --- */

TEST(a_mutex_that_its_holder_locks_again)
{
	struct run r = dead("self");

	CHECK(has(r.err, "\"self\" waits for mutex"));
	CHECK(has(r.err, "a cycle of 1 thread(s)"));
	CHECK(has(r.err, "\"main\" waits for the end of thread"));
}

TEST(two_mutexes_in_two_orders)
{
	struct run r = dead("abba");

	CHECK(has(r.err, "a cycle of 2 thread(s)"));
	CHECK(has(r.err, "\"ab\" holds mutex"));
	CHECK(has(r.err, "\"ba\" holds mutex"));
}

TEST(a_signal_that_came_before_its_waiter)
{
	CHECK(has(dead("condition").err, "\"condition\" waits for condition"));
}

TEST(threads_that_join_each_other)
{
	struct run r = dead("joins");

	CHECK(has(r.err, "a cycle of 2 thread(s)"));
	CHECK(has(r.err, "\"left\" waits for the end of thread"));
	CHECK(has(r.err, "\"main\" waits for semaphore"));
}

TEST(a_semaphore_that_nobody_posts)
{
	CHECK(has(dead("semaphore").err, "\"semaphore\" waits for semaphore"));
}

TEST(a_barrier_to_which_one_does_not_come)
{
	CHECK(has(dead("barrier").err, ": 1 of 2 have come"));
}

TEST(a_reader_that_wants_to_write)
{
	CHECK(has(dead("writer").err, "held by 1 reader(s)"));
}

TEST(it_is_found_on_one_vp_and_on_many)
{
	setenv("MARCEL_NVP", "1", 1);
	dead("abba");
	setenv("MARCEL_NVP", "5", 1);
	dead("abba");
	unsetenv("MARCEL_NVP");
}

TEST(it_is_found_while_vps_poll)
{
	setenv("PIOM_MODE", "poll", 1);
	dead("semaphore");
	unsetenv("PIOM_MODE");
}

/* What may still move, and who: said only if somebody asks. */
static void quiet(const char *which, const char *by)
{
	pid_t pid = run_start(NULL,
			      "MARCEL_DEADLOCK=abort MARCEL_DUMP_SIGNAL=USR2 "
			      "exec '%s' %s 2>&1",
			      run_path("THREADS"), which);
	struct run r;

	CHECK_INT(run_has_printed("ready"), 1);
	/* Until the watchman has looked at it at rest. */
	for (int n = 1; strstr(run_printed(), QUIET) == NULL; n++) {
		kill(pid, SIGUSR2);
		CHECK(run_has_printed_times("end of report", n));
	}
	kill(pid, SIGTERM);
	r = run_wait();
	CHECK_INT(r.code, 128 + SIGTERM);
	CHECK(has(r.out, by));
	CHECK(strstr(r.out, DEAD) == NULL);
}

TEST(an_ltask_that_nobody_submits)
{
	CHECK(has(dead("ltask").err, "\"ltask\" waits for event"));
}

TEST(an_ltask_that_never_ends)
{
	quiet("endless", "moved by a task of pioman");
}

TEST(what_waits_for_the_clock_is_not_dead)
{
	quiet("sleep", "moved by a timed wait");
}

TEST(a_foreign_kernel_thread_may_wake_anybody)
{
	quiet("foreign", "a kernel thread that is not marcel's");
}

TEST(a_handler_may_post)
{
	quiet("handler", "moved by a signal");
}

TEST(a_hook_of_idle_vps_may_wake_anybody)
{
	quiet("hook", "moved by a hook");
}

TEST(who_stays_quiet_says_so_unasked)
{
	pid_t pid =
		run_start(NULL,
			  "MARCEL_DEADLOCK=report MARCEL_DEADLOCK_QUIET_S=1 "
			  "exec '%s' sleep 2>&1",
			  run_path("THREADS"));

	CHECK_INT(run_has_printed("end of report"), 1);
	kill(pid, SIGTERM);
	CHECK(has(run_wait().out, QUIET ", for "));
	CHECK(has(run_printed(), " s: it may be moved by a timed wait"));
}

/* --- who waits polls --- */

static const char *const ways_to_poll[][2] = {
	{ "PIOM_ENGINE", "none" },
	{ "PIOM_ENGINE", "pthread" },
	{ "PIOM_WAIT", "active" },
};

TEST(an_ltask_is_missed_however_it_is_waited_for)
{
	for (size_t i = 0; i < sizeof(ways_to_poll) / sizeof(*ways_to_poll);
	     i++) {
		setenv(ways_to_poll[i][0], ways_to_poll[i][1], 1);
		dead("ltask");
		setenv("PIOM_MODE", "poll", 1);
		CHECK(has(dead("ltask").err, "\"ltask\" waits for event"));
		unsetenv("PIOM_MODE");
		unsetenv(ways_to_poll[i][0]);
	}
}

TEST(many_poll_on_few_vps)
{
	setenv("PIOM_ENGINE", "none", 1);
	for (int nvp = 1; nvp <= 3; nvp += 2) {
		setenv("MARCEL_NVP", nvp == 1 ? "1" : "3", 1);
		CHECK(has(dead("ltasks").err, "waits for event"));
	}
	unsetenv("MARCEL_NVP");
	unsetenv("PIOM_ENGINE");
}

TEST(who_polls_until_some_time_is_not_dead)
{
	setenv("PIOM_ENGINE", "none", 1);
	quiet("timed", "moved by a timed wait");
	setenv("PIOM_WAIT", "active", 1);
	quiet("timed", "moved by a timed wait");
	unsetenv("PIOM_WAIT");
	unsetenv("PIOM_ENGINE");
}

/* It makes way, and so the hook runs. */
TEST(a_hook_at_switches_may_wake_who_polls)
{
	setenv("PIOM_ENGINE", "none", 1);
	setenv("MARCEL_CPUTIME", "1", 1); /* a hook of marcel's own */
	dead("ltask");
	unsetenv("MARCEL_CPUTIME");
	quiet("turns", "moved by a hook");
	unsetenv("PIOM_ENGINE");
}

/* --- messages --- */

static struct run dead_job(int n, const char *which)
{
	struct run r =
		run(NULL, "MARCEL_DEADLOCK=abort exec '%s' -n %d '%s' %s",
		    run_path("MPIRUN"), n, run_path("MESSAGES"), which);

	CHECK(has(r.err, "mpirun: deadlock: no rank can ever go on"));
	CHECK_INT(r.code, EXIT_DEADLOCK);
	return r;
}

TEST(receives_from_each_other)
{
	struct run r = dead_job(3, "each_other");

	CHECK(has(r.err, "a cycle of 3 rank(s)"));
	CHECK(has(r.err, "rank 0 waits for rank 1: "));
	CHECK(has(r.err, "rank 2 waits for rank 0: "));
	CHECK(has(r.err,
		  "\"main\" in MPI_Recv waits for a receive from rank 1, "
		  "tag 5, MPI_COMM_WORLD, 4 bytes"));
}

TEST(receives_are_missed_however_they_are_waited_for)
{
	for (size_t i = 0; i < sizeof(ways_to_poll) / sizeof(*ways_to_poll);
	     i++) {
		setenv(ways_to_poll[i][0], ways_to_poll[i][1], 1);
		CHECK(has(dead_job(2, "each_other").err,
			  "a cycle of 2 rank(s)"));
		unsetenv(ways_to_poll[i][0]);
	}
}

TEST(a_tag_that_nobody_receives)
{
	struct run r = dead_job(2, "wrong_tag");

	CHECK(has(r.err, "rank 1: unexpected: a message from rank 0, tag 7, "
			 "MPI_COMM_WORLD, 4 bytes"));
	CHECK(has(r.err, "a receive from rank 0, tag 8, MPI_COMM_WORLD"));
}

TEST(synchronous_sends_to_each_other)
{
	struct run r = dead_job(2, "ssends");

	CHECK(has(r.err, "a synchronous send to rank 1, tag 3"));
	CHECK(has(r.err, "a cycle of 2 rank(s)"));
}

TEST(large_messages_that_nobody_sends_or_receives)
{
	CHECK(has(dead_job(2, "large_receives").err,
		  "a receive from rank 0, tag 9, MPI_COMM_WORLD, 1048576"));
	CHECK(has(dead_job(2, "large_sends").err,
		  "a send to rank 0, tag 9, MPI_COMM_WORLD, 1048576"));
}

TEST(a_collective_operation_that_a_rank_skips)
{
	struct run r = dead_job(3, "skipped");

	CHECK(has(r.err, "in MPI_Barrier waits for "));
	CHECK(has(r.err, "collective operation "));
	CHECK(has(r.err, "a receive from rank 0, tag 1, MPI_COMM_WORLD"));
}

TEST(a_rank_that_others_still_want_is_at_its_end)
{
	CHECK(has(dead_job(2, "end_too_soon").err,
		  "a receive from rank 1, tag 1, MPI_COMM_WORLD"));
}

/* It says so itself, and mpirun that the others cannot go on either. */
TEST(a_rank_that_hangs_by_itself)
{
	pid_t pid = run_start(NULL,
			      "MARCEL_DEADLOCK=report exec '%s' -n 2 '%s' "
			      "alone 2>&1",
			      run_path("MPIRUN"), run_path("MESSAGES"));
	struct run r;

	CHECK_INT(run_has_printed("mpirun: deadlock: no rank"), 1);
	CHECK_INT(run_has_printed("mpirun: rank 1: this is rank 1 of 2"), 1);
	kill(pid, SIGTERM);
	r = run_wait();
	CHECK_INT(count(r.out, DEAD), 1);
	CHECK(has(r.out, "mpirun: rank 0: thread "));
	CHECK(has(r.out, "a cycle of 1 thread(s)"));
}

TEST(hangs_over_tcp_are_found_too)
{
	setenv("NMAD_DRIVER", "tcp", 1);
	dead_job(2, "each_other");
	unsetenv("NMAD_DRIVER");
}

TEST(a_report_alone_ends_nothing)
{
	pid_t pid = run_start(NULL,
			      "MARCEL_DEADLOCK=report exec '%s' -n 2 '%s' "
			      "each_other 2>&1",
			      run_path("MPIRUN"), run_path("MESSAGES"));

	CHECK_INT(run_has_printed("a cycle of 2 rank(s)"), 1);
	kill(pid, SIGTERM);
	CHECK(run_wait().code != EXIT_DEADLOCK);
}

/* --- a job that is asked --- */

#define END "mpirun: end of report"

static pid_t start_job(const char *settings, const char *which)
{
	return run_start(NULL,
			 "%s MARCEL_DEADLOCK=report exec '%s' -n 2 '%s' "
			 "%s 2>&1",
			 settings, run_path("MPIRUN"), run_path("MESSAGES"),
			 which);
}

/* Until the report says that: the first may come before all are at rest. */
static void ask_until(pid_t mpirun, const char *text)
{
	for (int n = 1; strstr(run_printed(), text) == NULL; n++) {
		kill(mpirun, SIGUSR2);
		CHECK(run_has_printed_times(END, n));
	}
}

static struct run end_job(pid_t mpirun)
{
	kill(mpirun, SIGTERM);
	return run_wait();
}

/* A job that does not end by itself, asked until the report says that. */
static struct run reported(const char *which, const char *text)
{
	pid_t pid = start_job("", which);

	CHECK_INT(run_has_printed("ready"), 1);
	ask_until(pid, text);
	return end_job(pid);
}

TEST(a_job_that_is_asked_reports_in_the_order_of_ranks)
{
	struct run r = reported(
		"sleeper", "mpirun: report: quiet, not provably dead: no rank");
	const char *first, *second;

	first = strstr(r.out, "rank 0: quiet, not provably dead");
	second = strstr(r.out, "rank 1: quiet, not provably dead");
	CHECK(first != NULL && second != NULL && first < second);
	CHECK(has(first, "moved by a timed wait\n"));
	CHECK(has(second, "moved by messages of other ranks"));
	CHECK(has(second, "rank 1: thread "));
	CHECK(has(second, "in MPI_Recv waits for a receive from rank 0"));
	CHECK(has(second, "rank 1: this is rank 1 of 2"));
	CHECK(strstr(r.out, "deadlock") == NULL);
}

TEST(who_watches_messages_may_be_woken_by_one)
{
	struct run r = reported(
		"watcher", "mpirun: report: quiet, not provably dead: no rank");

	CHECK(has(r.out, "rank 1: quiet, not provably dead"));
	CHECK(strstr(r.out, "deadlock") == NULL);
}

TEST(a_rank_that_runs_is_told_from_one_that_waits)
{
	struct run r =
		reported("runner", "mpirun: report: not quiet: 1 of 2 rank(s)");

	CHECK(has(r.out, "rank 0: not quiet"));
}

TEST(a_report_does_not_wait_for_a_rank_that_is_stopped)
{
	struct run r = reported("stopped",
				"mpirun: report: 1 of 2 rank(s) do not answer");

	CHECK(has(r.out, "rank 0: does not answer: it is stopped"));
	CHECK(has(r.out, "rank 1: quiet, not provably dead"));
}

TEST(who_asks_after_a_deadlock_is_told_of_it)
{
	pid_t pid = start_job("", "each_other");

	CHECK_INT(run_has_printed("a cycle of 2 rank(s)"), 1);
	ask_until(pid, "mpirun: report: deadlock, as was said");
	CHECK_INT(count(end_job(pid).out, "mpirun: deadlock:"), 1);
}

TEST(a_job_that_stays_quiet_says_so_unasked)
{
	pid_t pid = start_job("MARCEL_DEADLOCK_QUIET_S=1", "sleeper");

	CHECK_INT(run_has_printed(END), 1);
	CHECK(has(end_job(pid).out, "no rank has moved for"));
}

TEST(without_it_the_signal_is_the_programs)
{
	pid_t pid = run_start(NULL,
			      "exec '%s' -n 1 sh -c "
			      "'trap \"echo mine; exit 3\" USR2; "
			      "echo ready; while :; do sleep 0.01; done'",
			      run_path("MPIRUN"));

	CHECK_INT(run_has_printed("ready"), 1);
	kill(pid, SIGUSR2);
	CHECK(has(run_wait().out, "mine"));
}
