/*
 * The clerk: a kernel thread that does what may sleep or allocate, and that
 * answers while the process computes. It sleeps until there is an order, a
 * hello, an event of the device, or a hello is to be said again.
 */
#include "clerk.h"

#include <marcel/errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/diag.h>

#include <marcel/blocking.h>

/* --- to the owner --- */

void nm_verbs_tell(struct verbs_clerk *c, struct verbs_order *o,
		   enum verbs_order_kind kind)
{
	o->kind = kind;
	base_mpsc_push(&c->v->news, &o->node); /* order(mpsc) */
	nm_verbs_ring(&c->v->bell);
}

static void all_is_over(struct verbs_clerk *c, int error, const char *why)
{
	base_warn("nmad", "ibverbs: port %d of %s: %s", c->v->port.number,
		  c->v->port.name, why);
	store_relaxed(&c->v->down, error);
	fetch_add_relaxed(&c->v->ticks, 1);
	nm_verbs_ring(&c->v->bell);
}

/* --- the port --- */

/*
 * The owner is to look who lives, three times in the time after which a peer
 * is dead; a port that is down for so long is given up.
 */
static void tick(struct verbs_clerk *c, uint64_t now, uint64_t *next)
{
	uint64_t period = verbs_dead_ms() / 3;

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
		nm_verbs_ring(&c->v->bell);
	}
	if (c->next_tick < *next)
		*next = c->next_tick;
}

static void see_event(struct verbs_clerk *c, const struct ibv_async_event *e)
{
	const struct verbs_port *port = &c->v->port;

	switch (e->event_type) {
	case IBV_EVENT_PORT_ERR:
		if (e->element.port_num != port->number || c->down_since != 0)
			return;
		c->down_since = verbs_now_ms();
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
	nm_verbs_ring(&v->clerk->bell);
	nm_rail_calls(v->rail, NM_CALL_BELL);
}

static void obey(struct verbs_clerk *c, struct verbs_order *o)
{
	switch (o->kind) {
	case VERBS_CONNECT:
		nm_verbs_call(c, o);
		break;
	case VERBS_DESTROY:
		nm_verbs_call_end(c, &c->calls[o->rank]);
		break;
	case VERBS_REGISTER:
		o->reg = nm_verbs_reg_make(c->v->regs, o->memory, o->bytes,
					   &o->error);
		nm_verbs_tell(c, o, VERBS_REGISTER);
		break;
	default:
		break;
	}
}

/* Any thread, at any place: registrations are to be taken back. */
void nm_verbs_clean(void *arg)
{
	struct verbs *v = arg;

	nm_verbs_ring(&v->clerk->bell);
}

/* --- the thread --- */

static void *work(void *arg)
{
	struct verbs_clerk *c = arg;
	struct pollfd fds[3] = {
		{ .fd = c->bell.fd, .events = POLLIN },
		{ .fd = c->mail.channel->fd, .events = POLLIN },
		{ .fd = c->v->port.context->async_fd, .events = POLLIN },
	};

	for (;;) {
		uint64_t now, next = UINT64_MAX;
		int timeout = -1;

		/* What it was rung for is looked at after that. */
		nm_verbs_hush(&c->bell);
		if (load_relaxed(&c->ends))
			return NULL;
		base_mpsc_for_each (n, base_mpsc_take(&c->orders))
			obey(c, container_of(n, struct verbs_order, node));
		nm_verbs_regs_clean(c->v->regs);
		if (fds[2].revents & POLLIN)
			see_events(c);
		/* Nobody is late whose hello has come: we may be stopped. */
		now = verbs_now_ms();
		nm_verbs_calls_hear(c);
		nm_verbs_calls_go_on(c, now, &next);
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

static int make_all(struct verbs_clerk *c)
{
	c->calls = calloc((size_t)c->v->info->size, sizeof(*c->calls));
	if (c->calls == NULL)
		return -ENOMEM;
	c->bell.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (c->bell.fd < 0)
		return -errno;
	return nm_verbs_mail_open(&c->mail, c->v);
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
	nm_verbs_mail_close(&c->mail);
	if (c->bell.fd >= 0)
		close(c->bell.fd);
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
	c->bell.fd = -1;
	base_list_init(&c->saying);
	base_mpsc_init(&c->orders);
	rc = make_all(c);
	if (rc < 0) {
		drop(c);
		return rc;
	}
	mine->qpn = c->mail.qp->qp_num;
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
	close(v->clerk->bell.fd);
	close(v->clerk->mail.channel->fd);
}

void nm_verbs_clerk_close(struct verbs *v)
{
	struct verbs_clerk *c = v->clerk;

	if (c->runs) {
		store_relaxed(&c->ends, true);
		nm_verbs_ring(&c->bell);
		pthread_join(c->thread, NULL);
	}
	drop(c);
	v->clerk = NULL;
}
