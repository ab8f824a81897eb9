/*
 * The cache of registrations while many threads map, unmap, move and give back
 * memory: what is found is never of memory that was there before.
 */
#include "verbs_fake_mr.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/compiler.h>

enum {
	THREADS = 3,
	AREAS = 6, /* of each thread */
	LONG = 12, /* pages of one */
	ROUNDS = BASE_TSAN ? 2000 : 4000,
	PASSES = BASE_TSAN ? 1000 : 1500,
	LIMIT = 60 * PAGE,
};

#define P(n) ((size_t)(n)*PAGE)

static struct verbs_regs *regs;
static ATOMIC(unsigned) woken; /* a: */
static ATOMIC(unsigned) ended; /* a: */

static void wake(void *arg)
{
	(void)arg;
	store_relaxed(&woken, 1);
}

static void open_it(size_t limit)
{
	struct verbs_regs_how how = {
		.limit = limit, .keep = true, .loud = true, .wake = wake
	};

	fake_install();
	regs = nm_verbs_regs_open(NULL, &how);
	CHECK(regs != NULL);
	store_relaxed(&ended, 0);
}

static void close_it(void)
{
	nm_verbs_regs_check(regs);
	nm_verbs_regs_close(regs);
	CHECK_INT(load_relaxed(&fake.pinned), 0);
}

/* The one who may sleep. */
static void *clerk(void *arg)
{
	(void)arg;
	while (load_relaxed(&ended) == 0) {
		if (load_relaxed(&woken) != 0) {
			store_relaxed(&woken, 0);
			nm_verbs_regs_clean(regs);
		}
		sched_yield();
	}
	return NULL;
}

/* One thread's. */
struct mine {
	uint64_t random;
	char *area[AREAS];
	uint64_t found, made;
};

static uint64_t draw(struct mine *m, uint64_t below)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (m->random >> 33) % below;
}

static char *map_area(void *at)
{
	char *p =
		mmap(at, P(LONG), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void use(struct mine *m)
{
	char *p = m->area[draw(m, AREAS)] + P(draw(m, LONG));
	size_t bytes = 1 + draw(m, P(4));
	struct verbs_reg *reg;
	int error;

	for (int i = 0; i < AREAS; i++)
		if (m->area[i] <= p && p < m->area[i] + P(LONG) &&
		    p + bytes > m->area[i] + P(LONG))
			bytes = (size_t)(m->area[i] + P(LONG) - p);
	fake_use(p, bytes);
	reg = nm_verbs_reg_find(regs, p, bytes);
	if (reg != NULL)
		m->found++;
	else
		reg = nm_verbs_reg_make(regs, p, bytes, &error);
	if (reg == NULL)
		return; /* the others use all that may be pinned */
	CHECK(fake_is_right(reg, p, bytes));
	nm_verbs_reg_put(regs, reg);
}

/* The pages of an area are split by what is watched: one by one, then. */
static void move(struct mine *m)
{
	char *from = m->area[draw(m, AREAS)] + P(draw(m, LONG));
	char *to = m->area[draw(m, AREAS)] + P(draw(m, LONG));

	if (from == to)
		return;
	CHECK(mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) !=
	      MAP_FAILED);
	CHECK(mmap(from, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == from);
}

static void change(struct mine *m)
{
	char **area = &m->area[draw(m, AREAS)];
	char *p = *area + P(draw(m, LONG));

	switch (draw(m, 5)) {
	case 0:
		munmap(*area, P(LONG));
		*area = map_area(NULL);
		return;
	case 1:
		map_area(*area);
		return;
	case 2:
		CHECK_INT(madvise(p, PAGE, MADV_DONTNEED), 0);
		return;
	case 3:
		CHECK_INT(madvise(p, PAGE, MADV_FREE), 0);
		return;
	default:
		move(m);
	}
}

static void *map_and_use(void *arg)
{
	struct mine *m = arg;

	for (int i = 0; i < AREAS; i++)
		m->area[i] = map_area(NULL);
	for (int i = 0; i < ROUNDS; i++) {
		if (draw(m, 4) == 0)
			change(m);
		else
			use(m);
	}
	for (int i = 0; i < AREAS; i++)
		munmap(m->area[i], P(LONG));
	return NULL;
}

TEST(what_is_found_is_of_the_memory_that_is_there)
{
	struct mine mine[THREADS] = { 0 };
	pthread_t thread[THREADS], cleans;
	uint64_t found = 0;

	open_it(LIMIT);
	CHECK_INT(pthread_create(&cleans, NULL, clerk, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		mine[i].random = check_random();
		CHECK_INT(
			pthread_create(&thread[i], NULL, map_and_use, &mine[i]),
			0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		found += mine[i].found;
	}
	store_relaxed(&ended, 1);
	pthread_join(cleans, NULL);
	printf("# %llu found, %llu made\n", (unsigned long long)found,
	       (unsigned long long)nm_verbs_reg_counts(regs).made);
	CHECK(nm_verbs_reg_counts(regs).pinned <= LIMIT);
	close_it();
}

/* --- two threads and one address --- */

static char *place;

/* Nobody else maps a single page. */
static char *take_place(void)
{
	char *p;

	do {
		p = mmap(place, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0);
	} while (p != place && load_relaxed(&ended) == 0);
	return p == place ? p : NULL;
}

/* Take the place as soon as it is free, use it, leave it to the other. */
static void *take_turns(void *arg)
{
	uint64_t *found = arg;

	for (int i = 0; i < PASSES; i++) {
		char *p = take_place();
		struct verbs_reg *reg;
		int error;

		if (p == NULL)
			break;
		fake_use(p, PAGE);
		for (int n = 0; n < 2; n++) {
			reg = nm_verbs_reg_find(regs, p, PAGE);
			*found += reg != NULL;
			if (reg == NULL)
				reg = nm_verbs_reg_make(regs, p, PAGE, &error);
			CHECK(reg != NULL && fake_is_right(reg, p, PAGE));
			nm_verbs_reg_put(regs, reg);
		}
		munmap(p, PAGE);
	}
	store_relaxed(&ended, 1);
	return NULL;
}

TEST(who_maps_where_another_has_just_unmapped_finds_nothing)
{
	pthread_t thread[2];
	uint64_t found[2] = { 0 };
	char *around;

	open_it(SIZE_MAX);
	around =
		mmap(NULL, P(3), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(around != MAP_FAILED);
	place = around + PAGE;
	munmap(place, PAGE);
	for (int i = 0; i < 2; i++)
		CHECK_INT(
			pthread_create(&thread[i], NULL, take_turns, &found[i]),
			0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("# %llu found\n", (unsigned long long)(found[0] + found[1]));
	munmap(around, P(3));
	close_it();
}
