/*
 * What <marcel/pthread.h> needs where POSIX and marcel differ.
 */
#include <marcel/pthread.h>

#include <errno.h>
#include <string.h>

#include <base/compiler.h>
#include "attr.h"
#include "fork.h"

static void start(void)
{
	marcel_init(NULL);
}

void marcel_posix_start(void)
{
	static marcel_once_t once = MARCEL_ONCE_INIT;

	if (unlikely(!marcel_is_running()) && marcel_fork_start() == -EPERM)
		marcel_once(&once, start);
}

BASE_PUBLIC int marcel_posix_create(marcel_t *out, const marcel_attr_t *attr,
				    void *(*fn)(void *), void *arg)
{
	marcel_attr_t mine;
	int rc, band;

	marcel_posix_start();
	marcel_getpriority(marcel_self(), &band);
	if (attr != NULL || unlikely(band != MARCEL_PRIORITY_NORMAL)) {
		if (attr != NULL)
			mine = *attr;
		else
			marcel_attr_init(&mine);
		rc = marcel_posix_set_band(&mine);
		if (rc != 0)
			return rc;
		attr = &mine;
	}
	rc = marcel_create(out, attr, fn, arg);
	return rc == EPERM ? EAGAIN : rc;
}

BASE_PUBLIC int marcel_posix_getname(marcel_t t, char *out, size_t bytes)
{
	char name[MARCEL_NAME_MAX];
	int rc = marcel_getname(t, name, sizeof(name));

	if (rc != 0)
		return rc;
	if (out == NULL)
		return EINVAL;
	if (strlen(name) >= bytes)
		return ERANGE;
	strcpy(out, name);
	return 0;
}

static int put_errno(int rc)
{
	if (likely(rc == 0))
		return 0;
	*marcel_errno_location() = rc;
	return -1;
}

#undef sigpending /* libc's, here */

/* Of the thread, and of the process: what its kernel thread would get. */
BASE_PUBLIC int marcel_posix_sigpending(sigset_t *out)
{
	sigset_t sent, kernels;

	if (marcel_sigpending(&sent) != 0 || sigpending(&kernels) != 0)
		return -1;
	return sigorset(out, &sent, &kernels);
}

/* --- semaphores --- */

BASE_PUBLIC int marcel_posix_sem_init(marcel_sem_t *s, int pshared,
				      unsigned value)
{
	return put_errno(marcel_sem_init(s, pshared, value));
}

BASE_PUBLIC int marcel_posix_sem_destroy(marcel_sem_t *s)
{
	return put_errno(marcel_sem_destroy(s));
}

BASE_PUBLIC int marcel_posix_sem_wait(marcel_sem_t *s)
{
	return put_errno(marcel_sem_wait(s));
}

BASE_PUBLIC int marcel_posix_sem_trywait(marcel_sem_t *s)
{
	return put_errno(marcel_sem_trywait(s));
}

BASE_PUBLIC int marcel_posix_sem_timedwait(marcel_sem_t *s,
					   const struct timespec *abs)
{
	return put_errno(marcel_sem_timedwait(s, abs));
}

BASE_PUBLIC int marcel_posix_sem_clockwait(marcel_sem_t *s, clockid_t clock,
					   const struct timespec *abs)
{
	return put_errno(marcel_sem_clockwait(s, clock, abs));
}

BASE_PUBLIC int marcel_posix_sem_post(marcel_sem_t *s)
{
	return put_errno(marcel_sem_post(s));
}

BASE_PUBLIC int marcel_posix_sem_getvalue(marcel_sem_t *s, int *out)
{
	return put_errno(marcel_sem_getvalue(s, out));
}
