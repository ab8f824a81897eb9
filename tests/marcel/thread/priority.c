/*
 * Threads that are favoured for a while: before whom they run, for how long,
 * and that they need not wait for the end of a slice where others compute.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <base/clock.h>
#include "../../../marcel/sched/tick.h"
#include "../parked.h"

enum {
	IDLE = MARCEL_PRIORITY_IDLE,
	NORMAL = MARCEL_PRIORITY_NORMAL,
	REALTIME = MARCEL_PRIORITY_REALTIME
};

#define FOR_EVER UINT64_MAX /* longer than a test */

static ATOMIC(int) stop, count;
static ATOMIC(int) order[100]; /* who ran, in this order */
static marcel_sem_t sem[2];

static void forget(void)
{
	store_relaxed(&stop, 0);
	store_relaxed(&count, 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_sem_init(&sem[i], 0, 0), 0);
}

static void *note(void *arg)
{
	store_relaxed(&order[fetch_add_relaxed(&count, 1)], (int)(long)arg);
	return NULL;
}

static marcel_t start(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

static void join(marcel_t t)
{
	CHECK_INT(marcel_join(t, NULL), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Favoured for the shortest time that there is, and that is over. */
static void favour_for_a_moment(marcel_t t)
{
	uint64_t now = base_now_ns();

	CHECK_INT(marcel_favour(t, 1), 0);
	while (base_now_ns() <= now + 1)
		;
}

static int own_priority(marcel_t t)
{
	int got = 100;

	CHECK_INT(marcel_getpriority(t, &got), 0);
	return got;
}

/* --- what can be said --- */

static void *as_foreign(void *arg)
{
	CHECK_INT(marcel_favour(marcel_self(), FOR_EVER), ENOTSUP);
	CHECK_INT(marcel_favour_woken(marcel_self(), FOR_EVER), ENOTSUP);
	CHECK_INT(own_priority(marcel_self()), NORMAL);
	CHECK_INT(marcel_favour(arg, FOR_EVER), 0); /* main */
	return NULL;
}

TEST_VPS(a_foreign_thread_favours_and_is_not_favoured)
{
	pthread_t p;

	CHECK_INT(marcel_favour(NULL, 1), ESRCH);
	CHECK_INT(marcel_favour_woken(NULL, 1), ESRCH);
	CHECK_INT(pthread_create(&p, NULL, as_foreign, marcel_self()), 0);
	marcel_blocking_begin();
	CHECK_INT(pthread_join(p, NULL), 0);
	marcel_blocking_end();
	CHECK(marcel_thread_is_urgent(marcel_self()));
	CHECK_INT(own_priority(marcel_self()), NORMAL);
	CHECK_INT(marcel_favour(marcel_self(), 0), 0);
	CHECK(!marcel_thread_is_urgent(marcel_self()));
}

/* Whatever it is, and becomes meanwhile. */
TEST_VPS(a_favour_leaves_a_thread_its_own_priority)
{
	marcel_t self = marcel_self();

	for (int was = IDLE; was <= REALTIME; was++)
		for (int becomes = IDLE; becomes <= REALTIME; becomes++) {
			CHECK_INT(marcel_setpriority(self, was), 0);
			CHECK_INT(marcel_favour(self, FOR_EVER), 0);
			CHECK_INT(marcel_favour(self, FOR_EVER - 1), 0);
			CHECK_INT(own_priority(self), was);
			CHECK_INT(marcel_setpriority(self, becomes), 0);
			CHECK_INT(own_priority(self), becomes);
			CHECK_INT(marcel_thread_band_now(self),
				  MARCEL_BAND_REALTIME);
			if (was == NORMAL)
				favour_for_a_moment(self);
			else
				CHECK_INT(marcel_favour(self, 0), 0);
			CHECK_INT(marcel_thread_band_now(self),
				  MARCEL_BAND_NORMAL - becomes);
			CHECK_INT(own_priority(self), becomes);
			CHECK_INT(marcel_favour(self, 0), 0); /* none is left */
			CHECK_INT(own_priority(self), becomes);
		}
	CHECK_INT(marcel_setpriority(self, NORMAL), 0);
}

/* One that has ended may be favoured until it is joined, to no avail. */
static void no_heirs(void)
{
	marcel_t first, t;

	forget();
	first = start(nothing, NULL);
	while (load_relaxed(&first->state) != MARCEL_T_ENDED)
		marcel_yield();
	CHECK_INT(marcel_favour(first, FOR_EVER), 0);
	join(first);
	for (int i = 0; i < 100; i++) {
		t = start(nothing, NULL);
		CHECK(!marcel_thread_is_urgent(t));
		CHECK_INT(load_relaxed(&t->rest->favour), 0);
		CHECK_INT(marcel_favour(t, FOR_EVER), 0);
		join(t);
	}
}

TEST(a_thread_does_not_inherit_the_favour_of_one_that_has_gone)
{
	without_ticks(no_heirs);
}

/* --- one VP: who is before whom --- */

static void *wait_and_note(void *arg)
{
	long i = (long)arg;

	for (;;) {
		CHECK_INT(marcel_sem_wait(&sem[i]), 0);
		if (load_relaxed(&stop) != 0)
			return NULL;
		note(arg);
	}
}

/* Who of the two was first, when 0 is woken first and then 1. */
static int first_of(marcel_t *t)
{
	int at = load_relaxed(&count);

	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_sem_post(&sem[i]), 0);
	for (int i = 0; i < 2; i++)
		until_parked_in_its_band(t[i]);
	CHECK_INT(load_relaxed(&count), at + 2);
	return load_relaxed(&order[at]);
}

/* Of normal threads, the one that was woken last is first. */
static void first_if_favoured(void)
{
	marcel_t t[2];

	forget();
	for (long i = 0; i < 2; i++) {
		t[i] = start(wait_and_note, (void *)i);
		until_parked_in_its_band(t[i]);
	}
	CHECK_INT(first_of(t), 1);
	CHECK_INT(marcel_favour(t[0], FOR_EVER), 0);
	CHECK_INT(first_of(t), 0);
	CHECK_INT(first_of(t), 0);
	CHECK_INT(marcel_favour(t[0], 0), 0);
	CHECK_INT(first_of(t), 1);
	favour_for_a_moment(t[0]);
	CHECK_INT(first_of(t), 1);
	CHECK(!marcel_thread_has(t[0], MARCEL_F_BAND));
	CHECK_INT(marcel_setpriority(t[1], IDLE), 0);
	CHECK_INT(first_of(t), 0);
	CHECK_INT(marcel_favour(t[1], FOR_EVER), 0);
	CHECK_INT(first_of(t), 1);
	CHECK_INT(marcel_setpriority(t[0], REALTIME), 0);
	CHECK_INT(first_of(t), 0);
	CHECK_INT(marcel_favour(t[1], 0), 0);
	CHECK_INT(own_priority(t[1]), IDLE);
	CHECK_INT(first_of(t), 0);
	store_relaxed(&stop, 1);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(marcel_sem_post(&sem[i]), 0);
		join(t[i]);
	}
	CHECK_INT(load_relaxed(&marcel_sched.before_switch), 0);
}

TEST(a_thread_is_before_others_while_it_is_favoured)
{
	without_ticks(first_if_favoured);
}

/* Makes way, while a normal thread is ready, when its time is over. */
static void *yield_while_favoured(void *arg)
{
	marcel_t self = marcel_self();

	CHECK_INT(marcel_favour(self, FOR_EVER), 0);
	for (int i = 0; i < 100; i++)
		marcel_yield();
	note((void *)1L);
	CHECK(marcel_thread_is_urgent(self));
	CHECK(!marcel_others_ready());
	favour_for_a_moment(self);
	CHECK(marcel_others_ready());
	marcel_yield();
	note((void *)3L);
	return arg;
}

static void in_turn(void)
{
	marcel_t t[2];

	forget();
	t[1] = start(note, (void *)2L);
	t[0] = start(yield_while_favoured, NULL);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	for (int i = 0; i < 3; i++)
		CHECK_INT(load_relaxed(&order[i]), i + 1);
}

TEST(who_was_favoured_makes_way_for_normal_threads_again)
{
	without_ticks(in_turn);
}

static void urgent_beside_main(void)
{
	marcel_t t;

	forget();
	store_relaxed(&marcel_monitor.hurry, 0); /* the last one was ended so */
	t = start(wait_and_note, (void *)0L);
	until_parked_in_its_band(t);
	CHECK_INT(marcel_favour(t, FOR_EVER), 0);
	store_relaxed(&stop, 1);
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	CHECK_INT(load_relaxed(&marcel_monitor.hurry), 0);
	join(t);
}

TEST(where_no_slice_ends_nobody_is_told)
{
	without_ticks(urgent_beside_main);
}

/* --- threads that compute --- */

static void with_slices(const char *us, int nvp, void (*body)(void))
{
	if (BASE_TSAN)
		check_skip("there is no tick");
	forget();
	setenv("MARCEL_TIMESLICE_US", us, 1);
	with_vps(nvp, body);
	unsetenv("MARCEL_TIMESLICE_US");
}

static void *computes(void *arg)
{
	while (load_relaxed(&stop) == 0)
		;
	return arg;
}

static void *stops(void *arg)
{
	store_relaxed(&stop, 1);
	return arg;
}

static void until_looks(uint64_t n)
{
	n += load_relaxed(&marcel_monitor.looks);
	while (load_relaxed(&marcel_monitor.looks) < n)
		;
}

/* A normal thread is ready, and nobody is interrupted for it; then it is. */
static void *computes_past_its_time(void *arg)
{
	uint64_t ticks;

	CHECK_INT(marcel_favour(marcel_self(), FOR_EVER), 0);
	until_looks(3);
	ticks = load_relaxed(&marcel_monitor.ticks);
	until_looks(10);
	CHECK_INT(load_relaxed(&marcel_monitor.ticks), ticks);
	CHECK_INT(load_relaxed(&stop), 0);
	favour_for_a_moment(marcel_self());
	return computes(arg);
}

static void loses_it(void)
{
	marcel_t t[2];

	t[1] = start(stops, NULL);
	t[0] = start(computes_past_its_time, NULL);
	CHECK_INT(marcel_favour(t[0], FOR_EVER), 0);
	for (int i = 0; i < 2; i++)
		join(t[i]);
}

TEST(who_computes_past_its_time_is_interrupted)
{
	with_slices("1000", 1, loses_it);
}

/* A slice is longer than the test; so is the time to the monitor's look. */
#define NEVER_ENDS "1000000000"

static void *waits_and_stops(void *arg)
{
	CHECK_INT(marcel_sem_wait(&sem[0]), 0);
	return stops(arg);
}

static void *posts(void *arg)
{
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	return arg;
}

static ATOMIC(int) computing;

static void *says_that_it_computes(void *arg)
{
	fetch_add_relaxed(&computing, 1);
	return computes(arg);
}

static void *posts_when_all_compute(void *arg)
{
	while (load_relaxed(&computing) < marcel_nvp())
		sched_yield();
	return posts(arg);
}

/*
 * Every VP computes, and never calls; a favoured thread is woken. It runs on
 * the VPs that its attribute says.
 */
static void wake_among(marcel_attr_t *attr, void *(*by)(void *),
		       int (*favour)(marcel_t t, uint64_t ns))
{
	uint64_t looks = load_relaxed(&marcel_monitor.looks);
	marcel_t t, busy[8];
	int n = marcel_nvp();
	pthread_t p;

	forget();
	store_relaxed(&computing, 0);
	CHECK_INT(marcel_create(&t, attr, waits_and_stops, NULL), 0);
	until_parked_in_its_band(t);
	CHECK_INT(favour(t, FOR_EVER), 0);
	for (int i = 1; i < n; i++)
		busy[i] = start(says_that_it_computes, NULL);
	CHECK_INT(pthread_create(&p, NULL, by, NULL), 0);
	says_that_it_computes(NULL);
	CHECK_INT(load_relaxed(&marcel_monitor.looks), looks);
	CHECK(load_relaxed(&marcel_monitor.early) > 0);
	for (int i = 1; i < n; i++)
		join(busy[i]);
	join(t);
	CHECK_INT(pthread_join(p, NULL), 0);
}

static void wakes_anywhere(void)
{
	wake_among(NULL, posts_when_all_compute, marcel_favour);
}

static void wakes_an_eager_one(void)
{
	wake_among(NULL, posts_when_all_compute, marcel_favour_woken);
}

TEST(a_thread_that_is_favoured_when_woken_interrupts_who_computes)
{
	with_slices(NEVER_ENDS, 1, wakes_an_eager_one);
	with_slices(NEVER_ENDS, 2, wakes_an_eager_one);
	with_slices(NEVER_ENDS, 4, wakes_an_eager_one);
}

/* Not before, and not any more; by whoever wakes it, one by one or many. */
static void only_when_woken(void)
{
	marcel_t t;

	forget();
	t = start(waits_and_stops, NULL);
	until_parked_in_its_band(t);
	CHECK_INT(marcel_favour_woken(t, FOR_EVER), 0);
	CHECK(!marcel_thread_is_urgent(t));
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	CHECK(marcel_thread_is_urgent(t));
	join(t);
	forget();
	t = start(waits_and_stops, NULL);
	until_parked_in_its_band(t);
	CHECK(!marcel_thread_is_urgent(t)); /* no heir */
	CHECK_INT(marcel_favour_woken(t, FOR_EVER), 0);
	CHECK_INT(marcel_favour_woken(t, 0), 0);
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	CHECK(!marcel_thread_is_urgent(t));
	join(t);
}

static marcel_barrier_t barrier;

static void *meets(void *arg)
{
	marcel_barrier_wait(&barrier);
	return arg;
}

static void many_are_woken(void)
{
	marcel_t t[3];

	CHECK_INT(marcel_barrier_init(&barrier, NULL, 4), 0);
	for (int i = 0; i < 3; i++) {
		t[i] = start(meets, NULL);
		CHECK_INT(marcel_favour_woken(t[i], FOR_EVER), 0);
		until_parked_in_its_band(t[i]);
	}
	marcel_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++)
		CHECK(marcel_thread_is_urgent(t[i]));
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK_INT(marcel_barrier_destroy(&barrier), 0);
}

TEST(a_favour_when_woken_begins_then)
{
	without_ticks(only_when_woken);
	without_ticks(many_are_woken);
}

TEST(a_favoured_thread_that_is_woken_interrupts_who_computes)
{
	with_slices(NEVER_ENDS, 1, wakes_anywhere);
	with_slices(NEVER_ENDS, 2, wakes_anywhere);
	with_slices(NEVER_ENDS, 4, wakes_anywhere);
}

static void wakes_on_each(void)
{
	marcel_vpset_t set;
	marcel_attr_t attr;

	for (int vp = 0; vp < marcel_nvp(); vp++) {
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
		wake_among(&attr, posts_when_all_compute, marcel_favour);
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, vp);
		marcel_vpset_add(&set, (vp + 1) % marcel_nvp());
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvpset(&attr, &set), 0);
		wake_among(&attr, posts_when_all_compute, marcel_favour);
	}
}

TEST(a_favoured_thread_interrupts_where_it_may_run)
{
	with_slices(NEVER_ENDS, 1, wakes_on_each);
	with_slices(NEVER_ENDS, 4, wakes_on_each);
}

/* By a normal thread of the VP, which then goes on. */
static void wakes_itself(void)
{
	uint64_t looks = load_relaxed(&marcel_monitor.looks);
	marcel_t t = start(waits_and_stops, NULL);

	until_parked_in_its_band(t);
	CHECK_INT(marcel_favour(t, FOR_EVER), 0);
	posts(NULL);
	computes(NULL);
	CHECK_INT(load_relaxed(&marcel_monitor.looks), looks);
	join(t);
}

TEST(who_wakes_a_favoured_thread_and_computes_is_interrupted_for_it)
{
	with_slices(NEVER_ENDS, 1, wakes_itself);
}

/* --- and who is not --- */

static void *waits_often(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		CHECK_INT(marcel_sem_wait(&sem[0]), 0);
		CHECK_INT(marcel_sem_post(&sem[1]), 0);
	}
	return arg;
}

/* Both are urgent: nobody needs the monitor. */
static void hand_over(void)
{
	uint64_t early = load_relaxed(&marcel_monitor.early);
	marcel_t t;

	CHECK_INT(marcel_favour(marcel_self(), FOR_EVER), 0);
	t = start(waits_often, NULL);
	CHECK_INT(marcel_favour(t, FOR_EVER), 0);
	for (int i = 0; i < 1000; i++) {
		CHECK_INT(marcel_sem_post(&sem[0]), 0);
		CHECK_INT(marcel_sem_wait(&sem[1]), 0);
	}
	join(t);
	CHECK_INT(load_relaxed(&marcel_monitor.early), early);
	CHECK_INT(marcel_favour(marcel_self(), 0), 0);
}

TEST(favoured_threads_that_wake_each_other_need_no_look)
{
	with_slices(NEVER_ENDS, 1, hand_over);
}

static void *posts_and_stops(void *arg)
{
	posts(NULL);
	return stops(arg);
}

static void steady(void)
{
	uint64_t ticks = load_relaxed(&marcel_monitor.ticks);
	uint64_t early = load_relaxed(&marcel_monitor.early);
	marcel_t t = start(wait_and_note, (void *)0L);
	pthread_t p;

	until_parked_in_its_band(t);
	CHECK_INT(marcel_favour(t, FOR_EVER), 0);
	CHECK_INT(marcel_setpreemptible(0, NULL), 0);
	CHECK_INT(pthread_create(&p, NULL, posts_and_stops, NULL), 0);
	computes(NULL);
	CHECK_INT(load_relaxed(&count), 0);
	CHECK_INT(load_relaxed(&marcel_monitor.ticks), ticks);
	CHECK_INT(load_relaxed(&marcel_monitor.early), early);
	CHECK_INT(marcel_setpreemptible(1, NULL), 0);
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	join(t);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST(who_is_not_preemptible_is_left_alone)
{
	with_slices(NEVER_ENDS, 1, steady);
}
