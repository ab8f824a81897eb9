/*
 * marcel/sync/sem.c: a unit goes to one waiter, who sees what was done before
 * the post; no waiter is forgotten; the semaphore may go away once all that
 * was posted has been waited for.
 *
 * covers: sem guard late mpsc
 */
#include "sync_timers.h"

#include "../../marcel/sync/waitq.c"
#include "../../marcel/sync/late.c"
#include "../../marcel/sync/sem.c"

static marcel_sem_t sem;
static int data, posted[2], users;
static ATOMIC(int) got;

/* As a mutex: one unit, who has it is alone. */
static void alone(void *arg)
{
	marcel_sem_wait(&sem);
	data++;
	marcel_sem_post(&sem);
}

static void alone_twice(void *arg)
{
	alone(arg);
	alone(arg);
}

static void alone_if_free(void *arg)
{
	if (marcel_sem_trywait(&sem) != 0)
		return;
	data++;
	marcel_sem_post(&sem);
}

static void post(void *arg)
{
	posted[(intptr_t)arg] = 1;
	marcel_sem_post(&sem);
}

static void wait(void *arg)
{
	marcel_sem_wait(&sem);
	fetch_add_relaxed(&got, 1);
}

static void wait_for_both(void *arg)
{
	marcel_sem_wait(&sem);
	marcel_sem_wait(&sem);
	explore_check(posted[0] && posted[1]);
	explore_gone(&sem, sizeof(sem));
}

static void wait_for_first(void *arg)
{
	marcel_sem_wait(&sem);
	explore_check(posted[0]);
	explore_gone(&sem, sizeof(sem));
}

static void all_alone(void)
{
	explore_check(data == users);
}

static void both_got_one(void)
{
	int v;

	explore_check(load_relaxed(&got) == 2);
	marcel_sem_getvalue(&sem, &v);
	explore_check(v == 0);
	explore_check(marcel_sem_destroy(&sem) == 0);
}

static void names(unsigned value)
{
	world_init();
	marcel_sem_init(&sem, 0, value);
	explore_name(&sem, sizeof(sem), "sem");
	explore_name(&data, sizeof(data), "data");
}

EXPLORE(one_unit_is_had_by_one)
{
	names(1);
	users = 3;
	explore_spawn("once", alone, NULL);
	explore_spawn("twice", alone_twice, NULL);
	explore_finish(all_alone);
}

EXPLORE(a_try_sees_what_was_done_before_the_post)
{
	names(1);
	explore_spawn("one", alone, NULL);
	explore_spawn("tries", alone_if_free, NULL);
}

EXPLORE(a_unit_and_a_post_free_two_waiters)
{
	names(1);
	explore_spawn("waiter 1", wait, NULL);
	explore_spawn("waiter 2", wait, NULL);
	explore_spawn("posts", post, (void *)0);
	explore_finish(both_got_one);
}

EXPLORE(it_may_be_freed_when_all_posts_were_waited_for)
{
	names(0);
	explore_spawn("waiter", wait_for_both, NULL);
	explore_spawn("post 0", post, (void *)0);
	explore_spawn("post 1", post, (void *)1);
}

EXPLORE(it_may_be_freed_after_one_post)
{
	names(0);
	explore_spawn("waiter", wait_for_first, NULL);
	explore_spawn("post", post, (void *)0);
}

/* --- from handlers --- */

int marcel_tasklet_init(marcel_tasklet_t *t, void (*fn)(void *), void *arg)
{
	return 0;
}

int marcel_tasklet_hi_schedule(marcel_tasklet_t *t)
{
	return 0;
}

static void post_within(void *arg)
{
	world_within[explore_self()] = true;
	post(arg);
}

/* A run for each schedule, at least; more do no harm. */
static void pay_always(void *arg)
{
	while (load_relaxed(&over) == 0) {
		pay(NULL);
		explore_relax();
	}
}

static void wait_twice(void *arg)
{
	marcel_sem_wait(&sem);
	marcel_sem_wait(&sem);
	explore_check(posted[0] && posted[1]);
	store_relaxed(&over, 1);
}

EXPLORE(handlers_posts_are_paid_and_seen)
{
	names(0);
	explore_spawn("waiter", wait_twice, NULL);
	explore_spawn("handler 0", post_within, (void *)0);
	explore_spawn("handler 1", post_within, (void *)1);
	explore_spawn("pays", pay_always, NULL);
}

/* They wait already, in this order. */
static struct marcel_waiter queued[2];

static void was_first(void *arg)
{
	explore_park();
}

static void was_second(void *arg)
{
	explore_park();
	explore_check(posted[0] && posted[1]);
	store_relaxed(&over, 1);
}

EXPLORE(who_is_paid_by_the_second_sees_both)
{
	struct sem *s = (struct sem *)&sem;

	names(0);
	store_relaxed(&s->value, -2);
	for (int i = 0; i < 2; i++) {
		queued[i].thread = &world_threads[WAITER + i];
		marcel_waitq_push(&s->queue, &queued[i]);
	}
	explore_spawn("first", was_first, NULL);
	explore_spawn("second", was_second, NULL);
	explore_spawn("handler 0", post_within, (void *)0);
	explore_spawn("handler 1", post_within, (void *)1);
	explore_spawn("pays", pay_always, NULL);
}

/* --- in time --- */

static void wait_sem(void *arg)
{
	int rc = marcel_sem_timedwait(&sem, &soon);

	if (rc == 0)
		explore_check(data == 1);
	note(rc);
	frames_are_gone(__builtin_frame_address(0));
}

static void post_data(void *arg)
{
	data = 1;
	marcel_sem_post(&sem);
}

static void unit_is_left(void)
{
	int v;

	one_end();
	if (granted)
		return;
	marcel_sem_getvalue(&sem, &v);
	explore_check(v == 1);
	explore_check(marcel_sem_destroy(&sem) == 0);
}

EXPLORE(a_unit_goes_to_the_waiter_or_stays)
{
	names(0);
	name_timers();
	explore_spawn("waiter", wait_sem, NULL);
	explore_spawn("posts", post_data, NULL);
	explore_spawn("expires", time_passes, NULL);
	explore_finish(unit_is_left);
}
