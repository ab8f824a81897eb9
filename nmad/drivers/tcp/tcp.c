/*
 * The driver over TCP: opening, closing, polling.
 *
 * With one connection a poll is one system call, a read of that socket: asking
 * epoll first would double the cost of every message. With more, epoll tells
 * (edge-triggered, so that nothing is registered again) which sockets to read.
 * What is rare (callers, blocked senders) is looked for every few polls. So a
 * spare rail without a connection costs next to nothing. Who was short of
 * descriptors looks at each: whom he cuts off only after the time of a hello
 * would begin his anew.
 */
#include "tcp.h"

#include <marcel/errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/diag.h>

enum {
	RDV_THRESHOLD = 65536,
	POLLS_A_LOOK = 32, /* a power of two */
};

struct base_option nm_tcp_options[TCP_NOPTS] = {
	[TCP_OPT_IFACE] = { "NMAD_TCP_IFACE", BASE_OPTION_STRING, "auto", 0, 0,
			    NULL,
			    "interface or address, loopback, any, or auto: "
			    "loopback if all ranks share this host, else any" },
	[TCP_OPT_TIMEOUT] = { "NMAD_TCP_TIMEOUT_MS", BASE_OPTION_INT, "10000",
			      10, 3600000, NULL,
			      "how long a connection may take to be made" },
	[TCP_OPT_DEAD] = { "NMAD_TCP_DEAD_S", BASE_OPTION_INT, "60", 3, 86400,
			   NULL,
			   "seconds after which a host that does not answer "
			   "is dead" },
	[TCP_OPT_BUFFER] = { "NMAD_TCP_BUFFER", BASE_OPTION_SIZE, "0", 0,
			     1 << 30, NULL,
			     "socket buffers in bytes (0: the kernel's)" },
};

static const struct base_option_table options =
	BASE_OPTION_TABLE("nmad", nm_tcp_options);

/* All instances, for fork: opened and closed by one thread at a time. */
static struct tcp *instances;

/*
 * A forked child closes its copies of our sockets, so that the peers learn of
 * the parent's death. Only descriptors: the child owns no rail.
 */
static void in_child(void)
{
	for (struct tcp *t = instances; t != NULL; t = t->next) {
		close(t->epoll);
		close(t->listener.fd);
		close(t->alarm.fd);
		if (t->spare >= 0)
			close(t->spare);
		for (unsigned i = 0; i < TCP_HANDS; i++)
			if (t->hands[i].sock.fd >= 0)
				close(t->hands[i].sock.fd);
		base_list_for_each (n, &t->used) {
			struct tcp_peer *p =
				container_of(n, struct tcp_peer, on_used);

			if (p->sock.fd >= 0)
				close(p->sock.fd);
			if (p->hand.sock.fd >= 0)
				close(p->hand.sock.fd);
		}
	}
	instances = NULL;
}

/* --- polling --- */

/*
 * Take up what epoll tells. A deadline has been missed only if nothing that had
 * come by then is left: this process may have been stopped for long.
 */
static void look(struct tcp *tcp)
{
	struct epoll_event ev[32];
	uint64_t now = tcp->alarm_at != 0 ? nm_tcp_now() : 0;
	int n = epoll_wait(tcp->epoll, ev, BASE_ARRAY_LEN(ev), 0);

	nm_rail_calls(tcp->rail, NM_CALL_LOOK);
	for (int i = 0; i < n; i++) {
		struct tcp_sock *s = ev[i].data.ptr;
		struct tcp_peer *p;

		if (s->fd < 0)
			continue; /* closed by an earlier one of these */
		switch (s->what) {
		case TCP_LISTENER:
			nm_tcp_accept(tcp);
			break;
		case TCP_HAND:
			nm_tcp_hand_go_on(
				tcp, container_of(s, struct tcp_hand, sock));
			break;
		case TCP_CONN:
			p = container_of(s, struct tcp_peer, sock);
			if (ev[i].events & ~(uint32_t)EPOLLOUT)
				nm_tcp_want_read(tcp, p);
			if (ev[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
				p->ended = true;
			if (ev[i].events & EPOLLOUT)
				p->blocked = false;
			break;
		case TCP_ALARM:
			break;
		}
	}
	if (unlikely(now != 0) && n < (int)BASE_ARRAY_LEN(ev))
		nm_tcp_deadlines(tcp, now);
}

static bool read_all(struct tcp *tcp, int budget)
{
	struct base_list batch;
	struct base_link *n;
	bool moved = false;

	base_list_init(&batch);
	base_list_splice_back(&batch, &tcp->reading);
	while ((n = base_list_take_front(&batch)) != NULL) {
		base_list_push_back(&tcp->reading, n);
		moved |= nm_tcp_read(tcp,
				     container_of(n, struct tcp_peer, on_read),
				     &budget);
	}
	return moved;
}

static bool send_all(struct tcp *tcp)
{
	struct base_list batch;
	struct base_link *n;
	bool moved = false;

	base_list_init(&batch);
	base_list_splice_back(&batch, &tcp->sending);
	while ((n = base_list_take_front(&batch)) != NULL) {
		struct tcp_peer *p = container_of(n, struct tcp_peer, on_send);

		base_list_push_back(&tcp->sending, n);
		if (p->state == TCP_COLD)
			nm_tcp_call(tcp, p);
		else if (!p->blocked || p == tcp->only)
			moved |= nm_tcp_flush(tcp, p);
	}
	return moved;
}

static bool tcp_poll(struct nm_rail *rail, int budget)
{
	struct tcp *tcp = rail->drv;
	bool often = tcp->nopen > 1 || (tcp->nopen == 0 && !rail->is_spare) ||
		     tcp->nhands > 0 || tcp->was_short ||
		     !base_list_is_empty(&tcp->calling);
	bool rare = (++tcp->npolls & (POLLS_A_LOOK - 1)) == 0;
	bool moved = false;

	if (often || rare)
		look(tcp);
	if (tcp->only != NULL)
		moved = nm_tcp_read(tcp, tcp->only, &budget);
	else if (!base_list_is_empty(&tcp->reading))
		moved = read_all(tcp, budget);
	if (!base_list_is_empty(&tcp->sending))
		moved |= send_all(tcp);
	return moved;
}

/* --- waiting --- */

/* What this peer sends next waits for an event, which epoll will tell. */
static bool waits(const struct tcp_peer *p)
{
	switch (p->state) {
	case TCP_COLD:
		return p->retry != 0; /* else the next poll calls */
	case TCP_OPEN:
		return p->blocked || p->broken;
	default:
		return true;
	}
}

static bool tcp_is_busy(const struct nm_rail *rail)
{
	const struct tcp *tcp = rail->drv;

	if (!base_list_is_empty(&tcp->reading))
		return true;
	base_list_for_each (n, &tcp->sending)
		if (!waits(container_of(n, struct tcp_peer, on_send)))
			return true;
	return false;
}

/*
 * Sockets tell of each change once: what they have told must be read to its
 * end before the next is waited for. The single connection is read without
 * asking, so there it may have been read already.
 */
static int tcp_arm(struct nm_rail *rail)
{
	look(rail->drv);
	return tcp_is_busy(rail) ? -EAGAIN : 0;
}

/* --- packets --- */

static int tcp_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	struct tcp *tcp = link->rail->drv;
	struct tcp_peer *p = link->conn;

	if (unlikely(p->state >= TCP_LEFT)) {
		nm_tcp_hang_up(tcp, p);
		return -ECONNRESET;
	}
	return nm_tcp_post(tcp, p, pkt);
}

/* --- connecting --- */

static bool tcp_reaches(const struct nm_rail *rail, int rank)
{
	return rank != rail->rank;
}

struct tcp_peer *nm_tcp_peer(struct tcp *tcp, uint32_t rank)
{
	struct nm_link *link = &tcp->rail->links[rank];
	struct tcp_peer *p = &tcp->peers[rank];

	if (link->conn != NULL)
		return p;
	p->link = link;
	p->sock.what = TCP_CONN;
	p->sock.fd = -1;
	p->hand.sock.what = TCP_HAND;
	p->hand.sock.fd = -1;
	p->hand.peer = p;
	base_list_init(&p->sending);
	base_list_init(&p->waiting);
	base_link_init(&p->on_call);
	base_link_init(&p->on_read);
	base_link_init(&p->on_send);
	base_list_push_back(&tcp->used, &p->on_used);
	link->conn = p;
	return p;
}

static int tcp_connect(struct nm_link *link)
{
	struct tcp *tcp = link->rail->drv;

	nm_tcp_await(tcp, nm_tcp_peer(tcp, (uint32_t)link->rank));
	return 0;
}

static void tcp_give_up(struct nm_link *link)
{
	nm_tcp_hang_up(link->rail->drv, link->conn);
}

/*
 * After the goodbye nothing is unread, as far as it has come: closing a socket
 * with unread bytes would reset the connection and could overtake it.
 */
static void tcp_disconnect(struct nm_link *link)
{
	struct tcp *tcp = link->rail->drv;
	struct tcp_peer *p = link->conn;
	char waste[4096];

	if (p->state == TCP_OPEN)
		nm_tcp_bye(tcp, p);
	if (p->sock.fd >= 0) {
		shutdown(p->sock.fd, SHUT_WR);
		while (recv(p->sock.fd, waste, sizeof(waste), MSG_DONTWAIT) > 0)
			;
	}
	nm_tcp_hang_up(tcp, p);
}

/* --- opening --- */

static void drop(struct tcp *tcp)
{
	struct base_link *n;

	for (unsigned i = 0; i < TCP_HANDS; i++)
		nm_tcp_hand_drop(tcp, &tcp->hands[i]);
	while ((n = base_list_take_front(&tcp->used)) != NULL) {
		struct tcp_peer *p = container_of(n, struct tcp_peer, on_used);

		nm_tcp_hang_up(tcp, p);
		p->link->conn = NULL;
	}
	if (tcp->listener.fd >= 0)
		close(tcp->listener.fd);
	if (tcp->alarm.fd >= 0)
		close(tcp->alarm.fd);
	if (tcp->spare >= 0)
		close(tcp->spare);
	if (tcp->epoll >= 0)
		close(tcp->epoll);
	if (tcp->blocks != NULL && tcp->blocks != MAP_FAILED)
		munmap(tcp->blocks, tcp->nblocks * sizeof(struct tcp_block));
	free(tcp->packets);
	free(tcp->peers);
	free(tcp);
}

static int tcp_open(struct nm_rail *rail, const struct nm_boot_info *info,
		    const char *spec)
{
	static bool registered;
	struct tcp *tcp;
	int rc;

	if (base_option_load(&options) < 0)
		return -EINVAL;
	tcp = calloc(1, sizeof(*tcp));
	if (tcp == NULL)
		return -ENOMEM;
	tcp->rail = rail;
	tcp->info = info;
	tcp->listener.what = TCP_LISTENER;
	tcp->listener.fd = tcp->alarm.fd = tcp->spare = -1;
	base_list_init(&tcp->reading);
	base_list_init(&tcp->sending);
	base_list_init(&tcp->calling);
	base_list_init(&tcp->silents);
	base_list_init(&tcp->used);
	for (unsigned i = 0; i < TCP_HANDS; i++) {
		tcp->hands[i].sock.what = TCP_HAND;
		tcp->hands[i].sock.fd = -1;
	}
	tcp->peers = calloc((size_t)info->size, sizeof(*tcp->peers));
	tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = tcp->epoll < 0 ? -errno : nm_tcp_pools(tcp);
	if (rc == 0 && tcp->peers == NULL)
		rc = -ENOMEM;
	if (rc == 0)
		rc = nm_tcp_alarm_make(tcp);
	if (rc == 0)
		rc = nm_tcp_listen(tcp, spec);
	if (rc < 0) {
		drop(tcp);
		return rc;
	}
	if (!registered)
		pthread_atfork(NULL, NULL, in_child);
	registered = true;
	tcp->next = instances;
	instances = tcp;
	memcpy(rail->addr, &tcp->mine, sizeof(tcp->mine));
	rail->addr_len = sizeof(tcp->mine);
	rail->fd = tcp->epoll;
	rail->drv = tcp;
	return 0;
}

static void tcp_close(struct nm_rail *rail)
{
	struct tcp *tcp = rail->drv, **t;

	for (t = &instances; *t != NULL; t = &(*t)->next)
		if (*t == tcp) {
			*t = tcp->next;
			break;
		}
	drop(tcp);
	rail->drv = NULL;
}

static void tcp_dump(const struct nm_rail *rail)
{
	static const char *const states[] = { "cold", "calling", "yielded",
					      "open", "left",    "closed" };
	const struct tcp *tcp = rail->drv;

	base_dump("tcp: %u connections, %u hellos", tcp->nopen, tcp->nhands);
	base_list_for_each (n, &tcp->used) {
		const struct tcp_peer *p =
			container_of(n, struct tcp_peer, on_used);

		base_dump("  rank %d: %s%s; sending frame kind %u, %lu of %lu; "
			  "%u windows, %u bytes not understood",
			  p->link->rank, states[p->state],
			  p->blocked ? ", blocked" : "", p->out.kind,
			  (unsigned long)p->out.done,
			  (unsigned long)p->out.total, p->nwindows,
			  p->fill - p->parse);
	}
}

const struct nm_driver nm_driver_tcp = {
	.name = "tcp",
	.caps = NM_CAP_DEAR,
	.max_small = TCP_MAX_SMALL,
	.fill = TCP_MAX_SMALL,
	.rdv_threshold = RDV_THRESHOLD,
	.options = &options,
	.weight = 50,
	.open = tcp_open,
	.close = tcp_close,
	.reaches = tcp_reaches,
	.connect = tcp_connect,
	.disconnect = tcp_disconnect,
	.give_up = tcp_give_up,
	.post_send = tcp_post_send,
	.poll = tcp_poll,
	.arm = tcp_arm,
	.is_busy = tcp_is_busy,
	.release = nm_tcp_release,
	.xfer_recv = nm_tcp_xfer_recv,
	.xfer_send = nm_tcp_xfer_send,
	.dump = tcp_dump,
};
