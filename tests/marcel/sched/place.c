/* marcel/sched/place.c: where a thread runs, changed while it lives; and
 * marcel_yield_to(), who runs next. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../../../marcel/sched/tick.h"
#include "../parked.h"

static marcel_vpset_t set_of(int a, int b)
{
	marcel_vpset_t set;

	marcel_vpset_zero(&set);
	marcel_vpset_add(&set, a);
	marcel_vpset_add(&set, b);
	return set;
}

static marcel_vpset_t only(int vp)
{
	return set_of(vp, vp);
}

static marcel_t make(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

static void *nothing(void *arg)
{
	return arg;
}

/* --- oneself --- */

static void *go_round(void *arg)
{
	marcel_vpset_t set, got;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < marcel_nvp(); i++) {
			set = only(i);
			CHECK_INT(marcel_setaffinity(marcel_self(), &set), 0);
			CHECK_INT(marcel_current_vp(), i);
			CHECK_INT(marcel_getaffinity(marcel_self(), &got), 0);
			CHECK_INT(memcmp(&set, &got, sizeof(set)), 0);
			marcel_yield();
			CHECK_INT(marcel_current_vp(), i);
		}
	}
	set = set_of(0, marcel_nvp() - 1);
	CHECK_INT(marcel_setaffinity(marcel_self(), &set), 0);
	for (int round = 0; round < 50; round++) {
		CHECK(marcel_vpset_has(&set, marcel_current_vp()));
		marcel_yield();
	}
	return arg;
}

TEST_VPS(who_sets_its_own_is_there_on_return)
{
	marcel_t t[5];

	for (int i = 0; i < 5; i++)
		t[i] = make(go_round, NULL);
	for (int i = 0; i < 5; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(who_sets_its_own_is_there_on_return_on_2_vps)
{
	with_vps(2, who_sets_its_own_is_there_on_return_body);
}

/* --- others --- */

struct waiter {
	marcel_sem_t go;
	int vp;
};

static void *wait_and_look(void *arg)
{
	struct waiter *w = arg;

	marcel_sem_wait(&w->go);
	w->vp = marcel_current_vp();
	return NULL;
}

TEST_VPS(who_waits_is_there_when_the_wait_is_over)
{
	struct waiter w;
	marcel_vpset_t set, got;
	marcel_t t;

	for (int i = 0; i < 4 * marcel_nvp(); i++) {
		CHECK_INT(marcel_sem_init(&w.go, 0, 0), 0);
		t = make(wait_and_look, &w);
		until_parked(t);
		set = only(i % marcel_nvp());
		CHECK_INT(marcel_setaffinity(t, &set), 0);
		CHECK_INT(marcel_getaffinity(t, &got), 0);
		CHECK_INT(memcmp(&set, &got, sizeof(set)), 0);
		marcel_sem_post(&w.go);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(w.vp, i % marcel_nvp());
	}
}

/* A number of a VP: until the thread finds itself there. */
static void *until_there(void *arg)
{
	while (marcel_current_vp() != (int)(intptr_t)arg)
		marcel_yield();
	return arg;
}

static ATOMIC(int) runs;

static void *compute_until_there(void *arg)
{
	store_relaxed(&runs, 1);
	while (marcel_current_vp() != (int)(intptr_t)arg)
		;
	return arg;
}

static void move_a_computing_thread(void)
{
	int to = marcel_nvp() > 2 ? 2 : 0;
	marcel_vpset_t set = only(to);
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 1), 0);
	for (int i = 0; i < 3; i++) {
		store_relaxed(&runs, 0);
		CHECK_INT(marcel_create(&t, &attr, compute_until_there,
					(void *)(intptr_t)to),
			  0);
		while (!load_relaxed(&runs))
			marcel_yield();
		CHECK_INT(marcel_setaffinity(t, &set), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
}

TEST(who_computes_is_taken_there_by_the_tick)
{
	if (BASE_TSAN)
		check_skip("no tick");
	with_vps(2, move_a_computing_thread);
	with_vps(4, move_a_computing_thread);
}

static int ends[2];
static bool moves_first; /* while it sleeps */

/* Unannounced: its VP goes, and then there is nothing that others wait for. */
static void *sleep_and_compute(void *arg)
{
	char c;

	CHECK_INT(syscall(SYS_read, ends[0], &c, 1), 1);
	return compute_until_there(arg);
}

/* A kernel thread. */
static void *wake_and_move(void *arg)
{
	marcel_vpset_t set = only(0);

	while (load_relaxed(&marcel_monitor.asleep) == 0)
		usleep(1000);
	if (moves_first)
		CHECK_INT(marcel_setaffinity(arg, &set), 0);
	CHECK_INT(write(ends[1], "x", 1), 1);
	while (!load_relaxed(&runs))
		;
	if (!moves_first)
		CHECK_INT(marcel_setaffinity(arg, &set), 0);
	return NULL;
}

static void move_while_all_vps_sleep(void)
{
	marcel_attr_t attr;
	pthread_t p;
	marcel_t t;

	store_relaxed(&runs, 0);
	CHECK_INT(pipe(ends), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 1), 0);
	CHECK_INT(marcel_create(&t, &attr, sleep_and_compute, NULL), 0);
	CHECK_INT(pthread_create(&p, NULL, wake_and_move, t), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	close(ends[0]);
	close(ends[1]);
}

TEST(who_computes_while_all_vps_sleep_is_taken_there)
{
	if (BASE_TSAN)
		check_skip("no tick");
	with_vps(2, move_while_all_vps_sleep);
	moves_first = true;
	with_vps(2, move_while_all_vps_sleep);
}

static ATOMIC(int) stop;

static void *yield_until_stop(void *arg)
{
	while (!load_relaxed(&stop))
		marcel_yield();
	return until_there(arg);
}

TEST_VPS(who_is_new_or_ready_gets_there)
{
	enum { N = 40 };
	marcel_vpset_t set;
	marcel_t t[N];

	store_relaxed(&stop, 0);
	for (int i = 0; i < N; i++) {
		t[i] = make(yield_until_stop,
			    (void *)(intptr_t)(i % marcel_nvp()));
		if (i % 2)
			marcel_yield();
		set = only(i % marcel_nvp());
		CHECK_INT(marcel_setaffinity(t[i], &set), 0);
	}
	store_relaxed(&stop, 1);
	for (int i = 0; i < N; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST_VPS(nobody_is_lost_when_sets_change_all_the_time)
{
	enum { N = 20, CHANGES = 5000 / FEWER };
	marcel_vpset_t set;
	marcel_t t[N];

	store_relaxed(&stop, 0);
	for (int i = 0; i < N; i++)
		t[i] = make(yield_until_stop,
			    (void *)(intptr_t)(i % marcel_nvp()));
	for (int i = 0; i < CHANGES; i++) {
		set = set_of((int)(check_random() % (unsigned)marcel_nvp()),
			     (int)(check_random() % (unsigned)marcel_nvp()));
		CHECK_INT(marcel_setaffinity(t[check_random() % N], &set), 0);
		if (i % 8 == 0)
			marcel_yield();
	}
	for (int i = 0; i < N; i++) {
		set = only(i % marcel_nvp());
		CHECK_INT(marcel_setaffinity(t[i], &set), 0);
	}
	store_relaxed(&stop, 1);
	for (int i = 0; i < N; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

/* --- bad input --- */

static void *foreign_affinity(void *arg)
{
	marcel_vpset_t set = only(0);
	marcel_t t = arg;

	CHECK_INT(marcel_setaffinity(marcel_self(), &set), EINVAL);
	CHECK_INT(marcel_getaffinity(marcel_self(), &set), EINVAL);
	CHECK_INT(marcel_setaffinity(t, &set), 0);
	CHECK_INT(marcel_getaffinity(t, &set), 0);
	CHECK_INT(marcel_yield_to(t), 0);
	return NULL;
}

TEST_VPS(sets_without_a_vp_are_refused)
{
	marcel_vpset_t set, all;
	pthread_t kernel;
	marcel_t t;

	store_relaxed(&stop, 0);
	t = make(yield_until_stop, NULL);
	marcel_vpset_zero(&set);
	CHECK_INT(marcel_setaffinity(t, &set), EINVAL);
	marcel_vpset_add(&set, marcel_nvp());
	CHECK_INT(marcel_setaffinity(t, &set), EINVAL);
	CHECK_INT(marcel_setaffinity(t, NULL), EINVAL);
	CHECK_INT(marcel_setaffinity(marcel_self(), &set), EINVAL);
	marcel_vpset_add(&set, 0);
	CHECK_INT(marcel_setaffinity(marcel_self(), &set), 0);
	CHECK_INT(marcel_getaffinity(marcel_self(), &all), 0);
	CHECK(marcel_vpset_has(&all, 0));
	CHECK(!marcel_vpset_has(&all, marcel_nvp()));
	CHECK_INT(marcel_getaffinity(t, &all), 0);
	for (int i = 0; i < MARCEL_VP_MAX; i++)
		CHECK_INT(marcel_vpset_has(&all, i), i < marcel_nvp());
	CHECK_INT(pthread_create(&kernel, NULL, foreign_affinity, t), 0);
	CHECK_INT(pthread_join(kernel, NULL), 0);
	store_relaxed(&stop, 1);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_setaffinity(t, &all), ESRCH);
	CHECK_INT(marcel_getaffinity(t, &all), ESRCH);
	CHECK_INT(marcel_yield_to(t), ESRCH);
}

/* --- who runs next --- */

enum { LOGGERS = 5, LOG = 4096 };

static int log_of[LOG], logged;

static void *log_until_stop(void *arg)
{
	while (!load_relaxed(&stop)) {
		if (logged < LOG)
			log_of[logged++] = (int)(intptr_t)arg;
		marcel_yield();
	}
	return arg;
}

static void choose_who_is_next(void)
{
	marcel_t t[LOGGERS];
	int at;

	store_relaxed(&stop, 0);
	logged = 0;
	for (int i = 0; i < LOGGERS; i++)
		t[i] = make(log_until_stop, (void *)(intptr_t)i);
	for (int i = 0; i < 100; i++) { /* the first ones as seeds */
		at = logged;
		CHECK_INT(marcel_yield_to(t[i * 3 % LOGGERS]), 0);
		CHECK(logged > at);
		CHECK_INT(log_of[at], i * 3 % LOGGERS);
	}
	store_relaxed(&stop, 1);
	for (int i = 0; i < LOGGERS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(the_thread_that_is_yielded_to_is_next)
{
	without_ticks(choose_who_is_next);
}

static ATOMIC(int) has_run;

static void *say_so(void *arg)
{
	store_relaxed(&has_run, 1);
	return arg;
}

static void *to_and_fro(void *arg)
{
	ATOMIC(marcel_t) *other = arg;
	marcel_t t;

	while (!load_relaxed(&has_run)) {
		t = load_relaxed(other);
		if (t == NULL || marcel_yield_to(t) != 0)
			marcel_yield();
	}
	return arg;
}

TEST(two_that_yield_to_each_other_keep_nobody_waiting)
{
	struct marcel_config one = { .nvp = 1 };
	static ATOMIC(marcel_t) a, b;
	marcel_t c;

	CHECK_INT(marcel_init(&one), 0);
	store_relaxed(&has_run, 0);
	store_relaxed(&a, make(to_and_fro, &b));
	store_relaxed(&b, make(to_and_fro, &a));
	c = make(say_so, NULL);
	CHECK_INT(marcel_join(c, NULL), 0);
	CHECK_INT(marcel_join(load_relaxed(&a), NULL), 0);
	CHECK_INT(marcel_join(load_relaxed(&b), NULL), 0);
	CHECK_INT(marcel_end(), 0);
}

static void *stay_ready(void *arg)
{
	while (!load_relaxed(&stop))
		marcel_yield();
	return arg;
}

static void *yield_to_all(void *arg)
{
	marcel_t *t = arg;

	for (int i = 0; i < 300; i++)
		CHECK_INT(marcel_yield_to(t[i % LOGGERS]), 0);
	return NULL;
}

TEST_VPS(yields_to_threads_in_any_state_lose_nobody)
{
	marcel_t stay[LOGGERS], t[LOGGERS], done;

	store_relaxed(&stop, 0);
	CHECK_INT(marcel_yield_to(marcel_self()), 0);
	for (int i = 0; i < LOGGERS; i++)
		stay[i] = make(stay_ready, NULL);
	for (int i = 0; i < LOGGERS; i++)
		t[i] = make(yield_to_all, stay);
	for (int i = 0; i < LOGGERS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	store_relaxed(&stop, 1);
	for (int i = 0; i < LOGGERS; i++)
		CHECK_INT(marcel_join(stay[i], NULL), 0);
	done = make(nothing, NULL);
	CHECK_INT(marcel_join(done, NULL), 0);
	CHECK_INT(marcel_yield_to(done), ESRCH);
}
