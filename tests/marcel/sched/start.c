/* marcel/sched/start.c: how the runtime starts, and refuses to. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../child.h"
#include "../with.h"

static int init_with(const char *name, const char *value)
{
	int rc;

	setenv(name, value, 1);
	rc = marcel_init(NULL);
	unsetenv(name);
	return rc;
}

TEST(nonsense_in_the_environment_stops_the_start)
{
	CHECK_INT(init_with("MARCEL_NVP", "many"), -EINVAL);
	CHECK_INT(init_with("MARCEL_NVP", "-1"), -EINVAL);
	CHECK_INT(init_with("MARCEL_NVP", "100000"), -EINVAL);
	CHECK_INT(init_with("MARCEL_STACKSIZE", "1"), -EINVAL);
	CHECK_INT(init_with("MARCEL_STACKSIZE", "64kk"), -EINVAL);
	CHECK_INT(init_with("MARCEL_BIND", "2"), -EINVAL);
	CHECK_INT(init_with("MARCEL_VERBOSE", "yes"), -EINVAL);
	CHECK_INT(init_with("MARCEL_MAXTHREADS", "-1"), -EINVAL);
	CHECK_INT(init_with("MARCEL_GUARDS", "dragons"), -EINVAL);
	CHECK(!marcel_is_running());
}

static const char *variable, *value;

static void init_child(void)
{
	_exit(init_with(variable, value) == -EINVAL ? 0 : 1);
}

static void refuses(const char *name, int signal)
{
	char number[16], line[128];

	variable = name;
	value = number;
	snprintf(number, sizeof(number), "%d", signal);
	snprintf(line, sizeof(line),
		 "%s=%d: not 0 or a real-time signal, %d to %d", name, signal,
		 SIGRTMIN, SIGRTMAX);
	CHECK_INT(in_child(init_child), 0);
	CHECK(strstr(said, line) != NULL);
}

TEST(no_signal_is_ours_that_is_somebody_elses)
{
	for (int signal = 1; signal < SIGRTMIN; signal++) {
		refuses("MARCEL_SIGNAL", signal);
		refuses("MARCEL_CANCEL_SIGNAL", signal);
	}
}

TEST(nonsense_in_the_configuration_stops_the_start)
{
	static const struct marcel_config configs[] = {
		{ .nvp = -1 },
		{ .nvp = MARCEL_VP_MAX + 1 },
		{ .stacksize = 100 },
		{ .stacksize = (size_t)1 << 50 },
		{ .local_rank = 2, .local_ranks = 2 },
		{ .local_rank = 1 },
		{ .local_rank = -1, .local_ranks = 2 },
		{ .local_ranks = -2 },
	};

	for (unsigned i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
		CHECK_INT(marcel_init(&configs[i]), -EINVAL);
	CHECK(!marcel_is_running());
}

TEST(the_environment_sets_what_the_configuration_leaves)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_attr_t attr;
	size_t bytes;

	CHECK_INT(init_with("MARCEL_NVP", "3"), 0);
	CHECK_INT(marcel_nvp(), 3);
	CHECK_INT(marcel_end(), 0);

	setenv("MARCEL_NVP", "3", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_NVP");
	CHECK_INT(marcel_nvp(), 2);
	CHECK_INT(marcel_end(), 0);

	CHECK_INT(init_with("MARCEL_STACKSIZE", "128k"), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_getstacksize(&attr, &bytes), 0);
	CHECK_INT(bytes, 131072);
	CHECK_INT(marcel_end(), 0);
}

TEST(by_default_there_is_a_vp_for_each_allowed_cpu)
{
	cpu_set_t all, one;
	int cpu = 0;

	CHECK_INT(sched_getaffinity(0, sizeof(all), &all), 0);
	CHECK_INT(marcel_init(NULL), 0);
	CHECK_INT(marcel_nvp(), CPU_COUNT(&all));
	CHECK_INT(marcel_end(), 0);

	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_INT(sched_setaffinity(0, sizeof(one), &one), 0);
	CHECK_INT(marcel_init(NULL), 0);
	CHECK_INT(marcel_nvp(), 1);
	CHECK_INT(marcel_end(), 0);
	CHECK_INT(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(a_machine_of_more_cpus_gets_as_many_vps_as_there_can_be)
{
	setenv("HWLOC_SYNTHETIC", "pack:2 core:200 pu:1", 1);
	CHECK_INT(marcel_init(NULL), 0);
	unsetenv("HWLOC_SYNTHETIC");
	CHECK_INT(marcel_nvp(), MARCEL_VP_MAX);
	CHECK_INT(marcel_end(), 0);
}

TEST(ranks_share_the_cpus)
{
	struct marcel_config config = { .local_ranks = 1000 };

	config.local_rank = 999;
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_nvp(), 1);
	CHECK(marcel_is_oversubscribed());
	CHECK_INT(marcel_end(), 0);
	CHECK(!marcel_is_oversubscribed());
}

/* Too many VPs, and no room for the stacks of even one. */
static int start_without_memory(void)
{
	struct marcel_config config = { .stacksize = (size_t)1 << 38,
					.local_ranks = 1000 };
	struct rlimit limit = { .rlim_cur = (rlim_t)1 << 36,
				.rlim_max = (rlim_t)1 << 36 };

	if (setrlimit(RLIMIT_AS, &limit) != 0)
		return 1;
	if (marcel_init(&config) != -ENOMEM)
		return 2;
	if (marcel_is_running() || marcel_is_oversubscribed())
		return 3;
	config.stacksize = 0;
	return marcel_init(&config) != 0 || marcel_end() != 0 ? 4 : 0;
}

TEST(a_start_that_failed_leaves_nothing)
{
	int status;
	pid_t pid;

	if (BASE_ASAN || BASE_TSAN)
		check_skip("sanitizers need more memory than there is");
	pid = fork();
	if (pid == 0)
		_exit(start_without_memory());
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

TEST(the_tree_is_there_while_it_runs)
{
	struct marcel_config config = { .nvp = 4 };
	marcel_vpset_t set;

	CHECK_PTR(marcel_topo_machine(), NULL);
	CHECK_PTR(marcel_topo_vp(0), NULL);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_topo_machine()->kind, MARCEL_LEVEL_MACHINE);
	CHECK_INT(marcel_topo_vp(3)->vp, 3);
	CHECK_PTR(marcel_topo_vp(4), NULL);
	CHECK_PTR(marcel_topo_vp(-1), NULL);
	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, 2);
	CHECK_PTR(marcel_topo_cover(&set), marcel_topo_vp(2));
	CHECK_INT(marcel_end(), 0);
	CHECK_PTR(marcel_topo_machine(), NULL);
}
