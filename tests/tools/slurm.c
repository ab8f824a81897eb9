/*
 * tools/lab/slurm: a cluster of its own for one command, of which nothing
 * stays. Skipped where it cannot be had.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>

static void need_slurm(void)
{
	static struct run r = { .code = -1 };

	if (r.code < 0) {
		r = run(NULL, "exec \"$SLURM\" up 1 true");
		r.err = strdup(r.err);
	}
	if (r.code == 77)
		check_skip(strtok(strdup(r.err), "\n"));
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
}

TEST(nodes_run_what_they_are_told)
{
	struct run r;

	need_slurm();
	r = run("word\n", "exec \"$SLURM\" up 2 srun -N2 -n2 --label sh -c "
			  "'echo $SLURMD_NODENAME; cat' | sort");
	CHECK_STR(r.out, "0: n0\n0: word\n1: n1\n1: word\n");
	CHECK_INT(r.code, 0);
	CHECK_INT(run(NULL, "exec \"$SLURM\" up 1 sh -c 'exit 5'").code, 5);
}

TEST(each_node_may_be_a_host)
{
	struct run r;

	need_slurm();
	r = run(NULL, "exec \"$SLURM\" hosts 2 max \"$NET\" run 0 srun -N2 "
		      "-n2 hostname | sort");
	CHECK_STR(r.out, "n0\nn1\n");
	CHECK_INT(r.code, 0);
}

TEST(wrong_arguments_are_named)
{
	static const char *const bad[][2] = {
		{ "", "slurm up NODES COMMAND" },
		{ "dance", "slurm up NODES COMMAND" },
		{ "up 2", "usage: slurm up" },
		{ "up 0 true", "NODES is 1 to 16, not '0'" },
		{ "up 17 true", "NODES is 1 to 16, not '17'" },
		{ "hosts 2 max", "usage: slurm hosts" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run r = run(NULL, "exec \"$SLURM\" %s", bad[i][0]);

		if (strstr(r.err, bad[i][1]) == NULL)
			check_fail(__FILE__, __LINE__, "%s: %s", bad[i][0],
				   r.err);
		CHECK_INT(r.code, 2);
	}
}

/* Where it writes and mounts, and which interfaces there are. */
#define TRACES                                                                 \
	"grep slurm /proc/mounts; ls -A /etc/slurm; ls /sys/class/net; "       \
	"cat /etc/hosts"

/*
 * All that a cluster has started holds the pipe: `cat` ends when the last of it
 * is gone, daemons and a job of theirs among them.
 */
static void leaves_nothing_after(const char *signal)
{
	char *before = strdup(run(NULL, TRACES).out);
	struct run r = run(NULL,
			   "sh -c 'echo $$; exec \"$SLURM\" up 2 srun -N2 -n2 "
			   "sh -c \"echo up; exec sleep 1000\"' | "
			   "{ read -r pid; read -r up; kill -%s $pid; cat "
			   ">/dev/null; echo $up and gone; }",
			   signal);

	CHECK_STR(r.out, "up and gone\n");
	CHECK_INT(r.code, 0);
	CHECK_STR(run(NULL, TRACES).out, before);
	free(before);
}

TEST(a_cluster_that_is_killed_leaves_nothing)
{
	need_slurm();
	leaves_nothing_after("KILL");
	leaves_nothing_after("TERM");
}

TEST(where_it_cannot_be_had_it_says_so)
{
	struct run r;

	if (run(NULL, "test \"$(id -u)\" = 0").code != 0)
		check_skip("this needs root, to be somebody else");
	r = run(NULL, "exec setpriv --reuid 65534 --regid 65534 "
		      "--clear-groups bash \"$SLURM\" up 1 true");
	if (r.code == 126 || r.code == 127)
		check_skip("other users may not read this folder");
	CHECK_INT(r.code, 77);
	CHECK(strncmp(r.err, "slurm: ", 7) == 0);
}
