/*
 * What may be called when MPI does not run, and what may not: each function
 * that is exported is called before MPI_Init and after MPI_Finalize, by a
 * process of its own. Those that the standard lists return, whatever they think
 * of their arguments; the others end the process and are named.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct function {
	const char *name;
	void (*call)(void); /* with zeros */
	int always;
};

#include "outside_calls.h"

/* Of AddressSanitizer: it would look for leaks at the end of each child. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/*
 * A child has all of a sanitizer's memory, and that takes time. What it could
 * see is the same for all: that nothing is looked at before the call is
 * refused. So it has each fifth of them, others in each run.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { STEP = 5 };
#else
enum { STEP = 1 };
#endif

static int failures, called;

/* The exit code of a child that calls it, and what that says on stderr. */
static int call_in_child(const struct function *f, char *said, size_t room)
{
	int ends[2], status = -1;
	size_t n = 0;
	ssize_t got;
	pid_t child;

	if (pipe(ends) != 0)
		exit(2);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		f->call();
		_exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], said + n, room - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(ends[0]);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void one(const struct function *f, const char *when)
{
	char said[1024], refusal[160];
	int code = call_in_child(f, said, sizeof(said)), good;

	snprintf(refusal, sizeof(refusal), ": %s was called %s MPI_", f->name,
		 when);
	if (f->always)
		good = code == 0 && said[0] == '\0';
	else
		good = code > 0 && code < 128 && strstr(said, refusal) != NULL;
	if (good)
		return;
	printf("%s %s: code %d, \"%s\"\n", f->name, when, code, said);
	failures++;
}

static void all(const char *when)
{
	size_t first = (size_t)time(NULL) % STEP;

	printf("%s: each %d. from %zu on\n", when, STEP, first);
	for (size_t i = first; i < sizeof(functions) / sizeof(functions[0]);
	     i += STEP) {
		one(&functions[i], when);
		called++;
	}
}

int main(void)
{
	/* Errors return: what is allowed is told from what is not. */
	setenv("MADMPI_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
	all("before");
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	all("after");
	printf("%zu functions, %d calls, %d not as they should be\n",
	       sizeof(functions) / sizeof(functions[0]), called, failures);
	return failures != 0;
}
