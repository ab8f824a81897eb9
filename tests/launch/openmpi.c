/*
 * Ranks under the launcher of Open MPI, which speaks PMIx.
 */
#include "../check.h"
#include "../run.h"
#include "job.h"

#define ORTE                                                                   \
	"timeout -k 5 40 mpirun.openmpi --allow-run-as-root --oversubscribe "  \
	"--bind-to none "

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

TEST(an_abort_ends_the_job)
{
	need_openmpi();
	job_aborts(ORTE);
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
