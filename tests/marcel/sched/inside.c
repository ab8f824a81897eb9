/*
 * marcel/sched/tick.c: wherever a thread was interrupted, it goes on as if
 * nothing had been. Each place is hit some hundred times; what counts is that
 * the thread lost its VP between its way in and its way out.
 *
 * They call marcel now and then: one that slept on a lock unannounced, and thus
 * has lost its VP, comes back to it there at once.
 *
 *   TEST_MINUTES=m  each goes on for so long
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/atomic.h>
#include "../../../marcel/sched/vp.h"
#include "../with.h"

enum { ENOUGH = 200 / FEWER };

enum place { ALLOCATOR, STREAM, COMPARATOR, CALLBACK, CONSTRUCTOR, PLACES };

static ATOMIC(int) stop, hits[PLACES];

/* A thread that is in such a place stays on its kernel thread. */
static uint32_t way_in(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return l->preempted;
}

static void way_out(enum place place, uint32_t before)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (l->preempted != before)
		fetch_add_relaxed(&hits[place], (int)(l->preempted - before));
}

static marcel_t start(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

/* Each of them is. */
static void until_hit(enum place first, enum place last)
{
	const char *minutes = getenv("TEST_MINUTES");
	time_t end = time(NULL) + (minutes != NULL ? 60 * atoi(minutes) : 0);

	for (enum place p = first; p <= last; p++)
		while (load_relaxed(&hits[p]) < ENOUGH)
			marcel_yield();
	while (time(NULL) < end)
		marcel_yield();
	for (enum place p = first; p <= last && minutes != NULL; p++)
		printf("# place %d: %d\n", p, load_relaxed(&hits[p]));
	store_relaxed(&stop, 1);
}

static void hammer(enum place place, void *(*fn)(void *))
{
	marcel_t t[4];

	for (int i = 0; i < 4; i++)
		t[i] = start(fn, (void *)(intptr_t)(i + 1));
	until_hit(place, place);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

static void with_ticks(int nvp, void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", "200", 1);
	store_relaxed(&stop, 0);
	for (int i = 0; i < PLACES; i++)
		store_relaxed(&hits[i], 0);
	with_vps(nvp, body);
	unsetenv("MARCEL_TIMESLICE_US");
}

#define TEST_TICK(name)                                                        \
	static void name##_body(void);                                         \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_ticks(1, name##_body);                                    \
	}                                                                      \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_ticks(2, name##_body);                                    \
	}                                                                      \
	static void name##_body(void)

/* --- the allocator --- */

static void *allocate(void *old, size_t n)
{
	uint32_t in = way_in();
	void *p;

	free(old);
	p = malloc(n);
	way_out(ALLOCATOR, in);
	return p;
}

static void *allocates(void *arg)
{
	unsigned seed = (unsigned)(intptr_t)arg;
	char *held[64] = { NULL };
	size_t bytes[64] = { 0 };

	while (load_relaxed(&stop) == 0) {
		int i = rand_r(&seed) % 64;

		if (held[i] != NULL) {
			CHECK_INT(held[i][0], i);
			CHECK_INT(held[i][bytes[i] - 1], i);
		}
		bytes[i] = 1 + (size_t)rand_r(&seed) % 5000;
		held[i] = allocate(held[i], bytes[i]);
		held[i][0] = held[i][bytes[i] - 1] = (char)i;
		if (i == 0)
			marcel_others_ready();
	}
	for (int i = 0; i < 64; i++)
		free(held[i]);
	return arg;
}

TEST_TICK(inside_malloc_and_free)
{
	hammer(ALLOCATOR, allocates);
}

/* --- a stream --- */

static FILE *file;
static int in_file; /* the lock of the file */

static void *prints(void *arg)
{
	uint32_t in;

	while (load_relaxed(&stop) == 0) {
		flockfile(file);
		in = way_in();
		CHECK_INT(in_file++, 0);
		for (int i = 0; i < 20; i++)
			fprintf(file, "%d %s\n", i, "of a line of some length");
		CHECK_INT(--in_file, 0);
		way_out(STREAM, in);
		funlockfile(file);
		marcel_others_ready();
	}
	return arg;
}

TEST_TICK(while_a_file_is_locked)
{
	file = fopen("/dev/null", "w");
	CHECK(file != NULL);
	hammer(STREAM, prints);
	fclose(file);
}

/* --- a function that libc calls --- */

static int compare(const void *a, const void *b)
{
	uint32_t in = way_in();
	int x = *(const int *)a, y = *(const int *)b, less, more;

	for (int i = 0; i < 100; i++)
		__asm__ volatile("" ::: "memory");
	less = x < y;
	more = x > y;
	way_out(COMPARATOR, in);
	return more - less;
}

static void *sorts(void *arg)
{
	enum { N = 2000 };
	unsigned seed = (unsigned)(intptr_t)arg;
	int *v = malloc(N * sizeof(*v));

	while (load_relaxed(&stop) == 0) {
		for (int i = 0; i < N; i++)
			v[i] = rand_r(&seed);
		qsort(v, N, sizeof(*v), compare);
		for (int i = 1; i < N; i++)
			CHECK(v[i - 1] <= v[i]);
		marcel_others_ready();
	}
	free(v);
	return arg;
}

TEST_TICK(inside_a_qsort_comparator)
{
	hammer(COMPARATOR, sorts);
}

static int one_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	uint32_t in = way_in();

	for (int i = 0; i < 20000 && load_relaxed(&stop) == 0; i++)
		++*(unsigned *)arg;
	way_out(CALLBACK, in);
	return 0;
}

static void *walks(void *arg)
{
	unsigned n = 0;

	while (load_relaxed(&stop) == 0) {
		dl_iterate_phdr(one_object, &n);
		marcel_others_ready();
	}
	return arg;
}

TEST_TICK(inside_a_callback_of_dl_iterate_phdr)
{
	hammer(CALLBACK, walks);
}

/* --- the constructor of an object --- */

static ATOMIC(int) loads;

static void *loads_slow(void *arg)
{
	uint32_t in;
	void *object;

	while (load_relaxed(&stop) == 0) {
		in = way_in();
		object = dlopen(getenv("SLOW"), RTLD_NOW);
		way_out(CONSTRUCTOR, in);
		CHECK(object != NULL);
		CHECK_INT(dlclose(object), 0);
		fetch_add_relaxed(&loads, 1);
		marcel_others_ready();
	}
	return arg;
}

/* It is not to be one that the constructor waits for. */
static void *computes(void *arg)
{
	while (load_relaxed(&stop) == 0)
		;
	return arg;
}

TEST_TICK(inside_the_constructor_of_an_object)
{
	int before = load_relaxed(&loads);
	marcel_t t[4];

	if (getenv("SLOW") == NULL)
		check_skip("SLOW names no object");
	for (int i = 0; i < 4; i++)
		t[i] = start(i == 0 ? loads_slow : computes, NULL);
	until_hit(CONSTRUCTOR, CONSTRUCTOR);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK(load_relaxed(&loads) > before);
}

/* --- all of them --- */

TEST_TICK(inside_any_of_them_beside_the_others)
{
	static void *(*const fns[])(
		void *) = { allocates, allocates, prints,     prints,  sorts,
			    walks,     walks,     loads_slow, computes };
	marcel_t t[BASE_ARRAY_LEN(fns)];

	if (getenv("SLOW") == NULL)
		check_skip("SLOW names no object");
	file = fopen("/dev/null", "w");
	CHECK(file != NULL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(fns); i++)
		t[i] = start(fns[i], (void *)(intptr_t)(i + 1));
	until_hit(0, PLACES - 1);
	for (size_t i = 0; i < BASE_ARRAY_LEN(fns); i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	fclose(file);
}
