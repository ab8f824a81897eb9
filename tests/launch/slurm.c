/*
 * Ranks under Slurm: srun, and what runs in an allocation of salloc. This is
 * run inside a cluster of at least two nodes, by ./inside; $ON is where srun
 * can be called, as words of the shell: here, or `net run 0`.
 */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>

/* Without a time-out: signals reach srun, which net is the parent of. */
#define ON     "timeout 0 $ON "
#define PMI2   ON "srun --mpi=pmi2 "
#define PMIX   ON "srun --mpi=pmix "
#define KEEP   "--no-kill --kill-on-bad-exit=0 "
#define TWO    "-N2 --ntasks-per-node=2 "
#define SALLOC ON "salloc -Q -N2 -n4 "
#define HYDRA  SALLOC "mpiexec.hydra "
#define ORTE   SALLOC "mpirun.openmpi --allow-run-as-root --oversubscribe "

static void need(const char *program, const char *reason)
{
	if (run(NULL, "command -v %s", program).code != 0)
		check_skip(reason);
}

static void need_hydra(void)
{
	need("mpiexec.hydra", "mpiexec.hydra is not installed (package mpich)");
}

static void need_pmix(void)
{
	if (run(NULL, "exec $ON srun --mpi=list 2>&1 | grep -q pmix && "
		      "ldconfig -p | grep -q libpmix.so.2")
		    .code != 0)
		check_skip("there is no PMIx here (package libpmix2)");
}

static void need_openmpi(void)
{
	need_pmix();
	need("mpirun.openmpi", "mpirun.openmpi is not installed "
			       "(package openmpi-bin)");
}

/* --- srun --- */

TEST(ranks_exchange_values_under_srun)
{
	job_exchanges(PMI2);
}

/* As PMI-1 does, so does PMI-2, which srun was asked for. */
TEST(ranks_exchange_values_through_pmi2)
{
	struct run r;

	job_exchanges("env NMAD_BOOT=pmi2 " PMI2);
	r = run(NULL,
		"exec env NMAD_BOOT=pmi2 " PMI2 TWO "-n 4 \"$RANK\" info");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "pmi2 1/4 local 1/2 node 0 "));
	CHECK(has(r.out, "pmi2 2/4 local 0/2 node 1 "));
	job_is_killed("env NMAD_BOOT=pmi2 " PMI2 TWO);
}

TEST(a_job_has_one_key_under_srun)
{
	job_has_one_key(PMI2);
}

TEST(srun_says_which_node_a_rank_is_on)
{
	struct run r = run(NULL, "exec " PMI2 TWO "-n 4 \"$RANK\" info");

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, " 0/4 local 0/2 node 0 "));
	CHECK(has(r.out, " 1/4 local 1/2 node 0 "));
	CHECK(has(r.out, " 2/4 local 0/2 node 1 "));
	CHECK(has(r.out, " 3/4 local 1/2 node 1 "));
}

TEST(programs_that_ranks_start_are_singletons_under_srun)
{
	job_children_are_singletons(PMI2);
}

TEST(programs_run_on_both_nodes_under_srun)
{
	job_talks(PMI2 "-N2 ");
}

/*
 * srun's own is the greatest code of any rank: it may kill all of them before
 * the one that aborts has ended.
 */
TEST(an_abort_ends_a_job_of_srun)
{
	struct run r = run(NULL, "exec " PMI2 TWO "-n 4 \"$TALK\" abort 42");

	CHECK(r.code >= 42);
	CHECK(has(r.err, "MPI_Abort was called with 42"));
}

TEST(a_rank_that_is_killed_ends_a_job_of_srun)
{
	job_is_killed(PMI2 TWO);
}

TEST(ranks_that_hang_say_so_under_srun)
{
	job_tells_of_hangs(PMI2);
}

TEST(the_others_go_on_if_srun_is_told_so)
{
	job_outlives_a_rank(PMI2 KEEP TWO);
}

/* That is slurmstepd, whose end srun is not told of. */
TEST(ranks_end_with_what_has_launched_them_under_srun)
{
	struct run r =
		run(NULL,
		    "out=$(mktemp); by='launched by process'; " PMI2
		    "-n 3 \"$TALK\" hang >$out 2>&1 & "
		    "until p=$(sed -n \"s/^$by \\([0-9]*\\)\\.$/\\1/p\" $out) "
		    "&& [ \"$p\" ]; do sleep 0.01; done; "
		    "ranks=$(" ON "pgrep -d , -P $p) && " ON "kill -KILL $p; "
		    "while " ON "ps -p $ranks >/dev/null; do :; done; " ON
		    "scancel -u root; wait; echo \"ended: $ranks\"");

	CHECK(has(r.out, "ended: "));
	CHECK_INT(count(r.out, ","), 2);
}

TEST(srun_without_pmi_is_no_silent_crowd_of_singletons)
{
	struct run r = run(NULL, "exec " ON "srun -n 3 \"$RANK\" info");

	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, "singleton 0/1"), 3);
	CHECK_INT(count(r.err, "srun started 3 processes"), 1);
}

/* What is no step of several is one process by intent. */
TEST(a_script_of_an_allocation_may_be_alone)
{
	struct run r = run(NULL, "exec " SALLOC "\"$RANK\" info");

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "singleton 0/1"));
	CHECK_STR(r.err, "");
	r = run(NULL, "out=$(mktemp) && " ON "sbatch -Q -W -n2 -o $out "
		      "--wrap \"'$RANK' info\" && cat $out && rm $out");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "singleton 0/1"));
	CHECK_INT(count(r.out, "srun"), 0);
}

/* --- srun through PMIx --- */

TEST(ranks_exchange_values_through_pmix)
{
	need_pmix();
	job_exchanges(PMIX);
}

TEST(a_job_has_one_key_through_pmix)
{
	need_pmix();
	job_has_one_key(PMIX);
}

TEST(ranks_that_hang_say_so_through_pmix)
{
	need_pmix();
	job_tells_of_hangs(PMIX);
}

TEST(programs_that_ranks_start_are_singletons_through_pmix)
{
	need_pmix();
	job_children_are_singletons(PMIX);
}

TEST(programs_run_on_both_nodes_through_pmix)
{
	need_pmix();
	job_talks(PMIX "-N2 ");
}

TEST(a_rank_that_is_killed_ends_a_job_of_pmix)
{
	need_pmix();
	job_is_killed(PMIX TWO);
}

/* --- Open MPI's launcher in an allocation --- */

TEST(programs_run_on_both_nodes_under_openmpi)
{
	need_openmpi();
	job_talks(ORTE);
}

TEST(a_rank_that_is_killed_ends_a_job_of_openmpi)
{
	need_openmpi();
	job_is_killed(ORTE);
}

/* --- Hydra in an allocation --- */

TEST(hydra_finds_the_nodes_of_an_allocation)
{
	struct run r;

	need_hydra();
	r = run(NULL, "exec " HYDRA "-n 4 \"$RANK\" info | grep -o node.[01] | "
		      "sort -u | wc -l");
	CHECK_STR(r.out, "2\n");
}

TEST(programs_run_on_both_nodes_under_hydra)
{
	need_hydra();
	job_talks(HYDRA);
}

TEST(an_abort_ends_a_job_of_hydra)
{
	need_hydra();
	job_aborts(HYDRA);
}

TEST(a_rank_that_is_killed_ends_a_job_of_hydra)
{
	need_hydra();
	job_is_killed(HYDRA);
}
