/*
 * What holds for a job whoever launches it. Launchers are beginnings of shell
 * commands, which "-n N PROGRAM" completes; the program is rank.c.
 */
#ifndef TESTS_LAUNCH_JOB_H
#define TESTS_LAUNCH_JOB_H

#include <stdbool.h>

/* If not, the text is shown. */
bool has(const char *text, const char *part);

int count(const char *text, const char *part);

/* Jobs of several sizes: every rank reads the values of all. */
void job_exchanges(const char *launcher);

/* Three ranks of one host. */
void job_has_one_key(const char *launcher);

/* The code that a rank aborts with is the launcher's. */
void job_aborts(const char *launcher);

void job_children_are_singletons(const char *launcher);

#endif
