/*
 * Builds in which nobody may come between the application and libc, such as
 * those of the sanitizers: LWPs are not bound, so children need no care.
 */
#include "../os.h"

#include <errno.h>

int os_thread_create(pthread_t *out, void *(*fn)(void *), void *arg)
{
	return pthread_create(out, NULL, fn, arg);
}

bool os_affinity_save(void)
{
	return false;
}

int os_cpu_bind(int cpu)
{
	(void)cpu;
	return -ENOTSUP;
}

void os_cpu_unbind(void)
{
}
