/*
 * Ranks under Hydra, the launcher of MPICH: the protocol is not ours.
 */
#include "launch.h"

static void need_hydra(void)
{
	if (run(NULL, "command -v mpiexec.hydra").code != 0)
		check_skip("mpiexec.hydra is not installed (package mpich)");
}

TEST(ranks_exchange_values)
{
	need_hydra();
	job_exchanges("mpiexec.hydra");
}

TEST(ranks_exchange_values_through_pmi2)
{
	need_hydra();
	job_exchanges("env NMAD_BOOT=pmi2 mpiexec.hydra");
}

TEST(a_job_has_one_key)
{
	need_hydra();
	job_has_one_key("mpiexec.hydra");
}

TEST(hosts_that_are_made_up_are_apart)
{
	struct run r;

	need_hydra();
	r = run(NULL,
		"exec mpiexec.hydra -launcher fork -hosts h0,h1 -n 4 '%s' info",
		RANK);
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "pmi 0/4 local 0/2 node 0 "));
	CHECK(has(r.out, "pmi 1/4 local 0/2 node 1 "));
	CHECK(has(r.out, "pmi 2/4 local 1/2 node 0 "));
	CHECK(has(r.out, "pmi 3/4 local 1/2 node 1 "));
}

TEST(an_abort_ends_the_job)
{
	need_hydra();
	job_aborts("mpiexec.hydra");
}

TEST(a_start_asks_nothing_about_each_rank)
{
	need_hydra();
	job_asks_little("mpiexec.hydra");
}

TEST(ranks_that_hang_say_so)
{
	need_hydra();
	job_tells_of_hangs("mpiexec.hydra");
}

TEST(programs_that_ranks_start_are_singletons)
{
	need_hydra();
	job_children_are_singletons("mpiexec.hydra");
}

TEST(programs_get_right_results)
{
	need_hydra();
	job_talks("mpiexec.hydra");
}

/* Its fence lets who has come go on, which is none. */
TEST(programs_get_right_results_through_pmi2)
{
	need_hydra();
	for (int i = 0; i < 5; i++)
		job_talks("env NMAD_BOOT=pmi2 mpiexec.hydra");
}

/* Ranks connect to a port instead of inheriting a socket. */
TEST(ranks_may_have_to_connect)
{
	need_hydra();
	job_exchanges("mpiexec.hydra -pmi-port");
	job_has_one_key("mpiexec.hydra -pmi-port");
	job_talks("mpiexec.hydra -pmi-port");
	job_aborts("mpiexec.hydra -pmi-port");
}

TEST(a_rank_that_is_killed_ends_the_job)
{
	need_hydra();
	job_is_killed("mpiexec.hydra");
}

TEST(ranks_that_wait_end_with_what_has_launched_them)
{
	need_hydra();
	job_ends_without_launcher("mpiexec.hydra");
	job_ends_without_launcher("env NMAD_BOOT=pmi2 mpiexec.hydra");
}

TEST(ranks_that_poll_end_with_what_has_launched_them)
{
	need_hydra();
	job_ends_without_launcher("env PIOM_MODE=poll mpiexec.hydra");
}

TEST(ranks_that_have_connected_end_with_what_has_launched_them)
{
	need_hydra();
	job_ends_without_launcher(
		"env NMAD_DRIVER=tcp mpiexec.hydra -pmi-port");
}
