/* The programs on glibc's threads. */
#include <pthread.h>
#include <semaphore.h>

#include "bench.h"

enum {
	RT_SLOW = 50,
	RT_MANY = 10000,
	RT_FIB = 15,
	RT_TREE = 40,
	RT_PREEMPTS = 1,
	RT_FOREIGN = 1,
	RT_FAVOURS = 0,
	RT_SECTIONS = 0,
	RT_PRIVATE = 0,
};

typedef pthread_t rt_thread;
typedef pthread_attr_t rt_attr;
typedef pthread_mutex_t rt_mutex;
typedef pthread_cond_t rt_cond;
typedef sem_t rt_sem;
typedef pthread_barrier_t rt_barrier;

static int rt_begin(void)
{
	return 0;
}

static int rt_end(void)
{
	return 0;
}

static int rt_attr_init(rt_attr *a, size_t stack, int worker)
{
	int err = pthread_attr_init(a), nth = 0;
	cpu_set_t one;

	if (err == 0 && stack != 0)
		err = pthread_attr_setstacksize(a, stack);
	if (err != 0 || worker < 0)
		return err;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all_cpus) && nth++ == worker)
			CPU_SET(cpu, &one);
	return pthread_attr_setaffinity_np(a, sizeof(one), &one);
}

#define rt_create        pthread_create
#define rt_join(t)       pthread_join(*(t), NULL)
#define rt_yield         sched_yield
#define rt_sleep_ms(ms)  usleep((ms)*1000)
#define rt_mutex_init(m) pthread_mutex_init(m, NULL)
#define rt_mutex_lock    pthread_mutex_lock
#define rt_mutex_unlock  pthread_mutex_unlock
#define rt_cond_init(c)  pthread_cond_init(c, NULL)
#define rt_cond_wait     pthread_cond_wait
#define rt_cond_signal   pthread_cond_signal
#define rt_sem_init(s)   sem_init(s, 0, 0)
#define rt_sem_wait      sem_wait
#define rt_sem_post      sem_post

#define rt_barrier_init(b, n) pthread_barrier_init(b, NULL, n)
#define rt_barrier_wait(b)    (pthread_barrier_wait(b) != 0)

#define rt_favour(ns)      ENOTSUP
#define rt_section_begin() ((void)0)
#define rt_section_end()   ((void)0)
#define rt_attr_private(a) ENOTSUP

#include "programs.h"
