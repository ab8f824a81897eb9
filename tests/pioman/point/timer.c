/*
 * pioman/point/timer with engine marcel: with a bound on reaction, what wants
 * to be polled is, though every VP computes, no slice ends, nothing interrupts
 * and nobody else polls.
 */
#include "../with.h"

#include <dlfcn.h>

static ATOMIC(int) over, computing;

static void *compute(void *arg)
{
	fetch_add_relaxed(&computing, 1);
	while (!load_relaxed(&over))
		;
	return arg;
}

static enum piom_ltask_result end_it(void *arg)
{
	(void)arg;
	/* Of those that computed from the beginning. */
	if (load_relaxed(&computing) < marcel_nvp())
		return PIOM_LTASK_AGAIN;
	store_relaxed(&over, 1);
	return PIOM_LTASK_DONE;
}

/* On each VP but the caller's; and then there. */
static void all_compute(void)
{
	marcel_t others[8];

	for (int i = 1; i < marcel_nvp(); i++)
		CHECK_INT(marcel_create(&others[i], NULL, compute, NULL), 0);
	compute(NULL);
	for (int i = 1; i < marcel_nvp(); i++)
		CHECK_INT(marcel_join(others[i], NULL), 0);
}

static void forget(void)
{
	store_relaxed(&over, 0);
	store_relaxed(&computing, 0);
}

static void bounded(void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", "0", 1);
	setenv("PIOM_MODE", "poll", 1);
	setenv("PIOM_REACTION_US", "500", 1);
	WITH_ALL(engine_marcel, body);
	unsetenv("PIOM_REACTION_US");
	unsetenv("PIOM_MODE");
	unsetenv("MARCEL_TIMESLICE_US");
}

static void submit_and_compute(void)
{
	struct piom_ltask t;

	forget();
	piom_ltask_init(&t, end_it, NULL, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&t);
	all_compute();
	piom_ltask_wait(&t);
}

TEST(what_is_submitted_before_all_compute_is_polled)
{
	bounded(submit_and_compute);
}

/* The timer runs the queue of one VP as that VP. */
static void submit_for_one(void)
{
	marcel_vpset_t set = { { 0 } };
	struct piom_ltask t;

	forget();
	marcel_vpset_add(&set, marcel_nvp() - 1);
	piom_ltask_init(&t, end_it, NULL, PIOM_LTASK_REPEAT, &set);
	piom_ltask_submit(&t);
	all_compute();
	piom_ltask_wait(&t);
}

TEST(so_is_what_one_vp_only_may_run)
{
	setenv("PIOM_QUEUES", "tree", 1); /* it has a queue of its own */
	bounded(submit_for_one);
	unsetenv("PIOM_QUEUES");
}

static struct piom_ltask late;

static void *submit_late(void *arg)
{
	while (load_relaxed(&computing) < marcel_nvp())
		sched_yield();
	piom_ltask_submit(&late);
	return arg;
}

static void compute_and_submit(void)
{
	pthread_t p;

	forget();
	piom_ltask_init(&late, end_it, NULL, PIOM_LTASK_REPEAT, NULL);
	CHECK_INT(pthread_create(&p, NULL, submit_late, NULL), 0);
	all_compute();
	CHECK_INT(pthread_join(p, NULL), 0);
	piom_ltask_wait(&late);
}

TEST(what_is_submitted_while_all_compute_is_polled)
{
	bounded(compute_and_submit);
}

/* --- there is a timer if it is wanted, and it sleeps if nothing is --- */

static ATOMIC(int) made; /* kernel threads, by pioman */

/* Instead of marcel's, which it calls. */
int marcel_kernel_thread(pthread_t *out, void *(*fn)(void *), void *arg)
{
	int (*marcels)(pthread_t *, void *(*)(void *), void *);

	*(void **)&marcels = dlsym(RTLD_NEXT, "marcel_kernel_thread");
	fetch_add_relaxed(&made, 1);
	return marcels(out, fn, arg);
}

static void nothing(void)
{
}

static int made_with(const char *reaction_us)
{
	static const struct mode one = { 1, "marcel", "auto", "20" };

	setenv("PIOM_REACTION_US", reaction_us, 1);
	store_relaxed(&made, 0);
	with_mode(&one, nothing);
	unsetenv("PIOM_REACTION_US");
	return load_relaxed(&made);
}

TEST(without_a_bound_there_is_no_timer)
{
	setenv("PIOM_MODE", "poll", 1);
	CHECK_INT(made_with("none"), 0);
	CHECK_INT(made_with("500"), 1);
	unsetenv("PIOM_MODE");
}
