/*
 * drivers/tcp: at which addresses a process listens and calls. Namespaces make
 * hosts that have some addresses only; nothing leaves this one.
 */
#include "job.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "../../../nmad/drivers/tcp/tcp.h"

extern const struct nm_driver nm_driver_tcp;

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

static struct in6_addr address(const char *text)
{
	struct in6_addr a;

	CHECK_INT(inet_pton(AF_INET6, text, &a), 1);
	return a;
}

static bool is_at(const struct sockaddr_storage *s, const struct in6_addr *a)
{
	const struct sockaddr_in *v4 = (const void *)s;
	const struct sockaddr_in6 *v6 = (const void *)s;

	if (s->ss_family == AF_INET6)
		return memcmp(&v6->sin6_addr, a, sizeof(*a)) == 0;
	return s->ss_family == AF_INET && IN6_IS_ADDR_V4MAPPED(a) &&
	       memcmp(&v4->sin_addr, &a->s6_addr[12], 4) == 0;
}

/* Both ends of the one connection have this address. */
static void meet_body(struct job *j)
{
	const struct tcp *tcp = j->rail.drv;
	struct sockaddr_storage s;
	socklen_t len = sizeof(s);
	int fd;

	j->recv = ignore;
	job_send(j, 1 - j->rank, 0, 1, 100);
	while (j->ngot < 1 || !job_idle(j))
		job_progress(j);
	fd = tcp->peers[1 - j->rank]->sock.fd;
	JOB_CHECK(j, getsockname(fd, (void *)&s, &len) == 0);
	JOB_CHECK(j, is_at(&s, j->arg));
	len = sizeof(s);
	JOB_CHECK(j, getpeername(fd, (void *)&s, &len) == 0);
	JOB_CHECK(j, is_at(&s, j->arg));
}

static void meet_at(const char *spec, const char *where)
{
	struct in6_addr a = address(where);

	job_spec = spec;
	job_run(&nm_driver_tcp, 2, meet_body, &a);
	job_spec = NULL;
}

/* --- a host of our own for each test --- */

static void set(int fd, unsigned long what, const char *name, const char *ipv4)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct ifreq r = { .ifr_flags = IFF_UP };

	strncpy(r.ifr_name, name, sizeof(r.ifr_name) - 1);
	if (ipv4 != NULL) {
		CHECK_INT(inet_pton(AF_INET, ipv4, &in.sin_addr), 1);
		memcpy(&r.ifr_addr, &in, sizeof(in));
	}
	CHECK_INT(ioctl(fd, what, &r), 0);
}

/*
 * It has a loopback only, with 127.0.0.1 and ::1, and on that 10.0.0.1 as
 * another interface; or ::1 alone.
 */
static void new_host(bool ipv4)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd, rc;

	if (unshare(CLONE_NEWNET) < 0)
		check_skip("no network namespace can be made here");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	set(fd, SIOCSIFFLAGS, "lo", NULL);
	if (ipv4)
		set(fd, SIOCSIFADDR, "lo:1", "10.0.0.1");
	else
		set(fd, SIOCSIFADDR, "lo", "0.0.0.0");
	close(fd);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = fd < 0 ? -1 : bind(fd, (void *)&in, sizeof(in));
	close(fd);
	if (rc < 0)
		check_skip("this kernel has no IPv6");
}

TEST(an_interface_stands_for_its_address_of_ipv4)
{
	new_host(true);
	meet_at("lo", "::ffff:127.0.0.1");
	meet_at("lo:1", "::ffff:10.0.0.1");
}

TEST(an_interface_without_ipv4_stands_for_its_address_of_ipv6)
{
	new_host(false);
	meet_at("lo", "::1");
}

TEST(an_address_is_listened_at_and_called_from)
{
	new_host(true);
	meet_at("10.0.0.1", "::ffff:10.0.0.1");
	meet_at("::1", "::1");
}

TEST(a_job_of_one_host_meets_at_its_loopback)
{
	new_host(true);
	meet_at(NULL, "::ffff:127.0.0.1");
	new_host(false);
	meet_at(NULL, "::1");
}

TEST(where_all_addresses_are_listened_at_it_is_one_of_them)
{
	setenv("NMAD_TCP_LISTEN", "any", 1);
	new_host(true);
	meet_at(NULL, "::ffff:127.0.0.1");
	new_host(false);
	meet_at(NULL, "::1");
	unsetenv("NMAD_TCP_LISTEN");
}

/* --- what is refused --- */

static struct nm_boot_info info = { .client = "test",
				    .size = 1,
				    .local_size = 1 };

static void refuses(const char *spec)
{
	struct nm_rail rail = { .fd = -1 };
	int before = dup(0), after;

	close(before);
	CHECK_INT(nm_driver_tcp.open(&rail, &info, spec), -EADDRNOTAVAIL);
	after = dup(0);
	close(after);
	CHECK_INT(after, before);
}

TEST(what_is_no_interface_or_address_of_this_host_is_refused)
{
	new_host(true);
	refuses("");
	refuses("eth0");
	refuses("lo:2");
	refuses("10.0.0.2");
	refuses("127.0.0.1 ");
	refuses("fe80::1");
	refuses("::ffff:10.0.0.2");
	new_host(false);
	refuses("127.0.0.1");
}

static int know(struct tcp *mine, struct tcp_peer *p, const struct tcp_addr *a)
{
	static struct nm_link link = { .rank = 1 };

	memset(p, 0, sizeof(*p));
	p->link = &link;
	return nm_tcp_know(mine, p, a, sizeof(*a));
}

TEST(where_a_peer_can_be_called_follows_from_what_both_have)
{
	static const char v4[] = "::ffff:10.0.0.1", v6[] = "fd00::1";
	struct tcp mine = { .mine = { .version = TCP_ADDR_VERSION } };
	struct tcp_addr a = { .version = TCP_ADDR_VERSION,
			      .host = "another",
			      .port = 7 };
	struct tcp_peer p;

	mine.mine.addr[0] = address(v4);
	/* It has none that leaves its host. */
	a.here = address("::1");
	CHECK_INT(know(&mine, &p, &a), -EHOSTUNREACH);
	/* Which is ours, too. */
	memcpy(mine.mine.host, a.host, sizeof(a.host));
	CHECK_INT(know(&mine, &p, &a), 0);
	CHECK(p.naddrs == 1 && p.port == 7);
	CHECK(memcmp(&p.addr[0], &a.here, sizeof(a.here)) == 0);
	/* All that it has, or those that can be called from ours. */
	a.host[0] = 'x';
	a.naddrs = 2;
	a.addr[0] = address(v6);
	a.addr[1] = address(v4);
	CHECK_INT(know(&mine, &p, &a), 0);
	CHECK_INT(p.naddrs, 2);
	mine.named = true;
	CHECK_INT(know(&mine, &p, &a), 0);
	CHECK_INT(p.naddrs, 1);
	CHECK(memcmp(&p.addr[0], &a.addr[1], sizeof(a.addr[1])) == 0);
	/* Of the other kind only. */
	a.naddrs = 1;
	CHECK_INT(know(&mine, &p, &a), -EHOSTUNREACH);
}

TEST(a_peers_address_of_nonsense_is_refused)
{
	struct tcp mine = { .named = false };
	struct tcp_addr a = { .version = TCP_ADDR_VERSION, .host = "another" };
	struct tcp_peer p;

	a.naddrs = TCP_ADDRS + 1;
	CHECK_INT(know(&mine, &p, &a), -EHOSTUNREACH);
	a.naddrs = 1;
	a.version = TCP_ADDR_VERSION + 1;
	CHECK_INT(know(&mine, &p, &a), -EHOSTUNREACH);
	a.version = TCP_ADDR_VERSION;
	CHECK_INT(nm_tcp_know(&mine, &p, &a, sizeof(a) - 1), -EHOSTUNREACH);
	CHECK_INT(know(&mine, &p, &a), 0);
}
