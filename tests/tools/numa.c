/*
 * tools/lab/numa: what fails in a guest makes it fail, and is shown. Its part
 * in there is run here, and its programs are scripts: what guests and the true
 * ones do is for tests/tools/vm.c and whoever runs it.
 */
#include "../check.h"
#include "../run.h"

#include <stdlib.h>

/* They pass, but one that skips, one that fails and one that dies. */
#define PROGRAMS                                                               \
	"d=$(mktemp -d); mkdir -p $d/tests/marcel $d/tests/pioman; "           \
	"for p in $(sed -n "                                                   \
	"'s/^\\(marcel\\|pioman\\)\\(\\/[a-z_]*\\).*/\\1\\2/p' "               \
	"\"$NUMA\"); do "                                                      \
	"printf '#!/bin/sh\\necho 1..1\\necho ok 1 - a\\n' >$d/tests/$p; "     \
	"done; cd $d/tests/marcel; "                                           \
	"printf '#!/bin/sh\\necho 1..1\\necho \"ok 1 - a # SKIP\""             \
	"\\n' >marcel_topo_topo; "                                             \
	"printf '#!/bin/sh\\necho 1..2\\necho ok 1 - a\\necho not ok 2 - "     \
	"b\\nexit 1\\n' >marcel_os_affinity; "                                 \
	"printf '#!/bin/sh\\necho 1..2\\necho ok 1 - a\\nkill -9 $$\\n' "      \
	">marcel_sched_start; "                                                \
	"chmod +x $d/tests/*/*; "

TEST(what_fails_is_counted_and_shown)
{
	struct run r = run(NULL, PROGRAMS "\"$NUMA\" inside $d 4x2; code=$?; "
					  "rm -r $d; exit $code");

	CHECK(has(r.out, "topo_here               1 passed, 0 failed, 0 sk"));
	CHECK(has(r.out, "topo_topo               0 passed, 0 failed, 1 sk"));
	CHECK(has(r.out, "os_affinity             1 passed, 1 failed, 0 sk"));
	CHECK(has(r.out, "    | not ok 2 - b\n"));
	CHECK(has(r.out, "sched_start             1 passed, 1 failed, 0 sk"));
	CHECK(has(r.out, "    | exit code 137\n"));
	CHECK(has(r.out, "4x2: 8 passed, 2 failed\n"));
	CHECK_INT(r.code, 1);
}

TEST(wrong_arguments_are_named)
{
	static const char *const bad[][2] = {
		{ "8x8", "MACHINE is 4x4 or 4x2, not '8x8'" },
		{ "--build", "--build wants a folder" },
		{ "--build /none 4x4", "there is no /none" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run r = run(NULL, "exec \"$NUMA\" %s", bad[i][0]);

		CHECK(has(r.err, bad[i][1]));
		CHECK_INT(r.code, 2);
	}
}
