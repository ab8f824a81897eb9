/*
 * Attributes that say what is not offered: only POSIX's defaults can be set,
 * everything else is ENOTSUP.
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

static int check_shared(int pshared)
{
	if (pshared == MARCEL_PROCESS_PRIVATE)
		return 0;
	return pshared == MARCEL_PROCESS_SHARED ? ENOTSUP : EINVAL;
}

BASE_PUBLIC int marcel_condattr_setpshared(marcel_condattr_t *attr, int pshared)
{
	clockid_t clock;

	if (marcel_condattr_getclock(attr, &clock) != 0)
		return EINVAL;
	return check_shared(pshared);
}

BASE_PUBLIC int marcel_condattr_getpshared(const marcel_condattr_t *attr,
					   int *out)
{
	clockid_t clock;

	if (marcel_condattr_getclock(attr, &clock) != 0)
		return EINVAL;
	*out = MARCEL_PROCESS_PRIVATE;
	return 0;
}

BASE_PUBLIC int marcel_rwlockattr_setpshared(marcel_rwlockattr_t *attr,
					     int pshared)
{
	int kind;

	if (marcel_rwlockattr_getkind(attr, &kind) != 0)
		return EINVAL;
	return check_shared(pshared);
}

BASE_PUBLIC int marcel_rwlockattr_getpshared(const marcel_rwlockattr_t *attr,
					     int *out)
{
	int kind;

	if (marcel_rwlockattr_getkind(attr, &kind) != 0)
		return EINVAL;
	*out = MARCEL_PROCESS_PRIVATE;
	return 0;
}

/* --- a barrier's say nothing else: words[0]: whether it was initialised --- */

enum { BARRIERATTR_VALID = 0x62617272 };

BASE_PUBLIC int marcel_barrierattr_init(marcel_barrierattr_t *attr)
{
	attr->marcel_words[0] = BARRIERATTR_VALID;
	return 0;
}

BASE_PUBLIC int marcel_barrierattr_destroy(marcel_barrierattr_t *attr)
{
	attr->marcel_words[0] = 0;
	return 0;
}

BASE_PUBLIC int marcel_barrierattr_setpshared(marcel_barrierattr_t *attr,
					      int pshared)
{
	if (attr->marcel_words[0] != BARRIERATTR_VALID)
		return EINVAL;
	return check_shared(pshared);
}

BASE_PUBLIC int marcel_barrierattr_getpshared(const marcel_barrierattr_t *attr,
					      int *out)
{
	if (attr->marcel_words[0] != BARRIERATTR_VALID)
		return EINVAL;
	*out = MARCEL_PROCESS_PRIVATE;
	return 0;
}
