/*
 * Who begins in the place of its creator, so that nobody need be interrupted.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <base/atomic.h>
#include "../with.h"

enum { MANY = 1000 / FEWER };

static ATOMIC(int) count;
static ATOMIC(int) order[10]; /* who ran, in this order */

static void *note(void *arg)
{
	store_relaxed(&order[fetch_add_relaxed(&count, 1)], (int)(long)arg);
	return NULL;
}

static void *note_twice(void *arg)
{
	note(arg);
	CHECK_INT(marcel_yield(), 0);
	return note(arg);
}

static void in_the_callers_place(void)
{
	marcel_t t[3];

	store_relaxed(&count, 0);
	CHECK_INT(marcel_create(&t[0], NULL, note, (void *)1), 0);
	CHECK_INT(marcel_create(&t[1], NULL, note, (void *)2), 0);
	CHECK_INT(marcel_create_first(&t[2], NULL, note_twice, (void *)3), 0);
	CHECK_INT(load_relaxed(&count), 1);
	CHECK_INT(load_relaxed(&order[0]), 3);
	for (int i = 0; i < 3; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&count), 4);
}

TEST(a_thread_created_first_goes_before_all_and_its_creator_is_next)
{
	without_ticks(in_the_callers_place);
}

static void *add_one(void *arg)
{
	fetch_add_relaxed(&count, 1);
	return arg;
}

static void *create_many(void *arg)
{
	marcel_attr_t attr, none;
	marcel_t t;
	void *value;

	memset(&none, 0, sizeof(none));
	CHECK_INT(marcel_create_first(&t, &none, add_one, arg), EINVAL);
	CHECK_INT(marcel_attr_init(&attr), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(marcel_attr_setpriority(&attr, i % 3 - 1), 0);
		CHECK_INT(marcel_create_first(&t, &attr, add_one, &count), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK(value == &count);
	}
	return arg;
}

TEST_VPS(who_is_created_first_runs_once_wherever_and_whoever_creates_it)
{
	marcel_t t[4];
	pthread_t p;

	store_relaxed(&count, 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_create_first(&t[i], NULL, create_many, NULL),
			  0);
	CHECK_INT(pthread_create(&p, NULL, create_many, NULL), 0);
	create_many(NULL);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	marcel_blocking_begin();
	CHECK_INT(pthread_join(p, NULL), 0);
	marcel_blocking_end();
	CHECK_INT(load_relaxed(&count), 6 * MANY);
}
