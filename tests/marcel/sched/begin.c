/*
 * marcel/sched/monitor.c: a spare that begins may sleep on a lock, as that of
 * libc's allocator, whose holder was interrupted and waits for the very VP.
 */
#include <pthread.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../with.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ATOMIC(int) held, armed, begins;
static int fds[2];

/* In place of libstdc++'s, which may allocate. */
void *__cxa_get_globals(void);
void *__cxa_get_globals(void)
{
	static __thread struct {
		void *caught;
		unsigned uncaught;
	} globals;

	if (load_acquire(&armed) != 0) {
		store_release(&begins, 1);
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return &globals;
}

/* Computes until a spare waits for it; only it ends the other's section. */
static void *holds(void *arg)
{
	pthread_mutex_lock(&lock);
	store_release(&held, 1);
	while (load_acquire(&begins) == 0)
		;
	pthread_mutex_unlock(&lock);
	CHECK_INT(write(fds[1], "x", 1), 1);
	return arg;
}

/* Its section takes a spare, a new one. */
static void *waits(void *arg)
{
	char c;

	while (load_acquire(&held) == 0)
		marcel_yield(); /* comes back when the other is interrupted */
	store_release(&armed, 1);
	marcel_blocking_begin();
	CHECK_INT(read(fds[0], &c, 1), 1);
	marcel_blocking_end();
	return arg;
}

static void body(void)
{
	marcel_t t[2];

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(marcel_create(&t[0], NULL, holds, NULL), 0);
	CHECK_INT(marcel_create(&t[1], NULL, waits, NULL), 0);
	CHECK_INT(marcel_join(t[0], NULL), 0);
	CHECK_INT(marcel_join(t[1], NULL), 0);
	CHECK_INT(load_acquire(&begins), 1);
	close(fds[0]);
	close(fds[1]);
}

TEST(a_spare_that_begins_gets_the_lock_of_one_that_was_interrupted)
{
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	with_vps(1, body);
	unsetenv("MARCEL_TIMESLICE_US");
}
