/*
 * pioman/io/blocking: what comes while an ltask is being armed, or after, is
 * seen by a later run, though the VP that armed it sleeps; and an ltask that is
 * cancelled meanwhile is touched by nobody.
 *
 * covers: ltask idle hold
 */
#include "explore.h"

#include <pioman/pioman.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/diag.h>
#include <marcel/marcel.h>

/* --- the kernel's set, of one entry: what it does under its lock --- */

enum { READABLE = 1, ENTRY = 2, READY = 4 };

static uint32_t kernel;
static ATOMIC(uint32_t) lock;
static ATOMIC(uint32_t) fires; /* for who waits for the set */

/*
 * To take the lock is the only step: what is done with it is done at once, and
 * the lock orders it, so that it is not looked at for races.
 */
#define KERNEL __attribute__((no_sanitize("thread"), noinline))

KERNEL static uint32_t kernel_says(void)
{
	fetch_add_acq_rel(&lock, 1);
	return kernel;
}

/* What `set` and `clear` change; an entry of what is readable fires once. */
KERNEL static void kernel_changes(uint32_t set, uint32_t clear)
{
	uint32_t was = kernel_says(), now = (was | set) & ~clear;

	if ((now & READABLE) && (now & ENTRY))
		now = (now | READY) & ~(uint32_t)ENTRY;
	kernel = now;
	if ((now & READY) && !(was & READY)) {
		store_seq(&fires, 1);
		explore_wake(&fires, 1);
	}
}

static int kernel_ctl(int op)
{
	kernel_changes(op == EPOLL_CTL_DEL ? 0 : ENTRY,
		       op == EPOLL_CTL_DEL ? ENTRY : 0);
	return 0;
}

#define epoll_ctl(set, op, fd, ev) ((void)(ev), kernel_ctl(op))
#define eventfd_write(fd, n)       (0)

int marcel_kernel_thread(pthread_t *out, void *(*fn)(void *), void *arg)
{
	return 0;
}

void base_warn(const char *layer, const char *fmt, ...)
{
}

#include "ltask_world.h"

#include "../../pioman/io/blocking.c"
#include "../../pioman/io/patience.c"

bool piom_export_may(void)
{
	return false;
}

bool piom_export_has_room(void)
{
	return false;
}

bool piom_export(struct piom_task *t)
{
	return false;
}

bool piom_export_is_out(const struct piom_task *t)
{
	return false;
}

bool piom_export_leave(struct piom_task *t)
{
	return true;
}

void piom_export_init(int max)
{
}

void piom_export_exit(void)
{
}

void piom_export_forked(void)
{
}

void piom_export_provide(void)
{
}

/* --- ltasks --- */

static int events; /* that come */
static ATOMIC(int) found;

static enum piom_ltask_result look(void *arg)
{
	if (!(kernel_says() & READABLE))
		return PIOM_LTASK_AGAIN;
	kernel_changes(0, READABLE);
	fetch_add_seq(&found, 1);
	return events == 1 ? PIOM_LTASK_DONE : PIOM_LTASK_WORKED;
}

static void setup_armed(int n, uint64_t idle_ns)
{
	events = n;
	piom.engine = PIOM_ENGINE_MARCEL;
	piom.mode = PIOM_MODE_AUTO;
	piom.idle_ns = idle_ns;
	setup(PIOM_LTASK_REPEAT);
	explore_name(&lock, sizeof(lock), "kernel");
	explore_name(&fires, sizeof(fires), "fires");
	explore_name(&piom_watcher, sizeof(piom_watcher), "fired");
	piom_ltask_init(&tasks[0], look, NULL, PIOM_LTASK_REPEAT, NULL);
	task_of(&tasks[0])->options |= PIOM_TASK_BLOCKING;
	task_of(&tasks[0])->waits.delay_ns = PIOM_BLOCKING_AUTO;
	piom_ltask_submit(&tasks[0]);
}

/* --- who takes part --- */

/* Something comes, and what it makes of the watcher; then more comes. */
static void sender_and_watcher(void *arg)
{
	kernel_changes(READABLE, 0);
	while (load_seq(&fires) == 0)
		explore_wait_while(&fires, 0);
	kernel_changes(0, READY);
	fire();
	if (events > 1)
		kernel_changes(READABLE, 0);
}

static int spawn_watcher(void)
{
	return explore_spawn("watcher", sender_and_watcher, NULL);
}

/* Or else a VP that is awake asks again, or the watcher will. */
static void is_found(void)
{
	explore_check(
		!(kernel & READABLE) || (kernel & READY) != 0 ||
		(piom_queue_is_pending(&q) && load_relaxed(&asleep) == 0));
}

static void both(int n, uint64_t idle_ns)
{
	setup_armed(n, idle_ns);
	if (n > 1)
		piom_queue_run(&q, 0, PIOM_LAST,
			       PIOM_POINT_IDLE); /* armed: it may poll, too */
	/* Who does not find it may sleep on. */
	explore_may_sleep(explore_spawn("vp", dozing_vp, NULL));
	explore_may_sleep(spawn_watcher());
	explore_finish(is_found);
}

/* order(ltask), order(idle), order(hold) */
EXPLORE(what_comes_while_it_is_armed_is_found)
{
	both(1, 0);
}

/* Events are rare: the watcher arms it again. */
EXPLORE(what_comes_next_is_found)
{
	both(2, 0);
}

/* Events come often: it is left to a VP. */
EXPLORE(what_comes_next_is_found_by_a_vp)
{
	both(2, UINT64_MAX / 2 / RARE);
}

/* --- cancel --- */

static void canceller(void *arg)
{
	int err = piom_ltask_cancel(&tasks[0]);

	explore_check(err == (load_seq(&found) ? -EALREADY : 0));
	explore_gone(&tasks[0], sizeof(tasks[0]));
	explore_check(!(kernel_says() & ENTRY));
}

/* order(hold) */
EXPLORE(after_a_cancel_the_watcher_does_not_touch_it)
{
	setup_armed(1, 0);
	piom_queue_run(&q, 0, PIOM_LAST, PIOM_POINT_IDLE);
	explore_spawn("canceller", canceller, NULL);
	explore_may_sleep(spawn_watcher());
}
