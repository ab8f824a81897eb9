/*
 * Devices and their ports. All processes of a job have the same ones, as on
 * one host, and all of them are on one switch.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "object.h"

/* Never given back: lists of devices come and go, contexts name them. */
static struct ibv_device devices[FV_DEVICES];

struct fv_lock fv_list_lock;
struct fv_context *fv_contexts;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

enum { GIDS = 16 };

uint32_t fv_mtu(void)
{
	return (uint32_t)fv_setting(FV_SET_MTU);
}

static enum ibv_mtu mtu_code(void)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 256u << code <= fv_mtu())
		code++;
	return code;
}

bool fv_is_fatal(uint32_t device)
{
	return load_acquire(&fv_me->fatal[device]) != 0;
}

bool fv_port_is_up(const struct fv_slot *slot, uint32_t device, uint32_t port)
{
	return (load_acquire(&slot->down[device]) & 1u << port) == 0 &&
	       load_acquire(&slot->fatal[device]) == 0;
}

/* --- addresses --- */

/* fe80::d:p and ::ffff:10.78.d.p: RoCE has both; InfiniBand the first. */
void fv_gid(uint32_t device, uint32_t port, int index, union ibv_gid *out)
{
	memset(out, 0, sizeof(*out));
	if (index == 0) {
		out->raw[0] = 0xfe;
		out->raw[1] = 0x80;
		out->raw[13] = 0x77;
	} else if (index == 1 && fv_setting(FV_SET_LINK) == FV_LINK_ROCE) {
		out->raw[10] = out->raw[11] = 0xff;
		out->raw[12] = 10;
		out->raw[13] = 78;
	} else {
		return;
	}
	out->raw[14] = (uint8_t)(device + 1);
	out->raw[15] = (uint8_t)port;
}

uint16_t fv_lid(uint32_t device, uint32_t port)
{
	return fv_setting(FV_SET_LINK) == FV_LINK_IB
		       ? (uint16_t)(16 + device * FV_PORTS + port)
		       : 0;
}

bool fv_is_address(const struct ibv_ah_attr *a)
{
	bool is_roce = fv_setting(FV_SET_LINK) == FV_LINK_ROCE;

	if (a->port_num < 1 || a->port_num > fv_setting(FV_SET_PORTS))
		return false;
	if (is_roce && !a->is_global)
		return false;
	return !a->is_global || a->grh.sgid_index < (is_roce ? 2 : 1);
}

static bool is_there(const struct ibv_ah_attr *a, uint32_t device,
		     uint32_t port)
{
	union ibv_gid gid;

	/* InfiniBand finds its way by LID, within a subnet. */
	if (fv_setting(FV_SET_LINK) == FV_LINK_IB)
		return a->dlid == fv_lid(device, port);
	for (int i = 0; i < 2; i++) {
		fv_gid(device, port, i, &gid);
		if (memcmp(&gid, &a->grh.dgid, sizeof(gid)) == 0)
			return true;
	}
	return false;
}

struct fv_place fv_place_of(const struct ibv_ah_attr *a)
{
	for (uint32_t d = 0; d < FV_DEVICES; d++)
		for (uint32_t p = 1; p <= FV_PORTS; p++)
			if (is_there(a, d, p))
				return (struct fv_place){ d, p };
	return (struct fv_place){ 0, 0 };
}

void fv_tell(uint32_t device, enum ibv_event_type type, int port)
{
	struct ibv_async_event e = { .event_type = type };

	e.element.cq = NULL;
	e.element.port_num = port;
	for (struct fv_context *c = fv_contexts; c != NULL; c = c->next)
		if (c->device == device)
			fv_events_put(&c->async, &e);
}

/* --- verbs --- */

EXPORT int ibv_fork_init(void)
{
	FV_CALLED(fork_init);
	return 0;
}

#undef ibv_get_device_list
EXPORT struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list;
	long count;

	FV_CALLED(get_device_list);
	fv_settings_read();
	count = fv_setting(FV_SET_DEVICES);
	if (count > FV_DEVICES)
		count = FV_DEVICES;
	list = calloc((size_t)count + 1, sizeof(*list));
	for (int i = 0; i < count; i++) {
		struct ibv_device *d = &devices[i];

		d->node_type = IBV_NODE_CA;
		d->transport_type = IBV_TRANSPORT_IB;
		snprintf(d->name, sizeof(d->name), "fake%d", i);
		snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%d", i);
		snprintf(d->dev_path, sizeof(d->dev_path),
			 "/sys/class/infiniband_verbs/uverbs%d", i);
		snprintf(d->ibdev_path, sizeof(d->ibdev_path),
			 "/sys/class/infiniband/fake%d", i);
		list[i] = d;
	}
	if (n != NULL)
		*n = (int)count;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	FV_CALLED(free_device_list);
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	FV_CALLED(get_device_name);
	return device->name;
}

/* The first one joins the network, the last one leaves it. */
static int join(void)
{
	int error;

	if (fv_contexts != NULL)
		return 0;
	error = fv_fabric_join();
	if (error != 0)
		return error;
	error = fv_progress_start();
	if (error != 0)
		fv_fabric_leave();
	return error;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	uint32_t index = (uint32_t)(device - devices);
	struct fv_context *c;
	int error = EACCES;

	FV_CALLED(open_device);
	if (fv_setting(FV_SET_EACCES) >> index & 1)
		goto err;
	c = calloc(1, sizeof(*c));
	c->device = index;
	c->ibv.device = device;
	c->ibv.cmd_fd = -1;
	c->ibv.num_comp_vectors = 1;
	c->ibv.ops.poll_cq = fv_poll_cq;
	c->ibv.ops.req_notify_cq = fv_req_notify_cq;
	c->ibv.ops.post_send = fv_post_send;
	c->ibv.ops.post_recv = fv_post_recv;
	c->ibv.ops.post_srq_recv = fv_post_srq_recv;
	error = fv_events_init(&c->async);
	if (error != 0)
		goto err_free;
	c->ibv.async_fd = c->async.fd;
	pthread_mutex_init(&c->ibv.mutex, NULL);
	pthread_mutex_lock(&opening);
	error = join();
	if (error == 0) {
		fv_lock(&fv_list_lock);
		c->told_down = load_relaxed(&fv_me->down[index]);
		c->next = fv_contexts;
		fv_contexts = c;
		fv_unlock(&fv_list_lock);
		FV_MORE(contexts);
	}
	pthread_mutex_unlock(&opening);
	if (error == 0)
		return &c->ibv;
	fv_events_exit(&c->async);

err_free:
	free(c);
err:
	errno = error;
	return NULL;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct fv_context *c = fv_context(context), **at;

	FV_CALLED(close_device);
	if (load_relaxed(&c->users) != 0)
		return EBUSY;
	pthread_mutex_lock(&opening);
	fv_lock(&fv_list_lock);
	for (at = &fv_contexts; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	fv_unlock(&fv_list_lock);
	if (fv_contexts == NULL) {
		fv_progress_stop();
		fv_fabric_leave();
	}
	pthread_mutex_unlock(&opening);
	fv_events_exit(&c->async);
	pthread_mutex_destroy(&c->ibv.mutex);
	free(c);
	FV_LESS(contexts);
	return 0;
}

EXPORT int ibv_query_device(struct ibv_context *context,
			    struct ibv_device_attr *a)
{
	bool has_srq = fv_setting(FV_SET_SRQ) != 0;

	FV_CALLED(query_device);
	memset(a, 0, sizeof(*a));
	snprintf(a->fw_ver, sizeof(a->fw_ver), "1");
	a->node_guid = htonl(1 + fv_context(context)->device);
	a->sys_image_guid = a->node_guid;
	a->max_mr_size = UINT64_MAX;
	a->page_size_cap = 4096;
	a->max_qp = (int)fv_setting(FV_SET_MAX_QP);
	a->max_qp_wr = (int)fv_setting(FV_SET_MAX_WR);
	a->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN;
	a->max_sge = a->max_sge_rd = FV_SGE;
	a->max_cq = FV_QPS;
	a->max_cqe = FV_CQE;
	a->max_mr = FV_MRS;
	a->max_pd = 1 << 16;
	a->max_qp_rd_atom = a->max_qp_init_rd_atom = 16;
	a->max_res_rd_atom = 16 * FV_QPS;
	a->atomic_cap = IBV_ATOMIC_NONE;
	a->max_ah = 1 << 16;
	a->max_srq = has_srq ? FV_QPS : 0;
	a->max_srq_wr = has_srq ? (int)fv_setting(FV_SET_MAX_WR) : 0;
	a->max_srq_sge = has_srq ? FV_SGE : 0;
	a->max_pkeys = 1;
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = (uint8_t)fv_setting(FV_SET_PORTS);
	return 0;
}

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
			  struct _compat_ibv_port_attr *out)
{
	uint32_t device = fv_context(context)->device;
	bool is_ib = fv_setting(FV_SET_LINK) == FV_LINK_IB;
	struct ibv_port_attr a = { .max_mtu = IBV_MTU_4096 };
	bool is_up;

	FV_CALLED(query_port);
	if (port < 1 || port > fv_setting(FV_SET_PORTS))
		return EINVAL;
	is_up = fv_port_is_up(fv_me, device, port);
	a.state = is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	a.active_mtu = mtu_code();
	a.gid_tbl_len = GIDS;
	a.max_msg_sz = (uint32_t)fv_setting(FV_SET_MAX_MSG);
	a.pkey_tbl_len = 1;
	a.lid = fv_lid(device, port);
	a.sm_lid = is_ib ? 1 : 0;
	a.max_vl_num = 1;
	a.active_width = 2;
	a.active_speed = 32;
	a.phys_state = is_up ? 5 : 3;
	a.link_layer =
		is_ib ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	/* The caller's may end here. */
	memcpy(out, &a, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
			 union ibv_gid *gid)
{
	FV_CALLED(query_gid);
	if (port < 1 || port > fv_setting(FV_SET_PORTS) || index < 0 ||
	    index >= GIDS) {
		errno = EINVAL;
		return -1;
	}
	fv_gid(fv_context(context)->device, port, index, gid);
	return 0;
}

void fv_objects_forget(void)
{
	store_relaxed(&fv_list_lock.owner, 0);
	fv_contexts = NULL;
	memset(fv_qps, 0, sizeof(fv_qps));
	fv_qp_list = NULL;
	fv_cq_list = NULL;
	fv_srq_list = NULL;
	store_relaxed(&fv_waiting, 0);
	memset(&fv_counts, 0, sizeof(fv_counts));
	pthread_mutex_init(&opening, NULL);
}
