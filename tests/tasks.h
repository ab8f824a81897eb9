/*
 * The process's kernel threads. Who has been joined is on the kernel's list for
 * a while, as one that is exiting: it does not count.
 */
#ifndef TESTS_TASKS_H
#define TESTS_TASKS_H

#include <dirent.h>
#include <stdio.h>

#include "check.h"

/* False: it is on its way out, or gone. */
static inline bool kernel_thread_lives(const char *tid)
{
	enum { EXITING = 4 }; /* PF_EXITING */
	unsigned flags = EXITING;
	char path[300], line[512], *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	/* "tid (name) state ppid pgrp session tty tpgid flags ..." */
	if (fgets(line, sizeof(line), f) != NULL &&
	    (end = strrchr(line, ')')) != NULL)
		sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags);
	fclose(f);
	return (flags & EXITING) == 0;
}

static inline int kernel_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	CHECK(dir != NULL);
	while ((e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.' && kernel_thread_lives(e->d_name);
	closedir(dir);
	return n;
}

#endif
