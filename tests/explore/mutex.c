/*
 * marcel/sync/mutex.c, guard.h: one holder at a time, who sees what the one
 * before did; who waits is woken; the mutex may go away when its last user has
 * it. With cond.c: no signal is lost, whether the mutex is held or not. With
 * adopt.c: in the child of a fork nobody waits but its own threads.
 *
 * covers: mutex guard adopt
 */
#include "sync_timers.h"

#include "../../marcel/sync/waitq.c"
#include "../../marcel/sync/mutex.c"
enum { MUTEX_QUEUED = QUEUED };
#undef QUEUED
#include "../../marcel/sync/cond.c"

static marcel_mutex_t mutex;
static marcel_cond_t cond;
static int inside, entered, users;
static bool flag, waited;

static void section(void)
{
	explore_check(inside == 0);
	inside = 1;
	entered++;
	inside = 0;
}

static void lock(void *arg)
{
	marcel_mutex_lock(&mutex);
	section();
	marcel_mutex_unlock(&mutex);
}

static void lock_twice(void *arg)
{
	lock(arg);
	lock(arg);
}

/* The last of the users frees it. */
static void drop(void *arg)
{
	bool last;

	marcel_mutex_lock(&mutex);
	section();
	last = --users == 0;
	marcel_mutex_unlock(&mutex);
	if (last)
		explore_gone(&mutex, sizeof(mutex));
}

static void try_lock(void *arg)
{
	if (marcel_mutex_trylock(&mutex) != 0)
		return;
	section();
	marcel_mutex_unlock(&mutex);
}

static void all_have_entered(void)
{
	explore_check(entered == users);
	explore_check(inside == 0);
	explore_check(marcel_mutex_destroy(&mutex) == 0);
}

static void names(void)
{
	world_init();
	explore_name(&mutex, sizeof(mutex), "mutex");
	explore_name(&cond, sizeof(cond), "cond");
	explore_name(&inside, sizeof(inside), "inside");
	explore_name(&flag, sizeof(flag), "flag");
	explore_name(&users, sizeof(users), "users");
}

/* It was locked before the others came. */
static void leave(void *arg)
{
	section();
	marcel_mutex_unlock(&mutex);
}

/* Finds it locked at first, as an execution of lock() would. */
static void wait_and_lock(void *arg)
{
	lock_slow((struct marcel_mutex *)&mutex, marcel_thread_self(), NULL);
	section();
	marcel_mutex_unlock(&mutex);
}

EXPLORE(one_at_a_time_and_all_get_it)
{
	names();
	users = 3;
	marcel_mutex_lock(&mutex);
	explore_spawn("holder", leave, NULL);
	explore_spawn("one", wait_and_lock, NULL);
	explore_spawn("two", wait_and_lock, NULL);
	explore_finish(all_have_entered);
}

EXPLORE(who_locks_again_does_not_shut_the_other_out)
{
	names();
	users = 3;
	explore_spawn("once", lock, NULL);
	explore_spawn("twice", lock_twice, NULL);
	explore_finish(all_have_entered);
}

EXPLORE(the_last_user_may_free_it)
{
	names();
	users = 2;
	explore_spawn("one", drop, NULL);
	explore_spawn("two", drop, NULL);
}

EXPLORE(a_try_sees_what_the_last_holder_did)
{
	names();
	explore_spawn("twice", lock_twice, NULL);
	explore_spawn("tries", try_lock, NULL);
}

static void wait_for_flag(void *arg)
{
	marcel_mutex_lock(&mutex);
	while (!flag)
		marcel_cond_wait(&cond, &mutex);
	section();
	marcel_mutex_unlock(&mutex);
}

static void signal_inside(void *arg)
{
	marcel_mutex_lock(&mutex);
	flag = true;
	marcel_cond_signal(&cond);
	section();
	marcel_mutex_unlock(&mutex);
}

static void broadcast_outside(void *arg)
{
	marcel_mutex_lock(&mutex);
	flag = true;
	section();
	marcel_mutex_unlock(&mutex);
	marcel_cond_broadcast(&cond);
}

EXPLORE(a_signal_with_the_mutex_held_wakes_who_waits)
{
	names();
	users = 2;
	explore_spawn("waiter", wait_for_flag, NULL);
	explore_spawn("signals", signal_inside, NULL);
	explore_finish(all_have_entered);
}

EXPLORE(a_broadcast_with_the_mutex_free_wakes_who_waits)
{
	names();
	users = 2;
	explore_spawn("waiter", wait_for_flag, NULL);
	explore_spawn("broadcasts", broadcast_outside, NULL);
	explore_finish(all_have_entered);
}

/* Who was waited for frees the condition while the waiter still gets up. */
static void wait_on_doomed(void *arg)
{
	marcel_mutex_lock(&mutex);
	waited = true;
	while (!flag)
		marcel_cond_wait(&cond, &mutex);
	marcel_mutex_unlock(&mutex);
}

static void broadcast_and_free(void *arg)
{
	marcel_mutex_lock(&mutex);
	flag = true;
	if (waited) {
		marcel_cond_broadcast(&cond);
		explore_gone(&cond, sizeof(cond));
	}
	marcel_mutex_unlock(&mutex);
}

EXPLORE(a_condition_may_be_freed_right_after_its_broadcast)
{
	names();
	explore_spawn("waiter", wait_on_doomed, NULL);
	explore_spawn("frees", broadcast_and_free, NULL);
}

/* --- a mutex, in time --- */

/* Finds it locked at first, as an execution of timedlock() would. */
static void lock_in_time(void *arg)
{
	struct marcel_until until = { CLOCK_REALTIME, &soon };
	int rc = lock_slow((struct marcel_mutex *)&mutex, marcel_thread_self(),
			   &until);

	if (rc == 0) {
		section();
		marcel_mutex_unlock(&mutex);
	}
	note(rc);
	frames_are_gone(__builtin_frame_address(0));
}

static void mutex_is_free(void)
{
	one_end();
	explore_check(marcel_mutex_destroy(&mutex) == 0);
}

EXPLORE(an_unlock_and_a_time_end_a_wait_once)
{
	names();
	name_timers();
	marcel_mutex_lock(&mutex);
	explore_spawn("waiter", lock_in_time, NULL);
	explore_spawn("unlocks", leave, NULL);
	explore_spawn("expires", time_passes, NULL);
	explore_finish(mutex_is_free);
}

/* --- that a process has from its maker --- */

/* Nobody reads who waited there. */
#define DEAD ((struct marcel_waiter *)8)

static void inherit(uint32_t word, int n)
{
	struct marcel_mutex *m = (struct marcel_mutex *)&mutex;

	names();
	explore_name(&marcel_generation, sizeof(marcel_generation),
		     "generation");
	marcel_generation = 1;
	store_relaxed(&m->guard.word, word);
	m->queue.last = DEAD;
	users = n;
}

EXPLORE(who_waited_in_another_process_is_forgotten)
{
	inherit(LOCKED | MUTEX_QUEUED, 2);
	explore_spawn("holder", leave, NULL);
	explore_spawn("other", wait_and_lock, NULL);
	explore_finish(all_have_entered);
}

EXPLORE(a_guard_that_nobody_alive_holds_is_taken_over)
{
	inherit(MARCEL_GUARDED, 2);
	explore_spawn("one", lock, NULL);
	explore_spawn("two", lock, NULL);
	explore_finish(all_have_entered);
}

EXPLORE(who_takes_it_over_sees_what_was_done_before)
{
	inherit(0, 2);
	explore_spawn("one", lock, NULL);
	explore_spawn("two", wait_and_lock, NULL);
	explore_finish(all_have_entered);
}
