/*
 * The functions of libc that we stand before.
 *
 * Whom a program finds first is a matter of the libraries that the executable
 * itself names. One that names libmpi_abi alone finds libc before libmarcel,
 * so this file is part of libmpi_abi too. Where both stand in a row, what runs
 * instead runs twice.
 */
#include "front.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

BASE_PUBLIC int pthread_create(pthread_t *out, const pthread_attr_t *attr,
			       void *(*fn)(void *), void *arg)
{
	static struct front_next next = { .name = "pthread_create" };

	return marcel_front_pthread_create(front_find(&next), out, attr, fn,
					   arg);
}

/* libc's makes its thread without a call that we could see. */
BASE_PUBLIC int thrd_create(thrd_t *out, thrd_start_t fn, void *arg)
{
	static struct front_next next = { .name = "thrd_create" };

	return marcel_front_thrd_create(front_find(&next), out, fn, arg);
}

BASE_PUBLIC int posix_spawn(pid_t *out, const char *path,
			    const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[],
			    char *const env[])
{
	static struct front_next next = { .name = "posix_spawn" };

	return marcel_front_spawn(front_find(&next), out, path, actions, attr,
				  argv, env);
}

BASE_PUBLIC int posix_spawnp(pid_t *out, const char *file,
			     const posix_spawn_file_actions_t *actions,
			     const posix_spawnattr_t *attr, char *const argv[],
			     char *const env[])
{
	static struct front_next next = { .name = "posix_spawnp" };

	return marcel_front_spawn(front_find(&next), out, file, actions, attr,
				  argv, env);
}

BASE_PUBLIC int system(const char *command)
{
	static struct front_next next = { .name = "system" };

	return marcel_front_system(front_find(&next), command);
}

BASE_PUBLIC FILE *popen(const char *command, const char *mode)
{
	static struct front_next next = { .name = "popen" };

	return marcel_front_popen(front_find(&next), command, mode);
}

/* --- to become another program --- */

static struct front_next next_execve = { .name = "execve" };
static struct front_next next_execvpe = { .name = "execvpe" };
static struct front_next next_fexecve = { .name = "fexecve" };
static struct front_next next_execveat = { .name = "execveat" };
static struct front_next next_Fork = { .name = "_Fork" };

/*
 * Another thread may hold the dynamic linker's lock, and a child, of whatever
 * function of libc's, does not have that thread; a signal handler may have
 * interrupted it. So they are looked up before, when this is loaded.
 */
static __attribute__((constructor)) void find_programs(void)
{
	front_find(&next_execve);
	front_find(&next_execvpe);
	front_find(&next_fexecve);
	front_find(&next_execveat);
	front_find(&next_Fork);
}

BASE_PUBLIC int execve(const char *path, char *const argv[], char *const env[])
{
	return marcel_front_exec(front_find(&next_execve), path, argv, env);
}

BASE_PUBLIC int execvpe(const char *file, char *const argv[], char *const env[])
{
	return marcel_front_exec(front_find(&next_execvpe), file, argv, env);
}

BASE_PUBLIC int fexecve(int fd, char *const argv[], char *const env[])
{
	return marcel_front_fexecve(front_find(&next_fexecve), fd, argv, env);
}

BASE_PUBLIC int execveat(int dir, const char *path, char *const argv[],
			 char *const env[], int flags)
{
	return marcel_front_execveat(front_find(&next_execveat), dir, path,
				     argv, env, flags);
}

BASE_PUBLIC int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

BASE_PUBLIC int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The bytes of an array of the arguments, with the first and the NULL. */
static size_t array_bytes(va_list ap)
{
	size_t n = 2;
	va_list copy;

	va_copy(copy, ap);
	while (va_arg(copy, char *) != NULL)
		n++;
	va_end(copy);
	return n * sizeof(char *);
}

/* The environment comes behind them, if it is asked for. */
static void fill_array(char **argv, const char *first, va_list ap,
		       char *const **env)
{
	*argv++ = (char *)first;
	while ((*argv++ = va_arg(ap, char *)) != NULL)
		;
	if (env != NULL)
		*env = va_arg(ap, char *const *);
}

/* No malloc: they may be called by a signal handler, and by a forked child. */
BASE_PUBLIC int execl(const char *path, const char *arg, ...)
{
	char **argv;
	va_list ap;

	va_start(ap, arg);
	argv = __builtin_alloca(array_bytes(ap));
	fill_array(argv, arg, ap, NULL);
	va_end(ap);
	return execv(path, argv);
}

BASE_PUBLIC int execlp(const char *file, const char *arg, ...)
{
	char **argv;
	va_list ap;

	va_start(ap, arg);
	argv = __builtin_alloca(array_bytes(ap));
	fill_array(argv, arg, ap, NULL);
	va_end(ap);
	return execvp(file, argv);
}

BASE_PUBLIC int execle(const char *path, const char *arg, ...)
{
	char *const *env;
	char **argv;
	va_list ap;

	va_start(ap, arg);
	argv = __builtin_alloca(array_bytes(ap));
	fill_array(argv, arg, ap, &env);
	va_end(ap);
	return execve(path, argv, env);
}

/* --- to become two --- */

BASE_PUBLIC pid_t fork(void)
{
	static struct front_next next = { .name = "fork" };

	return marcel_front_fork(front_find(&next));
}

BASE_PUBLIC pid_t _Fork(void)
{
	return marcel_front__Fork(front_find(&next_Fork));
}

/* A child that shares our memory could not mend its affinity. */
BASE_PUBLIC pid_t vfork(void)
{
	return fork();
}
