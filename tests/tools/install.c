/*
 * What users meet: programs are built with the wrappers, pkg-config, CMake and
 * Meson, from the build tree and from a tree that was installed in a folder
 * with blanks, which is not the prefix it was configured for.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>

static char folder[256]; /* temporary, removed at exit */

static void remove_folder(void)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	(void)!system(command);
}

/*
 * Shell text that every command begins with: $top is the installed prefix,
 * $src the test project, $w an empty folder with a blank, where it stands.
 */
static char head[4096];

static void install_once(void)
{
	struct run r;

	if (folder[0] != '\0')
		return;
	snprintf(folder, sizeof(folder), "/tmp/madmpi install.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	atexit(remove_folder);
	r = run(NULL,
		"DESTDIR='%s/root' meson install -C '%s' --quiet --no-rebuild",
		folder, run_path("BUILD"));
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	snprintf(head, sizeof(head),
		 "unset LD_LIBRARY_PATH; d='%s'; src='%s'; tree='%s'; "
		 "top=$(dirname \"$(dirname \"$(find \"$d/root\" -path "
		 "'*/bin/mpicc')\")\"); PATH=\"$top/bin:$PATH\"; "
		 "w=\"$d/work here\"; rm -rf \"$w\"; mkdir \"$w\"; "
		 "cd \"$w\" || exit 9; ",
		 folder, run_path("PROJECT"), run_path("BUILD"));
}

/* The command must end well and show that two ranks have met. */
static void two_ranks_meet(const char *command)
{
	struct run r;

	install_once();
	r = run(NULL, "%s set -e; %s", head, command);
	if (r.code != 0)
		printf("# %s\n", command);
	CHECK(r.code == 0 || has(r.err, "(no error)"));
	CHECK(has(r.out, "rank 0 of 2, sum 2\n"));
	CHECK(has(r.out, "rank 1 of 2, sum 2\n"));
}

TEST(mpicc_of_the_build_tree)
{
	two_ranks_meet("\"$tree/tools/wrap/mpicc\" \"$src/hello.c\" -o hello;"
		       "\"$tree/tools/launch/mpirun\" -n 2 ./hello");
}

TEST(mpicc_that_was_installed)
{
	two_ranks_meet("mpicc \"$src/hello.c\" -o hello; mpirun -n 2 ./hello");
	two_ranks_meet("mpicc -c \"$src/hello.c\"; mpicc hello.o -o hello; "
		       "mpiexec -n 2 ./hello");
}

TEST(mpicxx_that_was_installed)
{
	two_ranks_meet("mpicxx \"$src/hello.cc\" -o hello;"
		       "mpirun -n 2 ./hello");
}

TEST(what_show_says_is_what_a_shell_can_run)
{
	two_ranks_meet("eval \"$(mpicc -show \"$src/hello.c\" -o hello)\"; "
		       "mpirun -n 2 ./hello");
	two_ranks_meet("eval \"cc $(mpicc -showme:compile) '$src/hello.c' "
		       "-o hello $(mpicc -showme:link)\"; "
		       "mpirun -n 2 ./hello");
}

TEST(marcel_is_reachable_through_the_wrapper)
{
	two_ranks_meet(
		"(echo '#include <marcel/marcel.h>'; "
		"echo '#include <pioman/pioman.h>'; "
		"echo '#include <nmad/nmad.h>'; cat \"$src/hello.c\"; "
		"echo 'int (*p)(void) = piom_poll, (*v)(void) = marcel_nvp, "
		"(*r)(void) = nm_rank;') > all.c; "
		"mpicc all.c -o all -lmarcel -lpioman -lnmad; "
		"mpirun -n 2 ./all");
}

TEST(pkg_config_knows_all_four)
{
	struct run r;

	/* A prefix with blanks is beyond pkg-config: a link to it has none. */
	two_ranks_meet("l=$(mktemp -d); trap 'rm -r $l' EXIT; ln -s \"$top\" "
		       "$l/p; pc=$(dirname "
		       "\"$(find \"$top\" -name madmpi.pc)\"); "
		       "export PKG_CONFIG_PATH=\"$pc\"; "
		       "for m in marcel pioman nmad madmpi; do "
		       "pkg-config --print-errors --exists $m; done; "
		       "flags=$(pkg-config --define-variable=prefix=$l/p "
		       "--cflags --libs madmpi); "
		       "eval \"cc '$src/hello.c' -o hello $flags\"; "
		       "LD_LIBRARY_PATH=\"$(dirname \"$pc\")\" "
		       "mpirun -n 2 ./hello");
	r = run(NULL,
		"%s PKG_CONFIG_PATH=\"$(dirname \"$(find \"$top\" -name "
		"nmad.pc)\")\" pkg-config --libs madmpi",
		head);
	CHECK(has(r.out, "-lmpi_abi"));
	CHECK(has(r.out, "-lmarcel"));
}

TEST(cmake_finds_mpi)
{
	if (run(NULL, "command -v cmake").code != 0)
		check_skip("cmake is not installed");
	two_ranks_meet("cp \"$src\"/* .; cmake -B out . > log || "
		       "{ cat log >&2; exit 1; }; cmake --build out >log; "
		       "[ \"$(cat out/launcher)\" = \"$top/bin/mpiexec\" ]; "
		       "mpirun -n 2 out/hello; mpirun -n 2 out/hello_cxx");
}

TEST(meson_finds_mpi)
{
	/* Meson asks pkg-config for Open MPI first: show it none. */
	two_ranks_meet("cp \"$src\"/* .; mkdir empty; "
		       "export PKG_CONFIG_LIBDIR=$PWD/empty; "
		       "MPICC=mpicc MPICXX=mpicxx meson setup out > log || "
		       "{ cat log >&2; exit 1; }; ninja -C out >log; "
		       "mpirun -n 2 out/hello; mpirun -n 2 out/hello_cxx");
}

TEST(info_runs_from_where_it_is_installed)
{
	struct run r;

	install_once();
	r = run(NULL, "%s marcel-info --settings", head);
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "MARCEL_NVP"));
}

TEST(schedules_are_tried_from_where_that_is_installed)
{
	struct run r;

	install_once();
	r = run(NULL, "%s marcel-schedules -s 3 true", head);
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "no failure: 3 seeds"));
}
