/*
 * Run a shell command and look at what it did: for tests of programs.
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

/* What a command may take, and what is waited for what it prints (60 s). */
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

/* What has been printed so far contains the text: waits for it. */
int run_has_printed(const char *text);

/* What has been printed so far; freed by the next call of any of these. */
const char *run_printed(void);

/* Whether the text has that part; if not, it is shown. */
bool has(const char *text, const char *part);

/* The value of an environment variable that the build must have set. */
const char *run_path(const char *variable);

#endif
