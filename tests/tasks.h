/*
 * The process's kernel threads.
 */
#ifndef TESTS_TASKS_H
#define TESTS_TASKS_H

#include <dirent.h>

#include "check.h"

static inline int kernel_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 2;
}

#endif
