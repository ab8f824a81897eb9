/*
 * Out of descriptors, from the first that is opened to the last: a job that
 * cannot do with so few ends, each time, and says why; nobody waits for who is
 * not there.
 */
#include <stdio.h>
#include <string.h>

#include <base/compiler.h>

#include "../../check.h"
#include "../../run.h"

enum {
	LEAST = 5, /* the program is loaded, and finds the launcher */
	ENOUGH = 40,
	/* No order of threads hangs on which descriptor is the last. */
	STEP = BASE_TSAN ? 5 : 1,
};

static void works_or_says_why(const char *driver)
{
	int first = ENOUGH;

	for (int n = LEAST; n <= ENOUGH; n += STEP) {
		struct run r = run(NULL,
				   "NMAD_DRIVER=%s NMAD_TCP_TIMEOUT_MS=2000 "
				   "exec \"$MPIRUN\" -n 3 "
				   "sh -c 'ulimit -n %d; exec \"$RANK\" who'",
				   driver, n);

		if (r.code == 0 && n < first)
			first = n;
		if (r.code == 0)
			continue;
		if (r.code < 0 || r.code > 128 || n == ENOUGH ||
		    strstr(r.err, "Too many open files") == NULL)
			check_fail(__FILE__, __LINE__,
				   "with %d descriptors: code %d, and \"%s\"",
				   n, r.code, r.err);
	}
	printf("# %s: from %d on\n", driver, first);
	CHECK(first > LEAST && first < ENOUGH);
}

TEST(a_job_that_shares_memory_works_or_says_that_it_lacks_descriptors)
{
	works_or_says_why("shm");
}

TEST(a_job_of_tcp_works_or_says_that_it_lacks_descriptors)
{
	works_or_says_why("tcp");
}
