/*
 * tools/launch: several programs in a job, where they start, what they find,
 * and where their output goes.
 */
#include "launch.h"

#include <stdlib.h>

TEST(each_program_has_its_own_options)
{
	struct run r = run(NULL,
			   "SEEN=0 exec '%s' --tag-output -n 2 -x SEEN=1 "
			   "-wdir / sh -c 'echo $SEEN $PWD $PMI_RANK/$PMI_SIZE'"
			   " : -x SEEN=2 -x SEEN=3 -wdir /usr sh -c 'echo $SEEN"
			   " $PWD' : sh -c 'echo $SEEN'",
			   MPIRUN);

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "[0] 1 / 0/4\n"));
	CHECK(has(r.out, "[1] 1 / 1/4\n"));
	CHECK(has(r.out, "[2] 3 /usr\n"));
	CHECK(has(r.out, "[3] 0\n"));
}

TEST(each_rank_learns_the_number_of_its_program)
{
	struct run r =
		run(NULL, "exec '%s' -n 2 '%s' app : '%s' app : '%s' app",
		    MPIRUN, RANK, RANK, RANK);

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "rank 0 of program 0\n"));
	CHECK(has(r.out, "rank 1 of program 0\n"));
	CHECK(has(r.out, "rank 2 of program 1\n"));
	CHECK(has(r.out, "rank 3 of program 2\n"));
}

TEST(a_file_may_name_the_programs)
{
	struct run r = run("# two of them\n\n-n 2 echo 'a  b' c\n"
			   "-n 1 \\\n  echo \"d 'e'\"\n",
			   "exec '%s' -configfile /dev/stdin", MPIRUN);

	CHECK_INT(r.code, 0);
	CHECK_INT(count(r.out, "a  b c\n"), 2);
	CHECK_INT(count(r.out, "d 'e'\n"), 1);
	r = run("echo 'at the end' \\\n", "exec '%s' -configfile /dev/stdin",
		MPIRUN);
	CHECK_STR(r.out, "at the end\n");
	r = run("echo 'a\n", "exec '%s' -configfile /dev/stdin", MPIRUN);
	CHECK_INT(r.code, 2);
	CHECK(has(r.err, "' is not closed in: a"));
}

TEST(programs_are_looked_for_where_it_is_said)
{
	struct run r = run(NULL,
			   "PATH=/nowhere exec '%s' -path /usr/bin:/bin "
			   "env : -x PATH=/bin true",
			   MPIRUN);

	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "PATH=/nowhere\n"));
	r = run(NULL, "exec '%s' -path /nowhere true : false", MPIRUN);
	CHECK_INT(r.code, 127);
	CHECK(has(r.err, "cannot run \"true\": No such file"));
	r = run(NULL, "exec '%s' -wdir /nowhere true", MPIRUN);
	CHECK_INT(r.code, 1);
	CHECK_STR(r.err, "mpirun: -wdir /nowhere: No such file or directory\n");
}

TEST(as_many_start_as_the_list_allows)
{
	static const struct {
		const char *options;
		int ranks;
	} cases[] = {
		{ "-n 7 -soft 2:8:2", 6 },
		{ "-soft 1,3,9 -n 8", 3 },
		{ "-n 5 -soft 4:9", 5 },
		{ "-n 3 -soft 2", 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r = run(NULL, "exec '%s' %s echo hi", MPIRUN,
				   cases[i].options);

		CHECK_INT(r.code, 0);
		CHECK_INT(count(r.out, "hi"), cases[i].ranks);
	}
}

TEST(output_goes_to_a_file_of_each_rank)
{
	struct run r =
		run(NULL,
		    "d=$(mktemp -d); '%s' -n 2 --output-filename "
		    "$d/a/b sh -c 'echo out$PMI_RANK; echo "
		    "err$PMI_RANK >&2'; echo $?; cd $d/a/b; tail -n 9 */*;"
		    " rm -r $d",
		    MPIRUN);

	CHECK_STR(r.err, "");
	CHECK_STR(r.out, "0\n==> rank.0/stderr <==\nerr0\n\n"
			 "==> rank.0/stdout <==\nout0\n\n"
			 "==> rank.1/stderr <==\nerr1\n\n"
			 "==> rank.1/stdout <==\nout1\n");
	r = run(NULL, "exec '%s' --output-filename /dev/null/a true", MPIRUN);
	CHECK_INT(r.code, 1);
	CHECK(has(r.err, "cannot make /dev/null/a: Not a directory"));
	r = run(NULL,
		"exec '%s' --output-filename $(mktemp -u)$(printf '/a%%.0s' "
		"$(seq 3000)) true",
		MPIRUN);
	CHECK_INT(r.code, 1);
	CHECK_STR(r.err, "mpirun: --output-filename: the name is too long\n");
}
