/*
 * Ranks under the launcher of Open MPI, which speaks PMIx.
 */
#include "launch.h"

#define ORTE                                                                   \
	"mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none "

static void need_openmpi(void)
{
	if (run(NULL, "command -v mpirun.openmpi").code != 0)
		check_skip("mpirun.openmpi is not installed (package "
			   "openmpi-bin)");
	if (run(NULL, "ldconfig -p | grep -q libpmix.so.2").code != 0)
		check_skip("there is no PMIx here (package libpmix2)");
}

TEST(ranks_exchange_values)
{
	need_openmpi();
	job_exchanges(ORTE);
}

TEST(a_job_has_one_key)
{
	need_openmpi();
	job_has_one_key(ORTE);
}

/*
 * Rarely the mpirun of Open MPI 4.1.4 crashes or hangs itself, our processes
 * having ended, when its job is over by an abort (PMIx_server_finalize() of
 * libpmix 4.2.2): a signal is its end then.
 */
TEST(an_abort_ends_the_job)
{
	struct run r;

	need_openmpi();
	run_may_take(40);
	r = run(NULL, "exec " ORTE "-n 2 \"$RANK\" abort 1 42");
	run_may_take(-1);
	if (r.code == -1) /* what it had to say may not have come */
		check_skip("mpirun.openmpi was not done after 40 s: does it "
			   "hang, as 4.1.4 does at times?");
	CHECK(has(r.err, "the test wants an abort"));
	if (r.code <= 128)
		CHECK_INT(r.code, 42);
}

TEST(ranks_that_hang_say_so)
{
	need_openmpi();
	job_tells_of_hangs(ORTE);
}

TEST(programs_that_ranks_start_are_singletons)
{
	need_openmpi();
	job_children_are_singletons(ORTE);
}

TEST(programs_get_right_results)
{
	need_openmpi();
	job_talks(ORTE);
}

TEST(a_rank_that_is_killed_ends_the_job)
{
	need_openmpi();
	job_is_killed(ORTE);
}

TEST(ranks_end_with_their_launcher)
{
	need_openmpi();
	job_ends_without_launcher(ORTE);
}
