/*
 * tools/wrap: what mpicc and mpicxx say, and what they hand to the compiler.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>

#define MPICC run_path("MPICC")

/* A compiler that prints its arguments, one a line. */
#define ECHO "MADMPI_CC='printf %%s\\n'"

TEST(show_is_the_whole_command)
{
	struct run r = run(NULL, "exec '%s' -show -O2 x.c", MPICC);

	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "cc -O2 x.c -I", 13) == 0);
	CHECK(has(r.out, " -L/"));
	CHECK(has(r.out, " -Wl,-rpath,/"));
	CHECK(has(r.out, " -lmpi_abi\n"));
	r = run(NULL, "exec \"$(dirname '%s')/mpicxx\" -show", MPICC);
	CHECK(has(r.out, "c++ -I"));
	CHECK(has(r.out, " -lmpi_abi\n"));
}

TEST(show_parts)
{
	struct run r = run(NULL, "exec '%s' -showme:compile", MPICC);

	CHECK(strncmp(r.out, "-I", 2) == 0);
	CHECK(strstr(r.out, " -l") == NULL);
	r = run(NULL, "exec '%s' --showme:link", MPICC);
	CHECK(strncmp(r.out, "-L", 2) == 0);
	CHECK(strstr(r.out, " -I") == NULL);
	CHECK(has(r.out, " -lmpi_abi\n"));
	r = run(NULL, "exec '%s' -showme:libs", MPICC);
	CHECK_STR(r.out, "mpi_abi\n");
	r = run(NULL, "exec '%s' -showme:version", MPICC);
	CHECK(has(r.out, "madmpi "));
	r = run(NULL, "exec '%s' -showme:everything", MPICC);
	CHECK_INT(r.code, 2);
	CHECK(has(r.err, "-showme:everything: expected"));
}

TEST(compat_is_a_macro_wherever_it_stands)
{
	static const char *const commands[] = { "-compat -c 'a  b.c' -O2",
						"-c 'a  b.c' -compat -O2",
						"-c 'a  b.c' -O2 -compat" };
	struct run r;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		r = run(NULL, ECHO " '%s' %s", MPICC, commands[i]);
		CHECK(strncmp(r.out, "-c\na  b.c\n-O2\n-I", 16) == 0);
		CHECK(has(r.out, "\n-DMADMPI_COMPAT\n"));
	}
	r = run(NULL, "exec '%s' -compat -show x.c", MPICC);
	CHECK(has(r.out, " -DMADMPI_COMPAT -L"));
	r = run(NULL, "exec '%s' -compat -showme:compile", MPICC);
	CHECK(has(r.out, " -DMADMPI_COMPAT\n"));
	r = run(NULL, "exec '%s' -showme:compile", MPICC);
	CHECK(strstr(r.out, "COMPAT") == NULL);
}

TEST(help_is_ours_and_then_the_compilers)
{
	struct run r = run(NULL, ECHO " '%s' -h", MPICC);

	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "usage: mpicc ", 13) == 0);
	CHECK(has(r.out, "MADMPI_CC=COMPILER"));
	CHECK(strstr(r.out, "\n--help\n") == NULL);
	r = run(NULL, ECHO " '%s' --help", MPICC);
	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "usage: mpicc ", 13) == 0);
	CHECK(has(r.out, "\n--help\n"));
}

TEST(libraries_are_named_only_for_a_link)
{
	static const char *const without[] = { "-c x.c",
					       "-E x.c",
					       "-S x.c",
					       "-M x.c",
					       "--version",
					       "-v",
					       "-print-search-dirs" };
	static const char *const with[] = { "x.c", "x.o -o x", "-x c -" };

	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		struct run r = run(NULL, ECHO " '%s' %s", MPICC, without[i]);

		CHECK(has(r.out, "-I/"));
		CHECK(strstr(r.out, " -lmpi") == NULL);
		CHECK(strstr(r.out, "-rpath") == NULL);
	}
	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		CHECK(has(run(NULL, ECHO " '%s' %s", MPICC, with[i]).out,
			  "\n-lmpi_abi\n"));
}

TEST(arguments_reach_the_compiler_unchanged)
{
	struct run r = run(NULL,
			   ECHO " '%s' -c 'a  b.c' -DX='\"*\"' "
				"-DY='$HOME' ''",
			   MPICC);

	CHECK(has(r.out, "-c\na  b.c\n-DX=\"*\"\n-DY=$HOME\n\n-I"));
}

TEST(the_compilers_exit_code_is_ours)
{
	CHECK_INT(run(NULL, "MADMPI_CC=false '%s' x.c", MPICC).code, 1);
	CHECK_INT(run(NULL, "'%s' -c /no/such/file.c", MPICC).code, 1);
}

TEST(an_installed_wrapper_finds_its_prefix_where_it_is)
{
	struct run r = run(NULL,
			   "d=$(mktemp -d); mkdir -p \"$d/a b/bin\";"
			   "cp '%s.installed' \"$d/a b/bin/mpicc\";"
			   "chmod +x \"$d/a b/bin/mpicc\";"
			   "\"$d/a b/bin/mpicc\" -show x.c;"
			   "ln -s \"$d/a b/bin/mpicc\" $d/link;" ECHO
			   " $d/link x.c; rm -r $d",
			   MPICC);

	CHECK(has(r.out, "/a b/include\" -L\"/"));
	CHECK(has(r.out, " -Wl,\"-rpath,/"));
	CHECK(has(r.out, "/a b/include\n-L/"));
	CHECK_INT(r.code, 0);
}
