/*
 * marcel/sync/event.c: no wake is lost, the waiter sees what was done before
 * the set, and both the event and the group of a wait for any may go away as
 * soon as the waiter returns.
 *
 * covers: event group
 */
#include "sync_timers.h"

#include "../../marcel/sync/event.c"

enum { MANY = 3 };

static marcel_event_t events[MANY];
static int data[MANY];

static void set(void *arg)
{
	int i = (int)(intptr_t)arg;

	data[i] = i + 1;
	marcel_event_set(&events[i]);
}

static void wait(void *arg)
{
	marcel_event_wait(&events[0]);
	explore_check(data[0] == 1);
	explore_gone(&events[0], sizeof(events[0]));
}

static void poll(void *arg)
{
	if (marcel_event_test(&events[0]))
		explore_check(data[0] == 1);
}

static int called;

/* Whoever calls it: the setter, or who comes too late to have it called. */
static void end(struct marcel_event_call *call)
{
	explore_check(data[0] == 1);
	called++;
	explore_gone(&events[0], sizeof(events[0]));
	explore_gone(call, sizeof(*call));
}

static void leave_a_call(void *arg)
{
	static struct marcel_event_call call;

	call.fn = end;
	if (marcel_event_call(&events[0], &call) != 0)
		end(&call);
}

static void called_once(void)
{
	explore_check(called == 1);
}

static void names(void)
{
	world_init();
	for (int i = 0; i < MANY; i++) {
		explore_name(&events[i], sizeof(events[i]), "event %d", i);
		explore_name(&data[i], sizeof(data[i]), "data %d", i);
	}
}

EXPLORE(the_waiter_is_woken_and_may_free_it)
{
	names();
	explore_spawn("waiter", wait, NULL);
	explore_spawn("setter", set, (void *)0);
}

EXPLORE(a_function_is_called_once_and_may_free_it)
{
	names();
	explore_spawn("caller", leave_a_call, NULL);
	explore_spawn("setter", set, (void *)0);
	explore_finish(called_once);
}

EXPLORE(who_tests_sees_what_was_done_before)
{
	names();
	explore_spawn("poller", poll, NULL);
	explore_spawn("setter", set, (void *)0);
}

static BASE_NOINLINE int find_any(int n)
{
	marcel_event_t *any[MANY];
	size_t i;

	for (int k = 0; k < n; k++)
		any[k] = &events[k];
	i = marcel_event_wait_any(any, (size_t)n);
	explore_check(i < (size_t)n);
	explore_check(data[i] == (int)i + 1);
	explore_check(marcel_event_test(&events[i]));
	return (int)i;
}

/* Takes one after the other, as MPI_Waitany in a loop. */
static void take_two(void *arg)
{
	int found = find_any(2);

	marcel_event_wait(&events[1 - found]);
	explore_check(data[1 - found] == 2 - found);
	explore_gone(events, 2 * sizeof(events[0]));
}

/* The frame of the wait, where the group was, is gone when it has returned. */
static void take_any(void *arg)
{
	enum { DEPTH = 1024 };
	char *here = __builtin_frame_address(0);

	find_any((int)(intptr_t)arg);
	explore_gone(here - DEPTH, DEPTH);
}

EXPLORE(any_of_two_and_then_the_other)
{
	names();
	explore_spawn("waiter", take_two, NULL);
	explore_spawn("setter 0", set, (void *)0);
	explore_spawn("setter 1", set, (void *)1);
}

EXPLORE(any_of_two_when_one_is_never_set)
{
	names();
	explore_spawn("waiter", take_any, (void *)2);
	explore_spawn("setter 1", set, (void *)1);
}

EXPLORE(all_setters_have_left_the_group)
{
	names();
	explore_spawn("waiter", take_any, (void *)3);
	explore_spawn("setter 0", set, (void *)0);
	explore_spawn("setter 1", set, (void *)1);
	explore_spawn("setter 2", set, (void *)2);
}

/* --- in time --- */

/* When who waits waits until. */
enum { SOON_NS = 2000000000 };

static void wait_in_time(void *arg)
{
	int rc = marcel_event_wait_until(&events[0], SOON_NS);

	if (rc == 0)
		explore_check(data[0] == 1);
	note(-rc);
	frames_are_gone(__builtin_frame_address(0));
}

EXPLORE(a_set_and_a_time_end_a_wait_once)
{
	names();
	name_timers();
	explore_spawn("waiter", wait_in_time, NULL);
	explore_spawn("setter", set, (void *)0);
	explore_spawn("expires", time_passes, NULL);
	explore_finish(one_end);
}

static void wait_and_free(void *arg)
{
	if (marcel_event_wait_until(&events[0], SOON_NS) != 0)
		marcel_event_wait(&events[0]);
	explore_check(data[0] == 1);
	explore_gone(&events[0], sizeof(events[0]));
	note(0);
}

EXPLORE(the_event_may_be_freed_when_it_was_set_in_time)
{
	names();
	name_timers();
	explore_spawn("waiter", wait_and_free, NULL);
	explore_spawn("setter", set, (void *)0);
	explore_spawn("expires", time_passes, NULL);
	explore_finish(one_end);
}

static BASE_NOINLINE size_t wait_any_in_time(void)
{
	marcel_event_t *any[] = { &events[0], &events[1] };

	return marcel_event_wait_any_until(any, 2, SOON_NS);
}

static void take_any_in_time(void *arg)
{
	size_t i = wait_any_in_time();

	if (i < 2)
		explore_check(data[i] == (int)i + 1);
	note(i < 2 ? 0 : ETIMEDOUT);
	frames_are_gone(__builtin_frame_address(0));
}

EXPLORE(sets_and_a_time_end_a_wait_for_any_once)
{
	names();
	name_timers();
	explore_spawn("waiter", take_any_in_time, NULL);
	explore_spawn("setter 0", set, (void *)0);
	explore_spawn("expires", time_passes, NULL);
	explore_spawn("setter 1", set, (void *)1);
	explore_finish(one_end);
}
