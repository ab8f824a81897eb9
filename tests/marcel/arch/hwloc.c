/*
 * As much of hwloc as marcel asks of it, where there is none for the processor
 * that is built for: the CPUs that the kernel lets us use, and nothing that
 * they share. Other machines cannot be named here.
 */
#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>

struct hwloc_bitmap_s {
	cpu_set_t set;
};

struct hwloc_topology {
	struct hwloc_bitmap_s all;
};

hwloc_bitmap_t hwloc_bitmap_alloc(void)
{
	return calloc(1, sizeof(struct hwloc_bitmap_s));
}

void hwloc_bitmap_free(hwloc_bitmap_t b)
{
	free(b);
}

void hwloc_bitmap_fill(hwloc_bitmap_t b)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &b->set);
}

int hwloc_bitmap_and(hwloc_bitmap_t out, hwloc_const_bitmap_t a,
		     hwloc_const_bitmap_t b)
{
	CPU_AND(&out->set, &a->set, &b->set);
	return 0;
}

int hwloc_bitmap_isset(hwloc_const_bitmap_t b, unsigned i)
{
	return CPU_ISSET(i, &b->set) != 0;
}

int hwloc_bitmap_next(hwloc_const_bitmap_t b, int i)
{
	while (++i < CPU_SETSIZE)
		if (CPU_ISSET(i, &b->set))
			return i;
	return -1;
}

int hwloc_bitmap_first(hwloc_const_bitmap_t b)
{
	return hwloc_bitmap_next(b, -1);
}

int hwloc_bitmap_weight(hwloc_const_bitmap_t b)
{
	return CPU_COUNT(&b->set);
}

int hwloc_topology_init(hwloc_topology_t *out)
{
	*out = calloc(1, sizeof(**out));
	return *out != NULL ? 0 : -1;
}

int hwloc_topology_set_xml(hwloc_topology_t t, const char *path)
{
	errno = ENOSYS;
	return -1;
}

int hwloc_topology_set_synthetic(hwloc_topology_t t, const char *words)
{
	errno = ENOSYS;
	return -1;
}

int hwloc_topology_set_flags(hwloc_topology_t t, unsigned long flags)
{
	return 0;
}

int hwloc_topology_load(hwloc_topology_t t)
{
	return sched_getaffinity(0, sizeof(t->all.set), &t->all.set);
}

void hwloc_topology_destroy(hwloc_topology_t t)
{
	free(t);
}

int hwloc_topology_is_thissystem(hwloc_topology_t t)
{
	return 1;
}

hwloc_const_cpuset_t hwloc_topology_get_allowed_cpuset(hwloc_topology_t t)
{
	return &t->all;
}

int hwloc_get_cpubind(hwloc_topology_t t, hwloc_cpuset_t out, int flags)
{
	return sched_getaffinity(0, sizeof(out->set), &out->set);
}

/* What hwloc's header asks for an object by its kind: there are none. */
int hwloc_get_type_depth(hwloc_topology_t t, hwloc_obj_type_t type)
{
	return HWLOC_TYPE_DEPTH_UNKNOWN;
}

hwloc_obj_t hwloc_get_obj_by_depth(hwloc_topology_t t, int depth, unsigned i)
{
	return NULL;
}

unsigned hwloc_get_nbobjs_by_depth(hwloc_topology_t t, int depth)
{
	return 0;
}

const char *hwloc_obj_type_string(hwloc_obj_type_t type)
{
	return "";
}
