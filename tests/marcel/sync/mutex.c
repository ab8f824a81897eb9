/* sync/mutex.c */
#include "references.h"

#include <errno.h>

#include "../../../marcel/sync/mutex.h"

enum { SECTIONS = ROUNDS };

struct shared {
	marcel_mutex_t m;
	long counter; /* plain: the mutex gives exclusion and order */
	bool inside;
	int yield_every; /* 0: never */
};

static void count_up(void *arg, int i)
{
	struct shared *s = arg;

	for (int n = 0; n < SECTIONS; n++) {
		CHECK_INT(marcel_mutex_lock(&s->m), 0);
		CHECK(!s->inside);
		s->inside = true;
		s->counter++;
		if (s->yield_every && (n + i) % s->yield_every == 0)
			marcel_yield();
		s->inside = false;
		CHECK_INT(marcel_mutex_unlock(&s->m), 0);
	}
}

static void check_exclusion(int yield_every)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct shared s = { .m = MARCEL_MUTEX_INITIALIZER,
				    .yield_every = yield_every };

		crowd_run(&crowds[c], count_up, &s);
		CHECK_INT(s.counter, (long)SECTIONS * crowd_size(&crowds[c]));
		CHECK_INT(marcel_mutex_destroy(&s.m), 0);
	}
}

TEST(one_thread_is_inside)
{
	check_exclusion(0);
}

TEST(one_thread_is_inside_when_sections_give_the_vp_away)
{
	check_exclusion(1);
	check_exclusion(3);
}

static void try_count_up(void *arg, int i)
{
	struct shared *s = arg;

	for (int n = 0; n < SECTIONS; n++) {
		while (marcel_mutex_trylock(&s->m) != 0)
			marcel_yield();
		CHECK(!s->inside);
		s->inside = true;
		s->counter++;
		s->inside = false;
		CHECK_INT(marcel_mutex_unlock(&s->m), 0);
	}
}

static void lock_or_try(void *arg, int i)
{
	if (i % 2 == 0)
		count_up(arg, i);
	else
		try_count_up(arg, i);
}

TEST(trylock_and_lock_exclude_each_other)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct shared s = { .yield_every = 7 };

		crowd_run(&crowds[c], lock_or_try, &s);
		CHECK_INT(s.counter, (long)SECTIONS * crowd_size(&crowds[c]));
	}
}

static int init_it(void *lock)
{
	return marcel_mutex_init(lock, NULL);
}

static int lock_it(void *lock)
{
	return marcel_mutex_lock(lock);
}

static int unlock_it(void *lock)
{
	return marcel_mutex_unlock(lock);
}

TEST(unlock_touches_nothing_after_it_let_the_next_in)
{
	static const struct lock_calls calls = { init_it, lock_it, unlock_it };

	check_references(&calls);
}

struct order {
	marcel_mutex_t m;
	int next;
};

static void lock_in_order(void *arg, int i)
{
	struct order *o = arg;

	marcel_mutex_lock(&o->m);
	CHECK_INT(o->next, i);
	o->next++;
	marcel_mutex_unlock(&o->m);
}

struct crowd_of_order {
	struct order o;
	struct crowd_member m[CROWD_MAX];
	marcel_t t[CROWD_MAX];
};

TEST(who_waits_longest_gets_it_first)
{
	struct crowd_of_order x = { .o.m = MARCEL_MUTEX_INITIALIZER };

	sole_vp_start();
	marcel_mutex_lock(&x.o.m);
	for (int i = 0; i < CROWD_MAX; i++) {
		x.m[i] = (struct crowd_member){ lock_in_order, &x.o, i };
		marcel_create(&x.t[i], NULL, crowd_main, &x.m[i]);
		marcel_yield(); /* it runs and queues */
	}
	marcel_mutex_unlock(&x.o.m);
	for (int i = 0; i < CROWD_MAX; i++)
		marcel_join(x.t[i], NULL);
	CHECK_INT(x.o.next, CROWD_MAX);
	vps_stop();
}

/* A thread that locks again at once does not keep the others out. */
struct greedy {
	marcel_mutex_t m;
	long mine;   /* sections of the greedy thread since the other's last */
	long others; /* sections of the other */
	ATOMIC(int) waits; /* the other has asked for it */
};

enum { TAKEN_AT_MOST = 8, FAIR_ROUNDS = 200 };

static void greedy_or_modest(void *arg, int i)
{
	struct greedy *g = arg;
	bool end = false;

	while (!end) {
		if (i == 1)
			store_relaxed(&g->waits, 1);
		marcel_mutex_lock(&g->m);
		if (i == 1) {
			store_relaxed(&g->waits, 0);
			g->mine = 0;
			g->others++;
		} else if (load_relaxed(&g->waits)) {
			CHECK(++g->mine <= TAKEN_AT_MOST);
		}
		end = g->others >= FAIR_ROUNDS;
		marcel_yield(); /* so that the other finds it locked */
		marcel_mutex_unlock(&g->m);
	}
}

TEST(who_locks_again_and_again_does_not_starve_who_waits)
{
	struct greedy g = { .m = MARCEL_MUTEX_INITIALIZER };

	sole_vp_start();
	crowd_go(&(struct crowd){ 1, 2, 0 }, greedy_or_modest, &g);
	vps_stop();
	CHECK_INT(g.others, FAIR_ROUNDS);
}

static marcel_mutex_t of_type(int type)
{
	marcel_mutexattr_t attr;
	marcel_mutex_t m;
	int got = -1;

	CHECK_INT(marcel_mutexattr_init(&attr), 0);
	CHECK_INT(marcel_mutexattr_settype(&attr, type), 0);
	CHECK_INT(marcel_mutexattr_gettype(&attr, &got), 0);
	CHECK_INT(got, type);
	CHECK_INT(marcel_mutex_init(&m, &attr), 0);
	CHECK_INT(marcel_mutexattr_destroy(&attr), 0);
	return m;
}

/* What another thread is told while this one holds the mutex. */
struct stranger {
	marcel_mutex_t m;
	int unlock, trylock, destroy;
};

static void *be_stranger(void *arg)
{
	struct stranger *s = arg;

	s->unlock = marcel_mutex_unlock(&s->m);
	s->trylock = marcel_mutex_trylock(&s->m);
	s->destroy = marcel_mutex_destroy(&s->m);
	return NULL;
}

static void ask_stranger(struct stranger *s)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, be_stranger, s), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(errorcheck_refuses_what_posix_lists)
{
	struct stranger s = { .m = of_type(MARCEL_MUTEX_ERRORCHECK) };

	vps_start(1);
	CHECK_INT(marcel_mutex_unlock(&s.m), EPERM);
	CHECK_INT(marcel_mutex_lock(&s.m), 0);
	CHECK_INT(marcel_mutex_lock(&s.m), EDEADLK);
	CHECK_INT(marcel_mutex_trylock(&s.m), EBUSY);
	ask_stranger(&s);
	CHECK_INT(s.unlock, EPERM);
	CHECK_INT(s.trylock, EBUSY);
	CHECK_INT(s.destroy, EBUSY);
	CHECK_INT(marcel_mutex_unlock(&s.m), 0);
	CHECK_INT(marcel_mutex_unlock(&s.m), EPERM);
	CHECK_INT(marcel_mutex_destroy(&s.m), 0);
	vps_stop();
}

TEST(recursive_is_free_after_as_many_unlocks_as_locks)
{
	struct stranger s = { .m = of_type(MARCEL_MUTEX_RECURSIVE) };

	vps_start(1);
	CHECK_INT(marcel_mutex_unlock(&s.m), EPERM);
	CHECK_INT(marcel_mutex_lock(&s.m), 0);
	CHECK_INT(marcel_mutex_lock(&s.m), 0);
	CHECK_INT(marcel_mutex_trylock(&s.m), 0);
	for (int i = 0; i < 3; i++) {
		ask_stranger(&s);
		CHECK_INT(s.unlock, EPERM);
		CHECK_INT(s.trylock, EBUSY);
		CHECK_INT(s.destroy, EBUSY);
		CHECK_INT(marcel_mutex_unlock(&s.m), 0);
	}
	CHECK_INT(marcel_mutex_unlock(&s.m), EPERM);
	CHECK_INT(marcel_mutex_destroy(&s.m), 0);
	vps_stop();
}

TEST(recursion_too_deep_is_eagain)
{
	marcel_mutex_t m = of_type(MARCEL_MUTEX_RECURSIVE);

	vps_start(1);
	CHECK_INT(marcel_mutex_lock(&m), 0);
	((struct marcel_mutex *)&m)->count = INT32_MAX;
	CHECK_INT(marcel_mutex_lock(&m), EAGAIN);
	CHECK_INT(marcel_mutex_trylock(&m), EAGAIN);
	vps_stop();
}

TEST(a_normal_mutex_says_busy_and_may_be_used_before_init)
{
	struct stranger s = { .m = MARCEL_MUTEX_INITIALIZER };

	CHECK_INT(marcel_mutex_lock(&s.m), 0);
	CHECK_INT(marcel_mutex_trylock(&s.m), EBUSY);
	CHECK_INT(marcel_mutex_destroy(&s.m), EBUSY);
	CHECK_INT(marcel_mutex_unlock(&s.m), 0);
	CHECK_INT(marcel_mutex_trylock(&s.m), 0);
	CHECK_INT(marcel_mutex_unlock(&s.m), 0);
	CHECK_INT(marcel_mutex_destroy(&s.m), 0);
}

static bool is_as(int type, const marcel_mutex_t *by_word)
{
	marcel_mutexattr_t attr;
	marcel_mutex_t m;

	CHECK_INT(marcel_mutexattr_init(&attr), 0);
	CHECK_INT(marcel_mutexattr_settype(&attr, type), 0);
	CHECK_INT(marcel_mutex_init(&m, &attr), 0);
	return memcmp(&m, by_word, sizeof(m)) == 0;
}

TEST(a_static_initialiser_says_the_type)
{
	static const marcel_mutex_t normal = MARCEL_MUTEX_INITIALIZER,
				    recursive =
					    MARCEL_MUTEX_RECURSIVE_INITIALIZER,
				    errorcheck =
					    MARCEL_MUTEX_ERRORCHECK_INITIALIZER;

	CHECK(is_as(MARCEL_MUTEX_NORMAL, &normal));
	CHECK(is_as(MARCEL_MUTEX_RECURSIVE, &recursive));
	CHECK(is_as(MARCEL_MUTEX_ERRORCHECK, &errorcheck));
}

TEST(attributes_are_checked)
{
	marcel_mutexattr_t attr = { { 0 } };
	marcel_mutex_t m;
	int type;

	CHECK_INT(marcel_mutexattr_gettype(&attr, &type), EINVAL);
	CHECK_INT(marcel_mutex_init(&m, &attr), EINVAL);
	CHECK_INT(marcel_mutexattr_init(&attr), 0);
	CHECK_INT(marcel_mutexattr_gettype(&attr, &type), 0);
	CHECK_INT(type, MARCEL_MUTEX_DEFAULT);
	CHECK_INT(marcel_mutexattr_settype(&attr, -1), EINVAL);
	CHECK_INT(marcel_mutexattr_settype(&attr, 3), EINVAL);
	CHECK_INT(marcel_mutexattr_destroy(&attr), 0);
	CHECK_INT(marcel_mutexattr_settype(&attr, 0), EINVAL);
	CHECK_INT(marcel_mutex_init(&m, &attr), EINVAL);
	CHECK_INT(marcel_mutex_init(&m, NULL), 0);
	CHECK_INT(marcel_mutex_destroy(&m), 0);
}
