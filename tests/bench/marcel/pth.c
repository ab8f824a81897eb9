/*
 * The programs on GNU Pth, which runs on one CPU, and has no semaphores: a
 * counter under a lock.
 */
#include <pth.h>

#include "bench.h"

enum {
	RT_SLOW = 200,
	RT_MANY = 1000,
	RT_FIB = 12,
	RT_TREE = 20,
	RT_PREEMPTS = 0,
	RT_FOREIGN = 0,
	RT_FAVOURS = 0,
	RT_SECTIONS = 0,
	RT_PRIVATE = 0,
};

typedef pth_t rt_thread;
typedef pth_attr_t rt_attr;
typedef pth_mutex_t rt_mutex;
typedef pth_cond_t rt_cond;
typedef pth_barrier_t rt_barrier;

typedef struct {
	pth_mutex_t m;
	pth_cond_t c;
	long value;
} rt_sem;

static int or_errno(int ok)
{
	return ok ? 0 : errno;
}

static int rt_begin(void)
{
	return workers > 1 ? ENOTSUP : or_errno(pth_init());
}

static int rt_end(void)
{
	return or_errno(pth_kill());
}

static int rt_attr_init(rt_attr *a, size_t stack, int worker)
{
	if (worker >= 0)
		return ENOTSUP;
	*a = pth_attr_new();
	return or_errno(stack == 0 ||
			pth_attr_set(*a, PTH_ATTR_STACK_SIZE, stack));
}

static int rt_create(rt_thread *out, const rt_attr *a, void *(*fn)(void *),
		     void *arg)
{
	*out = pth_spawn(a != NULL ? *a : PTH_ATTR_DEFAULT, fn, arg);
	return or_errno(*out != NULL);
}

static int rt_join(rt_thread *t)
{
	return or_errno(pth_join(*t, NULL));
}

#define rt_yield()        pth_yield(NULL)
#define rt_sleep_ms(ms)   pth_usleep((ms)*1000)
#define rt_mutex_init(m)  or_errno(pth_mutex_init(m))
#define rt_mutex_lock(m)  pth_mutex_acquire(m, 0, NULL)
#define rt_mutex_unlock   pth_mutex_release
#define rt_cond_init(c)   or_errno(pth_cond_init(c))
#define rt_cond_signal(c) pth_cond_notify(c, 0)

#define rt_cond_wait(c, m)    pth_cond_await(c, m, NULL)
#define rt_barrier_init(b, n) or_errno(pth_barrier_init(b, (int)(n)))
#define rt_barrier_wait(b)    (pth_barrier_reach(b) == PTH_BARRIER_TAILLIGHT)

static int rt_sem_init(rt_sem *s)
{
	s->value = 0;
	return or_errno(pth_mutex_init(&s->m) && pth_cond_init(&s->c));
}

static void rt_sem_wait(rt_sem *s)
{
	pth_mutex_acquire(&s->m, 0, NULL);
	while (s->value == 0)
		pth_cond_await(&s->c, &s->m, NULL);
	s->value--;
	pth_mutex_release(&s->m);
}

static void rt_sem_post(rt_sem *s)
{
	pth_mutex_acquire(&s->m, 0, NULL);
	s->value++;
	pth_cond_notify(&s->c, 0);
	pth_mutex_release(&s->m);
}

#define rt_favour(ns)      ENOTSUP
#define rt_section_begin() ((void)0)
#define rt_section_end()   ((void)0)
#define rt_attr_private(a) ENOTSUP

#include "programs.h"
