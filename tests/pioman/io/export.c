/*
 * pioman/io/export with real VPs: ltasks that wait in the kernel for something
 * that is no descriptor.
 */
#include "../with.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include <base/clock.h>

#include "../../../pioman/ltask/poll.h"
#include "../../../pioman/ltask/tree.h"
#include "../../tasks.h"
#include "modes.h"

enum { ROUNDS = 150 };

/* Events that are counted, and a semaphore for who waits for them. */
struct source {
	struct piom_ltask task;
	ATOMIC(int) come, taken;
	ATOMIC(int) inside; /* of wait_for() */
	ATOMIC(int) waits;  /* so far */
	sem_t sem;
	piom_cond_t *got; /* signalled at each, if not NULL */
	bool ends;        /* with the first */
};

static enum piom_ltask_result take(void *arg)
{
	struct source *s = arg;

	if (load_acquire(&s->come) == load_relaxed(&s->taken))
		return PIOM_LTASK_AGAIN;
	fetch_add_relaxed(&s->taken, 1);
	if (s->got != NULL)
		piom_cond_signal(s->got);
	return s->ends ? PIOM_LTASK_DONE : PIOM_LTASK_WORKED;
}

static void wait_for(void *arg)
{
	struct source *s = arg;

	CHECK_INT(fetch_add_relaxed(&s->inside, 1), 0);
	fetch_add_relaxed(&s->waits, 1);
	while (sem_wait(&s->sem) < 0)
		;
	CHECK_INT(fetch_sub_relaxed(&s->inside, 1), 1);
}

static void wake(void *arg)
{
	sem_post(&((struct source *)arg)->sem);
}

static int arm(void *arg)
{
	struct source *s = arg;

	CHECK_INT(load_relaxed(&s->inside), 0);
	while (sem_trywait(&s->sem) == 0)
		;
	return load_acquire(&s->come) != load_relaxed(&s->taken);
}

static void emit(struct source *s)
{
	fetch_add_release(&s->come, 1);
	sem_post(&s->sem);
}

static void source_init(struct source *s, uint64_t delay_ns)
{
	struct piom_blocking how = { .fd = -1,
				     .wait = wait_for,
				     .wake = wake,
				     .arm = arm,
				     .delay_ns = delay_ns };

	memset(s, 0, sizeof(*s));
	CHECK_INT(sem_init(&s->sem, 0, 0), 0);
	piom_ltask_init(&s->task, take, s, PIOM_LTASK_REPEAT, NULL);
	CHECK_INT(piom_ltask_set_blocking(&s->task, &how), 0);
}

/* Nobody waits in it any more, and nobody uses it. */
static void source_end(struct source *s)
{
	CHECK_INT(load_relaxed(&s->inside), 0);
	CHECK_INT(sem_destroy(&s->sem), 0);
	memset(s, 0xee, sizeof(*s));
}

/* --- no event is lost --- */

static ATOMIC(int) sent;

static void *sender(void *arg)
{
	unsigned seed = (unsigned)check_random();

	for (int i = 0; i < ROUNDS; i++) {
		while (load_acquire(&sent) != i)
			sched_yield();
		wait_at_random(&seed);
		emit(arg);
	}
	return NULL;
}

static void take_all(void)
{
	struct source s;
	piom_cond_t got;
	pthread_t t;

	source_init(&s, PIOM_BLOCKING_AUTO);
	s.got = &got;
	store_relaxed(&sent, -1);
	piom_ltask_submit(&s.task);
	CHECK_INT(pthread_create(&t, NULL, sender, &s), 0);
	for (int i = 0; i < ROUNDS; i++) {
		piom_cond_init(&got);
		store_release(&sent, i);
		piom_cond_wait(&got);
		CHECK_INT(load_relaxed(&s.taken), i + 1);
	}
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(piom_ltask_cancel(&s.task), 0);
	source_end(&s);
}

TEST(no_event_is_lost)
{
	in_all_modes(take_all);
}

/* --- the end --- */

static void cancel_at_random(void)
{
	unsigned seed = (unsigned)check_random();

	for (int i = 0; i < ROUNDS / 3; i++) {
		struct source *s = malloc(sizeof(*s));
		int rc;

		CHECK(s != NULL);
		source_init(s, 1);
		s->ends = i % 2;
		piom_ltask_submit(&s->task);
		wait_at_random(&seed);
		if (rand_r(&seed) % 2)
			emit(s);
		if (rand_r(&seed) % 2)
			marcel_yield();
		rc = piom_ltask_cancel(&s->task);
		CHECK(rc == 0 || (rc == -EALREADY && s->ends));
		source_end(s);
		free(s);
	}
}

TEST(after_its_end_no_kernel_thread_waits_for_it)
{
	in_all_modes(cancel_at_random);
}

/* --- how many --- */

enum { MANY = 5 };

static struct source many[MANY];
static piom_cond_t come[MANY];

/* More than can wait at a time: the others are polled. */
static void take_from_many(void)
{
	for (int i = 0; i < MANY; i++) {
		source_init(&many[i], 1);
		many[i].got = &come[i];
		piom_ltask_submit(&many[i].task);
	}
	for (int n = 0; n < 20; n++) {
		for (int i = 0; i < MANY; i++)
			piom_cond_init(&come[i]);
		for (int i = 0; i < MANY; i++)
			emit(&many[(i + n) % MANY]);
		for (int i = 0; i < MANY; i++)
			piom_cond_wait(&come[i]);
	}
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(piom_ltask_cancel(&many[i].task), 0);
		source_end(&many[i]);
	}
}

TEST(more_tasks_than_kernel_threads_get_their_events)
{
	static const char *const max[] = { "0", "1", "2", "64" };

	for (size_t i = 0; i < BASE_ARRAY_LEN(max); i++) {
		printf("# at most %s\n", max[i]);
		setenv("PIOM_LWP_MAX", max[i], 1);
		WITH_ALL(engine_marcel, take_from_many);
	}
	unsetenv("PIOM_LWP_MAX");
}

static void wait_until_all_wait(void)
{
	for (int i = 0; i < MANY; i++)
		while (load_relaxed(&many[i].inside) == 0)
			marcel_usleep(1000);
}

/*
 * Those that wait at the same time are as many kernel threads. In the end all
 * are counted: one may come from marcel, for a call of ours that takes too
 * long, and go again.
 */
static void come_and_go(void)
{
	int before = kernel_threads();

	for (int i = 0; i < MANY; i++) {
		source_init(&many[i], 1);
		piom_ltask_submit(&many[i].task);
	}
	wait_until_all_wait();
	for (int i = 0; i < MANY; i++)
		CHECK_INT(load_relaxed(&many[i].inside), 1);
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(piom_ltask_cancel(&many[i].task), 0);
		source_end(&many[i]);
	}
	while (kernel_threads() > before + 1)
		marcel_usleep(10000);
}

/* Twice: those that have ended can be had again. */
static void come_and_go_twice(void)
{
	come_and_go();
	come_and_go();
}

static const struct mode one_vp[] = { { 1, "marcel", "auto", "20" } };

TEST(kernel_threads_are_made_when_needed_and_end_when_not)
{
	setenv("PIOM_MODE", "interrupt", 1);
	setenv("MARCEL_LWP_MAX", "1", 1); /* beside the VP's own */
	WITH_ALL(one_vp, come_and_go_twice);
	unsetenv("MARCEL_LWP_MAX");
	unsetenv("PIOM_MODE");
}

/* --- the next life of pioman --- */

static void until_it_waits(struct source *s)
{
	while (load_relaxed(&s->inside) == 0)
		marcel_usleep(1000);
}

/* What was exported in the last one is not taken to be so still. */
static void export_across_a_restart(void)
{
	struct source *old = &many[0], *new = &many[1];

	source_init(old, 1);
	source_init(new, 1);
	for (int i = 0; i < 3; i++) {
		piom_ltask_submit(&old->task);
		until_it_waits(old);
		CHECK_INT(piom_ltask_cancel(&old->task), 0);
		CHECK_INT(piom_exit(), 0);
		CHECK_INT(piom_init(), 0);
		piom_ltask_submit(&new->task);
		until_it_waits(new);
		piom_ltask_submit(&old->task);
		until_it_waits(old);
		CHECK_INT(piom_ltask_cancel(&old->task), 0);
		CHECK_INT(load_relaxed(&new->inside), 1);
		CHECK_INT(piom_ltask_cancel(&new->task), 0);
	}
	source_end(old);
	source_end(new);
}

TEST(a_restart_leaves_nothing_of_what_was_exported)
{
	setenv("PIOM_MODE", "interrupt", 1);
	WITH_ALL(one_vp, export_across_a_restart);
	unsetenv("PIOM_MODE");
}

/* --- all compute --- */

static ATOMIC(int) over;

static enum piom_ltask_result end_all(void *arg)
{
	enum piom_ltask_result result = take(arg);

	if (result == PIOM_LTASK_DONE)
		store_relaxed(&over, 1);
	return result;
}

/* A foreign thread that polls no more when it waits. */
static void *send_when_it_waits(void *arg)
{
	struct source *s = arg;

	while (load_relaxed(&s->inside) == 0)
		piom_poll_all(-1, PIOM_LAST, PIOM_POINT_POLL);
	emit(s);
	return arg;
}

/* No thread makes a call and no slice ends. */
static void compute_until_it_comes(void)
{
	struct piom_blocking how = {
		.fd = -1, .wait = wait_for, .wake = wake, .arm = arm
	};
	struct source s;
	pthread_t t;

	source_init(&s, 0);
	s.ends = true;
	piom_ltask_init(&s.task, end_all, &s, PIOM_LTASK_REPEAT, NULL);
	CHECK_INT(piom_ltask_set_blocking(&s.task, &how), 0);
	store_relaxed(&over, 0);
	piom_ltask_submit(&s.task);
	CHECK_INT(pthread_create(&t, NULL, send_when_it_waits, &s), 0);
	while (!load_relaxed(&over))
		;
	CHECK_INT(pthread_join(t, NULL), 0);
	piom_ltask_wait(&s.task);
	source_end(&s);
}

TEST(what_comes_is_seen_while_all_compute)
{
	setenv("MARCEL_TIMESLICE_US", "0", 1);
	WITH_ALL(one_vp, compute_until_it_comes);
	unsetenv("MARCEL_TIMESLICE_US");
}
