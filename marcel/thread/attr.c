/*
 * Attributes of threads to be created.
 */
#include "attr.h"

#include <errno.h>
#include <string.h>

#include <marcel/marcel.h>
#include "../os/os.h"
#include "../sched/vp.h"
#include "stack.h"

enum { MAGIC = 0x61747472 };

static struct marcel_attr *write_to(marcel_attr_t *attr)
{
	struct marcel_attr *a = (struct marcel_attr *)attr;

	return a != NULL && a->magic == MAGIC ? a : NULL;
}

const struct marcel_attr *marcel_attr_read(const marcel_attr_t *attr)
{
	const struct marcel_attr *a = (const struct marcel_attr *)attr;

	return a != NULL && a->magic == MAGIC ? a : NULL;
}

BASE_PUBLIC int marcel_attr_init(marcel_attr_t *attr)
{
	struct marcel_attr *a = (struct marcel_attr *)attr;

	if (attr == NULL)
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	a->magic = MAGIC;
	return 0;
}

BASE_PUBLIC int marcel_attr_destroy(marcel_attr_t *attr)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL)
		return EINVAL;
	a->magic = 0;
	return 0;
}

BASE_PUBLIC int marcel_attr_setstacksize(marcel_attr_t *attr, size_t bytes)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || bytes < marcel_stack_min() || bytes > MARCEL_STACK_MAX)
		return EINVAL;
	a->stacksize = bytes;
	return 0;
}

BASE_PUBLIC int marcel_attr_getstacksize(const marcel_attr_t *attr, size_t *out)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	*out = a->stacksize ? a->stacksize : marcel_sched_stacksize();
	return 0;
}

/* There is room for a stack from here on. */
static bool is_room(const void *low, size_t bytes)
{
	return low != NULL && bytes >= marcel_stack_min() &&
	       bytes <= MARCEL_STACK_MAX && (uintptr_t)low + bytes > bytes;
}

BASE_PUBLIC int marcel_attr_setstack(marcel_attr_t *attr, void *low,
				     size_t bytes)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || !is_room(low, bytes))
		return EINVAL;
	a->stack = low;
	a->stacksize = bytes;
	a->brings = true;
	return 0;
}

BASE_PUBLIC int marcel_attr_setguardsize(marcel_attr_t *attr, size_t bytes)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || bytes > MARCEL_STACK_MAX)
		return EINVAL;
	a->guardsize = bytes;
	a->guards = true;
	return 0;
}

BASE_PUBLIC int marcel_attr_setpreemptible(marcel_attr_t *attr, int on)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || (on != 0 && on != 1))
		return EINVAL;
	a->is_steady = !on;
	return 0;
}

BASE_PUBLIC int marcel_attr_getpreemptible(const marcel_attr_t *attr, int *out)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	*out = !a->is_steady;
	return 0;
}

BASE_PUBLIC int marcel_attr_setprivatetls(marcel_attr_t *attr, int on)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || (on != 0 && on != 1))
		return EINVAL;
	a->is_private = on;
	return 0;
}

BASE_PUBLIC int marcel_attr_getprivatetls(const marcel_attr_t *attr, int *out)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	*out = a->is_private;
	return 0;
}

BASE_PUBLIC int marcel_attr_setdetachstate(marcel_attr_t *attr, int state)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || (state != MARCEL_CREATE_JOINABLE &&
			  state != MARCEL_CREATE_DETACHED))
		return EINVAL;
	a->detach = state;
	return 0;
}

BASE_PUBLIC int marcel_attr_getdetachstate(const marcel_attr_t *attr, int *out)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	*out = a->detach;
	return 0;
}

BASE_PUBLIC int marcel_attr_setname(marcel_attr_t *attr, const char *name)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || name == NULL)
		return EINVAL;
	if (strlen(name) >= sizeof(a->name))
		return ERANGE;
	strcpy(a->name, name);
	return 0;
}

BASE_PUBLIC int marcel_attr_setpriority(marcel_attr_t *attr, int priority)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || !marcel_priority_exists(priority))
		return EINVAL;
	a->priority = priority;
	return 0;
}

BASE_PUBLIC int marcel_attr_getpriority(const marcel_attr_t *attr, int *out)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	*out = a->priority;
	return 0;
}

BASE_PUBLIC int marcel_attr_setvp(marcel_attr_t *attr, int vp)
{
	marcel_vpset_t set;

	if (vp < 0 || vp >= marcel_nvp())
		return EINVAL;
	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, vp);
	return marcel_attr_setvpset(attr, &set);
}

BASE_PUBLIC int marcel_attr_setvpset(marcel_attr_t *attr,
				     const marcel_vpset_t *set)
{
	struct marcel_attr *a = write_to(attr);

	if (a == NULL || set == NULL || marcel_topo_cover(set) == NULL)
		return EINVAL;
	a->set = *set;
	a->has_set = 1;
	return 0;
}

BASE_PUBLIC int marcel_attr_setlevel(marcel_attr_t *attr,
				     const struct marcel_level *level)
{
	if (!marcel_topo_has(&marcel_sched.topo, level))
		return EINVAL;
	return marcel_attr_setvpset(attr, &level->vps);
}

/* --- what was found, too --- */

BASE_PUBLIC int marcel_attr_getname(const marcel_attr_t *attr, char *out,
				    size_t bytes)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	if (strlen(a->name) >= bytes)
		return ERANGE;
	strcpy(out, a->name);
	return 0;
}

BASE_PUBLIC int marcel_attr_getvpset(const marcel_attr_t *attr,
				     marcel_vpset_t *out)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	if (a->has_set)
		*out = a->set;
	else
		memset(out, 0xff, sizeof(*out));
	return 0;
}

BASE_PUBLIC int marcel_attr_getstack(const marcel_attr_t *attr, void **low,
				     size_t *bytes)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || low == NULL || bytes == NULL)
		return EINVAL;
	*low = a->stack;
	return marcel_attr_getstacksize(attr, bytes);
}

BASE_PUBLIC int marcel_attr_getguardsize(const marcel_attr_t *attr, size_t *out)
{
	const struct marcel_attr *a = marcel_attr_read(attr);

	if (a == NULL || out == NULL)
		return EINVAL;
	*out = a->guards || (a->stack != NULL && !a->brings) ? a->guardsize
							     : os_page_size();
	return 0;
}
