/*
 * An ltask that blocks ends the process, whoever runs it, and the message names
 * what blocks and the ltask's function: base/pin.h.
 */
#include "../with.h"

#include <errno.h>
#include <signal.h>

#include <marcel/blocking.h>
#include <marcel/io.h>

#include "../../marcel/child.h"

static piom_cond_t cond;
static piom_sem_t sem;
static struct piom_ltask never; /* is not run: for nobody polls */
static marcel_sem_t marcel_sem;
static marcel_event_t event;
static int fds[2];

static void wait_cond(void)
{
	piom_cond_wait(&cond);
}

static void wait_any(void)
{
	piom_cond_t *conds[2] = { NULL, &cond };

	piom_cond_wait_any(conds, 2);
}

static void wait_sem(void)
{
	piom_sem_wait(&sem);
}

static void wait_ltask(void)
{
	piom_ltask_wait(&never);
}

static void cancel(void)
{
	piom_ltask_cancel(&never);
}

static void poll_again(void)
{
	piom_poll();
}

static void start(void)
{
	piom_init();
}

static void stop(void)
{
	piom_exit();
}

static void wait_marcel_sem(void)
{
	marcel_sem_wait(&marcel_sem);
}

static void wait_marcel_event(void)
{
	marcel_event_wait(&event);
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

static const struct blocker {
	void (*fn)(void);
	const char *who, *what;
} blockers[] = {
	{ wait_cond, "pioman", "piom_cond_wait()" },
	{ wait_any, "pioman", "piom_cond_wait()" },
	{ wait_sem, "pioman", "piom_sem_wait()" },
	{ wait_ltask, "pioman", "piom_ltask_wait()" },
	{ cancel, "pioman", "piom_ltask_cancel()" },
	{ poll_again, "pioman", "piom_poll()" },
	{ start, "pioman", "piom_init()" },
	{ stop, "pioman", "piom_exit()" },
	{ wait_marcel_sem, "marcel", "semaphore" },
	{ wait_marcel_event, "marcel", "event" },
	{ begin_section, "marcel", "marcel_blocking_begin()" },
	{ read_pipe, "marcel", "read()" },
};

static const struct blocker *blocker;
static const char *engine;

static enum piom_ltask_result block(void *arg)
{
	(void)arg;
	blocker->fn();
	return PIOM_LTASK_DONE;
}

static struct piom_ltask task;

static void set_up(void)
{
	struct marcel_config config = { .nvp = 1 };

	setenv("PIOM_ENGINE", engine, 1);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(piom_init(), 0);
	CHECK_INT(marcel_sem_init(&marcel_sem, 0, 0), 0);
	CHECK_INT(pipe(fds), 0);
	piom_sem_init(&sem, 0);
	piom_ltask_init(&never, block, NULL, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_init(&task, block, NULL, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&task);
}

/* --- who runs it --- */

static void idle_vp(void)
{
	marcel_event_t e = MARCEL_EVENT_INIT;

	engine = "marcel";
	set_up();
	marcel_event_wait(&e);
}

static void switching_vp(void)
{
	engine = "marcel";
	set_up();
	for (;;)
		marcel_yield();
}

static void poller(void)
{
	engine = "none";
	set_up();
	piom_poll();
}

static void waiter(void)
{
	piom_cond_t c;

	engine = "none";
	set_up();
	piom_cond_init(&c);
	piom_cond_wait(&c);
}

static void *poll_outside(void *arg)
{
	piom_poll();
	return arg;
}

static void foreign_poller(void)
{
	pthread_t t;

	engine = "none";
	set_up();
	CHECK_INT(pthread_create(&t, NULL, poll_outside, NULL), 0);
	pthread_join(t, NULL);
}

static void *wait_outside(void *arg)
{
	piom_cond_t c;

	piom_cond_init(&c);
	piom_cond_wait(&c);
	return arg;
}

static void foreign_waiter(void)
{
	pthread_t t;

	engine = "none";
	set_up();
	CHECK_INT(pthread_create(&t, NULL, wait_outside, NULL), 0);
	pthread_join(t, NULL);
}

static void each_dies(void (*body)(void))
{
	char words[128], begin[16];

	for (size_t i = 0; i < BASE_ARRAY_LEN(blockers); i++) {
		int status;

		blocker = &blockers[i];
		snprintf(begin, sizeof(begin), "%s[", blocker->who);
		snprintf(words, sizeof(words),
			 "a handler blocks: %s, in the function at %p\n",
			 blocker->what, (void *)(uintptr_t)block);
		status = in_child(body);
		if (!WIFSIGNALED(status) || strstr(said, words) == NULL ||
		    strncmp(said, begin, strlen(begin)) != 0)
			check_fail(__FILE__, __LINE__, "%s: status %x, %s",
				   blocker->what, status, said);
		CHECK_INT(WTERMSIG(status), SIGABRT);
	}
}

TEST(who_blocks_on_an_idle_vp_is_named)
{
	each_dies(idle_vp);
}

TEST(who_blocks_at_a_switch_is_named)
{
	each_dies(switching_vp);
}

TEST(who_blocks_in_an_explicit_poll_is_named)
{
	each_dies(poller);
}

TEST(who_blocks_in_a_wait_that_polls_is_named)
{
	each_dies(waiter);
}

TEST(who_blocks_on_a_foreign_thread_is_named)
{
	each_dies(foreign_poller);
	each_dies(foreign_waiter);
}

/* --- what is no wait --- */

static enum piom_ltask_result need_not_wait(void *arg)
{
	char c;

	(void)arg;
	piom_cond_wait(&cond);
	piom_sem_wait(&sem);
	CHECK_INT(marcel_sem_wait(&marcel_sem), 0);
	CHECK_INT(marcel_read(fds[0], &c, 1), 1);
	return PIOM_LTASK_DONE;
}

static void no_wait(void)
{
	struct piom_ltask t;

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(write(fds[1], "x", 1), 1);
	CHECK_INT(marcel_sem_init(&marcel_sem, 0, 1), 0);
	piom_sem_init(&sem, 1);
	piom_cond_init(&cond);
	piom_cond_signal(&cond);
	piom_ltask_init(&t, need_not_wait, NULL, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&t);
	piom_ltask_wait(&t);
	close(fds[0]);
	close(fds[1]);
}

TEST(an_ltask_may_have_what_is_there)
{
	WITH_ALL(every_mode, no_wait);
}
