/* pioman/io: making connections. */
#include "io.h"

#include <sys/un.h>

enum { CALLERS = 20 };

struct listener {
	int fd;
	struct sockaddr_in addr;
	ATOMIC(int) accepted;
	int each; /* so many for each thread */
	int error;
};

static void *accept_some(void *arg)
{
	struct listener *l = arg;

	for (int i = 0; i < l->each; i++) {
		struct sockaddr_in from = { 0 };
		socklen_t len = sizeof(from);
		int fd = piom_accept(l->fd, (struct sockaddr *)&from, &len,
				     SOCK_CLOEXEC);

		if (fd < 0) {
			l->error = fd;
			return NULL;
		}
		fetch_add_relaxed(&l->accepted, 1);
		if (from.sin_family != AF_INET || piom_write(fd, "hi", 2) != 2)
			l->error = -EIO;
		piom_close(fd);
	}
	return NULL;
}

static void *call(void *arg)
{
	struct listener *l = arg;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char buf[3];

	if (piom_connect(fd, (struct sockaddr *)&l->addr, sizeof(l->addr)) !=
		    0 ||
	    piom_read(fd, buf, sizeof(buf)) != 2 ||
	    (fcntl(fd, F_GETFL) & O_NONBLOCK))
		l->error = -EIO;
	piom_close(fd);
	return NULL;
}

static void connections(int flags, bool foreign)
{
	struct listener l = { .each = CALLERS / 4 };
	struct thread callers[CALLERS], acceptors[4];

	l.fd = listen_any(&l.addr, flags);
	for (int i = 0; i < 4; i++)
		acceptors[i] = begin(foreign, accept_some, &l);
	give_time();
	for (int i = 0; i < CALLERS; i++)
		callers[i] = begin(false, call, &l);
	for (int i = 0; i < CALLERS; i++)
		end(callers[i]);
	for (int i = 0; i < 4; i++)
		end(acceptors[i]);
	CHECK_INT(l.error, 0);
	CHECK_INT(load_relaxed(&l.accepted), CALLERS);
	CHECK_INT(piom_close(l.fd), 0);
}

static void connections_of_all_kinds(void)
{
	connections(SOCK_NONBLOCK, false);
	connections(SOCK_NONBLOCK, true);
	connections(0, false);
}

TEST(several_threads_accept_what_several_connect)
{
	WITH_ALL(every_mode, connections_of_all_kinds);
}

/* Nobody listens at the port, nor can anybody else: it is taken. */
static void refused(void)
{
	struct sockaddr_in addr;
	int deaf = bind_any(&addr, 0), fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(piom_connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
		  -ECONNREFUSED);
	CHECK_INT(piom_close(fd), 0);
	CHECK_INT(piom_close(deaf), 0);
	/* A datagram socket has nobody to ask. */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK_INT(piom_connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CHECK_INT(piom_close(fd), 0);
}

TEST(a_connection_that_is_refused_fails)
{
	WITH_ALL(every_mode, refused);
}

static void unreachable(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(9),
				    .sin_addr.s_addr = htonl(0xffffffff) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc, ends[2];

	open_pipe(ends);
	rc = piom_connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	CHECK(rc == -ENETUNREACH || rc == -EACCES || rc == -ECONNREFUSED);
	CHECK_INT(piom_connect(fd, (struct sockaddr *)&addr, 1), -EINVAL);
	CHECK_INT(piom_connect(-1, (struct sockaddr *)&addr, sizeof(addr)),
		  -EBADF);
	CHECK_INT(piom_connect(ends[0], (struct sockaddr *)&addr, sizeof(addr)),
		  -ENOTSOCK);
	close_both(ends);
	CHECK_INT(piom_close(fd), 0);
}

TEST(who_cannot_be_reached_cannot_be_connected_to)
{
	WITH_ALL(engine_marcel, unreachable);
}

static void not_listening(void)
{
	int ends[2], fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	open_pipe(ends);
	CHECK_INT(piom_accept(fd, NULL, NULL, 0), -EINVAL);
	CHECK_INT(piom_accept(ends[1], NULL, NULL, 0), -ENOTSOCK);
	CHECK_INT(piom_accept(-1, NULL, NULL, 0), -EBADF);
	close_both(ends);
	CHECK_INT(piom_close(fd), 0);
}

TEST(what_does_not_listen_cannot_be_accepted_from)
{
	WITH_ALL(engine_marcel, not_listening);
}

/* --- a Unix socket whose backlog is full: epoll tells of no room --- */

struct local {
	struct sockaddr_un addr;
	int rc;
};

static void *connect_local(void *arg)
{
	struct local *l = arg;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	l->rc = piom_connect(fd, (struct sockaddr *)&l->addr, sizeof(l->addr));
	piom_close(fd);
	return NULL;
}

static void full(void)
{
	struct local l[4] = { { .rc = 1 } };
	struct thread t[4];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	l[0].addr.sun_family = AF_UNIX;
	snprintf(l[0].addr.sun_path + 1, 40, "pioman-io-%d", (int)getpid());
	CHECK_INT(bind(fd, (struct sockaddr *)&l[0].addr, sizeof(l[0].addr)),
		  0);
	CHECK_INT(listen(fd, 0), 0);
	for (int i = 1; i < 4; i++)
		l[i] = l[0];
	for (int i = 0; i < 4; i++)
		t[i] = begin(false, connect_local, &l[i]);
	give_time();
	for (int i = 0; i < 4; i++)
		CHECK_INT(piom_close(piom_accept(fd, NULL, NULL, 0)), 0);
	for (int i = 0; i < 4; i++) {
		end(t[i]);
		CHECK_INT(l[i].rc, 0);
	}
	CHECK_INT(piom_close(fd), 0);
}

TEST(a_full_backlog_is_waited_for)
{
	WITH_ALL(engine_marcel, full);
}
