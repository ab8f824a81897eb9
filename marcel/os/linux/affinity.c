/*
 * Children of a bound LWP get the affinity that the process had.
 *
 * A kernel thread inherits its maker's mask, and our LWPs are bound to one CPU
 * each: an OpenMP runtime that starts in a user thread would have all its
 * threads on that CPU. So the functions of libc that make kernel threads and
 * processes are defined here as well: they give the calling LWP the original
 * mask for the time of the real call, two system calls. fork() is left alone,
 * because its child can mend itself (thread/foreign.c).
 *
 * This needs our definitions to come before libc's in the order in which the
 * dynamic linker looks, which is not so in a library that was dlopened without
 * RTLD_GLOBAL. os_affinity_save() finds out, and then no LWP is bound.
 */
#include "../os.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/diag.h>
#include "../tls.h"

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

/* Around a real call. The answer goes from the first to the second. */
static BASE_NOINLINE int leave_cpu(void)
{
	int bound = marcel_tls.bound;

	if (bound != 0)
		set_original();
	return bound;
}

static void return_to_cpu(int bound)
{
	int saved = errno;

	if (bound != 0)
		os_cpu_set(bound - 1);
	errno = saved;
}

/* --- libc's functions --- */

enum real { PTHREAD_CREATE, POSIX_SPAWN, POSIX_SPAWNP, SYSTEM, POPEN, REALS };

static ATOMIC(void *) reals[REALS]; /* a: relaxed; all who write agree */

/* libc may stand before us: in a dlopened library, or linked out of turn. */
static void *in_libc(const char *name)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);

	return libc != NULL ? dlsym(libc, name) : NULL;
}

/* The definition that comes after ours, or libc's. */
static void *real(enum real which)
{
	static const char *const names[] = {
		[PTHREAD_CREATE] = "pthread_create",
		[POSIX_SPAWN] = "posix_spawn",
		[POSIX_SPAWNP] = "posix_spawnp",
		[SYSTEM] = "system",
		[POPEN] = "popen",
	};
	void *p = load_relaxed(&reals[which]);

	if (p != NULL)
		return p;
	p = dlsym(RTLD_NEXT, names[which]);
	if (p == NULL)
		p = in_libc(names[which]);
	if (p == NULL)
		base_fatal("marcel", "libc has no %s", names[which]);
	store_relaxed(&reals[which], p);
	return p;
}

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *),
		      void *);
typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *,
		     const posix_spawnattr_t *, char *const *, char *const *);
typedef int system_fn(const char *);
typedef FILE *popen_fn(const char *, const char *);

int os_thread_create(pthread_t *out, void *(*fn)(void *), void *arg)
{
	create_fn *create = real(PTHREAD_CREATE);

	return create(out, NULL, fn, arg);
}

static int create_unbound(pthread_t *out, const pthread_attr_t *attr,
			  void *(*fn)(void *), void *arg)
{
	create_fn *create = real(PTHREAD_CREATE);
	int bound = leave_cpu(), rc = create(out, attr, fn, arg);

	return_to_cpu(bound);
	return rc;
}

/*
 * By its own name our definition can be told from libc's: `pthread_create`
 * means whichever the dynamic linker finds first, here as everywhere.
 */
BASE_PUBLIC int pthread_create(pthread_t *out, const pthread_attr_t *attr,
			       void *(*fn)(void *), void *arg)
	__attribute__((alias("create_unbound")));

BASE_PUBLIC int posix_spawn(pid_t *out, const char *path,
			    const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[],
			    char *const env[])
{
	spawn_fn *spawn = real(POSIX_SPAWN);
	int bound = leave_cpu();
	int rc = spawn(out, path, actions, attr, argv, env);

	return_to_cpu(bound);
	return rc;
}

BASE_PUBLIC int posix_spawnp(pid_t *out, const char *file,
			     const posix_spawn_file_actions_t *actions,
			     const posix_spawnattr_t *attr, char *const argv[],
			     char *const env[])
{
	spawn_fn *spawn = real(POSIX_SPAWNP);
	int bound = leave_cpu();
	int rc = spawn(out, file, actions, attr, argv, env);

	return_to_cpu(bound);
	return rc;
}

BASE_PUBLIC int system(const char *command)
{
	system_fn *run = real(SYSTEM);
	int bound = leave_cpu(), rc = run(command);

	return_to_cpu(bound);
	return rc;
}

BASE_PUBLIC FILE *popen(const char *command, const char *mode)
{
	popen_fn *open = real(POPEN);
	int bound = leave_cpu();
	FILE *f = open(command, mode);

	return_to_cpu(bound);
	return f;
}

/* A child that shares our memory could not mend its affinity. */
BASE_PUBLIC pid_t vfork(void)
{
	return fork();
}

/* --- save --- */

bool os_affinity_save(void)
{
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(original.bits),
			 original.bits);

	original.bytes = n > 0 ? (size_t)n : 0;
	return n > 0 &&
	       dlsym(RTLD_DEFAULT, "pthread_create") == (void *)create_unbound;
}
