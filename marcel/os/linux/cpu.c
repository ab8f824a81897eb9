/*
 * The CPU of a kernel thread.
 */
#include "../os.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../tls.h"

enum { CPUS_MAX = 16384 };

int os_cpu_count(void)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t bytes = CPU_ALLOC_SIZE(CPUS_MAX);
	int n = 0;

	if (set != NULL && sched_getaffinity(0, bytes, set) == 0)
		n = CPU_COUNT_S(bytes, set);
	CPU_FREE(set);
	return n > 0 ? n : 1;
}

/* In the handler of the tick, too: nothing is allocated. */
int os_cpu_set(int cpu)
{
	size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
	cpu_set_t *set = __builtin_alloca(bytes);

	CPU_ZERO_S(bytes, set);
	CPU_SET_S((size_t)cpu, bytes, set);
	return sched_setaffinity(0, bytes, set) < 0 ? -errno : 0;
}

/* Of our own that have been made and have not ended. a: relaxed */
static ATOMIC(unsigned) own;

/* Of these, that have not begun. a: relaxed */
static ATOMIC(unsigned) beginning;

struct start {
	void *(*fn)(void *);
	void *arg;
};

static void *run_own(void *arg)
{
	struct start s = *(struct start *)arg;
	void *result;

	free(arg);
	fetch_sub_relaxed(&beginning, 1);
	result = s.fn(s.arg);
	fetch_sub_relaxed(&own, 1);
	return result;
}

/* In the runtime: nobody may switch here for the child's sake. */
BASE_NOINLINE int os_thread_create(pthread_t *out, void *(*fn)(void *),
				   void *arg)
{
	struct start *s = malloc(sizeof(*s));
	int rc;

	if (s == NULL)
		return EAGAIN;
	s->fn = fn;
	s->arg = arg;
	marcel_tls.makes_own = true;
	fetch_add_relaxed(&own, 1);
	fetch_add_relaxed(&beginning, 1);
	rc = pthread_create(out, NULL, run_own, s);
	marcel_tls.makes_own = false;
	if (rc == 0)
		return 0;
	fetch_sub_relaxed(&own, 1);
	fetch_sub_relaxed(&beginning, 1);
	free(s);
	return rc;
}

unsigned os_threads_own(void)
{
	return load_relaxed(&own);
}

void os_threads_await(void)
{
	/* A handler that forks inside os_thread_create() does not wait. */
	while (load_relaxed(&beginning) != 0 && !marcel_tls.makes_own)
		sched_yield();
}

void os_threads_forked(void)
{
	store_relaxed(&own, 0);
	store_relaxed(&beginning, 0);
}

bool os_thread_ordinary(pid_t tid)
{
	struct sched_param none = { 0 };

	return sched_setscheduler(tid, SCHED_OTHER, &none) == 0;
}

static void *lower_and_raise(void *arg)
{
	os_thread_lowest();
	return os_thread_ordinary(0) ? arg : NULL;
}

bool os_thread_may_lower(void)
{
	static char yes;
	pthread_t thread;
	void *may = NULL;

	if (os_thread_create(&thread, lower_and_raise, &yes) == 0)
		pthread_join(thread, &may);
	return may != NULL;
}

void os_thread_lowest(void)
{
	struct sched_param none = { 0 };

	if (sched_setscheduler(0, SCHED_IDLE, &none) < 0)
		setpriority(PRIO_PROCESS, 0, 19);
}
