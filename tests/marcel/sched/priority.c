/*
 * Bands of priority: who runs before whom, and that nobody waits for ever
 * among equals, wherever they may run.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <base/atomic.h>
#include <base/pin.h>
#include "../../../marcel/sched/runq.h"
#include "../../../marcel/sched/tick.h"
#include "../loose.h"
#include "../parked.h"

enum {
	IDLE = MARCEL_PRIORITY_IDLE,
	NORMAL = MARCEL_PRIORITY_NORMAL,
	REALTIME = MARCEL_PRIORITY_REALTIME
};

static ATOMIC(int) stop, count;
static ATOMIC(int) order[100]; /* who ran, in this order */

static void *note(void *arg)
{
	store_relaxed(&order[fetch_add_relaxed(&count, 1)], (int)(long)arg);
	return NULL;
}

static marcel_t start(int priority, int vp, void *(*fn)(void *), void *arg)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpriority(&attr, priority), 0);
	if (vp >= 0)
		CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
	CHECK_INT(marcel_create(&t, &attr, fn, arg), 0);
	return t;
}

static void join(marcel_t t)
{
	CHECK_INT(marcel_join(t, NULL), 0);
}

static void forget(void)
{
	store_relaxed(&stop, 0);
	store_relaxed(&count, 0);
}

/* --- what can be said --- */

static void *nothing(void *arg)
{
	return arg;
}

static void *as_foreign(void *arg)
{
	int got = 100;

	CHECK_INT(marcel_setpriority(marcel_self(), REALTIME), ENOTSUP);
	CHECK_INT(marcel_getpriority(marcel_self(), &got), 0);
	CHECK_INT(got, NORMAL);
	join(start(REALTIME, -1, nothing, NULL));
	join(start(IDLE, marcel_nvp() - 1, nothing, NULL));
	return arg;
}

TEST_VPS(a_priority_is_one_of_three)
{
	static const int bad[] = { IDLE - 1, REALTIME + 1, 99, -99 };
	marcel_attr_t attr, none;
	pthread_t p;
	int got = 100;

	memset(&none, 0, sizeof(none));
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_getpriority(&attr, &got), 0);
	CHECK_INT(got, NORMAL);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(marcel_attr_setpriority(&attr, bad[i]), EINVAL);
		CHECK_INT(marcel_setpriority(marcel_self(), bad[i]), EINVAL);
	}
	CHECK_INT(marcel_attr_setpriority(&none, NORMAL), EINVAL);
	CHECK_INT(marcel_attr_getpriority(&none, &got), EINVAL);
	for (int i = IDLE; i <= REALTIME; i++) {
		CHECK_INT(marcel_attr_setpriority(&attr, i), 0);
		CHECK_INT(marcel_attr_getpriority(&attr, &got), 0);
		CHECK_INT(got, i);
		CHECK_INT(marcel_setpriority(marcel_self(), i), 0);
		CHECK_INT(marcel_getpriority(marcel_self(), &got), 0);
		CHECK_INT(got, i);
	}
	CHECK_INT(marcel_setpriority(marcel_self(), NORMAL), 0);
	CHECK_INT(pthread_create(&p, NULL, as_foreign, NULL), 0);
	marcel_blocking_begin();
	CHECK_INT(pthread_join(p, NULL), 0);
	marcel_blocking_end();
}

static void *my_priority(void *arg)
{
	return (void *)(long)marcel_getpriority(marcel_self(), arg);
}

TEST_VPS(a_thread_has_what_its_attribute_says_and_not_its_makers)
{
	int got;

	CHECK_INT(marcel_setpriority(marcel_self(), IDLE), 0);
	for (int i = IDLE; i <= REALTIME; i++) {
		join(start(i, -1, my_priority, &got));
		CHECK_INT(got, i);
	}
	CHECK_INT(marcel_setpriority(marcel_self(), NORMAL), 0);
}

/* --- one VP: who is before whom --- */

/* Three of each band, made in mixed order, run by bands and in that order. */
static void bands_in_order(void)
{
	static const int made[] = { NORMAL, IDLE, REALTIME };
	marcel_t t[9];

	forget();
	for (long i = 0; i < 9; i++)
		t[i] = start(made[i % 3], -1, note,
			     (void *)(made[i % 3] * 100L + i));
	for (int i = 0; i < 9; i++)
		join(t[i]);
	for (int i = 0; i < 9; i++) {
		int got = load_relaxed(&order[i]);

		CHECK_INT((got + 150) / 100 - 1, 1 - i / 3);
		if (i % 3 != 0 && i / 3 != 1) /* seeds: newest first */
			CHECK(got > load_relaxed(&order[i - 1]));
	}
}

TEST(bands_run_in_their_order)
{
	without_ticks(bands_in_order);
}

static marcel_sem_t sem[3];

static void *wait_and_note(void *arg)
{
	long i = (long)arg;

	CHECK_INT(marcel_sem_wait(&sem[i]), 0);
	return note(arg);
}

/* Main wakes the least urgent first. */
static void woken_in_order(void)
{
	marcel_t t[3];

	forget();
	for (long i = 0; i < 3; i++) {
		CHECK_INT(marcel_sem_init(&sem[i], 0, 0), 0);
		t[i] = start((int)i - 1, -1, wait_and_note, (void *)i);
		until_parked_in_its_band(t[i]);
	}
	for (int i = 0; i < 3; i++)
		CHECK_INT(marcel_sem_post(&sem[i]), 0);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	for (int i = 0; i < 3; i++)
		CHECK_INT(load_relaxed(&order[i]), 2 - i);
}

TEST(the_most_urgent_of_those_woken_is_first)
{
	without_ticks(woken_in_order);
}

/* Wakes a normal thread, which would be next, then a real-time one; ends. */
static void *wake_two(void *arg)
{
	CHECK_INT(marcel_sem_post(&sem[1]), 0);
	CHECK_INT(marcel_sem_post(&sem[2]), 0);
	return arg;
}

static void end_behind_urgent(void)
{
	marcel_t t[3];

	forget();
	for (long i = 1; i < 3; i++) {
		CHECK_INT(marcel_sem_init(&sem[i], 0, 0), 0);
		t[i] = start((int)i - 1, -1, wait_and_note, (void *)i);
		until_parked_in_its_band(t[i]);
	}
	t[0] = start(NORMAL, -1, wake_two, NULL);
	join(t[0]);
	CHECK(load_relaxed(&count) >= 1);
	CHECK_INT(load_relaxed(&order[0]), 2);
	join(t[1]);
	join(t[2]);
}

TEST(a_real_time_thread_is_before_who_is_handed_over_to)
{
	without_ticks(end_behind_urgent);
}

static void *join_and_note(void *arg)
{
	marcel_t t = start(NORMAL, -1, note, (void *)1L);

	for (long i = 0; i < 3; i++)
		CHECK_INT(marcel_detach(start(NORMAL, -1, note, (void *)3L)),
			  0);
	join(t);
	note((void *)2L);
	return arg;
}

static void joiner_first(void)
{
	forget();
	join(start(REALTIME, -1, join_and_note, NULL));
	for (int i = 0; load_relaxed(&order[i]) != 2; i++)
		if (load_relaxed(&order[i]) == 1)
			CHECK_INT(load_relaxed(&order[i + 1]), 2);
}

TEST(a_real_time_thread_goes_on_when_who_it_joins_ends)
{
	without_ticks(joiner_first);
}

/* A change of the priority counts when it next waits. */
static void changed_while_it_waits(void)
{
	marcel_t t[2];

	forget();
	for (long i = 0; i < 2; i++) {
		CHECK_INT(marcel_sem_init(&sem[i], 0, 0), 0);
		t[i] = start(NORMAL, -1, wait_and_note, (void *)i);
		until_parked_in_its_band(t[i]);
	}
	CHECK_INT(marcel_setpriority(t[0], IDLE), 0);
	CHECK_INT(marcel_setpriority(t[1], REALTIME), 0);
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	CHECK_INT(marcel_sem_post(&sem[1]), 0);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	CHECK_INT(load_relaxed(&order[0]), 1);
	CHECK_INT(load_relaxed(&order[1]), 0);
}

TEST(a_priority_may_change_while_its_thread_waits)
{
	without_ticks(changed_while_it_waits);
}

/* --- who yields --- */

static void *yield_and_note(void *arg)
{
	for (int i = 0; i < 10; i++) {
		note(arg);
		marcel_yield();
	}
	return NULL;
}

static void alternate(void)
{
	marcel_t t[3];

	forget();
	t[2] = start(NORMAL, -1, note, (void *)2L);
	for (long i = 0; i < 2; i++)
		t[i] = start(REALTIME, -1, yield_and_note, (void *)i);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	for (int i = 0; i < 20; i++)
		CHECK_INT(load_relaxed(&order[i]), i % 2);
	CHECK_INT(load_relaxed(&order[20]), 2);
}

TEST(a_real_time_thread_makes_way_for_its_like_only)
{
	without_ticks(alternate);
}

enum { STORM = 50, YIELDS = 200 };

static void *yield_often(void *arg)
{
	for (int i = 0; i < YIELDS; i++)
		marcel_yield();
	fetch_add_relaxed(&count, 1);
	return arg;
}

static void *see_count(void *arg)
{
	store_relaxed(&order[0], load_relaxed(&count));
	return arg;
}

static void last_of_all(void)
{
	marcel_t t[STORM], idle;

	forget();
	idle = start(IDLE, -1, see_count, NULL);
	for (int i = 0; i < STORM; i++)
		t[i] = start(NORMAL, -1, yield_often, NULL);
	for (int i = 0; i < STORM; i++)
		join(t[i]);
	join(idle);
	CHECK_INT(load_relaxed(&order[0]), STORM);
}

TEST(an_idle_thread_runs_when_all_others_have)
{
	without_ticks(last_of_all);
}

/* It yields in an endless loop, and nobody waits for it. */
static void *yield_on(void *arg)
{
	while (load_relaxed(&stop) == 0)
		marcel_yield();
	return arg;
}

TEST_VPS(normal_threads_do_not_feel_idle_ones)
{
	marcel_t t[STORM], idle[10];

	forget();
	for (int i = 0; i < 10; i++)
		idle[i] = start(IDLE, i % 2 ? -1 : i % marcel_nvp(), yield_on,
				NULL);
	for (int i = 0; i < STORM; i++)
		t[i] = start(NORMAL, -1, yield_often, NULL);
	for (int i = 0; i < STORM; i++)
		join(t[i]);
	store_relaxed(&stop, 1);
	for (int i = 0; i < 10; i++)
		join(idle[i]);
}

static void *stops(void *arg)
{
	store_relaxed(&stop, 1);
	return arg;
}

/* Main keeps VP 0. */
static void by_another_vp(void)
{
	marcel_t t;

	for (int i = 0; i < HANDOVERS / 2; i++) {
		forget();
		t = start(IDLE, -1, stops, NULL);
		while (load_relaxed(&stop) == 0)
			sched_yield();
		join(t);
	}
}

TEST(a_vp_without_work_runs_idle_threads)
{
	with_vps(2, by_another_vp);
	with_vps(4, by_another_vp);
}

/* --- nobody starves among equals --- */

enum { EQUALS = 24, ENOUGH = 100 };

static ATOMIC(int) enough; /* threads that have run often enough */

static void *run_until_all_have(void *arg)
{
	int n = *(int *)arg, done = 0;

	while (load_relaxed(&enough) < n) {
		if (++done == ENOUGH)
			fetch_add_relaxed(&enough, 1);
		marcel_yield();
	}
	return NULL;
}

/* Everywhere at once: on one VP each, on some, on all. */
static void equals(int priority)
{
	int n = EQUALS, nvp = marcel_nvp();
	marcel_vpset_t set;
	marcel_attr_t attr;
	marcel_t t[EQUALS];

	store_relaxed(&enough, 0);
	/* Or they would not let main make the others. */
	CHECK_INT(marcel_setpriority(marcel_self(), priority), 0);
	for (int i = 0; i < EQUALS; i++) {
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setpriority(&attr, priority), 0);
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, i % nvp);
		marcel_vpset_add(&set, i / 2 % nvp);
		if (i % 3 != 0)
			CHECK_INT(marcel_attr_setvpset(&attr, &set), 0);
		CHECK_INT(marcel_create(&t[i], &attr, run_until_all_have, &n),
			  0);
	}
	CHECK_INT(marcel_setpriority(marcel_self(), NORMAL), 0);
	for (int i = 0; i < EQUALS; i++)
		join(t[i]);
}

static void all_equals(void)
{
	for (int i = IDLE; i <= REALTIME; i++)
		equals(i);
}

TEST(nobody_starves_among_equals)
{
	for (int nvp = 1; nvp <= 8; nvp *= 2)
		with_vps(nvp, all_equals);
}

/* --- where they run --- */

struct walker {
	marcel_t t;
	marcel_vpset_t set;
	unsigned seed;
};

enum { WALKERS = 40, STEPS = 200 / FEWER };

static struct walker walkers[WALKERS];
static ATOMIC(int) wrong;
static marcel_sem_t gate;

static unsigned draw(struct walker *w)
{
	w->seed = w->seed * 1103515245 + 12345;
	return w->seed >> 16;
}

/* It yields, waits and changes priorities. */
static void *walk(void *arg)
{
	struct walker *w = arg;

	for (int i = 0; i < STEPS; i++) {
		if (!marcel_vpset_has(&w->set, marcel_current_vp()))
			fetch_add_relaxed(&wrong, 1);
		switch (draw(w) % 4) {
		case 0:
			CHECK_INT(marcel_setpriority(marcel_self(),
						     (int)(draw(w) % 3) - 1),
				  0);
			break;
		case 1:
			CHECK_INT(marcel_sem_post(&gate), 0);
			CHECK_INT(marcel_sem_wait(&gate), 0);
			break;
		default:
			marcel_yield();
		}
	}
	return NULL;
}

static void all_walk(void)
{
	marcel_attr_t attr;

	store_relaxed(&wrong, 0);
	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
	for (int i = 0; i < WALKERS; i++) {
		struct walker *w = &walkers[i];

		w->seed = (unsigned)check_random();
		marcel_vpset_zero(&w->set);
		for (int vp = 0; vp < marcel_nvp(); vp++)
			if (draw(w) % 2 || vp == i % marcel_nvp())
				marcel_vpset_add(&w->set, vp);
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvpset(&attr, &w->set), 0);
		CHECK_INT(marcel_attr_setpriority(&attr, i % 3 - 1), 0);
		CHECK_INT(marcel_create(&w->t, &attr, walk, w), 0);
	}
	for (int i = 0; i < WALKERS; i++)
		join(walkers[i].t);
	CHECK_INT(load_relaxed(&wrong), 0);
	CHECK_INT(load_relaxed(&marcel_sched.before_switch), 0);
}

TEST(sets_are_honoured_whatever_the_priority)
{
	for (int nvp = 1; nvp <= 8; nvp *= 2)
		with_vps(nvp, all_walk);
}

/* --- threads that compute --- */

static void with_tick(int nvp, void (*body)(void))
{
	struct marcel_config config = { .nvp = nvp };

	if (BASE_TSAN)
		check_skip("there is no tick");
	forget();
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_TIMESLICE_US");
	body();
	CHECK_INT(marcel_end(), 0);
}

static void compute(void)
{
	while (load_relaxed(&stop) == 0)
		;
}

static void *start_urgent(void *arg)
{
	join(start(REALTIME, -1, stops, NULL));
	return arg;
}

static void urgent_from_outside(void)
{
	pthread_t p;

	CHECK_INT(pthread_create(&p, NULL, start_urgent, NULL), 0);
	compute();
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST(a_real_time_thread_comes_in_where_one_computes)
{
	with_tick(1, urgent_from_outside);
}

/* Main computes while an idle thread is ready: nobody is interrupted. */
static void undisturbed(void)
{
	marcel_t t = start(IDLE, -1, note, NULL);
	uint64_t looks = load_relaxed(&marcel_monitor.looks), ticks;

	while (load_relaxed(&marcel_monitor.looks) < looks + 3)
		;
	ticks = load_relaxed(&marcel_monitor.ticks);
	looks = load_relaxed(&marcel_monitor.looks);
	while (load_relaxed(&marcel_monitor.looks) < looks + 10)
		;
	CHECK_INT(load_relaxed(&marcel_monitor.ticks), ticks);
	CHECK_INT(load_relaxed(&count), 0);
	join(t);
	CHECK_INT(load_relaxed(&count), 1);
}

TEST(who_computes_is_not_interrupted_for_idle_threads)
{
	with_tick(1, undisturbed);
}

/* It makes them where it runs, and leaves them there. */
static void *make_and_stay(void *yields)
{
	marcel_t t[10];

	for (int i = 0; i < 10; i++)
		t[i] = start(NORMAL, -1, note, NULL);
	while (load_relaxed(&stop) == 0)
		if (yields != NULL)
			marcel_yield();
	for (int i = 0; i < 10; i++)
		join(t[i]);
	return NULL;
}

/* Main has VP 0, and never nothing to do there. */
static void beside_urgent(bool stays_yields, bool main_yields)
{
	marcel_t t;

	forget();
	t = start(REALTIME, 1, make_and_stay, stays_yields ? &stop : NULL);
	while (load_relaxed(&count) < 10)
		if (main_yields)
			marcel_yield();
	store_relaxed(&stop, 1);
	join(t);
}

static void all_beside_urgent(void)
{
	for (int i = 0; i < 4; i++)
		beside_urgent(i % 2, i / 2);
}

TEST(nobody_starves_where_a_real_time_thread_runs_while_another_vp_has_normal_ones)
{
	with_tick(2, all_beside_urgent);
}

static ATOMIC(int) turns[2];

/* Until both have seen the other run. */
static void *compute_by_turns(void *arg)
{
	long me = (long)arg;
	int i, other;

	for (i = 0; i < 3; i++) {
		other = load_relaxed(&turns[!me]);
		fetch_add_relaxed(&turns[me], 1);
		while (load_relaxed(&turns[!me]) == other && other < 3)
			;
	}
	fetch_add_relaxed(&count, 1);
	return NULL;
}

/*
 * The first runs, and is interrupted, on main's kernel thread. At the end of a
 * slice, a thread is ready some time after its VP has another: so the normal
 * one may be before the second's last turn.
 */
static void by_turns(void)
{
	marcel_t t[3];

	for (int i = 0; i < 2; i++)
		store_relaxed(&turns[i], 0);
	CHECK_INT(marcel_setpriority(marcel_self(), REALTIME), 0);
	t[2] = start(NORMAL, -1, see_count, NULL); /* which waits for main */
	for (long i = 0; i < 2; i++)
		t[i] = start(REALTIME, -1, compute_by_turns, (void *)i);
	CHECK_INT(marcel_setpriority(marcel_self(), NORMAL), 0);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK(load_relaxed(&order[0]) > 0);
}

TEST(real_time_threads_that_compute_take_turns_before_normal_ones)
{
	with_tick(1, by_turns);
}

static void *compute_and_count(void *arg)
{
	while (load_relaxed(&stop) == 0)
		if (is_without_vp())
			marcel_yield();
		else
			fetch_add_relaxed(&turns[0], 1);
	return arg;
}

/*
 * The idle thread that computed waits; but once for each time that it was let
 * go on without a VP, before this or now, it may count.
 */
static void *yield_undisturbed(void *arg)
{
	uint64_t before = loosened();
	int turn = load_relaxed(&turns[0]);

	yield_often(NULL);
	turn = load_relaxed(&turns[0]) - turn;
	if (turn > 1 + (int)(loosened() - before))
		fetch_add_relaxed(&wrong, 1);
	return arg;
}

static void *start_two(void *arg)
{
	while (load_relaxed(&turns[0]) == 0)
		sched_yield();
	for (int i = 0; i < 2; i++)
		join(start(NORMAL, -1, yield_undisturbed, NULL));
	store_relaxed(&stop, 1);
	return arg;
}

static void interrupted_idle(void)
{
	pthread_t p;

	store_relaxed(&turns[0], 0);
	store_relaxed(&wrong, 0);
	CHECK_INT(pthread_create(&p, NULL, start_two, NULL), 0);
	join(start(IDLE, -1, compute_and_count, NULL));
	CHECK_INT(pthread_join(p, NULL), 0);
	CHECK_INT(load_relaxed(&wrong), 0);
}

TEST(an_idle_thread_that_was_interrupted_waits_for_all_others)
{
	with_tick(1, interrupted_idle);
}

/* Both VPs compute; main cannot be interrupted, so the idle thread is. */
static void makes_way(void)
{
	marcel_t idle, t;

	store_relaxed(&turns[0], 0);
	idle = start(IDLE, -1, compute_and_count, NULL);
	while (load_relaxed(&turns[0]) == 0)
		sched_yield();
	base_pin();
	t = start(NORMAL, -1, stops, NULL);
	compute();
	base_unpin();
	join(t);
	join(idle);
}

TEST(an_idle_thread_makes_way_for_what_can_be_stolen)
{
	with_tick(2, makes_way);
}
