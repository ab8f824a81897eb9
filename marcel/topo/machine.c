#include <base/machine.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hwloc.h>

/*
 * Only its environment keeps hwloc_topology_init() from plug-ins, so it gets
 * one of its own meanwhile. `environ` is replaced, what it points to not
 * changed: who reads it in another thread sees either, and `own` stays. Who
 * sets variables of hwloc knows what he wants.
 */
BASE_PUBLIC int base_machine_init(struct hwloc_topology **out)
{
	static char nowhere[] = "HWLOC_PLUGINS_PATH=/dev/null";
	static char **own;
	char **old = environ;
	size_t n = 0;
	int rc;

	for (; old != NULL && old[n] != NULL; n++)
		if (strncmp(old[n], "HWLOC_", strlen("HWLOC_")) == 0)
			return hwloc_topology_init(out) < 0 ? -ENOMEM : 0;
	free(own);
	own = calloc(n + 2, sizeof(*own));
	if (own == NULL)
		return -ENOMEM;
	own[0] = nowhere;
	for (size_t i = 0; i < n; i++)
		own[i + 1] = old[i];
	environ = own;
	rc = hwloc_topology_init(out);
	environ = old;
	return rc < 0 ? -ENOMEM : 0;
}
