/* thread/key.c */
#include "../sync/crowd.h"

#include <errno.h>

static marcel_key_t key;
static ATOMIC(int) destroyed;

static void count_destroyed(void *value)
{
	CHECK(value != NULL);
	CHECK_PTR(marcel_getspecific(key), NULL);
	fetch_add_relaxed(&destroyed, 1);
}

static void use_own_value(void *arg, int i)
{
	int mine[2];

	CHECK_PTR(marcel_getspecific(key), NULL);
	for (int n = 0; n < 100; n++) {
		CHECK_INT(marcel_setspecific(key, &mine[n % 2]), 0);
		marcel_yield();
		CHECK_PTR(marcel_getspecific(key), &mine[n % 2]);
	}
}

TEST(each_thread_has_its_own_value_destroyed_at_its_end)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		store_relaxed(&destroyed, 0);
		CHECK_INT(marcel_key_create(&key, count_destroyed), 0);
		crowd_run(&crowds[c], use_own_value, NULL);
		CHECK_INT(load_relaxed(&destroyed), crowd_size(&crowds[c]));
		CHECK_INT(marcel_key_delete(key), 0);
	}
}

static void set_again(void *value)
{
	fetch_add_relaxed(&destroyed, 1);
	marcel_setspecific(key, value);
}

static void set_value(void *arg, int i)
{
	marcel_setspecific(key, &key);
}

static void set_and_reset(void *arg, int i)
{
	marcel_setspecific(key, &key);
	marcel_setspecific(key, NULL);
}

TEST(a_destructor_that_sets_again_is_called_a_few_times_only)
{
	CHECK_INT(marcel_key_create(&key, set_again), 0);
	store_relaxed(&destroyed, 0);
	crowd_run(&(struct crowd){ 1, 1, 0 }, set_value, NULL);
	CHECK_INT(load_relaxed(&destroyed), MARCEL_DESTRUCTOR_ITERATIONS);
	store_relaxed(&destroyed, 0);
	crowd_run(&(struct crowd){ 1, 1, 1 }, set_and_reset, NULL);
	CHECK_INT(load_relaxed(&destroyed), 0);
	CHECK_INT(marcel_key_delete(key), 0);
}

static marcel_key_t more[MARCEL_KEYS_MAX];

/* The destructor of key 0 sets the highest: the array must grow under it. */
static void set_highest(void *value)
{
	marcel_setspecific(more[MARCEL_KEYS_MAX - 1], value);
}

static void set_first(void *arg, int i)
{
	marcel_setspecific(more[0], arg);
}

TEST(a_destructor_may_set_keys_beyond_those_there_were)
{
	marcel_key_t one_too_many;

	for (int i = 0; i < MARCEL_KEYS_MAX; i++)
		CHECK_INT(marcel_key_create(&more[i], i == 0 ? set_highest
						      : i == MARCEL_KEYS_MAX - 1
							      ? count_destroyed
							      : NULL),
			  0);
	CHECK_INT(marcel_key_create(&one_too_many, NULL), EAGAIN);
	key = more[MARCEL_KEYS_MAX - 1];
	store_relaxed(&destroyed, 0);
	crowd_run(&(struct crowd){ 1, 1, 1 }, set_first, more);
	CHECK_INT(load_relaxed(&destroyed), 2);
	for (int i = 0; i < MARCEL_KEYS_MAX; i++)
		CHECK_INT(marcel_key_delete(more[i]), 0);
}

TEST(the_values_of_a_deleted_key_are_forgotten)
{
	marcel_key_t again;

	vps_start(1);
	store_relaxed(&destroyed, 0);
	CHECK_INT(marcel_key_create(&key, count_destroyed), 0);
	CHECK_INT(marcel_setspecific(key, &key), 0);
	CHECK_INT(marcel_key_delete(key), 0);
	CHECK_PTR(marcel_getspecific(key), NULL);
	CHECK_INT(marcel_setspecific(key, &key), EINVAL);
	CHECK_INT(marcel_key_delete(key), EINVAL);
	CHECK_INT(marcel_key_create(&again, NULL), 0);
	CHECK_INT(again, key);
	CHECK_PTR(marcel_getspecific(again), NULL);
	CHECK_INT(marcel_key_delete(again), 0);
	CHECK_INT(marcel_key_delete(MARCEL_KEYS_MAX), EINVAL);
	CHECK_INT(marcel_setspecific(MARCEL_KEYS_MAX, NULL), EINVAL);
	CHECK_PTR(marcel_getspecific(MARCEL_KEYS_MAX), NULL);
	CHECK_INT(load_relaxed(&destroyed), 0);
	vps_stop();
}
