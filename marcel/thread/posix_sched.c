/*
 * What POSIX says of policies and CPUs, for <marcel/pthread.h>.
 *
 *	SCHED_OTHER, SCHED_BATCH	normal		priority 0
 *	SCHED_FIFO, SCHED_RR		real-time	1 to 99, all alike
 *	SCHED_IDLE			idle		0
 *
 * A thread is found as the first of these of its band, and real-time ones as
 * SCHED_RR of priority 1, since slices end among them. Attributes keep what
 * they were given.
 */
#include <marcel/pthread.h>

#include <marcel/errno.h>
#include <string.h>

#include <base/compiler.h>
#include "../sched/vp.h"
#include "attr.h"

static struct marcel_attr *attr_of(const marcel_attr_t *attr)
{
	return (struct marcel_attr *)marcel_attr_read(attr);
}

static bool is_realtime(int policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static bool is_policy(int policy)
{
	return is_realtime(policy) || policy == SCHED_OTHER ||
	       policy == SCHED_BATCH || policy == SCHED_IDLE;
}

static bool fits(int policy, int priority)
{
	return priority >= sched_get_priority_min(policy) &&
	       priority <= sched_get_priority_max(policy);
}

static int band_of(int policy)
{
	if (is_realtime(policy))
		return MARCEL_PRIORITY_REALTIME;
	return policy == SCHED_IDLE ? MARCEL_PRIORITY_IDLE
				    : MARCEL_PRIORITY_NORMAL;
}

static int policy_of(int band)
{
	if (band == MARCEL_PRIORITY_REALTIME)
		return SCHED_RR;
	return band == MARCEL_PRIORITY_IDLE ? SCHED_IDLE : SCHED_OTHER;
}

/* --- of threads --- */

/* A foreign thread is normal, and stays so. */
static int set_band(marcel_t t, int band)
{
	int now;

	marcel_getpriority(t, &now);
	return now == band ? 0 : marcel_setpriority(t, band);
}

BASE_PUBLIC int marcel_posix_setschedparam(marcel_t t, int policy,
					   const struct sched_param *param)
{
	if (!is_policy(policy) || !fits(policy, param->sched_priority))
		return EINVAL;
	return set_band(t, band_of(policy));
}

BASE_PUBLIC int marcel_posix_getschedparam(marcel_t t, int *policy,
					   struct sched_param *param)
{
	int band;

	marcel_getpriority(t, &band);
	*policy = policy_of(band);
	memset(param, 0, sizeof(*param));
	param->sched_priority = sched_get_priority_min(*policy);
	return 0;
}

BASE_PUBLIC int marcel_posix_setschedprio(marcel_t t, int priority)
{
	struct sched_param param;
	int policy;

	marcel_posix_getschedparam(t, &policy, &param);
	return fits(policy, priority) ? 0 : EINVAL;
}

/* --- of attributes --- */

BASE_PUBLIC int marcel_posix_attr_setschedpolicy(marcel_attr_t *attr,
						 int policy)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL || !is_policy(policy))
		return EINVAL;
	a->policy = (uint8_t)policy;
	return 0;
}

BASE_PUBLIC int marcel_posix_attr_getschedpolicy(const marcel_attr_t *attr,
						 int *out)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL)
		return EINVAL;
	*out = a->policy;
	return 0;
}

BASE_PUBLIC int marcel_posix_attr_setschedparam(marcel_attr_t *attr,
						const struct sched_param *param)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL || !fits(a->policy, param->sched_priority))
		return EINVAL;
	a->policy_priority = (uint8_t)param->sched_priority;
	return 0;
}

BASE_PUBLIC int marcel_posix_attr_getschedparam(const marcel_attr_t *attr,
						struct sched_param *out)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL)
		return EINVAL;
	memset(out, 0, sizeof(*out));
	out->sched_priority = a->policy_priority;
	return 0;
}

BASE_PUBLIC int marcel_posix_attr_setinheritsched(marcel_attr_t *attr, int how)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL ||
	    (how != PTHREAD_INHERIT_SCHED && how != PTHREAD_EXPLICIT_SCHED))
		return EINVAL;
	a->is_explicit = how == PTHREAD_EXPLICIT_SCHED;
	return 0;
}

BASE_PUBLIC int marcel_posix_attr_getinheritsched(const marcel_attr_t *attr,
						  int *out)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL)
		return EINVAL;
	*out = a->is_explicit ? PTHREAD_EXPLICIT_SCHED : PTHREAD_INHERIT_SCHED;
	return 0;
}

/* Of no meaning: the kernel sees LWPs only. */
BASE_PUBLIC int marcel_posix_attr_setscope(marcel_attr_t *attr, int scope)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL ||
	    (scope != PTHREAD_SCOPE_SYSTEM && scope != PTHREAD_SCOPE_PROCESS))
		return EINVAL;
	return scope == PTHREAD_SCOPE_SYSTEM ? 0 : ENOTSUP;
}

BASE_PUBLIC int marcel_posix_attr_getscope(const marcel_attr_t *attr, int *out)
{
	if (attr_of(attr) == NULL)
		return EINVAL;
	*out = PTHREAD_SCOPE_SYSTEM;
	return 0;
}

int marcel_posix_set_band(marcel_attr_t *attr)
{
	struct marcel_attr *a = attr_of(attr);
	int band;

	if (a == NULL)
		return EINVAL;
	/* Which is also what another user of this header may have set. */
	if (a->priority != MARCEL_PRIORITY_NORMAL)
		return 0;
	if (!a->is_explicit) {
		marcel_getpriority(marcel_self(), &band);
	} else {
		if (!fits(a->policy, a->policy_priority))
			return EINVAL;
		band = band_of(a->policy);
	}
	a->priority = band;
	return 0;
}

/* --- CPUs: those that the VPs are on --- */

static int to_vps(size_t bytes, const cpu_set_t *cpus, marcel_vpset_t *out)
{
	bool any = false;

	marcel_vpset_zero(out);
	for (int i = 0; i < marcel_nvp(); i++) {
		int cpu = marcel_sched.vps[i].cpu;

		if (cpu >= 0 && CPU_ISSET_S((size_t)cpu, bytes, cpus)) {
			marcel_vpset_add(out, i);
			any = true;
		}
	}
	return any ? 0 : EINVAL;
}

/* EINVAL: there is no room for one of them. */
static int to_cpus(const marcel_vpset_t *vps, size_t bytes, cpu_set_t *out)
{
	memset(out, 0, bytes);
	for (int i = 0; i < marcel_nvp(); i++) {
		int cpu = marcel_sched.vps[i].cpu;

		if (!marcel_vpset_has(vps, i))
			continue;
		if (cpu < 0 || (size_t)cpu >= bytes * 8)
			return EINVAL;
		CPU_SET_S((size_t)cpu, bytes, out);
	}
	return 0;
}

static bool is_caller_foreign(marcel_t t)
{
	return t == marcel_self() && marcel_thread_has(t, MARCEL_F_FOREIGN);
}

BASE_PUBLIC int marcel_posix_setaffinity(marcel_t t, size_t bytes,
					 const cpu_set_t *cpus)
{
	marcel_vpset_t vps;
	int rc;

	if (is_caller_foreign(t))
		return sched_setaffinity(0, bytes, cpus) < 0 ? errno : 0;
	rc = to_vps(bytes, cpus, &vps);
	return rc != 0 ? rc : marcel_setaffinity(t, &vps);
}

BASE_PUBLIC int marcel_posix_getaffinity(marcel_t t, size_t bytes,
					 cpu_set_t *out)
{
	marcel_vpset_t vps;
	int rc;

	if (is_caller_foreign(t))
		return sched_getaffinity(0, bytes, out) < 0 ? errno : 0;
	rc = marcel_getaffinity(t, &vps);
	return rc != 0 ? rc : to_cpus(&vps, bytes, out);
}

BASE_PUBLIC int marcel_posix_attr_setaffinity(marcel_attr_t *attr, size_t bytes,
					      const cpu_set_t *cpus)
{
	marcel_vpset_t vps;
	int rc;

	if (attr_of(attr) == NULL)
		return EINVAL;
	marcel_posix_start();
	rc = to_vps(bytes, cpus, &vps);
	return rc != 0 ? rc : marcel_attr_setvpset(attr, &vps);
}

BASE_PUBLIC int marcel_posix_attr_getaffinity(const marcel_attr_t *attr,
					      size_t bytes, cpu_set_t *out)
{
	struct marcel_attr *a = attr_of(attr);

	if (a == NULL)
		return EINVAL;
	if (a->has_set)
		return to_cpus(&a->set, bytes, out);
	memset(out, 0xff, bytes);
	return 0;
}

/* --- a number --- */

static ATOMIC(int) concurrency; /* a: relaxed; said, and given back */

BASE_PUBLIC int marcel_posix_setconcurrency(int level)
{
	if (level < 0)
		return EINVAL;
	store_relaxed(&concurrency, level);
	return 0;
}

BASE_PUBLIC int marcel_posix_getconcurrency(void)
{
	return load_relaxed(&concurrency);
}
