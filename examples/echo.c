/*
 * A server that sends back what it receives: a user thread for each connection,
 * ten thousand if need be, and a few kernel threads for all.
 *
 *   echo [PORT]          ends with SIGINT or SIGTERM; 0: any free port
 *
 *   redis-benchmark -p PORT -c 10000 -n 1000000 -t ping_mbulk
 *
 * (What redis-benchmark asks is a fit answer to itself.)
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

enum { PORT = 7777, BUFFER = 4096, MANY = 1 << 20 };

static atomic_long served, bytes, now;
static atomic_bool *is_ours; /* by descriptor: a connection */
static int limit;            /* of descriptors */

/* A connection: its descriptor is the argument. */
static void *serve(void *arg)
{
	int fd = (int)(long)arg;
	char buf[BUFFER];
	ssize_t n;

	while ((n = piom_read(fd, buf, sizeof(buf))) > 0) {
		if (piom_write(fd, buf, (size_t)n) != n)
			break;
		atomic_fetch_add_explicit(&bytes, n, memory_order_relaxed);
	}
	atomic_store(&is_ours[fd], false);
	piom_close(fd);
	atomic_fetch_sub(&now, 1);
	return NULL;
}

/* Until the listening socket is closed. */
static void *accept_all(void *arg)
{
	int listener = *(int *)arg, fd, on = 1;
	marcel_attr_t attr;
	marcel_t t;

	marcel_attr_init(&attr);
	marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED);
	while ((fd = piom_accept(listener, NULL, NULL, SOCK_CLOEXEC)) !=
	       -EBADF) {
		if (fd < 0) {
			fprintf(stderr, "echo: accept: %s\n", strerror(-fd));
			piom_sleep(10000000);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		atomic_store(&is_ours[fd], true);
		atomic_fetch_add(&now, 1);
		atomic_fetch_add(&served, 1);
		if (marcel_create(&t, &attr, serve, (void *)(long)fd) != 0) {
			fprintf(stderr, "echo: too many threads\n");
			atomic_store(&is_ours[fd], false);
			piom_close(fd);
			atomic_fetch_sub(&now, 1);
		}
	}
	marcel_attr_destroy(&attr);
	return NULL;
}

/* A socket that listens, or -1 after a message. */
static int listen_at(int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd, on = 1;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 ||
	    listen(fd, SOMAXCONN) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) < 0) {
		fprintf(stderr, "echo: port %d: %s\n", port, strerror(errno));
		return -1;
	}
	printf("listening on 127.0.0.1:%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}

static int wait_for_signal(int fd)
{
	struct signalfd_siginfo info;

	return piom_read(fd, &info, sizeof(info)) == sizeof(info) ? 0 : 1;
}

static int may_open_many(void)
{
	struct rlimit files = { 1024, 1024 };

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max < MANY ? files.rlim_max : MANY;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return (int)files.rlim_cur;
}

/* Nobody accepts any more. */
static void hang_up(void)
{
	for (int fd = 0; fd < limit && atomic_load(&now) > 0; fd++)
		if (atomic_load(&is_ours[fd]))
			shutdown(fd, SHUT_RDWR);
	while (atomic_load(&now) > 0)
		piom_sleep(1000000);
}

int main(int argc, char **argv)
{
	char none[] = "", *end = none;
	long port = argc > 1 ? strtol(argv[1], &end, 10) : PORT;
	int listener, ending, bad;
	sigset_t set;
	marcel_t t;

	if (argc > 2 || *end != '\0' || end == argv[1] || port < 0 ||
	    port > 65535) {
		fprintf(stderr, "usage: echo [PORT]\n");
		return 2;
	}
	/* Before there are kernel threads, for all of them. */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ending = signalfd(-1, &set, SFD_CLOEXEC);
	limit = may_open_many();
	is_ours = calloc((size_t)limit, sizeof(*is_ours));
	if (is_ours == NULL || marcel_init(NULL) != 0 || piom_init() != 0)
		return 1;
	listener = listen_at((int)port);
	if (listener < 0 || marcel_create(&t, NULL, accept_all, &listener) != 0)
		return 1;
	bad = wait_for_signal(ending);
	piom_close(listener);
	marcel_join(t, NULL);
	hang_up();
	printf("%ld connections, %ld bytes\n", atomic_load(&served),
	       atomic_load(&bytes));
	free(is_ours);
	if (piom_exit() != 0 || marcel_end() != 0)
		return 1;
	return bad;
}
