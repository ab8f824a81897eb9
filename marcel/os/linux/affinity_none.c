/*
 * Builds in which nobody may come between the application and libc, such as
 * those of the sanitizers: LWPs are not bound, so children need no care.
 */
#include "../os.h"

#include <errno.h>

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
