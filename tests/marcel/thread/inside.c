/*
 * Inside the runtime nothing is allocated from libc: the holder of the lock of
 * its allocator may have been preempted, and wait for the VP of who asks.
 */
#include <base/atomic.h>
#include "../with.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static ATOMIC(int) allocations;

BASE_PUBLIC void *malloc(size_t bytes)
{
	fetch_add_relaxed(&allocations, 1);
	return __libc_malloc(bytes);
}

BASE_PUBLIC void *calloc(size_t n, size_t bytes)
{
	fetch_add_relaxed(&allocations, 1);
	return __libc_calloc(n, bytes);
}

BASE_PUBLIC void *aligned_alloc(size_t align, size_t bytes)
{
	fetch_add_relaxed(&allocations, 1);
	return __libc_memalign(align, bytes);
}

enum { THREADS = 3000 }; /* several slabs of descriptors, many arenas */

static marcel_event_t all_run;
static ATOMIC(int) running;

static void *wait_for_all(void *arg)
{
	if (fetch_add_relaxed(&running, 1) == THREADS - 1)
		marcel_event_set(&all_run);
	marcel_barrier_wait(arg);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

/* All VPs run, on kernel threads that have what they need. */
static void visit_vps(void)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	for (int vp = 0; vp < marcel_nvp(); vp++) {
		CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
		CHECK_INT(marcel_create(&t, &attr, nothing, NULL), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
}

static void make_many(void)
{
	static marcel_t t[THREADS];
	marcel_barrier_t together;
	int before;

	all_run = (marcel_event_t){ 0 };
	store_relaxed(&running, 0);
	CHECK_INT(marcel_barrier_init(&together, NULL, THREADS + 1), 0);
	visit_vps();
	before = load_relaxed(&allocations);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, wait_for_all, &together),
			  0);
	marcel_event_wait(&all_run);
	marcel_barrier_wait(&together);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&allocations), before);
	CHECK_INT(marcel_barrier_destroy(&together), 0);
}

/* Without a monitor, which makes kernel threads. */
TEST(descriptors_and_stacks_are_not_from_libc_on_1_vp)
{
	without_ticks_on(1, make_many);
}

TEST(descriptors_and_stacks_are_not_from_libc_on_4_vps)
{
	without_ticks_on(4, make_many);
}
