/*
 * marcel/sched/tasklet.c: a tasklet runs soon, once for what was scheduled
 * before, on one VP at a time, where it may, and not after its kill.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <base/atomic.h>
#include "../with.h"

/* The rules hold for 1, 2 and 4 VPs. */
#define TEST_2(name)                                                           \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_vps(2, name##_body);                                      \
	}

enum { ROUNDS = 2000 / FEWER, THREADS = 4 };

static ATOMIC(int) runs, inside, vps_seen;
static int plain; /* changed by tasklets only */

static void reset(void)
{
	store_relaxed(&runs, 0);
	store_relaxed(&inside, 0);
	store_relaxed(&vps_seen, 0);
	plain = 0;
}

static void count(void *arg)
{
	(void)arg;
	CHECK_INT(fetch_add_relaxed(&inside, 1), 0);
	plain++;
	fetch_or_relaxed(&vps_seen, 1 << marcel_current_vp());
	fetch_sub_relaxed(&inside, 1);
	fetch_add_release(&runs, 1);
}

static void until_runs(int n)
{
	while (load_acquire(&runs) < n) {
		marcel_yield();
		if (marcel_nvp() > 1)
			sched_yield();
	}
}

TEST_VPS(nonsense_is_refused)
{
	marcel_tasklet_t t;
	marcel_vpset_t set;

	CHECK_INT(marcel_tasklet_init(&t, NULL, NULL), -EINVAL);
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	marcel_vpset_zero(&set);
	CHECK_INT(marcel_tasklet_set_vpset(&t, &set), -EINVAL);
	marcel_vpset_add(&set, marcel_nvp());
	CHECK_INT(marcel_tasklet_set_vpset(&t, &set), -EINVAL);
	CHECK_INT(marcel_tasklet_enable(&t), -EINVAL);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), -ECANCELED);
	CHECK_INT(marcel_tasklet_hi_schedule(&t), -ECANCELED);
}

TEST(without_a_runtime_nothing_is_scheduled)
{
	marcel_tasklet_t t;
	marcel_vpset_t set;

	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, 0);
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	CHECK_INT(marcel_tasklet_set_vpset(&t, &set), -EINVAL);
	CHECK_INT(marcel_tasklet_schedule(&t), -EPERM);
	CHECK_INT(marcel_tasklet_disable(&t), 0);
	CHECK_INT(marcel_tasklet_enable(&t), 0);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
}

TEST_VPS(a_disabled_tasklet_can_be_disabled_so_often_and_no_more)
{
	marcel_tasklet_t t;
	int n = 0;

	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	while (marcel_tasklet_disable_nosync(&t) == 0)
		n++;
	CHECK_INT(n, (1 << 20) - 1);
	CHECK_INT(marcel_tasklet_disable(&t), -EOVERFLOW);
	CHECK_INT(marcel_tasklet_enable(&t), 0);
	CHECK_INT(marcel_tasklet_disable(&t), 0);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
}

/* --- it runs --- */

TEST_VPS(it_runs_after_it_was_scheduled)
{
	marcel_tasklet_t t;

	reset();
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	for (int i = 1; i <= HANDOVERS; i++) {
		CHECK_INT(i % 2 ? marcel_tasklet_schedule(&t)
				: marcel_tasklet_hi_schedule(&t),
			  0);
		until_runs(i);
	}
	CHECK_INT(marcel_tasklet_kill(&t), 0);
	CHECK_INT(load_relaxed(&runs), HANDOVERS);
	CHECK_INT(plain, HANDOVERS);
}
TEST_2(it_runs_after_it_was_scheduled)

static char order[8];
static int norder;

static void note(void *arg)
{
	order[norder++] = (char)(intptr_t)arg;
}

static void run_in_order(void)
{
	marcel_tasklet_t a, b, c;

	reset();
	norder = 0;
	memset(order, 0, sizeof(order));
	CHECK_INT(marcel_tasklet_init(&a, note, (void *)'a'), 0);
	CHECK_INT(marcel_tasklet_init(&b, note, (void *)'b'), 0);
	CHECK_INT(marcel_tasklet_init(&c, note, (void *)'c'), 0);
	CHECK_INT(marcel_tasklet_schedule(&a), 0);
	CHECK_INT(marcel_tasklet_schedule(&b), 0);
	CHECK_INT(marcel_tasklet_schedule(&a), 0);
	CHECK_INT(marcel_tasklet_hi_schedule(&c), 0);
	CHECK_INT(norder, 0);
	CHECK(marcel_others_ready());
	marcel_yield();
	CHECK_INT(norder, 3);
	CHECK_STR(order, "cab");
	marcel_yield();
	CHECK_INT(norder, 3);
	/* What waits is made urgent. */
	CHECK_INT(marcel_tasklet_schedule(&a), 0);
	CHECK_INT(marcel_tasklet_schedule(&b), 0);
	CHECK_INT(marcel_tasklet_hi_schedule(&b), 0);
	marcel_yield();
	CHECK_STR(order, "cabba");
}

TEST(on_one_vp_it_runs_at_the_next_switch_before_any_thread)
{
	without_ticks(run_in_order);
}

/* --- by whom --- */

static void *schedule_often(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		marcel_tasklet_schedule(arg);
		if (i % 16 == 0)
			marcel_yield();
	}
	return NULL;
}

static void after_many(marcel_tasklet_t *t)
{
	int before = load_relaxed(&runs);

	CHECK(before >= 1);
	/* All ran that was scheduled; so it is free again. */
	CHECK_INT(marcel_tasklet_schedule(t), 0);
	while (load_acquire(&runs) == before)
		marcel_yield();
	CHECK_INT(marcel_tasklet_kill(t), 0);
	CHECK_INT(load_relaxed(&runs), plain);
}

TEST_VPS(it_never_runs_on_two_vps_at_once)
{
	marcel_tasklet_t t;
	marcel_t threads[THREADS];

	reset();
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&threads[i], NULL, schedule_often, &t),
			  0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(threads[i], NULL), 0);
	until_runs(1);
	after_many(&t);
}
TEST_2(it_never_runs_on_two_vps_at_once)

TEST_VPS(foreign_threads_schedule_it)
{
	marcel_tasklet_t t;
	pthread_t threads[THREADS];

	reset();
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, schedule_often, &t),
			  0);
	until_runs(1);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
	after_many(&t);
}
TEST_2(foreign_threads_schedule_it)

static marcel_sem_t done;

static void post(void *arg)
{
	(void)arg;
	marcel_sem_post(&done);
}

static void *schedule_once(void *arg)
{
	marcel_tasklet_schedule(arg);
	return NULL;
}

/* Main blocks, so that all VPs go to sleep sooner or later. */
TEST_VPS(who_sleeps_is_woken_for_it)
{
	marcel_tasklet_t t;
	pthread_t p;

	CHECK_INT(marcel_sem_init(&done, 0, 0), 0);
	CHECK_INT(marcel_tasklet_init(&t, post, NULL), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_INT(pthread_create(&p, NULL, schedule_once, &t), 0);
		CHECK_INT(marcel_sem_wait(&done), 0);
		CHECK_INT(pthread_join(p, NULL), 0);
	}
	CHECK_INT(marcel_tasklet_kill(&t), 0);
}
TEST_2(who_sleeps_is_woken_for_it)

/* Unless somebody kills it. */
static void again(void *arg)
{
	int rc = 0;

	if (fetch_add_release(&runs, 1) < 99)
		rc = marcel_tasklet_schedule(arg);
	CHECK(rc == 0 || rc == -ECANCELED);
}

TEST_VPS(it_schedules_itself)
{
	marcel_tasklet_t t;

	reset();
	CHECK_INT(marcel_tasklet_init(&t, again, &t), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	until_runs(100);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
	CHECK_INT(load_relaxed(&runs), 100);
}

/* For ever, which keeps no thread from running. */
static void for_ever(void *arg)
{
	fetch_add_release(&runs, 1);
	marcel_tasklet_schedule(arg);
}

TEST_VPS(threads_run_beside_one_that_is_always_scheduled)
{
	marcel_tasklet_t t;
	marcel_t thread;

	reset();
	CHECK_INT(marcel_tasklet_init(&t, for_ever, &t), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_INT(marcel_create(&thread, NULL, schedule_once, &t), 0);
		CHECK_INT(marcel_join(thread, NULL), 0);
	}
	until_runs(100);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
}

static void make_errno(void *arg)
{
	(void)arg;
	*marcel_errno_location() = EDOM;
	fetch_add_release(&runs, 1);
}

static void keep_errno(void)
{
	marcel_tasklet_t t;

	reset();
	CHECK_INT(marcel_tasklet_init(&t, make_errno, NULL), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	*marcel_errno_location() = EXDEV;
	marcel_yield();
	CHECK_INT(load_relaxed(&runs), 1);
	CHECK_INT(*marcel_errno_location(), EXDEV);
}

/* It runs at the yield, and not before. */
TEST(a_threads_errno_is_its_own)
{
	without_ticks(keep_errno);
}

/* A thread that computes and never leaves: the tick lets the tasklet in. */
static void *compute(void *arg)
{
	while (load_acquire(&runs) == 0)
		;
	return arg;
}

TEST(a_thread_that_computes_is_interrupted_for_it)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_tasklet_t tasklets[2];
	marcel_t t[2];
	marcel_vpset_t set;

	if (BASE_TSAN)
		check_skip("TSan knows no tick");
	CHECK_INT(marcel_init(&config), 0);
	reset();
	for (int i = 0; i < 2; i++) {
		CHECK_INT(marcel_tasklet_init(&tasklets[i], count, NULL), 0);
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, i);
		CHECK_INT(marcel_tasklet_set_vpset(&tasklets[i], &set), 0);
	}
	CHECK_INT(marcel_create(&t[0], NULL, compute, NULL), 0);
	CHECK_INT(marcel_create(&t[1], NULL, compute, NULL), 0);
	CHECK_INT(marcel_tasklet_schedule(&tasklets[1]), 0);
	CHECK_INT(marcel_join(t[0], NULL), 0);
	CHECK_INT(marcel_join(t[1], NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_tasklet_kill(&tasklets[i]), 0);
	CHECK_INT(marcel_end(), 0);
}

/* --- where --- */

TEST_VPS(it_runs_where_it_is_pinned)
{
	marcel_tasklet_t t[4];
	marcel_vpset_t set;
	int n = marcel_nvp();

	for (int vp = 0; vp < n; vp++) {
		reset();
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, vp);
		CHECK_INT(marcel_tasklet_init(&t[vp], count, NULL), 0);
		CHECK_INT(marcel_tasklet_set_vpset(&t[vp], &set), 0);
		for (int i = 1; i <= HANDOVERS / 4; i++) {
			CHECK_INT(marcel_tasklet_schedule(&t[vp]), 0);
			until_runs(i);
		}
		CHECK_INT(load_relaxed(&vps_seen), 1 << vp);
		CHECK_INT(marcel_tasklet_kill(&t[vp]), 0);
	}
}
TEST_2(it_runs_where_it_is_pinned)

TEST(it_runs_within_its_set)
{
	struct marcel_config config = { .nvp = 4 };
	marcel_tasklet_t t;
	marcel_vpset_t set;

	CHECK_INT(marcel_init(&config), 0);
	reset();
	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, 1);
	marcel_vpset_add(&set, 3);
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	CHECK_INT(marcel_tasklet_set_vpset(&t, &set), 0);
	for (int i = 1; i <= HANDOVERS; i++) {
		CHECK_INT(marcel_tasklet_schedule(&t), 0);
		until_runs(i);
	}
	CHECK_INT(load_relaxed(&vps_seen) & ~0xa, 0);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
	CHECK_INT(marcel_end(), 0);
}

/* --- types --- */

static marcel_tasklet_type_t type = MARCEL_TASKLET_TYPE_INIT;

TEST_VPS(those_of_a_type_run_one_at_a_time)
{
	static marcel_tasklet_t t[THREADS];
	marcel_t threads[THREADS];
	marcel_vpset_t set;

	reset();
	for (int i = 0; i < THREADS; i++) {
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, i % marcel_nvp());
		CHECK_INT(marcel_tasklet_init(&t[i], count, NULL), 0);
		CHECK_INT(marcel_tasklet_set_vpset(&t[i], &set), 0);
		CHECK_INT(marcel_tasklet_set_type(&t[i], &type), 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(
			marcel_create(&threads[i], NULL, schedule_often, &t[i]),
			0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(threads[i], NULL), 0);
	until_runs(THREADS);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_tasklet_kill(&t[i]), 0);
	CHECK_INT(load_relaxed(&runs), plain);
}
TEST_2(those_of_a_type_run_one_at_a_time)

/* --- disable --- */

TEST_VPS(while_it_is_disabled_it_waits)
{
	marcel_tasklet_t t;

	reset();
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	CHECK_INT(marcel_tasklet_disable(&t), 0);
	CHECK_INT(marcel_tasklet_disable(&t), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	for (int i = 0; i < 100; i++)
		marcel_yield();
	CHECK_INT(marcel_tasklet_set_type(&t, NULL), -EBUSY);
	CHECK_INT(marcel_tasklet_enable(&t), 0);
	for (int i = 0; i < 100; i++)
		marcel_yield();
	CHECK_INT(load_relaxed(&runs), 0);
	CHECK_INT(marcel_tasklet_enable(&t), 0);
	until_runs(1);
	/* Disabled after it was scheduled. */
	CHECK_INT(marcel_tasklet_disable(&t), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	CHECK_INT(marcel_tasklet_enable(&t), 0);
	until_runs(2);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
	CHECK_INT(load_relaxed(&runs), 2);
}
TEST_2(while_it_is_disabled_it_waits)

/* What a tasklet changes, too, while it cannot run. */
static void *disable_often(void *arg)
{
	for (int i = 0; i < ROUNDS / 4; i++) {
		CHECK_INT(marcel_tasklet_disable(arg), 0);
		CHECK_INT(load_relaxed(&inside), 0);
		CHECK_INT(marcel_tasklet_enable(arg), 0);
		marcel_tasklet_schedule(arg);
	}
	return NULL;
}

TEST_VPS(after_disable_it_does_not_run)
{
	marcel_tasklet_t t;
	marcel_t user[2];
	pthread_t foreign;

	reset();
	CHECK_INT(marcel_tasklet_init(&t, count, NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_create(&user[i], NULL, disable_often, &t), 0);
	CHECK_INT(pthread_create(&foreign, NULL, disable_often, &t), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_join(user[i], NULL), 0);
	CHECK_INT(pthread_join(foreign, NULL), 0);
	until_runs(1);
	after_many(&t);
}

static marcel_tasklet_t *victim;
static int said[3];

static void disable_and_kill(void *arg)
{
	marcel_tasklet_t other;

	(void)arg;
	said[0] = marcel_tasklet_disable(victim);
	said[1] = marcel_tasklet_kill(victim);
	said[2] = marcel_tasklet_init(&other, count, NULL) ||
		  marcel_tasklet_disable(&other) || marcel_tasklet_kill(&other);
	CHECK_INT(marcel_tasklet_enable(victim), 0);
	fetch_add_release(&runs, 1);
}

TEST_VPS(in_a_tasklet_nobody_waits_for_it)
{
	marcel_tasklet_t t;

	reset();
	victim = &t;
	CHECK_INT(marcel_tasklet_init(&t, disable_and_kill, NULL), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	until_runs(1);
	CHECK_INT(said[0], -EDEADLK);
	CHECK_INT(said[1], -EDEADLK);
	CHECK_INT(said[2], 0);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
}

/* --- kill --- */

/* Its memory is another one's at once. */
static void *make_and_kill(void *arg)
{
	marcel_tasklet_type_t *y = arg;
	marcel_tasklet_t t;

	for (int i = 0; i < ROUNDS / 4; i++) {
		CHECK_INT(marcel_tasklet_init(&t, again, &t), 0);
		CHECK_INT(marcel_tasklet_set_type(&t, y), 0);
		CHECK_INT(marcel_tasklet_schedule(&t), 0);
		if (i % 3 == 0)
			marcel_yield();
		if (i % 5 == 0)
			CHECK_INT(marcel_tasklet_disable_nosync(&t), 0);
		CHECK_INT(marcel_tasklet_kill(&t), 0);
		memset(&t, 0x5a, sizeof(t));
	}
	return NULL;
}

TEST_VPS(after_its_kill_nobody_touches_it)
{
	marcel_t user[THREADS];
	pthread_t foreign[2];

	reset();
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&user[i], NULL, make_and_kill,
					i % 2 ? &type : NULL),
			  0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(pthread_create(&foreign[i], NULL, make_and_kill,
					 i % 2 ? &type : NULL),
			  0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(user[i], NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(pthread_join(foreign[i], NULL), 0);
}
TEST_2(after_its_kill_nobody_touches_it)

static void *kill_it(void *arg)
{
	CHECK_INT(marcel_tasklet_kill(arg), 0);
	return NULL;
}

/* Main sleeps in the kernel, without a tick that would let others in. */
static void kill_from_outside(void)
{
	marcel_tasklet_t before, t, after;
	pthread_t p;

	norder = 0;
	CHECK_INT(marcel_tasklet_init(&before, note, (void *)'b'), 0);
	CHECK_INT(marcel_tasklet_init(&t, note, (void *)'t'), 0);
	CHECK_INT(marcel_tasklet_init(&after, note, (void *)'a'), 0);
	CHECK_INT(marcel_tasklet_schedule(&before), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	CHECK_INT(marcel_tasklet_schedule(&after), 0);
	CHECK_INT(pthread_create(&p, NULL, kill_it, &t), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), -ECANCELED);
	CHECK_INT(norder, 0);
	marcel_yield();
	CHECK_INT(norder, 2);
	CHECK(order[0] == 'b' && order[1] == 'a');
}

TEST(a_kill_does_not_wait_for_a_vp_that_does_not_come_by)
{
	without_ticks(kill_from_outside);
}

TEST(what_is_left_at_the_end_does_not_run)
{
	struct marcel_config config = { .nvp = 1 };
	marcel_tasklet_t t, disabled;

	reset();
	CHECK_INT(marcel_tasklet_init(&t, for_ever, &t), 0);
	CHECK_INT(marcel_tasklet_init(&disabled, count, NULL), 0);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	CHECK_INT(marcel_tasklet_disable(&disabled), 0);
	CHECK_INT(marcel_tasklet_schedule(&disabled), 0);
	CHECK_INT(marcel_end(), 0);
	CHECK_INT(marcel_tasklet_enable(&disabled), 0);
	CHECK_INT(marcel_tasklet_schedule(&t), -EPERM);
	store_relaxed(&runs, 0);
	CHECK_INT(marcel_init(&config), 0);
	for (int i = 0; i < 10; i++)
		marcel_yield();
	CHECK_INT(load_relaxed(&runs), 0);
	CHECK_INT(marcel_tasklet_schedule(&disabled), 0);
	until_runs(1);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	until_runs(2);
	CHECK_INT(marcel_tasklet_kill(&t), 0);
	CHECK_INT(marcel_end(), 0);
	CHECK_INT(marcel_tasklet_kill(&disabled), 0);
}

static enum marcel_hook_answer hook_runs(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	fetch_add_release(&runs, 1);
	return MARCEL_HOOK_NOTHING;
}

static struct marcel_hook counted = { .fn = hook_runs };

static void switch_with_both(void)
{
	marcel_tasklet_t t;

	norder = 0;
	memset(order, 0, sizeof(order));
	CHECK_INT(marcel_tasklet_init(&t, note, (void *)'t'), 0);
	reset();
	marcel_yield();
	CHECK_INT(load_relaxed(&runs), 1);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	marcel_yield();
	CHECK_INT(norder, 1);
	CHECK_INT(load_relaxed(&runs), 2);
	CHECK_INT(marcel_tasklet_schedule(&t), 0);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &counted), 0);
	marcel_yield();
	CHECK_INT(norder, 2);
	CHECK_INT(load_relaxed(&runs), 2);
}

/* Hooks and tasklets are told of by one word. */
TEST(switch_hooks_run_beside_tasklets)
{
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &counted), 0);
	without_ticks(switch_with_both);
}

/* --- threads that it makes while the runtime ends --- */

static ATOMIC(int) made, ended;

static void *end_late(void *arg)
{
	CHECK_INT(marcel_usleep(1000), 0);
	fetch_add_relaxed(&ended, 1);
	return arg;
}

/* It is run, or nobody makes it. */
static void make_late(void *arg)
{
	marcel_attr_t attr;
	marcel_t t;
	int rc;

	for (volatile int i = 0; i < (int)(intptr_t)arg * 1000; i++)
		;
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED), 0);
	rc = marcel_create(&t, &attr, end_late, NULL);
	CHECK(rc == 0 || rc == EPERM);
	if (rc == 0)
		fetch_add_relaxed(&made, 1);
}

static void make_at_the_end(intptr_t when)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_tasklet_t tasklet;

	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_tasklet_init(&tasklet, make_late, (void *)when), 0);
	CHECK_INT(marcel_usleep(200), 0); /* the other VP looks for work */
	CHECK_INT(marcel_tasklet_schedule(&tasklet), 0);
	CHECK_INT(marcel_end(), 0);
	CHECK_INT(load_relaxed(&ended), load_relaxed(&made));
}

TEST(threads_that_it_makes_at_the_end_are_run)
{
	store_relaxed(&made, 0);
	store_relaxed(&ended, 0);
	for (intptr_t i = 0; i < 100 / FEWER; i++)
		make_at_the_end(i % 50);
}
