/*
 * What tests/tools/top.c has marcel-top look at. It says what is to be seen, in
 * the words of marcel-top, and stays as it is until its input ends. "still":
 * nobody computes meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <mpi.h>
#include <nmad/stats.h>

enum { BLOCKED = 40, SENDS = 7, RECEIVES = 3 };

static marcel_sem_t block, over;
static int stop;

static void *blocked(void *arg)
{
	marcel_sem_wait(&block);
	return arg;
}

static void *computes(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		;
	return arg;
}

static void *ends(void *arg)
{
	return arg;
}

static void talk(void)
{
	MPI_Request r[SENDS];
	char bytes[SENDS];

	for (int i = 0; i < SENDS; i++)
		MPI_Isend(&bytes[i], 1, MPI_CHAR, 0, i, MPI_COMM_SELF, &r[i]);
	for (int i = 0; i < RECEIVES; i++)
		MPI_Recv(&bytes[i], 1, MPI_CHAR, 0, i, MPI_COMM_SELF,
			 MPI_STATUS_IGNORE);
	MPI_Waitall(SENDS, r, MPI_STATUSES_IGNORE);
}

/* By state: enum marcel_state, then foreign ones. */
struct sum {
	int n[MARCEL_STATE_ENDED + 2];
};

static int add(const struct marcel_info *info, void *arg)
{
	struct sum *sum = arg;

	if (info->kind == MARCEL_KIND_FOREIGN)
		sum->n[MARCEL_STATE_ENDED + 1]++;
	else
		sum->n[info->state]++;
	return 0;
}

static struct sum sum(void)
{
	struct sum sum = { { 0 } };

	marcel_threads(add, &sum);
	return sum;
}

/* Whoever is to compute does, and n threads wait. */
static struct sum settled(int computing, int n)
{
	struct sum s;

	do {
		sched_yield();
		marcel_yield();
		s = sum();
	} while (s.n[MARCEL_STATE_WAITING] < n || s.n[MARCEL_STATE_ENDED] < 1 ||
		 s.n[MARCEL_STATE_RUNNING] < computing);
	return s;
}

static void say(struct sum s, int computing)
{
	size_t n = nm_stats_read(NULL, 0);
	struct nm_counter *c = calloc(n, sizeof(*c));

	printf("threads: %d running, 0 ready, %d blocked, %d ended, "
	       "%d foreign\n",
	       computing, s.n[MARCEL_STATE_WAITING], s.n[MARCEL_STATE_ENDED],
	       s.n[MARCEL_STATE_ENDED + 1]);
	nm_stats_read(c, n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, "sends") == 0 ||
		    strcmp(c[i].name, "receives") == 0 ||
		    strcmp(c[i].name, "unexpected") == 0)
			printf("%s %lu\n", c[i].name, c[i].value);
	free(c);
	printf("there\n");
	fflush(stdout);
}

/* A kernel thread of its own: main waits, too, when it says what there is. */
static void *reads(void *arg)
{
	int computing = *(int *)arg;
	char byte;

	say(settled(computing, BLOCKED + 1), computing);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	marcel_sem_post(&over);
	return NULL;
}

static void finish(void)
{
	char byte;

	for (int i = RECEIVES; i < SENDS; i++)
		MPI_Recv(&byte, 1, MPI_CHAR, 0, i, MPI_COMM_SELF,
			 MPI_STATUS_IGNORE);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < BLOCKED; i++)
		marcel_sem_post(&block);
}

int main(int argc, char **argv)
{
	int computing = argc < 2;
	marcel_t t[BLOCKED + 2];
	marcel_attr_t other;
	pthread_t reader;
	int n = 0;

	setenv("MARCEL_NVP", "2", 1);
	setenv("MARCEL_TIMESLICE_US", "0", 1);
	MPI_Init(&argc, &argv);
	marcel_sem_init(&block, 0, 0);
	marcel_sem_init(&over, 0, 0);
	for (; n < BLOCKED; n++)
		marcel_create(&t[n], NULL, blocked, NULL);
	marcel_create(&t[n++], NULL, ends, NULL);
	/* There are no time slices, and main stays on VP 0. */
	marcel_attr_init(&other);
	marcel_attr_setvp(&other, 1);
	if (computing)
		marcel_create(&t[n++], &other, computes, NULL);
	talk();
	settled(computing, BLOCKED);
	if (pthread_create(&reader, NULL, reads, &computing) != 0)
		return 1;
	marcel_sem_wait(&over);
	finish();
	for (int i = 0; i < n; i++)
		marcel_join(t[i], NULL);
	pthread_join(reader, NULL);
	return MPI_Finalize();
}
