/*
 * A child that is made while another thread begins MPI is told that MPI is not
 * for it; it does not wait for that thread, which it does not have.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../program.h"

static void *begin(void *arg)
{
	EXPECT_INT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, arg),
		   MPI_SUCCESS);
	return arg;
}

static int threads_here(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

int main(void)
{
	MPI_Session s, none;
	pthread_t thread;
	int status = 0, before = threads_here();
	pid_t child;

	pthread_create(&thread, NULL, begin, &s);
	/* It does not do that alone: once there is another one, it has begun.
	 */
	while (threads_here() < before + 2)
		;
	child = fork();
	if (child == 0)
		_exit(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN,
				       &none) == MPI_SUCCESS);
	EXPECT(waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pthread_join(thread, NULL);
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	printf("fork_early: ok\n");
	return 0;
}
