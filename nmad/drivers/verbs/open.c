/*
 * What an instance has of the device, from its opening to its end.
 */
#include "verbs.h"

#include <marcel/errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <base/diag.h>

enum { UNDER_WAY = 4096 /* work requests of all links */ };

struct base_option nm_verbs_options[VERBS_NOPTS] = {
	[VERBS_OPT_DEVICE] = { "NMAD_IBVERBS_DEVICE", BASE_OPTION_STRING, "", 0,
			       0, NULL,
			       "device, such as mlx5_0, or device:port; else "
			       "the nearest that is active" },
	[VERBS_OPT_PORT] = { "NMAD_IBVERBS_PORT", BASE_OPTION_INT, "0", 0, 255,
			     NULL, "port of the device (0: any)" },
	[VERBS_OPT_GID] = { "NMAD_IBVERBS_GID", BASE_OPTION_INT, "-1", -1, 255,
			    NULL,
			    "index of the port's address (-1: RoCE v2 over "
			    "IPv4, if there is one)" },
	[VERBS_OPT_TIMEOUT] = { "NMAD_IBVERBS_TIMEOUT_MS", BASE_OPTION_INT,
				"10000", 10, 3600000, NULL,
				"how long a connection may take to be made" },
	[VERBS_OPT_DEAD] = { "NMAD_IBVERBS_DEAD_S", BASE_OPTION_INT, "10", 1,
			     3600, NULL,
			     "seconds after which a peer whose adapter does "
			     "not answer is dead" },
	[VERBS_OPT_RECEIVES] = { "NMAD_IBVERBS_RECEIVES", BASE_OPTION_INT,
				 "512", 128, 16384, NULL,
				 "receives of 8.3 KB that all peers share" },
	[VERBS_OPT_SRQ] = { "NMAD_IBVERBS_SRQ", BASE_OPTION_INT, "1", 0, 1,
			    NULL,
			    "share receives, where the device can (0: each "
			    "peer has 72 of its own)" },
	[VERBS_OPT_INLINE] = { "NMAD_IBVERBS_INLINE", BASE_OPTION_INT, "220", 0,
			       4096, NULL,
			       "bytes up to which the adapter is given a copy "
			       "of what is sent" },
	[VERBS_OPT_PINNED] = { "NMAD_IBVERBS_PINNED", BASE_OPTION_SIZE, "0", 0,
			       LONG_MAX, NULL,
			       "bytes of user memory that stay registered (0: "
			       "a quarter of the machine's)" },
	[VERBS_OPT_CACHE] = { "NMAD_IBVERBS_CACHE", BASE_OPTION_INT, "1", 0, 1,
			      NULL,
			      "user memory stays registered, for the next "
			      "message" },
	[VERBS_OPT_READ] = { "NMAD_IBVERBS_READ", BASE_OPTION_INT, "1", 0, 1,
			     NULL,
			     "receivers read large messages whose memory is "
			     "registered, instead of having them written" },
};

const struct base_option_table nm_verbs_option_table =
	BASE_OPTION_TABLE("nmad", nm_verbs_options);

/* All instances, for fork: opened and closed by one thread at a time. */
static struct verbs *instances;

void nm_verbs_do_not_block(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void nm_verbs_ring(struct verbs_bell *b)
{
	if (verbs_bell_starts(b))
		eventfd_write(b->fd, 1);
}

void nm_verbs_hush(struct verbs_bell *b)
{
	eventfd_t n;

	if (verbs_bell_rings(b) && eventfd_read(b->fd, &n) == 0)
		verbs_bell_stops(b);
}

/* --- a forked child --- */

/* The first mapping of a device; false: there is none. */
static bool find_mapping(uintptr_t *from, uintptr_t *to)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, "/infiniband/uverbs") != NULL &&
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR, from, to) == 2;
	if (f != NULL)
		fclose(f);
	return found;
}

/*
 * It closes its copies of our descriptors and has none of the device's memory,
 * so that our queue pairs end with us and not with the last of our children.
 * It owns no rail.
 */
static void in_child(void)
{
	uintptr_t from, to;

	if (instances == NULL)
		return;
	for (struct verbs *v = instances; v != NULL; v = v->next) {
		close(v->epoll);
		close(v->bell.fd);
		close(v->channel->fd);
		close(v->port.context->cmd_fd);
		close(v->port.context->async_fd);
		nm_verbs_clerk_forked(v);
	}
	instances = NULL;
	while (find_mapping(&from, &to))
		munmap((void *)from, to - from);
}

/* --- opening --- */

static void drop(struct verbs *v)
{
	if (v->regs != NULL)
		nm_verbs_regs_hush(v->regs);
	if (v->clerk != NULL)
		nm_verbs_clerk_close(v);
	if (v->srq != NULL)
		nm_verbs_lib.destroy_srq(v->srq);
	if (v->cq != NULL)
		nm_verbs_lib.destroy_cq(v->cq);
	if (v->channel != NULL)
		nm_verbs_lib.destroy_comp_channel(v->channel);
	if (v->regs != NULL)
		nm_verbs_regs_close(v->regs);
	if (v->mr != NULL)
		nm_verbs_lib.dereg_mr(v->mr);
	nm_verbs_port_close(&v->port);
	if (v->memory != NULL)
		munmap(v->memory, v->bytes);
	if (v->bell.fd >= 0)
		close(v->bell.fd);
	if (v->epoll >= 0)
		close(v->epoll);
	free(v->slots);
	free(v->peers);
	free(v);
}

/* Of each, receives of its own; or receives that all share. */
static void count_receives(struct verbs *v)
{
	const struct ibv_device_attr *d = &v->port.device;
	unsigned wish = (unsigned)nm_verbs_options[VERBS_OPT_RECEIVES].value;
	unsigned peers = (unsigned)v->info->size - 1;

	v->nslots = wish;
	if (nm_verbs_options[VERBS_OPT_SRQ].value && d->max_srq > 0) {
		if (d->max_srq_wr > 0 && wish > (unsigned)d->max_srq_wr)
			v->nslots = (unsigned)d->max_srq_wr;
		return;
	}
	if (peers * (VERBS_CREDITS + VERBS_SPARE) > v->nslots)
		v->nslots = peers * (VERBS_CREDITS + VERBS_SPARE);
}

/* An errno of libibverbs: memory is what is short if the limit is too low. */
static int why(void)
{
	return errno > 0 ? -errno : -EIO;
}

static int cannot_pin(const struct verbs *v, bool loud)
{
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (loud)
		base_warn("nmad",
			  "ibverbs: %zu KB and some more cannot be locked in "
			  "memory, the limit is %llu KB: raise it (ulimit "
			  "-l), or lower NMAD_IBVERBS_RECEIVES",
			  v->bytes / 1024,
			  (unsigned long long)limit.rlim_cur / 1024);
	return -ENODEV;
}

static int make_memory(struct verbs *v)
{
	v->bytes = ((size_t)v->nslots + VERBS_SENDS) * VERBS_SLOT;
	v->memory = mmap(NULL, v->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (v->memory == MAP_FAILED) {
		v->memory = NULL;
		return -ENOMEM;
	}
	v->mr = nm_verbs_lib.reg_mr(v->port.pd, v->memory, v->bytes,
				    IBV_ACCESS_LOCAL_WRITE);
	return v->mr != NULL ? 0 : why();
}

static int make_queues(struct verbs *v)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = v->nslots,
						   .max_sge = 1 } };
	int most = v->port.device.max_cqe, cqe = (int)v->nslots + UNDER_WAY;

	if (cqe > most)
		cqe = most;
	if (cqe < (int)v->nslots + VERBS_SENDS)
		return -ENODEV;
	v->cq_room = (unsigned)cqe - v->nslots;
	v->channel = nm_verbs_lib.create_comp_channel(v->port.context);
	if (v->channel == NULL)
		return why();
	nm_verbs_do_not_block(v->channel->fd);
	v->cq = nm_verbs_lib.create_cq(v->port.context, cqe, NULL, v->channel,
				       0);
	if (v->cq == NULL)
		return why();
	if (!nm_verbs_options[VERBS_OPT_SRQ].value ||
	    v->port.device.max_srq <= 0)
		return 0;
	v->srq = nm_verbs_lib.create_srq(v->port.pd, &srq);
	return v->srq != NULL ? 0 : why();
}

/*
 * How much the device takes with a work request: some say no, not how much.
 * -errno: it has no reliable connections.
 */
static int find_inline(struct verbs *v)
{
	unsigned bytes = (unsigned)nm_verbs_options[VERBS_OPT_INLINE].value;

	for (;; bytes /= 2) {
		struct ibv_qp_init_attr init = {
			.send_cq = v->cq,
			.recv_cq = v->cq,
			.cap = { .max_send_wr = VERBS_SQ,
				 .max_recv_wr = 1,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .max_inline_data = bytes },
			.qp_type = IBV_QPT_RC,
		};
		struct ibv_qp *qp = nm_verbs_lib.create_qp(v->port.pd, &init);

		v->max_inline = bytes;
		if (qp != NULL)
			return -nm_verbs_lib.destroy_qp(qp);
		if (bytes == 0)
			return why();
	}
}

static size_t at_most(size_t wish, size_t limit)
{
	return wish < limit ? wish : limit;
}

static int make_set(struct verbs *v)
{
	struct epoll_event ev = { .events = EPOLLIN };

	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	v->bell.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (v->epoll < 0 || v->bell.fd < 0 ||
	    epoll_ctl(v->epoll, EPOLL_CTL_ADD, v->bell.fd, &ev) < 0 ||
	    epoll_ctl(v->epoll, EPOLL_CTL_ADD, v->channel->fd, &ev) < 0)
		return -errno;
	return 0;
}

static size_t pinned_limit(void)
{
	size_t wish = (size_t)nm_verbs_options[VERBS_OPT_PINNED].value;

	return wish != 0 ? wish
			 : (size_t)sysconf(_SC_PHYS_PAGES) / 4 *
				   (size_t)sysconf(_SC_PAGESIZE);
}

static void init_lists(struct verbs *v)
{
	base_list_init(&v->used);
	base_list_init(&v->dying);
	base_list_init(&v->sending);
	base_list_init(&v->owing);
	base_list_init(&v->asking);
	base_list_init(&v->thirsty);
	base_mpsc_init(&v->back.list);
	base_mpsc_init(&v->news);
	for (unsigned i = 0; i < VERBS_SENDS; i++)
		v->free[v->nfree++] = (uint16_t)i;
	for (unsigned i = 0; i < VERBS_ORDERS; i++) {
		v->orders[i].next = v->free_orders;
		v->free_orders = &v->orders[i];
	}
}

static int make_all(struct verbs *v, const char *spec, bool loud)
{
	int rc = nm_verbs_port_open(&v->port, spec, v->info->local_rank, loud);

	if (rc < 0)
		return rc;
	count_receives(v);
	v->slots = calloc(v->nslots, sizeof(*v->slots));
	v->peers = calloc((size_t)v->info->size, sizeof(*v->peers));
	if (v->slots == NULL || v->peers == NULL)
		return -ENOMEM;
	rc = make_memory(v);
	if (rc == 0)
		rc = make_queues(v);
	if (rc == 0)
		rc = make_set(v);
	if (rc == 0)
		rc = find_inline(v);
	if (rc < 0)
		return rc;
	v->may_read = nm_verbs_options[VERBS_OPT_READ].value != 0;
	v->max_write = at_most(VERBS_WRITE, v->port.attr.max_msg_sz);
	v->max_read = at_most(VERBS_READ, v->port.attr.max_msg_sz);
	v->regs = nm_verbs_regs_open(
		v->port.pd,
		&(struct verbs_regs_how){
			.limit = pinned_limit(),
			.keep = nm_verbs_options[VERBS_OPT_CACHE].value != 0,
			.loud = loud,
			.wake = nm_verbs_clean,
			.arg = v });
	if (v->regs == NULL)
		return -ENOMEM;
	nm_verbs_fill(v);
	return 0;
}

static struct verbs_addr address(const struct verbs_port *port)
{
	struct verbs_addr a = {
		.version = VERBS_ADDR_VERSION,
		.is_ethernet = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET,
		.mtu = (uint8_t)port->attr.active_mtu,
		.lid = port->attr.lid,
		.gid = port->gid,
	};

	return a;
}

static bool has_devices(void)
{
	return access("/sys/class/infiniband", F_OK) == 0;
}

int nm_verbs_open(struct nm_rail *rail, const struct nm_boot_info *info,
		  const char *spec)
{
	static bool registered;
	bool loud = rail->is_listed;
	struct verbs_addr mine;
	struct verbs *v;
	int rc;

	if (base_option_load(&nm_verbs_option_table) < 0)
		return -EINVAL;
	if (!loud && !has_devices())
		return -ENODEV;
	rc = nm_verbs_lib_load(loud);
	if (rc < 0)
		return rc;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return -ENOMEM;
	nm_verbs_lib.fork_init();
	v->rail = rail;
	v->info = info;
	v->epoll = v->bell.fd = -1;
	init_lists(v);
	rail->drv = v;
	rc = make_all(v, spec, loud);
	if (rc == 0) {
		mine = address(&v->port);
		rc = nm_verbs_clerk_open(v, &mine);
	}
	if (rc == -ENOMEM)
		rc = cannot_pin(v, loud);
	if (rc < 0) {
		drop(v);
		rail->drv = NULL;
		/* Nobody has asked for it: others do. */
		return loud || rc == -EINVAL ? rc : -ENODEV;
	}
	if (!registered)
		pthread_atfork(NULL, NULL, in_child);
	registered = true;
	v->next = instances;
	instances = v;
	memcpy(rail->addr, &mine, sizeof(mine));
	rail->addr_len = sizeof(mine);
	rail->fd = v->epoll;
	return 0;
}

void nm_verbs_close(struct nm_rail *rail)
{
	struct verbs *v = rail->drv, **at = &instances;

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	base_list_for_each (n, &v->used)
		container_of(n, struct verbs_peer, on_used)->link->conn = NULL;
	drop(v);
	rail->drv = NULL;
}
