/*
 * Whatever is done to watched memory is told, by whatever call, and what has
 * been told is known.
 */
#include "../../check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/compiler.h>

#include "../../../nmad/drivers/verbs/unmap.h"

enum { PAGE = 4096, PAGES = 16, TURNS = 1000 };

/* Of [base, base + PAGES): which were told; which are wanted. */
static struct {
	struct verbs_watcher w;
	char *base;
	bool told[PAGES], wanted[PAGES];
} at;

static void note(struct verbs_watcher *w, uintptr_t begin, uintptr_t end)
{
	(void)w;
	for (int i = 0; i < PAGES; i++) {
		uintptr_t page = (uintptr_t)at.base + (size_t)i * PAGE;

		at.told[i] = at.told[i] || (begin <= page && page < end);
	}
}

static uintptr_t wants(struct verbs_watcher *w, uintptr_t from, uintptr_t *next)
{
	size_t i = (from - (uintptr_t)at.base) / PAGE, n = i;

	(void)w;
	while (n < PAGES && at.wanted[n])
		n++;
	if (n > i)
		return (uintptr_t)at.base + n * PAGE;
	while (n < PAGES && !at.wanted[n])
		n++;
	if (n < PAGES && (uintptr_t)at.base + n * PAGE < *next)
		*next = (uintptr_t)at.base + n * PAGE;
	return from;
}

static void open_it(void)
{
	at.w = (struct verbs_watcher){ .gone = note, .wants = wants };
	if (nm_verbs_unmap_open(&at.w, true) != 0)
		check_skip("the kernel tells nothing by userfaultfd");
}

static void close_it(void)
{
	nm_verbs_unmap_close(&at.w);
}

/* PAGES pages that are there, all watched if `base` was mapped by us. */
static void watch_all(void *base)
{
	CHECK(base != MAP_FAILED);
	memset(base, 1, PAGES * PAGE);
	base_spin_lock(&nm_verbs_unmap_lock);
	at.base = base;
	memset(at.told, 0, sizeof(at.told));
	memset(at.wanted, 1, sizeof(at.wanted));
	base_spin_unlock(&nm_verbs_unmap_lock);
	CHECK_INT(nm_verbs_unmap_watch((uintptr_t)at.base,
				       (uintptr_t)at.base + PAGES * PAGE),
		  0);
}

static void *map(int flags, int fd)
{
	return mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
}

static void watch_private(void)
{
	watch_all(map(MAP_PRIVATE | MAP_ANONYMOUS, -1));
}

/* Whoever unmaps or tells gets to it, some time. */
static void await_told(void)
{
	while (!nm_verbs_unmap_is_told(TURNS))
		sched_yield();
}

/* Exactly the pages [first, end). */
static void check_told(int first, int end)
{
	await_told();
	base_spin_lock(&nm_verbs_unmap_lock);
	for (int i = 0; i < PAGES; i++)
		CHECK_INT(at.told[i], first <= i && i < end);
	base_spin_unlock(&nm_verbs_unmap_lock);
}

static void want_nothing(void)
{
	base_spin_lock(&nm_verbs_unmap_lock);
	memset(at.wanted, 0, sizeof(at.wanted));
	base_spin_unlock(&nm_verbs_unmap_lock);
}

static void drop_all(void)
{
	want_nothing();
	nm_verbs_unmap_unwatch((uintptr_t)at.base,
			       (uintptr_t)at.base + PAGES * PAGE);
	munmap(at.base, PAGES * PAGE);
}

TEST(what_is_unmapped_is_told_and_nothing_else)
{
	open_it();
	watch_private();
	CHECK_INT(munmap(at.base + 3 * PAGE, 2 * PAGE), 0);
	check_told(3, 5);
	drop_all();
	close_it();
}

TEST(what_is_mapped_over_is_told)
{
	open_it();
	watch_private();
	CHECK_PTR(mmap(at.base + PAGE, PAGE, PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		  at.base + PAGE);
	check_told(1, 2);
	drop_all();
	close_it();
}

TEST(what_is_moved_is_told_where_it_was)
{
	char *to;

	open_it();
	watch_private();
	to = mremap(at.base + 4 * PAGE, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	CHECK(to != MAP_FAILED && to != at.base + 4 * PAGE);
	check_told(4, 8);
	munmap(to, 64 * PAGE);
	drop_all();
	close_it();
}

TEST(what_is_moved_and_stays_mapped_is_told)
{
	char *to;

	open_it();
	watch_private();
	to = mremap(at.base, 4 * PAGE, 4 * PAGE,
		    MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	CHECK_INT(to == MAP_FAILED ? errno : 0, 0);
	check_told(0, 4);
	munmap(to, 4 * PAGE);
	drop_all();
	close_it();
}

TEST(where_something_is_moved_to_is_told)
{
	char *from = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);

	open_it();
	watch_private();
	CHECK_PTR(mremap(from, 2 * PAGE, 2 * PAGE,
			 MREMAP_MAYMOVE | MREMAP_FIXED, at.base + 6 * PAGE),
		  at.base + 6 * PAGE);
	check_told(6, 8);
	munmap(from, PAGES * PAGE);
	drop_all();
	close_it();
}

TEST(what_is_given_back_is_told_and_accesses_do_not_wait)
{
	static const int ways[] = { MADV_DONTNEED, MADV_FREE };

	open_it();
	for (unsigned i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		watch_private();
		CHECK_INT(madvise(at.base + 2 * PAGE, PAGE, ways[i]), 0);
		check_told(2, 3);
		memset(at.base, 2, PAGES * PAGE);
		CHECK_INT(at.base[2 * PAGE], 2);
		drop_all();
	}
	close_it();
}

TEST(a_hole_made_in_shared_memory_is_told)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	open_it();
	CHECK_INT(ftruncate(fd, PAGES * PAGE), 0);
	watch_all(map(MAP_SHARED, fd));
	CHECK_INT(madvise(at.base + 2 * PAGE, PAGE, MADV_REMOVE), 0);
	check_told(2, 3);
	drop_all();
	close(fd);
	close_it();
}

/* Beyond what malloc() has: it has none, or the test's is the newest. */
TEST(what_is_behind_a_lower_break_is_told)
{
	char *end;

	open_it();
	end = sbrk(2 * PAGES * PAGE);
	if (end == (char *)-1) {
		close_it();
		check_skip("no room behind the break");
	}
	end = sbrk(0);
	watch_all((char *)((uintptr_t)end & -(uintptr_t)PAGE) - PAGES * PAGE);
	if (sbrk(0) == end) {
		CHECK(brk(at.base + 10 * PAGE) == 0);
		check_told(10, PAGES);
	}
	want_nothing();
	nm_verbs_unmap_unwatch((uintptr_t)at.base,
			       (uintptr_t)at.base + 10 * PAGE);
	close_it();
}

TEST(a_part_of_a_huge_page_that_is_unmapped_is_told)
{
	enum { HUGE = 2 << 20 };
	char *p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		check_skip("no huge pages");
	open_it();
	watch_all(p + 5 * PAGE);
	CHECK_INT(munmap(p, HUGE), 0);
	check_told(0, PAGES);
	close_it();
}

/* As large as is always a mapping of its own. */
TEST(a_large_block_that_is_freed_is_told)
{
	enum { BYTES = 64 << 20 };
	char *block;
	bool told;

	open_it();
	block = malloc(BYTES);
	CHECK(block != NULL);
	watch_all((char *)((uintptr_t)(block + PAGE) & -(uintptr_t)PAGE));
	free(block);
	await_told();
	base_spin_lock(&nm_verbs_unmap_lock);
	told = at.told[0];
	base_spin_unlock(&nm_verbs_unmap_lock);
	if (!told) {
		drop_all();
		close_it();
		check_skip("free() gives nothing back here");
	}
	check_told(0, PAGES);
	close_it();
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char *line = NULL;
	size_t room = 0;
	int n = 0;

	CHECK(f != NULL);
	while (getline(&line, &room, f) > 0) {
		unsigned long begin, end;

		CHECK_INT(sscanf(line, "%lx-%lx", &begin, &end), 2);
		n += begin < (uintptr_t)at.base + PAGES * PAGE &&
		     end > (uintptr_t)at.base;
	}
	free(line);
	fclose(f);
	return n;
}

TEST(only_what_is_wanted_stays_watched_and_the_rest_is_one_mapping)
{
	open_it();
	watch_private();
	CHECK_INT(mappings(), 1);
	want_nothing();
	base_spin_lock(&nm_verbs_unmap_lock);
	at.wanted[4] = at.wanted[5] = at.wanted[9] = true;
	base_spin_unlock(&nm_verbs_unmap_lock);
	nm_verbs_unmap_unwatch((uintptr_t)at.base,
			       (uintptr_t)at.base + PAGES * PAGE);
	CHECK_INT(mappings(), 5);
	CHECK_INT(madvise(at.base, 4 * PAGE, MADV_DONTNEED), 0);
	check_told(0, 0);
	CHECK_INT(madvise(at.base, 9 * PAGE, MADV_DONTNEED), 0);
	check_told(4, 6);
	want_nothing();
	nm_verbs_unmap_unwatch((uintptr_t)at.base,
			       (uintptr_t)at.base + PAGES * PAGE);
	CHECK_INT(mappings(), 1);
	munmap(at.base, PAGES * PAGE);
	close_it();
}

static void *unmap_one(void *arg)
{
	CHECK_INT(munmap(arg, PAGE), 0);
	return NULL;
}

/* With the lock held nothing can be told. */
TEST(it_is_known_that_not_all_has_been_told)
{
	pthread_t thread;

	open_it();
	watch_private();
	CHECK(nm_verbs_unmap_is_told(0));
	base_spin_lock(&nm_verbs_unmap_lock);
	CHECK_INT(pthread_create(&thread, NULL, unmap_one, at.base), 0);
	while (nm_verbs_unmap_is_told(0))
		;
	for (int i = 0; i < PAGES; i++)
		CHECK(!at.told[i]);
	CHECK(!nm_verbs_unmap_is_told(0));
	base_spin_unlock(&nm_verbs_unmap_lock);
	check_told(0, 1);
	pthread_join(thread, NULL);
	drop_all();
	close_it();
}

TEST(the_last_to_close_lets_go_of_what_is_watched)
{
	struct verbs_watcher second = { .gone = note, .wants = wants };

	open_it();
	CHECK_INT(nm_verbs_unmap_open(&second, true), 0);
	watch_private();
	close_it();
	CHECK_INT(munmap(at.base, PAGE), 0);
	check_told(0, 1);
	nm_verbs_unmap_close(&second);
	CHECK_INT(munmap(at.base, PAGES * PAGE), 0);
}
