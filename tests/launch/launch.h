/*
 * For tests of launchers: where the programs are, and what became of processes.
 */
#ifndef TESTS_LAUNCH_H
#define TESTS_LAUNCH_H

#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <unistd.h>

#include "job.h"

#define MPIRUN run_path("MPIRUN")
#define RANK   run_path("RANK")

/* The state letter of a process, 0 if it is gone. */
static inline char launch_state(int pid)
{
	char path[64], c = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%*d (%*[^)]) %c", &c) != 1)
		c = 0;
	fclose(f);
	return c;
}

/* Wait until it is so. */
static inline void becomes(int pid, char want)
{
	for (;;) {
		char now = launch_state(pid);

		if (now == want || (want == 0 && now == 'Z'))
			return;
		usleep(1000);
	}
}

#endif
