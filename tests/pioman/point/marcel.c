/* pioman/point/marcel.c: who polls, and who does not, with real VPs. */
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../with.h"

#if BASE_TSAN || BASE_ASAN
enum { ROUNDS = 100, MANY = 200 };
#else
enum { ROUNDS = 1000, MANY = 2000 };
#endif

static enum piom_ltask_result set_event(void *arg)
{
	marcel_event_set(arg);
	return PIOM_LTASK_DONE;
}

/* --- row 13: idle, switch, explicit --- */

/* Waiting for marcel's event polls nothing: only an idle VP can have run it. */
static void idle_runs(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		marcel_event_t e = MARCEL_EVENT_INIT;
		struct piom_ltask t;

		piom_ltask_init(&t, set_event, &e, PIOM_LTASK_ONESHOT, NULL);
		piom_ltask_submit(&t);
		marcel_event_wait(&e);
		piom_ltask_wait(&t);
	}
}

TEST(an_idle_vp_runs_ltasks)
{
	WITH_ALL(engine_marcel, idle_runs);
}

static void *just_yield(void *arg)
{
	while (!marcel_event_test(arg))
		marcel_yield();
	return NULL;
}

static void switches_run(void)
{
	marcel_event_t e = MARCEL_EVENT_INIT;
	struct piom_ltask t;
	marcel_t other;

	CHECK_INT(marcel_create(&other, NULL, just_yield, &e), 0);
	piom_ltask_init(&t, set_event, &e, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&t);
	while (!marcel_event_test(&e))
		marcel_yield();
	CHECK_INT(marcel_join(other, NULL), 0);
	piom_ltask_wait(&t);
}

/* One VP that is never idle. */
TEST(a_switching_vp_runs_ltasks)
{
	static const struct mode one[] = { { 1, "marcel", "auto", "0" } };

	WITH_ALL(one, switches_run);
}

static ATOMIC(int) ran;

static enum piom_ltask_result note_it(void *arg)
{
	(void)arg;
	store_relaxed(&ran, 1);
	return PIOM_LTASK_DONE;
}

static void *compute(void *arg)
{
	while (load_relaxed(&ran) == 0)
		;
	return arg;
}

static void ticks_run(void)
{
	struct piom_ltask task;
	marcel_t t[3];
	int others = marcel_nvp() - 1;

	store_relaxed(&ran, 0);
	for (int i = 0; i < others; i++)
		CHECK_INT(marcel_create(&t[i], NULL, compute, NULL), 0);
	piom_ltask_init(&task, note_it, NULL, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&task);
	compute(NULL);
	for (int i = 0; i < others; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	piom_ltask_wait(&task);
}

/* Nobody calls anything. */
TEST(a_vp_that_computes_runs_ltasks)
{
	static const struct mode some[] = { { 1, "marcel", "auto", "0" },
					    { 2, "marcel", "auto", "0" } };

	if (BASE_TSAN)
		check_skip("no ticks with TSan");
	WITH_ALL(some, ticks_run);
}

static enum piom_ltask_result end_the_read(void *arg)
{
	CHECK_INT(eventfd_write(*(int *)arg, 1), 0);
	return PIOM_LTASK_DONE;
}

/* It is awake at no look. */
static void sleeps_until_run(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct piom_ltask task;
	eventfd_t n;

	CHECK(fd >= 0);
	piom_ltask_init(&task, end_the_read, &fd, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&task);
	CHECK_INT(syscall(SYS_read, fd, &n, sizeof(n)), sizeof(n));
	piom_ltask_wait(&task);
	close(fd);
}

/* It sleeps at most looks, and its kernel thread has run between any two. */
static void naps_until_run(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct piom_ltask task;

	store_relaxed(&ran, 0);
	piom_ltask_init(&task, note_it, NULL, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&task);
	while (load_relaxed(&ran) == 0)
		syscall(SYS_nanosleep, &ms, NULL);
	piom_ltask_wait(&task);
}

/* Marcel knows of no call: the VP seems to compute. */
TEST(a_vp_whose_thread_sleeps_unannounced_runs_ltasks)
{
	static const struct mode one[] = { { 1, "marcel", "auto", "0" } };

	if (BASE_TSAN)
		check_skip("no monitor with TSan");
	WITH_ALL(one, sleeps_until_run);
	WITH_ALL(one, naps_until_run);
}

static void only_polls_run(void)
{
	marcel_event_t e = MARCEL_EVENT_INIT;
	struct piom_ltask t;

	piom_ltask_init(&t, set_event, &e, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&t);
	for (int i = 0; i < 1000; i++)
		marcel_yield();
	CHECK(!marcel_event_test(&e));
	CHECK_INT(piom_poll(), 1);
	CHECK(marcel_event_test(&e));
	CHECK(piom_ltask_test(&t));
}

TEST(without_an_engine_only_explicit_polls_run_ltasks)
{
	static const struct mode none[] = { { 1, "none", "auto", "0" },
					    { 4, "none", "auto", "0" } };

	WITH_ALL(none, only_polls_run);
}

/* --- rows 4, 14: where --- */

struct placed {
	struct piom_ltask task;
	marcel_vpset_t set;
	int vp;
};

static enum piom_ltask_result note_vp(void *arg)
{
	struct placed *p = arg;

	p->vp = marcel_current_vp();
	return PIOM_LTASK_DONE;
}

static void runs_in_its_set(void)
{
	static struct placed p[MANY];
	unsigned all = (1u << marcel_nvp()) - 1;

	for (int i = 0; i < MANY; i++) {
		marcel_vpset_zero(&p[i].set);
		p[i].set.bits[0] = (unsigned)i % all + 1;
		piom_ltask_init(&p[i].task, note_vp, &p[i], PIOM_LTASK_ONESHOT,
				&p[i].set);
		piom_ltask_submit(&p[i].task);
	}
	for (int i = 0; i < MANY; i++) {
		piom_ltask_wait(&p[i].task);
		CHECK(marcel_vpset_has(&p[i].set, p[i].vp));
	}
}

TEST(an_ltask_runs_only_on_vps_of_its_set)
{
	WITH_ALL(engine_marcel, runs_in_its_set);
}

/* --- sleeping VPs --- */

/* We never give our VP away: only another one, woken, can have run it. */
static void others_are_woken(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct piom_ltask t;
		marcel_event_t e = MARCEL_EVENT_INIT;
		marcel_vpset_t set;
		int vp = i % 4;

		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, vp);
		piom_ltask_init(&t, set_event, &e, PIOM_LTASK_ONESHOT,
				vp ? &set : NULL);
		piom_ltask_submit(&t);
		while (!piom_ltask_test(&t))
			sched_yield();
	}
}

TEST(a_submission_wakes_a_vp_that_may_run_it)
{
	static const struct mode four[] = { { 4, "marcel", "auto", "0" } };

	WITH_ALL(four, others_are_woken);
}

/* A progress task as nmad's: quiet unless something is outstanding. */
struct progress {
	struct piom_ltask task;
	ATOMIC(int) work, done;
};

static enum piom_ltask_result progress(void *arg)
{
	struct progress *p = arg;

	if (load_relaxed(&p->work) == load_relaxed(&p->done))
		return PIOM_LTASK_QUIET;
	store_relaxed(&p->done, load_relaxed(&p->work));
	return PIOM_LTASK_WORKED;
}

static void kicks_are_answered(void)
{
	struct progress p = { .work = ATOMIC_INIT(0) };

	piom_ltask_init(&p.task, progress, &p, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&p.task);
	for (int i = 1; i <= ROUNDS; i++) {
		store_relaxed(&p.work, i);
		piom_ltask_kick(&p.task);
		while (load_relaxed(&p.done) != i)
			sched_yield();
	}
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

TEST(a_kick_wakes_a_vp_for_a_quiet_ltask)
{
	static const struct mode four[] = { { 4, "marcel", "auto", "0" } };

	WITH_ALL(four, kicks_are_answered);
}

static void unmasks_are_answered(void)
{
	struct progress p = { .work = ATOMIC_INIT(0) };

	piom_ltask_init(&p.task, progress, &p, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&p.task);
	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_INT(piom_ltask_mask(&p.task), 0);
		store_relaxed(&p.work, i);
		/* Each is a turn of all others on a busy machine. */
		for (int k = 0; k < (i % 25 == 0 ? 50 : i % 5); k++)
			sched_yield();
		CHECK_INT(load_relaxed(&p.done), i - 1);
		piom_ltask_unmask(&p.task);
		while (load_relaxed(&p.done) != i)
			sched_yield();
	}
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

TEST(an_ltask_that_is_masked_no_more_wakes_a_vp)
{
	static const struct mode four[] = { { 4, "marcel", "auto", "0" } };

	WITH_ALL(four, unmasks_are_answered);
}

static void *kick_alone(void *arg)
{
	(void)arg;
	kicks_are_answered();
	return NULL;
}

/* A foreign thread kicks; main is parked, so all VPs may sleep. */
static void kicks_from_outside(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		CHECK_INT(pthread_create(&t[i], NULL, kick_alone, NULL), 0);
	for (int i = 0; i < 2; i++) {
		/* Joined by a foreign thread's event: main leaves its VP. */
		pthread_join(t[i], NULL);
	}
}

TEST(a_kick_of_a_foreign_thread_is_answered)
{
	static const struct mode four[] = { { 4, "marcel", "auto", "0" } };

	WITH_ALL(four, kicks_from_outside);
}

/* --- start and stop --- */

static void nothing(void)
{
}

TEST(pioman_starts_and_stops_again_and_again)
{
	for (int i = 0; i < 20; i++) {
		WITH_ALL(engine_marcel, nothing);
	}
}

static void nested(void)
{
	CHECK_INT(piom_init(), 0);
	CHECK_INT(piom_exit(), 0);
	idle_runs();
}

TEST(calls_of_init_nest)
{
	WITH_ALL(engine_marcel, nested);
}

/* While one thread stops pioman another wants to start it again. */
struct restart {
	struct piom_ltask task;
	ATOMIC(int) inside, open, wanted; /* a: order(test) */
};

static enum piom_ltask_result stay(void *arg)
{
	struct restart *r = arg;

	store_release(&r->inside, 1);   /* order(test) */
	while (!load_acquire(&r->open)) /* order(test) */
		sched_yield();
	return PIOM_LTASK_DONE;
}

static void *start_again(void *arg)
{
	struct restart *r = arg;

	store_release(&r->wanted, 1); /* order(test) */
	CHECK_INT(piom_init(), 0);
	return NULL;
}

static void *let_out(void *arg)
{
	struct restart *r = arg;

	while (!load_acquire(&r->wanted)) /* order(test) */
		marcel_yield();
	for (int i = 0; i < 100; i++)
		marcel_yield();
	store_release(&r->open, 1); /* order(test) */
	return NULL;
}

/* An idle VP is in a pass; all others want VP 0, where main has to stay. */
static void stop_and_start(void)
{
	struct restart r = { .inside = ATOMIC_INIT(0) };
	marcel_vpset_t other;
	marcel_attr_t attr;
	marcel_t t[2];

	marcel_vpset_zero(&other);
	marcel_vpset_add(&other, 1);
	piom_ltask_init(&r.task, stay, &r, PIOM_LTASK_ONESHOT, &other);
	piom_ltask_submit(&r.task);
	while (!load_acquire(&r.inside)) /* order(test) */
		sched_yield();
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 0), 0);
	CHECK_INT(marcel_create(&t[0], &attr, start_again, &r), 0);
	CHECK_INT(marcel_create(&t[1], &attr, let_out, &r), 0);
	CHECK_INT(piom_exit(), 0); /* waits for the pass; others run */
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(stopping_does_not_hold_up_the_vp)
{
	static const struct mode two[] = { { 2, "marcel", "auto", "0" } };

	WITH_ALL(two, stop_and_start);
}

TEST(pioman_needs_marcel)
{
	CHECK(piom_init() < 0);
	CHECK_INT(piom_poll(), 0);
	CHECK(piom_exit() < 0);
}
