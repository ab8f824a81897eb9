/*
 * marcel/os/linux/affinity.c: LWPs are bound, and whatever the application
 * makes has the affinity that the process had.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "../../../marcel/os/linux/front.h"
#include "../../../marcel/os/os.h"
#include "../../../marcel/sched/tick.h"
#include "../with.h"

/* The program's own malloc(), which is not always allowed. */
void *__libc_malloc(size_t bytes);

static bool allocates;

BASE_PUBLIC void *malloc(size_t bytes)
{
	allocates = true;
	return __libc_malloc(bytes);
}

static cpu_set_t process; /* the affinity to be found everywhere */

static void remember(void)
{
	CHECK_INT(sched_getaffinity(0, sizeof(process), &process), 0);
	if (CPU_COUNT(&process) < 2)
		check_skip("needs two CPUs");
}

__attribute__((constructor)) static void before_each_test(void)
{
	check_fixture(remember, NULL);
}

/* The line of the kernel's that tells a process's affinity. */
static void status_line(const char *path, char *out, int bytes)
{
	FILE *f = fopen(path, "r");

	CHECK(f != NULL);
	while (fgets(out, bytes, f))
		if (strncmp(out, "Cpus_allowed:", 13) == 0)
			break;
	fclose(f);
	CHECK(strncmp(out, "Cpus_allowed:", 13) == 0);
}

/* Runs in every place from which children are made: main and a thread. */
static void on_all_vps(void *(*body)(void *))
{
	struct marcel_config config = { .nvp = CPU_COUNT(&process) };
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_init(&config), 0);
	CHECK(!marcel_is_oversubscribed());
	body(NULL);
	for (int vp = 0; vp < marcel_nvp(); vp++) {
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
		CHECK_INT(marcel_attr_setstacksize(&attr, 1 << 20), 0);
		CHECK_INT(marcel_create(&t, &attr, body, NULL), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
	CHECK_INT(marcel_end(), 0);
}

/* Every LWP has a CPU of its own, and goes back to it. */
static void check_bound(void)
{
	cpu_set_t mine;

	CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CHECK_INT(CPU_COUNT(&mine), 1);
}

static void *is_bound(void *arg)
{
	static cpu_set_t seen[CPU_SETSIZE];
	int vp = marcel_current_vp();

	check_bound();
	sched_getaffinity(0, sizeof(seen[vp]), &seen[vp]);
	for (int i = 0; i < vp; i++)
		CHECK(!CPU_EQUAL(&seen[i], &seen[vp]));
	return arg;
}

TEST(each_vp_has_a_cpu_of_its_own)
{
	cpu_set_t after;

	on_all_vps(is_bound);
	CHECK_INT(sched_getaffinity(0, sizeof(after), &after), 0);
	CHECK(CPU_EQUAL(&after, &process));
}

/* An LWP may come to another VP while its thread is interrupted in malloc(). */
TEST(to_be_bound_allocates_nothing)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &process)) {
			allocates = false;
			CHECK_INT(os_cpu_set(cpu), 0);
			CHECK(!allocates);
		}
	sched_setaffinity(0, sizeof(process), &process);
}

static void *kernel_thread(void *arg)
{
	cpu_set_t mine;

	CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CHECK(CPU_EQUAL(&mine, &process));
	return arg;
}

static int c_thread(void *arg)
{
	kernel_thread(arg);
	return 0;
}

static void *make_kernel_thread(void *arg)
{
	pthread_t p;
	thrd_t c;

	CHECK_INT(pthread_create(&p, NULL, kernel_thread, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	check_bound();
	CHECK_INT(thrd_create(&c, c_thread, NULL), thrd_success);
	CHECK_INT(thrd_join(c, NULL), thrd_success);
	check_bound();
	return arg;
}

TEST(kernel_threads_of_the_application_are_not_bound)
{
	on_all_vps(make_kernel_thread);
}

static ATOMIC(int) others_end;

static void *run_meanwhile(void *arg)
{
	while (load_relaxed(&others_end) == 0)
		marcel_yield();
	return arg;
}

/* In the place of libc's function: a tick comes, if it is let through. */
static int tick_comes(pthread_t *out, const pthread_attr_t *attr,
		      void *(*fn)(void *), void *arg)
{
	struct marcel_lwp *l = cpu_tls_word();
	uint32_t before = l->preempted;
	cpu_set_t mine;

	marcel_tick_send(l);
	CHECK_INT(l->preempted, before);
	CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CHECK(CPU_EQUAL(&mine, &process));
	return EAGAIN;
}

/* After it a child would inherit the CPU of the LWP. */
TEST(no_tick_comes_while_a_kernel_thread_is_made)
{
	struct marcel_config config = { .nvp = 1 };
	pthread_t p;
	marcel_t t;

	CHECK_INT(marcel_init(&config), 0);
	marcel_lwp_provide(); /* the handler makes none */
	CHECK_INT(marcel_create(&t, NULL, run_meanwhile, NULL), 0);
	CHECK_INT(marcel_front_pthread_create(tick_comes, &p, NULL, is_bound,
					      NULL),
		  EAGAIN);
	store_relaxed(&others_end, 1);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_end(), 0);
}

static void check_child(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	check_bound();
}

static int child_differs(void)
{
	cpu_set_t mine;

	return sched_getaffinity(0, sizeof(mine), &mine) != 0 ||
	       !CPU_EQUAL(&mine, &process);
}

static void *make_forks(void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(child_differs());
	check_child(pid);
	pid = vfork();
	if (pid == 0)
		_exit(child_differs());
	check_child(pid);
	return arg;
}

TEST(forked_children_are_not_bound)
{
	on_all_vps(make_forks);
}

static char want[256]; /* Cpus_allowed: of the process */

static void *make_processes(void *arg)
{
	char got[256], command[512], sh[] = "sh", flag[] = "-c";
	char *argv[] = { sh, flag, command, NULL };
	FILE *f;
	pid_t pid;

	/* The shell must not fork before it looks. */
	snprintf(command, sizeof(command),
		 "while read a b; do [ \"$a\" != Cpus_allowed: ] || break; done"
		 " < /proc/$$/status; [ \"$a\t$b\" = '%.*s' ]",
		 (int)strcspn(want, "\n"), want);
	CHECK_INT(system(command), 0);
	check_bound();

	CHECK_INT(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	check_child(pid);
	CHECK_INT(posix_spawnp(&pid, "sh", NULL, NULL, argv, environ), 0);
	check_child(pid);

	f = popen("grep Cpus_allowed: /proc/self/status", "r");
	CHECK(f != NULL);
	check_bound();
	CHECK(fgets(got, sizeof(got), f) != NULL);
	CHECK_STR(got, want);
	CHECK_INT(pclose(f), 0);
	return arg;
}

TEST(processes_that_are_started_are_not_bound)
{
	status_line("/proc/self/status", want, sizeof(want));
	on_all_vps(make_processes);
}

static void *is_free(void *arg)
{
	return kernel_thread(arg);
}

TEST(more_vps_than_cpus_are_not_bound)
{
	struct marcel_config config = { .nvp = CPU_COUNT(&process) + 1 };
	marcel_t t;

	CHECK_INT(marcel_init(&config), 0);
	CHECK(marcel_is_oversubscribed());
	is_free(NULL);
	CHECK_INT(marcel_create(&t, NULL, is_free, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	CHECK(!marcel_is_oversubscribed());
}

TEST(ranks_that_share_the_cpus_take_different_ones)
{
	int n = CPU_COUNT(&process);
	cpu_set_t all;

	CPU_ZERO(&all);
	for (int rank = 0; rank < n; rank++) {
		struct marcel_config config = { .local_rank = rank,
						.local_ranks = n };
		cpu_set_t mine;

		CHECK_INT(marcel_init(&config), 0);
		CHECK_INT(marcel_nvp(), 1);
		CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
		CHECK_INT(CPU_COUNT(&mine), 1);
		CPU_OR(&all, &all, &mine);
		CHECK_INT(marcel_end(), 0);
	}
	CHECK(CPU_EQUAL(&all, &process));
}
