/*
 * Who begins in the place of its creator, and who makes way himself: so that
 * nobody need be interrupted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/atomic.h>
#include <marcel/hook.h>
#include "../../../marcel/sched/runq.h"
#include "../loose.h"
#include "../with.h"

enum { MANY = 1000 / FEWER };

static ATOMIC(int) count;
static ATOMIC(int) order[10]; /* who ran, in this order */

static void *note(void *arg)
{
	store_relaxed(&order[fetch_add_relaxed(&count, 1)], (int)(long)arg);
	return NULL;
}

static void *note_twice(void *arg)
{
	note(arg);
	CHECK_INT(marcel_yield(), 0);
	return note(arg);
}

static void in_the_callers_place(void)
{
	marcel_t t[3];

	store_relaxed(&count, 0);
	CHECK_INT(marcel_create(&t[0], NULL, note, (void *)1), 0);
	CHECK_INT(marcel_create(&t[1], NULL, note, (void *)2), 0);
	CHECK_INT(marcel_create_first(&t[2], NULL, note_twice, (void *)3), 0);
	CHECK_INT(load_relaxed(&count), 1);
	CHECK_INT(load_relaxed(&order[0]), 3);
	for (int i = 0; i < 3; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&count), 4);
}

TEST(a_thread_created_first_goes_before_all_and_its_creator_is_next)
{
	without_ticks(in_the_callers_place);
}

static void *add_one(void *arg)
{
	fetch_add_relaxed(&count, 1);
	return arg;
}

static int nswitches; /* of which a hook heard */

static enum marcel_hook_answer about_to_switch(void *arg, int vp)
{
	(void)arg, (void)vp;
	nswitches++;
	return MARCEL_HOOK_NOTHING;
}

static void less_urgent(void)
{
	struct marcel_hook hook = { .fn = about_to_switch };
	marcel_attr_t attr;
	marcel_t t;

	store_relaxed(&count, 0);
	nswitches = 0;
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &hook), 0);
	CHECK_INT(marcel_create_first(&t, &attr, add_one, NULL), 0);
	CHECK_INT(load_relaxed(&count), 1);
	CHECK(nswitches > 0);
	CHECK_INT(marcel_join(t, NULL), 0);

	nswitches = 0;
	CHECK_INT(marcel_attr_setpriority(&attr, MARCEL_PRIORITY_IDLE), 0);
	CHECK_INT(marcel_create_first(&t, &attr, add_one, NULL), 0);
	CHECK_INT(load_relaxed(&count), 1);
	CHECK_INT(nswitches, 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(load_relaxed(&count), 2);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &hook), 0);
}

TEST(who_is_less_urgent_than_its_creator_waits_and_nothing_is_switched)
{
	without_ticks(less_urgent);
}

static void *create_many(void *arg)
{
	marcel_attr_t attr, none;
	marcel_t t;
	void *value;

	memset(&none, 0, sizeof(none));
	CHECK_INT(marcel_create_first(&t, &none, add_one, arg), EINVAL);
	CHECK_INT(marcel_attr_init(&attr), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(marcel_attr_setpriority(&attr, i % 3 - 1), 0);
		CHECK_INT(marcel_create_first(&t, &attr, add_one, &count), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK(value == &count);
	}
	return arg;
}

TEST_VPS(who_is_created_first_runs_once_wherever_and_whoever_creates_it)
{
	marcel_t t[4];
	pthread_t p;

	store_relaxed(&count, 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_create_first(&t[i], NULL, create_many, NULL),
			  0);
	CHECK_INT(pthread_create(&p, NULL, create_many, NULL), 0);
	create_many(NULL);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	marcel_blocking_begin();
	CHECK_INT(pthread_join(p, NULL), 0);
	marcel_blocking_end();
	CHECK_INT(load_relaxed(&count), 6 * MANY);
}

static marcel_t start_urgent(void)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME), 0);
	CHECK_INT(marcel_create(&t, &attr, add_one, NULL), 0);
	return t;
}

/* No slice ends meanwhile. */
static void with_long_slices(void (*body)(void))
{
	struct marcel_config config = { .nvp = 1 };

	if (BASE_TSAN)
		check_skip("there is no tick");
	setenv("MARCEL_TIMESLICE_US", "100000000", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_TIMESLICE_US");
	body();
	CHECK_INT(marcel_end(), 0);
}

static void makes_way(void)
{
	uint64_t early = load_relaxed(&marcel_monitor.early);
	marcel_t t;

	store_relaxed(&count, 0);
	CHECK_INT(marcel_make_way(1), 0);
	t = start_urgent();
	CHECK_INT(load_relaxed(&marcel_monitor.hurry), 0);
	CHECK_INT(load_relaxed(&marcel_monitor.early), early);
	CHECK(marcel_others_ready());
	CHECK(marcel_make_way(0));
	CHECK_INT(load_relaxed(&count), 0);
	CHECK_INT(marcel_yield(), 0);
	CHECK_INT(load_relaxed(&count), 1);
	CHECK_INT(marcel_join(t, NULL), 0);

	/* It computes again, and is interrupted. */
	CHECK_INT(marcel_make_way(0), 0);
	t = start_urgent();
	while (load_relaxed(&count) == 1)
		;
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(who_makes_way_is_not_interrupted_before_he_computes_again)
{
	with_long_slices(makes_way);
}

static ATOMIC(int) is_there;

static void *brings_it(void *arg)
{
	store_relaxed(&is_there, 1);
	return arg;
}

/* What brings it is a thread like any other, and nobody else interrupts. */
static void asks_in_vain(void)
{
	marcel_t t;
	int n = 0;

	store_relaxed(&is_there, 0);
	CHECK_INT(marcel_create(&t, NULL, brings_it, NULL), 0);
	while (load_relaxed(&is_there) == 0 && n++ < 1000)
		if (marcel_asked_in_vain())
			marcel_yield();
	CHECK_INT(load_relaxed(&is_there), 1);
	CHECK_INT(marcel_join(t, NULL), 0);
	for (int i = 0; i < 1000; i++)
		CHECK(!marcel_asked_in_vain());
	store_relaxed(&count, 0);
	t = start_urgent();
	CHECK(marcel_asked_in_vain() || is_without_vp() ||
	      load_relaxed(&count) != 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(who_asks_in_vain_lets_others_run)
{
	with_vps(1, asks_in_vain);
}

static void *makes_way_and_waits(void *arg)
{
	CHECK_INT(marcel_make_way(1), 0);
	CHECK_INT(marcel_yield(), 0);
	marcel_make_way(0);
	return arg;
}

/* The mark is of a thread, and not of its VP. */
static void another_computes(void)
{
	marcel_t t, urgent;

	store_relaxed(&count, 0);
	CHECK_INT(marcel_create(&t, NULL, makes_way_and_waits, NULL), 0);
	CHECK_INT(marcel_yield(), 0);
	urgent = start_urgent();
	while (load_relaxed(&count) == 0)
		;
	CHECK_INT(marcel_join(urgent, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(who_computes_is_interrupted_while_another_makes_way)
{
	with_long_slices(another_computes);
}

static marcel_vpset_t only(int vp)
{
	marcel_vpset_t set;

	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, vp);
	return set;
}

static ATOMIC(int) step, over, is_loose;

static void *makes_way_and_moves(void *arg)
{
	marcel_vpset_t back = only(1);

	CHECK_INT(marcel_make_way(1), 0);
	store_relaxed(&step, 1);
	while (marcel_current_vp() == 1)
		; /* interrupted, and then on another VP */
	marcel_make_way(0);
	CHECK_INT(marcel_setaffinity(marcel_self(), &back), 0);
	store_relaxed(&step, 2);
	while (load_relaxed(&over) == 0)
		store_relaxed(&is_loose, is_without_vp());
	return arg;
}

static void wait_for_step(int n)
{
	while (load_relaxed(&step) != n)
		marcel_yield();
}

/*
 * Whether a VP that computes is interrupted for it before its slice ends. The
 * monitor counts after it has sent the tick. Nobody computes there if the
 * thread goes on without its VP.
 */
static bool is_early(marcel_attr_t *attr)
{
	uint64_t early = load_relaxed(&marcel_monitor.early);
	uint64_t slices = load_relaxed(&marcel_monitor.looks);
	marcel_t urgent;

	CHECK_INT(marcel_create(&urgent, attr, add_one, NULL), 0);
	CHECK_INT(marcel_join(urgent, NULL), 0);
	while (load_relaxed(&marcel_monitor.early) == early &&
	       load_relaxed(&is_loose) == 0)
		if (load_relaxed(&marcel_monitor.looks) != slices)
			return false;
	return true;
}

static void moves(void)
{
	marcel_vpset_t here = only(1), there = only(2);
	marcel_attr_t attr;
	marcel_t t;

	store_relaxed(&step, 0);
	store_relaxed(&over, 0);
	store_relaxed(&is_loose, 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvpset(&attr, &here), 0);
	CHECK_INT(marcel_create(&t, &attr, makes_way_and_moves, NULL), 0);
	wait_for_step(1);
	CHECK_INT(marcel_setaffinity(t, &there), 0);
	wait_for_step(2);
	CHECK_INT(marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME), 0);
	/* A slice that ends now is the one that had begun. */
	marcel_sched.slice_ns = 1000 * UINT64_C(1000000000);
	if (!is_early(&attr))
		CHECK(is_early(&attr));
	store_relaxed(&over, 1);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(who_made_way_is_interrupted_again_wherever_he_has_been_meanwhile)
{
	if (BASE_TSAN)
		check_skip("there is no tick");
	with_vps(3, moves);
}
