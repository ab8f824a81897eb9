/*
 * What runs instead of the functions of libc that front.c stands before. Each
 * has the result and the errors of that function, `next`, which it calls. Of
 * front_io.c see io/next.h.
 */
#ifndef MARCEL_OS_LINUX_FRONT_H
#define MARCEL_OS_LINUX_FRONT_H

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/types.h>
#include <threads.h>

#include <base/atomic.h>
#include <base/compiler.h>

/* Of a function in front.c or front_io.c: the definition that comes after. */
struct front_next {
	const char *name;
	ATOMIC(void *) fn; /* a: relaxed; all who write agree */
};

void *front_find(struct front_next *n);

typedef pid_t front_fork_fn(void);
typedef int front_pthread_create_fn(pthread_t *, const pthread_attr_t *,
				    void *(*)(void *), void *);
typedef int front_thrd_create_fn(thrd_t *, thrd_start_t, void *);
typedef int front_spawn_fn(pid_t *, const char *,
			   const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const *,
			   char *const *);
typedef int front_system_fn(const char *);
typedef FILE *front_popen_fn(const char *, const char *);
typedef int front_exec_fn(const char *, char *const *, char *const *);
typedef int front_fexecve_fn(int, char *const *, char *const *);
typedef int front_execveat_fn(int, const char *, char *const *, char *const *,
			      int);

BASE_PUBLIC int marcel_front_pthread_create(front_pthread_create_fn *next,
					    pthread_t *out,
					    const pthread_attr_t *attr,
					    void *(*fn)(void *), void *arg);
BASE_PUBLIC int marcel_front_thrd_create(front_thrd_create_fn *next,
					 thrd_t *out, thrd_start_t fn,
					 void *arg);
BASE_PUBLIC int marcel_front_spawn(front_spawn_fn *next, pid_t *out,
				   const char *path,
				   const posix_spawn_file_actions_t *actions,
				   const posix_spawnattr_t *attr,
				   char *const argv[], char *const env[]);
BASE_PUBLIC pid_t marcel_front_fork(front_fork_fn *next);
BASE_PUBLIC pid_t marcel_front__Fork(front_fork_fn *next);
BASE_PUBLIC int marcel_front_system(front_system_fn *next, const char *command);
BASE_PUBLIC FILE *marcel_front_popen(front_popen_fn *next, const char *command,
				     const char *mode);
/* For execve() and execvpe(). */
BASE_PUBLIC int marcel_front_exec(front_exec_fn *next, const char *path,
				  char *const argv[], char *const env[]);
BASE_PUBLIC int marcel_front_fexecve(front_fexecve_fn *next, int fd,
				     char *const argv[], char *const env[]);
BASE_PUBLIC int marcel_front_execveat(front_execveat_fn *next, int dir,
				      const char *path, char *const argv[],
				      char *const env[], int flags);

#endif
