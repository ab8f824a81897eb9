/*
 * Children of an LWP, and a program that it becomes, get the affinity, the
 * policy and the mask of signals that the process had.
 *
 * A kernel thread inherits its maker's mask, and our LWPs are bound to one CPU
 * each: an OpenMP runtime that starts in a user thread would have all its
 * threads on that CPU. So front.c stands before the functions of libc that make
 * kernel threads and processes, and here the calling LWP gets the original mask
 * for the time of the real call, two system calls. The child of a fork() mends
 * that itself (thread/fork.c). Nobody can mend the policy of an LWP of
 * lowest priority: a thread that runs on one leaves it first.
 *
 * Nobody comes by front.c where libc's definitions are found first, as in a
 * program that dlopens us without RTLD_GLOBAL. os_affinity_save() finds out,
 * and then no LWP is bound.
 */
#include "../os.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <base/compiler.h>
#include <marcel/blocking.h>
#include "../../sched/block.h"
#include "../../sched/tick.h"
#include "../../thread/fork.h"
#include "../tls.h"
#include "front.h"

enum { CPUS_MAX = 16384 };

/* Written while the runtime starts, before any LWP is bound. */
static struct {
	unsigned long bits[CPUS_MAX / 8 / sizeof(unsigned long)];
	size_t bytes; /* that the kernel filled; 0: nothing remembered */
} original;

/* --- the mask --- */

static void set_original(void)
{
	int saved = errno;

	sched_setaffinity(0, original.bytes, (cpu_set_t *)original.bits);
	errno = saved;
}

BASE_NOINLINE int os_cpu_bind(int cpu)
{
	int rc = os_cpu_set(cpu);

	if (rc == 0)
		marcel_tls.bound = cpu + 1;
	return rc;
}

BASE_NOINLINE void os_cpu_unbind(void)
{
	if (marcel_tls.bound == 0)
		return;
	set_original();
	marcel_tls.bound = 0;
}

static BASE_NOINLINE bool is_ours(void)
{
	return marcel_tls.makes_own;
}

static BASE_NOINLINE int cpu_bound(void)
{
	return marcel_tls.bound;
}

/* Ticks and CPUs of the kernel thread as children inherit them. */
static int lend_original(void)
{
	int bound;

	if (!is_ours())
		marcel_hush_lift();
	bound = cpu_bound(); /* a tick may have come */
	if (bound != 0)
		set_original();
	return bound;
}

/*
 * Around a real call: what the first has changed, and the second puts back. A
 * tick could bind the LWP again, and a program that it becomes be killed by
 * one: none comes between. A process that has only the storage of the LWP
 * (clone()) has nothing mended but its own mask and CPUs.
 */
struct lent {
	struct marcel_lwp *held;
	int bound;
};

static struct lent leave_cpu(void)
{
	struct lent lent = { NULL, 0 };

	if (!is_ours()) {
		marcel_block_rise();
		lent.held = marcel_tick_hold();
	}
	lent.bound = lend_original();
	return lent;
}

static void return_to_cpu(struct lent lent)
{
	int saved = errno;

	if (lent.bound != 0)
		os_cpu_set(lent.bound - 1);
	if (!is_ours())
		marcel_hush_again();
	marcel_tick_release(lent.held);
	errno = saved;
}

/* --- libc's functions --- */

static bool came_by; /* written while the runtime starts */

/* What os_affinity_save() asks for, as the application would. */
static void *probe(void *arg)
{
	return arg;
}

int marcel_front_pthread_create(front_pthread_create_fn *next, pthread_t *out,
				const pthread_attr_t *attr, void *(*fn)(void *),
				void *arg)
{
	struct lent lent;
	int rc;

	if (fn == probe) {
		came_by = true;
		return EAGAIN;
	}
	lent = leave_cpu();
	rc = next(out, attr, fn, arg);
	return_to_cpu(lent);
	return rc;
}

int marcel_front_thrd_create(front_thrd_create_fn *next, thrd_t *out,
			     thrd_start_t fn, void *arg)
{
	struct lent lent = leave_cpu();
	int rc = next(out, fn, arg);

	return_to_cpu(lent);
	return rc;
}

int marcel_front_spawn(front_spawn_fn *next, pid_t *out, const char *path,
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[],
		       char *const env[])
{
	struct lent lent = leave_cpu();
	int rc = next(out, path, actions, attr, argv, env);

	return_to_cpu(lent);
	return rc;
}

pid_t marcel_front_fork(front_fork_fn *next)
{
	pid_t pid;
	int saved;

	marcel_block_rise();
	marcel_hush_lift();
	pid = next();
	saved = errno;
	marcel_hush_again();
	errno = saved;
	return pid;
}

/*
 * No handlers of fork() are called, and a handler of signals may call it: so
 * the caller stays where it is, and the child is told here what it is not.
 */
pid_t marcel_front__Fork(front_fork_fn *next)
{
	pid_t pid = next();

	if (pid == 0) {
		marcel_hush_lift();
		marcel_forked();
	}
	return pid;
}

/* It waits for the end of the command. */
int marcel_front_system(front_system_fn *next, const char *command)
{
	struct lent lent;
	int rc;

	if (marcel_block_holds())
		marcel_block_begin();
	lent = leave_cpu();
	rc = next(command);
	return_to_cpu(lent);
	marcel_blocking_end();
	return rc;
}

FILE *marcel_front_popen(front_popen_fn *next, const char *command,
			 const char *mode)
{
	struct lent lent = leave_cpu();
	FILE *f = next(command, mode);

	return_to_cpu(lent);
	return f;
}

/* --- to become another program; only who fails comes back --- */

int marcel_front_exec(front_exec_fn *next, const char *path, char *const argv[],
		      char *const env[])
{
	struct lent lent = leave_cpu();
	int rc = next(path, argv, env);

	return_to_cpu(lent);
	return rc;
}

int marcel_front_fexecve(front_fexecve_fn *next, int fd, char *const argv[],
			 char *const env[])
{
	struct lent lent = leave_cpu();
	int rc = next(fd, argv, env);

	return_to_cpu(lent);
	return rc;
}

int marcel_front_execveat(front_execveat_fn *next, int dir, const char *path,
			  char *const argv[], char *const env[], int flags)
{
	struct lent lent = leave_cpu();
	int rc = next(dir, path, argv, env, flags);

	return_to_cpu(lent);
	return rc;
}

/* --- save --- */

bool os_affinity_save(void)
{
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(original.bits),
			 original.bits);
	pthread_t t;

	original.bytes = n > 0 ? (size_t)n : 0;
	came_by = false;
	if (pthread_create(&t, NULL, probe, NULL) == 0)
		pthread_join(t, NULL);
	return n > 0 && came_by;
}
