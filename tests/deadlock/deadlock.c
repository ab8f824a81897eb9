/*
 * MARCEL_DEADLOCK finds what hangs, says who waits for what, and is silent
 * where something may still move.
 */
#include "../check.h"
#include "../run.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define DEAD  "deadlock: nothing in this process can ever move again"
#define QUIET "quiet, not provably dead"

enum { EXIT_DEADLOCK = 123 };

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		n++;
	}
	return n;
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
	for (unsigned n = 0; strstr(run_printed(), QUIET) == NULL; n++) {
		kill(pid, SIGUSR2);
		while (count(run_printed(), "end of report") == n)
			sched_yield();
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
	CHECK(has(r.err, "a receive from rank 1, tag 5, MPI_COMM_WORLD, "
			 "4 bytes"));
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

	CHECK(has(r.err, "collective operation "));
	CHECK(has(r.err, "a receive from rank 0, tag 1, MPI_COMM_WORLD"));
}

TEST(a_rank_that_others_still_want_is_at_its_end)
{
	CHECK(has(dead_job(2, "end_too_soon").err,
		  "a receive from rank 1, tag 1, MPI_COMM_WORLD"));
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
