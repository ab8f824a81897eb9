/*
 * marcel/sched/call.c: what a call gives is what it gives without ticks,
 * however many come while it sleeps; but a handler of the program ends it as
 * ever.
 */
#include "kinds.h"

enum { HITS = 4 };

/* --- ticks at any time --- */

static ATOMIC(const struct kind *) calling;
static ATOMIC(int) round_now, hits, turns, over;

/* As if the monitor had looked just before each went to sleep. */
static void kill_lwps(int signal)
{
	base_spin_lock(&marcel_lwps.lock);
	for (struct marcel_lwp *l = marcel_lwps.all; l != NULL; l = l->all)
		if (load_relaxed(&l->vp) != NULL) /* it has begun */
			os_thread_kill(load_relaxed(&l->tid), signal);
	base_spin_unlock(&marcel_lwps.lock);
	os_thread_kill(load_relaxed(&marcel_lwps.first.tid), signal);
}

/*
 * What was called is given what it waits for after some ticks. They queue where
 * they are blocked, and there is one queue for all of the user's processes.
 *
 * The kind is never newer than the round. If it is older, this is the first
 * tick of the round, and only the last one gives.
 */
static void *ticker(void *arg)
{
	const struct kind *k;
	int n, round = 0, sent = 0;

	for (; load_relaxed(&over) == 0; sched_yield()) {
		fetch_add_release(&turns, 1);
		k = load_acquire(&calling);
		n = load_acquire(&round_now);
		if (n != round)
			sent = 0;
		round = n;
		if (n == 0)
			continue;
		if (sent < HITS) {
			kill_lwps(marcel_sched.signal);
			fetch_add_relaxed(&hits, n == load_relaxed(&round_now));
			if (++sent == HITS && k->give != NULL)
				k->give();
		} else if (k->handlers) {
			kill_lwps(SIGUSR1);
		}
	}
	return arg;
}

static void *computes(void *arg)
{
	while (load_relaxed(&over) == 0)
		;
	return arg;
}

/* The ticker has seen that the round is over. */
static void no_more_signals(void)
{
	int now = load_relaxed(&turns);

	while (load_acquire(&turns) < now + 2)
		marcel_yield();
}

static void *calls(void *arg)
{
	static int rounds;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		store_relaxed(&hits, 0);
		store_release(&calling, &kinds[i]);
		do {
			if (kinds[i].before != NULL)
				kinds[i].before();
			store_release(&round_now, ++rounds);
			kinds[i].call();
			store_relaxed(&round_now, 0);
			if (kinds[i].handlers)
				no_more_signals();
		} while (load_relaxed(&hits) < HITS && !kinds[i].once);
	}
	return arg;
}

static void beside_computing_threads(int nvp, void *(*fn)(void *))
{
	struct marcel_config config = { .nvp = nvp };
	marcel_t busy[2], t;
	pthread_t alien;

	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	store_relaxed(&over, 0);
	store_relaxed(&round_now, 0);
	CHECK_INT(marcel_init(&config), 0);
	for (int i = 0; i < nvp; i++)
		CHECK_INT(marcel_create(&busy[i], NULL, computes, NULL), 0);
	CHECK_INT(pthread_create(&alien, NULL, ticker, NULL), 0);
	fn(NULL);
	CHECK_INT(marcel_create(&t, NULL, fn, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	store_relaxed(&over, 1);
	CHECK_INT(pthread_join(alien, NULL), 0);
	for (int i = 0; i < nvp; i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

static void ticks_end_no_call(int nvp)
{
	open_all();
	beside_computing_threads(nvp, calls);
	close_all();
}

TEST(ticks_end_no_call_on_1_vp)
{
	ticks_end_no_call(1);
}

TEST(ticks_end_no_call_on_2_vps)
{
	ticks_end_no_call(2);
}

/* --- handlers of the program --- */

/* Whether it waits or is about to: again and again until it has returned. */
static void *interrupts(void *arg)
{
	while (load_relaxed(&over) == 0) {
		kill_lwps(SIGUSR1);
		sched_yield();
	}
	return arg;
}

static void *is_interrupted(void *arg)
{
	char c;

	fails(marcel_poll(NULL, 0, -1), EINTR);
	fails(marcel_io_nanosleep(nanosleep, &(struct timespec){ 1000000, 0 },
				  NULL),
	      EINTR);
	CHECK_INT(marcel_io_nanosleep(thrd_sleep, &far, NULL), -1);
	fails(marcel_io_sem_wait(sem_wait, &e.units), EINTR);
	fails(marcel_io_sem_timedwait(sem_timedwait, &e.units, &far), EINTR);
	fails(marcel_ppoll(NULL, 0, NULL, &e.none), EINTR);
	fails(marcel_read(e.pipe[0], &c, 1), EINTR);
	fails(marcel_recv(e.pair[1], &c, 1, 0), EINTR);
	return arg;
}

static void *restarts(void *arg)
{
	char c;

	fails(marcel_poll(NULL, 0, -1), EINTR);
	CHECK_INT(marcel_read(e.pipe[0], &c, 1), 1);
	return arg;
}

static void *gives_later(void *arg)
{
	int before = load_relaxed(&handled);

	while (load_relaxed(&handled) < before + 1000)
		sched_yield();
	give_byte();
	return arg;
}

TEST_VPS(handlers_end_calls)
{
	pthread_t alien, giver;
	marcel_t t;

	open_all();
	store_relaxed(&over, 0);
	CHECK_INT(pthread_create(&alien, NULL, interrupts, NULL), 0);
	CHECK_INT(marcel_create(&t, NULL, is_interrupted, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	is_interrupted(NULL);
	store_relaxed(&over, 1);
	CHECK_INT(pthread_join(alien, NULL), 0);
	handle_with(SA_RESTART);
	store_relaxed(&over, 0);
	CHECK_INT(pthread_create(&alien, NULL, interrupts, NULL), 0);
	CHECK_INT(pthread_create(&giver, NULL, gives_later, NULL), 0);
	CHECK_INT(marcel_create(&t, NULL, restarts, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(pthread_join(giver, NULL), 0);
	store_relaxed(&over, 1);
	CHECK_INT(pthread_join(alien, NULL), 0);
	close_all();
}

/* --- what others see of it --- */

static bool has_tick_blocked(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, marcel_sched.signal) == 1;
}

/* Ended by end(), or by a call of marcel. */
TEST_VPS(a_section_leaves_the_mask_as_it_was)
{
	for (int i = 0; i < 3; i++) {
		marcel_blocking_begin();
		CHECK(has_tick_blocked());
		if (i > 0)
			marcel_yield();
		if (i > 0)
			CHECK(!has_tick_blocked());
		if (i > 1)
			marcel_blocking_begin();
		marcel_blocking_end();
		CHECK(!has_tick_blocked());
		CHECK_INT(marcel_poll(NULL, 0, 1), 0);
		CHECK(!has_tick_blocked());
	}
}

TEST(two_signals_must_not_be_one)
{
	struct marcel_config one = { .nvp = 1 };
	char number[16];

	snprintf(number, sizeof(number), "%d", SIGRTMAX - 3);
	setenv("MARCEL_SIGNAL", number, 1);
	CHECK_INT(marcel_init(&one), 0);
	CHECK_INT(marcel_sched.signal, SIGRTMAX - 3);
	CHECK_INT(marcel_sched.break_signal, SIGRTMAX - 2);
	CHECK_INT(marcel_end(), 0);
	setenv("MARCEL_CANCEL_SIGNAL", number, 1);
	CHECK_INT(marcel_init(&one), -EINVAL);
	unsetenv("MARCEL_SIGNAL");
	unsetenv("MARCEL_CANCEL_SIGNAL");
}
