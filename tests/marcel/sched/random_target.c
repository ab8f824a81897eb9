/*
 * What tests/marcel/sched/random.c and tests/tools/schedules.c run:
 *
 *   mix     many threads that create, join, lock, wait and yield; prints the
 *           order of what they did, the hash of the schedule, an address
 *   order   a planted bug that the usual order never shows: then it aborts
 *   lock    a planted deadlock: two locks that are taken in both orders
 *   fail    exits with 3 whatever the schedule
 *   well    ends well whatever the schedule
 */
#include <marcel/marcel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/atomic.h>

/* --- mix --- */

enum { WORKERS = 6, ROUNDS = 5, ITEMS = WORKERS * ROUNDS };

static ATOMIC(unsigned long long) order;
static marcel_mutex_t lock = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t filled = MARCEL_COND_INITIALIZER;
static marcel_sem_t room;
static int items, taken;

static void saw(long who, int what)
{
	unsigned long long so_far = load_relaxed(&order) + 0x9e3779b97f4a7c15;

	so_far ^= (unsigned long long)(who * 16 + what);
	store_relaxed(&order, so_far * 1099511628211);
}

static void *child(void *arg)
{
	saw((long)arg, 1);
	return arg;
}

static void *grandparent(void *arg)
{
	marcel_t old, young;

	marcel_create(&old, NULL, child, arg);
	marcel_create(&young, NULL, child, (void *)((long)arg + 1));
	marcel_join(young, NULL);
	marcel_join(old, NULL);
	saw((long)arg, 2);
	return arg;
}

static void *producer(void *arg)
{
	marcel_t t;

	for (int i = 0; i < ROUNDS; i++) {
		marcel_sem_wait(&room);
		marcel_create(&t, NULL, grandparent, (void *)((long)arg * 100));
		marcel_mutex_lock(&lock);
		saw((long)arg, 3);
		items++;
		marcel_yield();
		marcel_cond_signal(&filled);
		marcel_mutex_unlock(&lock);
		marcel_join(t, NULL);
	}
	return arg;
}

static void *consumer(void *arg)
{
	marcel_mutex_lock(&lock);
	while (taken < ITEMS) {
		if (items == 0) {
			marcel_cond_wait(&filled, &lock);
			continue;
		}
		items--;
		if (++taken == ITEMS)
			marcel_cond_broadcast(&filled);
		saw((long)arg, 4);
		marcel_sem_post(&room);
		marcel_mutex_unlock(&lock);
		marcel_yield();
		marcel_mutex_lock(&lock);
	}
	marcel_mutex_unlock(&lock);
	return arg;
}

static int mix(void)
{
	marcel_t t[2 * WORKERS];

	marcel_sem_init(&room, 0, 2);
	for (long i = 0; i < 2 * WORKERS; i++)
		marcel_create(&t[i], NULL, i % 2 ? producer : consumer,
			      (void *)(i + 1));
	for (int i = 0; i < 2 * WORKERS; i++)
		marcel_join(t[i], NULL);
	printf("%016llx %016llx %p\n", load_relaxed(&order),
	       (unsigned long long)marcel_schedule_hash(), (void *)t);
	return 0;
}

/* --- order --- */

static ATOMIC(int *) resource;

static void *set_up(void *arg)
{
	static int memory;

	marcel_yield();
	store_relaxed(&resource, &memory);
	return arg;
}

static void *use(void *arg)
{
	for (int i = 0; i < 3; i++)
		marcel_yield();
	if (load_relaxed(&resource) == NULL) {
		fprintf(stderr, "used before it was set up\n");
		abort();
	}
	return arg;
}

static int use_too_early(void)
{
	marcel_t t[2];

	marcel_create(&t[1], NULL, use, NULL);
	marcel_create(&t[0], NULL, set_up, NULL);
	marcel_join(t[0], NULL);
	marcel_join(t[1], NULL);
	return 0;
}

/* --- lock --- */

static marcel_mutex_t one = MARCEL_MUTEX_INITIALIZER;
static marcel_mutex_t two = MARCEL_MUTEX_INITIALIZER;

static void *lock_both(void *arg)
{
	marcel_mutex_t *first = arg ? &two : &one;
	marcel_mutex_t *second = arg ? &one : &two;

	for (int i = 0; arg != NULL && i < 3; i++)
		marcel_yield();
	marcel_mutex_lock(first);
	marcel_yield();
	marcel_mutex_lock(second);
	marcel_mutex_unlock(second);
	marcel_mutex_unlock(first);
	return arg;
}

static int lock_in_both_orders(void)
{
	marcel_t t[2];

	for (int i = 0; i < 2; i++)
		marcel_create(&t[i], NULL, lock_both, i ? t : NULL);
	for (int i = 0; i < 2; i++)
		marcel_join(t[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int rc = 2;

	if (marcel_init(NULL) != 0)
		return 9;
	if (strcmp(what, "mix") == 0)
		rc = mix();
	else if (strcmp(what, "order") == 0)
		rc = use_too_early();
	else if (strcmp(what, "lock") == 0)
		rc = lock_in_both_orders();
	else if (strcmp(what, "fail") == 0)
		rc = 3;
	else if (strcmp(what, "well") == 0)
		rc = 0;
	marcel_end();
	return rc;
}
