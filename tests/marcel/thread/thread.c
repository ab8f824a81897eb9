/* marcel/thread/thread.c: threads begin, end, are joined and counted. */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <marcel/blocking.h>
#include <marcel/signal.h>
#include "../with.h"
#include "../../../marcel/thread/attr.h"
#include "../../../marcel/thread/thread.h"

enum { MANY = 3000 / FEWER, DEPTH = BASE_TSAN ? 5 : 10 };

static ATOMIC(int) count;

static void *add_one(void *arg)
{
	fetch_add_relaxed(&count, 1);
	return (char *)arg + 1;
}

TEST_VPS(each_thread_runs_once_and_returns_its_value)
{
	static marcel_t t[MANY];
	void *value;

	store_relaxed(&count, 0);
	for (long i = 0; i < MANY; i++)
		CHECK_INT(marcel_create(&t[i], NULL, add_one, (void *)i), 0);
	for (long i = 0; i < MANY; i++) {
		CHECK_INT(marcel_join(t[i], &value), 0);
		CHECK_INT((long)value, i + 1);
	}
	CHECK_INT(load_relaxed(&count), MANY);
}

/* On main's kernel thread a section goes elsewhere. */
static void *uses_libcs_words(void *arg)
{
	for (int c = 'a'; c <= 'z'; c++) {
		marcel_blocking_begin();
		CHECK(isalpha(c) && toupper(c) == c - 'a' + 'A');
		errno = c;
		marcel_blocking_end();
		CHECK_INT(errno, c);
		marcel_yield();
		CHECK_INT(tolower(toupper(c)), c);
	}
	return arg;
}

TEST_VPS(libcs_words_are_those_of_where_a_thread_runs)
{
	marcel_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_create(&t[i], NULL, uses_libcs_words, NULL),
			  0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST_VPS(a_thread_can_be_joined_at_once)
{
	marcel_t t;
	void *value;

	for (long i = 0; i < 20000 / FEWER; i++) {
		CHECK_INT(marcel_create(&t, NULL, add_one, (void *)i), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_INT((long)value, i + 1);
	}
}

static void *tree(void *arg)
{
	long depth = (long)arg, sum = 1;
	marcel_t t[2];
	void *value;

	for (int i = 0; i < 2 && depth > 0; i++)
		CHECK_INT(marcel_create(&t[i], NULL, tree, (void *)(depth - 1)),
			  0);
	for (int i = 0; i < 2 && depth > 0; i++) {
		CHECK_INT(marcel_join(t[i], &value), 0);
		sum += (long)value;
	}
	return (void *)sum;
}

TEST_VPS(threads_make_threads)
{
	for (int i = 0; i < 10; i++)
		CHECK_INT((long)tree((void *)DEPTH), (2 << DEPTH) - 1);
}

static void *yield_often(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		fetch_add_relaxed(&count, 1);
		CHECK_INT(marcel_yield(), 0);
	}
	return arg;
}

TEST_VPS(yielding_threads_all_go_on)
{
	marcel_t t[100];

	store_relaxed(&count, 0);
	for (int i = 0; i < 100; i++)
		CHECK_INT(marcel_create(&t[i], NULL, yield_often, NULL), 0);
	for (int i = 0; i < 100; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&count), 100 * 1000);
}

static ATOMIC(int) stop;

static void *yield_until_stopped(void *arg)
{
	while (!load_acquire(&stop))
		marcel_yield();
	return arg;
}

static void *stop_them(void *arg)
{
	store_release(&stop, 1);
	return arg;
}

TEST_VPS(a_new_thread_gets_its_turn_among_threads_that_only_yield)
{
	marcel_t t[8], last;

	store_relaxed(&stop, 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_create(&t[i], NULL, yield_until_stopped, NULL),
			  0);
	for (int i = 0; i < 100; i++)
		marcel_yield();
	CHECK_INT(marcel_create(&last, NULL, stop_them, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(marcel_join(last, NULL), 0);
}

static BASE_NOINLINE void exit_below(int value)
{
	char frame[1000];

	memset(frame, value, sizeof(frame));
	marcel_exit((void *)(long)frame[999]);
}

static BASE_NOINLINE int exit_deeper(int value)
{
	exit_below(value);
	return value;
}

static void *exit_deep(void *arg)
{
	return (void *)(long)exit_deeper(7);
}

TEST_VPS(exit_ends_the_thread_from_any_depth)
{
	marcel_t t;
	void *value;

	for (int i = 0; i < 100; i++) {
		CHECK_INT(marcel_create(&t, NULL, exit_deep, (void *)9), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_INT((long)value, 7);
	}
}

static void *set_errno(void *arg)
{
	for (int i = 0; i < 100; i++) {
		*marcel_errno_location() = (int)(long)arg;
		marcel_yield();
		CHECK_INT(*marcel_errno_location(), (long)arg);
	}
	return NULL;
}

TEST_VPS(errno_belongs_to_the_thread)
{
	marcel_t t[20];

	*marcel_errno_location() = 99;
	for (long i = 0; i < 20; i++)
		CHECK_INT(marcel_create(&t[i], NULL, set_errno, (void *)i), 0);
	for (int i = 0; i < 20; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(*marcel_errno_location(), 99);
}

static void *self_of(void *arg)
{
	*(marcel_t *)arg = marcel_self();
	return NULL;
}

TEST_VPS(self_is_what_create_gave)
{
	marcel_t t, self = NULL;

	CHECK_INT(marcel_create(&t, NULL, self_of, &self), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK(marcel_equal(self, t));
	CHECK(!marcel_equal(self, marcel_self()));
}

/* --- errors --- */

static void *join_me(void *arg)
{
	(void)arg;
	return (void *)(long)marcel_join(marcel_self(), NULL);
}

static void *join_it(void *arg)
{
	return (void *)(long)marcel_join(arg, NULL);
}

/* Let the other joiner be first. */
static void *join_refused(void *arg)
{
	const struct marcel_thread *t = arg;

	while (load_acquire(&t->ended) == MARCEL_END_NONE) /* order(join) */
		marcel_yield();
	return join_it(arg);
}

TEST_VPS(join_refuses_what_cannot_be_joined)
{
	marcel_t t, u[2];
	void *value;

	CHECK_INT(marcel_create(&t, NULL, join_me, NULL), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_INT((long)value, EDEADLK);
	CHECK_INT(marcel_join(marcel_self(), NULL), EDEADLK);

	store_relaxed(&stop, 0);
	CHECK_INT(marcel_create(&t, NULL, yield_until_stopped, NULL), 0);
	CHECK_INT(marcel_detach(t), 0);
	CHECK_INT(marcel_join(t, NULL), EINVAL);
	CHECK_INT(marcel_detach(t), EINVAL);
	store_release(&stop, 1);

	/* Foreign threads, main included, are nobody's to join. */
	CHECK_INT(marcel_create(&t, NULL, join_it, marcel_self()), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_INT((long)value, EINVAL);

	/* Of two who join a thread the second is refused. */
	store_relaxed(&stop, 0);
	CHECK_INT(marcel_create(&t, NULL, yield_until_stopped, NULL), 0);
	CHECK_INT(marcel_create(&u[0], NULL, join_it, t), 0);
	CHECK_INT(marcel_create(&u[1], NULL, join_refused, t), 0);
	CHECK_INT(marcel_join(u[1], &value), 0);
	CHECK_INT((long)value, EINVAL);
	store_release(&stop, 1);
	CHECK_INT(marcel_join(u[0], &value), 0);
	CHECK_INT((long)value, 0);
}

/* --- who is no thread any more --- */

static void is_gone(marcel_t t)
{
	const struct timespec now = { 0, 0 };

	CHECK_INT(marcel_join(t, NULL), ESRCH);
	CHECK_INT(marcel_tryjoin_np(t, NULL), ESRCH);
	CHECK_INT(marcel_timedjoin_np(t, NULL, &now), ESRCH);
	CHECK_INT(marcel_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &now), ESRCH);
	CHECK_INT(marcel_detach(t), ESRCH);
}

static marcel_t make(void)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, add_one, NULL), 0);
	return t;
}

static marcel_t make_ended(void)
{
	marcel_t t = make();

	while (!(load_acquire(&t->ended) & MARCEL_END_DONE))
		marcel_yield();
	return t;
}

/* Each ways to the end of one. */
static marcel_t make_gone(int how)
{
	const struct timespec late = { .tv_sec = INT32_MAX };
	marcel_t t = how % 2 ? make() : make_ended();
	int rc;

	switch (how / 2) {
	case 0:
		CHECK_INT(marcel_join(t, NULL), 0);
		break;
	case 1:
		CHECK_INT(marcel_timedjoin_np(t, NULL, &late), 0);
		break;
	case 2:
		while ((rc = marcel_tryjoin_np(t, NULL)) == EBUSY)
			marcel_yield();
		CHECK_INT(rc, 0);
		break;
	default:
		CHECK_INT(marcel_detach(t), 0);
		while (load_relaxed(&t->state) != MARCEL_T_FREE)
			marcel_yield();
	}
	return t;
}

enum { WAYS = 8 };

/* No descriptor is given out twice. */
static void are_all_different(void)
{
	static marcel_t t[200];

	store_relaxed(&stop, 0);
	for (int i = 0; i < 200; i++) {
		CHECK_INT(marcel_create(&t[i], NULL, yield_until_stopped, NULL),
			  0);
		for (int j = 0; j < i; j++)
			CHECK(!marcel_equal(t[i], t[j]));
	}
	store_release(&stop, 1);
	for (int i = 0; i < 200; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST_VPS(a_thread_is_joined_or_detached_once)
{
	for (int how = 0; how < WAYS; how++)
		is_gone(make_gone(how));
	are_all_different();
}

static void *end_foreign(void *arg)
{
	*(marcel_t *)arg = marcel_self();
	return NULL;
}

TEST_VPS(a_foreign_thread_that_has_ended_is_none)
{
	pthread_t p;
	marcel_t t;

	CHECK_INT(pthread_create(&p, NULL, end_foreign, &t), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	is_gone(t);
}

TEST_VPS(what_could_not_be_made_is_no_thread)
{
	marcel_t gone = make_gone(0), t = NULL;
	marcel_attr_t attr;

	CHECK_INT(marcel_attr_init(&attr), 0);
	/* As one that was set when there were more VPs. */
	((struct marcel_attr *)&attr)->has_set = true;
	((struct marcel_attr *)&attr)->set.bits[3] = (uint64_t)1 << 63;
	CHECK_INT(marcel_create(&t, &attr, add_one, NULL), EINVAL);
	CHECK_PTR(t, NULL);
	is_gone(gone);
}

static int nobody(const struct marcel_info *info, void *arg)
{
	return 0;
}

TEST_VPS(no_thread_is_none_and_nothing_is_no_argument)
{
	marcel_t self = marcel_self();
	char name[MARCEL_NAME_MAX];
	marcel_vpset_t set;
	marcel_attr_t attr;
	uint64_t ns;
	int value;

	is_gone(NULL);
	CHECK_INT(marcel_cancel(NULL), ESRCH);
	CHECK_INT(marcel_kill(NULL, 0), ESRCH);
	CHECK_INT(marcel_yield_to(NULL), ESRCH);
	CHECK_INT(marcel_getattr_np(NULL, &attr), ESRCH);
	CHECK_INT(marcel_getname(NULL, name, sizeof(name)), ESRCH);
	CHECK_INT(marcel_setname(NULL, "name"), ESRCH);
	CHECK_INT(marcel_getpriority(NULL, &value), ESRCH);
	CHECK_INT(marcel_setpriority(NULL, MARCEL_PRIORITY_IDLE), ESRCH);
	CHECK_INT(marcel_getaffinity(NULL, &set), ESRCH);
	CHECK_INT(marcel_setaffinity(NULL, &set), ESRCH);
	CHECK_INT(marcel_cputime(NULL, &ns), ESRCH);

	CHECK_INT(marcel_getattr_np(self, NULL), EINVAL);
	CHECK_INT(marcel_getname(self, NULL, sizeof(name)), EINVAL);
	CHECK_INT(marcel_setname(self, NULL), EINVAL);
	CHECK_INT(marcel_getpriority(self, NULL), EINVAL);
	CHECK_INT(marcel_setaffinity(self, NULL), EINVAL);
	CHECK_INT(marcel_cputime(self, NULL), EINVAL);
	CHECK_INT(marcel_threads(NULL, NULL), EINVAL);
	CHECK_INT(marcel_threads(nobody, NULL), 0);
	CHECK_INT(marcel_key_create(NULL, NULL), EINVAL);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_getdetachstate(&attr, NULL), EINVAL);
	CHECK_INT(marcel_attr_getstack(&attr, NULL, NULL), EINVAL);
	CHECK_INT(marcel_nanosleep(NULL, NULL), -1);
	CHECK_INT(*marcel_errno_location(), EINVAL);
	CHECK_INT(marcel_sigwait(NULL, NULL), EINVAL);
}

static void *time_nobody_gave(void *arg)
{
	marcel_t t = arg;
	marcel_mutex_t m = MARCEL_MUTEX_INITIALIZER, n = m;
	marcel_cond_t c = MARCEL_COND_INITIALIZER;
	marcel_sem_t s;

	CHECK_INT(marcel_sem_init(&s, 0, 0), 0);
	CHECK_INT(marcel_mutex_lock(&m), 0);
	CHECK_INT(marcel_mutex_lock(&n), 0);
	CHECK_INT(marcel_cond_timedwait(&c, &m, NULL), EINVAL);
	CHECK_INT(marcel_mutex_timedlock(&n, NULL), EINVAL);
	CHECK_INT(marcel_sem_timedwait(&s, NULL), EINVAL);
	CHECK_INT(marcel_timedjoin_np(t, NULL, NULL), EINVAL);
	return NULL;
}

TEST_VPS(a_time_that_is_not_there_is_none)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, time_nobody_gave, marcel_self()), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	store_relaxed(&stop, 0);
	CHECK_INT(marcel_create(&t, NULL, yield_until_stopped, NULL), 0);
	time_nobody_gave(t);
	store_release(&stop, 1);
	CHECK_INT(marcel_join(t, NULL), 0);
}

static marcel_t wanted;
static ATOMIC(int) begin; /* a: order(test): `wanted` */

static void *want(void *arg)
{
	int rc;

	while (!load_acquire(&begin)) /* order(test) */
		marcel_yield();
	rc = (long)arg % 2 ? marcel_join(wanted, NULL) : marcel_detach(wanted);
	CHECK(rc == 0 || rc == EINVAL || rc == ESRCH);
	return (void *)(long)(rc == 0);
}

TEST_VPS(of_many_that_want_a_thread_one_has_it)
{
	enum { RIVALS = 4 };
	marcel_t t[RIVALS];
	void *won;
	long winners;

	/* While they want it nothing is made that would get its descriptor. */
	for (int round = 0; round < 500 / FEWER; round++) {
		wanted = round % 2 ? make() : make_ended();
		winners = 0;
		store_relaxed(&begin, 0);
		for (long i = 0; i < RIVALS; i++)
			CHECK_INT(marcel_create(&t[i], NULL, want, (void *)i),
				  0);
		store_release(&begin, 1); /* order(test) */
		for (int i = 0; i < RIVALS; i++) {
			CHECK_INT(marcel_join(t[i], &won), 0);
			winners += (long)won;
		}
		CHECK_INT(winners, 1);
	}
	are_all_different();
}

TEST(nothing_is_created_before_init)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, add_one, NULL), EPERM);
	CHECK_INT(marcel_nvp(), 0);
	CHECK_INT(marcel_current_vp(), -1);
	CHECK_INT(marcel_end(), -EINVAL);
	CHECK(!marcel_is_running());
}

static void end_waits(int nvp)
{
	struct marcel_config config = { .nvp = nvp };
	marcel_attr_t attr;
	marcel_t t;

	store_relaxed(&count, 0);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_init(NULL), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED), 0);
	for (int i = 0; i < 50; i++)
		CHECK_INT(marcel_create(&t, &attr, yield_often, NULL), 0);
	CHECK_INT(marcel_end(), 0); /* the inner one does nothing */
	CHECK(marcel_is_running());
	CHECK_INT(marcel_end(), 0);
	CHECK(!marcel_is_running());
	CHECK_INT(load_relaxed(&count), 50 * 1000);
}

TEST(end_waits_for_detached_threads)
{
	end_waits(1);
	end_waits(4);
}

TEST(init_and_end_can_be_repeated)
{
	marcel_t t;

	for (int i = 0; i < 30; i++) {
		struct marcel_config config = { .nvp = 1 + i % 5 };

		CHECK_INT(marcel_init(&config), 0);
		CHECK_INT(marcel_create(&t, NULL, tree, (void *)3), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(marcel_end(), 0);
	}
}

/* --- foreign threads --- */

static ATOMIC(int) finished;

static void *foreign(void *arg)
{
	marcel_t self = marcel_self(), t[50];
	void *value;

	CHECK_INT(marcel_current_vp(), -1);
	CHECK_INT(marcel_end(), -EPERM);
	CHECK_INT(marcel_init(NULL), -EPERM);
	for (int round = 0; round < (FEWER > 1 ? 4 : 20); round++) {
		for (long i = 0; i < 50; i++)
			CHECK_INT(
				marcel_create(&t[i], NULL, add_one, (void *)i),
				0);
		for (long i = 0; i < 50; i++) {
			CHECK_INT(marcel_join(t[i], &value), 0);
			CHECK_INT((long)value, i + 1);
		}
	}
	CHECK_PTR(marcel_self(), self);
	fetch_add_release(&finished, 1);
	return arg;
}

TEST_VPS(foreign_threads_create_and_join)
{
	pthread_t p[3];
	marcel_t t[50];

	store_relaxed(&finished, 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_create(&p[i], NULL, foreign, NULL), 0);
	for (int i = 0; i < 50; i++)
		CHECK_INT(marcel_create(&t[i], NULL, yield_often, NULL), 0);
	for (int i = 0; i < 50; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	while (load_acquire(&finished) < 3)
		marcel_yield();
	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_join(p[i], NULL), 0);
}
