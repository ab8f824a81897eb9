/*
 * What users meet: programs are built with the wrappers, pkg-config, CMake and
 * Meson, from the build tree and from a tree that was installed in a folder
 * with blanks, which is not the prefix it was configured for.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[256]; /* temporary */
static char plain[256];  /* likewise; no blank is in its name */

/*
 * Shell text that every command begins with: $top is the installed prefix,
 * $plain the same without blanks, $archives that with only static libraries,
 * $lib where in it libraries are, $src the test project, $w an empty folder
 * with a blank, where it stands.
 */
static char head[4096];

static void install_once(void)
{
	struct run r;

	if (folder[0] != '\0')
		return;
	snprintf(folder, sizeof(folder), "%s/madmpi install", run_folder());
	snprintf(plain, sizeof(plain), "%s/madmpi-install", run_folder());
	CHECK_INT(mkdir(folder, 0700), 0);
	CHECK_INT(mkdir(plain, 0700), 0);
	r = run(NULL,
		"set -e; d='%s'; p='%s'; "
		"DESTDIR=\"$d/root\" meson install -C '%s' --quiet "
		"--no-rebuild; "
		"top=$(dirname \"$(dirname \"$(find \"$d/root\" -path "
		"'*/bin/mpicc')\")\"); cp -al \"$top\" $p/p; "
		"lib=$(dirname $(cd $p/p; find lib* -name libmarcel.so)); "
		"mkdir -p $p/a/$lib; ln -s $p/p/include $p/a; "
		"ln $p/p/$lib/*.a $p/a/$lib; cp -r $p/p/$lib/pkgconfig "
		"$p/a/$lib; ln -s \"$top\" \"$d/top\"; echo $lib >$p/lib",
		folder, plain, run_path("BUILD"));
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	snprintf(head, sizeof(head),
		 "unset LD_LIBRARY_PATH; d='%s'; src='%s'; tree='%s'; "
		 "top=$(readlink \"$d/top\"); PATH=\"$top/bin:$PATH\"; "
		 "plain=%s/p; archives=%s/a; lib=$(cat %s/lib); "
		 "w=\"$d/work here\"; rm -rf \"$w\"; mkdir \"$w\"; "
		 "cd \"$w\" || exit 9; ",
		 folder, run_path("PROJECT"), run_path("BUILD"), plain, plain,
		 plain);
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

TEST(an_old_program_is_compiled_with_compat)
{
	struct run r;

	install_once();
	r = run(NULL, "%s mpicc \"$src/old.c\" -o old", head);
	CHECK(r.code != 0 && has(r.err, "MPI_UB"));
	two_ranks_meet("mpicc -compat \"$src/old.c\" -o old; "
		       "mpirun -n 2 ./old");
	two_ranks_meet("mpicxx -x c++ \"$src/old.c\" -compat -o old; "
		       "mpirun -n 2 ./old");
	two_ranks_meet("eval \"cc $(mpicc -compat -showme:compile) "
		       "'$src/old.c' -o old $(mpicc -showme:link)\"; "
		       "mpirun -n 2 ./old");
	two_ranks_meet("\"$tree/tools/wrap/mpicc\" -compat \"$src/old.c\" "
		       "-o old; \"$tree/tools/launch/mpirun\" -n 2 ./old");
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

/*
 * Each library by what pkg-config says of it alone. The installed ones stand
 * in $plain, since pkg-config knows no prefix with blanks, and are moved.
 */
static void programs_are_built(const char *pc, const char *libs,
			       const char *options)
{
	static const char *const programs[][3] = {
		{ "marcel", "hello_threads", "" },
		{ "pioman", "ltask_poll", "" },
		{ "nmad", "ping", "mpirun -n 2" },
		{ "nmad pioman", "rpc", "mpirun -n 2" },
		{ "madmpi", "ring", "mpirun -n 2" },
		{ "madmpi", "hybrid", "mpirun -n 2" },
	};

	install_once();
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct run r =
			run(NULL,
			    "%s set -e; export PKG_CONFIG_PATH=\"%s\"; "
			    "pkg-config --exists --print-errors %s; "
			    "cc \"$src/../../../examples/%s.c\" -o program "
			    "$(pkg-config --cflags --libs %s %s); "
			    "export LD_LIBRARY_PATH=\"%s\"; %s ./program",
			    head, pc, programs[i][0], programs[i][1], options,
			    programs[i][0], libs, programs[i][2]);

		if (r.code != 0)
			printf("# %s\n", programs[i][1]);
		CHECK(r.code == 0 || has(r.err, "(no error)"));
	}
}

TEST(pkg_config_knows_what_is_installed)
{
	programs_are_built("$plain/$lib/pkgconfig", "$plain/$lib",
			   "--define-variable=prefix=$plain");
}

TEST(pkg_config_knows_the_build_tree)
{
	programs_are_built("$tree/meson-uninstalled",
			   "$tree/marcel:$tree/pioman:$tree/nmad:$tree/madmpi",
			   "");
}

/*
 * Where there is no shared library of ours, but hwloc's, since what the static
 * one needs may not be installed. Neither libpmix nor libibverbs is asked for.
 */
TEST(pkg_config_knows_the_static_libraries)
{
	install_once();
	CHECK_INT(run(NULL,
		      "%s printf '%%s\\n' 'Name: hwloc' 'Description: shared' "
		      "'Version: 2' 'Libs: -lhwloc' "
		      ">$archives/$lib/pkgconfig/hwloc.pc",
		      head)
			  .code,
		  0);
	programs_are_built("$archives/$lib/pkgconfig", "",
			   "--static --define-variable=prefix=$archives");
	CHECK_INT(run(NULL,
		      "%s export PKG_CONFIG_PATH=$plain/$lib/pkgconfig; "
		      "pkg-config --print-requires-private marcel pioman nmad "
		      "madmpi | grep -v 'hwloc\\|marcel\\|pioman\\|nmad'",
		      head)
			  .code,
		  1);
}

TEST(pkg_config_has_the_version_of_the_wrappers)
{
	install_once();
	CHECK_INT(run(NULL,
		      "%s export PKG_CONFIG_PATH=$plain/$lib/pkgconfig; "
		      "for m in marcel pioman nmad madmpi; do "
		      "mpicc -showme:version | grep -q \" $(pkg-config "
		      "--modversion $m)$\" || exit 1; done",
		      head)
			  .code,
		  0);
}

/* In a folder with blanks, and in one without. */
static void cmake_finds_mpi_in(const char *top)
{
	char command[1024];

	if (run(NULL, "command -v cmake").code != 0)
		check_skip("cmake is not installed");
	snprintf(command, sizeof(command),
		 "top=\"%s\"; PATH=\"$top/bin:$PATH\"; "
		 "cp \"$src\"/* .; cmake -B out . > log || "
		 "{ cat log >&2; exit 1; }; cmake --build out >log; "
		 "[ \"$(cat out/found)\" = \"$top/bin/mpiexec 5.0 5.0\" ] || "
		 "{ cat out/found >&2; exit 1; }; "
		 "cd out; ctest -V",
		 top);
	two_ranks_meet(command);
}

TEST(cmake_finds_mpi)
{
	cmake_finds_mpi_in("$plain");
}

TEST(cmake_finds_mpi_behind_blanks)
{
	cmake_finds_mpi_in("$top");
}

TEST(meson_finds_mpi)
{
	/* Meson asks pkg-config for Open MPI first: show it none. */
	two_ranks_meet("cp \"$src\"/* .; mkdir empty; "
		       "export PKG_CONFIG_LIBDIR=$PWD/empty; "
		       "MPICC=mpicc MPICXX=mpicxx meson setup out > log || "
		       "{ cat log >&2; exit 1; }; "
		       "v=$(mpicc -showme:version | sed 's/.* //'); "
		       "grep -q \"found $top/bin/mpiexec $v $v\" log || "
		       "{ cat log >&2; exit 1; }; meson test -C out -v");
}

/* Both of these read the same file; each is tried where it is installed. */
TEST(a_module_has_all_that_programs_need)
{
	static const char *const commands[] = {
		"/usr/lib/$(uname -m)-linux-gnu/modulecmd.tcl",
		"/usr/share/modules/libexec/modulecmd.tcl",
		"/usr/share/lmod/lmod/libexec/lmod",
	};
	bool some = false;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char command[2048];

		if (run(NULL, "test -x %s", commands[i]).code != 0)
			continue;
		some = true;
		snprintf(command, sizeof(command),
			 "PATH=${PATH#*:}; c=%s; "
			 "sed -i \"s|^set prefix .*|set prefix $plain|\" "
			 "$plain/share/modulefiles/madmpi/*; "
			 "eval \"$($c sh use $plain/share/modulefiles)\"; "
			 "$c sh whatis madmpi 2>&1 | grep -q 'user threads'; "
			 "eval \"$($c sh load madmpi)\"; "
			 "\"$MPICC\" \"$src/hello.c\" -o hello; "
			 "[ \"$MPI_HOME/bin/mpirun\" = $(command -v mpirun) ]; "
			 "pkg-config --exists madmpi; mpirun -n 2 ./hello; "
			 "eval \"$($c sh unload madmpi)\"; "
			 "[ -z \"$(echo \"$PATH${MPICC-}$MPI_HOME\" | "
			 "grep \"$plain\")\" ]",
			 commands[i]);
		two_ranks_meet(command);
	}
	if (!some)
		check_skip("neither environment-modules nor lmod is installed");
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

TEST(gdb_has_its_commands_from_where_that_is_installed)
{
	struct run r;

	install_once();
	r = run(NULL, "%s marcel-gdb --help", head);
	CHECK(has(r.out, "usage: marcel-gdb "));
	CHECK_INT(r.code, 0);
	if (run(NULL, "command -v gdb").code != 0)
		check_skip("gdb is not installed");
	r = run(NULL, "%s marcel-gdb -nx -batch -ex marcel", head);
	CHECK(has(r.out, "marcel threads "));
}

TEST(traces_are_shown_from_where_that_is_installed)
{
	struct run r;

	install_once();
	r = run(NULL, "%s marcel-trace no-such-file", head);
	CHECK_STR(r.err, "marcel-trace: no-such-file: there is no such file, "
			 "and no no-such-file.0\n"
			 "marcel-trace: there is nothing to show\n");
	CHECK_INT(r.code, 1);
}

TEST(modes_are_compared_under_the_launcher_that_is_installed)
{
	struct run r;

	install_once();
	r = run(NULL,
		"%s marcel-modes -e none -m poll -s fifo -r 1 "
		"-n 1 sh -c 'tr \"\\0\" \" \" </proc/$PPID/cmdline >by' >&2 && "
		"grep -c \"^$top/bin/mpirun -n 1 sh\" by",
		head);
	CHECK_STR(r.out, "1\n");
	CHECK_INT(r.code, 0);
}
