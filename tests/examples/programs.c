/*
 * The small examples do what they say, over each network where they have one.
 */
#include "../check.h"
#include "../run.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MPIRUN   run_path("MPIRUN")
#define EXAMPLES run_path("EXAMPLES")

/* TSan takes a millisecond to make a thread. */
#ifdef __SANITIZE_THREAD__
#define FIB "fib 12", "fib(12) = 144, 232 threads"
#else
#define FIB "fib", "fib(20) = 6765, 10945 threads"
#endif

static void job(int ranks, const char *program, const char *message)
{
	static const char *const drivers[] = { "shm", "tcp" };

	for (int i = 0; i < 2; i++) {
		struct run r =
			run(NULL,
			    "NMAD_DRIVER=%s exec '%s' "
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
	alone(FIB);
	alone("fib 1", "fib(1) = 1, 0 threads");
	CHECK_INT(run(NULL, "'%s'/fib 99", EXAMPLES).code, 2);
}

TEST(ltask_poll)
{
	alone("ltask_poll", "found \"an event\"");
}

/* A connection to the server whose first line has been printed. */
static int call_server(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *port;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(run_has_printed("listening on 127.0.0.1:"));
	CHECK(run_has_printed("\n"));
	port = strrchr(run_printed(), ':') + 1;
	addr.sin_port = htons((uint16_t)atoi(port));
	CHECK_INT(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

TEST(echo)
{
	pid_t server = run_start(NULL, "exec '%s'/echo 0", EXAMPLES);
	int fd = call_server(), idle = call_server();
	struct run r;
	char c;

	for (char i = 'a'; i <= 'z'; i++) {
		CHECK_INT(write(fd, &i, 1), 1);
		CHECK_INT(read(fd, &c, 1), 1);
		CHECK_INT(c, i);
	}
	close(fd);
	CHECK_INT(kill(server, SIGTERM), 0);
	r = run_wait();
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "2 connections, 26 bytes\n"));
	CHECK_INT(read(idle, &c, 1), 0);
	close(idle);
}

/* What it was given when it began is not its own. */
TEST(echo_ends_its_own_connections_only)
{
	int ends[2], idle;
	pid_t server;
	struct run r;
	char c = 0;

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	server = run_start(NULL, "exec '%s'/echo 0", EXAMPLES);
	idle = call_server();
	CHECK_INT(kill(server, SIGTERM), 0);
	r = run_wait();
	CHECK_INT(r.code, 0);
	CHECK_INT(write(ends[0], "x", 1), 1);
	CHECK_INT(read(ends[1], &c, 1), 1);
	CHECK_INT(c, 'x');
	close(ends[0]);
	close(ends[1]);
	close(idle);
}

TEST(echo_says_what_it_cannot_do)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct run r;

	CHECK_INT(bind(fd, (struct sockaddr *)&addr, len), 0);
	CHECK_INT(listen(fd, 1), 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	r = run(NULL, "'%s'/echo %d", EXAMPLES, ntohs(addr.sin_port));
	CHECK_INT(r.code, 1);
	CHECK(has(r.err, ": Address already in use\n"));
	close(fd);
	CHECK_INT(run(NULL, "'%s'/echo 70000", EXAMPLES).code, 2);
	CHECK_INT(run(NULL, "'%s'/echo x", EXAMPLES).code, 2);
}

/* By the module whose it is, and MPI says no more than that it was one. */
TEST(a_setting_that_is_not_allowed_is_named)
{
	static const char *const settings[] = { "MARCEL_NVP=x", "PIOM_MODE=bad",
						"NMAD_SHM_CMA=7",
						"MADMPI_CHECK=bad" };

	for (int i = 0; i < 4; i++) {
		struct run r = run(NULL, "%s exec '%s' -n 1 '%s'/ring",
				   settings[i], MPIRUN, EXAMPLES);

		CHECK(r.code != 0);
		CHECK(has(r.err, settings[i]));
		CHECK(has(r.err, ": MPI_ERR_OTHER: "));
		CHECK(has(r.err, "not allowed"));
	}
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

TEST(pieces)
{
	job(2, "pieces", "temperatures, one row of 2: sum 13998000\n");
	CHECK_INT(run(NULL, "'%s'/pieces", EXAMPLES).code, 2);
}

TEST(rpc)
{
	job(2, "rpc", "rank 1: rank 0 was told of 50000 zeros");
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
