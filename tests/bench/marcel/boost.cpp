/*
 * The programs on Boost.Fiber: round robin on one CPU, its work stealing on
 * several, where idle workers sleep. A channel is what it has for a semaphore.
 */
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/fiber/all.hpp>

#include "bench.h"

namespace fibers = boost::fibers;

enum {
	RT_SLOW = 5,
	RT_MANY = 50000,
	RT_FIB = 20,
	RT_TREE = 200,
	RT_PREEMPTS = 0,
	RT_FOREIGN = 1,
	RT_FAVOURS = 0,
	RT_SECTIONS = 0,
	RT_PRIVATE = 0,
};

typedef fibers::fiber rt_thread;
typedef fibers::mutex rt_mutex;
typedef fibers::condition_variable_any rt_cond;
typedef std::unique_ptr<fibers::barrier> rt_barrier;
typedef std::unique_ptr<fibers::buffered_channel<int>> rt_sem;

struct rt_attr {
	size_t stack;
};

/* Until all workers are there, and until the last program has ended. */
static struct {
	std::mutex lock;
	std::condition_variable changed;
	int ready;
	fibers::mutex end_lock;
	fibers::condition_variable end_changed;
	bool end;
	std::vector<std::thread> others;
} crew;

static void be_worker()
{
	fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(
		(uint32_t)workers, true);
	std::unique_lock<std::mutex> held(crew.lock);
	crew.ready++;
	crew.changed.notify_all();
	crew.changed.wait(held, [] { return crew.ready == workers; });
}

static void work()
{
	be_worker();
	std::unique_lock<fibers::mutex> held(crew.end_lock);
	crew.end_changed.wait(held, [] { return crew.end; });
}

static int rt_begin()
{
	if (workers == 1)
		return 0;
	for (int i = 1; i < workers; i++)
		crew.others.emplace_back(work);
	be_worker();
	return 0;
}

static int rt_end()
{
	{
		std::unique_lock<fibers::mutex> held(crew.end_lock);
		crew.end = true;
	}
	crew.end_changed.notify_all();
	for (auto &t : crew.others)
		t.join();
	return 0;
}

static int rt_attr_init(rt_attr *a, size_t stack, int worker)
{
	a->stack = stack;
	return worker >= 0 ? ENOTSUP : 0;
}

static int rt_create(rt_thread *out, const rt_attr *a, void *(*fn)(void *),
		     void *arg)
{
	if (a == NULL || a->stack == 0)
		*out = fibers::fiber(fn, arg);
	else
		*out = fibers::fiber(std::allocator_arg,
				     fibers::fixedsize_stack(a->stack), fn,
				     arg);
	return 0;
}

static int rt_join(rt_thread *t)
{
	t->join();
	return 0;
}

static void rt_yield()
{
	boost::this_fiber::yield();
}

static void rt_sleep_ms(int ms)
{
	boost::this_fiber::sleep_for(std::chrono::milliseconds(ms));
}

static int rt_mutex_init(rt_mutex *)
{
	return 0;
}

static int rt_cond_init(rt_cond *)
{
	return 0;
}

#define rt_mutex_lock(m)   (m)->lock()
#define rt_mutex_unlock(m) (m)->unlock()
#define rt_cond_wait(c, m) (c)->wait(*(m))
#define rt_cond_signal(c)  (c)->notify_one()

static int rt_barrier_init(rt_barrier *b, unsigned n)
{
	b->reset(new fibers::barrier(n));
	return 0;
}

static bool rt_barrier_wait(rt_barrier *b)
{
	return (*b)->wait();
}

static int rt_sem_init(rt_sem *s)
{
	s->reset(new fibers::buffered_channel<int>(1024));
	return 0;
}

static void rt_sem_wait(rt_sem *s)
{
	int token;

	(*s)->pop(token);
}

static void rt_sem_post(rt_sem *s)
{
	(*s)->push(1);
}

#define rt_favour(ns)      ENOTSUP
#define rt_section_begin() ((void)0)
#define rt_section_end()   ((void)0)
#define rt_attr_private(a) ENOTSUP

#include "programs.h"
