/*
 * fork + exec, system() and popen() while messages are in flight: the children
 * run, the messages arrive whole, and the children's exits disturb nothing. MPI
 * in a forked child is refused with an error.
 */
#include "../program.h"

#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, ROUNDS = 6, SUCCEEDED = 42 };

static void run_child(int round)
{
	int status = 0;
	pid_t pid;

	if (round % 3 == 0) {
		EXPECT(system("exit 7") == 7 << 8);
		return;
	}
	if (round % 3 == 1) {
		FILE *f = popen("echo hello", "r");
		char line[16] = "";

		EXPECT(f && fgets(line, sizeof(line), f));
		EXPECT(strcmp(line, "hello\n") == 0);
		if (f)
			pclose(f);
		return;
	}
	pid = fork();
	if (pid == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(127);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A child that calls MPI gets an error and ends; it must not hang. */
static void call_mpi_in_child(void)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		if (MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD))
			_exit(1);
		_exit(SUCCEEDED);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) != SUCCEEDED);
}

int main(int argc, char **argv)
{
	char *out = malloc(BYTES), *in = malloc(BYTES);
	int peer;

	program_begin(&argc, &argv);
	EXPECT_INT(size, 2);
	peer = rank ^ 1;
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Request r[2];

		memset(out, rank * 16 + round, BYTES);
		memset(in, 255, BYTES);
		MPI_Irecv(in, BYTES, MPI_BYTE, peer, round, MPI_COMM_WORLD,
			  &r[0]);
		MPI_Isend(out, BYTES, MPI_BYTE, peer, round, MPI_COMM_WORLD,
			  &r[1]);
		run_child(round);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < BYTES; i++) {
			EXPECT(in[i] == peer * 16 + round);
		}
	}
	call_mpi_in_child();
	free(in);
	free(out);
	return program_end("fork");
}
