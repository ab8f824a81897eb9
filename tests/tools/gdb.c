/*
 * tools/gdb/marcel.py shows the user threads of a live process and of a core
 * file, and the process goes on as if nothing had been.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/marcel-gdb.XXXXXX";

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	(void)!system(command);
}

/* gdb's words about a target, stopped; then about its core. */
static struct run gdb_on(const char *target, const char *commands, bool core)
{
	struct run r;
	char file[64];

	if (folder[sizeof(folder) - 2] == 'X') {
		CHECK(mkdtemp(folder) != NULL);
		atexit(remove_folder);
	}
	snprintf(file, sizeof(file), "%s/%s", folder, target);
	if (core && access(file, F_OK) != 0) {
		/* It stops at a guard inside a mapping. */
		r = run(NULL,
			"MARCEL_GUARDS=mprotect "
			"gdb -nx -batch -ex 'break stop_here' -ex run "
			"-ex 'generate-core-file %s' '%s'",
			file, run_path(target));
		CHECK_INT(r.code, 0);
	}
	return run(NULL,
		   "gdb -nx -batch -ex 'set debuginfod enabled off' "
		   "-ex 'set width 0' -ex 'source %s' "
		   "%s %s %s '%s' 2>&1",
		   run_path("SCRIPT"),
		   core ? "-core" : "-ex 'break stop_here' -ex run",
		   core ? file : "", commands, run_path(target));
}

static struct run gdb(const char *commands, bool core)
{
	return gdb_on("TARGET", commands, core);
}

static struct run gdb_mpi(const char *commands, bool core)
{
	return gdb_on("MPI_TARGET", commands, core);
}

static void prints(struct run r, const char *part)
{
	CHECK(has(r.out, part));
}

/*
 * The line about a thread; after `before` there are an address and then, if
 * that is not "", `after`.
 */
static void waits(struct run r, const char *name, const char *before,
		  const char *after)
{
	char start[64], line[256];
	const char *at;

	snprintf(start, sizeof(start), "%s waits for %s0x", name, before);
	prints(r, start);
	at = strstr(r.out, start);
	if (at == NULL)
		return;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	at = line + strlen(start);
	CHECK(has(at + strspn(at, "0123456789abcdef"), after));
}

static void lists_threads(bool core)
{
	struct run r = gdb("-ex 'marcel threads'", core);

	prints(r, "\"the woken\" ready\n");
	prints(r, "\"the seed\" new, will run seed\n");
	prints(r, "main, runs on vp 0\n");
	waits(r, "\"the waiter\"", "semaphore ", " <sem>");
	waits(r, "\"the locker\"", "mutex ", " <mutex>, held by 0x");
	waits(r, "\"the joiner\"", "join of ", " \"the waiter\"");
	waits(r, "\"the conditional\"", "condition ", " <cond> with mutex 0x");
	waits(r, "\"the conditional\"", "condition ", " <outer>");
	waits(r, "\"the comer\"", "barrier ", " <barrier>, 1 of 2 have come");
	waits(r, "\"the listener\"", "event ", " <event>");
	waits(r, "\"the chooser\"", "any of event ", " <several>; event 0x");
	waits(r, "foreign,", "semaphore ", " <abroad>");
}

TEST(threads_are_listed_with_what_they_wait_for)
{
	lists_threads(false);
	lists_threads(true);
}

static void knows_messages(struct run r)
{
	waits(r, "\"the receiver\"", "receive ",
	      " from rank 0, tag 7, 12 bytes, MPI_COMM_WORLD");
	waits(r, "\"the taker\"", "receive ",
	      " from anyone, any tag, 100 bytes, the side");
	waits(r, "\"the sender\"", "send ",
	      " to rank 0, tag 11, 40 bytes, MPI_COMM_WORLD, synchronous");
	waits(r, "\"the chooser\"", "any of receive ", " tag 21, 8 bytes, ");
	waits(r, "\"the chooser\"", "any of receive ", " tag 22, 8 bytes, ");
}

static void shows_messages(bool core)
{
	struct run r = gdb_mpi("-ex 'marcel threads' -ex 'marcel match' "
			       "-ex 'marcel gates' -ex 'marcel ltasks'",
			       core);

	knows_messages(r);
	prints(r, "posted: 4\n");
	prints(r, " from rank 0, tag 7, 12 bytes, MPI_COMM_WORLD\n");
	prints(r, " from anyone, any tag, 100 bytes, the side\n");
	prints(r, "unexpected: 2\n");
	prints(r, " from rank 0, tag 11, 40 bytes, MPI_COMM_WORLD, ");
	prints(r, " from rank 0, tag 9, 5 bytes, MPI_COMM_WORLD, eager\n");
	prints(r, "rank 0 of 1, ");
	prints(r, "rail 0: self, ");
	prints(r, "gate 0: self, packets ");
	prints(r, "sent, to be matched: 1\n");
	prints(r, "queue of machine 0: 1 ltasks");
	prints(r, "submitted, ");
}

TEST(messages_are_shown_and_who_waits_for_them)
{
	shows_messages(false);
	shows_messages(true);
}

TEST(commands_explain_themselves)
{
	struct run r = gdb("-ex 'help marcel' -ex 'help marcel match'", false);

	prints(r, "marcel bt");
	prints(r, "List the receives and probes that are posted");
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
	r = gdb_mpi("-ex 'marcel threads' -ex 'marcel match' -ex continue",
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
