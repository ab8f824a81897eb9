/*
 * marcel/os/linux/cpu.c: a child allocates whatever kernel threads of the
 * runtime's its parent has just made.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "../../../marcel/os/os.h"
#include "../../parent.h"
#include "../with.h"

enum { ROUNDS = 100 / FEWER + 10, MADE = 8, LARGEST = 1 << 16 };

static void *nothing(void *arg)
{
	return arg;
}

/* Of each size that an allocator may have a lock for; it has none yet. */
static void *allocate(void *arg)
{
	for (size_t bytes = 8; bytes <= LARGEST; bytes += bytes / 8 + 8) {
		void *volatile p = malloc(bytes);

		CHECK(p != NULL);
		free(p);
	}
	return arg;
}

static void allocate_anew(void)
{
	pthread_t t;

	CHECK_INT(pthread_create(&t, NULL, allocate, NULL), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
}

static void make_and_fork(void)
{
	pthread_t t[MADE];
	int status = -1;
	pid_t pid;

	for (int i = 0; i < MADE; i++)
		CHECK_INT(os_thread_create(&t[i], nothing, NULL), 0);
	pid = parent_forks(fork);
	CHECK(pid >= 0);
	if (pid == 0) {
		allocate_anew();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	for (int i = 0; i < MADE; i++)
		CHECK_INT(pthread_join(t[i], NULL), 0);
}

TEST(a_child_allocates_whatever_threads_are_just_beginning)
{
	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	for (int i = 0; i < ROUNDS; i++)
		make_and_fork();
}
