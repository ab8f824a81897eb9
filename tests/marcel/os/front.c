/*
 * marcel/os/linux/front_io.c: the names of libc are the wrappers.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../with.h"

static int ends[2];
static ATOMIC(int) over;

static void *reads(void *arg)
{
	char c = 0;

	CHECK_INT(read(ends[0], &c, 1), 1);
	CHECK_INT(c, 'x');
	store_release(&over, 1);
	return arg;
}

/* The program knows nothing of wrappers. */
TEST_VPS(a_plain_read_leaves_the_others_running)
{
	marcel_t t;

	store_relaxed(&over, 0);
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK_INT(marcel_create(&t, NULL, reads, NULL), 0);
	for (int i = 0; i < 1000; i++)
		marcel_yield();
	CHECK_INT(load_acquire(&over), 0);
	CHECK_INT(write(ends[1], "x", 1), 1);
	CHECK_INT(marcel_join(t, NULL), 0);
	close(ends[0]);
	close(ends[1]);
}

/* No wrapper may need the runtime, nor leave a foreign thread to it. */
static void *uses_all(void *arg)
{
	struct timespec t = { 0, 1000 };
	struct pollfd p = { .fd = -1 };
	char c;
	int fd;

	CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK_INT(read(ends[0], &c, 1), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(write(ends[1], "x", 1), 1);
	CHECK_INT(read(ends[0], &c, 1), 1);
	close(ends[0]);
	close(ends[1]);
	CHECK_INT(poll(&p, 1, 1), 0);
	CHECK_INT(nanosleep(&t, NULL), 0);
	CHECK_INT(usleep(1), 0);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_INT(fsync(fd), -1);
	CHECK_INT(errno, EINVAL);
	close(fd);
	CHECK_INT(system("exit 3"), 3 << 8);
	return arg;
}

static void from_a_foreign_thread(void)
{
	pthread_t p;

	CHECK_INT(pthread_create(&p, NULL, uses_all, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST(before_and_after_the_runtime_all_work)
{
	struct marcel_config config = { .nvp = 2 };

	uses_all(NULL);
	from_a_foreign_thread();
	CHECK_INT(marcel_init(&config), 0);
	uses_all(NULL);
	from_a_foreign_thread();
	CHECK_INT(marcel_end(), 0);
	uses_all(NULL);
	from_a_foreign_thread();
}
