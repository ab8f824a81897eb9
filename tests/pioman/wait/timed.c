/*
 * pioman/wait: waits that end at some time, in every mode, of user threads and
 * foreign ones: not before that time, and nothing is lost or taken twice.
 */
#include "../with.h"

#include <errno.h>

#include <base/clock.h>

#if BASE_TSAN || BASE_ASAN
enum { RACES = 20, POSTS = 100 };
#else
enum { RACES = 200, POSTS = 1000 };
#endif

enum { SOON_NS = 200000 };
#define FAR (UINT64_MAX / 2)

static uint64_t soon(void)
{
	return base_now_ns() + SOON_NS;
}

/* By a user thread, and at the same time by a foreign one. */
static void as_both(void *(*fn)(void *))
{
	pthread_t alien;
	marcel_t user;

	CHECK_INT(pthread_create(&alien, NULL, fn, NULL), 0);
	CHECK_INT(marcel_create(&user, NULL, fn, NULL), 0);
	CHECK_INT(marcel_join(user, NULL), 0);
	CHECK_INT(pthread_join(alien, NULL), 0);
	CHECK_PTR(fn(NULL), NULL);
}

static enum piom_ltask_result signal_it(void *arg)
{
	piom_cond_signal(arg);
	return PIOM_LTASK_DONE;
}

static enum piom_ltask_result ask_again(void *arg)
{
	(void)arg;
	return PIOM_LTASK_AGAIN;
}

static void start(struct piom_ltask *t, piom_ltask_fn fn, void *arg)
{
	piom_ltask_init(
		t, fn, arg,
		fn == ask_again ? PIOM_LTASK_REPEAT : PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(t);
}

/* --- conditions --- */

static void *wait_in_vain(void *arg)
{
	for (int i = 0; i < 3; i++) {
		uint64_t until = soon();
		struct piom_ltask t;
		piom_cond_t c;

		piom_cond_init(&c);
		CHECK_INT(piom_cond_wait_until(&c, until), -ETIMEDOUT);
		CHECK(base_now_ns() >= until);
		CHECK_INT(piom_cond_wait_until(&c, 0), -ETIMEDOUT);
		/* It may be waited for again, and signalled. */
		start(&t, signal_it, &c);
		CHECK_INT(piom_cond_wait_until(&c, FAR), 0);
		CHECK_INT(piom_cond_wait_until(&c, 0), 0);
		piom_ltask_wait(&t);
	}
	return arg;
}

static void in_vain(void)
{
	as_both(wait_in_vain);
}

TEST(a_wait_ends_at_its_time_and_the_condition_serves_on)
{
	WITH_ALL(every_mode, in_vain);
}

static void *wait_for_several(void *arg)
{
	piom_cond_t c[3], *conds[4] = { &c[0], NULL, &c[1], &c[2] };

	for (int i = 0; i < 3; i++) {
		uint64_t until = soon();
		struct piom_ltask t;

		for (int k = 0; k < 3; k++)
			piom_cond_init(&c[k]);
		CHECK_INT(piom_cond_wait_any_until(conds, 4, until), 4);
		CHECK(base_now_ns() >= until);
		CHECK_INT(piom_cond_wait_any_until(conds, 4, 0), 4);
		start(&t, signal_it, &c[i]);
		CHECK_INT(piom_cond_wait_any_until(conds, 4, FAR),
			  i == 0 ? 0 : i + 1);
		CHECK_INT(piom_cond_wait_any_until(conds, 4, 0),
			  i == 0 ? 0 : i + 1);
		piom_ltask_wait(&t);
	}
	return arg;
}

static void several(void)
{
	as_both(wait_for_several);
}

TEST(so_does_a_wait_for_any_of_several)
{
	WITH_ALL(every_mode, several);
}

static void *wait_for_ltask(void *arg)
{
	for (int i = 0; i < 3; i++) {
		uint64_t until = soon();
		struct piom_ltask t;
		piom_cond_t c;

		start(&t, ask_again, NULL);
		CHECK_INT(piom_ltask_wait_until(&t, until), -ETIMEDOUT);
		CHECK(base_now_ns() >= until);
		CHECK_INT(piom_ltask_cancel(&t), 0);
		CHECK_INT(piom_ltask_wait_until(&t, 0), 0);
		piom_cond_init(&c);
		start(&t, signal_it, &c);
		CHECK_INT(piom_ltask_wait_until(&t, FAR), 0);
	}
	return arg;
}

static void ltasks(void)
{
	as_both(wait_for_ltask);
}

TEST(so_does_a_wait_for_an_ltask)
{
	WITH_ALL(every_mode, ltasks);
}

/* --- the signal comes at that time --- */

struct race {
	struct piom_ltask task;
	piom_cond_t c;
	uint64_t at;
};

static enum piom_ltask_result signal_at(void *arg)
{
	struct race *r = arg;

	if (base_now_ns() < r->at)
		return PIOM_LTASK_AGAIN;
	piom_cond_signal(&r->c);
	return PIOM_LTASK_DONE;
}

/* Until a time shortly before or after it; whichever ends the wait has come. */
static void *race(void *arg)
{
	for (int i = 0; i < RACES; i++) {
		struct race r = { .at = base_now_ns() + 5000 };
		uint64_t until = r.at - 2000 + (uint64_t)i * 100 % 4000;

		piom_cond_init(&r.c);
		piom_ltask_init(&r.task, signal_at, &r, PIOM_LTASK_REPEAT,
				NULL);
		piom_ltask_submit(&r.task);
		if (piom_cond_wait_until(&r.c, until) != 0)
			CHECK(base_now_ns() >= until);
		else
			CHECK(base_now_ns() >= r.at);
		piom_cond_wait(&r.c);
		piom_ltask_wait(&r.task);
	}
	return arg;
}

static void races(void)
{
	as_both(race);
}

TEST(a_signal_at_that_moment_is_not_lost)
{
	WITH_ALL(every_mode, races);
}

/* --- semaphores --- */

static void *wait_for_sem(void *arg)
{
	for (int i = 0; i < 3; i++) {
		uint64_t until = soon();
		piom_sem_t s;

		piom_sem_init(&s, 1);
		CHECK_INT(piom_sem_wait_until(&s, 0), 0);
		CHECK_INT(piom_sem_wait_until(&s, until), -ETIMEDOUT);
		CHECK(base_now_ns() >= until);
		/* It is not in the queue: the post is there for the next. */
		piom_sem_post(&s);
		CHECK_INT(piom_sem_trywait(&s), 0);
		CHECK_INT(piom_sem_trywait(&s), -EAGAIN);
		piom_sem_post(&s);
		CHECK_INT(piom_sem_wait_until(&s, FAR), 0);
		CHECK_INT(piom_sem_wait_until(&s, 0), -ETIMEDOUT);
	}
	return arg;
}

static void sems(void)
{
	as_both(wait_for_sem);
}

TEST(who_waits_for_a_semaphore_in_vain_takes_nothing)
{
	WITH_ALL(every_mode, sems);
}

static piom_sem_t units, over;
static ATOMIC(int) taken, timeouts, all_posted;
static ATOMIC(uint64_t) somebodys_time;

/* Until it has waited in vain after the last post: then nothing was there. */
static void *take_units(void *arg)
{
	uint64_t wait = 1, until;
	bool last, got;

	do {
		last = load_acquire(&all_posted);
		until = base_now_ns() + wait;
		store_relaxed(&somebodys_time, until);
		got = piom_sem_wait_until(&units, until) == 0;
		fetch_add_relaxed(got ? &taken : &timeouts, 1);
		wait = wait * 7 % 30011;
	} while (got || !last);
	piom_sem_post(&over);
	return arg;
}

enum { TAKERS = 4 };

/* When somebody's time comes, and never at once: others run meanwhile. */
static void pause_until_theirs(void)
{
	uint64_t now = base_now_ns(), until = load_relaxed(&somebodys_time);

	if (until <= now)
		until = now + 10000;
	CHECK_INT(piom_sem_wait_until(&over, until), -ETIMEDOUT);
}

/*
 * Between two posts somebody waits in vain, and each comes when somebody's time
 * does. Each unit is taken once.
 */
static void share_out(void)
{
	marcel_t users[TAKERS / 2];
	pthread_t aliens[TAKERS / 2];
	int before;

	piom_sem_init(&units, 0);
	piom_sem_init(&over, 0);
	store_relaxed(&taken, 0);
	store_relaxed(&timeouts, 0);
	store_relaxed(&all_posted, 0);
	for (int i = 0; i < TAKERS / 2; i++) {
		CHECK_INT(marcel_create(&users[i], NULL, take_units, NULL), 0);
		CHECK_INT(pthread_create(&aliens[i], NULL, take_units, NULL),
			  0);
	}
	for (int i = 0; i < POSTS; i++) {
		before = load_relaxed(&timeouts);
		do
			pause_until_theirs();
		while (load_relaxed(&timeouts) == before);
		piom_sem_post(&units);
	}
	store_release(&all_posted, 1);
	for (int i = 0; i < TAKERS; i++)
		piom_sem_wait(&over);
	for (int i = 0; i < TAKERS / 2; i++) {
		CHECK_INT(marcel_join(users[i], NULL), 0);
		CHECK_INT(pthread_join(aliens[i], NULL), 0);
	}
	CHECK_INT(load_relaxed(&taken), POSTS);
	CHECK_INT(piom_sem_trywait(&units), -EAGAIN);
}

TEST(a_post_at_that_moment_is_not_lost_and_not_given_twice)
{
	WITH_ALL(every_mode, share_out);
}
