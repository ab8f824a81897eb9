/*
 * The clerk: a kernel thread that does what may sleep or allocate, and that
 * answers while the process computes. It sleeps until there is an order, a
 * hello, an event of the device, or a hello is to be said again.
 *
 * Connecting. Hellos are datagrams over a queue pair of the clerk's, whose
 * place is the rail's address; they get lost, so they are said again, ever more
 * rarely. Either side may begin, or both. A clerk that is ordered to connect,
 * or hears the hello of a peer for the first time, makes a queue pair and says
 * where it is:
 *
 *   HELLO    I know nothing of the peer's            CALLING
 *   KNOWN    the peer's hello has come: my queue pair may receive and send;
 *            the owner is told, then the peer ("heard"): it may send to me
 *   MET      a hello has come that says so of mine: the owner may send, and
 *            nothing is said any more, but to who has not met us
 *
 * What comes from a peer that is KNOWN proves that it has met us: recv.c.
 */
#include "verbs.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <base/diag.h>

#include <marcel/blocking.h>

enum {
	HELLOS = 64,        /* that may come at once */
	SAYING = 16,        /* that are under way */
	GRH = 40,           /* bytes in front of a datagram */
	PLACE = GRH + 4096, /* of any: one too long would end the queue pair */
	QKEY = 0x6e6d6962,
	WAIT_MS = 4, /* before a hello is said again; then twice that ... */
	WAIT_MAX_MS = 256,
	GONE_MS = 100, /* for datagrams to leave */
	COMPLAINTS = 16,
	RETRIES = 6, /* 7 is for ever, to some adapters */
	RNR_FOR_EVER = 7,
	RNR_TIMER = 1, /* 0.01 ms */
	READS = 16,    /* under way */
	HOPS = 64,
};

enum call_state { CALL_NONE, CALL_HELLO, CALL_KNOWN, CALL_MET, CALL_OVER };

/* A peer, as the clerk sees it. */
struct call {
	enum call_state state;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* of the peer's clerk */
	struct verbs_addr to;
	struct verbs_addr queue; /* the peer's */
	uint32_t psn;
	uint64_t due, give_up; /* ms */
	unsigned wait;         /* ms */
	int no_way;            /* an errno: what keeps it from answering */
	struct base_link on;   /* clerk->saying */
	struct verbs_order known, met;
};

struct verbs_clerk {
	/* -: const once started  c: the clerk's  a: atomic */
	struct verbs *v;                      /* -: */
	struct verbs_addr mine;               /* -: */
	unsigned char key[NM_BOOT_KEY_BYTES]; /* -: */
	pthread_t thread;                     /* -: */
	bool runs;                            /* -: */
	int bell;                             /* -: */
	struct base_mpsc orders;              /* a: order(mpsc) */
	ATOMIC(bool) ends;                    /* a: relaxed; then rung */
	struct ibv_comp_channel *channel;     /* -: */
	struct ibv_cq *came, *gone;           /* -: of hellos */
	struct ibv_qp *qp;                    /* -: */
	struct ibv_mr *mr;                    /* -: */
	unsigned char *memory;                /* -: HELLOS and SAYING places */
	unsigned nsaid, ngone;                /* c: datagrams */
	struct call *calls;                   /* c: by rank */
	struct base_list saying;              /* c: calls that go on */
	unsigned nmet;                        /* c: */
	uint64_t next_tick;                   /* c: ms; 0: none */
	uint64_t down_since;                  /* c: ms; 0: the port is up */
	unsigned complaints;                  /* c: */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

static uint64_t dead_ms(void)
{
	return 1000 * (uint64_t)nm_verbs_options[VERBS_OPT_DEAD].value;
}

/* --- to the owner --- */

static void tell(struct verbs_clerk *c, struct verbs_order *o,
		 enum verbs_order_kind kind)
{
	o->kind = kind;
	base_mpsc_push(&c->v->news, &o->node); /* order(mpsc) */
	nm_verbs_ring(c->v->bell);
}

static void all_is_over(struct verbs_clerk *c, int error, const char *why)
{
	base_warn("nmad", "ibverbs: port %d of %s: %s", c->v->port.number,
		  c->v->port.name, why);
	store_relaxed(&c->v->down, error);
	fetch_add_relaxed(&c->v->ticks, 1);
	nm_verbs_ring(c->v->bell);
}

/* --- queue pairs --- */

static int make_queue(struct verbs_clerk *c, struct call *k)
{
	struct verbs *v = c->v;
	struct ibv_qp_init_attr init = {
		.qp_context = v,
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.srq = v->srq,
		.cap = { .max_send_wr = VERBS_SQ,
			 .max_recv_wr = v->srq != NULL
						? 0
						: VERBS_CREDITS + VERBS_SPARE,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = v->max_inline },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = v->port.number,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
	};
	int rc;

	k->qp = nm_verbs_lib.create_qp(v->port.pd, &init);
	if (k->qp == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	rc = nm_verbs_lib.modify_qp(k->qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	k->psn &= 0xffffff;
	return -rc;
}

/* The way to where `to` says. */
static struct ibv_ah_attr way(const struct verbs_clerk *c,
			      const struct verbs_addr *to)
{
	struct ibv_ah_attr ah = {
		.dlid = to->lid,
		.port_num = c->v->port.number,
		.is_global = to->is_ethernet,
		.grh = { .dgid = to->gid,
			 .sgid_index = c->v->port.gid_index,
			 .hop_limit = HOPS },
	};

	return ah;
}

/*
 * How long the adapter waits for an acknowledgement before it sends again: so
 * that all its tries take NMAD_IBVERBS_DEAD_S; 4096 ns times a power of two.
 */
static uint8_t patience(void)
{
	uint64_t each = dead_ms() * 1000000 / (RETRIES + 1);
	uint8_t n = 1;

	while (n < 30 && (uint64_t)4096 << (n + 1) <= each)
		n++;
	return n;
}

static uint8_t reads(int most)
{
	return (uint8_t)(most < READS ? most : READS);
}

static int connect_queue(struct verbs_clerk *c, struct call *k)
{
	uint8_t mtu = k->queue.mtu < c->mine.mtu ? k->queue.mtu : c->mine.mtu;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)mtu,
		.dest_qp_num = k->queue.qpn,
		.rq_psn = k->queue.psn,
		.max_dest_rd_atomic = reads(c->v->port.device.max_qp_rd_atom),
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = way(c, &k->queue),
	};
	int rc = nm_verbs_lib.modify_qp(
		k->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER);

	if (rc != 0)
		return -rc;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = patience();
	attr.retry_cnt = RETRIES;
	attr.rnr_retry = RNR_FOR_EVER;
	attr.sq_psn = k->psn;
	attr.max_rd_atomic = reads(c->v->port.device.max_qp_init_rd_atom);
	return -nm_verbs_lib.modify_qp(
		k->qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

/* --- hellos --- */

static int post_place(struct verbs_clerk *c, unsigned i)
{
	struct ibv_sge at = { (uintptr_t)c->memory + i * PLACE, PLACE,
			      c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &at, .num_sge = 1 },
			   *bad;

	return -ibv_post_recv(c->qp, &wr, &bad);
}

/* Hellos that have left. */
static void see_gone(struct verbs_clerk *c)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(c->gone, 1, &wc) > 0)
		c->ngone++;
}

static void say(struct verbs_clerk *c, uint32_t rank, struct call *k)
{
	struct verbs_hello h = { .from = (uint32_t)c->v->info->rank,
				 .to = rank,
				 .queue = c->mine,
				 .clerk = c->mine };
	unsigned place = HELLOS + c->nsaid % SAYING;
	struct ibv_sge at = { (uintptr_t)c->memory + place * PLACE, VERBS_HELLO,
			      c->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = place,
				  .sg_list = &at,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (k->ah == NULL) {
		struct ibv_ah_attr ah = way(c, &k->to);

		k->ah = nm_verbs_lib.create_ah(c->v->port.pd, &ah);
		k->no_way = k->ah == NULL && errno != 0 ? errno : ETIMEDOUT;
	}
	see_gone(c);
	if (k->ah == NULL || c->nsaid - c->ngone == SAYING)
		return; /* as if it had been lost */
	h.is_met = k->state == CALL_MET;
	h.queue.qpn = k->qp->qp_num;
	h.queue.psn = k->psn;
	h.heard = k->state >= CALL_KNOWN ? k->queue.qpn : 0;
	nm_verbs_hello_put(c->memory + place * PLACE, &h, c->key);
	wr.wr.ud.ah = k->ah;
	wr.wr.ud.remote_qpn = k->to.qpn;
	wr.wr.ud.remote_qkey = QKEY;
	if (ibv_post_send(c->qp, &wr, &bad) == 0)
		c->nsaid++;
}

/* It is said again and again, from now on. */
static void go_on_saying(struct verbs_clerk *c, uint32_t rank, struct call *k)
{
	k->wait = WAIT_MS;
	k->due = now_ms() + k->wait;
	k->give_up =
		now_ms() + (uint64_t)nm_verbs_options[VERBS_OPT_TIMEOUT].value;
	if (!base_link_is_on(&k->on))
		base_list_push_back(&c->saying, &k->on);
	say(c, rank, k);
}

/*
 * Nothing more is said of it, if nobody asks. The address stays where a device
 * that has failed does not tell what has gone.
 */
static void be_quiet(struct verbs_clerk *c, struct call *k)
{
	uint64_t end = now_ms() + GONE_MS;

	base_list_remove(&k->on);
	if (k->ah == NULL)
		return;
	for (see_gone(c); c->ngone != c->nsaid && now_ms() < end; see_gone(c))
		sched_yield();
	if (c->ngone != c->nsaid)
		return;
	nm_verbs_lib.destroy_ah(k->ah);
	k->ah = NULL;
}

static void call_failed(struct verbs_clerk *c, uint32_t rank, struct call *k,
			int error, const char *what)
{
	base_warn("nmad", "ibverbs: rank %u: %s: %s", rank, what,
		  strerror(-error));
	be_quiet(c, k);
	if (k->state == CALL_HELLO && k->qp != NULL) {
		nm_verbs_lib.destroy_qp(k->qp);
		k->qp = NULL; /* nobody else has heard of it */
	}
	k->state = CALL_OVER;
	k->met.error = error;
	tell(c, &k->met, VERBS_FAILED);
}

static struct call *call_of(struct verbs_clerk *c, uint32_t rank)
{
	struct call *k = &c->calls[rank];

	if (k->state != CALL_NONE)
		return k;
	base_link_init(&k->on);
	k->known.rank = k->met.rank = rank;
	base_check(getrandom(&k->psn, sizeof(k->psn), 0) == sizeof(k->psn));
	return k;
}

/* False: it has failed. */
static bool begin(struct verbs_clerk *c, uint32_t rank, struct call *k)
{
	int rc = make_queue(c, k);

	k->state = CALL_HELLO;
	if (rc < 0)
		call_failed(c, rank, k, rc, "no queue pair for it");
	return rc == 0;
}

/* The owner wants the peer. */
static void connect_to(struct verbs_clerk *c, const struct verbs_order *o)
{
	struct call *k = call_of(c, o->rank);

	if (k->state != CALL_NONE)
		return; /* it has called us */
	k->to = o->addr;
	if (begin(c, o->rank, k))
		go_on_saying(c, o->rank, k);
}

/* It has said where its queue pair is, for the first time. */
static void learn(struct verbs_clerk *c, struct call *k,
		  const struct verbs_hello *h)
{
	int rc;

	k->queue = h->queue;
	rc = connect_queue(c, k);
	if (rc < 0) {
		call_failed(c, h->from, k, rc,
			    "its queue pair cannot be connected to");
		return;
	}
	k->state = CALL_KNOWN;
	k->known.qp = k->qp;
	tell(c, &k->known, VERBS_KNOWN);
	if (h->heard != k->qp->qp_num)
		go_on_saying(c, h->from, k);
}

static void meet(struct verbs_clerk *c, const struct verbs_hello *h,
		 struct call *k)
{
	k->state = CALL_MET;
	c->nmet++;
	/* It may not know that we know; nor learn it, if our process ends. */
	say(c, h->from, k);
	tell(c, &k->met, VERBS_MET);
	be_quiet(c, k);
}

static void hear_hello(struct verbs_clerk *c, const struct verbs_hello *h)
{
	struct call *k = call_of(c, h->from);

	if (k->state == CALL_NONE) {
		k->to = h->clerk;
		if (!begin(c, h->from, k))
			return;
	}
	if (k->state == CALL_HELLO)
		learn(c, k, h);
	if ((k->state != CALL_KNOWN && k->state != CALL_MET) ||
	    k->queue.qpn != h->queue.qpn)
		return;
	if (k->state == CALL_KNOWN && h->heard == k->qp->qp_num)
		meet(c, h, k);
	else if (k->state == CALL_MET && !h->is_met)
		say(c, h->from, k);
}

BASE_COLD static void complain(struct verbs_clerk *c, const char *what)
{
	if (c->complaints++ < COMPLAINTS)
		base_warn("nmad", "ibverbs: a hello from a stranger: %s", what);
}

static void hear(struct verbs_clerk *c, const unsigned char *place,
		 uint32_t bytes)
{
	const struct nm_boot_info *info = c->v->info;
	struct verbs_hello h;
	const char *why = nm_verbs_hello_get(
		place + GRH, bytes < GRH ? 0 : bytes - GRH, &h, c->key);

	if (why == NULL &&
	    (h.to != (uint32_t)info->rank || h.from == h.to ||
	     h.from >= (uint32_t)info->size ||
	     h.queue.is_ethernet != c->mine.is_ethernet ||
	     h.queue.mtu < IBV_MTU_256 || h.queue.mtu > IBV_MTU_4096))
		why = "says what makes no sense here";
	if (why != NULL)
		complain(c, why);
	else
		hear_hello(c, &h);
}

static void hear_all(struct verbs_clerk *c)
{
	unsigned char heard[GRH + VERBS_HELLO];
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	while (nm_verbs_lib.get_cq_event(c->channel, &cq, &arg) == 0)
		nm_verbs_lib.ack_cq_events(cq, 1);
	ibv_req_notify_cq(c->came, 0);
	while (ibv_poll_cq(c->came, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			continue;
		memcpy(heard, c->memory + wc.wr_id * PLACE, sizeof(heard));
		post_place(c, (unsigned)wc.wr_id);
		hear(c, heard, wc.byte_len);
	}
}

/* --- what is to be said again --- */

static void say_again(struct verbs_clerk *c, uint64_t now, uint64_t *next)
{
	struct base_list batch;
	struct base_link *n;

	base_list_init(&batch);
	base_list_splice_back(&batch, &c->saying);
	while ((n = base_list_take_front(&batch)) != NULL) {
		struct call *k = container_of(n, struct call, on);
		uint32_t rank = (uint32_t)(k - c->calls);

		base_list_push_back(&c->saying, n);
		if (now >= k->give_up) {
			call_failed(c, rank, k, -k->no_way, "does not answer");
			continue;
		}
		if (now >= k->due) {
			say(c, rank, k);
			k->wait = 2 * k->wait < WAIT_MAX_MS ? 2 * k->wait
							    : WAIT_MAX_MS;
			k->due = now + k->wait;
		}
		if (k->due < *next)
			*next = k->due;
	}
}

/*
 * The owner is to look who lives, three times in the time after which a peer
 * is dead; a port that is down for so long is given up.
 */
static void tick(struct verbs_clerk *c, uint64_t now, uint64_t *next)
{
	uint64_t period = dead_ms() / 3;

	if (c->nmet == 0)
		return;
	if (c->next_tick == 0)
		c->next_tick = now + period;
	if (now >= c->next_tick) {
		c->next_tick = now + period;
		if (c->down_since != 0 && now - c->down_since >= period &&
		    load_relaxed(&c->v->down) == 0)
			all_is_over(c, -ENETDOWN, "is down, given up");
		fetch_add_relaxed(&c->v->ticks, 1);
		nm_verbs_ring(c->v->bell);
	}
	if (c->next_tick < *next)
		*next = c->next_tick;
}

/* --- events --- */

static void see_event(struct verbs_clerk *c, const struct ibv_async_event *e)
{
	const struct verbs_port *port = &c->v->port;

	switch (e->event_type) {
	case IBV_EVENT_PORT_ERR:
		if (e->element.port_num != port->number || c->down_since != 0)
			return;
		c->down_since = now_ms();
		base_warn("nmad", "ibverbs: port %d of %s is down",
			  port->number, port->name);
		return;
	case IBV_EVENT_PORT_ACTIVE:
		if (e->element.port_num != port->number || c->down_since == 0)
			return;
		c->down_since = 0;
		base_warn("nmad", "ibverbs: port %d of %s is up again",
			  port->number, port->name);
		return;
	case IBV_EVENT_DEVICE_FATAL:
		/* If it is removed the channel is readable for ever. */
		epoll_ctl(c->v->epoll, EPOLL_CTL_DEL, c->v->channel->fd, NULL);
		all_is_over(c, -EIO, "the device has failed");
		return;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
		all_is_over(c, -EIO,
			    nm_verbs_lib.event_type_str(e->event_type));
		return;
	default:
		return; /* of one queue pair: its completions tell */
	}
}

static void see_events(struct verbs_clerk *c)
{
	struct ibv_async_event e;
	struct pollfd fd = { .fd = c->v->port.context->async_fd,
			     .events = POLLIN };

	while (poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN) &&
	       nm_verbs_lib.get_async_event(c->v->port.context, &e) == 0) {
		see_event(c, &e);
		nm_verbs_lib.ack_async_event(&e);
	}
}

/* --- orders --- */

void nm_verbs_order(struct verbs *v, struct verbs_order *o)
{
	base_mpsc_push(&v->clerk->orders, &o->node); /* order(mpsc) */
	nm_verbs_ring(v->clerk->bell);
	nm_rail_calls(v->rail, NM_CALL_BELL);
}

static void destroy(struct verbs_clerk *c, struct call *k)
{
	be_quiet(c, k);
	if (k->state == CALL_MET)
		c->nmet--;
	k->state = CALL_OVER;
	if (k->qp != NULL)
		nm_verbs_lib.destroy_qp(k->qp);
	k->qp = NULL;
}

static void obey(struct verbs_clerk *c, struct verbs_order *o)
{
	switch (o->kind) {
	case VERBS_CONNECT:
		connect_to(c, o);
		break;
	case VERBS_DESTROY:
		destroy(c, &c->calls[o->rank]);
		break;
	case VERBS_REGISTER:
		o->reg = nm_verbs_reg_make(c->v->regs, o->memory, o->bytes,
					   &o->error);
		tell(c, o, VERBS_REGISTER);
		break;
	default:
		break;
	}
}

/* Any thread, at any place: registrations are to be taken back. */
void nm_verbs_clean(void *arg)
{
	struct verbs *v = arg;

	nm_verbs_ring(v->clerk->bell);
}

/* --- the thread --- */

static void *work(void *arg)
{
	struct verbs_clerk *c = arg;
	struct pollfd fds[3] = {
		{ .fd = c->bell, .events = POLLIN },
		{ .fd = c->channel->fd, .events = POLLIN },
		{ .fd = c->v->port.context->async_fd, .events = POLLIN },
	};

	for (;;) {
		uint64_t now, next = UINT64_MAX;
		int timeout = -1;

		/* What it was rung for is looked at after that. */
		nm_verbs_hush(c->bell);
		if (load_relaxed(&c->ends))
			return NULL;
		base_mpsc_for_each (n, base_mpsc_take(&c->orders))
			obey(c, container_of(n, struct verbs_order, node));
		nm_verbs_regs_clean(c->v->regs);
		hear_all(c);
		if (fds[2].revents & POLLIN)
			see_events(c);
		now = now_ms();
		say_again(c, now, &next);
		tick(c, now, &next);
		if (next != UINT64_MAX)
			timeout = next > now ? (int)(next - now) : 0;
		if (base_mpsc_is_empty(&c->orders))
			poll(fds, BASE_ARRAY_LEN(fds), timeout);
		/* Of a device that was removed, for ever. */
		for (int i = 1; i < 3; i++)
			if (fds[i].revents & (POLLERR | POLLHUP))
				fds[i].fd = -1;
	}
}

/* --- from the start to the end --- */

static int make_hello_queue(struct verbs_clerk *c)
{
	struct verbs_port *port = &c->v->port;
	struct ibv_qp_init_attr init = {
		.send_cq = c->gone,
		.recv_cq = c->came,
		.cap = { .max_send_wr = SAYING,
			 .max_recv_wr = HELLOS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = port->number,
				    .qkey = QKEY };

	c->qp = nm_verbs_lib.create_qp(port->pd, &init);
	if (c->qp == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	if (nm_verbs_lib.modify_qp(c->qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					   IBV_QP_PORT | IBV_QP_QKEY) != 0)
		return -EIO;
	for (unsigned i = 0; i < HELLOS; i++)
		if (post_place(c, i) != 0)
			return -EIO;
	attr.qp_state = IBV_QPS_RTR;
	if (nm_verbs_lib.modify_qp(c->qp, &attr, IBV_QP_STATE) != 0)
		return -EIO;
	attr.qp_state = IBV_QPS_RTS;
	return nm_verbs_lib.modify_qp(c->qp, &attr,
				      IBV_QP_STATE | IBV_QP_SQ_PSN) != 0
		       ? -EIO
		       : 0;
}

static int make_all(struct verbs_clerk *c)
{
	struct verbs_port *port = &c->v->port;
	size_t bytes = (HELLOS + SAYING) * (size_t)PLACE;

	c->calls = calloc((size_t)c->v->info->size, sizeof(*c->calls));
	c->memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (c->calls == NULL || c->memory == NULL)
		return -ENOMEM;
	memset(c->memory, 0, bytes);
	c->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (c->bell < 0)
		return -errno;
	c->mr = nm_verbs_lib.reg_mr(port->pd, c->memory, bytes,
				    IBV_ACCESS_LOCAL_WRITE);
	if (c->mr == NULL)
		return -ENOMEM;
	c->channel = nm_verbs_lib.create_comp_channel(port->context);
	if (c->channel == NULL)
		return -EIO;
	c->came = nm_verbs_lib.create_cq(port->context, HELLOS, NULL,
					 c->channel, 0);
	c->gone = nm_verbs_lib.create_cq(port->context, SAYING, NULL, NULL, 0);
	if (c->came == NULL || c->gone == NULL)
		return -EIO;
	nm_verbs_do_not_block(c->channel->fd);
	return make_hello_queue(c);
}

static void drop(struct verbs_clerk *c)
{
	for (int r = 0; c->calls != NULL && r < c->v->info->size; r++) {
		struct call *k = &c->calls[r];

		if (k->ah != NULL)
			nm_verbs_lib.destroy_ah(k->ah);
		if (k->qp != NULL)
			nm_verbs_lib.destroy_qp(k->qp);
	}
	if (c->qp != NULL)
		nm_verbs_lib.destroy_qp(c->qp);
	if (c->came != NULL)
		nm_verbs_lib.destroy_cq(c->came);
	if (c->gone != NULL)
		nm_verbs_lib.destroy_cq(c->gone);
	if (c->channel != NULL)
		nm_verbs_lib.destroy_comp_channel(c->channel);
	if (c->mr != NULL)
		nm_verbs_lib.dereg_mr(c->mr);
	if (c->bell >= 0)
		close(c->bell);
	free(c->memory);
	free(c->calls);
	free(c);
}

int nm_verbs_clerk_open(struct verbs *v, struct verbs_addr *mine)
{
	struct verbs_clerk *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL)
		return -ENOMEM;
	c->v = v;
	c->bell = -1;
	base_list_init(&c->saying);
	base_mpsc_init(&c->orders);
	rc = make_all(c);
	if (rc < 0) {
		drop(c);
		return rc;
	}
	mine->qpn = c->qp->qp_num;
	c->mine = *mine;
	v->clerk = c;
	return 0;
}

int nm_verbs_clerk_start(struct verbs *v)
{
	struct verbs_clerk *c = v->clerk;
	int rc;

	memcpy(c->key, v->info->key, sizeof(c->key));
	rc = marcel_kernel_thread(&c->thread, work, c);
	c->runs = rc == 0;
	return rc;
}

void nm_verbs_clerk_forked(struct verbs *v)
{
	close(v->clerk->bell);
	close(v->clerk->channel->fd);
}

void nm_verbs_clerk_close(struct verbs *v)
{
	struct verbs_clerk *c = v->clerk;

	if (c->runs) {
		store_relaxed(&c->ends, true);
		nm_verbs_ring(c->bell);
		pthread_join(c->thread, NULL);
	}
	drop(c);
	v->clerk = NULL;
}
