/*
 * The functions of libc that we stand before.
 *
 * Whom a program finds first is a matter of the libraries that the executable
 * itself names. One that names libmpi_abi alone finds libc before libmarcel,
 * so this file is part of libmpi_abi too. Where both stand in a row, what runs
 * instead runs twice.
 */
#include "front.h"

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

BASE_PUBLIC pid_t fork(void)
{
	static struct front_next next = { .name = "fork" };

	return marcel_front_fork(front_find(&next));
}

/* A child that shares our memory could not mend its affinity. */
BASE_PUBLIC pid_t vfork(void)
{
	return fork();
}
