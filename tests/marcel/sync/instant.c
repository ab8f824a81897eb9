/*
 * What is granted at the moment in which a wait runs out: nothing is lost or
 * had twice, and the object may be gone at once.
 */
#include "crowd.h"

#include <errno.h>
#include <time.h>

#include <base/clock.h>

enum { SOON_NS = 20000 };

static ATOMIC(uint64_t) drawn;

/* For many threads at once, whose order is not ours to repeat anyway. */
static uint64_t draw(void)
{
	uint64_t x = fetch_add_relaxed(&drawn, 0x9e3779b97f4a7c15);

	return (x ^ x >> 31) * 0xbf58476d1ce4e5b9 >> 20;
}

/* Some microseconds from now. */
static struct timespec soon(clockid_t clock)
{
	struct timespec t;
	uint64_t ns;

	clock_gettime(clock, &t);
	ns = (uint64_t)t.tv_nsec + draw() % SOON_NS;
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	return t;
}

static uint64_t soon_ns(void)
{
	return base_now_ns() + draw() % SOON_NS;
}

static void check_rc(int rc)
{
	CHECK(rc == 0 || rc == ETIMEDOUT);
}

/* --- semaphore: every unit that was posted is had by one --- */

struct units {
	marcel_sem_t sem;
	ATOMIC(int) had;
	int wanted;
};

static void post_or_wait(void *arg, int i)
{
	struct units *u = arg;
	struct timespec t;
	int rc;

	for (int n = 0; n < ROUNDS && i % 2 == 0; n++) {
		CHECK_INT(marcel_sem_post(&u->sem), 0);
		if (n % 4 == i % 4)
			marcel_yield();
	}
	while (i % 2 != 0 && load_relaxed(&u->had) < u->wanted) {
		t = soon(CLOCK_MONOTONIC);
		rc = marcel_sem_clockwait(&u->sem, CLOCK_MONOTONIC, &t);
		check_rc(rc);
		if (rc == 0)
			fetch_add_relaxed(&u->had, 1);
	}
}

TEST(no_unit_of_a_semaphore_is_lost)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct units u = { .wanted = ROUNDS * crowd_size(&crowds[c]) /
					     2 };
		int v;

		CHECK_INT(marcel_sem_init(&u.sem, 0, 0), 0);
		crowd_run(&crowds[c], post_or_wait, &u);
		CHECK_INT(load_relaxed(&u.had), u.wanted);
		CHECK_INT(marcel_sem_getvalue(&u.sem, &v), 0);
		CHECK_INT(v, 0);
		CHECK_INT(marcel_sem_destroy(&u.sem), 0);
	}
}

/* --- mutex, with who waits in time and who waits for ever --- */

struct section {
	marcel_mutex_t m;
	long inside, locked;
	ATOMIC(long) had;
};

static void lock_in_time(void *arg, int i)
{
	struct section *s = arg;
	struct timespec t;
	int rc;

	for (int n = 0; n < ROUNDS; n++) {
		t = soon(CLOCK_REALTIME);
		rc = i % 4 == 0 ? marcel_mutex_lock(&s->m)
				: marcel_mutex_timedlock(&s->m, &t);
		check_rc(rc);
		if (rc != 0)
			continue;
		CHECK_INT(s->inside++, 0);
		s->locked++;
		if (n % 3 == 0)
			marcel_yield();
		s->inside--;
		CHECK_INT(marcel_mutex_unlock(&s->m), 0);
		fetch_add_relaxed(&s->had, 1);
	}
}

TEST(a_mutex_has_one_owner_and_wakes_who_waits)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct section s = { .m = MARCEL_MUTEX_INITIALIZER };

		crowd_run(&crowds[c], lock_in_time, &s);
		CHECK_INT(s.locked, load_relaxed(&s.had));
		CHECK_INT(marcel_mutex_destroy(&s.m), 0);
	}
}

/* --- condition: one signal per item, and it reaches somebody --- */

struct items {
	marcel_mutex_t m;
	marcel_cond_t c;
	int ready, left;
};

static void make_or_take(void *arg, int i)
{
	struct items *b = arg;
	struct timespec t;

	for (int n = 0; n < ROUNDS && i % 2 == 0; n++) {
		CHECK_INT(marcel_mutex_lock(&b->m), 0);
		b->ready++;
		if (n % 2 == 0)
			CHECK_INT(marcel_cond_signal(&b->c), 0);
		CHECK_INT(marcel_mutex_unlock(&b->m), 0);
		if (n % 2 != 0)
			CHECK_INT(marcel_cond_signal(&b->c), 0);
		if (n % 5 == 0)
			marcel_yield();
	}
	if (i % 2 == 0)
		return;
	CHECK_INT(marcel_mutex_lock(&b->m), 0);
	while (b->left > 0) {
		/* One of them waits for ever: a lost signal would show. */
		while (b->ready == 0 && b->left > 0) {
			t = soon(CLOCK_REALTIME);
			if (i == 1)
				CHECK_INT(marcel_cond_wait(&b->c, &b->m), 0);
			else
				check_rc(marcel_cond_timedwait(&b->c, &b->m,
							       &t));
		}
		if (b->left == 0)
			break;
		b->ready--;
		if (--b->left == 0)
			CHECK_INT(marcel_cond_broadcast(&b->c), 0);
	}
	CHECK_INT(marcel_mutex_unlock(&b->m), 0);
}

TEST(no_signal_is_lost_to_a_waiter_that_leaves)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct items b = { .left = ROUNDS * crowd_size(&crowds[c]) /
					   2 };

		crowd_run(&crowds[c], make_or_take, &b);
		CHECK_INT(b.ready, 0);
		CHECK_INT(marcel_cond_destroy(&b.c), 0);
		CHECK_INT(marcel_mutex_destroy(&b.m), 0);
	}
}

/* --- read-write lock --- */

struct book {
	marcel_rwlock_t l;
	int readers, writers;
	ATOMIC(int) reading;
	long written;
	ATOMIC(long) writes;
};

static void read_in_time(struct book *b, struct timespec *t, int n)
{
	int rc = n % 8 == 0 ? marcel_rwlock_rdlock(&b->l)
			    : marcel_rwlock_timedrdlock(&b->l, t);

	check_rc(rc);
	if (rc != 0)
		return;
	fetch_add_relaxed(&b->reading, 1);
	CHECK_INT(b->writers, 0);
	if (n % 3 == 0)
		marcel_yield();
	fetch_sub_relaxed(&b->reading, 1);
	CHECK_INT(marcel_rwlock_unlock(&b->l), 0);
}

static void write_in_time(struct book *b, struct timespec *t, int n)
{
	int rc = n % 8 == 0 ? marcel_rwlock_wrlock(&b->l)
			    : marcel_rwlock_timedwrlock(&b->l, t);

	check_rc(rc);
	if (rc != 0)
		return;
	CHECK_INT(load_relaxed(&b->reading), 0);
	CHECK_INT(b->writers++, 0);
	b->written++;
	if (n % 3 == 0)
		marcel_yield();
	b->writers--;
	CHECK_INT(marcel_rwlock_unlock(&b->l), 0);
	fetch_add_relaxed(&b->writes, 1);
}

static void use_book(void *arg, int i)
{
	struct timespec t;

	for (int n = 0; n < ROUNDS; n++) {
		t = soon(CLOCK_REALTIME);
		if ((n + i) % 3 == 0)
			write_in_time(arg, &t, n);
		else
			read_in_time(arg, &t, n);
	}
}

TEST(writers_stay_alone_and_all_get_their_turn)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct book b = { .written = 0 };

		crowd_run(&crowds[c], use_book, &b);
		CHECK_INT(b.written, load_relaxed(&b.writes));
		CHECK_INT(marcel_rwlock_destroy(&b.l), 0);
	}
}

/* --- the object goes as soon as the wait was granted --- */

static const struct crowd pairs[] = { { 1, 2, 0 },
				      { VPS_MANY, 2, 0 },
				      { 1, 1, 1 } };

struct posted {
	marcel_sem_t s;
	int data;
};

static struct posted *posted[ROUNDS];

static void wait_or_post(void *arg, int i)
{
	struct timespec t;
	int rc;

	for (int n = 0; n < ROUNDS; n++) {
		if (i != 0) {
			if (n % 3 == 0)
				marcel_yield();
			posted[n]->data = n;
			CHECK_INT(marcel_sem_post(&posted[n]->s), 0);
			continue;
		}
		do {
			t = soon(CLOCK_MONOTONIC);
			rc = marcel_sem_clockwait(&posted[n]->s,
						  CLOCK_MONOTONIC, &t);
			check_rc(rc);
		} while (rc != 0);
		CHECK_INT(posted[n]->data, n);
		page_free(posted[n]);
	}
}

TEST(a_semaphore_may_be_unmapped_after_the_last_wait)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(pairs); c++) {
		for (int n = 0; n < ROUNDS; n++)
			posted[n] = page_new();
		crowd_run(&pairs[c], wait_or_post, NULL);
	}
}

struct turns {
	marcel_mutex_t m;
	marcel_cond_t *c[ROUNDS];
	bool flag[ROUNDS];
};

static void wait_or_broadcast(void *arg, int i)
{
	struct turns *s = arg;
	struct timespec t;

	for (int n = 0; n < ROUNDS; n++) {
		CHECK_INT(marcel_mutex_lock(&s->m), 0);
		if (i != n % 2) {
			while (!s->flag[n]) {
				t = soon(CLOCK_REALTIME);
				check_rc(marcel_cond_timedwait(s->c[n], &s->m,
							       &t));
			}
		} else {
			s->flag[n] = true;
			CHECK_INT(marcel_cond_broadcast(s->c[n]), 0);
			page_free(s->c[n]);
		}
		CHECK_INT(marcel_mutex_unlock(&s->m), 0);
	}
}

TEST(a_condition_may_be_unmapped_right_after_its_broadcast)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(pairs); c++) {
		static struct turns s;

		s = (struct turns){ .m = MARCEL_MUTEX_INITIALIZER };
		for (int n = 0; n < ROUNDS; n++)
			s.c[n] = page_new();
		crowd_run(&pairs[c], wait_or_broadcast, &s);
	}
}

/* --- events: the waiter frees, the setter sets --- */

static marcel_event_t *events[2 * ROUNDS];

static void wait_or_set(void *arg, int i)
{
	int rc;

	for (int n = 0; n < ROUNDS; n++) {
		if (i != 0) {
			if (n % 3 == 0)
				marcel_yield();
			marcel_event_set(events[n]);
			continue;
		}
		while ((rc = marcel_event_wait_until(events[n], soon_ns())))
			CHECK_INT(rc, -ETIMEDOUT);
		page_free(events[n]);
	}
}

TEST(an_event_may_be_unmapped_when_it_is_set)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(pairs); c++) {
		for (int n = 0; n < ROUNDS; n++)
			events[n] = page_new();
		crowd_run(&pairs[c], wait_or_set, NULL);
	}
}

static void wait_any_or_set(void *arg, int i)
{
	size_t got = 0;

	for (int n = 0; n < ROUNDS; n++) {
		if (i > 0) {
			if (n % 3 == i)
				marcel_yield();
			marcel_event_set(events[2 * n + i - 1]);
			continue;
		}
		for (int k = 0; k < 2; k++) {
			while ((got = marcel_event_wait_any_until(
					&events[2 * n], 2, soon_ns())) == 2)
				;
			CHECK(got < 2);
			page_free(events[2 * n + (int)got]);
			events[2 * n + (int)got] = NULL;
		}
	}
}

TEST(events_of_a_group_may_be_unmapped_when_they_are_set)
{
	static const struct crowd three[] = {
		{ 1, 3, 0 }, { VPS_MANY, 3, 0 }, { 1, 1, 2 }, { VPS_MANY, 2, 1 }
	};

	for (size_t c = 0; c < BASE_ARRAY_LEN(three); c++) {
		for (int n = 0; n < 2 * ROUNDS; n++)
			events[n] = page_new();
		crowd_run(&three[c], wait_any_or_set, NULL);
	}
}

/* --- join --- */

static void *end_soon(void *arg)
{
	if ((uintptr_t)arg % 3 == 0)
		marcel_yield();
	return arg;
}

static void join_in_time(void *arg, int i)
{
	struct timespec t;
	void *result;
	marcel_t m;
	int rc;

	for (int n = 0; n < ROUNDS; n++) {
		CHECK_INT(
			marcel_create(&m, NULL, end_soon, (void *)(uintptr_t)n),
			0);
		do {
			t = soon(CLOCK_REALTIME);
			rc = marcel_timedjoin_np(m, &result, &t);
			check_rc(rc);
		} while (rc != 0 && n % 2 == 0);
		if (rc != 0)
			CHECK_INT(marcel_join(m, &result), 0);
		CHECK_INT((uintptr_t)result, n);
	}
}

TEST(every_thread_is_joined_once)
{
	/* Kernel threads need a VP for theirs while main joins them. */
	static const struct crowd some[] = { { 1, 8, 0 },
					     { VPS_MANY, 8, 0 },
					     { VPS_MANY, 2, 2 } };

	for (size_t c = 0; c < BASE_ARRAY_LEN(some); c++)
		crowd_run(&some[c], join_in_time, NULL);
}
