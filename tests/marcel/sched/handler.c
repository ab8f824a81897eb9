/*
 * A hook or a tasklet that blocks ends the process, and the message says what
 * it was that blocks: base/pin.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/blocking.h>
#include <marcel/io.h>
#include <marcel/tasklet.h>
#include <marcel/time.h>
#include "../child.h"
#include "../with.h"

/* What cannot be had: each waits for ever, or for long. */
static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static marcel_mutex_t held = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t cond = MARCEL_COND_INITIALIZER;
static marcel_rwlock_t rwlock = MARCEL_RWLOCK_INITIALIZER;
static marcel_barrier_t barrier;
static marcel_sem_t sem;
static marcel_event_t event;
static marcel_t other;
static int fds[2];

static void lock(void)
{
	marcel_mutex_lock(&held);
}

static void wait_cond(void)
{
	marcel_mutex_lock(&mutex);
	marcel_cond_wait(&cond, &mutex);
}

static void wait_sem(void)
{
	marcel_sem_wait(&sem);
}

static void wait_sem_until(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 1000;
	marcel_sem_timedwait(&sem, &t);
}

static void wait_event(void)
{
	marcel_event_wait(&event);
}

static void wait_barrier(void)
{
	marcel_barrier_wait(&barrier);
}

static void read_lock(void)
{
	marcel_rwlock_rdlock(&rwlock);
}

static void join(void)
{
	marcel_join(other, NULL);
}

static void yield(void)
{
	marcel_yield();
}

static void yield_to(void)
{
	marcel_yield_to(other);
}

static void sleep_by_marcel(void)
{
	marcel_sleep(1000);
}

static void sleep_by_libc(void)
{
	sleep(1000);
}

static void begin_section(void)
{
	marcel_blocking_begin();
}

static void read_pipe(void)
{
	char c;

	marcel_read(fds[0], &c, 1);
}

static void poll_pipe(void)
{
	struct pollfd p = { .fd = fds[0], .events = POLLIN };

	marcel_poll(&p, 1, -1);
}

static const struct blocker {
	void (*fn)(void);
	const char *what; /* the message's last words */
} blockers[] = {
	{ lock, "mutex" },
	{ wait_cond, "condition" },
	{ wait_sem, "semaphore" },
	{ wait_sem_until, "semaphore" },
	{ wait_event, "event" },
	{ wait_barrier, "barrier" },
	{ read_lock, "read lock" },
	{ join, "join" },
	{ yield, "yield" },
	{ yield_to, "yield" },
	{ sleep_by_marcel, "sleep" },
	{ sleep_by_libc, "sleep()" },
	{ begin_section, "marcel_blocking_begin()" },
	{ read_pipe, "read()" },
	{ poll_pipe, "poll()" },
};

static const struct blocker *blocker;

/* It has what others wait for. */
static void *wait_for_ever(void *arg)
{
	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_rwlock_wrlock(&rwlock), 0);
	marcel_event_wait(arg);
	return NULL;
}

static void set_up(void)
{
	struct marcel_config config = { .nvp = 1 };
	static marcel_event_t never;

	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_barrier_init(&barrier, NULL, 2), 0);
	CHECK_INT(pipe(fds), 0);
	CHECK_INT(marcel_create(&other, NULL, wait_for_ever, &never), 0);
	while (marcel_mutex_trylock(&held) == 0) {
		CHECK_INT(marcel_mutex_unlock(&held), 0);
		marcel_yield();
	}
}

static enum marcel_hook_answer run_hook(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	blocker->fn();
	return MARCEL_HOOK_NOTHING;
}

static struct marcel_hook hook = { .fn = run_hook };

static void block_when_idle(void)
{
	marcel_event_t e = MARCEL_EVENT_INIT;

	set_up();
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &hook), 0);
	marcel_event_wait(&e);
}

static void block_at_a_switch(void)
{
	set_up();
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &hook), 0);
	marcel_yield();
}

static void run_tasklet(void *arg)
{
	(void)arg;
	blocker->fn();
}

static void block_in_a_tasklet(void)
{
	static marcel_tasklet_t t;

	set_up();
	CHECK_INT(marcel_tasklet_init(&t, run_tasklet, NULL), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	marcel_yield();
}

static void each_dies(void (*body)(void), void *fn)
{
	char words[128];

	for (size_t i = 0; i < BASE_ARRAY_LEN(blockers); i++) {
		int status;

		blocker = &blockers[i];
		/* A sanitizer stands before libc itself. */
		if (blocker->fn == sleep_by_libc && (BASE_ASAN || BASE_TSAN))
			continue;
		snprintf(words, sizeof(words),
			 "a handler blocks: %s, in the function at %p\n",
			 blocker->what, fn);
		status = in_child(body);
		if (!WIFSIGNALED(status) || strstr(said, words) == NULL)
			check_fail(__FILE__, __LINE__, "%s: status %x, %s",
				   blocker->what, status, said);
		CHECK_INT(WTERMSIG(status), SIGABRT);
	}
}

TEST(an_idle_hook_that_blocks_is_named)
{
	each_dies(block_when_idle, (void *)(uintptr_t)run_hook);
}

TEST(a_switch_hook_that_blocks_is_named)
{
	each_dies(block_at_a_switch, (void *)(uintptr_t)run_hook);
}

TEST(a_tasklet_that_blocks_is_named)
{
	each_dies(block_in_a_tasklet, (void *)(uintptr_t)run_tasklet);
}

/* --- what is no wait --- */

static ATOMIC(int) calls;

static enum marcel_hook_answer take_what_is_there(void *arg, int vp)
{
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	char c;

	(void)arg;
	(void)vp;
	CHECK_INT(marcel_poll(&p, 1, -1), 1);
	CHECK_INT(marcel_read(fds[0], &c, 1), 1);
	CHECK_INT(marcel_poll(&p, 1, 0), 0);
	CHECK_INT(marcel_write(fds[1], &c, 1), 1);
	CHECK_INT(marcel_mutex_trylock(&held), EBUSY);
	CHECK_INT(marcel_mutex_lock(&mutex), 0);
	CHECK_INT(marcel_mutex_unlock(&mutex), 0);
	CHECK_INT(marcel_sem_post(&sem), 0);
	CHECK_INT(marcel_sem_wait(&sem), 0);
	fetch_add_relaxed(&calls, 1);
	return MARCEL_HOOK_NOTHING;
}

static void take(void)
{
	struct marcel_hook h = { .fn = take_what_is_there };

	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(pipe(fds), 0);
	CHECK_INT(write(fds[1], "x", 1), 1);
	store_relaxed(&calls, 0);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &h), 0);
	for (int i = 0; i < 10; i++)
		marcel_yield();
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &h), 0);
	CHECK_INT(load_relaxed(&calls), 10);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	close(fds[0]);
	close(fds[1]);
}

TEST(a_hook_may_take_what_it_need_not_wait_for)
{
	with_vps(1, take);
}
