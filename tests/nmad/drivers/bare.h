/*
 * Bare sockets at this host's addresses, for tests of drivers/tcp in which a
 * peer has addresses that lead elsewhere.
 */
#ifndef TESTS_NMAD_DRIVERS_BARE_H
#define TESTS_NMAD_DRIVERS_BARE_H

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "../../../nmad/drivers/tcp/tcp.h"
#include "job.h"

/* Beside the one at which ranks listen. */
static const struct in6_addr bare_elsewhere = {
	.s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 2 }
};

static inline int bare_dial(struct job *j, in_addr_t host, in_port_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = port,
				  .sin_addr.s_addr = htonl(host) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	JOB_CHECK(j, connect(fd, (void *)&to, sizeof(to)) == 0);
	return fd;
}

static inline int bare_dial_rank(struct job *j, int rank)
{
	struct tcp_addr a;

	memcpy(&a, job_addr(rank), sizeof(a));
	return bare_dial(j, INADDR_LOOPBACK, a.port);
}

/* At the peer's port, elsewhere. */
static inline int bare_listen(struct job *j, const struct tcp_peer *p)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = p->port,
				  .sin_addr.s_addr =
					  htonl(INADDR_LOOPBACK + 1) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	JOB_CHECK(j, bind(fd, (void *)&at, sizeof(at)) == 0);
	JOB_CHECK(j, listen(fd, 0) == 0);
	return fd;
}

/* As one may wait in that one's queue already, the kernel drops who comes. */
static inline int bare_fill_queue(struct job *j, const struct tcp_peer *p)
{
	return bare_dial(j, INADDR_LOOPBACK + 1, p->port);
}

/* The rank is used, as by who only listens, and where it is is known. */
static inline struct tcp_peer *bare_peer(struct job *j, int rank)
{
	struct tcp *tcp = j->rail.drv;
	struct tcp_peer *p = &tcp->peers[rank];

	JOB_CHECK(j, j->driver->connect(&j->links[rank]) == 0);
	JOB_CHECK(j, nm_tcp_know(tcp, p, job_addr(rank),
				 sizeof(struct tcp_addr)) == 0);
	JOB_CHECK(j, p->naddrs == 1);
	return p;
}

#endif
