/*
 * The cost of an object among N others of its kind, for each kind that programs
 * make: CPU time of this process, ns, by N.
 *
 *   objects [KIND,... [NUMBER ...]]       all kinds; 1 1000 10000 100000
 *
 *   KIND_grow_N     to make one, on the way to N
 *   KIND_create_N   to make one more; the least of some batches
 *   KIND_use_N      to use one, chosen at random
 *   KIND_free_N     to free one, chosen at random
 *   KIND_limit      how many there can be, if fewer than N
 *
 * One process, one VP (MARCEL_NVP=1 unless it is set), MPI_COMM_SELF. All times
 * should be the same for all N, but for what caches miss.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/compiler.h>

#include "objects.h"

enum { BATCH = 64, BATCHES = 15, NUMBERS = 8 };

int most, *number, value;
void **handle;
MPI_Comm self;

static const struct kind *const parts[] = { objects_mpi, objects_requests,
					    objects_tool, objects_threads,
					    objects_low };

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

void *places(size_t bytes)
{
	void *p = calloc((size_t)most, bytes);

	need(p != NULL, "calloc");
	return p;
}

void need(bool fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "objects: %s failed\n", what);
	exit(1);
}

/* The next kind, the first behind NULL; NULL: that was the last. */
static const struct kind *next(const struct kind *k)
{
	static int part;

	if (k == NULL)
		part = 0;
	k = k == NULL ? parts[0] : k + 1;
	if (k->name == NULL)
		k = ++part < PARTS ? parts[part] : NULL;
	return k;
}

static int *order; /* places: first the `nopen` that are in use */
static int nopen;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int random_below(int n)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (int)(x % (unsigned)n);
}

static void swap(int i, int j)
{
	int t = order[i];

	order[i] = order[j];
	order[j] = t;
}

/* Returns how many of n were made. */
BASE_NOINLINE static int create_some(const struct kind *k, int n)
{
	int i = 0;

	while (i < n && k->create(order[nopen])) {
		nopen++;
		i++;
	}
	return i;
}

/* n at random. */
BASE_NOINLINE static void use_some(const struct kind *k, int n)
{
	for (int i = 0; i < n; i++)
		k->use(order[random_below(nopen)]);
}

BASE_NOINLINE static void drop_some(const struct kind *k, int n)
{
	while (n-- > 0) {
		swap(random_below(nopen), nopen - 1);
		k->drop(order[--nopen]);
	}
}

static void say(const char *kind, const char *what, int n, double ns)
{
	printf("%s_%s_%d %.0f ns\n", kind, what, n, ns);
	fflush(stdout);
}

static void keep_least(double *least, double begin)
{
	double ns = (now() - begin) / BATCH;

	if (ns < *least)
		*least = ns;
}

static void measure_at(const struct kind *k, int n)
{
	double create = 1e30, use = 1e30, drop = 1e30, begin;

	for (int b = 0; b < BATCHES; b++) {
		begin = now();
		if (create_some(k, BATCH) < BATCH)
			return;
		keep_least(&create, begin);
		begin = now();
		if (k->use != NULL)
			use_some(k, BATCH);
		keep_least(&use, begin);
		begin = now();
		drop_some(k, BATCH);
		keep_least(&drop, begin);
	}
	say(k->name, "create", n, create);
	if (k->use != NULL)
		say(k->name, "use", n, use);
	say(k->name, "free", n, drop);
}

static void measure(const struct kind *k, const int *numbers, int n)
{
	for (int i = 0; i < most; i++)
		order[i] = i;
	if (k->begin != NULL)
		k->begin();
	for (int i = 0; i < n; i++) {
		int more = numbers[i] - nopen;
		double begin = now();

		if (create_some(k, more) < more) {
			printf("%s_limit %d objects\n", k->name, nopen);
			break;
		}
		say(k->name, "grow", numbers[i], (now() - begin) / more);
		measure_at(k, numbers[i]);
	}
	drop_some(k, nopen);
	if (k->end != NULL)
		k->end();
}

static bool is_listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (;; list = strchr(list, ',') + 1) {
		if (strncmp(list, name, n) == 0 &&
		    (list[n] == ',' || list[n] == '\0'))
			return true;
		if (strchr(list, ',') == NULL)
			return false;
	}
}

static int usage(void)
{
	fprintf(stderr,
		"usage: objects [KIND,... [NUMBER ...]], up to %d "
		"numbers that grow; kinds: all",
		NUMBERS);
	for (const struct kind *k = next(NULL); k != NULL; k = next(k))
		fprintf(stderr, ",%s", k->name);
	fputc('\n', stderr);
	return 2;
}

int main(int argc, char **argv)
{
	int numbers[NUMBERS] = { 1, 1000, 10000, 100000 }, n = 4, provided;
	const char *list = argc > 1 ? argv[1] : "all";
	bool all = strcmp(list, "all") == 0, any = all;

	for (const struct kind *k = next(NULL); k != NULL; k = next(k))
		any |= is_listed(list, k->name);
	if (!any || argc > 2 + NUMBERS)
		return usage();
	if (argc > 2)
		n = 0;
	for (int i = 2; i < argc; i++) {
		numbers[n++] = atoi(argv[i]);
		if (numbers[n - 1] <= (n > 1 ? numbers[n - 2] : 0))
			return usage();
	}
	setenv("MARCEL_NVP", "1", 0);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
	most = numbers[n - 1] + BATCH;
	order = places(sizeof(*order));
	handle = places(sizeof(*handle));
	number = places(sizeof(*number));
	for (const struct kind *k = next(NULL); k != NULL; k = next(k))
		if (all || is_listed(list, k->name))
			measure(k, numbers, n);
	free(number);
	free(handle);
	free(order);
	MPI_Comm_free(&self);
	MPI_Finalize();
	return 0;
}
