/*
 * Attributes of mutexes that say what is not offered: only POSIX's defaults
 * can be set, everything else is ENOTSUP.
 */
#include <marcel/sync.h>

#include <errno.h>

#include <base/compiler.h>

static int check(const marcel_mutexattr_t *attr, int value, int most)
{
	int type;

	if (marcel_mutexattr_gettype(attr, &type) != 0)
		return EINVAL;
	if (value < 0 || value > most)
		return EINVAL;
	return value == 0 ? 0 : ENOTSUP;
}

static int get_default(const marcel_mutexattr_t *attr, int *out)
{
	int rc = check(attr, 0, 0);

	if (rc == 0)
		*out = 0;
	return rc;
}

BASE_PUBLIC int marcel_mutexattr_setpshared(marcel_mutexattr_t *attr,
					    int pshared)
{
	return check(attr, pshared, MARCEL_PROCESS_SHARED);
}

BASE_PUBLIC int marcel_mutexattr_getpshared(const marcel_mutexattr_t *attr,
					    int *out)
{
	return get_default(attr, out);
}

BASE_PUBLIC int marcel_mutexattr_setprotocol(marcel_mutexattr_t *attr,
					     int protocol)
{
	return check(attr, protocol, MARCEL_PRIO_PROTECT);
}

BASE_PUBLIC int marcel_mutexattr_getprotocol(const marcel_mutexattr_t *attr,
					     int *out)
{
	return get_default(attr, out);
}

BASE_PUBLIC int marcel_mutexattr_setrobust(marcel_mutexattr_t *attr, int robust)
{
	return check(attr, robust, MARCEL_MUTEX_ROBUST);
}

BASE_PUBLIC int marcel_mutexattr_getrobust(const marcel_mutexattr_t *attr,
					   int *out)
{
	return get_default(attr, out);
}
