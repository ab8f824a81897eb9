/*
 * Valgrind follows user threads: it is told of their stacks, takes a switch for
 * one, and finds nothing wrong.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>

TEST(memcheck_finds_nothing)
{
	struct run r = run(NULL,
			   "valgrind -q --error-exitcode=9 --leak-check=full "
			   "--errors-for-leak-kinds=definite,possible '%s'",
			   run_path("TARGET"));

	/* What hwloc says on stderr is its own. */
	if (r.code != 0)
		for (const char *c = r.err; *c != '\0'; c++)
			printf(*c == '\n' ? "\n# " : "%c", *c);
	CHECK_INT(r.code, 0);
}
