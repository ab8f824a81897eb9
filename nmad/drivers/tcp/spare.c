/*
 * The spare descriptor. A call stays unheard for want of one, and nobody but us
 * could tell the caller, who would wait as for one that computes. So we keep a
 * file in reserve, accept in its place, say BUSY and end the connection; what
 * is left of that is the next spare.
 *
 * BUSY is said before anything is heard, so nothing of the caller's is in its
 * proof. Who has an old one can make those wait who only listen, no more.
 */
#include "tcp.h"

#include <marcel/errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/diag.h>

enum { ANYBODY = 0xffffffff };

int nm_tcp_spare_make(struct tcp *tcp)
{
	tcp->spare = eventfd(0, EFD_CLOEXEC);
	return tcp->spare < 0 ? -errno : 0;
}

static uint64_t proof(const struct tcp *tcp, const struct tcp_hello *busy)
{
	struct tcp_greeting g = { .caller = ANYBODY, .callee = busy->from };

	memcpy(g.callee_nonce, busy->nonce, TCP_NONCE);
	return nm_tcp_hello_proof(tcp->info->key, &g, TCP_BUSY, 0);
}

bool nm_tcp_busy_is_true(const struct tcp *tcp, const struct tcp_hello *busy)
{
	return busy->to == ANYBODY && busy->proof == proof(tcp, busy);
}

/*
 * The other direction stays open: what the caller sends would be answered by a
 * reset, which could overtake what we have said.
 */
static void say_busy(const struct tcp *tcp, int fd)
{
	struct tcp_hello busy = { .kind = TCP_BUSY,
				  .from = (uint32_t)tcp->info->rank,
				  .to = ANYBODY };
	unsigned char text[TCP_HELLO];

	base_check(getrandom(busy.nonce, TCP_NONCE, 0) == TCP_NONCE);
	busy.proof = proof(tcp, &busy);
	nm_tcp_hello_put(text, &busy);
	send(fd, text, sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd, SHUT_WR);
}

/*
 * No number is in tcp->spare while it is not ours: a child of fork would close
 * whatever has got it.
 */
bool nm_tcp_turn_away(struct tcp *tcp, int error)
{
	int fd = tcp->spare;

	if (fd < 0)
		return false;
	tcp->spare = -1;
	close(fd);
	fd = accept4(tcp->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0) {
		bool nobody = errno == EAGAIN;

		nm_tcp_spare_make(tcp);
		return nobody;
	}
	tcp->spare = fd;
	if (!tcp->was_short) /* said before the caller can end the job */
		base_warn("nmad", "tcp: a call cannot be taken: %s",
			  strerror(error));
	tcp->was_short = true;
	say_busy(tcp, fd);
	return true;
}
