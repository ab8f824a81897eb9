/*
 * The rules of every wait that has a limit, once per kind of wait: mutex,
 * condition, semaphore, read-write lock, event, join; user and foreign threads.
 */
#include "../parked.h"
#include "crowd.h"

#include <errno.h>
#include <time.h>

#include <base/clock.h>

enum { MS = 1000000, TURNS = FEWER > 1 ? 5 : 10 };

/* One of each, none of which can be had while it is shut. */
struct things {
	marcel_mutex_t mutex;
	marcel_cond_t cond, cond_mono;
	marcel_mutex_t of_cond;
	bool go;
	marcel_sem_t sem;
	marcel_rwlock_t read, written; /* by somebody, while shut */
	marcel_event_t event, never;
	marcel_event_t begin; /* of who is joined */
	marcel_t thread;
};

struct until {
	clockid_t clock;
	struct timespec abs;
	bool named; /* by the function that takes a clock */
};

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

typedef int (*wait_fn)(struct things *s, const struct until *u);

static int wait_mutex(struct things *s, const struct until *u)
{
	int rc = u->named ? marcel_mutex_clocklock(&s->mutex, u->clock, &u->abs)
			  : marcel_mutex_timedlock(&s->mutex, &u->abs);

	if (rc == 0)
		CHECK_INT(marcel_mutex_unlock(&s->mutex), 0);
	return rc;
}

static int wait_cond(struct things *s, const struct until *u)
{
	int rc = 0;

	CHECK_INT(marcel_mutex_lock(&s->of_cond), 0);
	while (!s->go && rc == 0)
		rc = u->named ? marcel_cond_clockwait(&s->cond, &s->of_cond,
						      u->clock, &u->abs)
			      : marcel_cond_timedwait(&s->cond, &s->of_cond,
						      &u->abs);
	CHECK_INT(marcel_mutex_unlock(&s->of_cond), 0);
	return rc;
}

/* Its clock is the monotonic one. */
static int wait_cond_mono(struct things *s, const struct until *u)
{
	struct timespec abs = u->abs;
	int rc = 0;

	if (u->clock == CLOCK_REALTIME)
		return wait_cond(s, u);
	CHECK_INT(marcel_mutex_lock(&s->of_cond), 0);
	while (!s->go && rc == 0)
		rc = marcel_cond_timedwait(&s->cond_mono, &s->of_cond, &abs);
	CHECK_INT(marcel_mutex_unlock(&s->of_cond), 0);
	return rc;
}

static int wait_sem(struct things *s, const struct until *u)
{
	int rc = u->named ? marcel_sem_clockwait(&s->sem, u->clock, &u->abs)
			  : marcel_sem_timedwait(&s->sem, &u->abs);

	if (rc == 0)
		CHECK_INT(marcel_sem_post(&s->sem), 0);
	return rc;
}

static int wait_reader(struct things *s, const struct until *u)
{
	int rc = u->named ? marcel_rwlock_clockrdlock(&s->written, u->clock,
						      &u->abs)
			  : marcel_rwlock_timedrdlock(&s->written, &u->abs);

	if (rc == 0)
		CHECK_INT(marcel_rwlock_unlock(&s->written), 0);
	return rc;
}

static int wait_writer(struct things *s, const struct until *u)
{
	int rc = u->named ? marcel_rwlock_clockwrlock(&s->read, u->clock,
						      &u->abs)
			  : marcel_rwlock_timedwrlock(&s->read, &u->abs);

	if (rc == 0)
		CHECK_INT(marcel_rwlock_unlock(&s->read), 0);
	return rc;
}

static int wait_join(struct things *s, const struct until *u)
{
	return u->named
		       ? marcel_clockjoin_np(s->thread, NULL, u->clock, &u->abs)
		       : marcel_timedjoin_np(s->thread, NULL, &u->abs);
}

/* Of events the clock is the monotonic one. */
static int wait_event(struct things *s, const struct until *u)
{
	if (u->clock != CLOCK_MONOTONIC)
		return ETIMEDOUT;
	return -marcel_event_wait_until(&s->event, ns_of(&u->abs));
}

static int wait_any(struct things *s, const struct until *u)
{
	marcel_event_t *any[] = { &s->never, NULL, &s->event };
	size_t i;

	if (u->clock != CLOCK_MONOTONIC)
		return ETIMEDOUT;
	i = marcel_event_wait_any_until(any, 3, ns_of(&u->abs));
	CHECK(i == 2 || i == 3);
	return i == 3 ? ETIMEDOUT : 0;
}

static const struct kind {
	wait_fn wait;
	bool alone; /* only one thread may wait for it */
	bool event; /* it takes no clock and refuses no time */
} kinds[] = {
	{ wait_mutex, false, false },  { wait_cond, false, false },
	{ wait_sem, false, false },    { wait_cond_mono, false, false },
	{ wait_reader, false, false }, { wait_writer, false, false },
	{ wait_join, true, false },    { wait_event, true, true },
	{ wait_any, true, true },
};

static void *begin_when_open(void *arg)
{
	marcel_event_wait(arg);
	return NULL;
}

static void shut(struct things *s)
{
	marcel_condattr_t attr;

	*s = (struct things){ .go = false };
	marcel_condattr_init(&attr);
	CHECK_INT(marcel_condattr_setclock(&attr, CLOCK_MONOTONIC), 0);
	CHECK_INT(marcel_cond_init(&s->cond_mono, &attr), 0);
	CHECK_INT(marcel_condattr_destroy(&attr), 0);
	CHECK_INT(marcel_mutex_lock(&s->mutex), 0);
	CHECK_INT(marcel_sem_init(&s->sem, 0, 0), 0);
	CHECK_INT(marcel_rwlock_rdlock(&s->read), 0);
	CHECK_INT(marcel_rwlock_wrlock(&s->written), 0);
	CHECK_INT(marcel_create(&s->thread, NULL, begin_when_open, &s->begin),
		  0);
}

static void open_up(struct things *s)
{
	marcel_event_set(&s->begin);
	marcel_event_set(&s->event);
	CHECK_INT(marcel_sem_post(&s->sem), 0);
	CHECK_INT(marcel_mutex_lock(&s->of_cond), 0);
	s->go = true;
	CHECK_INT(marcel_cond_broadcast(&s->cond), 0);
	CHECK_INT(marcel_mutex_unlock(&s->of_cond), 0);
	CHECK_INT(marcel_cond_broadcast(&s->cond_mono), 0);
	CHECK_INT(marcel_mutex_unlock(&s->mutex), 0);
	CHECK_INT(marcel_rwlock_unlock(&s->read), 0);
	CHECK_INT(marcel_rwlock_unlock(&s->written), 0);
}

/* Nobody waits for it or holds it. */
static void check_left(struct things *s, bool is_joined)
{
	if (!is_joined)
		CHECK_INT(marcel_join(s->thread, NULL), 0);
	CHECK_INT(marcel_mutex_destroy(&s->mutex), 0);
	CHECK_INT(marcel_mutex_destroy(&s->of_cond), 0);
	CHECK_INT(marcel_cond_destroy(&s->cond), 0);
	CHECK_INT(marcel_cond_destroy(&s->cond_mono), 0);
	CHECK_INT(marcel_sem_destroy(&s->sem), 0);
	CHECK_INT(marcel_rwlock_destroy(&s->read), 0);
	CHECK_INT(marcel_rwlock_destroy(&s->written), 0);
}

static struct until in(clockid_t clock, uint64_t ns)
{
	struct until u = { .clock = clock,
			   .named = clock != CLOCK_REALTIME || ns % 2 == 0 };

	clock_gettime(clock, &u.abs);
	ns += (uint64_t)u.abs.tv_nsec;
	u.abs.tv_sec += (time_t)(ns / 1000000000);
	u.abs.tv_nsec = (long)(ns % 1000000000);
	return u;
}

static bool has_come(const struct until *u)
{
	struct timespec now;

	clock_gettime(u->clock, &now);
	return ns_of(&now) >= ns_of(&u->abs);
}

/* --- one kind after the other --- */

static struct things things;
static const struct kind *kind;
static ATOMIC(int) turn;

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };

static void run_out(void *arg, int i)
{
	struct until u;

	while (kind->alone && load_acquire(&turn) != i)
		marcel_yield();
	for (int n = 0; n < 4; n++) {
		u = in(clocks[n % 2], (uint64_t)((i + n) % 3) * MS + n / 2);
		CHECK_INT(kind->wait(&things, &u), ETIMEDOUT);
		CHECK(kind->event || has_come(&u));
	}
	fetch_add_release(&turn, 1);
}

TEST(a_wait_that_is_not_granted_ends_not_before_its_time)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++)
		for (size_t k = 0; k < BASE_ARRAY_LEN(kinds); k++) {
			kind = &kinds[k];
			store_relaxed(&turn, 0);
			vps_start(crowds[c].nvp);
			shut(&things);
			crowd_go(&crowds[c], run_out, NULL);
			open_up(&things);
			check_left(&things, false);
			vps_stop();
		}
}

static void be_granted(void *arg, int i)
{
	struct until u = in(clocks[kind->event || i % 2], 3600000000000);

	fetch_add_relaxed(&turn, 1);
	CHECK_INT(kind->wait(&things, &u), 0);
}

/* A kernel thread sees to them: main shuts and opens. */
struct waits {
	struct crowd crowd;
	ATOMIC(int) over;
};

static void *crowd_waits(void *arg)
{
	struct waits *w = arg;

	crowd_go(&w->crowd, be_granted, NULL);
	store_release(&w->over, 1);
	return NULL;
}

/* All wait, or are about to, when it is opened. */
static void open_for(struct waits *w)
{
	pthread_t p;

	store_relaxed(&turn, 0);
	store_relaxed(&w->over, 0);
	shut(&things);
	CHECK_INT(pthread_create(&p, NULL, crowd_waits, w), 0);
	while (load_relaxed(&turn) < crowd_size(&w->crowd))
		marcel_yield();
	if (check_random() % 2 != 0)
		marcel_yield();
	open_up(&things);
	while (load_acquire(&w->over) == 0)
		marcel_yield();
	CHECK_INT(pthread_join(p, NULL), 0);
	check_left(&things, kind->wait == wait_join);
}

TEST(a_wait_that_is_granted_in_time_does_not_run_out)
{
	static const struct crowd alone[] = {
		{ 1, 1, 0 }, { VPS_MANY, 1, 0 }, { 1, 0, 1 }, { VPS_MANY, 0, 1 }
	};

	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++)
		for (size_t k = 0; k < BASE_ARRAY_LEN(kinds); k++) {
			struct waits w = { .crowd = crowds[c] };

			kind = &kinds[k];
			if (kind->alone)
				w.crowd = alone[c];
			vps_start(w.crowd.nvp);
			for (int round = 0; round < TURNS; round++)
				open_for(&w);
			vps_stop();
		}
}

/* --- times that are none, and waits that are not needed --- */

TEST(who_need_not_wait_needs_no_time)
{
	struct until past = { CLOCK_MONOTONIC, { 0, 0 }, true };
	struct until bad = { CLOCK_MONOTONIC, { 0, -1 }, true };

	for (size_t k = 0; k < BASE_ARRAY_LEN(kinds); k++) {
		kind = &kinds[k];
		vps_start(1);
		shut(&things);
		open_up(&things);
		while (kind->wait == wait_join &&
		       marcel_tryjoin_np(things.thread, NULL) == EBUSY)
			marcel_yield();
		if (kind->wait != wait_join) {
			CHECK_INT(kind->wait(&things, &past), 0);
			if (!kind->event)
				CHECK_INT(kind->wait(&things, &bad), 0);
		}
		check_left(&things, kind->wait == wait_join);
		vps_stop();
	}
}

static void refuse(void *arg, int i)
{
	static const struct timespec bad[] = { { 0, -1 }, { 1, 1000000000 } };
	struct timespec past = { -1, 0 };
	struct until u = { CLOCK_MONOTONIC, { 0 }, true };

	if (kind->event)
		return;
	while (kind->alone && load_acquire(&turn) != i)
		marcel_yield();
	for (size_t n = 0; n < BASE_ARRAY_LEN(bad); n++) {
		u.abs = bad[n];
		CHECK_INT(kind->wait(&things, &u), EINVAL);
	}
	u.abs = past;
	CHECK_INT(kind->wait(&things, &u), ETIMEDOUT);
	u.clock = CLOCK_PROCESS_CPUTIME_ID;
	if (kind->wait != wait_cond_mono)
		CHECK_INT(kind->wait(&things, &u), EINVAL);
	fetch_add_release(&turn, 1);
}

TEST(times_and_clocks_that_are_none_are_refused)
{
	static const struct crowd both = { 1, 1, 1 };

	for (size_t k = 0; k < BASE_ARRAY_LEN(kinds); k++) {
		kind = &kinds[k];
		store_relaxed(&turn, 0);
		vps_start(1);
		shut(&things);
		crowd_go(&both, refuse, NULL);
		open_up(&things);
		check_left(&things, false);
		vps_stop();
	}
}

TEST(the_clock_of_a_condition_is_one_that_we_wait_by)
{
	marcel_condattr_t attr;
	marcel_cond_t c;
	clockid_t clock = 99;

	CHECK_INT(marcel_condattr_init(&attr), 0);
	CHECK_INT(marcel_condattr_getclock(&attr, &clock), 0);
	CHECK_INT(clock, CLOCK_REALTIME);
	CHECK_INT(marcel_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID),
		  EINVAL);
	CHECK_INT(marcel_condattr_setclock(&attr, 99), EINVAL);
	CHECK_INT(marcel_condattr_setclock(&attr, CLOCK_MONOTONIC), 0);
	CHECK_INT(marcel_condattr_getclock(&attr, &clock), 0);
	CHECK_INT(clock, CLOCK_MONOTONIC);
	CHECK_INT(marcel_cond_init(&c, &attr), 0);
	CHECK_INT(marcel_cond_destroy(&c), 0);
	CHECK_INT(marcel_condattr_destroy(&attr), 0);
	CHECK_INT(marcel_condattr_setclock(&attr, CLOCK_REALTIME), EINVAL);
	CHECK_INT(marcel_cond_init(&c, &attr), EINVAL);
}

/* --- of one kind only --- */

TEST(a_kind_of_mutex_answers_before_the_time_does)
{
	struct until u = in(CLOCK_REALTIME, 3600000000000);
	marcel_mutexattr_t attr;
	marcel_mutex_t m;

	vps_start(1);
	marcel_mutexattr_init(&attr);
	marcel_mutexattr_settype(&attr, MARCEL_MUTEX_ERRORCHECK);
	marcel_mutex_init(&m, &attr);
	CHECK_INT(marcel_mutex_timedlock(&m, &u.abs), 0);
	CHECK_INT(marcel_mutex_timedlock(&m, &u.abs), EDEADLK);
	CHECK_INT(marcel_mutex_unlock(&m), 0);
	marcel_mutexattr_settype(&attr, MARCEL_MUTEX_RECURSIVE);
	marcel_mutex_init(&m, &attr);
	CHECK_INT(marcel_mutex_timedlock(&m, &u.abs), 0);
	CHECK_INT(marcel_mutex_timedlock(&m, &u.abs), 0);
	CHECK_INT(marcel_mutex_unlock(&m), 0);
	CHECK_INT(marcel_mutex_unlock(&m), 0);
	CHECK_INT(marcel_mutex_unlock(&m), EPERM);
	/* A normal one: it waits for itself. */
	marcel_mutex_init(&m, NULL);
	CHECK_INT(marcel_mutex_lock(&m), 0);
	u = in(CLOCK_REALTIME, MS);
	CHECK_INT(marcel_mutex_timedlock(&m, &u.abs), ETIMEDOUT);
	CHECK(has_come(&u));
	vps_stop();
}

TEST(who_has_a_lock_for_writing_cannot_wait_for_it)
{
	struct until u = in(CLOCK_MONOTONIC, 3600000000000);
	marcel_rwlock_t l = MARCEL_RWLOCK_INITIALIZER;

	vps_start(1);
	CHECK_INT(marcel_rwlock_wrlock(&l), 0);
	CHECK_INT(marcel_rwlock_clockwrlock(&l, u.clock, &u.abs), EDEADLK);
	CHECK_INT(marcel_rwlock_clockrdlock(&l, u.clock, &u.abs), EDEADLK);
	CHECK_INT(marcel_rwlock_unlock(&l), 0);
	vps_stop();
}

static void *write_in_time(void *arg)
{
	struct until u = in(CLOCK_MONOTONIC, MS);

	fetch_add_relaxed(&turn, 1);
	CHECK_INT(marcel_rwlock_clockwrlock(arg, u.clock, &u.abs), ETIMEDOUT);
	return NULL;
}

static void *read_behind(void *arg)
{
	CHECK_INT(marcel_rwlock_rdlock(arg), 0);
	CHECK_INT(marcel_rwlock_unlock(arg), 0);
	return NULL;
}

/* The reader can be joined though the first reader stays. */
static void let_a_writer_leave(int kind)
{
	marcel_rwlockattr_t attr;
	marcel_t writer, reader;
	marcel_rwlock_t l;

	CHECK_INT(marcel_rwlockattr_init(&attr), 0);
	CHECK_INT(marcel_rwlockattr_setkind(&attr, kind), 0);
	CHECK_INT(marcel_rwlock_init(&l, &attr), 0);
	store_relaxed(&turn, 0);
	CHECK_INT(marcel_rwlock_rdlock(&l), 0);
	CHECK_INT(marcel_create(&writer, NULL, write_in_time, &l), 0);
	while (load_relaxed(&turn) == 0)
		marcel_yield();
	CHECK_INT(marcel_create(&reader, NULL, read_behind, &l), 0);
	CHECK_INT(marcel_join(reader, NULL), 0);
	CHECK_INT(marcel_join(writer, NULL), 0);
	CHECK_INT(marcel_rwlock_unlock(&l), 0);
	CHECK_INT(marcel_rwlock_destroy(&l), 0);
}

TEST(readers_behind_a_writer_that_left_are_let_in)
{
	for (int nvp = 1; nvp <= VPS_MANY; nvp += VPS_MANY - 1) {
		vps_start(nvp);
		for (int kind = MARCEL_RWLOCK_FAIR;
		     kind <= MARCEL_RWLOCK_PREFER_WRITER; kind++)
			let_a_writer_leave(kind);
		vps_stop();
	}
}

static struct until given; /* -: of who waits for a signal */

static void *wait_signalled(void *arg)
{
	struct things *s = arg;
	int rc;

	CHECK_INT(marcel_mutex_lock(&s->of_cond), 0);
	store_relaxed(&turn, 1);
	rc = marcel_cond_clockwait(&s->cond, &s->of_cond, given.clock,
				   &given.abs);
	/* Either way it has the mutex. */
	CHECK_INT(marcel_mutex_trylock(&s->of_cond), EBUSY);
	CHECK_INT(marcel_mutex_unlock(&s->of_cond), 0);
	return rc == 0 ? arg : NULL;
}

/* False: it was to be signalled in so many ns, and that was late. */
static bool signal_in_time(struct things *s, bool signalled, uint64_t ns)
{
	bool in_time;
	marcel_t t;
	void *was;

	given = in(CLOCK_MONOTONIC, ns);
	store_relaxed(&turn, 0);
	CHECK_INT(marcel_create(&t, NULL, wait_signalled, s), 0);
	while (load_relaxed(&turn) == 0)
		marcel_yield();
	CHECK_INT(marcel_mutex_lock(&s->of_cond), 0);
	if (signalled)
		CHECK_INT(marcel_cond_signal(&s->cond), 0);
	in_time = !has_come(&given);
	marcel_clock_nanosleep(given.clock, TIMER_ABSTIME, &given.abs, NULL);
	CHECK_INT(marcel_mutex_unlock(&s->of_cond), 0);
	CHECK_INT(marcel_join(t, &was), 0);
	CHECK(!signalled || !in_time || was != NULL);
	CHECK_INT(marcel_cond_destroy(&s->cond), 0);
	return in_time;
}

/* The mutex comes only after the time; it was signalled before. */
TEST(who_was_signalled_in_time_may_wait_for_the_mutex_as_long_as_it_takes)
{
	struct things s = { .go = false };

	vps_start(1);
	for (int signalled = 0; signalled < 2; signalled++)
		for (uint64_t ns = MS; !signal_in_time(&s, signalled, ns);
		     ns *= 2)
			;
	vps_stop();
}

/* --- join --- */

static void *wait_for(void *arg)
{
	marcel_event_wait(arg);
	return arg;
}

static void *join_me(void *arg)
{
	struct until u = in(CLOCK_MONOTONIC, 0);

	CHECK_INT(marcel_clockjoin_np(marcel_self(), NULL, u.clock, &u.abs),
		  EDEADLK);
	CHECK_INT(marcel_tryjoin_np(marcel_self(), NULL), EDEADLK);
	CHECK_INT(marcel_tryjoin_np(arg, NULL), EINVAL);
	CHECK_INT(marcel_clockjoin_np(arg, NULL, u.clock, &u.abs), EINVAL);
	return NULL;
}

static void *join_long(void *arg)
{
	struct until u = in(CLOCK_MONOTONIC, 3600000000000);

	CHECK_INT(marcel_clockjoin_np(arg, NULL, u.clock, &u.abs), 0);
	return NULL;
}

TEST(a_thread_that_was_not_joined_in_time_can_be_joined)
{
	marcel_event_t e = MARCEL_EVENT_INIT;
	struct until u;
	marcel_t t, other;
	void *result = NULL;

	vps_start(1);
	CHECK_INT(marcel_create(&t, NULL, wait_for, &e), 0);
	CHECK_INT(marcel_tryjoin_np(t, NULL), EBUSY);
	for (int i = 0; i < 3; i++) {
		u = in(CLOCK_MONOTONIC, MS);
		CHECK_INT(marcel_clockjoin_np(t, &result, u.clock, &u.abs),
			  ETIMEDOUT);
		CHECK_PTR(result, NULL);
	}
	marcel_event_set(&e);
	while (marcel_tryjoin_np(t, &result) == EBUSY)
		marcel_yield();
	CHECK_PTR(result, &e);
	/* While one waits, however briefly, nobody else may join or detach. */
	marcel_event_init(&e);
	CHECK_INT(marcel_create(&t, NULL, wait_for, &e), 0);
	CHECK_INT(marcel_create(&other, NULL, join_long, t), 0);
	until_parked(other);
	join_me(t);
	CHECK_INT(marcel_join(t, NULL), EINVAL);
	CHECK_INT(marcel_detach(t), EINVAL);
	marcel_event_set(&e);
	CHECK_INT(marcel_join(other, NULL), 0);
	vps_stop();
}
