/*
 * marcel/thread/cancel.c: who waits at a cancellation point, of whichever kind,
 * is taken out of it; nothing that was granted is lost.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "../../../marcel/sched/enter.h"
#include "../parked.h"

/* What nobody grants. */
struct things {
	marcel_mutex_t mutex;
	marcel_cond_t cond;
	marcel_sem_t sem;
	marcel_event_t end; /* of who is joined */
	marcel_t joined;
};

struct victim {
	struct things *s;
	int (*wait)(struct things *s);
	ATOMIC(struct marcel_thread *) self;
	int cleaned;
};

static const struct timespec far_off = { .tv_sec = (time_t)1 << 40 };

static int wait_cond(struct things *s)
{
	CHECK_INT(marcel_mutex_lock(&s->mutex), 0);
	return marcel_cond_wait(&s->cond, &s->mutex);
}

static int wait_cond_until(struct things *s)
{
	CHECK_INT(marcel_mutex_lock(&s->mutex), 0);
	return marcel_cond_timedwait(&s->cond, &s->mutex, &far_off);
}

static int wait_sem(struct things *s)
{
	return marcel_sem_wait(&s->sem);
}

static int wait_sem_until(struct things *s)
{
	return marcel_sem_timedwait(&s->sem, &far_off);
}

static int wait_join(struct things *s)
{
	return marcel_join(s->joined, NULL);
}

static int wait_join_until(struct things *s)
{
	return marcel_timedjoin_np(s->joined, NULL, &far_off);
}

static void *until_end(void *arg)
{
	struct things *s = arg;

	marcel_event_wait(&s->end);
	return s;
}

/* A seed, which its joiner most often runs in its own place. */
static int wait_seed(struct things *s)
{
	CHECK_INT(marcel_create(&s->joined, NULL, until_end, s), 0);
	return marcel_join(s->joined, NULL);
}

static int wait_sleep(struct things *s)
{
	return marcel_nanosleep(&far_off, NULL);
}

static int wait_sleep_until(struct things *s)
{
	return marcel_clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &far_off,
				      NULL);
}

static int (*const kinds[])(struct things *) = {
	wait_cond, wait_cond_until, wait_sem,   wait_sem_until,
	wait_join, wait_join_until, wait_sleep, wait_sleep_until,
};

static bool is_cond(const struct victim *v)
{
	return v->wait == wait_cond || v->wait == wait_cond_until;
}

static void things_init(struct things *s)
{
	*s = (struct things){ .mutex = MARCEL_MUTEX_INITIALIZER,
			      .cond = MARCEL_COND_INITIALIZER };
	CHECK_INT(marcel_sem_init(&s->sem, 0, 0), 0);
	CHECK_INT(marcel_create(&s->joined, NULL, until_end, s), 0);
}

/* Nobody waits for them, and the thread can be joined. */
static void things_exit(struct things *s)
{
	int v;

	CHECK_INT(marcel_mutex_destroy(&s->mutex), 0);
	CHECK_INT(marcel_cond_destroy(&s->cond), 0);
	CHECK_INT(marcel_sem_getvalue(&s->sem, &v), 0);
	CHECK_INT(v, 0);
	CHECK_INT(marcel_sem_destroy(&s->sem), 0);
	if (!marcel_event_test(&s->end))
		marcel_event_set(&s->end);
	CHECK_INT(marcel_join(s->joined, NULL), 0);
}

/* A handler of who waited for a condition has the mutex. */
static void clean(void *arg)
{
	struct victim *v = arg;

	v->cleaned++;
	if (is_cond(v))
		CHECK_INT(marcel_mutex_unlock(&v->s->mutex), 0);
}

static void *be_victim(void *arg)
{
	struct victim *v = arg;
	int rc;

	marcel_cleanup_push(clean, v);
	store_release(&v->self, marcel_self());
	rc = v->wait(v->s);
	CHECK_INT(rc, -1);
	marcel_cleanup_pop(0);
	return NULL;
}

static struct marcel_thread *self_of(struct victim *v)
{
	struct marcel_thread *t;

	while ((t = load_acquire(&v->self)) == NULL)
		marcel_yield();
	return t;
}

static void check_end(struct victim *v, void *value)
{
	CHECK_PTR(value, MARCEL_CANCELED);
	CHECK_INT(v->cleaned, 1);
}

static void cancel_user(struct victim *v, bool parked)
{
	marcel_t t;
	void *value;

	CHECK_INT(marcel_create(&t, NULL, be_victim, v), 0);
	if (parked)
		until_parked(t);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	check_end(v, value);
}

TEST_VPS(who_waits_is_taken_out)
{
	struct things s;

	things_init(&s);
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++)
		for (int n = 0; n < 20; n++) {
			struct victim v = { &s, kinds[i] };

			cancel_user(&v, n % 2);
		}
	things_exit(&s);
}

TEST_VPS(who_joins_a_seed_is_taken_out)
{
	struct things s;

	for (int n = 0; n < 20; n++) {
		struct victim v = { &s, wait_seed };

		s = (struct things){ 0 };
		cancel_user(&v, true);
		marcel_event_set(&s.end);
		CHECK_INT(marcel_join(s.joined, NULL), 0);
	}
}

TEST_VPS(a_foreign_thread_is_taken_out)
{
	struct things s;
	pthread_t t;
	void *value;

	things_init(&s);
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++)
		for (int n = 0; n < 10; n++) {
			struct victim v = { &s, kinds[i] };

			CHECK_INT(pthread_create(&t, NULL, be_victim, &v), 0);
			if (n % 2)
				until_parked(self_of(&v));
			CHECK_INT(marcel_cancel(self_of(&v)), 0);
			CHECK_INT(pthread_join(t, &value), 0);
			check_end(&v, value);
		}
	things_exit(&s);
}

static void *cancel_from_outside(void *arg)
{
	struct victim *v = arg;

	until_parked(self_of(v));
	CHECK_INT(marcel_cancel(self_of(v)), 0);
	return NULL;
}

TEST_VPS(a_foreign_thread_takes_it_out)
{
	struct things s;
	pthread_t alien;
	marcel_t t;
	void *value;

	things_init(&s);
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		struct victim v = { &s, kinds[i] };

		CHECK_INT(marcel_create(&t, NULL, be_victim, &v), 0);
		CHECK_INT(pthread_create(&alien, NULL, cancel_from_outside, &v),
			  0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_INT(pthread_join(alien, NULL), 0);
		check_end(&v, value);
	}
	things_exit(&s);
}

/* --- what a thread allows --- */

static void *wanted_before(void *arg)
{
	struct victim *v = arg;

	marcel_cancel(marcel_self());
	return be_victim(v);
}

TEST_VPS(a_cancellation_point_is_one_though_it_need_not_wait)
{
	struct things s;
	marcel_t t;
	void *value;

	things_init(&s);
	marcel_event_set(&s.end);
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		struct victim v = { &s, kinds[i] };

		CHECK_INT(marcel_sem_post(&s.sem), 0);
		CHECK_INT(marcel_create(&t, NULL, wanted_before, &v), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		check_end(&v, value);
		CHECK_INT(marcel_sem_trywait(&s.sem), 0);
	}
	things_exit(&s);
}

static ATOMIC(int) steps;

static void until_step(int n)
{
	while (load_acquire(&steps) < n)
		marcel_yield();
}

static void *shelter(void *arg)
{
	struct things *s = arg;
	int old;

	CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_DISABLE, &old), 0);
	CHECK_INT(old, MARCEL_CANCEL_ENABLE);
	store_release(&steps, 1);
	until_step(2);
	marcel_testcancel();
	CHECK_INT(marcel_sem_wait(&s->sem), 0);
	CHECK_INT(marcel_join(s->joined, NULL), 0);
	CHECK_INT(marcel_usleep(1), 0);
	store_release(&steps, 3);
	CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_ENABLE, &old), 0);
	CHECK_INT(old, MARCEL_CANCEL_DISABLE);
	store_release(&steps, 4);
	marcel_testcancel();
	return NULL;
}

TEST_VPS(who_is_sheltered_waits_and_ends_when_it_is_not)
{
	struct things s;
	marcel_t t;
	void *value;

	store_relaxed(&steps, 0);
	things_init(&s);
	CHECK_INT(marcel_create(&t, NULL, shelter, &s), 0);
	until_step(1);
	CHECK_INT(marcel_cancel(t), 0);
	store_release(&steps, 2);
	until_parked(t);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_sem_post(&s.sem), 0);
	marcel_event_set(&s.end);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
	CHECK_INT(load_relaxed(&steps), 4);
}

static void *async(void *arg)
{
	int old;

	CHECK_INT(marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, &old), 0);
	CHECK_INT(old, MARCEL_CANCEL_DEFERRED);
	CHECK_INT(marcel_setcanceltype(MARCEL_CANCEL_DEFERRED, &old), 0);
	CHECK_INT(old, MARCEL_CANCEL_ASYNCHRONOUS);
	CHECK_INT(marcel_cancel(marcel_self()), 0);
	store_release(&steps, 1);
	CHECK_INT(marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, NULL), 0);
	store_release(&steps, 2);
	return NULL;
}

TEST_VPS(who_asks_for_it_asynchronously_has_it_at_once)
{
	marcel_t t;
	void *value;

	store_relaxed(&steps, 0);
	CHECK_INT(marcel_create(&t, NULL, async, NULL), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
	CHECK_INT(load_relaxed(&steps), 1);
}

TEST_VPS(nonsense_is_refused)
{
	int old = 7;

	CHECK_INT(marcel_setcancelstate(2, &old), EINVAL);
	CHECK_INT(marcel_setcancelstate(-1, NULL), EINVAL);
	CHECK_INT(marcel_setcanceltype(2, &old), EINVAL);
	CHECK_INT(old, 7);
}

/* --- when --- */

static void *test(void *arg)
{
	marcel_testcancel();
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void cancel_seeds(void)
{
	marcel_t t;
	void *value;

	CHECK_INT(marcel_create(&t, NULL, test, NULL), 0);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	/* Elsewhere it may have run at once. */
	CHECK(value == MARCEL_CANCELED || marcel_nvp() > 1);
	CHECK_INT(marcel_create(&t, NULL, nothing, &t), 0);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, &t);
}

TEST(a_seed_ends_at_its_first_cancellation_point_on_1_vp)
{
	without_ticks_on(1, cancel_seeds);
}

TEST(a_seed_ends_at_its_first_cancellation_point_on_4_vps)
{
	with_vps(4, cancel_seeds);
}

/* POSIX: its identifier is valid until somebody joins it. */
TEST_VPS(a_thread_that_has_ended_keeps_its_value)
{
	marcel_t t;
	void *value;

	CHECK_INT(marcel_create(&t, NULL, nothing, &t), 0);
	while (load_acquire(&t->ended) != MARCEL_END_DONE)
		marcel_yield();
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, &t);
	/* Nor is the next thread in that place cancelled. */
	CHECK_INT(marcel_create(&t, NULL, test, &t), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, &t);
}

static marcel_key_t key;
static int destroyed;

static void wait_again(void *arg)
{
	CHECK_INT(marcel_cancel(marcel_self()), 0);
	marcel_testcancel();
	CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_ENABLE, NULL), 0);
	CHECK_INT(marcel_usleep(1), 0);
	marcel_testcancel();
	destroyed++;
}

static void *cancel_self(void *arg)
{
	CHECK_INT(marcel_setspecific(key, &key), 0);
	marcel_cleanup_push(wait_again, NULL);
	CHECK_INT(marcel_cancel(marcel_self()), 0);
	marcel_testcancel();
	marcel_cleanup_pop(0);
	return NULL;
}

TEST_VPS(what_runs_at_the_end_is_not_cancelled_again)
{
	marcel_t t;
	void *value;

	destroyed = 0;
	CHECK_INT(marcel_key_create(&key, wait_again), 0);
	CHECK_INT(marcel_create(&t, NULL, cancel_self, NULL), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
	CHECK_INT(destroyed, 2);
	CHECK_INT(marcel_key_delete(key), 0);
}

static void *lock_mutex(void *arg)
{
	struct things *s = arg;

	CHECK_INT(marcel_mutex_lock(&s->mutex), 0);
	store_release(&steps, 1);
	CHECK_INT(marcel_mutex_unlock(&s->mutex), 0);
	marcel_testcancel();
	return NULL;
}

TEST_VPS(a_mutex_is_no_cancellation_point)
{
	struct things s;
	marcel_t t;
	void *value;

	store_relaxed(&steps, 0);
	things_init(&s);
	CHECK_INT(marcel_mutex_lock(&s.mutex), 0);
	CHECK_INT(marcel_create(&t, NULL, lock_mutex, &s), 0);
	until_parked(t);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_mutex_unlock(&s.mutex), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
	CHECK_INT(load_relaxed(&steps), 1);
	things_exit(&s);
}

/* --- nothing is lost --- */

struct crowd {
	marcel_mutex_t mutex;
	marcel_cond_t cond;
	int waiting, ended, signalled;
	bool go;
};

static void leave(void *arg)
{
	struct crowd *c = arg;

	c->ended++;
	marcel_mutex_unlock(&c->mutex);
}

static void *wait_in_crowd(void *arg)
{
	struct crowd *c = arg;

	marcel_mutex_lock(&c->mutex);
	marcel_cleanup_push(leave, c);
	c->waiting++;
	while (!c->go)
		marcel_cond_wait(&c->cond, &c->mutex);
	marcel_cleanup_pop(1);
	return NULL;
}

static void until_waiting(struct crowd *c, int n)
{
	marcel_mutex_lock(&c->mutex);
	while (c->waiting < n) {
		marcel_mutex_unlock(&c->mutex);
		marcel_yield();
		marcel_mutex_lock(&c->mutex);
	}
	marcel_mutex_unlock(&c->mutex);
}

enum { MANY = 1000 / FEWER };

static void cancel_crowd(void)
{
	struct crowd c = { .mutex = MARCEL_MUTEX_INITIALIZER,
			   .cond = MARCEL_COND_INITIALIZER };
	static marcel_t t[MANY];
	void *value;

	for (int i = 0; i < MANY; i++)
		CHECK_INT(marcel_create(&t[i], NULL, wait_in_crowd, &c), 0);
	until_waiting(&c, MANY);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(marcel_cancel(t[i]), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(marcel_join(t[i], &value), 0);
		CHECK_PTR(value, MARCEL_CANCELED);
	}
	CHECK_INT(c.ended, MANY);
	CHECK_INT(marcel_mutex_trylock(&c.mutex), 0);
	CHECK_INT(marcel_mutex_unlock(&c.mutex), 0);
	CHECK_INT(marcel_cond_destroy(&c.cond), 0);
}

TEST_VPS(a_thousand_waiters_are_cancelled_at_once)
{
	cancel_crowd();
}

TEST(a_thousand_waiters_are_cancelled_at_once_on_2_vps)
{
	with_vps(2, cancel_crowd);
}

/* Takes one signal, and passes it on by ending without being cancelled. */
static void *take_signal(void *arg)
{
	struct crowd *c = arg;

	marcel_mutex_lock(&c->mutex);
	marcel_cleanup_push(leave, c);
	c->waiting++;
	marcel_cond_wait(&c->cond, &c->mutex);
	c->signalled++;
	marcel_cleanup_pop(1);
	return NULL;
}

enum { ROUNDS = 100 / FEWER };

static void *cancel_it(void *arg)
{
	CHECK_INT(marcel_cancel(arg), 0);
	return NULL;
}

/* Two wait, one is cancelled while there is one signal: one has it. */
TEST_VPS(a_signal_is_not_lost_to_who_is_cancelled)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct crowd c = { .mutex = MARCEL_MUTEX_INITIALIZER,
				   .cond = MARCEL_COND_INITIALIZER };
		marcel_t t[2], canceller;
		pthread_t alien;
		void *value;
		int cancelled = 0;

		for (int k = 0; k < 2; k++)
			CHECK_INT(marcel_create(&t[k], NULL, take_signal, &c),
				  0);
		until_waiting(&c, 2);
		if (i % 2)
			CHECK_INT(pthread_create(&alien, NULL, cancel_it, t[0]),
				  0);
		else
			CHECK_INT(marcel_create(&canceller, NULL, cancel_it,
						t[0]),
				  0);
		marcel_mutex_lock(&c.mutex);
		CHECK_INT(marcel_cond_signal(&c.cond), 0);
		marcel_mutex_unlock(&c.mutex);
		CHECK_INT(i % 2 ? pthread_join(alien, NULL)
				: marcel_join(canceller, NULL),
			  0);
		CHECK_INT(marcel_join(t[0], &value), 0);
		if (value == MARCEL_CANCELED)
			cancelled++;
		else
			CHECK_INT(marcel_cancel(t[1]), 0);
		CHECK_INT(marcel_join(t[1], &value), 0);
		if (value == MARCEL_CANCELED)
			cancelled++;
		CHECK_INT(cancelled, 1);
		CHECK_INT(c.signalled, 1);
	}
}

static void *take_unit(void *arg)
{
	struct things *s = arg;

	CHECK_INT(marcel_sem_wait(&s->sem), 0);
	return s;
}

TEST_VPS(a_unit_is_not_lost_to_who_is_cancelled)
{
	struct things s;
	pthread_t alien;
	marcel_t t;
	void *value;

	things_init(&s);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(marcel_create(&t, NULL, take_unit, &s), 0);
		if (i % 4)
			until_parked(t);
		CHECK_INT(pthread_create(&alien, NULL, cancel_it, t), 0);
		CHECK_INT(marcel_sem_post(&s.sem), 0);
		CHECK_INT(pthread_join(alien, NULL), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		if (value == MARCEL_CANCELED)
			CHECK_INT(marcel_sem_trywait(&s.sem), 0);
		else
			CHECK_PTR(value, &s);
	}
	things_exit(&s);
}

static void *end_soon(void *arg)
{
	for (int i = 0; i < (int)(intptr_t)arg % 8; i++)
		marcel_yield();
	return arg;
}

static void *join_it(void *arg)
{
	marcel_t t;
	void *value;

	CHECK_INT(marcel_create(&t, NULL, end_soon, arg), 0);
	store_release(&steps, 1);
	/* Not lost, if this is cancelled: main joins it. */
	*(marcel_t *)arg = t;
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, arg);
	*(marcel_t *)arg = NULL;
	return NULL;
}

/* The end of the joined one and the cancellation of its joiner meet. */
TEST_VPS(a_join_ends_once)
{
	static marcel_t joined[8];

	for (int i = 0; i < ROUNDS; i++) {
		marcel_t t, *left = &joined[i % 8];
		pthread_t alien;
		void *value;

		*left = NULL;
		store_relaxed(&steps, 0);
		CHECK_INT(marcel_create(&t, NULL, join_it, left), 0);
		if (i % 2)
			until_step(1);
		CHECK_INT(pthread_create(&alien, NULL, cancel_it, t), 0);
		CHECK_INT(pthread_join(alien, NULL), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK(value == NULL || value == MARCEL_CANCELED);
		CHECK(value == MARCEL_CANCELED || *left == NULL);
		if (*left != NULL)
			CHECK_INT(marcel_join(*left, NULL), 0);
	}
}

/* --- by who is not ours --- */

static ATOMIC(int) is_inside;

/* Its canceller waits until it has left the runtime, and looks at its LWP. */
static void *be_inside(void *arg)
{
	struct marcel_thread *self = marcel_self();
	struct marcel_vp *vp;

	marcel_setcancelstate(MARCEL_CANCEL_DISABLE, NULL);
	vp = marcel_enter();
	store_release(&is_inside, 1);
	while (!marcel_thread_has(self, MARCEL_F_CANCEL))
		;
	CHECK_INT(load_relaxed(&marcel_sched.guests), 1);
	marcel_leave(vp);
	return arg;
}

static void *cancel_inside(void *t)
{
	while (load_acquire(&is_inside) == 0)
		sched_yield();
	CHECK_INT(marcel_cancel(t), 0);
	return NULL;
}

/* So the LWPs stay until it has done with them. */
TEST_VPS(a_foreign_thread_that_cancels_is_a_guest)
{
	pthread_t p;
	marcel_t t;

	store_relaxed(&is_inside, 0);
	CHECK_INT(marcel_create(&t, NULL, be_inside, NULL), 0);
	CHECK_INT(pthread_create(&p, NULL, cancel_inside, t), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}
