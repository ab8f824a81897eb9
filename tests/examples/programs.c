/*
 * The small examples do what they say, over each network where they have one.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>

#define MPIRUN   run_path("MPIRUN")
#define EXAMPLES run_path("EXAMPLES")

static bool has(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
		return true;
	printf("# \"%s\" is not in:\n# ", part);
	for (; *text != '\0'; text++)
		printf(*text == '\n' ? "\n# " : "%c", *text);
	printf("\n");
	return false;
}

static void job(int ranks, const char *program, const char *message)
{
	static const char *const drivers[] = { "shm", "tcp" };

	for (int i = 0; i < 2; i++) {
		struct run r =
			run(NULL,
			    "NMAD_DRIVER=%s exec '%s' --timeout 50 "
			    "-n %d '%s'/%s",
			    drivers[i], MPIRUN, ranks, EXAMPLES, program);

		CHECK_STR(r.err, "");
		CHECK_INT(r.code, 0);
		CHECK(has(r.out, message));
	}
}

static void alone(const char *program, const char *message)
{
	struct run r = run(NULL, "exec '%s'/%s", EXAMPLES, program);

	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, message));
}

TEST(hello_threads)
{
	alone("hello_threads", "sum 49995000\n");
}

TEST(fib)
{
	alone("fib", "fib(20) = 6765, 10945 threads");
	alone("fib 1", "fib(1) = 1, 0 threads");
	CHECK_INT(run(NULL, "'%s'/fib 99", EXAMPLES).code, 2);
}

TEST(ltask_poll)
{
	alone("ltask_poll", "found \"an event\"");
}

TEST(ping)
{
	job(2, "ping", "10000 rounds");
	CHECK_INT(run(NULL, "'%s'/ping", EXAMPLES).code, 2);
}

TEST(many_requests)
{
	job(2, "many_requests", "10000 messages");
}

TEST(ring)
{
	alone("ring", "100 rounds through 1 ranks: 100\n");
	job(4, "ring", "100 rounds through 4 ranks: 400\n");
}

TEST(overlap)
{
	job(2, "overlap", "message ");
}

TEST(stencil)
{
	alone("stencil", "heat 1000.000000");
	job(3, "stencil", "3000 cells, 500 steps: heat 1000.000000");
}

TEST(threads_isend)
{
	alone("threads_isend", "0 wrong");
	job(2, "threads_isend", "20000 messages between 1000 threads, 0 wrong");
}

TEST(hybrid)
{
	job(2, "hybrid", "");
}
