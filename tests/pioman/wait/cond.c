/* pioman/wait: who waits is woken, in every mode, and only then. */
#include "../with.h"

#include <errno.h>

#include <base/clock.h>

#if BASE_TSAN || BASE_ASAN
enum { ROUNDS = 200, CROWD = 50, ALIENS = 3 };
#else
enum { ROUNDS = 500, CROWD = 1000, ALIENS = 3 };
#endif

/* An operation: an ltask completes it after it was polled some times. */
struct op {
	struct piom_ltask task;
	piom_cond_t done;
	int polls; /* so many until it is complete */
	int data;  /* plain: the condition gives the order */
};

static enum piom_ltask_result op_poll(void *arg)
{
	struct op *op = arg;

	if (op->polls-- > 0)
		return PIOM_LTASK_AGAIN;
	op->data++;
	piom_cond_signal(&op->done); /* the last access: NOWAIT */
	return PIOM_LTASK_DONE;
}

static void op_start(struct op *op, int polls)
{
	piom_cond_init(&op->done);
	op->polls = polls;
	op->data = polls;
	piom_ltask_init(&op->task, op_poll, op,
			PIOM_LTASK_REPEAT | PIOM_LTASK_NOWAIT, NULL);
	piom_ltask_submit(&op->task);
}

/* --- one thread --- */

static void one_after_the_other(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct op op;

		op_start(&op, i % 7);
		piom_cond_wait(&op.done);
		CHECK(piom_cond_test(&op.done));
		CHECK_INT(op.data, i % 7 + 1);
	}
}

TEST(a_waiter_sees_what_came_before_the_signal)
{
	WITH_ALL(every_mode, one_after_the_other);
}

/* --- looking at what one knows of --- */

static void look_at(void *arg)
{
	struct op *op = arg;

	if (--op->polls > 0)
		return;
	if (op->polls == 0) {
		op->data++;
		piom_cond_signal(&op->done);
	}
}

static void looks(void)
{
	for (int i = 0; i < ROUNDS / 10; i++) {
		struct op op = { .polls = 1 + i % 70, .data = i };

		piom_cond_init(&op.done);
		piom_cond_wait_on(&op.done, look_at, &op);
		CHECK_INT(op.data, i + 1);
	}
}

TEST(a_waiter_is_through_when_its_own_look_signals)
{
	static const struct mode patient = { 1, "marcel", "auto", "1000000" };

	with_mode(&patient, looks);
}

static void look_at_nothing(void *arg)
{
	++*(int *)arg;
}

static void others_signal(void)
{
	int n = 0;

	for (int i = 0; i < ROUNDS / 10; i++) {
		struct op op;

		op_start(&op, i % 7);
		piom_cond_wait_on(&op.done, look_at_nothing, &n);
		CHECK_INT(op.data, i % 7 + 1);
	}
}

TEST(a_waiter_who_looks_for_himself_polls_the_ltasks_too)
{
	WITH_ALL(every_mode, others_signal);
}

/* One whose own look signals, unless it is better not to look twice. */
static void polls_only(void)
{
	for (int i = 0; i < ROUNDS / 10; i++) {
		struct op op = { .polls = 1, .data = i };
		int n = 0;

		piom_cond_init(&op.done);
		CHECK_INT(piom_cond_poll_on(&op.done, look_at_nothing, &n),
			  -EAGAIN);
		CHECK(n > 0);
		CHECK_INT(piom_cond_poll_on(&op.done, look_at, &op), 0);
		CHECK_INT(op.data, i + 1);
	}
}

TEST(who_only_polls_does_not_sleep)
{
	WITH_ALL(every_mode, polls_only);
}

/* It makes way for real-time threads itself, as whoever waits does. */
static marcel_t urgent;
static int urgent_ran;

static void *run_urgent(void *arg)
{
	urgent_ran++;
	return arg;
}

static void look_urgently(void *arg)
{
	struct op *op = arg;
	marcel_attr_t attr;

	look_at(op);
	if (op->polls != 0)
		return;
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME), 0);
	CHECK_INT(marcel_create(&urgent, &attr, run_urgent, NULL), 0);
}

static void makes_way(void)
{
	struct op op = { .polls = 2 };

	piom_cond_init(&op.done);
	CHECK_INT(piom_cond_poll_on(&op.done, look_urgently, &op), 0);
	CHECK_INT(urgent_ran, 1);
	CHECK_INT(marcel_join(urgent, NULL), 0);
}

TEST(who_only_polls_makes_way_for_real_time_threads)
{
	static const struct mode patient = { 1, "marcel", "auto", "1000000" };

	setenv("MARCEL_TIMESLICE_US", "0", 1);
	with_mode(&patient, makes_way);
	unsetenv("MARCEL_TIMESLICE_US");
}

static void any_and_all(void)
{
	struct op op[8];
	piom_cond_t *conds[10] = { NULL };

	for (int i = 0; i < ROUNDS / 10; i++) {
		int first = i % 8;
		size_t found;

		for (int k = 0; k < 8; k++) {
			op_start(&op[k], k == first ? 0 : 10);
			conds[k + 1] = &op[k].done;
		}
		found = piom_cond_wait_any(conds, 10);
		CHECK(found >= 1 && found <= 8);
		CHECK(piom_cond_test(conds[found]));
		piom_cond_wait_all(conds, 10);
		for (int k = 0; k < 8; k++)
			CHECK(piom_cond_test(&op[k].done));
		CHECK_INT(piom_cond_wait_any(conds, 10), 1);
	}
}

TEST(any_of_several_ends_a_wait_and_all_of_them_another)
{
	WITH_ALL(every_mode, any_and_all);
}

/* --- row 45: how a user thread waits; counted by its switches --- */

static int switches;

static enum marcel_hook_answer count_switch(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	switches++;
	return MARCEL_HOOK_NOTHING;
}

static struct marcel_hook counter = { .fn = count_switch };

/* Unless the kernel has let us spin for a second with a hundred polls. */
static void early_completion(void)
{
	uint64_t start;
	struct op op;
	int n;

	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &counter), 0);
	do {
		start = base_now_ns();
		switches = 0;
		op_start(&op, 100);
		piom_cond_wait(&op.done);
		n = switches;
	} while (n > 0 && base_now_ns() - start >= 1000000000);
	CHECK_INT(n, 0);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &counter), 0);
}

TEST(completion_within_the_spin_costs_no_switch)
{
	static const struct mode spins[] = {
		{ 1, "marcel", "auto", "1000000" },
		{ 1, "marcel", "spin", "1000000" },
	};

	WITH_ALL(spins, early_completion);
}

static ATOMIC(int) stop;

static void *yield_until_stop(void *arg)
{
	while (!load_acquire(&stop)) {
		++*(int *)arg;
		marcel_yield();
	}
	return NULL;
}

static void others_run(void)
{
	int yields = 0;
	struct op op;
	marcel_t t;

	store_release(&stop, 0);
	CHECK_INT(marcel_create(&t, NULL, yield_until_stop, &yields), 0);
	op_start(&op, 5);
	piom_cond_wait(&op.done);
	CHECK(yields > 0);
	store_release(&stop, 1);
	CHECK_INT(marcel_join(t, NULL), 0);
}

/* Also with engine none, whose waiter has to poll: it yields in between. */
TEST(a_waiter_gives_its_vp_to_threads_that_are_ready)
{
	static const struct mode modes[] = {
		{ 1, "marcel", "auto", "1000000" },
		{ 1, "marcel", "active", "1000000" },
		{ 1, "none", "auto", "1000000" },
	};

	WITH_ALL(modes, others_run);
}

/* --- many threads --- */

static struct op crowd_op[CROWD + ALIENS];
static ATOMIC(int) crowd_left;

static void crowd_wait(int i)
{
	op_start(&crowd_op[i], i % 5);
	piom_cond_wait(&crowd_op[i].done);
	CHECK_INT(crowd_op[i].data, i % 5 + 1);
	fetch_sub_relaxed(&crowd_left, 1);
}

static void *user_crowd(void *arg)
{
	crowd_wait((int)(intptr_t)arg);
	return NULL;
}

static void *alien_crowd(void *arg)
{
	for (int n = 0; n < ROUNDS / 20; n++)
		crowd_wait((int)(intptr_t)arg);
	return NULL;
}

static void crowd(void)
{
	static marcel_t users[CROWD];
	pthread_t aliens[ALIENS];

	store_relaxed(&crowd_left, CROWD + ALIENS * (ROUNDS / 20));
	for (int i = 0; i < ALIENS; i++)
		CHECK_INT(pthread_create(&aliens[i], NULL, alien_crowd,
					 (void *)(intptr_t)(CROWD + i)),
			  0);
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(marcel_create(&users[i], NULL, user_crowd,
					(void *)(intptr_t)i),
			  0);
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(marcel_join(users[i], NULL), 0);
	for (int i = 0; i < ALIENS; i++)
		CHECK_INT(pthread_join(aliens[i], NULL), 0);
	CHECK_INT(load_relaxed(&crowd_left), 0);
}

/* With engine none joining does not poll, but those who wait do. */
TEST(a_thousand_user_threads_and_foreign_ones_are_all_woken)
{
	WITH_ALL(every_mode, crowd);
}

/* --- signals from other threads, without ltasks --- */

struct duel {
	piom_cond_t ping, pong;
	int n;
};

static void *duellist(void *arg)
{
	struct duel *d = arg;

	for (int i = 0; i < ROUNDS; i++) {
		piom_cond_wait(&d->ping);
		piom_cond_init(&d->ping);
		CHECK_INT(d->n, 2 * i + 1);
		d->n++;
		piom_cond_signal(&d->pong);
	}
	return NULL;
}

static void duel_with(struct duel *d)
{
	for (int i = 0; i < ROUNDS; i++) {
		d->n++;
		piom_cond_signal(&d->ping);
		piom_cond_wait(&d->pong);
		piom_cond_init(&d->pong);
		CHECK_INT(d->n, 2 * i + 2);
	}
}

static void duels(void)
{
	struct duel with_user = { .n = 0 }, with_alien = { .n = 0 };
	pthread_t alien;
	marcel_t user;

	CHECK_INT(marcel_create(&user, NULL, duellist, &with_user), 0);
	duel_with(&with_user);
	CHECK_INT(marcel_join(user, NULL), 0);
	CHECK_INT(pthread_create(&alien, NULL, duellist, &with_alien), 0);
	duel_with(&with_alien);
	pthread_join(alien, NULL);
}

TEST(no_signal_is_lost_between_threads)
{
	WITH_ALL(every_mode, duels);
}

/* --- semaphores --- */

static void counts(void)
{
	piom_sem_t s;

	piom_sem_init(&s, 2);
	CHECK_INT(piom_sem_trywait(&s), 0);
	piom_sem_wait(&s);
	CHECK_INT(piom_sem_trywait(&s), -EAGAIN);
	piom_sem_post(&s);
	CHECK_INT(piom_sem_trywait(&s), 0);
	CHECK_INT(piom_sem_trywait(&s), -EAGAIN);
}

TEST(a_semaphore_lets_as_many_through_as_were_posted)
{
	WITH_ALL(engine_marcel, counts);
}

enum { PAIRS = 4 };

struct exchange {
	piom_sem_t items, room;
	ATOMIC(int) inside, sum;
};

static void *consumer(void *arg)
{
	struct exchange *x = arg;

	for (int i = 0; i < ROUNDS; i++) {
		piom_sem_wait(&x->items);
		CHECK(fetch_sub_relaxed(&x->inside, 1) > 0);
		fetch_add_relaxed(&x->sum, 1);
		piom_sem_post(&x->room);
	}
	return NULL;
}

static void *producer(void *arg)
{
	struct exchange *x = arg;

	for (int i = 0; i < ROUNDS; i++) {
		piom_sem_wait(&x->room);
		CHECK(fetch_add_relaxed(&x->inside, 1) < 3);
		piom_sem_post(&x->items);
	}
	return NULL;
}

/* --- the only VP leaves for the kernel --- */

/* Complete once it was polled while main sat in the kernel. */
struct deserted {
	struct piom_ltask task;
	piom_cond_t done;
	marcel_event_t left_alone; /* main may leave: idle VPs have polled */
	ATOMIC(int) gone;          /* a: order(test) */
	int before, after;         /* polls so far, before and since */
};

static enum piom_ltask_result deserted_poll(void *arg)
{
	struct deserted *d = arg;

	if (load_acquire(&d->gone) == 0) {
		if (++d->before == 1000)
			marcel_event_set(&d->left_alone);
		return PIOM_LTASK_AGAIN;
	}
	if (++d->after < 10)
		return PIOM_LTASK_AGAIN;
	piom_cond_signal(&d->done);
	return PIOM_LTASK_DONE;
}

static void *wait_deserted(void *arg)
{
	struct deserted *d = arg;

	piom_cond_wait(&d->done);
	return NULL;
}

/*
 * A foreign thread waits while the VP polls; then main, who owns the only VP,
 * blocks in the kernel unannounced. Somebody has to go on polling.
 */
static void desert(void)
{
	struct deserted d = { .before = 0 };
	pthread_t alien;

	piom_ltask_init(&d.task, deserted_poll, &d, PIOM_LTASK_REPEAT, NULL);
	CHECK_INT(pthread_create(&alien, NULL, wait_deserted, &d), 0);
	piom_ltask_submit(&d.task);
	marcel_event_wait(&d.left_alone);
	store_release(&d.gone, 1); /* order(test) */
	CHECK_INT(pthread_join(alien, NULL), 0);
	piom_ltask_wait(&d.task);
}

TEST(a_foreign_waiter_does_not_depend_on_a_vp_that_polled_once)
{
	WITH_ALL(every_mode, desert);
}

/* Half of the producers and half of the consumers are foreign threads. */
static void exchange(void)
{
	struct exchange x = { 0 };
	marcel_t users[PAIRS];
	pthread_t aliens[PAIRS];

	piom_sem_init(&x.items, 0);
	piom_sem_init(&x.room, 3);
	for (int i = 0; i < PAIRS; i++) {
		void *(*fn)(void *) = i % 2 ? producer : consumer;

		CHECK_INT(marcel_create(&users[i], NULL, fn, &x), 0);
		CHECK_INT(pthread_create(&aliens[i], NULL, fn, &x), 0);
	}
	for (int i = 0; i < PAIRS; i++)
		CHECK_INT(marcel_join(users[i], NULL), 0);
	for (int i = 0; i < PAIRS; i++)
		CHECK_INT(pthread_join(aliens[i], NULL), 0);
	CHECK_INT(load_relaxed(&x.sum), PAIRS * ROUNDS);
	CHECK_INT(load_relaxed(&x.inside), 0);
}

TEST(semaphores_lose_nobody_among_user_and_foreign_threads)
{
	static const struct mode modes[] = {
		{ 1, "marcel", "auto", "5" },
		{ 4, "marcel", "auto", "5" },
		{ 4, "marcel", "passive", "0" },
		{ 4, "none", "auto", "5" },
	};

	WITH_ALL(modes, exchange);
}

static enum piom_ltask_result post_it(void *arg)
{
	piom_sem_post(arg);
	return PIOM_LTASK_DONE;
}

/* Who was let through may unmap the semaphore at once. */
static void post_and_free(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		piom_sem_t *s = malloc(sizeof(*s));
		struct piom_ltask t;

		piom_sem_init(s, 0);
		piom_ltask_init(&t, post_it, s, PIOM_LTASK_ONESHOT, NULL);
		piom_ltask_submit(&t);
		piom_sem_wait(s);
		memset(s, 0xa5, sizeof(*s));
		free(s);
		piom_ltask_wait(&t);
	}
}

TEST(the_poster_does_not_touch_the_semaphore_after_letting_through)
{
	WITH_ALL(engine_marcel, post_and_free);
}
