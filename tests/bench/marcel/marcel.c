/* The programs on marcel. */
#include <marcel/marcel.h>
#include "bench.h"

enum {
	RT_SLOW = 1,
	RT_MANY = 200000,
	RT_FIB = 27,
	RT_TREE = 4000,
	RT_PREEMPTS = 1,
	RT_FOREIGN = 1,
	RT_FAVOURS = 1,
	RT_SECTIONS = 1,
	RT_PRIVATE = 1,
};

typedef marcel_t rt_thread;
typedef marcel_attr_t rt_attr;
typedef marcel_mutex_t rt_mutex;
typedef marcel_cond_t rt_cond;
typedef marcel_sem_t rt_sem;
typedef marcel_barrier_t rt_barrier;

static int rt_begin(void)
{
	return marcel_init(&(struct marcel_config){ .nvp = workers });
}

static int rt_end(void)
{
	return marcel_end();
}

static int rt_attr_init(rt_attr *a, size_t stack, int worker)
{
	int err = marcel_attr_init(a);

	if (err == 0 && stack != 0)
		err = marcel_attr_setstacksize(a, stack);
	if (err == 0 && worker >= 0)
		err = marcel_attr_setvp(a, worker);
	return err;
}

#define rt_create        marcel_create
#define rt_join(t)       marcel_join(*(t), NULL)
#define rt_yield         marcel_yield
#define rt_sleep_ms(ms)  marcel_usleep((ms)*1000)
#define rt_mutex_init(m) marcel_mutex_init(m, NULL)
#define rt_mutex_lock    marcel_mutex_lock
#define rt_mutex_unlock  marcel_mutex_unlock
#define rt_cond_init(c)  marcel_cond_init(c, NULL)
#define rt_cond_wait     marcel_cond_wait
#define rt_cond_signal   marcel_cond_signal
#define rt_sem_init(s)   marcel_sem_init(s, 0, 0)
#define rt_sem_wait      marcel_sem_wait
#define rt_sem_post      marcel_sem_post

#define rt_barrier_init(b, n) marcel_barrier_init(b, NULL, n)
/* True in one of them. */
#define rt_barrier_wait(b)    (marcel_barrier_wait(b) != 0)

/* The calling thread, for so long from now. */
#define rt_favour(ns)      marcel_favour(marcel_self(), ns)
#define rt_section_begin   marcel_blocking_begin
#define rt_section_end     marcel_blocking_end
#define rt_attr_private(a) marcel_attr_setprivatetls(a, 1)

#include "programs.h"
