/*
 * What tests/tools/gdb.c looks at: threads in every state, on one VP, and what
 * each kind of object has waiting for it. Stops in stop_here().
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <marcel/marcel.h>

enum { THREADS = 9 };

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
	    marcel_barrier_init(&barrier, NULL, 2) != 0)
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

int main(void)
{
	marcel_t t[THREADS];
	pthread_t foreign;
	int n = 0;

	prepare();
	waits_deep = start("the waiter", waiter);
	t[n++] = start("the locker", locker);
	t[n++] = start("the woken", woken);
	t[n++] = start("the joiner", joiner);
	t[n++] = start("the conditional", conditional);
	t[n++] = start("the reader", reader);
	t[n++] = start("the comer", comer);
	t[n++] = start("the listener", listener);
	t[n++] = start("the chooser", chooser);
	if (pthread_create(&foreign, NULL, foreigner, NULL) != 0)
		return 1;
	while (marcel_threads(waits_abroad, NULL) == 0) {
		marcel_yield();
		sched_yield();
	}
	for (int i = 0; i < 10; i++)
		marcel_yield();
	marcel_sem_post(&ready);
	t[n++] = start("the seed", seed);
	stop_here();
	release();
	for (int i = 0; i < n; i++)
		marcel_join(t[i], NULL);
	pthread_join(foreign, NULL);
	return marcel_end();
}
