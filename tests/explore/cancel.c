/*
 * marcel/thread/cancel.c, for what has a guard and a queue: who waits is taken
 * out of it if nobody grants what it waits for, and nothing of that is touched
 * when it may be gone. Of joins see join.c.
 *
 * covers: cancel, cancels
 */
#include "sync_timers.h"

#include "../../marcel/sync/waitq.c"

static struct thing {
	struct marcel_guard guard;
	struct marcel_waitq queue;
	bool is_there;
} thing;

enum { CANCELS = GRANTER + 1 };

static void names(void)
{
	world_init();
	marcel_sched.nvp = 0; /* nobody joins */
	store_relaxed(&world_threads[WAITER].flags, 0);
	explore_name(&thing, sizeof(thing), "thing");
	explore_name(world_rests, sizeof(world_rests), "rests");
	explore_name(&looking, sizeof(looking), "looking");
}

static void leave(struct marcel_timed *d)
{
	marcel_waitq_remove(&thing.queue, d->waiter);
	marcel_guard_unlock(&thing.guard, 0);
	marcel_timer_wake(&d->timer);
}

static void wait(void *arg)
{
	struct marcel_waiter me = { .thread = marcel_thread_self() };
	struct marcel_timed d;
	bool got;

	marcel_timed_set_point(&d, &me, &thing.guard, leave, NULL);
	marcel_guard_lock(&thing.guard, NULL);
	got = thing.is_there;
	if (!got) {
		marcel_waitq_push(&thing.queue, &me);
		marcel_timed_arm_point(&d, NULL);
	}
	marcel_guard_unlock(&thing.guard, 0);
	if (!got)
		got = marcel_timed_park(&d);
	if (got)
		granted++;
	else
		ran_out++;
	frames_are_gone(__builtin_frame_address(0));
}

/* Then only who waited knows it. */
static void grant(void *arg)
{
	struct marcel_waiter *w = NULL;

	marcel_guard_lock(&thing.guard, NULL);
	thing.is_there = true;
	if (!marcel_waitq_is_empty(&thing.queue))
		w = marcel_waitq_take(&thing.queue);
	marcel_guard_unlock(&thing.guard, 0);
	if (w != NULL) {
		explore_gone(&thing, sizeof(thing));
		marcel_wake(w->thread);
	}
	explore_unpark(CANCELS, false);
}

/* Somebody holds the guard: until nobody does. */
static void until_free(void)
{
	do
		explore_relax();
	while (load_relaxed(&thing.guard.word) & MARCEL_GUARDED);
}

/* The same when it may be gone then. */
static void until_granted(void)
{
	explore_park();
}

static void cancel(void *arg)
{
	marcel_cancel(&world_threads[WAITER]);
}

static void is_cancelled(void)
{
	explore_check(ran_out == 1 && granted == 0);
	explore_check(marcel_waitq_is_empty(&thing.queue));
}

static void one_of_both(void)
{
	explore_check(granted + ran_out == 1);
}

EXPLORE(who_waits_for_ever_is_cancelled)
{
	names();
	world_yield = until_free;
	explore_spawn("waiter", wait, NULL);
	explore_spawn("cancels", cancel, NULL);
	explore_finish(is_cancelled);
}

/* It waits already. */
static struct marcel_waiter waiter;
static struct marcel_timed timed;

static void has_waited(void *arg)
{
	explore_park();
	if (timed.timer.expired)
		ran_out++;
	else
		granted++;
	explore_gone(&waiter, sizeof(waiter));
	explore_gone(&timed, sizeof(timed));
}

EXPLORE(what_is_granted_is_gone)
{
	names();
	world_yield = until_granted;
	waiter.thread = &world_threads[WAITER];
	marcel_timed_set_point(&timed, &waiter, &thing.guard, leave, NULL);
	timed.timer.thread = waiter.thread;
	marcel_waitq_push(&thing.queue, &waiter);
	marcel_timed_arm_point(&timed, NULL);
	explore_spawn("waiter", has_waited, NULL);
	explore_spawn("grants", grant, NULL);
	explore_spawn("cancels", cancel, NULL);
	explore_finish(one_of_both);
}

/* --- who ends by itself --- */

static bool is_back;

static void ends(void *arg)
{
	struct marcel_thread *self = marcel_thread_self();

	if (!marcel_cancel_keeps(self))
		marcel_thread_put(NULL, self);
}

static void descriptor_is_back(void)
{
	explore_check(is_back && kept.first == NULL);
}

/* Another thread's, from now on. */
static void put(struct marcel_thread *t)
{
	is_back = true;
	explore_gone(&t->flags, sizeof(t->flags));
	explore_gone(t->rest, sizeof(*t->rest));
}

EXPLORE(who_cancels_looks_at_no_descriptor_that_was_given_back)
{
	names();
	is_back = false;
	world_put = put;
	explore_spawn("ends", ends, NULL);
	explore_spawn("cancels", cancel, NULL);
	explore_finish(descriptor_is_back);
}
