/* marcel/sched/hook.c: when hooks run, and that removal is final. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <base/pin.h>
#include "../../../marcel/sched/vp.h"
#include "../with.h"

static ATOMIC(int) calls, answer, vps_seen, pinned;

static enum marcel_hook_answer count(void *arg, int vp)
{
	(void)arg;
	CHECK_INT(vp, marcel_current_vp());
	fetch_add_relaxed(&calls, 1);
	fetch_add_relaxed(&pinned, base_is_pinned());
	fetch_or_relaxed(&vps_seen, 1 << vp);
	return (enum marcel_hook_answer)load_relaxed(&answer);
}

static struct marcel_hook hook = { .fn = count };

static void reset(enum marcel_hook_answer a)
{
	store_relaxed(&calls, 0);
	store_relaxed(&vps_seen, 0);
	store_relaxed(&pinned, 0);
	store_relaxed(&answer, (int)a);
}

TEST_VPS(nonsense_is_refused)
{
	struct marcel_hook empty = { 0 };

	CHECK_INT(marcel_hook_add(MARCEL_HOOK_POINTS, &hook), -EINVAL);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, NULL), -EINVAL);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &empty), -EINVAL);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_POINTS, &hook), -EINVAL);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &hook), -ENOENT);
}

static void wake_self(void *arg)
{
	marcel_wake(arg);
}

TEST_VPS(the_switch_hook_runs_before_each_yield_and_park)
{
	reset(MARCEL_HOOK_NOTHING);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &hook), 0);
	for (int i = 0; i < 10; i++)
		marcel_yield();
	CHECK_INT(load_relaxed(&calls), 10);
	for (int i = 0; i < 10; i++)
		marcel_park(wake_self, marcel_self());
	CHECK_INT(load_relaxed(&calls), 20);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &hook), 0);
	marcel_yield();
	CHECK_INT(load_relaxed(&calls), 20);
}

static enum marcel_hook_answer fail(void *arg, int vp)
{
	(void)vp;
	fetch_add_relaxed(&calls, 1);
	*marcel_errno_location() = EAGAIN;
	return *(enum marcel_hook_answer *)arg;
}

TEST_VPS(errno_of_a_hook_is_not_that_of_the_thread_on_whose_stack_it_runs)
{
	enum marcel_hook_answer a = MARCEL_HOOK_NOTHING;
	struct marcel_hook failing = { .fn = fail, .arg = &a };
	int errors[2];

	reset(a);
	for (int i = 0; i < MARCEL_HOOK_POINTS; i++)
		CHECK_INT(marcel_hook_add((enum marcel_hook_point)i, &failing),
			  0);
	*marcel_errno_location() = EDOM;
	marcel_yield();
	errors[0] = *marcel_errno_location();
	marcel_park(wake_self, marcel_self());
	errors[1] = *marcel_errno_location();
	for (int i = 0; i < MARCEL_HOOK_POINTS; i++)
		CHECK_INT(
			marcel_hook_remove((enum marcel_hook_point)i, &failing),
			0);
	CHECK(load_relaxed(&calls) >= 2);
	CHECK_INT(errors[0], EDOM);
	CHECK_INT(errors[1], EDOM);
}

TEST_VPS(a_hook_is_pinned_and_a_thread_is_where_it_says_so)
{
	reset(MARCEL_HOOK_NOTHING);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &hook), 0);
	marcel_yield();
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &hook), 0);
	CHECK_INT(load_relaxed(&pinned), 1);
	CHECK(!base_is_pinned());
	base_pin();
	base_pin();
	base_unpin();
	CHECK(base_is_pinned());
	base_unpin();
	CHECK(!base_is_pinned());
}

enum { CHAIN = 100 };

static marcel_event_t chain_over;

/* Makes the next one and ends: its VP is never idle, and nobody yields. */
static void *link_of_chain(void *arg)
{
	marcel_attr_t attr;
	marcel_t t;

	if (arg == NULL) {
		marcel_event_set(&chain_over);
		return NULL;
	}
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED), 0);
	CHECK_INT(marcel_create(&t, &attr, link_of_chain, (char *)arg - 1), 0);
	return NULL;
}

/* Elsewhere one may be on its way to its end still; main does not switch. */
static bool all_have_ended(void)
{
	uint64_t left = 0;

	for (int i = 0; i < marcel_sched.nvp; i++)
		left += load_relaxed(&marcel_sched.vps[i].created) -
			load_relaxed(&marcel_sched.vps[i].ended);
	return left == 0;
}

TEST_VPS(the_switch_hook_runs_before_each_end)
{
	marcel_event_init(&chain_over);
	reset(MARCEL_HOOK_NOTHING);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &hook), 0);
	link_of_chain((void *)(intptr_t)CHAIN);
	marcel_event_wait(&chain_over);
	while (!all_have_ended())
		sched_yield();
	CHECK(load_relaxed(&calls) >= CHAIN);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &hook), 0);
}

/* --- idle --- */

static ATOMIC(marcel_t) waiter;

static void show_waiter(void *arg)
{
	store_release(&waiter, arg);
}

static int calls_each; /* of the hook, until it wakes somebody */

/* Wakes whoever waits, after some calls that found nothing yet. */
static enum marcel_hook_answer wake_later(void *arg, int vp)
{
	marcel_t t;

	(void)arg;
	(void)vp;
	if ((fetch_add_relaxed(&calls, 1) + 1) % calls_each != 0)
		return MARCEL_HOOK_PENDING;
	t = xchg_acq_rel(&waiter, NULL);
	if (t == NULL)
		return MARCEL_HOOK_PENDING;
	marcel_wake(t);
	return MARCEL_HOOK_WORKED;
}

static void park_while_pending(void)
{
	struct marcel_hook later = { .fn = wake_later };
	int times = calls_each > 100 ? 3 : 20;

	reset(MARCEL_HOOK_PENDING);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &later), 0);
	for (int i = 0; i < times; i++)
		marcel_park(show_waiter, marcel_self());
	CHECK(load_relaxed(&calls) >= times * calls_each);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &later), 0);
}

/* The time is over for which it looks without giving the CPU away. */
TEST(an_idle_vp_polls_as_long_as_something_is_pending)
{
	calls_each = 20;
	setenv("MARCEL_SPIN_US", "0", 1);
	with_vps(1, park_while_pending);
	with_vps(4, park_while_pending);
	unsetenv("MARCEL_SPIN_US");
}

/* First the time in which it keeps the CPU, and then on. */
TEST(an_idle_vp_polls_without_a_break_and_then_with_breaks)
{
	if (EMULATED)
		check_skip("3000 calls take too long");
	calls_each = 1000;
	with_vps(1, park_while_pending);
}

/* As the VP has said that it sleeps, and looks once more. */
static enum marcel_hook_answer wake_at_last(void *arg, int vp)
{
	uint32_t how = load_relaxed(&marcel_sched.vps[vp].sleeper.asleep);
	marcel_t t;

	(void)arg;
	if (how != MARCEL_ASLEEP && how != MARCEL_WATCHING)
		return MARCEL_HOOK_NOTHING;
	t = xchg_acq_rel(&waiter, NULL);
	if (t != NULL)
		marcel_wake(t);
	return MARCEL_HOOK_NOTHING;
}

TEST_VPS(whom_a_hook_wakes_as_its_vp_falls_asleep_is_run)
{
	struct marcel_hook last = { .fn = wake_at_last };

	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &last), 0);
	for (int i = 0; i < 100; i++)
		marcel_park(show_waiter, marcel_self());
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &last), 0);
}

/* --- between two looks --- */

enum { LOOKS = 200 };

static ATOMIC(int) asked;
static bool calls_vp;

static bool ask(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	fetch_add_relaxed(&asked, 1);
	return calls_vp;
}

/* Nothing, until the VP has looked so often. */
static enum marcel_hook_answer wake_after_looks(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	if (fetch_add_relaxed(&calls, 1) < LOOKS)
		return MARCEL_HOOK_NOTHING;
	marcel_wake(xchg_acq_rel(&waiter, NULL));
	return MARCEL_HOOK_WORKED;
}

/* However long others have the CPU meanwhile, the VP searches on. */
static void idle_for_some_looks(void)
{
	struct marcel_hook hook = { .fn = wake_after_looks, .wanted = ask };

	marcel_sched.spin_ns = UINT64_MAX;
	store_relaxed(&calls, 0);
	store_relaxed(&asked, 0);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &hook), 0);
	marcel_park(show_waiter, marcel_self());
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &hook), 0);
}

static void with_long_search(bool called)
{
	calls_vp = called;
	with_vps(1, idle_for_some_looks);
}

TEST(an_idle_vp_asks_what_is_for_it_alone_more_often_than_it_looks)
{
	with_long_search(false);
	CHECK(load_relaxed(&asked) > 5 * LOOKS);
}

TEST(and_looks_at_once_if_there_is_something)
{
	with_long_search(true);
	CHECK(load_relaxed(&asked) <= LOOKS);
}

static ATOMIC(int) ran;

static void *parks_once(void *arg)
{
	marcel_park(show_waiter, marcel_self());
	store_release(&ran, 1);
	return arg;
}

/* There the VP counts as asleep until its spare has something to do. */
TEST_VPS(whom_a_hook_wakes_as_a_section_begins_is_run)
{
	struct marcel_hook last = { .fn = wake_at_last };
	marcel_t t;

	for (int i = 0; i < 20; i++) {
		store_relaxed(&ran, 0);
		CHECK_INT(marcel_create(&t, NULL, parks_once, NULL), 0);
		while (load_acquire(&waiter) == NULL)
			marcel_yield();
		CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &last), 0);
		marcel_blocking_begin();
		while (load_acquire(&ran) == 0)
			sched_yield();
		marcel_blocking_end();
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &last), 0);
	}
}

/* --- kick --- */

static ATOMIC(int) work;

static enum marcel_hook_answer take_work(void *arg, int vp)
{
	int given = 1;
	marcel_t t;

	(void)arg;
	(void)vp;
	if (load_seq(&work) != 1 || !cas_seq(&work, &given, 2))
		return MARCEL_HOOK_NOTHING;
	t = xchg_acq_rel(&waiter, NULL);
	store_release(&work, 0);
	marcel_wake(t);
	return MARCEL_HOOK_WORKED;
}

/* From outside: each piece of work must be seen though all VPs may sleep. */
static void *give_work(void *arg)
{
	for (int i = 0; i < HANDOVERS; i++) {
		while (load_acquire(&work) != 0 ||
		       load_acquire(&waiter) == NULL)
			sched_yield();
		store_seq(&work, 1);
		marcel_kick(marcel_topo_machine());
	}
	return arg;
}

TEST_VPS(a_kick_wakes_a_vp_that_runs_the_idle_hooks)
{
	struct marcel_hook taker = { .fn = take_work };
	pthread_t p;

	store_relaxed(&work, 0);
	store_relaxed(&waiter, NULL);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &taker), 0);
	CHECK_INT(pthread_create(&p, NULL, give_work, NULL), 0);
	for (int i = 0; i < HANDOVERS; i++)
		marcel_park(show_waiter, marcel_self());
	CHECK_INT(pthread_join(p, NULL), 0);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &taker), 0);
}

/* --- removal --- */

static ATOMIC(int) removed, late;

static enum marcel_hook_answer must_not_be_removed(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	fetch_add_relaxed(&calls, 1);
	for (int i = 0; i < 100; i++)
		if (load_relaxed(&removed))
			fetch_add_relaxed(&late, 1);
	return MARCEL_HOOK_PENDING;
}

TEST_VPS(after_removal_no_vp_runs_the_hook)
{
	struct marcel_hook h = { .fn = must_not_be_removed };

	reset(MARCEL_HOOK_PENDING);
	store_relaxed(&late, 0);
	for (int i = 0; i < 100; i++) {
		store_relaxed(&removed, 0);
		CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &h), 0);
		CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &h), 0);
		for (int j = 0; j < 20; j++)
			marcel_yield();
		CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &h), 0);
		CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &h), 0);
		store_seq(&removed, 1);
		sched_yield();
	}
	CHECK_INT(load_relaxed(&late), 0);
	CHECK(load_relaxed(&calls) >= 2000);
}

/* --- what the scheduler tells --- */

static void *nothing(void *arg)
{
	return arg;
}

static void queue_one(void)
{
	marcel_t t;

	CHECK(!marcel_others_ready());
	CHECK_INT(marcel_create(&t, NULL, nothing, NULL), 0);
	CHECK(marcel_others_ready());
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK(!marcel_others_ready());
}

TEST(others_ready_tells_of_queued_threads)
{
	CHECK(!marcel_others_ready());
	without_ticks(queue_one);
}

/* --- who is woken by the tick's hook, among threads that compute --- */

/* TSan keeps signals from a thread until it calls something: no tick comes. */
static void needs_ticks(void)
{
#ifdef __SANITIZE_THREAD__
	check_skip("TSan lets no tick through to who computes");
#endif
}

enum { WAKES = 20, BUSY = 3 };

static ATOMIC(marcel_t) sleeper;
static ATOMIC(int) over;
static ATOMIC(uint64_t) turns[BUSY];
static uint32_t at_wake;

static bool may_wake(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	return load_relaxed(&sleeper) != NULL;
}

static enum marcel_hook_answer wakes(void *arg, int vp)
{
	marcel_t t = xchg_acq_rel(&sleeper, NULL);

	(void)arg;
	if (t == NULL)
		return MARCEL_HOOK_NOTHING;
	at_wake = load_relaxed(&marcel_sched.vps[vp].preempted);
	marcel_wake(t);
	return MARCEL_HOOK_WORKED;
}

static void shows(void *arg)
{
	store_release(&sleeper, (marcel_t)arg);
}

static void *computes(void *arg)
{
	ATOMIC(uint64_t) *turn = arg;

	while (load_relaxed(&over) == 0)
		store_relaxed(turn, load_relaxed(turn) + 1);
	return NULL;
}

/* A real-time thread among threads that compute. */
static void hook_wakes(void *(*urgent)(void *))
{
	struct marcel_hook waker = { .fn = wakes, .wanted = may_wake };
	marcel_t realtime, busy[BUSY];
	marcel_attr_t attr;

	store_relaxed(&over, 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME), 0);
	CHECK_INT(marcel_create(&realtime, &attr, urgent, NULL), 0);
	while (load_relaxed(&sleeper) == NULL)
		marcel_yield();
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_TICK, &waker), 0);
	for (int i = 0; i < BUSY; i++)
		CHECK_INT(marcel_create(&busy[i], NULL, computes, &turns[i]),
			  0);
	CHECK_INT(marcel_join(realtime, NULL), 0);
	for (int i = 0; i < BUSY; i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_TICK, &waker), 0);
}

static void *is_not_late(void *arg)
{
	for (int i = 0; i < WAKES; i++) {
		marcel_park(shows, marcel_self());
		CHECK_INT(load_relaxed(&marcel_sched.vps[0].preempted),
			  at_wake);
	}
	store_relaxed(&over, 1);
	return arg;
}

static void one_vp(void)
{
	hook_wakes(is_not_late);
}

/* Before the one that was picked when the slice ended: no slice goes by. */
TEST(a_real_time_thread_that_a_hook_of_the_tick_wakes_is_next)
{
	needs_ticks();
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	with_vps(1, one_vp);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* All but one, which LWP 0 may keep while this thread has VP 0. */
static void *sees_others_go_on(void *arg)
{
	for (int i = 0; i < WAKES; i++) {
		uint64_t was[BUSY];
		int n;

		marcel_park(shows, marcel_self());
		for (int k = 0; k < BUSY; k++)
			was[k] = load_relaxed(&turns[k]);
		do {
			n = 0;
			for (int k = 0; k < BUSY; k++)
				n += load_relaxed(&turns[k]) != was[k];
		} while (n < BUSY - 1);
	}
	store_relaxed(&over, 1);
	return arg;
}

static void two_vps(void)
{
	hook_wakes(sees_others_go_on);
}

/* Whom it displaces, the other VP runs. */
TEST(nobody_is_stranded_beside_a_real_time_thread_that_a_hook_has_woken)
{
	needs_ticks();
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	with_vps(2, two_vps);
	unsetenv("MARCEL_TIMESLICE_US");
}
