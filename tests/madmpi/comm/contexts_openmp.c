/*
 * The threads of an OpenMP team make a communicator each, beside user threads.
 */
#include "contexts.h"

#include <omp.h>

enum { USER = 64, TEAM = 64, MAKERS = USER + TEAM };

int main(int argc, char **argv)
{
	static struct maker maker[MAKERS];
	static marcel_t u[USER];
	marcel_barrier_t ready;
	marcel_sem_t done;

	program_begin(&argc, &argv);
	marcel_barrier_init(&ready, NULL, MAKERS);
	marcel_sem_init(&done, 0, 0);
	makers_init(maker, MAKERS, &ready, &done);
	for (int n = 0; n < USER; n++) {
		int i = maker_at(n, USER);

		EXPECT_INT(marcel_create(&u[i], NULL, makers_work, &maker[i]),
			   0);
	}
#pragma omp parallel num_threads(TEAM)
	{
		EXPECT_INT(omp_get_num_threads(), TEAM);
		makers_work(
			&maker[USER + maker_at(omp_get_thread_num(), TEAM)]);
	}
	for (int i = 0; i < USER; i++)
		EXPECT_INT(marcel_join(u[i], NULL), 0);
	marcel_sem_destroy(&done);
	marcel_barrier_destroy(&ready);
	return program_end("contexts_openmp");
}
