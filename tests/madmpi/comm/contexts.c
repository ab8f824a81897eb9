/*
 * A thousand user threads make a communicator each, then kernel threads do,
 * then both at once.
 */
#include "contexts.h"

#include <pthread.h>

enum { USER = 1000 / FEWER, KERNEL = 64, MAKERS = USER + KERNEL };

static struct maker maker[MAKERS];

static void start_user(marcel_t *t, struct maker *m)
{
	EXPECT_INT(marcel_create(t, NULL, makers_work, m), 0);
}

static void start_kernel(pthread_t *t, struct maker *m)
{
	EXPECT_INT(pthread_create(t, NULL, makers_work, m), 0);
}

/* The first makers are user threads, the others kernel threads. */
static void all_at_once(int user, int kernel)
{
	static marcel_t u[USER];
	static pthread_t k[KERNEL];
	marcel_barrier_t ready;
	marcel_sem_t done;

	marcel_barrier_init(&ready, NULL, (unsigned)(user + kernel));
	marcel_sem_init(&done, 0, 0);
	makers_init(maker, user + kernel, &ready, &done);
	for (int n = 0; n < user + kernel; n++) {
		int i = maker_at(n, user + kernel);

		if (i < user)
			start_user(&u[i], &maker[i]);
		else
			start_kernel(&k[i - user], &maker[i]);
	}
	/* Not in pthread_join(), which keeps the VP where there are no ticks.
	 */
	for (int i = 0; i < user + kernel; i++)
		marcel_sem_wait(&done);
	for (int i = 0; i < user; i++)
		EXPECT_INT(marcel_join(u[i], NULL), 0);
	for (int i = 0; i < kernel; i++)
		EXPECT_INT(pthread_join(k[i], NULL), 0);
	marcel_sem_destroy(&done);
	marcel_barrier_destroy(&ready);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	all_at_once(USER, 0);
	all_at_once(0, KERNEL);
	all_at_once(USER, KERNEL);
	return program_end("contexts");
}
