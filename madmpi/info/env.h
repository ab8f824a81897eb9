/*
 * What the process was started with, as the standard names it.
 */
#ifndef MADMPI_INFO_ENV_H
#define MADMPI_INFO_ENV_H

/*
 * Calls set(arg, key, value) for each of the keys of MPI_INFO_ENV that is
 * known: command, argv, maxprocs, host, arch, wdir, thread_level. What has more
 * than MPI_MAX_INFO_VAL - 1 characters is cut.
 */
void madmpi_info_env(void (*set)(void *arg, const char *key, const char *value),
		     void *arg);

#endif
