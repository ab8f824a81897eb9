/*
 * What tests/tools/gdb.c looks at: threads in every state, on one VP, and what
 * each kind of object has waiting for it. Stops in stop_here(); "crash": a
 * thread dies there.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <marcel/marcel.h>

#include "../named.h"

enum { THREADS = 10 };

static marcel_sem_t sem, ready, abroad;
static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static marcel_mutex_t outer = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t cond = MARCEL_COND_INITIALIZER;
static marcel_rwlock_t rwlock = MARCEL_RWLOCK_INITIALIZER;
static marcel_barrier_t barrier;
static marcel_event_t event, several[2];
static marcel_t waits_deep;

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

/* gdb is to see several frames where there is one. */
static inline __attribute__((always_inline)) void crash(volatile int *at)
{
	*at = 43;
}

static void *crasher(void *arg)
{
	crash(arg);
	return arg;
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

static void *joiner(void *arg)
{
	marcel_join(waits_deep, NULL);
	return arg;
}

static void *conditional(void *arg)
{
	marcel_mutex_lock(&outer);
	marcel_cond_wait(&cond, &outer);
	marcel_mutex_unlock(&outer);
	return arg;
}

static void *reader(void *arg)
{
	marcel_rwlock_rdlock(&rwlock);
	marcel_rwlock_unlock(&rwlock);
	return arg;
}

static void *comer(void *arg)
{
	marcel_barrier_wait(&barrier);
	return arg;
}

static void *listener(void *arg)
{
	marcel_event_wait(&event);
	return arg;
}

static void *chooser(void *arg)
{
	marcel_event_t *const events[] = { &several[0], &several[1] };

	marcel_event_wait_any(events, 2);
	return arg;
}

static void *foreigner(void *arg)
{
	marcel_sem_wait(&abroad);
	return arg;
}

static int waits_abroad(const struct marcel_info *info, void *arg)
{
	(void)arg;
	return info->kind == MARCEL_KIND_FOREIGN &&
	       info->state == MARCEL_STATE_WAITING;
}

static void prepare(void)
{
	struct marcel_config config = { .nvp = 1 };

	setenv("MARCEL_TIMESLICE_US", "0", 1); /* they stay as they are */
	if (marcel_init(&config) != 0 || marcel_sem_init(&sem, 0, 0) != 0 ||
	    marcel_sem_init(&ready, 0, 0) != 0 ||
	    marcel_sem_init(&abroad, 0, 0) != 0 ||
	    marcel_barrier_init(&barrier, NULL, 3) != 0)
		__builtin_trap();
	marcel_mutex_lock(&mutex);
	marcel_rwlock_wrlock(&rwlock);
}

static void release(void)
{
	marcel_mutex_unlock(&mutex);
	marcel_sem_post(&sem);
	marcel_rwlock_unlock(&rwlock);
	marcel_mutex_lock(&outer);
	marcel_cond_signal(&cond);
	marcel_mutex_unlock(&outer);
	marcel_barrier_wait(&barrier);
	marcel_event_set(&event);
	marcel_event_set(&several[1]);
	marcel_sem_post(&abroad);
}

int main(int argc, char **argv)
{
	(void)argv;
	marcel_t t[THREADS];
	pthread_t foreign;
	int n = 0;

	prepare();
	waits_deep = start("the waiter", waiter, NULL);
	t[n++] = start("the locker", locker, NULL);
	t[n++] = start("the woken", woken, NULL);
	t[n++] = start("the joiner", joiner, NULL);
	t[n++] = start("the conditional", conditional, NULL);
	t[n++] = start("the reader", reader, NULL);
	t[n++] = start("the comer", comer, NULL);
	t[n++] = start("the comer", comer, NULL);
	t[n++] = start("the listener", listener, NULL);
	t[n++] = start("the chooser", chooser, NULL);
	if (pthread_create(&foreign, NULL, foreigner, NULL) != 0)
		return 1;
	while (marcel_threads(waits_abroad, NULL) == 0) {
		marcel_yield();
		sched_yield();
	}
	for (int i = 0; i < 10; i++)
		marcel_yield();
	marcel_sem_post(&ready);
	t[n++] = start("the seed", seed, NULL);
	if (argc > 1)
		marcel_join(start("the crasher", crasher, NULL), NULL);
	stop_here();
	release();
	for (int i = 0; i < n; i++)
		marcel_join(t[i], NULL);
	pthread_join(foreign, NULL);
	return marcel_end();
}
