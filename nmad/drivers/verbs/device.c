/*
 * Which port. Named by NMAD_IBVERBS_DEVICE and _PORT or by what stands behind
 * "ibverbs:" in NMAD_DRIVER; else, of those that are active, one that no other
 * rail of this process has: the nearest to the processors we may run on, and
 * where several are as near, the processes of a host take turns.
 *
 * Which of a RoCE port's addresses: the one that is routed by IPv4 (RoCE v2),
 * or by IPv6, or what there is.
 */
#include "verbs.h"

#include <dirent.h>
#include <marcel/errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <hwloc.h>
/* Its header would call it by the linker. */
#define ibv_get_device_name nm_verbs_lib.get_device_name
#include <hwloc/openfabrics-verbs.h>
#undef ibv_get_device_name

#include <base/diag.h>
#include <base/machine.h>

enum { PORTS_MAX = 64, PORTS_OF_ONE = 4 };

/* A port that might be used. */
struct candidate {
	struct ibv_device *device;
	uint8_t number;
	unsigned id;  /* device and port, among all here */
	int nearness; /* greater is nearer */
};

/* Ports in use, by `id`; opened and closed by one thread at a time. */
static bool taken[PORTS_MAX];

/* --- what is wanted --- */

struct wish {
	const char *device; /* or NULL */
	size_t length;
	unsigned port; /* or 0 */
};

/* "device", "device:port" or nothing. */
static int understand(const char *spec, struct wish *w)
{
	const char *colon;
	char *end;

	*w = (struct wish){ nm_verbs_options[VERBS_OPT_DEVICE].string, 0, 0 };
	w->port = (unsigned)nm_verbs_options[VERBS_OPT_PORT].value;
	if (spec != NULL)
		w->device = spec;
	if (w->device == NULL || w->device[0] == 0) {
		w->device = NULL;
		return 0;
	}
	colon = strchr(w->device, ':');
	w->length =
		colon != NULL ? (size_t)(colon - w->device) : strlen(w->device);
	if (colon == NULL)
		return 0;
	w->port = (unsigned)strtoul(colon + 1, &end, 10);
	if (end != colon + 1 && *end == 0 && w->port > 0 && w->port < 256)
		return 0;
	base_warn("nmad",
		  "ibverbs: \"%s\" is no device and port, such as "
		  "mlx5_0:1",
		  w->device);
	return -EINVAL;
}

static bool is_wanted(const struct wish *w, const char *name)
{
	return w->device == NULL || (strlen(name) == w->length &&
				     memcmp(name, w->device, w->length) == 0);
}

/* --- how near it is --- */

/*
 * The depth of the smallest object that has both the device and us: -1 if
 * nobody knows.
 */
static int nearness(hwloc_topology_t hw, struct ibv_device *device)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc(), ours = hwloc_bitmap_alloc();
	hwloc_obj_t both = NULL;

	if (set != NULL && ours != NULL &&
	    hwloc_ibv_get_device_cpuset(hw, device, set) == 0 &&
	    hwloc_get_cpubind(hw, ours, HWLOC_CPUBIND_PROCESS) == 0) {
		if (hwloc_bitmap_intersects(set, ours))
			hwloc_bitmap_and(set, set, ours);
		hwloc_bitmap_or(set, set, ours);
		both = hwloc_get_obj_covering_cpuset(hw, set);
	}
	hwloc_bitmap_free(set);
	hwloc_bitmap_free(ours);
	return both != NULL ? both->depth : -1;
}

static void find_nearness(struct candidate *c, int n)
{
	hwloc_topology_t hw;

	if (n < 2 || base_machine_init(&hw) < 0)
		return;
	if (hwloc_topology_load(hw) == 0)
		for (int i = 0; i < n; i++)
			c[i].nearness = nearness(hw, c[i].device);
	hwloc_topology_destroy(hw);
}

/* --- opening --- */

/* The text of a file in the device's folder; empty if there is none. */
static void read_attribute(char *to, size_t size, const char *name,
			   unsigned port, const char *dir, unsigned index)
{
	char path[256];
	FILE *f;

	to[0] = 0;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/%s/%u",
		 name, port, dir, index);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	if (fgets(to, (int)size, f) == NULL)
		to[0] = 0;
	fclose(f);
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const unsigned char mapped[12] = { [10] = 0xff, 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/* How much we want this address of a RoCE port; 0: it is none. */
static int gid_worth(const struct verbs_port *port, int index,
		     union ibv_gid *gid)
{
	static const union ibv_gid none;
	char type[32];

	if (nm_verbs_lib.query_gid(port->context, port->number, index, gid) !=
		    0 ||
	    memcmp(gid, &none, sizeof(none)) == 0)
		return 0;
	read_attribute(type, sizeof(type), port->name, port->number,
		       "gid_attrs/types", (unsigned)index);
	return 1 + (is_ipv4(gid) ? 1 : 0) +
	       (strstr(type, "v2") != NULL ? 2 : 0);
}

static int choose_gid(struct verbs_port *port, bool loud)
{
	long wish = nm_verbs_options[VERBS_OPT_GID].value;
	int best = 0;

	if (wish >= 0) {
		port->gid_index = (uint8_t)wish;
		if (wish < port->attr.gid_tbl_len &&
		    gid_worth(port, (int)wish, &port->gid) > 0)
			return 0;
		base_warn("nmad",
			  "NMAD_IBVERBS_GID=%ld: port %d of %s has no "
			  "such address",
			  wish, port->number, port->name);
		return -EINVAL;
	}
	for (int i = 0; i < port->attr.gid_tbl_len && i < 256; i++) {
		union ibv_gid gid;
		int worth = gid_worth(port, i, &gid);

		if (worth <= best)
			continue;
		best = worth;
		port->gid = gid;
		port->gid_index = (uint8_t)i;
		if (port->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
			break;
	}
	if (best > 0 || port->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return 0;
	if (loud)
		base_warn("nmad",
			  "ibverbs: port %d of %s has no address: is there an "
			  "IP address on its interface?",
			  port->number, port->name);
	return -ENODEV;
}

static int query_port(struct verbs_port *port)
{
	memset(&port->attr, 0, sizeof(port->attr));
	return nm_verbs_lib.query_port(port->context, port->number,
				       (void *)&port->attr);
}

/* What there is, and why it is not more. */
struct found {
	struct ibv_device **list;
	int ndevices, nwanted, nports;
	int error; /* an errno, or 0 */
};

/* Add the active ports of a device that is wanted. */
static void list_ports(struct ibv_device *device, const struct wish *w,
		       struct candidate *c, struct found *f, unsigned id)
{
	struct verbs_port port = { .context =
					   nm_verbs_lib.open_device(device) };

	f->nwanted++;
	if (port.context == NULL) {
		f->error = errno == 0 ? ENODEV : errno;
		return;
	}
	if (nm_verbs_lib.query_device(port.context, &port.device) != 0)
		port.device.phys_port_cnt = 0;
	for (int i = 1; i <= port.device.phys_port_cnt && i <= PORTS_OF_ONE;
	     i++) {
		port.number = (uint8_t)i;
		if ((w->port != 0 && w->port != (unsigned)i) ||
		    query_port(&port) != 0)
			continue;
		if (port.attr.state != IBV_PORT_ACTIVE) {
			f->error = ENETDOWN;
			continue;
		}
		c[f->nports++] = (struct candidate){ device, (uint8_t)i,
						     id + (unsigned)i - 1, 0 };
	}
	nm_verbs_lib.close_device(port.context);
}

/* The best of them; each process of a host begins with another. */
static struct candidate *choose(struct candidate *c, int n, int local_rank,
				bool by_name)
{
	struct candidate *best = NULL;

	for (int i = 0; i < n; i++) {
		struct candidate *next = &c[(i + local_rank) % n];

		if (taken[next->id] && !by_name)
			continue;
		if (best == NULL || next->nearness > best->nearness)
			best = next;
	}
	return best;
}

static int open_candidate(struct verbs_port *port, const struct candidate *c,
			  bool loud)
{
	int rc;

	port->number = c->number;
	port->taken = c->id;
	port->context = nm_verbs_lib.open_device(c->device);
	if (port->context == NULL)
		return -ENODEV;
	port->name = nm_verbs_lib.get_device_name(c->device);
	port->pd = nm_verbs_lib.alloc_pd(port->context);
	rc = port->pd == NULL ? -EIO : 0;
	if (rc == 0 &&
	    (nm_verbs_lib.query_device(port->context, &port->device) != 0 ||
	     query_port(port) != 0))
		rc = -ENODEV;
	if (rc == 0)
		rc = choose_gid(port, loud);
	if (rc == 0)
		taken[c->id] = true;
	else
		nm_verbs_port_close(port);
	return rc;
}

static int none(const struct wish *w, const struct found *f)
{
	const char *device = w->device != NULL ? w->device : "any device";
	int length = w->device != NULL ? (int)w->length : (int)strlen(device);

	if (f->list == NULL && f->error != ENOSYS)
		base_warn("nmad", "ibverbs: devices cannot be listed: %s",
			  strerror(f->error));
	else if (f->ndevices == 0)
		base_warn("nmad", "ibverbs: this host has no RDMA device");
	else if (f->nwanted == 0)
		base_warn("nmad", "ibverbs: there is no device %.*s", length,
			  device);
	else if (f->nports > 0)
		base_warn("nmad",
			  "ibverbs: other rails of this process have "
			  "all of its %d ports: name one, as ibverbs:mlx5_0:1",
			  f->nports);
	else if (f->error == ENETDOWN)
		base_warn("nmad", "ibverbs: no port of %.*s is active", length,
			  device);
	else if (f->error != 0)
		base_warn("nmad",
			  "ibverbs: the device cannot be opened: %s; "
			  "may this user write to /dev/infiniband?",
			  strerror(f->error));
	else
		base_warn("nmad", "ibverbs: there is no port %u of %.*s",
			  w->port, length, device);
	return -ENODEV;
}

int nm_verbs_port_open(struct verbs_port *port, const char *spec,
		       int local_rank, bool loud)
{
	struct candidate c[PORTS_MAX], *best;
	struct found f = { 0 };
	struct wish w;
	int rc;

	rc = understand(spec, &w);
	if (rc < 0)
		return rc;
	errno = 0;
	f.list = nm_verbs_lib.get_device_list(&f.ndevices);
	if (f.list == NULL) {
		f.ndevices = 0;
		f.error = errno;
	}
	for (int i = 0; i < f.ndevices && i < PORTS_MAX / PORTS_OF_ONE; i++)
		if (is_wanted(&w, nm_verbs_lib.get_device_name(f.list[i])))
			list_ports(f.list[i], &w, c, &f,
				   (unsigned)i * PORTS_OF_ONE);
	find_nearness(c, f.nports);
	best = choose(c, f.nports, local_rank < 0 ? 0 : local_rank,
		      w.device != NULL);
	if (best != NULL)
		rc = open_candidate(port, best, loud);
	else
		rc = loud ? none(&w, &f) : -ENODEV;
	if (f.list != NULL)
		nm_verbs_lib.free_device_list(f.list);
	return rc;
}

void nm_verbs_port_close(struct verbs_port *port)
{
	if (port->pd != NULL)
		nm_verbs_lib.dealloc_pd(port->pd);
	if (port->context != NULL) {
		nm_verbs_lib.close_device(port->context);
		taken[port->taken] = false;
	}
	port->pd = NULL;
	port->context = NULL;
}
