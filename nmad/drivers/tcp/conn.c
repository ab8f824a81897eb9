/*
 * Who connects to whom. The one who sends first calls; both may do so at once,
 * and then the call of the lower rank counts. The callee decides, in the moment
 * in which the caller's proof has come:
 *
 *   he has no call of his own on its way     accept
 *   he has one, and the caller ranks lower   accept, and drop his own
 *   he has one, and the caller ranks higher  refuse: his own will get through
 *   he has a connection                      refuse
 *
 * Who is refused waits for the other's call. Frames are sent only after the
 * verdict, so that both ends always mean the same connection.
 *
 * A connection that has not proved anything costs one of TCP_HANDS small
 * entries and ends at a deadline; when all are in use the oldest goes.
 *
 * A call that comes to nothing is followed by another:
 *
 *   BUSY: the peer has no descriptor for us   there, a little later
 *   cut off in the hello, by whomever         the next address; after the last
 *                                             the first such, a little later
 *   else                                      the next address
 *
 * until it is time to give up. Being cut off gives more time if that came late,
 * for we or the peer may have been stopped; but not for ever, since it may be
 * no peer who does it. Only who has nothing to send and hears BUSY never gives
 * up: that is the peer, and it lives (spare.c).
 */
#include "tcp.h"

#include <marcel/errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/diag.h>

enum {
	RETRY_MS = 10,
	SILENT_MS = 100, /* until who is only received from is called */
	DEAF_MS = 100,   /* without a descriptor for who calls */
	LATES = 8,       /* a caller may be cut off late */
	COMPLAINTS = 16, /* lines about strangers */
	UNSENT = 131072, /* bytes that wait in the kernel */
};

static uint64_t timeout_ms(void)
{
	return (uint64_t)nm_tcp_options[TCP_OPT_TIMEOUT].value;
}

static uint64_t deadline(void)
{
	return nm_tcp_now() + timeout_ms();
}

/* --- connections --- */

/* The one connection there is, or NULL. */
static void find_only(struct tcp *tcp)
{
	tcp->only = NULL;
	if (tcp->nopen != 1)
		return;
	base_list_for_each (n, &tcp->used) {
		struct tcp_peer *p = container_of(n, struct tcp_peer, on_used);

		if (p->sock.fd >= 0)
			tcp->only = p;
	}
}

static void forget_transfers(struct tcp_peer *p)
{
	while (base_list_take_front(&p->sending) != NULL)
		;
	while (base_list_take_front(&p->waiting) != NULL)
		;
	for (unsigned i = 0; i < TCP_WINDOWS; i++)
		p->window[i].x = NULL;
	p->nwindows = 0;
	p->piece = NULL;
	p->out.kind = 0;
	p->pkt = p->pkt_out = NULL;
}

static void stop_asking(struct tcp_peer *p)
{
	if (p->asks)
		nm_rail_address_drop(p->link);
	p->asks = false;
}

void nm_tcp_hang_up(struct tcp *tcp, struct tcp_peer *p)
{
	stop_asking(p);
	nm_tcp_hand_drop(tcp, &p->hand);
	base_list_remove(&p->on_call);
	base_list_remove(&p->on_read);
	base_list_remove(&p->on_send);
	if (p->sock.fd >= 0) {
		close(p->sock.fd);
		p->sock.fd = -1;
		tcp->nopen--;
		find_only(tcp);
	}
	forget_transfers(p);
	nm_tcp_block_drop(tcp, p);
	p->state = TCP_CLOSED;
}

void nm_tcp_dead(struct tcp *tcp, struct tcp_peer *p, int error)
{
	bool quiet =
		p->state == TCP_CLOSED ||
		(p->state == TCP_LEFT && p->nwindows == 0 && p->pkt == NULL &&
		 p->out.kind == 0 && base_list_is_empty(&p->sending));

	nm_tcp_hang_up(tcp, p);
	if (!quiet)
		nm_rail_link_dead(tcp->rail, p->link, error);
}

/*
 * Within a host nothing is congested, and an algorithm that paces (BBR) lets
 * the sender wait for a timer between two segments. Reno does not, and every
 * kernel has it and grants it to everybody.
 */
static void do_not_pace(int fd, const struct sockaddr_storage *peer)
{
	if (nm_tcp_is_loopback(peer))
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static void tune(int fd, const struct sockaddr_storage *peer)
{
	int one = 1, unsent = UNSENT;
	int buffer = (int)nm_tcp_options[TCP_OPT_BUFFER].value;

	do_not_pace(fd, peer);
	nm_tcp_alive_tune(fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
	if (buffer > 0) {
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	}
}

static int watch(struct tcp *tcp, int op, int fd, struct tcp_sock *s)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP |
					    EPOLLET,
				  .data.ptr = s };

	s->fd = fd;
	return epoll_ctl(tcp->epoll, op, fd, &ev) < 0 ? -errno : 0;
}

/* The hello is over: the socket becomes the peer's connection. */
static void become_open(struct tcp *tcp, struct tcp_peer *p, struct tcp_hand *h)
{
	int fd = h->sock.fd;

	h->sock.fd = -1; /* it goes on elsewhere */
	if (h->peer == NULL)
		tcp->nhands--;
	stop_asking(p);
	nm_tcp_hand_drop(tcp, &p->hand);
	base_list_remove(&p->on_call);
	p->state = TCP_OPEN;
	watch(tcp, EPOLL_CTL_MOD, fd, &p->sock);
	tcp->nopen++;
	find_only(tcp);
	nm_tcp_alive_sent(tcp);
	nm_tcp_want_read(tcp, p);
	nm_tcp_want_send(tcp, p);
}

/* --- calling --- */

void nm_tcp_hand_drop(struct tcp *tcp, struct tcp_hand *h)
{
	if (h->sock.fd < 0)
		return;
	close(h->sock.fd);
	h->sock.fd = -1;
	if (h->peer == NULL)
		tcp->nhands--;
}

static void random_nonce(unsigned char nonce[static TCP_NONCE])
{
	base_check(getrandom(nonce, TCP_NONCE, 0) == TCP_NONCE);
}

static int try_call(struct tcp *tcp, struct tcp_peer *p)
{
	struct tcp_hand *h = &p->hand;
	struct sockaddr_storage to;
	socklen_t len = nm_tcp_sockaddr(&to, &p->addr[p->next_addr], p->port,
					tcp->scope);
	int fd, rc;

	p->called = nm_tcp_now();
	h->deadline = deadline();
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	if (fd < 0)
		return -errno;
	tune(fd, &to);
	rc = nm_tcp_bind_call(tcp, fd);
	if (rc == 0 && connect(fd, (void *)&to, len) < 0 &&
	    errno != EINPROGRESS)
		rc = -errno;
	if (rc < 0) {
		close(fd);
		return rc;
	}
	h->state = TCP_CALL;
	h->have = 0;
	h->g.caller = (uint32_t)tcp->info->rank;
	h->g.callee = (uint32_t)p->link->rank;
	random_nonce(h->g.caller_nonce);
	rc = watch(tcp, EPOLL_CTL_ADD, fd, &h->sock);
	if (rc < 0) {
		nm_tcp_hand_drop(tcp, h);
		return rc;
	}
	p->state = TCP_CALLING;
	nm_tcp_alarm_by(tcp, h->deadline);
	return 0;
}

/*
 * Somebody uses the peer: who sends something calls at once. Who only receives
 * is called, but would not hear of the death of a peer that never calls; so
 * after a while he calls, too.
 */
void nm_tcp_await(struct tcp *tcp, struct tcp_peer *p)
{
	if (p->state != TCP_COLD || base_link_is_on(&p->on_call))
		return;
	p->silent = nm_tcp_now() + SILENT_MS;
	base_list_push_back(&tcp->silents, &p->on_call);
	nm_tcp_alarm_by(tcp, p->silent);
}

/* They wait in the order in which they are due. */
static void call_silents(struct tcp *tcp, uint64_t now)
{
	struct base_link *n;

	while ((n = base_list_first(&tcp->silents)) != NULL) {
		struct tcp_peer *p = container_of(n, struct tcp_peer, on_call);

		if (now < p->silent) {
			nm_tcp_alarm_by(tcp, p->silent);
			return;
		}
		base_list_remove(n);
		nm_tcp_want_send(tcp, p);
	}
}

/* A call that only listens, and no descriptor for it, here or there: later. */
static bool can_wait(const struct tcp_peer *p, int error)
{
	return (error == -EMFILE || error == -ENFILE || error == -EBUSY) &&
	       p->pkt == NULL && base_list_is_empty(&p->sending);
}

/* Begin with all the time there is. */
static void begin(struct tcp_peer *p)
{
	p->began = nm_tcp_now();
	p->give_up = p->began + timeout_ms();
	p->lates = 0;
}

/*
 * Call, at the next address if one cannot be called. After the last: once more
 * a little later, if somebody may have been busy, and if this round began
 * before it was time to give up: what has come to nothing just then, or while
 * we were stopped, was not the last.
 */
static void call_on(struct tcp *tcp, struct tcp_peer *p, int error)
{
	struct tcp_text t;

	if (p->retry != 0)
		p->began = nm_tcp_now();
	p->retry = 0;
	for (; p->next_addr < p->naddrs; p->next_addr++) {
		error = try_call(tcp, p);
		if (error == 0)
			return;
	}
	if (can_wait(p, error)) {
		base_list_remove(&p->on_call);
		base_list_remove(&p->on_send);
		p->next_addr = 0;
		p->was_busy = false;
		nm_tcp_await(tcp, p);
		return;
	}
	if (p->was_busy && p->began < p->give_up) {
		p->next_addr = p->busy_addr;
		p->retry = nm_tcp_now() + RETRY_MS;
		nm_tcp_alarm_by(tcp, p->retry);
		return;
	}
	base_warn("nmad", "tcp: cannot connect to rank %d at %s%s: %s",
		  p->link->rank, nm_tcp_text(&p->addr[p->naddrs - 1], &t),
		  p->naddrs > 1 ? " or others" : "", strerror(-error));
	nm_tcp_dead(tcp, p, error);
}

/* Who is called by the peer instead never asks where it is. */
static int find(struct tcp *tcp, struct tcp_peer *p)
{
	unsigned char addr[NM_ADDR_MAX];
	size_t len;
	int rc = nm_rail_address(p->link, addr, &len);

	p->asks = rc == -EAGAIN;
	return rc < 0 ? rc : nm_tcp_know(tcp, p, addr, len);
}

void nm_tcp_call(struct tcp *tcp, struct tcp_peer *p)
{
	int rc = 0;

	if (p->state != TCP_COLD || p->retry != 0)
		return;
	if (p->naddrs == 0)
		rc = find(tcp, p);
	if (rc == -EAGAIN)
		return; /* the next poll calls */
	if (rc < 0) {
		base_warn("nmad", "tcp: rank %d cannot be reached",
			  p->link->rank);
		nm_tcp_dead(tcp, p, rc);
		return;
	}
	begin(p);
	base_list_remove(&p->on_call);
	base_list_push_back(&tcp->calling, &p->on_call);
	call_on(tcp, p, 0);
}

/*
 * Our call has come to nothing, so the next address: a peer's may exist here,
 * too, and lead to whoever listens at it. Who was cut off in his hello
 * (`was_busy`) may have called the peer, which was not ready or had too many
 * callers; after BUSY it surely is the peer. If that came after all the time
 * that a hello may take, we were away, or the peer was, and there is more time.
 */
static void call_failed(struct tcp *tcp, struct tcp_peer *p, int error,
			bool was_busy)
{
	nm_tcp_hand_drop(tcp, &p->hand);
	p->state = TCP_COLD;
	if (was_busy && nm_tcp_now() >= p->called + timeout_ms() &&
	    p->lates++ < LATES)
		p->give_up = deadline();
	if (error == -EBUSY || (was_busy && !p->was_busy)) {
		p->was_busy = true;
		p->busy_addr = p->next_addr;
	} else if (error == -ECONNREFUSED && p->next_addr == p->busy_addr) {
		p->was_busy = false; /* nobody listens there any more */
	}
	p->next_addr = error == -EBUSY ? p->naddrs : p->next_addr + 1;
	call_on(tcp, p, error);
}

/* --- the hello --- */

BASE_COLD static void complain(struct tcp *tcp, const char *what)
{
	if (tcp->complaints++ >= COMPLAINTS)
		return;
	base_warn("nmad", "tcp: closed a connection from a stranger: %s%s",
		  what,
		  tcp->complaints == COMPLAINTS ? " (no more of these lines)"
						: "");
}

/* 48 bytes always fit into a socket that has sent next to nothing. */
static int say(struct tcp_hand *h, const struct tcp_hello *hello)
{
	unsigned char text[TCP_HELLO];
	ssize_t n;

	nm_tcp_hello_put(text, hello);
	n = send(h->sock.fd, text, sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(text))
		return 0;
	return n < 0 ? -errno : -EIO;
}

static uint64_t proof(struct tcp *tcp, struct tcp_hand *h, unsigned kind,
		      unsigned accept)
{
	return nm_tcp_hello_proof(tcp->info->key, &h->g, kind, accept);
}

/* The caller's part. 0: go on reading; 1: over; -errno: it came to nothing. */
static int caller_heard(struct tcp *tcp, struct tcp_hand *h,
			const struct tcp_hello *in)
{
	struct tcp_peer *p = h->peer;
	struct tcp_hello out = { .from = h->g.caller, .to = h->g.callee };

	if (in->kind == TCP_BUSY && h->state == TCP_ASK &&
	    in->from == h->g.callee)
		return nm_tcp_busy_is_true(tcp, in) ? -EBUSY : -EACCES;
	if (in->kind != h->state || in->from != h->g.callee ||
	    in->to != h->g.caller)
		return -EPROTO;
	if (in->kind == TCP_ASK)
		memcpy(h->g.callee_nonce, in->nonce, TCP_NONCE);
	if (in->proof != proof(tcp, h, in->kind, in->accept))
		return -EACCES;
	if (in->kind == TCP_ASK) {
		out.kind = TCP_PROOF;
		out.proof = proof(tcp, h, TCP_PROOF, 0);
		h->state = TCP_VERDICT;
		return say(h, &out);
	}
	if (in->accept) {
		become_open(tcp, p, h);
	} else {
		nm_tcp_hand_drop(tcp, h);
		p->state = TCP_YIELDED;
		p->give_up = deadline();
	}
	return 1;
}

static bool accepts(struct tcp *tcp, const struct tcp_peer *p)
{
	switch (p->state) {
	case TCP_COLD:
	case TCP_YIELDED:
		return true;
	case TCP_CALLING:
		return p->link->rank < tcp->info->rank;
	default:
		return false;
	}
}

static int callee_heard(struct tcp *tcp, struct tcp_hand *h,
			const struct tcp_hello *in)
{
	uint32_t me = (uint32_t)tcp->info->rank;
	struct tcp_hello out = { .from = me, .to = in->from };
	struct tcp_peer *p;
	int rc;

	if (in->kind != h->state || in->to != me || in->from == me ||
	    in->from >= (uint32_t)tcp->info->size ||
	    (in->kind == TCP_PROOF && in->from != h->g.caller))
		return -EPROTO;
	if (in->kind == TCP_CALL) {
		h->g.caller = in->from;
		h->g.callee = me;
		memcpy(h->g.caller_nonce, in->nonce, TCP_NONCE);
		random_nonce(h->g.callee_nonce);
		memcpy(out.nonce, h->g.callee_nonce, TCP_NONCE);
		out.kind = TCP_ASK;
		out.proof = proof(tcp, h, TCP_ASK, 0);
		h->state = TCP_PROOF;
		return say(h, &out);
	}
	if (in->proof != proof(tcp, h, TCP_PROOF, 0))
		return -EACCES;
	p = nm_tcp_peer(tcp, in->from);
	out.kind = TCP_VERDICT;
	out.accept = accepts(tcp, p);
	out.proof = proof(tcp, h, TCP_VERDICT, out.accept);
	rc = say(h, &out);
	if (rc < 0)
		return rc;
	if (out.accept)
		become_open(tcp, p, h);
	else
		nm_tcp_hand_drop(tcp, h);
	return 1;
}

/* Read one message. 1: it is there; 0: not yet; -errno. */
static int hear(struct tcp_hand *h)
{
	ssize_t n;

	while (h->have < TCP_HELLO) {
		n = recv(h->sock.fd, h->in + h->have, TCP_HELLO - h->have,
			 MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return -ECONNRESET;
		h->have += (unsigned)n;
	}
	h->have = 0;
	return 1;
}

/* `why`: its message is no message; NULL: `error` says it. */
static void hand_failed(struct tcp *tcp, struct tcp_hand *h, int error,
			const char *why)
{
	struct tcp_peer *p = h->peer;
	struct tcp_text t;

	if (error == -EACCES)
		why = "does not know this job's key";
	else if (error == -EPROTO && why == NULL)
		why = "says what makes no sense here";
	if (p != NULL) {
		if (why != NULL)
			base_warn("nmad",
				  "tcp: who answers for rank %d at %s: %s",
				  p->link->rank,
				  nm_tcp_text(&p->addr[p->next_addr], &t), why);
		call_failed(tcp, p, error, why == NULL && h->state != TCP_CALL);
	} else {
		if (why != NULL)
			complain(tcp, why);
		else if (h->have > 0) /* else: of two calls the one too many */
			complain(tcp, "went away in the middle of its hello");
		nm_tcp_hand_drop(tcp, h);
	}
}

void nm_tcp_hand_go_on(struct tcp *tcp, struct tcp_hand *h)
{
	struct tcp_hello hello = { .kind = TCP_CALL };
	const char *why;
	int rc;

	if (h->peer != NULL && h->state == TCP_CALL) {
		hello.from = h->g.caller;
		hello.to = h->g.callee;
		memcpy(hello.nonce, h->g.caller_nonce, TCP_NONCE);
		rc = say(h, &hello);
		if (rc == -EAGAIN)
			return;
		if (rc < 0) {
			hand_failed(tcp, h, rc, NULL);
			return;
		}
		h->state = TCP_ASK;
	}
	for (;;) {
		rc = hear(h);
		if (rc == 0)
			return;
		why = NULL;
		if (rc > 0) {
			why = nm_tcp_hello_get(h->in, &hello);
			if (why != NULL)
				rc = -EPROTO;
			else if (h->peer != NULL)
				rc = caller_heard(tcp, h, &hello);
			else
				rc = callee_heard(tcp, h, &hello);
		}
		if (rc < 0)
			hand_failed(tcp, h, rc, why);
		if (rc != 0)
			return;
	}
}

/* --- being called --- */

/* A free entry; if there is none, the oldest caller makes room. */
static struct tcp_hand *free_hand(struct tcp *tcp)
{
	struct tcp_hand *h, *oldest = &tcp->hands[0];

	for (unsigned i = 0; i < TCP_HANDS; i++) {
		h = &tcp->hands[i];
		if (h->sock.fd < 0)
			return h;
		if (h->deadline < oldest->deadline)
			oldest = h;
	}
	complain(tcp, "too many at once");
	nm_tcp_hand_drop(tcp, oldest);
	return oldest;
}

static void listen_for(struct tcp *tcp, uint32_t events)
{
	struct epoll_event ev = { .events = events,
				  .data.ptr = &tcp->listener };

	epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, tcp->listener.fd, &ev);
}

/*
 * Without the spare who calls stays in the kernel's queue, and the listener
 * readable: it is not listened to for a while, or nobody who waits for it would
 * ever sleep.
 */
static void accept_failed(struct tcp *tcp, int error)
{
	tcp->lacks = 0;
	if (error != EMFILE && error != ENFILE && error != ENOBUFS &&
	    error != ENOMEM)
		return;
	if (nm_tcp_turn_away(tcp, error))
		return;
	tcp->lacks = error;
	listen_for(tcp, 0);
	tcp->deaf_until = nm_tcp_now() + DEAF_MS;
	nm_tcp_alarm_by(tcp, tcp->deaf_until);
}

static void listen_again(struct tcp *tcp, uint64_t now)
{
	if (tcp->deaf_until == 0)
		return;
	if (now < tcp->deaf_until) {
		nm_tcp_alarm_by(tcp, tcp->deaf_until);
		return;
	}
	tcp->deaf_until = 0;
	if (tcp->spare < 0 && nm_tcp_spare_make(tcp) == 0)
		tcp->lacks = 0;
	listen_for(tcp, EPOLLIN);
}

void nm_tcp_accept(struct tcp *tcp)
{
	for (unsigned i = 0; i < TCP_HANDS; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		int fd = accept4(tcp->listener.fd, (void *)&from, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct tcp_hand *h;

		if (fd < 0) {
			accept_failed(tcp, errno);
			return;
		}
		tune(fd, &from);
		h = free_hand(tcp);
		h->state = TCP_CALL;
		h->have = 0;
		h->deadline = deadline();
		nm_tcp_alarm_by(tcp, h->deadline);
		tcp->nhands++;
		if (watch(tcp, EPOLL_CTL_ADD, fd, &h->sock) < 0)
			nm_tcp_hand_drop(tcp, h);
	}
}

/* Somebody holds the connection, and his host answers. */
static bool is_taken(const struct tcp_hand *h)
{
	return h->state != TCP_CALL && nm_tcp_alive_answers(h->sock.fd);
}

/*
 * The call has not succeeded in time. Where somebody has taken it and holds the
 * connection, he may be stopped, or compute without a look at the network: his
 * death would end the connection. Who was to call instead, and has not, may be
 * as well: he is called again. Where nobody takes the call it is the next
 * address's turn, or whoever was busy's; if there is neither the peer is lost.
 *
 * Who cannot take calls himself, nor say so, waits no longer: he may be who the
 * peer waits for, and so round, each with a call that nobody hears.
 */
static void call_is_late(struct tcp *tcp, struct tcp_peer *p)
{
	if (p->state == TCP_YIELDED) {
		p->state = TCP_COLD;
		begin(p);
		call_on(tcp, p, 0);
		return;
	}
	if (tcp->lacks != 0) {
		base_warn("nmad",
			  "tcp: rank %d says nothing, and no call can be taken "
			  "here: %s",
			  p->link->rank, strerror(tcp->lacks));
		nm_tcp_dead(tcp, p, -tcp->lacks);
		return;
	}
	if (is_taken(&p->hand)) {
		base_warn("nmad",
			  "tcp: rank %d has taken our call and says nothing "
			  "yet; waiting for it",
			  p->link->rank);
		p->hand.deadline = deadline();
		return;
	}
	if (p->next_addr + 1 < p->naddrs || p->was_busy) {
		if (!p->was_busy)
			p->give_up = deadline();
		call_failed(tcp, p, -ETIMEDOUT, false);
		return;
	}
	base_warn("nmad", "tcp: rank %d does not answer", p->link->rank);
	nm_tcp_dead(tcp, p, -ETIMEDOUT);
}

/* When something is to be done for it. */
static uint64_t due(const struct tcp_peer *p)
{
	if (p->retry != 0)
		return p->retry;
	return p->state == TCP_CALLING ? p->hand.deadline : p->give_up;
}

void nm_tcp_deadlines(struct tcp *tcp, uint64_t now)
{
	struct base_list batch;
	struct base_link *n;

	if (tcp->alarm_at == 0 || now < tcp->alarm_at)
		return;
	nm_tcp_alarm_clear(tcp);
	listen_again(tcp, now);
	call_silents(tcp, now);
	nm_tcp_alive_look(tcp, now);
	for (unsigned i = 0; i < TCP_HANDS; i++) {
		struct tcp_hand *h = &tcp->hands[i];

		if (h->sock.fd < 0)
			continue;
		if (now < h->deadline) {
			nm_tcp_alarm_by(tcp, h->deadline);
			continue;
		}
		complain(tcp, "said nothing in time");
		nm_tcp_hand_drop(tcp, h);
	}
	base_list_init(&batch);
	base_list_splice_back(&batch, &tcp->calling);
	while ((n = base_list_take_front(&batch)) != NULL) {
		struct tcp_peer *p = container_of(n, struct tcp_peer, on_call);

		base_list_push_back(&tcp->calling, n);
		if (now >= due(p)) {
			if (p->retry != 0)
				call_on(tcp, p, 0);
			else
				call_is_late(tcp, p);
		}
		if (base_link_is_on(&p->on_call))
			nm_tcp_alarm_by(tcp, due(p));
	}
}
