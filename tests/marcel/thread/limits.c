/* marcel/thread/thread.c, stack.c: how many threads there can be. */
#include <stdio.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../with.h"

enum { MILLION = 1000000, BATCH = 1000 };

/* A quarter of what the machine, or our part of it, has left. */
static long how_many(void)
{
	long n, limit = -1, used = 0, kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %ld", &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	n = kb * 1024;
	f = fopen("/sys/fs/cgroup/memory.max", "r");
	if (f != NULL && fscanf(f, "%ld", &limit) != 1)
		limit = -1;
	if (f != NULL)
		fclose(f);
	f = fopen("/sys/fs/cgroup/memory.current", "r");
	if (f != NULL && fscanf(f, "%ld", &used) != 1)
		used = 0;
	if (f != NULL)
		fclose(f);
	if (limit > 0 && limit - used < n)
		n = limit - used;
	n /= 4 * (BASE_ASAN || BASE_TSAN ? 100000 : 4400);
	if (BASE_TSAN && n > 1000)
		n = 1000; /* it has room for some thousands */
	return n < MILLION ? n / BATCH * BATCH : MILLION;
}

static ATOMIC(long) blocked, ended;
static marcel_sem_t batch;

static void *block_and_end(void *arg)
{
	if (fetch_add_relaxed(&blocked, 1) % BATCH == BATCH - 1)
		marcel_sem_post(&batch);
	marcel_sem_wait(arg);
	fetch_add_relaxed(&ended, 1);
	return NULL;
}

static void block_so_many(long n)
{
	marcel_t *t = malloc((size_t)n * sizeof(*t));
	marcel_sem_t sem;

	CHECK(t != NULL);
	CHECK(n % BATCH == 0);
	printf("# %ld threads\n", n);
	store_relaxed(&blocked, 0);
	store_relaxed(&ended, 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&batch, 0, 0), 0);
	for (long i = 0; i < n; i++) {
		CHECK_INT(marcel_create(&t[i], NULL, block_and_end, &sem), 0);
		if (i % BATCH == BATCH - 1)
			marcel_sem_wait(&batch);
	}
	CHECK_INT(load_relaxed(&blocked), n);
	for (long i = 0; i < n; i++)
		CHECK_INT(marcel_sem_post(&sem), 0);
	for (long i = 0; i < n; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&ended), n);
	CHECK_INT(marcel_sem_destroy(&sem), 0);
	free(t);
}

TEST(a_million_threads_can_be_blocked_at_a_time)
{
	struct marcel_config config = { .nvp = 1 };

	CHECK_INT(marcel_init(&config), 0);
	block_so_many(how_many());
	CHECK_INT(marcel_end(), 0);
}

TEST(a_hundred_thousand_can_be_on_several_vps)
{
	struct marcel_config config = { .nvp = 4 };
	long n = how_many();

	CHECK_INT(marcel_init(&config), 0);
	block_so_many(n < MILLION / 10 ? n : MILLION / 10);
	CHECK_INT(marcel_end(), 0);
}
