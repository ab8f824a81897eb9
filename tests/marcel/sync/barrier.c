/* sync/barrier.c */
#include <string.h>

#include "crowd.h"

#include <errno.h>

struct rounds {
	marcel_barrier_t b;
	int size;
	int round[CROWD_MAX]; /* plain: the barrier gives the order */
	ATOMIC(int) serials;
};

static void go_round(void *arg, int i)
{
	struct rounds *r = arg;

	for (int n = 1; n <= ROUNDS; n++) {
		int got;

		r->round[i] = n;
		got = marcel_barrier_wait(&r->b);
		if (got == MARCEL_BARRIER_SERIAL_THREAD)
			fetch_add_relaxed(&r->serials, 1);
		else
			CHECK_INT(got, 0);
		for (int k = 0; k < r->size; k++)
			CHECK_INT(r->round[k], n);
		/* Nobody writes its next round before all have looked. */
		got = marcel_barrier_wait(&r->b);
		CHECK(got == 0 || got == MARCEL_BARRIER_SERIAL_THREAD);
	}
}

TEST(nobody_passes_before_all_have_come_and_one_is_serial)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct rounds r = { .size = crowd_size(&crowds[c]) };

		CHECK_INT(marcel_barrier_init(&r.b, NULL, r.size), 0);
		crowd_run(&crowds[c], go_round, &r);
		CHECK_INT(load_relaxed(&r.serials), ROUNDS);
		CHECK_INT(marcel_barrier_destroy(&r.b), 0);
	}
}

/* A barrier a round; the serial thread unmaps it at once. */
struct pages {
	marcel_barrier_t *page[ROUNDS];
};

static void unmap_if_serial(void *arg, int i)
{
	struct pages *p = arg;

	for (int n = 0; n < ROUNDS; n++)
		if (marcel_barrier_wait(p->page[n]) ==
		    MARCEL_BARRIER_SERIAL_THREAD) {
			CHECK_INT(marcel_barrier_destroy(p->page[n]), 0);
			page_free(p->page[n]);
		}
}

TEST(the_serial_thread_may_unmap_it_at_once)
{
	static struct pages p;

	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		for (int n = 0; n < ROUNDS; n++) {
			p.page[n] = page_new();
			marcel_barrier_init(p.page[n], NULL,
					    crowd_size(&crowds[c]));
		}
		crowd_run(&crowds[c], unmap_if_serial, &p);
	}
}

/* Who comes has drawn a ticket; nobody is left alone, as they are even. */
struct pairs {
	marcel_barrier_t b;
	ATOMIC(int) tickets, serials;
};

static void pair_up(void *arg, int i)
{
	struct pairs *p = arg;

	while (fetch_add_relaxed(&p->tickets, 1) < 4 * ROUNDS)
		if (marcel_barrier_wait(&p->b) == MARCEL_BARRIER_SERIAL_THREAD)
			fetch_add_relaxed(&p->serials, 1);
}

TEST(more_threads_than_its_number_pass_in_rounds_of_that_number)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		struct pairs p = { .tickets = ATOMIC_INIT(0) };

		CHECK_INT(marcel_barrier_init(&p.b, NULL, 2), 0);
		crowd_run(&crowds[c], pair_up, &p);
		CHECK_INT(load_relaxed(&p.serials), 2 * ROUNDS);
		CHECK_INT(marcel_barrier_destroy(&p.b), 0);
	}
}

/* More than are woken at once, of every kind. */
enum { KINDS = 4, OF_ALL_KINDS = 150, KERNEL = 6 };

static struct {
	marcel_barrier_t b;
	int came[OF_ALL_KINDS + KERNEL]; /* plain: the barrier orders */
} mixed;

static void *come(void *arg)
{
	*(int *)arg = 1;
	marcel_barrier_wait(&mixed.b);
	for (int i = 0; i < OF_ALL_KINDS + KERNEL; i++)
		CHECK_INT(mixed.came[i], 1);
	return NULL;
}

static void make_kind(marcel_t *out, int i)
{
	marcel_attr_t a;
	int priority[KINDS] = { MARCEL_PRIORITY_NORMAL, MARCEL_PRIORITY_NORMAL,
				MARCEL_PRIORITY_REALTIME,
				MARCEL_PRIORITY_IDLE };

	CHECK_INT(marcel_attr_init(&a), 0);
	CHECK_INT(marcel_attr_setpriority(&a, priority[i % KINDS]), 0);
	if (i % KINDS == 1)
		CHECK_INT(marcel_attr_setvp(&a, i % marcel_nvp()), 0);
	CHECK_INT(marcel_create(out, &a, come, &mixed.came[i]), 0);
	CHECK_INT(marcel_attr_destroy(&a), 0);
}

TEST_VPS(threads_of_all_kinds_are_let_go)
{
	marcel_t t[OF_ALL_KINDS];
	pthread_t p[KERNEL];

	memset(&mixed, 0, sizeof(mixed));
	CHECK_INT(marcel_barrier_init(&mixed.b, NULL, OF_ALL_KINDS + KERNEL),
		  0);
	for (int i = 0; i < OF_ALL_KINDS; i++)
		make_kind(&t[i], i);
	for (int i = 0; i < KERNEL; i++)
		CHECK_INT(pthread_create(&p[i], NULL, come,
					 &mixed.came[OF_ALL_KINDS + i]),
			  0);
	for (int i = 0; i < OF_ALL_KINDS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	for (int i = 0; i < KERNEL; i++)
		CHECK_INT(pthread_join(p[i], NULL), 0);
	CHECK_INT(marcel_barrier_destroy(&mixed.b), 0);
}

TEST(a_barrier_of_one_never_waits)
{
	marcel_barrier_t b;

	CHECK_INT(marcel_barrier_init(&b, NULL, 1), 0);
	for (int n = 0; n < 3; n++)
		CHECK_INT(marcel_barrier_wait(&b),
			  MARCEL_BARRIER_SERIAL_THREAD);
	CHECK_INT(marcel_barrier_destroy(&b), 0);
}

static void *wait_once(void *arg)
{
	CHECK_INT(marcel_barrier_wait(arg), 0);
	return NULL;
}

TEST(a_barrier_with_waiters_is_busy)
{
	marcel_barrier_t b;
	marcel_t t;

	CHECK_INT(marcel_barrier_init(&b, NULL, 2), 0);
	vps_start(1);
	CHECK_INT(marcel_create(&t, NULL, wait_once, &b), 0);
	while (marcel_barrier_destroy(&b) == 0)
		marcel_yield();
	CHECK_INT(marcel_barrier_destroy(&b), EBUSY);
	CHECK_INT(marcel_barrier_wait(&b), MARCEL_BARRIER_SERIAL_THREAD);
	CHECK_INT(marcel_join(t, NULL), 0);
	vps_stop();
}

TEST(arguments_are_checked)
{
	marcel_barrierattr_t attr;
	marcel_barrier_t b;
	int shared;

	CHECK_INT(marcel_barrier_init(&b, NULL, 0), EINVAL);
	CHECK_INT(marcel_barrierattr_init(&attr), 0);
	CHECK_INT(marcel_barrier_init(&b, &attr, 1), 0);
	CHECK_INT(marcel_barrierattr_setpshared(&attr, MARCEL_PROCESS_PRIVATE),
		  0);
	CHECK_INT(marcel_barrierattr_setpshared(&attr, MARCEL_PROCESS_SHARED),
		  ENOTSUP);
	CHECK_INT(marcel_barrierattr_setpshared(&attr, -1), EINVAL);
	CHECK_INT(marcel_barrierattr_getpshared(&attr, &shared), 0);
	CHECK_INT(shared, MARCEL_PROCESS_PRIVATE);
	CHECK_INT(marcel_barrierattr_destroy(&attr), 0);
	CHECK_INT(marcel_barrierattr_getpshared(&attr, &shared), EINVAL);
	CHECK_INT(marcel_barrier_init(&b, &attr, 1), EINVAL);
	CHECK_INT(marcel_barrier_init(&b, NULL, ~0u), EAGAIN);
}
