/*
 * Ranks on hosts that are namespaces (tools/lab/net), for tests. The build says
 * where NET, MPIRUN and RANK (host_rank.c) are.
 */
#ifndef TESTS_NMAD_DRIVERS_LAB_H
#define TESTS_NMAD_DRIVERS_LAB_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check.h"
#include "../../run.h"

/* As a comment in TAP. */
static inline void show(const char *text)
{
	for (bool begin = true; *text != '\0'; begin = *text++ == '\n')
		printf(begin ? "# %c" : "%c", *text);
	printf("\n");
}

/* Two hosts with these rails, and a script beside them: no single quotes. */
static inline struct run lab(const char *rates, const char *script)
{
	struct run r =
		run(NULL, "exec \"$NET\" up 2 %s bash -o pipefail -c '%s'",
		    rates, script);

	if (r.code == 77)
		check_skip(strtok(strdup(r.err), "\n"));
	return r;
}

static void went_well(const struct run *r)
{
	if (r->code != 0)
		show(r->err);
	CHECK_INT(r->code, 0);
}

#define RANKS(n) "\"$MPIRUN\" -n " #n " \"$NET\" rank "
#define RANK     "\"$RANK\" "

#define OBEYED(how) "\"$RANK\" " how " | \"$NET\" obey"

#endif
