/*
 * The threads of an OpenMP team beside user threads.
 */
#include "kinds.h"

#include <omp.h>

enum { USER = 8, TEAM = 8 };

int main(int argc, char **argv)
{
	struct talker t[USER + TEAM];
	marcel_t user[USER];

	program_begin(&argc, &argv);
	talkers_init(t, USER + TEAM);
	for (int i = 0; i < USER; i++)
		EXPECT_INT(marcel_create(&user[i], NULL, talk, &t[i]), 0);
#pragma omp parallel num_threads(TEAM + 1)
	{
		int n = omp_get_thread_num();

		EXPECT_INT(omp_get_num_threads(), TEAM + 1);
		/* The first one is main. */
		if (n > 0)
			talk(&t[USER + n - 1]);
		else
			ask_about_threads(1);
	}
	for (int i = 0; i < USER; i++)
		EXPECT_INT(marcel_join(user[i], NULL), 0);
	talkers_exit(t, USER + TEAM);
	return program_end("kinds_openmp");
}
