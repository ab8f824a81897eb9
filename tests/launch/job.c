/*
 * Jobs under any launcher: job.h.
 */
#include "launch.h"

#include <signal.h>
#include <string.h>

void job_exchanges(const char *launcher)
{
	for (int n = 1; n <= 8; n += n == 1 ? 1 : 3) {
		struct run r = run(NULL, "exec %s -n %d '%s' exchange",
				   launcher, n, RANK);

		CHECK_STR(r.out, "");
		CHECK_INT(r.code, 0);
	}
}

void job_has_one_key(const char *launcher)
{
	struct run r = run(NULL, "exec %s -n 3 '%s' info", launcher, RANK);
	const char *key = strstr(r.out, "key ");
	char one[64];

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, " 0/3 local 0/3 node 0 key "));
	CHECK(has(r.out, " 2/3 local 2/3 node 0 key "));
	snprintf(one, sizeof(one), "%.37s", key);
	CHECK_INT(strlen(one), 37);
	CHECK_INT(count(r.out, one), 3);
	CHECK_INT(count(r.out, "00000000"), 0);
}

void job_aborts(const char *launcher)
{
	struct run r =
		run(NULL, "exec %s -n 2 '%s' abort 1 42", launcher, RANK);

	CHECK_INT(r.code, 42);
	CHECK(has(r.err, "the test wants an abort"));
}

/* The most that a rank asks: requests, and how many of these for a value. */
static void most_asked(const char *launcher, int ranks, const char *driver,
		       int most[2])
{
	struct run r = run(NULL,
			   "export NMAD_DRIVER=%s; exec %s -n %d "
			   "\"$REQUESTS\" \"$START\"",
			   driver, launcher, ranks);
	const char *at = r.out;
	int n[2];

	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, "requests "), ranks);
	most[0] = most[1] = 0;
	while ((at = strstr(at, "requests ")) != NULL) {
		CHECK_INT(sscanf(at, "requests %d values %d", &n[0], &n[1]), 2);
		for (int i = 0; i < 2; i++)
			most[i] = n[i] > most[i] ? n[i] : most[i];
		at++;
	}
}

/*
 * At the end each of 17 meets those that are 1, 2, 4 and 8 (or 16) before and
 * behind it. It may ask where any of them is: who is called first does not.
 */
enum { MET = 8 };

void job_asks_little(const char *launcher)
{
	int few[2], many[2];

	most_asked(launcher, 2, "shm", few);
	most_asked(launcher, 17, "shm", many);
	CHECK(few[1] > 0);
	CHECK_INT(many[0], few[0]);
	CHECK_INT(many[1], few[1]);
	most_asked(launcher, 2, "tcp", few);
	most_asked(launcher, 17, "tcp", many);
	CHECK(few[1] > 0);
	CHECK(many[0] <= few[0] + MET);
	CHECK(many[1] <= few[1] + MET);
}

void job_talks(const char *launcher)
{
	struct run r = run(NULL, "exec %s -n 1 \"$TALK\"", launcher);

	CHECK(has(r.out, "1 talked, near: 1\n"));
	CHECK_INT(r.code, 0);
	r = run(NULL, "exec %s -n 8 \"$TALK\"", launcher);
	CHECK(has(r.out, "8 talked, near: "));
	CHECK_INT(r.code, 0);
	r = run(NULL, "exec %s -n 2 \"$TALK\" exit 3", launcher);
	CHECK_INT(r.code, 3);
}

void job_is_killed(const char *launcher)
{
	struct run r = run(NULL, "exec %s -n 4 \"$TALK\" kill", launcher);

	/* What was printed last may be lost; the shell says 126 and 127. */
	CHECK(r.code > 0 && r.code != 126 && r.code != 127);
}

/* That they end is made sure of after each test. */
void job_ends_without_launcher(const char *launcher)
{
	static const char by[] = "launched by process ";
	char dot = 0;
	int pid = 0;

	run_start(NULL, "exec %s -n 3 \"$TALK\" hang", launcher);
	CHECK(run_has_printed(by));
	CHECK(run_has_printed(".\n")); /* launchers may pass on half a line */
	CHECK_INT(sscanf(strstr(run_printed(), by) + sizeof(by) - 1, "%d%c",
			 &pid, &dot),
		  2);
	CHECK_INT(dot, '.');
	kill(pid, SIGKILL);
	CHECK(run_wait().code != 0);
}

/* Whether a rank has told all about the receive that never ends. */
static bool has_told(const char *out, int rank)
{
	char text[64];
	const char *at;

	snprintf(text, sizeof(text),
		 "in MPI_Recv waits for a receive from rank %d", !rank);
	at = strstr(out, text);
	snprintf(text, sizeof(text), "this is rank %d of 2", rank);
	at = at != NULL ? strstr(at, text) : NULL;
	return at != NULL && strstr(at, "end of report") != NULL;
}

/* Who had to wait for the other for a second before has told that, too. */
void job_tells_of_hangs(const char *launcher)
{
	unsigned reports = 2;
	struct run r;
	pid_t pid = run_start(NULL,
			      "export MARCEL_DEADLOCK=report "
			      "MARCEL_DEADLOCK_QUIET_S=1; "
			      "exec %s -n 2 \"$TALK\" hang 2>&1",
			      launcher);

	do
		CHECK(run_has_printed_times("end of report", reports++));
	while (!has_told(run_printed(), 0) || !has_told(run_printed(), 1));
	kill(pid, SIGTERM);
	r = run_wait();
	CHECK(count(r.out, "quiet, not provably dead, for ") >= 2);
	CHECK_INT(count(r.out, "deadlock:"), 0);
	r = run(NULL,
		"export MARCEL_DEADLOCK=abort; "
		"exec %s -n 2 \"$TALK\" lock 2>&1",
		launcher);
	CHECK(has(r.out, "nothing in this process can ever move again"));
	CHECK(r.code != 0);
}

void job_children_are_singletons(const char *launcher)
{
	struct run r = run(NULL, "exec %s -n 2 '%s' child", launcher, RANK);

	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, "singleton 0/1 local 0/1"), 2);
	CHECK_INT(count(r.err, "srun started"), 0);
}

void job_outlives_a_rank(const char *launcher)
{
	struct run r = run(NULL, "exec %s -n 4 \"$TALK\" outlive", launcher);

	for (int rank = 0; rank < 4; rank++) {
		char line[32];

		snprintf(line, sizeof(line), "%d outlived it\n", rank);
		CHECK_INT(count(r.out, line), rank != 1);
	}
	CHECK_INT(r.code, 128 + SIGKILL);
}
