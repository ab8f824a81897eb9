/*
 * drivers/tcp: at which addresses a process listens and calls. Namespaces make
 * hosts that have some addresses only; nothing leaves this one.
 */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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
	fd = tcp->peers[1 - j->rank].sock.fd;
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
	meet_at("::1%lo", "::1");
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
	setenv("NMAD_TCP_IFACE", "any", 1);
	new_host(true);
	meet_at(NULL, "::ffff:127.0.0.1");
	new_host(false);
	meet_at(NULL, "::1");
	unsetenv("NMAD_TCP_IFACE");
}

/* --- what is refused --- */

static struct nm_boot_info info = { .client = "test",
				    .size = 1,
				    .local_size = 1 };

/* The message, which has to hold `why`. */
static void says(int fd, const char *why)
{
	static char text[4096];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	CHECK(n >= 0);
	text[n] = 0;
	if (strstr(text, why) == NULL)
		check_fail(__FILE__, __LINE__, "no \"%s\" in: %s", why, text);
}

static void refuses(const char *spec, const char *why)
{
	struct nm_rail rail = { .fd = -1 };
	int text = memfd_create("stderr", MFD_CLOEXEC);
	int old = fcntl(2, F_DUPFD_CLOEXEC, 0);
	int before = dup(0), after;

	close(before);
	dup2(text, 2);
	CHECK_INT(nm_driver_tcp.open(&rail, &info, spec), -EADDRNOTAVAIL);
	dup2(old, 2);
	after = dup(0);
	close(after);
	CHECK_INT(after, before);
	says(text, why);
	close(text);
	close(old);
}

TEST(what_is_no_interface_or_address_of_this_host_is_refused)
{
	static const char none[] = "is no interface or address of this host; "
				   "there are";

	new_host(true);
	refuses("", none);
	refuses("eth0", none);
	refuses("lo:2", none);
	refuses("10.0.0.2", none);
	refuses("127.0.0.1 ", none);
	refuses("fe80::1", none);
	refuses("::ffff:10.0.0.2", none);
	refuses("%lo", none);
	refuses("::1%", "is of another interface");
	refuses("::1%eth0", "is of another interface");
	refuses("::1%lo%lo", "is of another interface");
	new_host(false);
	refuses("127.0.0.1", none);
	CHECK_INT(unshare(CLONE_NEWNET), 0);
	refuses("lo", "is down; there are none");
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

/* So many of each kind, in turns, on one interface. */
static void offer(struct tcp_addr *to, int n4, int n6, unsigned flags)
{
	struct sockaddr_in v4[20];
	struct sockaddr_in6 v6[20];
	struct ifaddrs all[40];
	int n = 0;

	for (int i = 0; i < 20; i++) {
		v4[i] = (struct sockaddr_in){ .sin_family = AF_INET };
		v4[i].sin_addr.s_addr = htonl(0x0a000000u + (unsigned)i);
		v6[i] = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
		v6[i].sin6_addr.s6_addr[0] = 0xfd;
		v6[i].sin6_addr.s6_addr[15] = (unsigned char)i;
		if (i < n6)
			all[n++].ifa_addr = (void *)&v6[i];
		if (i < n4)
			all[n++].ifa_addr = (void *)&v4[i];
	}
	for (int i = 0; i < n; i++) {
		all[i].ifa_flags = flags;
		all[i].ifa_next = i + 1 < n ? &all[i + 1] : NULL;
	}
	memset(to, 0, sizeof(*to));
	nm_tcp_fill_all(to, n > 0 ? all : NULL);
}

static void offers(int n4, int n6, unsigned want4, unsigned want6)
{
	struct tcp_addr a;

	offer(&a, n4, n6, IFF_UP);
	CHECK_INT(a.naddrs, want4 + want6);
	for (unsigned i = 0; i < a.naddrs; i++) {
		bool v4 = i < want4;

		CHECK_INT(!!IN6_IS_ADDR_V4MAPPED(&a.addr[i]), v4);
		CHECK_INT(a.addr[i].s6_addr[15], v4 ? i : i - want4);
	}
}

TEST(many_addresses_of_one_kind_do_not_keep_out_the_other)
{
	enum { HALF = TCP_ADDRS / 2 };
	struct tcp_addr a;

	offers(0, 0, 0, 0);
	offers(3, 2, 3, 2);
	offers(20, 0, TCP_ADDRS, 0);
	offers(0, 20, 0, TCP_ADDRS);
	offers(20, 2, TCP_ADDRS - 2, 2);
	offers(2, 20, 2, TCP_ADDRS - 2);
	offers(20, 20, HALF, HALF);
	offer(&a, 3, 3, 0);
	CHECK_INT(a.naddrs, 0);
	offer(&a, 3, 3, IFF_UP | IFF_LOOPBACK);
	CHECK_INT(a.naddrs, 0);
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

/* --- in which order --- */

/* Our addresses, and the bits of their networks. */
static void have(struct tcp *mine, const char *text, int bits)
{
	unsigned i = mine->mine.naddrs++;

	mine->mine.addr[i] = address(text);
	mine->net[i] = (unsigned char)bits;
}

static void orders(struct tcp *mine, const char *const *theirs,
		   const char *const *want)
{
	struct tcp_addr a = { .version = TCP_ADDR_VERSION, .host = "another" };
	struct tcp_peer p;
	struct in6_addr w;

	for (; theirs[a.naddrs] != NULL; a.naddrs++)
		a.addr[a.naddrs] = address(theirs[a.naddrs]);
	CHECK_INT(know(mine, &p, &a), 0);
	CHECK_INT(p.naddrs, a.naddrs);
	for (unsigned i = 0; i < p.naddrs; i++) {
		w = address(want[i]);
		CHECK(IN6_ARE_ADDR_EQUAL(&p.addr[i], &w));
	}
}

TEST(addresses_of_our_networks_are_called_first_and_our_own_last)
{
	static const char *const theirs[] = {
		"::ffff:172.17.0.1", "::ffff:192.168.9.2",
		"::ffff:10.1.129.9", "::ffff:10.1.127.9",
		"fd00:0:0:2::1",     "fd00:0:0:1::7",
		"fd00:0:0:1::1",     NULL,
	};
	static const char *const sorted[] = {
		"::ffff:10.1.129.9", "fd00:0:0:1::7", "::ffff:192.168.9.2",
		"::ffff:10.1.127.9", "fd00:0:0:2::1", "::ffff:172.17.0.1",
		"fd00:0:0:1::1",
	};
	struct tcp mine = { .named = false };

	orders(&mine, theirs, theirs);
	have(&mine, "::ffff:172.17.0.1", 96 + 16);
	have(&mine, "::ffff:10.1.130.1", 96 + 17);
	have(&mine, "fd00:0:0:1::1", 64);
	orders(&mine, theirs, sorted);
}

TEST(a_network_of_all_addresses_is_none)
{
	static const char *const theirs[] = { "fd00::2", "::ffff:10.0.0.2",
					      NULL };
	struct tcp mine = { .named = false };

	have(&mine, "::ffff:11.0.0.1", 96);
	have(&mine, "fe00::1", 0);
	orders(&mine, theirs, theirs);
}

TEST(the_network_of_an_address_is_as_large_as_the_kernel_says)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET }, mask4 = v4;
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 }, mask6 = v6;
	struct ifaddrs all[2] = {
		{ .ifa_addr = (void *)&v4,
		  .ifa_netmask = (void *)&mask4,
		  .ifa_flags = IFF_UP,
		  .ifa_next = &all[1] },
		{ .ifa_addr = (void *)&v6,
		  .ifa_netmask = (void *)&mask6,
		  .ifa_flags = IFF_UP },
	};
	struct tcp tcp = { .named = false };

	CHECK_INT(inet_pton(AF_INET, "10.1.130.1", &v4.sin_addr), 1);
	CHECK_INT(inet_pton(AF_INET, "255.255.128.0", &mask4.sin_addr), 1);
	v6.sin6_addr = address("fd00::1");
	mask6.sin6_addr = address("ffff:ffff:ffff:fff0::");
	nm_tcp_fill_all(&tcp.mine, all);
	nm_tcp_fill_nets(&tcp, all);
	CHECK_INT(tcp.mine.naddrs, 2);
	CHECK_INT(tcp.net[0], 96 + 17);
	CHECK_INT(tcp.net[1], 60);
	memset(&mask6.sin6_addr, 0xff, sizeof(mask6.sin6_addr));
	all[0].ifa_netmask = NULL;
	nm_tcp_fill_nets(&tcp, all);
	CHECK_INT(tcp.net[0], 0);
	CHECK_INT(tcp.net[1], 128);
}
