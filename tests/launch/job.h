/*
 * What holds for a job whoever launches it. Launchers are beginnings of shell
 * commands, which "-n N PROGRAM" completes; the program is rank.c, or talk.c
 * for MPI.
 */
#ifndef TESTS_LAUNCH_JOB_H
#define TESTS_LAUNCH_JOB_H

/* Jobs of several sizes: every rank reads the values of all. */
void job_exchanges(const char *launcher);

/* Three ranks of one host. */
void job_has_one_key(const char *launcher);

/* The code that a rank aborts with is the launcher's. */
void job_aborts(const char *launcher);

/*
 * A rank that starts and ends asks as much in a job of 17 as in one of 2; over
 * tcp also for the addresses of those whom it meets at the end, who are as many
 * as twice the logarithm of the ranks. PMI_FD only.
 */
void job_asks_little(const char *launcher);

/*
 * MPI programs: one process and eight, which are more than the cores of most
 * machines that tests run on, get right results, what is printed arrives, and
 * the exit code of a rank is the launcher's.
 */
void job_talks(const char *launcher);

/* Who is killed with SIGKILL takes the job of four with it. */
void job_is_killed(const char *launcher);

/* Three ranks that wait for each other end when who has started them does. */
void job_ends_without_launcher(const char *launcher);

/*
 * With MARCEL_DEADLOCK both of two ranks that wait for each other say so after
 * a second; and one that hangs by itself says that, and ends.
 */
void job_tells_of_hangs(const char *launcher);

void job_children_are_singletons(const char *launcher);

/* Rank 1 is killed; the launcher ends nobody else, and says so by its code. */
void job_outlives_a_rank(const char *launcher);

#endif
