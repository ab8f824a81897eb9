/*
 * What a blocked thread costs: memory, resident and in page tables, and the
 * time to make and block one, and to wake and join it. Its stack has 64 KiB and
 * a guard, its own frame is a little under 1 KiB.
 *
 *   memory [THREADS [VPS]]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include "columns.h"

enum { FRAME = 900, BATCH = 1000 };

static marcel_sem_t sem, batch;
static atomic_long blocked;

static void *block(void *arg)
{
	char frame[FRAME];

	memset(frame, 1, sizeof(frame));
	if (atomic_fetch_add(&blocked, 1) % BATCH == BATCH - 1)
		marcel_sem_post(&batch);
	__asm__ volatile("" : : "r"(frame) : "memory");
	marcel_sem_wait(arg);
	__asm__ volatile("" : : "r"(frame) : "memory");
	return NULL;
}

struct usage {
	double resident, tables; /* bytes */
};

static struct usage usage(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	struct usage u = { 0, 0 };
	char line[128];
	long kb;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			u.resident = (double)kb * 1024;
		else if (sscanf(line, "VmPTE: %ld", &kb) == 1)
			u.tables = (double)kb * 1024;
	}
	if (f != NULL)
		fclose(f);
	return u;
}

static void show(const char *when, struct usage from, struct usage to, long n)
{
	double r = (to.resident - from.resident) / (double)n;
	double p = (to.tables - from.tables) / (double)n;

	printf("%-38s %8.0f + %4.0f = %6.0f bytes a thread\n", when, r, p,
	       r + p);
}

static void measure(marcel_t *t, long n)
{
	struct usage before = usage(), blocked, after;
	double begin = now_ns(), made, woken;

	for (long i = 0; i < n; i++) {
		must(marcel_create(&t[i], NULL, block, &sem));
		if (i % BATCH == BATCH - 1)
			marcel_sem_wait(&batch);
	}
	made = now_ns();
	blocked = usage();
	woken = now_ns();
	for (long i = 0; i < n; i++)
		must(marcel_sem_post(&sem));
	for (long i = 0; i < n; i++)
		must(marcel_join(t[i], NULL));
	woken = now_ns() - woken;
	after = usage();
	show("blocked: resident + page tables", before, blocked, n);
	show("joined", before, after, n);
	printf("%-38s %8.0f ns\n", "create and block",
	       (made - begin) / (double)n);
	printf("%-38s %8.0f ns\n", "wake and join", woken / (double)n);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000;
	struct marcel_config config = { .nvp = argc > 2 ? atoi(argv[2]) : 1 };
	marcel_t *t;

	n -= n % BATCH;
	if (n < 1 || config.nvp < 1) {
		fprintf(stderr, "usage: %s [THREADS [VPS]]\n", argv[0]);
		return 2;
	}
	/* Ours is not what is measured. */
	t = malloc((size_t)n * sizeof(*t));
	if (t == NULL)
		return 1;
	memset(t, 1, (size_t)n * sizeof(*t));
	must(marcel_init(&config));
	must(marcel_sem_init(&sem, 0, 0));
	must(marcel_sem_init(&batch, 0, 0));
	printf("%ld threads, %d VPs\n", n, config.nvp);
	for (int round = 1; round <= 2; round++)
		measure(t, n);
	must(marcel_end());
	free(t);
	return 0;
}
