/*
 * pioman/io/blocking with real VPs: what comes is seen, whoever sleeps,
 * computes or cancels meanwhile.
 */
#include "../with.h"

#include <sys/wait.h>

#include "../../../pioman/io/blocking.h"
#include "../../../pioman/ltask/poll.h"
#include "../../../pioman/ltask/tree.h"
#include "../../../pioman/point/pthread.h"
#include "../../../pioman/state.h"
#include "modes.h"
#include "pipes.h"

#if BASE_TSAN || BASE_ASAN
enum { ROUNDS = 60, FORKS = 5 };
#else
enum { ROUNDS = 120, FORKS = 5 };
#endif

/* --- no event is lost --- */

static ATOMIC(int) fed; /* bytes that were written */

/* A foreign thread: writes one byte after each that was read. */
static void *feeder(void *arg)
{
	struct reader *r = arg;
	unsigned seed = (unsigned)check_random();

	for (int i = 0; i < ROUNDS; i++) {
		while (load_acquire(&fed) != i)
			sched_yield();
		wait_at_random(&seed);
		feed(r);
	}
	return NULL;
}

static void read_all(void)
{
	struct reader r;
	piom_cond_t got;
	pthread_t t;

	reader_init(&r, NULL);
	r.got = &got;
	store_relaxed(&fed, -1);
	piom_ltask_submit(&r.task);
	CHECK_INT(pthread_create(&t, NULL, feeder, &r), 0);
	for (int i = 0; i < ROUNDS; i++) {
		piom_cond_init(&got);
		store_release(&fed, i);
		piom_cond_wait(&got);
		CHECK_INT(load_relaxed(&r.bytes), i + 1);
	}
	CHECK_INT(pthread_join(t, NULL), 0);
	reader_end(&r);
}

TEST(no_event_is_lost_by_a_user_thread)
{
	in_all_modes(read_all);
}

static void *read_all_foreign(void *arg)
{
	read_all();
	return arg;
}

/* Main sleeps in the kernel, announced, as its VP polls or does not. */
static void from_a_foreign_thread(void)
{
	pthread_t t;

	CHECK_INT(pthread_create(&t, NULL, read_all_foreign, NULL), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
}

TEST(no_event_is_lost_by_a_foreign_thread)
{
	in_all_modes(from_a_foreign_thread);
}

/* --- all compute --- */

static ATOMIC(int) over;

static void *compute(void *arg)
{
	while (!load_relaxed(&over))
		;
	return arg;
}

static marcel_t others[8];

/* On each VP but main's. */
static void others_compute(void)
{
	for (int i = 1; i < marcel_nvp(); i++)
		CHECK_INT(marcel_create(&others[i], NULL, compute, NULL), 0);
}

/* So does main, until it is over: the ltask is done. */
static void compute_to_the_end(struct reader *r, pthread_t feeds)
{
	compute(NULL);
	CHECK_INT(pthread_join(feeds, NULL), 0);
	for (int i = 1; i < marcel_nvp(); i++)
		CHECK_INT(marcel_join(others[i], NULL), 0);
	piom_ltask_wait(&r->task);
	close(r->fd[0]);
	close(r->fd[1]);
}

static ATOMIC(int) armed;

static int note_armed(void *arg)
{
	(void)arg;
	fetch_add_relaxed(&armed, 1);
	return 0;
}

static enum piom_ltask_result end_all(void *arg)
{
	if (reader_run(arg) != PIOM_LTASK_WORKED)
		return PIOM_LTASK_AGAIN;
	store_relaxed(&over, 1);
	return PIOM_LTASK_DONE;
}

/* A foreign thread that polls no more: it has it armed. */
static void *feed_when_armed(void *arg)
{
	while (load_relaxed(&armed) == 0)
		piom_poll_all(-1, PIOM_LAST, PIOM_POINT_WAIT);
	feed(arg);
	return arg;
}

/*
 * No thread makes a call and no slice ends: who else but the watcher could run
 * the ltask?
 */
static void compute_until_it_comes(void)
{
	struct piom_blocking how = { .arm = note_armed };
	pthread_t feeds;
	struct reader r;
	piom_cond_t got;

	reader_init_as(&r, end_all, how);
	piom_cond_init(&got);
	r.got = &got;
	store_relaxed(&over, 0);
	store_relaxed(&armed, 0);
	others_compute();
	piom_ltask_submit(&r.task);
	CHECK_INT(pthread_create(&feeds, NULL, feed_when_armed, &r), 0);
	compute_to_the_end(&r, feeds);
}

TEST(what_comes_is_seen_while_all_compute)
{
	static const char *const modes[] = { "auto", "interrupt" };

	setenv("MARCEL_TIMESLICE_US", "0", 1);
	for (size_t i = 0; i < BASE_ARRAY_LEN(modes); i++) {
		setenv("PIOM_MODE", modes[i], 1);
		WITH_ALL(engine_marcel, compute_until_it_comes);
	}
	unsetenv("PIOM_MODE");
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- first a VP is idle, and then it computes --- */

static ATOMIC(int) computes;
static marcel_event_t second;

static enum piom_ltask_result end_with_third(void *arg)
{
	struct reader *r = arg;
	enum piom_ltask_result result = reader_run(r);

	if (result == PIOM_LTASK_WORKED && load_relaxed(&r->bytes) == 2)
		marcel_event_set(&second);
	if (load_relaxed(&r->bytes) < 3)
		return result;
	store_relaxed(&over, 1);
	return PIOM_LTASK_DONE;
}

/* Two come when it is armed and VPs sleep, one when all compute. */
static void *feed_thrice(void *arg)
{
	struct timespec while_ = { 0, 5000000 };
	struct reader *r = arg;

	for (int i = 0; i < 2; i++) {
		do
			piom_poll_all(-1, PIOM_LAST, PIOM_POINT_WAIT);
		while (piom_queue_is_pending(piom_tree_machine()));
		nanosleep(&while_, NULL);
		feed(r);
		while (load_relaxed(&r->bytes) <= i)
			sched_yield();
	}
	while (!load_relaxed(&computes))
		sched_yield();
	feed(r);
	return arg;
}

/*
 * The second comes soon after the first: the watcher leaves the ltask to VPs
 * that are idle and have a second to poll. Then all compute, no slice ends, and
 * it is to take it back.
 */
static void idle_and_then_compute(void)
{
	struct piom_blocking how = { .delay_ns = PIOM_BLOCKING_AUTO };
	struct reader r;
	pthread_t feeds;

	reader_init_as(&r, end_with_third, how);
	store_relaxed(&over, 0);
	store_relaxed(&computes, 0);
	marcel_event_init(&second);
	piom_ltask_submit(&r.task);
	CHECK_INT(pthread_create(&feeds, NULL, feed_thrice, &r), 0);
	marcel_event_wait(&second);
	marcel_usleep(1000);
	others_compute();
	store_relaxed(&computes, 1);
	compute_to_the_end(&r, feeds);
}

TEST(what_is_left_to_a_vp_that_then_computes_is_seen)
{
	setenv("MARCEL_TIMESLICE_US", "0", 1);
	setenv("PIOM_IDLE_US", "1000000", 1);
	for (int n = 0; n < 5; n++)
		WITH_ALL(engine_marcel, idle_and_then_compute);
	unsetenv("PIOM_IDLE_US");
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- nobody polls who could sleep --- */

/* It has slept when a while has passed in which nobody asked. */
static void be_quiet(struct reader *r)
{
	struct timespec while_ = { 0, 20000000 };
	int before;

	do {
		before = load_relaxed(&r->runs);
		nanosleep(&while_, NULL);
	} while (load_relaxed(&r->runs) != before);
}

static void *feed_when_quiet(void *arg)
{
	struct reader *r = arg;

	be_quiet(r);
	feed(r);
	be_quiet(r);
	return arg;
}

static void sleep_until_it_comes(void)
{
	struct reader r;
	piom_cond_t got;
	pthread_t t;

	reader_init(&r, NULL);
	piom_cond_init(&got);
	r.got = &got;
	piom_ltask_submit(&r.task);
	CHECK_INT(pthread_create(&t, NULL, feed_when_quiet, &r), 0);
	piom_cond_wait(&got);
	marcel_yield();
	CHECK_INT(pthread_join(t, NULL), 0);
	reader_end(&r);
}

TEST(who_waits_for_an_event_makes_nobody_poll)
{
	static const char *const modes[] = { "auto", "interrupt" };

	for (size_t i = 0; i < BASE_ARRAY_LEN(modes); i++) {
		setenv("PIOM_MODE", modes[i], 1);
		WITH_ALL(engine_marcel, sleep_until_it_comes);
	}
	unsetenv("PIOM_MODE");
}

/* --- what only some VPs may run --- */

static ATOMIC(int) inside, open_;
static ATOMIC(int) asked;
static struct piom_ltask of_last;

static enum piom_ltask_result hold_on(void *arg)
{
	enum piom_ltask_result result = reader_run(arg);

	if (result != PIOM_LTASK_WORKED)
		return result;
	store_release(&inside, 1);
	while (!load_acquire(&open_))
		sched_yield();
	return result;
}

static enum piom_ltask_result note_asked(void *arg)
{
	(void)arg;
	fetch_add_relaxed(&asked, 1);
	return PIOM_LTASK_QUIET;
}

/* The last VP has slept again when it is let out, if it may. */
static void *kick_while_held(void *arg)
{
	struct timespec while_ = { 0, 50000000 };
	int before;

	be_quiet(arg);
	feed(arg);
	while (!load_acquire(&inside))
		sched_yield();
	before = load_relaxed(&asked);
	piom_ltask_kick(&of_last);
	nanosleep(&while_, NULL);
	store_release(&open_, 1);
	while (load_relaxed(&asked) == before)
		nanosleep(&while_, NULL);
	return arg;
}

static void kick_of_the_last(void)
{
	struct piom_blocking how = { .delay_ns = 0 };
	marcel_vpset_t last;
	struct reader r;
	piom_cond_t got;
	pthread_t t;

	marcel_vpset_zero(&last);
	marcel_vpset_add(&last, marcel_nvp() - 1);
	store_relaxed(&inside, 0);
	store_relaxed(&open_, 0);
	piom_ltask_init(&of_last, note_asked, NULL, PIOM_LTASK_REPEAT, &last);
	piom_ltask_submit(&of_last);
	reader_init_as(&r, hold_on, how);
	piom_cond_init(&got);
	r.got = &got;
	piom_ltask_submit(&r.task);
	CHECK_INT(pthread_create(&t, NULL, kick_while_held, &r), 0);
	piom_cond_wait(&got);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(piom_ltask_cancel(&of_last), 0);
	reader_end(&r);
}

TEST(what_the_watcher_may_not_run_wakes_who_may)
{
	static const struct mode modes[] = { { 4, "marcel", "auto", "20" } };

	setenv("PIOM_MODE", "interrupt", 1);
	setenv("PIOM_QUEUES", "machine", 1);
	WITH_ALL(modes, kick_of_the_last);
	unsetenv("PIOM_QUEUES");
	unsetenv("PIOM_MODE");
}

static ATOMIC(uint64_t) rounds_held, looks_held;

/* The timer wakes them once in its period, which is no shorter for anybody. */
enum { ROUNDS_A_LOOK = 8 };

static void *hold_a_while(void *arg)
{
	struct timespec while_ = { 0, 50000000 };
	uint64_t before, start;

	be_quiet(arg);
	feed(arg);
	while (!load_acquire(&inside))
		sched_yield();
	nanosleep(&while_, NULL);
	start = base_now_ns();
	before = piom_point_pthread_polls();
	nanosleep(&while_, NULL);
	store_relaxed(&rounds_held, piom_point_pthread_polls() - before);
	store_relaxed(&looks_held, (base_now_ns() - start) / piom.timer_ns + 1);
	store_release(&open_, 1);
	return arg;
}

static void hold_beside_pollers(void)
{
	struct piom_blocking how = { .delay_ns = 0 };
	struct reader r;
	piom_cond_t got;
	pthread_t t;

	store_relaxed(&inside, 0);
	store_relaxed(&open_, 0);
	reader_init_as(&r, hold_on, how);
	piom_cond_init(&got);
	r.got = &got;
	piom_ltask_submit(&r.task);
	CHECK_INT(pthread_create(&t, NULL, hold_a_while, &r), 0);
	piom_cond_wait(&got);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK(load_relaxed(&rounds_held) <=
	      ROUNDS_A_LOOK * load_relaxed(&looks_held));
	reader_end(&r);
}

TEST(what_the_watcher_holds_keeps_no_poller_awake)
{
	static const struct mode modes[] = { { 4, "pthread", "auto", "20" } };

	setenv("PIOM_MODE", "interrupt", 1);
	WITH_ALL(modes, hold_beside_pollers);
	unsetenv("PIOM_MODE");
}

/* --- cancel --- */

static void cancel_at_random(void)
{
	unsigned seed = (unsigned)check_random();

	for (int i = 0; i < ROUNDS / 3; i++) {
		struct reader *r = malloc(sizeof(*r));

		CHECK(r != NULL);
		reader_init(r, NULL);
		piom_ltask_submit(&r->task);
		wait_at_random(&seed);
		if (rand_r(&seed) % 2)
			feed(r);
		if (rand_r(&seed) % 2)
			marcel_yield();
		reader_end(r);
		memset(r, 0xee, sizeof(*r));
		free(r);
	}
}

TEST(after_a_cancel_nobody_knows_it_any_more)
{
	in_all_modes(cancel_at_random);
}

/* --- fork --- */

static void fork_beside_it(void)
{
	struct reader r;
	piom_cond_t got;
	char end;

	reader_init(&r, NULL);
	r.got = &got;
	piom_ltask_submit(&r.task);
	for (int i = 0; i < FORKS; i++) {
		int status, fd[2];
		pid_t child;

		CHECK_INT(pipe(fd), 0);
		child = fork();
		CHECK(child >= 0);
		if (child == 0)
			_exit(piom_exit() == -EINVAL ? 0 : 1);
		close(fd[1]);
		CHECK_INT(waitpid(child, &status, 0), child);
		CHECK_INT(status, 0);
		CHECK_INT(read(fd[0], &end, 1), 0);
		close(fd[0]);
		piom_cond_init(&got);
		feed(&r);
		piom_cond_wait(&got);
	}
	reader_end(&r);
}

TEST(a_child_of_fork_has_no_watcher_and_the_parent_keeps_its_own)
{
	in_all_modes(fork_beside_it);
}
