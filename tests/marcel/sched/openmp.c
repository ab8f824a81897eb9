/*
 * Main waits in the kernel, in a barrier of OpenMP's that says so to nobody,
 * for what a thread has still to do that was interrupted on LWP 0.
 */
#include <omp.h>
#include <sched.h>

#include "../slice.h"

static marcel_sem_t begun;
static ATOMIC(int) region, done;

/* The tick finds it on LWP 0, while main is ready, which runs only there. */
static void *computes_in_between(void *arg)
{
	CHECK_INT(marcel_sem_post(&begun), 0);
	while (load_relaxed(&region) == 0)
		;
	store_relaxed(&done, 1);
	return arg;
}

static void needs_it(void)
{
	marcel_t t;

	store_relaxed(&region, 0);
	store_relaxed(&done, 0);
	CHECK_INT(marcel_sem_init(&begun, 0, 0), 0);
	t = start(computes_in_between, NULL);
	CHECK_INT(marcel_sem_wait(&begun), 0);
#pragma omp parallel num_threads(2)
	{
		CHECK_INT(omp_get_num_threads(), 2);
		if (omp_get_thread_num() == 1) {
			store_relaxed(&region, 1);
			while (load_relaxed(&done) == 0)
				sched_yield();
		}
	}
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(main_in_its_barrier_makes_way_on_1_vp)
{
	omp_set_dynamic(0);
	with_slice("1000", 1, needs_it);
	with_slice("1000", 1, needs_it);
}

TEST(main_in_its_barrier_makes_way_on_2_vps)
{
	with_slice("1000", 2, needs_it);
}
