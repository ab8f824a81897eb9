/*
 * The machine as hwloc knows it, without its plug-ins.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <base/compiler.h>

struct hwloc_topology;

/*
 * As hwloc_topology_init(), which else opens every plug-in that it finds, and
 * with them the libraries of displays, OpenCL and XML: a quarter of the work of
 * a process's start, for devices that we do not ask for. 0; -ENOMEM. May
 * allocate; by one thread at a time.
 */
int base_machine_init(struct hwloc_topology **out);

#endif
