/*
 * What tests/tools/gdb.c looks at: threads in every state, on one VP. Stops in
 * stop_here().
 */
#include <stdlib.h>

#include <marcel/marcel.h>

static marcel_sem_t sem, ready;
static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;

void stop_here(void);

__attribute__((noinline)) void stop_here(void)
{
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void wait_deep(int depth)
{
	volatile int answer = 40 + depth;

	if (depth < 2)
		wait_deep(depth + 1);
	else
		marcel_sem_wait(&sem);
	answer++;
}

static void *waiter(void *arg)
{
	wait_deep(0);
	return arg;
}

static void *locker(void *arg)
{
	marcel_mutex_lock(&mutex);
	marcel_mutex_unlock(&mutex);
	return arg;
}

static void *woken(void *arg)
{
	marcel_sem_wait(&ready);
	return arg;
}

static void *seed(void *arg)
{
	return arg;
}

static marcel_t start(const char *name, void *(*fn)(void *))
{
	marcel_attr_t attr;
	marcel_t t;

	if (marcel_attr_init(&attr) != 0 ||
	    marcel_attr_setname(&attr, name) != 0 ||
	    marcel_create(&t, &attr, fn, NULL) != 0)
		__builtin_trap();
	return t;
}

int main(void)
{
	struct marcel_config config = { .nvp = 1 };
	marcel_t t[4];

	setenv("MARCEL_TIMESLICE_US", "0", 1); /* they stay as they are */
	if (marcel_init(&config) != 0 || marcel_sem_init(&sem, 0, 0) != 0 ||
	    marcel_sem_init(&ready, 0, 0) != 0)
		return 1;
	marcel_mutex_lock(&mutex);
	t[0] = start("the waiter", waiter);
	t[1] = start("the locker", locker);
	t[2] = start("the woken", woken);
	for (int i = 0; i < 10; i++)
		marcel_yield();
	marcel_sem_post(&ready);
	t[3] = start("the seed", seed);
	stop_here();
	marcel_mutex_unlock(&mutex);
	marcel_sem_post(&sem);
	for (int i = 0; i < 4; i++)
		marcel_join(t[i], NULL);
	return marcel_end();
}
