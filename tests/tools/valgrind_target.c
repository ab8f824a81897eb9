/*
 * What tests/tools/valgrind.c runs: threads that wait, yield, end deep in their
 * stacks and begin on the stacks of others, more of them than are kept.
 */
#include <string.h>

#include <marcel/marcel.h>

enum { THREADS = 1500, ROUNDS = 2 };

static marcel_sem_t sem;
static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static long sum;

static __attribute__((noinline)) long deep(int depth)
{
	char frame[200];

	memset(frame, depth, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
	if (depth == 0) {
		marcel_sem_wait(&sem);
		return frame[0];
	}
	return deep(depth - 1) + frame[199];
}

static void *work(void *arg)
{
	long mine = deep((int)(long)arg % 20);

	marcel_mutex_lock(&mutex);
	sum += mine;
	marcel_yield();
	marcel_mutex_unlock(&mutex);
	if ((long)arg % 2)
		marcel_exit(arg);
	return arg;
}

int main(void)
{
	struct marcel_config config = { .nvp = 2 };
	static marcel_t t[THREADS];

	if (marcel_init(&config) != 0 || marcel_sem_init(&sem, 0, 0) != 0)
		return 1;
	for (int round = 0; round < ROUNDS; round++) {
		for (long i = 0; i < THREADS; i++)
			if (marcel_create(&t[i], NULL, work, (void *)i) != 0)
				return 2;
		for (int i = 0; i < THREADS; i++)
			marcel_sem_post(&sem);
		for (int i = 0; i < THREADS; i++)
			if (marcel_join(t[i], NULL) != 0)
				return 3;
	}
	return marcel_end() != 0 || sum == 0;
}
