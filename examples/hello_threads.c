/*
 * marcel: ten thousand threads, of which each is as cheap as a function call
 * and as comfortable as a pthread. They meet in a mutex.
 */
#include <marcel/marcel.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 10000 };

static marcel_mutex_t lock = MARCEL_MUTEX_INITIALIZER;
static long sum;

static void *hello(void *arg)
{
	long number = (long)arg;

	if (number % 2500 == 0)
		printf("thread %ld runs on VP %d of %d\n", number,
		       marcel_current_vp(), marcel_nvp());
	marcel_mutex_lock(&lock);
	sum += number;
	marcel_mutex_unlock(&lock);
	return (void *)(number * number);
}

int main(void)
{
	static marcel_t threads[THREADS];
	void *square;

	if (marcel_init(NULL) != 0)
		return 1;
	for (long i = 0; i < THREADS; i++)
		if (marcel_create(&threads[i], NULL, hello, (void *)i) != 0)
			return 1;
	for (long i = 0; i < THREADS; i++) {
		marcel_join(threads[i], &square);
		if ((long)square != i * i)
			return 1;
	}
	printf("sum %ld\n", sum);
	marcel_end();
	return sum != (long)THREADS * (THREADS - 1) / 2;
}
