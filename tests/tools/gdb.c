/*
 * tools/gdb/marcel.py shows the user threads of a live process, of the ranks of
 * a job and of a core file, and processes go on as if nothing had been.
 *
 * gdb takes its time to start: it is started once for each of these, is asked
 * everything there, and each answer has its command as title.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GDB          "gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set width 0' "
#define TITLE        "=== "
#define ASK(command) "-ex 'echo " TITLE command "\\n' -ex '" command "' "

/* --- what gdb says --- */

/* clang-format off */
static const char on_threads[] =
	ASK("marcel threads")
	ASK("marcel bt the waiter")
	ASK("marcel bt all")
	ASK("marcel bt main")
	ASK("marcel bt the comer")
	ASK("marcel bt nobody")
	ASK("marcel stacks")
	ASK("marcel vps")
	ASK("marcel lwps")
	ASK("marcel queues")
	ASK("marcel thread the waiter")
	"-ex 'frame function wait_deep' -ex 'info locals' "
	ASK("thread 2") "-ex bt "
	ASK("thread 1") "-ex bt -ex 'marcel thread' -ex 'bt 1' "
	ASK("continue");

static const char on_messages[] =
	ASK("marcel threads")
	ASK("marcel match")
	ASK("marcel gates")
	ASK("marcel ltasks")
	ASK("continue");
/* clang-format on */

static struct look {
	const char *target, *commands;
	bool core;
	char *said; /* NULL: nobody has asked yet */
} looks[] = {
	{ "TARGET", on_threads, false, NULL },
	{ "TARGET", on_threads, true, NULL },
	{ "MPI_TARGET", on_messages, false, NULL },
	{ "MPI_TARGET", on_messages, true, NULL },
};

enum { LIVE, CORE, MPI_LIVE, MPI_CORE };

/*
 * The core file of a target that has died of SIGSEGV in a user thread: that of
 * the kernel, or where this puts it elsewhere (core_pattern), gdb's at the
 * signal; gdb stops writing at a guard inside a mapping.
 */
static void make_core(const char *target)
{
	struct run r = run(NULL,
			   "cd '%s'; ulimit -c unlimited; '%s' crash; "
			   "mv core* %s",
			   run_folder(), run_path(target), target);

	CHECK(has(r.err, "Segmentation fault"));
	if (r.code == 0)
		return;
	printf("# the kernel left no core file there: gdb makes it\n");
	r = run(NULL,
		"MARCEL_GUARDS=mprotect gdb -nx -batch -ex run "
		"-ex 'generate-core-file %s/%s' --args '%s' crash",
		run_folder(), target, run_path(target));
	CHECK_INT(r.code, 0);
}

static void ask(struct look *look)
{
	char core[64];
	struct run r;

	if (look->core)
		make_core(look->target);
	snprintf(core, sizeof(core), "-core '%s/%s'", run_folder(),
		 look->target);
	r = run(NULL, GDB "-ex 'source %s' %s %s '%s' 2>&1", run_path("SCRIPT"),
		look->core ? core : "-ex 'break stop_here' -ex run",
		look->commands, run_path(look->target));
	look->said = strdup(r.out);
	CHECK(look->said != NULL);
}

/* A piece of a text, up to where another one begins; until the next call. */
static const char *cut(const char *from, const char *end)
{
	static char *text;
	const char *to = strstr(from, end);

	free(text);
	text = strndup(from, to == NULL ? strlen(from) : (size_t)(to - from));
	CHECK(text != NULL);
	return text;
}

/* What gdb has answered. */
static const char *answer(int which, const char *command)
{
	char title[64];
	const char *at;

	if (looks[which].said == NULL)
		ask(&looks[which]);
	snprintf(title, sizeof(title), TITLE "%s\n", command);
	at = strstr(looks[which].said, title);
	if (at == NULL)
		CHECK(has(looks[which].said, title));
	return cut(at + strlen(title), TITLE);
}

/*
 * The line about a thread has, after `before`, an address and then, if that is
 * not "", `after`.
 */
static void waits(const char *said, const char *name, const char *before,
		  const char *after)
{
	char start[64], line[256];
	const char *at;

	snprintf(start, sizeof(start), "%s waits for %s0x", name, before);
	CHECK(has(said, start));
	at = strstr(said, start);
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	at = line + strlen(start);
	CHECK(has(at + strspn(at, "0123456789abcdef"), after));
}

/* --- threads --- */

static void lists_threads(int which)
{
	const char *said = answer(which, "marcel threads");

	CHECK(has(said, "\"the woken\" ready\n"));
	CHECK(has(said, "\"the seed\" new, will run seed\n"));
	CHECK(has(said, which == CORE ? "\"the crasher\" runs on vp 0\n"
				      : "main, runs on vp 0\n"));
	waits(said, "\"the waiter\"", "semaphore ", " <sem>");
	waits(said, "\"the locker\"", "mutex ", " <mutex>, held by 0x");
	waits(said, "\"the joiner\"", "join of ", " \"the waiter\"");
	waits(said, "\"the conditional\"", "condition ",
	      " <cond> with mutex 0x");
	waits(said, "\"the conditional\"", "condition ", " <outer>");
	waits(said, "\"the comer\"", "barrier ",
	      " <barrier>, 2 of 3 have come");
	waits(said, "\"the listener\"", "event ", " <event>");
	waits(said, "\"the chooser\"", "any of event ", " <several>; event 0x");
	waits(said, "foreign,", "semaphore ", " <abroad>");
}

TEST(threads_are_listed_with_what_they_wait_for)
{
	lists_threads(LIVE);
	lists_threads(CORE);
}

static void back_traces(int which)
{
	const char *said = answer(which, "marcel bt the waiter");

	CHECK(has(said, "marcel_sem_wait"));
	CHECK(has(said, "wait_deep (depth=2)"));
	CHECK(has(said, "wait_deep (depth=1)"));
	CHECK(has(said, "wait_deep (depth=0)"));
	CHECK(has(said, "waiter (arg="));
	CHECK(has(said, "marcel_thread_first"));
	CHECK(strstr(said, "corrupt") == NULL);
	said = answer(which, "marcel bt all");
	CHECK(has(said, "wait_deep (depth=0)"));
	CHECK(has(said, "locker (arg="));
	CHECK(has(said, "woken (arg="));
	CHECK(has(said, "foreigner (arg="));
	CHECK(has(said, which == CORE ? "crasher (arg=0x0)" : "stop_here ()"));
	CHECK(has(said, "main ("));
	CHECK(has(answer(which, "marcel bt main"), "main (argc="));
	said = answer(which, "marcel bt the comer");
	CHECK(has(said, "2 threads are called the comer: take one of 0x"));
	said = answer(which, "marcel bt nobody");
	CHECK(has(said, "no thread nobody: see marcel threads"));
}

TEST(threads_are_back_traced)
{
	back_traces(LIVE);
	back_traces(CORE);
}

/* The line before the first that has `text`. */
static const char *line_before(const char *said, const char *text)
{
	const char *at = strstr(said, text);

	CHECK(at != NULL);
	while (at > said && at[-1] != '\n')
		at--;
	CHECK(at > said);
	for (at--; at > said && at[-1] != '\n'; at--)
		;
	return at;
}

/* Two have come to the barrier by the same way; all others are alone. */
static void groups(int which)
{
	const char *said = answer(which, "marcel stacks");

	CHECK(strncmp(said, "2 threads:\n  0x", 15) == 0);
	CHECK_INT(count(said, "\"the comer\""), 2);
	CHECK_INT(count(said, "comer (arg="), 1);
	CHECK_INT(count(said, " threads:\n"), 1);
	CHECK_INT(count(said, "wait_deep (depth="), 3);
	CHECK(strncmp(line_before(said, "\"the waiter\""), "1 thread:\n", 10) ==
	      0);
	CHECK(strncmp(line_before(said, "\"the seed\""), "1 thread:\n", 10) ==
	      0);
	CHECK(has(said, "foreigner (arg="));
}

TEST(stacks_are_grouped)
{
	groups(LIVE);
	groups(CORE);
}

static void selects(int which)
{
	const char *here =
		which == CORE ? " in crash (at=0x0)" : "#0  stop_here ()";

	CHECK(has(answer(which, "marcel thread the waiter"), "answer = 42"));
	/* Another kernel thread shows itself. */
	CHECK(has(answer(which, "thread 2"), "#1 "));
	CHECK(strstr(answer(which, "thread 2"), "wait_deep") == NULL);
	CHECK(has(answer(which, "thread 1"), "wait_deep"));
	CHECK(has(answer(which, "thread 1"), here));
}

TEST(a_blocked_thread_can_be_looked_at)
{
	selects(LIVE);
	selects(CORE);
}

static void shows_the_machine(int which)
{
	CHECK(has(answer(which, "marcel vps"), "vp 0: cpu "));
	CHECK(has(answer(which, "marcel lwps"),
		  "gdb thread 1, drives vp 0, thread 0x"));
	CHECK(has(answer(which, "marcel queues"), "vp 0 seeds: 1\n"));
	CHECK(has(answer(which, "marcel queues"), "\"the woken\" ready\n"));
	CHECK(has(answer(which, "marcel queues"),
		  "\"the seed\" new, will run seed\n"));
}

TEST(processors_and_queues_are_shown)
{
	shows_the_machine(LIVE);
	shows_the_machine(CORE);
}

/* --- messages --- */

static void shows_messages(int which)
{
	const char *said = answer(which, "marcel threads");

	waits(said, "\"the receiver\"", "receive ",
	      " from rank 0, tag 7, 12 bytes, MPI_COMM_WORLD");
	waits(said, "\"the taker\"", "receive ",
	      " from anyone, any tag, 100 bytes, the side");
	waits(said, "\"the sender\"", "send ",
	      " to rank 0, tag 11, 40 bytes, MPI_COMM_WORLD, synchronous");
	waits(said, "\"the chooser\"", "any of receive ", " tag 21, 8 bytes, ");
	waits(said, "\"the chooser\"", "any of receive ", " tag 22, 8 bytes, ");
	said = answer(which, "marcel match");
	CHECK(has(said, "posted: 4\n"));
	CHECK(has(said, " from rank 0, tag 7, 12 bytes, MPI_COMM_WORLD\n"));
	CHECK(has(said, " from anyone, any tag, 100 bytes, the side\n"));
	CHECK(has(said, "unexpected: 2\n"));
	CHECK(has(said, " from rank 0, tag 11, 40 bytes, MPI_COMM_WORLD, "));
	CHECK(has(said,
		  " from rank 0, tag 9, 5 bytes, MPI_COMM_WORLD, eager\n"));
	said = answer(which, "marcel gates");
	CHECK(has(said, "rank 0 of 1, "));
	CHECK(has(said, "rail 0: self, "));
	CHECK(has(said, "gate 0: self, packets "));
	CHECK(has(said, "sent, to be matched: 1\n"));
	said = answer(which, "marcel ltasks");
	CHECK(has(said, "queue of machine 0: 1 ltasks"));
	CHECK(has(said, "submitted, "));
}

TEST(messages_are_shown_and_who_waits_for_them)
{
	shows_messages(MPI_LIVE);
	shows_messages(MPI_CORE);
}

TEST(the_program_goes_on_undisturbed)
{
	CHECK(has(answer(LIVE, "continue"), "exited normally"));
	CHECK(has(answer(MPI_LIVE, "continue"), "exited normally"));
}

/* What the nth command has printed of a rank. */
static const char *of_rank(struct run r, int command, int rank)
{
	char start[32];
	const char *at = r.out;

	snprintf(start, sizeof(start), "--- rank %d of 2, pid ", rank);
	for (int i = 0; i <= command; i++) {
		at = strstr(at, start);
		CHECK(at != NULL);
		at += strlen(start);
	}
	return cut(at, "--- rank");
}

static void knows_the_other(struct run r, int rank)
{
	enum { BT, MATCH, GATES, LTASKS };
	char line[100];

	snprintf(line, sizeof(line),
		 " from rank %d, tag 5, 4 bytes, MPI_COMM_WORLD", !rank);
	waits(of_rank(r, BT, rank), "\" main,", "receive ", line);
	CHECK(has(of_rank(r, BT, rank), " hang ("));
	snprintf(line, sizeof(line), " to rank %d, tag 11, 40 bytes, ", !rank);
	waits(of_rank(r, BT, rank), "\"the sender\"", "send ", line);
	CHECK(has(of_rank(r, BT, rank), " sender (arg="));
	CHECK(has(of_rank(r, MATCH, rank), "posted: 5\n"));
	CHECK(has(of_rank(r, MATCH, rank), "unexpected: 3\n"));
	snprintf(line, sizeof(line), " from rank %d, tag 13, 1048576 bytes, ",
		 !rank);
	CHECK(has(of_rank(r, MATCH, rank), line));
	CHECK(has(of_rank(r, MATCH, rank), ", announced\n"));
	snprintf(line, sizeof(line), "rank %d of 2, ", rank);
	CHECK(has(of_rank(r, GATES, rank), line));
	snprintf(line, sizeof(line), "gate %d: shm, packets ", !rank);
	CHECK(has(of_rank(r, GATES, rank), line));
	CHECK(has(of_rank(r, LTASKS, rank), "queue of machine 0: 1 ltasks"));
}

/* Two ranks that wait for each other; afterwards they are told to go on. */
TEST(ranks_of_a_job_are_looked_at_and_go_on)
{
	/* clang-format off */
	struct run r = run(
		NULL,
		"mkfifo '%s/out'; "
		"'%s' -n 2 '%s' >'%s/out' & P=$!; exec 4<'%s/out'; "
		"n=0; while [ $n -lt 2 ] && read -r l <&4; do n=$((n + 1)); done; "
		GDB "-ex 'source %s' -ex \"marcel attach $P\" "
		"-ex 'marcel each marcel bt all' "
		"-ex 'marcel each marcel match' "
		"-ex 'marcel each marcel gates' "
		"-ex 'marcel each marcel ltasks' 2>&1 4<&-; "
		"kill -USR1 $P; cat <&4; wait $P; echo \"job: $?\"",
		run_folder(), run_path("MPIRUN"), run_path("MPI_TARGET"),
		run_folder(), run_folder(), run_path("SCRIPT"));
	/* clang-format on */

	CHECK(has(r.out, "job: 0\n"));
	if (strstr(r.out, "ptrace: ") != NULL)
		check_skip("the kernel does not let gdb attach");
	CHECK(has(r.out, "inferior 1: rank "));
	CHECK(has(r.out, "inferior 2: rank "));
	knows_the_other(r, 0);
	knows_the_other(r, 1);
}

/* --- what it does not know --- */

TEST(commands_explain_themselves)
{
	struct run r = run(
		NULL,
		GDB "-ex 'source %s' -ex 'help marcel' "
		    "-ex 'help marcel match' -ex 'marcel threads' "
		    "-ex 'marcel trheads' -ex 'marcel attach' "
		    "-ex 'marcel attach 999999999' -ex \"marcel attach $$\" "
		    "-ex starti -ex 'marcel threads' /bin/true 2>&1",
		run_path("SCRIPT"));

	CHECK(has(r.out, "marcel bt"));
	CHECK(has(r.out, "List the receives and probes that are posted"));
	CHECK(has(r.out, "nothing to look at: start the program, "));
	CHECK(has(r.out, "no such command: marcel trheads"));
	CHECK(has(r.out, "marcel attach: pids are wanted, "));
	CHECK(has(r.out, "999999999: there is no such process"));
	CHECK(has(r.out,
		  ": neither it nor what it has started uses libmarcel"));
	CHECK(has(r.out,
		  "libmarcel.so is not loaded, nor is it in the program"));
	CHECK(strstr(r.out, "Python Exception") == NULL);
}

TEST(a_library_that_was_stripped_is_told)
{
	struct run r = run(
		NULL,
		"cd '%s' && lib=$(ldd '%s' | sed -n 's/.*libmarcel[^ ]* => "
		"\\([^ ]*\\) .*/\\1/p') && strip -o $(basename $lib) $lib && "
		"LD_LIBRARY_PATH=. " GDB "-ex 'source %s' "
		"-ex 'break stop_here' -ex run -ex 'marcel threads' "
		"-ex 'marcel ltasks' -ex 'marcel match' '%s' 2>&1",
		run_folder(), run_path("TARGET"), run_path("SCRIPT"),
		run_path("TARGET"));

	CHECK(has(r.out, "libmarcel.so."));
	CHECK(has(r.out, " has no debug information: build it with -Ddebug"));
	CHECK(has(r.out, "libpioman.so is not loaded, nor is it in "));
	CHECK(has(r.out, "libnmad.so is not loaded, nor is it in "));
	CHECK(strstr(r.out, "Python Exception") == NULL);
}
