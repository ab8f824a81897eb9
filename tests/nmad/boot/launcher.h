/*
 * Launchers for the tests of boot's clients: a thread plays one, which reads a
 * request and answers with the next of its script. A test has at most one. The
 * variables of all launchers are unset before and after each test.
 */
#ifndef TESTS_NMAD_BOOT_LAUNCHER_H
#define TESTS_NMAD_BOOT_LAUNCHER_H

#include <stdbool.h>

/*
 * Start a launcher and set the environment of its rank 1 of 2. The script ends
 * with NULL: then it hangs up. An answer is one or more lines; without a
 * newline at its end one of PMI-2, which its length is put before, or, behind a
 * '#', bytes as they are. The first request is a line.
 */
void launch(const char *const *lines);

/* The same at a port, for PMI_PORT. */
void launch_at_port(const char *const *lines);

/* Wait until it has. */
void launcher_leaves(void);

/* What is written on stderr between these two is in said[]. */
void listen_to_stderr(void);
void heard(void);
extern char said[4096];

bool has_said(const char *part);

/* Opening fails so, and says this. */
void refuses(int rc, const char *message);

/* A launcher that says these lines is refused so. */
void launcher_refused(const char *const *lines, int rc, const char *message);

#endif
