/*
 * Where we can be reached, and where a peer can.
 *
 *   tcp:NAME in NMAD_DRIVER   one address: NAME, or the first of the interface
 *                             NAME, IPv4 before IPv6. We listen there and call
 *                             from there. fe80::1%eth0: of that interface.
 *   else, NMAD_TCP_IFACE      likewise; or loopback, or any: all addresses of
 *                             this host; auto: loopback if all ranks share this
 *                             host, else any
 *
 * All addresses are kept as those of IPv6; of IPv4, as IPv6 maps it.
 */
#include "tcp.h"

#include <marcel/errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <base/diag.h>

static const struct in6_addr loopback4 = {
	.s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 }
};

/* --- sockets' addresses --- */

socklen_t nm_tcp_sockaddr(struct sockaddr_storage *to, const struct in6_addr *a,
			  in_port_t port, uint32_t scope)
{
	struct sockaddr_in *v4 = (void *)to;
	struct sockaddr_in6 *v6 = (void *)to;

	memset(to, 0, sizeof(*to));
	if (IN6_IS_ADDR_V4MAPPED(a)) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		memcpy(&v4->sin_addr, &a->s6_addr[12], sizeof(v4->sin_addr));
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = port;
	v6->sin6_addr = *a;
	v6->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(a) ? scope : 0;
	return sizeof(*v6);
}

/* 0, or -EAFNOSUPPORT. */
static int from_sockaddr(struct in6_addr *to, const struct sockaddr *from)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;

	if (from != NULL && from->sa_family == AF_INET6) {
		*to = v6->sin6_addr;
		return 0;
	}
	if (from == NULL || from->sa_family != AF_INET)
		return -EAFNOSUPPORT;
	*to = loopback4;
	memcpy(&to->s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
	return 0;
}

static bool is_loopback(const struct in6_addr *a)
{
	if (IN6_IS_ADDR_V4MAPPED(a))
		return a->s6_addr[12] == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(a);
}

bool nm_tcp_is_loopback(const struct sockaddr_storage *s)
{
	struct in6_addr a;

	return from_sockaddr(&a, (const void *)s) == 0 && is_loopback(&a);
}

const char *nm_tcp_text(const struct in6_addr *a, struct tcp_text *to)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(a);

	return inet_ntop(v4 ? AF_INET : AF_INET6,
			 v4 ? (const void *)&a->s6_addr[12] : a, to->text,
			 sizeof(to->text));
}

/* --- what this host has --- */

static void fill_host(struct tcp_addr *a)
{
	struct stat st;

	base_host_id(a->host);
	if (stat("/proc/self/ns/net", &st) == 0) {
		a->netns[0] = st.st_dev;
		a->netns[1] = st.st_ino;
	}
}

/* Up to `max` of one kind, of all interfaces. */
static void fill_kind(struct tcp_addr *a, const struct ifaddrs *all, bool v4,
		      unsigned max)
{
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		struct in6_addr in;

		if ((i->ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP ||
		    from_sockaddr(&in, i->ifa_addr) < 0 ||
		    IN6_IS_ADDR_LINKLOCAL(&in) ||
		    !!IN6_IS_ADDR_V4MAPPED(&in) != v4 || a->naddrs == max)
			continue;
		a->addr[a->naddrs++] = in;
	}
}

void nm_tcp_fill_all(struct tcp_addr *a, const struct ifaddrs *all)
{
	unsigned n6;

	fill_kind(a, all, false, TCP_ADDRS / 2);
	n6 = a->naddrs;
	a->naddrs = 0;
	fill_kind(a, all, true, TCP_ADDRS - n6);
	fill_kind(a, all, false, TCP_ADDRS);
}

/* How many bits of the address are its network's. */
static unsigned char net_bits(const struct ifaddrs *i)
{
	struct in6_addr mask;
	unsigned char bits = 0;

	if (i->ifa_netmask == NULL)
		return 0;
	/* Some masks say no family. */
	i->ifa_netmask->sa_family = i->ifa_addr->sa_family;
	if (from_sockaddr(&mask, i->ifa_netmask) < 0)
		return 0;
	if (i->ifa_addr->sa_family == AF_INET)
		memset(&mask, 0xff, 12);
	while (bits < 128 && (mask.s6_addr[bits / 8] << bits % 8 & 0x80) != 0)
		bits++;
	return bits;
}

void nm_tcp_fill_nets(struct tcp *tcp, const struct ifaddrs *all)
{
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		struct in6_addr in;

		if (from_sockaddr(&in, i->ifa_addr) < 0)
			continue;
		for (unsigned k = 0; k < tcp->mine.naddrs; k++)
			if (IN6_ARE_ADDR_EQUAL(&in, &tcp->mine.addr[k]))
				tcp->net[k] = net_bits(i);
	}
}

/* What is named: an interface, an address, or an address of an interface. */
struct named {
	const char *interface; /* or NULL */
	bool is_address;
	struct in6_addr address;
};

static void parse(struct named *to, const char *name, char *text, size_t size)
{
	char *at;

	snprintf(text, size, "%s", name);
	at = strchr(text, '%');
	if (at != NULL)
		*at++ = 0;
	to->address = loopback4;
	to->is_address =
		inet_pton(AF_INET, text, &to->address.s6_addr[12]) == 1 ||
		inet_pton(AF_INET6, text, &to->address) == 1;
	to->interface = to->is_address ? at : name;
}

/* Lower is better; negative: not what was named. */
static int rank_of(const struct ifaddrs *i, const struct in6_addr *in,
		   const struct named *named)
{
	if (!(i->ifa_flags & IFF_UP))
		return -1;
	if (named->interface != NULL &&
	    strcmp(i->ifa_name, named->interface) != 0)
		return -1;
	if (named->is_address)
		return memcmp(in, &named->address, sizeof(*in)) == 0 ? 0 : -1;
	if (IN6_IS_ADDR_V4MAPPED(in))
		return 0;
	return IN6_IS_ADDR_LINKLOCAL(in) ? 2 : 1;
}

/* Why it is not to be had. */
static const char *fault_of(const struct named *named, const char *name,
			    const struct ifaddrs *all)
{
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		bool up = i->ifa_flags & IFF_UP;
		struct in6_addr in;

		if (strcmp(i->ifa_name, name) == 0)
			return up ? "has no IP address" : "is down";
		if (named->is_address && from_sockaddr(&in, i->ifa_addr) == 0 &&
		    memcmp(&in, &named->address, sizeof(in)) == 0)
			return up ? "is of another interface"
				  : "is of an interface that is down";
	}
	return "is no interface or address of this host";
}

/* For rails that name nothing themselves. */
static const char *iface(void)
{
	return nm_tcp_options[TCP_OPT_IFACE].string;
}

static bool is_default(const char *name)
{
	return name == iface();
}

BASE_COLD static void complain(const struct named *named, const char *name,
			       const struct ifaddrs *all)
{
	char have[512];
	size_t n = 0;

	have[0] = 0;
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		struct in6_addr in;
		struct tcp_text t;

		if (from_sockaddr(&in, i->ifa_addr) == 0 &&
		    (i->ifa_flags & IFF_UP) && n < sizeof(have))
			n += (size_t)snprintf(have + n, sizeof(have) - n,
					      "%s %s (%s)", n > 0 ? "," : "",
					      i->ifa_name,
					      nm_tcp_text(&in, &t));
	}
	base_warn("nmad", "%s%s\" %s; there are%s",
		  is_default(name) ? "NMAD_TCP_IFACE: \""
				   : "NMAD_DRIVER: \"tcp:",
		  name, fault_of(named, name, all), n > 0 ? have : " none");
}

/* The one address that is named. 0, or -EADDRNOTAVAIL, explained. */
static int fill_named(struct tcp *tcp, struct tcp_addr *a, const char *name,
		      const struct ifaddrs *all)
{
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
	struct named named;
	int best = -1;

	parse(&named, name, text, sizeof(text));
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		struct in6_addr in;
		int rank;

		if (from_sockaddr(&in, i->ifa_addr) < 0)
			continue;
		rank = rank_of(i, &in, &named);
		if (rank < 0 || (best >= 0 && rank >= best))
			continue;
		best = rank;
		a->naddrs = 1;
		a->addr[0] = in;
		tcp->scope = if_nametoindex(i->ifa_name);
	}
	if (best < 0) {
		complain(&named, name, all);
		return -EADDRNOTAVAIL;
	}
	tcp->named = true;
	return 0;
}

/* --- listening --- */

/* A socket bound to this address, any port, or -errno. */
static int bound(const struct in6_addr *a, uint32_t scope)
{
	struct sockaddr_storage s;
	socklen_t len = nm_tcp_sockaddr(&s, a, 0, scope);
	int fd = socket(s.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);
	int both = 0, rc;

	if (fd < 0)
		return -errno;
	/* All addresses: those of IPv4, too. */
	if (s.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(a))
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
	if (bind(fd, (void *)&s, len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* The first of the two that this host has. */
static int bound_to_one_of(const struct in6_addr *a, const struct in6_addr *b,
			   const struct in6_addr **which)
{
	int fd = bound(a, 0);

	*which = a;
	if (fd >= 0)
		return fd;
	*which = b;
	return bound(b, 0);
}

static int bind_listener(struct tcp *tcp, struct tcp_addr *a, bool local)
{
	static const struct in6_addr all4 = { .s6_addr = { [10] = 0xff,
							   0xff } };
	const struct in6_addr *which;
	int fd;

	if (tcp->named)
		return bound(&a->addr[0], tcp->scope);
	fd = bound_to_one_of(&loopback4, &in6addr_loopback, &which);
	a->here = *which;
	if (local)
		return fd;
	if (fd >= 0)
		close(fd);
	return bound_to_one_of(&in6addr_any, &all4, &which);
}

static int fill(struct tcp *tcp, struct tcp_addr *a, const char *name,
		bool local)
{
	struct ifaddrs *all = NULL;
	int rc = 0;

	if (getifaddrs(&all) != 0)
		all = NULL;
	a->version = TCP_ADDR_VERSION;
	fill_host(a);
	if (name != NULL)
		rc = fill_named(tcp, a, name, all);
	else if (!local)
		nm_tcp_fill_all(a, all);
	nm_tcp_fill_nets(tcp, all);
	freeifaddrs(all);
	return rc;
}

/* So many may wait to be accepted. */
static int hear(struct tcp *tcp, struct tcp_addr *a, int backlog)
{
	struct epoll_event ev = { .events = EPOLLIN,
				  .data.ptr = &tcp->listener };
	struct sockaddr_storage s;
	socklen_t len = sizeof(s);
	int fd = tcp->listener.fd;

	if (listen(fd, backlog) < 0 || getsockname(fd, (void *)&s, &len) < 0 ||
	    epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	/* At the same place in both kinds. */
	a->port = ((struct sockaddr_in *)(void *)&s)->sin_port;
	return nm_tcp_spare_make(tcp);
}

int nm_tcp_listen(struct tcp *tcp, const char *name)
{
	struct tcp_addr *a = &tcp->mine;
	const struct nm_boot_info *info = tcp->info;
	bool local = false;
	int rc, fd;

	if (name == NULL) {
		name = iface();
		if (strcmp(name, "auto") == 0)
			local = info->local_size == info->size;
		else
			local = strcmp(name, "loopback") == 0;
		if (local || strcmp(name, "auto") == 0 ||
		    strcmp(name, "any") == 0)
			name = NULL;
	}
	rc = fill(tcp, a, name, local);
	if (rc < 0)
		return rc;
	fd = bind_listener(tcp, a, local);
	if (fd >= 0) {
		tcp->listener.fd = fd;
		rc = hear(tcp, a, info->size < 1024 ? info->size + 64 : 1024);
	}
	if (fd >= 0 && rc == 0)
		return 0;
	rc = fd < 0 ? fd : rc;
	base_warn("nmad", "tcp: cannot listen%s%s: %s",
		  name != NULL ? " at " : "", name != NULL ? name : "",
		  strerror(-rc));
	return rc;
}

int nm_tcp_bind_call(const struct tcp *tcp, int fd)
{
	struct sockaddr_storage s;
	socklen_t len;
	int one = 1;

	if (!tcp->named)
		return 0;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	len = nm_tcp_sockaddr(&s, &tcp->mine.addr[0], 0, tcp->scope);
	return bind(fd, (void *)&s, len) < 0 ? -errno : 0;
}

/* --- a peer --- */

static bool is_same_host(const struct tcp_addr *a, const struct tcp_addr *b)
{
	return memcmp(a->host, b->host, sizeof(a->host)) == 0 &&
	       memcmp(a->netns, b->netns, sizeof(a->netns)) == 0;
}

/* Who calls from one address calls those of its kind only. */
static bool can_call(const struct tcp *tcp, const struct in6_addr *a)
{
	return !tcp->named || !IN6_IS_ADDR_V4MAPPED(a) ==
				      !IN6_IS_ADDR_V4MAPPED(&tcp->mine.addr[0]);
}

/*
 * In this order a peer's addresses are called. Each that does not answer costs
 * a timeout: those of a network that we are in come first. One that we have as
 * well leads to ourselves, such as that of a bridge for containers, which many
 * hosts have alike.
 */
enum nearness { NEAR, FAR, OURS, NEARNESSES };

static bool is_in(const struct in6_addr *a, const struct in6_addr *net,
		  unsigned bits)
{
	unsigned whole = bits / 8, rest = 8 - bits % 8;

	return memcmp(a, net, whole) == 0 &&
	       (rest == 8 ||
		a->s6_addr[whole] >> rest == net->s6_addr[whole] >> rest);
}

static enum nearness nearness_of(const struct tcp *tcp,
				 const struct in6_addr *a)
{
	/* Of IPv4: without any of its own no network is known. */
	unsigned least = IN6_IS_ADDR_V4MAPPED(a) ? 97 : 1;
	enum nearness best = FAR;

	for (unsigned i = 0; i < tcp->mine.naddrs; i++) {
		const struct in6_addr *mine = &tcp->mine.addr[i];

		if (IN6_ARE_ADDR_EQUAL(a, mine))
			return OURS;
		if (tcp->net[i] >= least && is_in(a, mine, tcp->net[i]))
			best = NEAR;
	}
	return best;
}

static void take_addresses(const struct tcp *tcp, struct tcp_peer *p,
			   const struct tcp_addr *a)
{
	for (enum nearness n = NEAR; n < NEARNESSES; n++)
		for (unsigned i = 0; i < a->naddrs; i++)
			if (can_call(tcp, &a->addr[i]) &&
			    nearness_of(tcp, &a->addr[i]) == n)
				p->addr[p->naddrs++] = a->addr[i];
}

int nm_tcp_know(struct tcp *tcp, struct tcp_peer *p, const void *addr,
		size_t len)
{
	struct tcp_text there, here;
	struct tcp_addr a;

	if (len != sizeof(a))
		return -EHOSTUNREACH;
	memcpy(&a, addr, sizeof(a));
	if (a.version != TCP_ADDR_VERSION || a.naddrs > TCP_ADDRS)
		return -EHOSTUNREACH;
	p->port = a.port;
	p->naddrs = 0;
	if (is_same_host(&a, &tcp->mine) && !tcp->named &&
	    !IN6_IS_ADDR_UNSPECIFIED(&a.here)) {
		p->naddrs = 1;
		p->addr[0] = a.here;
		return 0;
	}
	take_addresses(tcp, p, &a);
	if (p->naddrs > 0)
		return 0;
	if (a.naddrs > 0)
		base_warn("nmad",
			  "tcp: rank %d is reached at %s, which cannot be "
			  "called from %s",
			  p->link->rank, nm_tcp_text(&a.addr[0], &there),
			  nm_tcp_text(&tcp->mine.addr[0], &here));
	else if (!IN6_IS_ADDR_UNSPECIFIED(&a.here))
		base_warn("nmad",
			  "tcp: rank %d listens at the loopback of another "
			  "host: set NMAD_TCP_IFACE=any if the launcher "
			  "takes the two for one",
			  p->link->rank);
	return -EHOSTUNREACH;
}
