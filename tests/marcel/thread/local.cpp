/*
 * marcel/sched/private.c, for C++: thread_local objects of a thread with
 * thread-local storage of its own are made in it, stay its own, and are gone
 * when it has been joined.
 */
#include <atomic>
#include <stdexcept>

#include <marcel/cancel.h>
#include <marcel/marcel.h>
#include "../../check.h"

namespace {

enum { THREADS = 20, ROUNDS = 50 };

std::atomic<int> made, gone;

struct counted {
	int value = 0;

	counted()
	{
		made++;
	}
	~counted()
	{
		gone++;
	}
};

thread_local counted mine;

void *uses(void *arg)
{
	int n = (int)(long)arg;

	mine.value = n;
	for (int i = 0; i < ROUNDS; i++) {
		try {
			marcel_yield();
			throw std::runtime_error("thrown");
		} catch (const std::runtime_error &) {
			marcel_yield();
			CHECK_INT(mine.value, n);
		}
	}
	if (n % 2)
		marcel_exit(arg);
	return arg;
}

void with(int nvp)
{
	struct marcel_config config = {};
	marcel_attr_t attr;
	marcel_t t[THREADS];
	void *value;

	config.nvp = nvp;
	made = gone = 0;
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setprivatetls(&attr, 1), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], &attr, uses, (void *)i), 0);
	for (long i = 0; i < THREADS; i++) {
		CHECK_INT(marcel_join(t[i], &value), 0);
		CHECK_INT((long)value, i);
		CHECK(gone >= i + 1);
	}
	CHECK_INT(made, THREADS);
	CHECK_INT(gone, THREADS);
	CHECK_INT(marcel_end(), 0);
}

} // namespace

TEST(objects_live_as_long_as_their_thread_on_1_vp)
{
	with(1);
}

TEST(objects_live_as_long_as_their_thread_on_2_vps)
{
	with(2);
}

TEST(objects_live_as_long_as_their_thread_on_4_vps)
{
	with(4);
}
