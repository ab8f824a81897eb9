/*
 * tools/gdb/marcel.py shows the user threads of a live process and of a core
 * file, and the process goes on as if nothing had been.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/marcel-gdb.XXXXXX";

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	(void)!system(command);
}

/* gdb's words about the target, stopped; then about its core. */
static struct run gdb(const char *commands, bool core)
{
	static bool has_core;

	if (core && !has_core) {
		CHECK(mkdtemp(folder) != NULL);
		atexit(remove_folder);
		CHECK_INT(run(NULL,
			      /* It stops at a guard inside a mapping. */
			      "MARCEL_GUARDS=mprotect "
			      "gdb -nx -batch -ex 'break stop_here' -ex run "
			      "-ex 'generate-core-file %s/core' '%s'",
			      folder, run_path("TARGET"))
				  .code,
			  0);
		has_core = true;
	}
	return run(NULL,
		   "gdb -nx -batch -ex 'set debuginfod enabled off' "
		   "-ex 'set width 0' -ex 'source %s' "
		   "%s %s%s %s '%s' 2>&1",
		   run_path("SCRIPT"),
		   core ? "-core" : "-ex 'break stop_here' -ex run",
		   core ? folder : "", core ? "/core" : "", commands,
		   run_path("TARGET"));
}

static void prints(struct run r, const char *part)
{
	CHECK(has(r.out, part));
}

static void lists_threads(bool core)
{
	struct run r = gdb("-ex 'marcel threads'", core);

	prints(r, "\"the waiter\" waits for semaphore\n");
	prints(r, "\"the locker\" waits for mutex\n");
	prints(r, "\"the woken\" ready\n");
	prints(r, "\"the seed\" new, will run seed\n");
	prints(r, "main, runs on vp 0\n");
}

TEST(threads_are_listed_with_what_they_wait_for)
{
	lists_threads(false);
	lists_threads(true);
}

static void back_traces(bool core)
{
	struct run r = gdb("-ex 'marcel bt the waiter'", core);

	prints(r, "marcel_sem_wait");
	prints(r, "wait_deep (depth=2)");
	prints(r, "wait_deep (depth=1)");
	prints(r, "wait_deep (depth=0)");
	prints(r, "waiter (arg=");
	prints(r, "marcel_thread_first");
	CHECK(strstr(r.out, "corrupt") == NULL);
	r = gdb("-ex 'marcel bt all'", core);
	prints(r, "wait_deep (depth=0)");
	prints(r, "locker (arg=");
	prints(r, "woken (arg=");
	prints(r, "stop_here ()");
	prints(r, "main ()");
}

TEST(blocked_threads_are_back_traced)
{
	back_traces(false);
	back_traces(true);
}

static void selects(bool core)
{
	struct run r = gdb("-ex 'marcel thread the waiter' "
			   "-ex 'frame function wait_deep' -ex 'info locals' "
			   "-ex 'marcel thread' -ex 'bt 1'",
			   core);

	prints(r, "answer = 42");
	prints(r, "#0  stop_here ()");
}

TEST(a_blocked_thread_can_be_looked_at)
{
	selects(false);
	selects(true);
}

static void shows_the_machine(bool core)
{
	struct run r = gdb("-ex 'marcel vps' -ex 'marcel lwps' "
			   "-ex 'marcel queues'",
			   core);

	prints(r, "vp 0: cpu ");
	prints(r, "gdb thread 1, drives vp 0, thread 0x");
	prints(r, "vp 0 seeds: 1\n");
	prints(r, "\"the woken\" ready\n");
	prints(r, "\"the seed\" new, will run seed\n");
}

TEST(processors_and_queues_are_shown)
{
	shows_the_machine(false);
	shows_the_machine(true);
}

TEST(the_program_goes_on_undisturbed)
{
	struct run r = gdb("-ex 'marcel bt all' -ex 'marcel thread the waiter' "
			   "-ex continue",
			   false);

	prints(r, "exited normally");
}

TEST(without_the_library_it_says_so)
{
	struct run r = run(NULL,
			   "gdb -nx -batch -ex 'source %s' "
			   "-ex 'marcel threads' /bin/true 2>&1",
			   run_path("SCRIPT"));

	prints(r, "libmarcel is not loaded, or has no debug information");
}
