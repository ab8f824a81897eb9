/*
 * What the tests of descriptors share: threads of either kind, pairs of
 * descriptors, and a way to know that a thread waits.
 */
#ifndef TESTS_PIOMAN_IO_IO_H
#define TESTS_PIOMAN_IO_IO_H

#include "../with.h"
#include "../../tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* A user thread, or a kernel thread that marcel knows nothing of. */
struct thread {
	bool foreign;
	union {
		marcel_t user;
		pthread_t alien;
	} id;
};

static inline struct thread begin(bool foreign, void *(*fn)(void *), void *arg)
{
	struct thread t = { .foreign = foreign };

	if (foreign)
		CHECK_INT(pthread_create(&t.id.alien, NULL, fn, arg), 0);
	else
		CHECK_INT(marcel_create(&t.id.user, NULL, fn, arg), 0);
	return t;
}

static inline void end(struct thread t)
{
	CHECK_INT(t.foreign ? pthread_join(t.id.alien, NULL)
			    : marcel_join(t.id.user, NULL),
		  0);
}

/* Two ends of something: what is written to [1] is read from [0]. */
static inline void open_pipe(int ends[2])
{
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
}

static inline void open_sockets(int ends[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static inline void close_both(int ends[2])
{
	CHECK_INT(piom_close(ends[0]), 0);
	CHECK_INT(piom_close(ends[1]), 0);
}

/* A socket with a port of its own. */
static inline int bind_any(struct sockaddr_in *addr, int flags)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	memset(addr, 0, sizeof(*addr));
	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0);
	CHECK_INT(bind(fd, (struct sockaddr *)addr, len), 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

/* And that listens there. */
static inline int listen_any(struct sockaddr_in *addr, int flags)
{
	int fd = bind_any(addr, flags);

	CHECK_INT(listen(fd, 128), 0);
	return fd;
}

/* Let others run until it is so. */
#define UNTIL(x)                                                               \
	do {                                                                   \
		piom_poll();                                                   \
		marcel_yield();                                                \
		sched_yield();                                                 \
	} while (!(x))

/* To give who was started about enough time to wait; nothing depends on it. */
static inline void give_time(void)
{
	for (int i = 0; i < 50; i++)
		UNTIL(true);
}

#endif
