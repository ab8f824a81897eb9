/*
 * A program that names no library but libmpi_abi: its kernel thread is bound
 * to a CPU by MPI_Init, and the kernel threads and processes that it makes may
 * run wherever the process might.
 */
#include "../program.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>

static cpu_set_t process;

static void *kernel_thread(void *arg)
{
	cpu_set_t mine;

	EXPECT_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
	EXPECT(CPU_EQUAL(&mine, &process));
	return arg;
}

static void expect_nproc(const char *text)
{
	EXPECT_INT(atoi(text), CPU_COUNT(&process));
}

static void children(void)
{
	char test[64], line[32] = "";
	char *const argv[] = { (char *)"sh", (char *)"-c", test, NULL };
	int status;
	pid_t pid;
	FILE *f;

	f = popen("nproc", "r");
	EXPECT(f != NULL && fgets(line, sizeof(line), f) != NULL);
	pclose(f);
	expect_nproc(line);
	snprintf(test, sizeof(test), "test $(nproc) = %d", CPU_COUNT(&process));
	EXPECT_INT(system(test), 0);
	EXPECT_INT(posix_spawnp(&pid, "sh", NULL, NULL, argv, NULL), 0);
	EXPECT_INT(waitpid(pid, &status, 0), pid);
	EXPECT_INT(status, 0);
}

int main(int argc, char **argv)
{
	cpu_set_t mine;
	pthread_t t;

	/* With more kernel threads than CPUs nobody is bound. */
	unsetenv("MARCEL_NVP");
	EXPECT_INT(sched_getaffinity(0, sizeof(process), &process), 0);
	program_begin(&argc, &argv);
	EXPECT_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
	EXPECT_INT(CPU_COUNT(&mine), 1);
	EXPECT_INT(pthread_create(&t, NULL, kernel_thread, NULL), 0);
	EXPECT_INT(pthread_join(t, NULL), 0);
	children();
	return program_end("affinity");
}
