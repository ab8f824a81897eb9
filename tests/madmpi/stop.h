/*
 * Another process of this machine that is stopped: it does nothing until it is
 * sent SIGCONT.
 */
#ifndef TESTS_MADMPI_STOP_H
#define TESTS_MADMPI_STOP_H

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>

#include "program.h"

/* 'T' once it is stopped. */
static inline char stop_state(pid_t pid)
{
	char path[64], text[256], *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	EXPECT(f != NULL && fgets(text, sizeof(text), f) != NULL);
	fclose(f);
	end = strrchr(text, ')');
	EXPECT(end != NULL);
	return end[2];
}

/* On return it is. */
static inline void stop(pid_t pid)
{
	EXPECT(kill(pid, SIGSTOP) == 0);
	while (stop_state(pid) != 'T')
		sched_yield();
}

#endif
