/*
 * Run a shell command and look at what it did: for tests of programs.
 *
 * A test leaves no process behind. Those that its commands have left have to
 * end by themselves before it is over; when it fails or takes too long they are
 * killed, and in the latter case what the last command printed is shown.
 */
#ifndef TESTS_RUN_H
#define TESTS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What a command did. The texts are freed by the next run. */
struct run {
	int code; /* exit code, or 128 + signal; -1: killed, it took too long */
	const char *out, *err;
	size_t out_bytes;
};

/* What a command may take; else as long as the test, TEST_TIMEOUT. */
void run_may_take(int seconds);

/*
 * sh -c the command, with `input` on stdin (NULL: empty), and wait for it. The
 * command is replaced by its last program, so that is what signals reach.
 */
struct run run(const char *input, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same in two halves, for what happens in between. One at a time. */
pid_t run_start(const char *input, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
struct run run_wait(void);

/* Wait until it has printed the text so often; false: it has ended before. */
bool run_has_printed(const char *text);
bool run_has_printed_times(const char *text, unsigned times);

/* What has been printed so far; freed by the next call of any of these. */
const char *run_printed(void);

/* Whether the text has that part; if not, it is shown. */
bool has(const char *text, const char *part);

/* How often the part is in the text, side by side. */
unsigned count(const char *text, const char *part);

/*
 * A folder of this program's, of which nothing is left when that ends. It is
 * TMPDIR, so what commands make with mktemp(1) is there, too.
 */
const char *run_folder(void);

/* The value of an environment variable that the build must have set. */
const char *run_path(const char *variable);

#endif
