/*
 * The cache of registrations, over an adapter that only notes
 * (verbs_fake_mr.h). Where the kernel does not tell what is unmapped, only what
 * must hold then.
 */
#include "verbs_fake_mr.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/compiler.h>

#include "../../../nmad/drivers/verbs/unmap.h"
#include "verbs_forbid.h"

#define P(n) ((size_t)(n)*PAGE)

static ATOMIC(unsigned) wakes; /* a: */
static struct verbs_regs *regs;

static void wake(void *arg)
{
	CHECK_PTR(arg, &wakes);
	fetch_add_relaxed(&wakes, 1);
}

static struct verbs_regs *open_regs(size_t limit, bool keep)
{
	struct verbs_regs_how how = {
		.limit = limit, .keep = keep, .wake = wake, .arg = &wakes
	};
	struct verbs_regs *r = nm_verbs_regs_open(NULL, &how);

	CHECK(r != NULL);
	return r;
}

static struct verbs_reg_counts counts(void)
{
	nm_verbs_regs_check(regs);
	return nm_verbs_reg_counts(regs);
}

static char *map_at(void *at, size_t bytes)
{
	char *p =
		mmap(at, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	CHECK(p != MAP_FAILED);
	fake_use(p, bytes);
	return p;
}

static struct verbs_reg *make_in(struct verbs_regs *r, const void *p,
				 size_t bytes)
{
	int error = 0;
	struct verbs_reg *reg = nm_verbs_reg_make(r, p, bytes, &error);

	CHECK_INT(error, 0);
	CHECK(fake_is_right(reg, p, bytes));
	return reg;
}

static struct verbs_reg *make(const void *p, size_t bytes)
{
	return make_in(regs, p, bytes);
}

static void put(struct verbs_reg *reg)
{
	nm_verbs_reg_put(regs, reg);
}

/* Registered, and nobody uses it. */
static void have(const void *p, size_t bytes)
{
	put(make(p, bytes));
}

/* Found as it should be, and put back? */
static bool is_found(const void *p, size_t bytes)
{
	struct verbs_reg *reg = nm_verbs_reg_find(regs, p, bytes);

	if (reg == NULL)
		return false;
	CHECK(fake_is_right(reg, p, bytes));
	put(reg);
	return true;
}

/* A look that may say that it does not know is repeated by who tests. */
static bool is_there(const void *p, size_t bytes)
{
	for (int i = 0; i < 1000; i++)
		if (is_found(p, bytes))
			return true;
	return false;
}

static void open_keeping(size_t limit)
{
	char *p;

	fake_install();
	regs = open_regs(limit, true);
	p = map_at(NULL, PAGE);
	have(p, PAGE);
	if (counts().kept == 0) {
		nm_verbs_regs_close(regs);
		check_skip("the kernel tells nothing by userfaultfd");
	}
	munmap(p, PAGE);
	nm_verbs_regs_clean(regs);
	CHECK_INT(counts().pinned, 0);
	store_relaxed(&wakes, 0);
}

static void close_all(void)
{
	nm_verbs_regs_close(regs);
	CHECK_INT(load_relaxed(&fake.pinned), 0);
}

TEST(one_that_covers_a_buffer_is_found)
{
	char *p = map_at(NULL, P(16));

	open_keeping(SIZE_MAX);
	have(p + P(2) + 100, P(2)); /* of pages 2, 3, 4 */
	have(p + P(8), P(1));
	CHECK(is_there(p + P(2), P(3)));
	CHECK(is_there(p + P(3) - 1, 2));
	CHECK(is_there(p + P(8) + 5, 10));
	CHECK(!is_found(p + P(2) - 1, 2));
	CHECK(!is_found(p + P(5) - 1, 2));
	CHECK(!is_found(p + P(6), 1));
	CHECK(!is_found(p + P(4), P(5)));
	CHECK_INT(counts().made, 3);
	CHECK_INT(counts().pinned, P(4));
	munmap(p, P(16));
	close_all();
}

TEST(those_within_a_new_one_go)
{
	char *p = map_at(NULL, P(8));

	open_keeping(SIZE_MAX);
	have(p, P(1));
	have(p + P(2), P(2));
	have(p + P(5), P(3));
	have(p, P(6));
	nm_verbs_regs_clean(regs);
	CHECK_INT(counts().kept, 2);
	CHECK_INT(counts().pinned, P(9));
	CHECK(is_there(p + P(1), P(4)) && is_there(p + P(6), P(2)));
	munmap(p, P(8));
	close_all();
}

/* Ways to lose [p, p + 4 pages) of a mapping; other memory is there then. */
static void way_unmap(char *p)
{
	CHECK_INT(munmap(p, P(4)), 0);
	map_at(p, P(4));
}

static void way_map_over(char *p)
{
	map_at(p, P(4));
}

static void way_unmap_last(char *p)
{
	CHECK_INT(munmap(p + P(3), P(1)), 0);
	map_at(p + P(3), P(1));
}

static void way_move_away(char *p)
{
	char *to = mremap(p, P(4), P(64), MREMAP_MAYMOVE);

	CHECK(to != MAP_FAILED && to != p);
	map_at(p, P(4));
	munmap(to, P(64));
}

static void way_move_here(char *p)
{
	char *from = map_at(NULL, P(4));

	CHECK_PTR(mremap(from, P(4), P(4), MREMAP_MAYMOVE | MREMAP_FIXED, p),
		  p);
}

static void way_give_back(char *p)
{
	CHECK_INT(madvise(p, P(4), MADV_DONTNEED), 0);
	fake_use(p, P(4));
}

static void way_free(char *p)
{
	CHECK_INT(madvise(p, P(4), MADV_FREE), 0);
	fake_use(p, P(4));
}

TEST(what_was_unmapped_is_not_found)
{
	static void (*const ways[])(char *) = {
		way_unmap,     way_map_over,  way_unmap_last, way_move_away,
		way_move_here, way_give_back, way_free,
	};

	open_keeping(SIZE_MAX);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		char *p = map_at(NULL, P(12));
		struct verbs_reg_counts was;

		have(p, P(4));
		have(p + P(4), P(4));
		have(p + P(2), P(4));
		was = counts();
		CHECK_INT(was.kept, 3);
		ways[i](p);
		CHECK(!is_found(p, P(4)));
		CHECK(!is_found(p + P(3), P(1)));
		CHECK(is_there(p + P(4), P(4)));
		CHECK_INT(counts().kept, 1);
		CHECK_INT(counts().unmapped, was.unmapped + 2);
		have(p, P(4));
		CHECK(is_there(p, P(4)));
		munmap(p, P(12));
		CHECK(!is_found(p, P(4)));
		CHECK_INT(counts().kept, 0);
		nm_verbs_regs_clean(regs);
		CHECK_INT(counts().pinned, 0);
	}
	close_all();
}

TEST(a_large_block_of_mallocs_is_found_until_it_is_freed)
{
	enum { BYTES = 40 << 20 };

	open_keeping(SIZE_MAX);
	for (int i = 0; i < 20; i++) {
		char *p = calloc(1, BYTES);

		CHECK(p != NULL);
		fake_use(p + PAGE, P(4));
		have(p + PAGE, P(4));
		CHECK(is_there(p + PAGE, P(4)));
		free(p);
	}
	close_all();
}

TEST(who_uses_it_keeps_it_while_it_is_unmapped)
{
	char *p = map_at(NULL, P(4));
	struct verbs_reg *first, *second;

	open_keeping(SIZE_MAX);
	first = make(p, P(4));
	second = make(p + P(1), P(1));
	CHECK_PTR(first, second);
	munmap(p, P(4));
	map_at(p, P(4));
	CHECK(!is_found(p, P(4)));
	nm_verbs_regs_clean(regs);
	CHECK_INT(counts().pinned, P(4));
	put(first);
	CHECK_INT(load_relaxed(&wakes), 0);
	CHECK_INT(counts().pinned, P(4));
	put(second);
	CHECK_INT(load_relaxed(&wakes), 1);
	nm_verbs_regs_clean(regs);
	CHECK_INT(counts().pinned, 0);
	CHECK_INT(load_relaxed(&fake.pinned), 0);
	munmap(p, P(4));
	close_all();
}

/* By who has read the event: the thread that waits for those, most often. */
TEST(who_takes_back_is_woken_when_memory_is_unmapped)
{
	char *p = map_at(NULL, P(4));

	open_keeping(SIZE_MAX);
	have(p, P(1));
	have(p + P(1), P(1));
	munmap(p, P(4));
	while (load_relaxed(&wakes) == 0)
		sched_yield();
	CHECK_INT(counts().kept, 0);
	nm_verbs_regs_clean(regs);
	CHECK_INT(load_relaxed(&fake.pinned), 0);
	close_all();
}

TEST(the_one_not_used_for_longest_makes_room)
{
	char *p = map_at(NULL, P(16));
	struct verbs_reg *used;
	int error = 0;

	open_keeping(P(6));
	have(p, P(2));
	have(p + P(2), P(2));
	have(p + P(4), P(2));
	CHECK(is_there(p, P(2)));
	have(p + P(6), P(1));
	CHECK(!is_found(p + P(2), P(2)));
	CHECK(is_there(p, P(2)) && is_there(p + P(4), P(2)));
	CHECK_INT(counts().evicted, 1);
	CHECK_INT(counts().pinned, P(5));

	/* none that is used */
	used = make(p, P(2));
	have(p + P(8), P(4));
	CHECK(!is_found(p + P(4), P(2)) && !is_found(p + P(6), P(1)));
	CHECK_PTR(nm_verbs_reg_make(regs, p + P(2), P(5), &error), NULL);
	CHECK_INT(error, -ENOMEM);
	CHECK_PTR(nm_verbs_reg_make(regs, p + P(2), P(7), &error), NULL);
	CHECK_INT(error, -ENOMEM);
	CHECK_INT(counts().refused, 2);
	CHECK(is_there(p, P(2)));
	put(used);
	have(p + P(2), P(6));
	CHECK_INT(counts().pinned, P(6));
	CHECK_INT(load_relaxed(&fake.pinned), P(6));
	munmap(p, P(16));
	close_all();
}

TEST(the_kernels_limit_makes_room_too)
{
	char *p = map_at(NULL, P(16));
	struct verbs_reg *used;
	int error = 0;

	open_keeping(SIZE_MAX);
	fake.limit = P(6);
	used = make(p, P(2));
	have(p + P(2), P(2));
	have(p + P(4), P(2));
	have(p + P(6), P(3));
	CHECK_INT(counts().evicted, 2);
	CHECK_INT(counts().pinned, P(5));
	store_relaxed(&fake.tries, 0);
	CHECK_PTR(nm_verbs_reg_make(regs, p + P(9), P(5), &error), NULL);
	CHECK_INT(error, -ENOMEM);
	CHECK_INT(load_relaxed(&fake.tries), 2);
	CHECK_INT(counts().pinned, P(2));
	CHECK(is_there(p, P(2)));
	put(used);
	munmap(p, P(16));
	close_all();
}

TEST(what_may_only_be_read_is_not_kept)
{
	char *p = map_at(NULL, P(2));
	struct verbs_reg *reg;

	open_keeping(SIZE_MAX);
	fake.refuses_writing = true;
	reg = make(p, P(2));
	CHECK(!((struct fake_mr *)reg->mr)->may_write);
	CHECK(!is_found(p, P(2)));
	put(reg);
	nm_verbs_regs_clean(regs);
	CHECK_INT(counts().pinned, 0);
	fake.refuses_writing = false;
	reg = make(p, P(2));
	CHECK(((struct fake_mr *)reg->mr)->may_write);
	put(reg);
	munmap(p, P(2));
	close_all();
}

/* The pages that they share, of one cache and of two. */
TEST(what_one_no_longer_needs_stays_watched_for_the_others)
{
	char *p = map_at(NULL, P(8));
	struct verbs_regs *other;
	struct verbs_reg *reg;

	open_keeping(P(6));
	other = open_regs(SIZE_MAX, true);
	have(p, P(4));
	have(p + P(2) + PAGE / 2, P(1)); /* covered: the same one */
	nm_verbs_reg_put(other, make_in(other, p + P(1), P(2)));
	have(p + P(4), P(3)); /* the first goes */
	CHECK_INT(counts().evicted, 1);
	CHECK(!is_found(p, P(1)));
	munmap(p + P(2), P(1));
	map_at(p + P(2), P(1));
	reg = nm_verbs_reg_find(other, p + P(1), P(2));
	CHECK_PTR(reg, NULL);
	nm_verbs_regs_close(other);
	CHECK(is_there(p + P(4), P(3)));
	munmap(p + P(6), P(1));
	map_at(p + P(6), P(1));
	CHECK(!is_found(p + P(4), P(3)));
	munmap(p, P(8));
	close_all();
}

static ATOMIC(bool) ends; /* a: */

static void *unmap_two(void *p)
{
	CHECK_INT(munmap(p, P(2)), 0);
	store_relaxed(&ends, true);
	return NULL;
}

/* Nobody can be told with the lock held. */
static bool waits_to_unmap_two(void *p)
{
	pthread_t thread;
	bool told = true;

	store_relaxed(&ends, false);
	base_spin_lock(&nm_verbs_unmap_lock);
	CHECK_INT(pthread_create(&thread, NULL, unmap_two, p), 0);
	while (told && !load_relaxed(&ends))
		told = nm_verbs_unmap_is_told(0);
	base_spin_unlock(&nm_verbs_unmap_lock);
	pthread_join(thread, NULL);
	return !told;
}

TEST(what_nobody_needs_is_not_watched)
{
	char *p = map_at(NULL, P(8));
	struct verbs_reg *used;

	open_keeping(P(4));
	have(p, P(2));
	used = make(p + P(4), P(2));
	have(p + P(6), P(2));
	CHECK(!waits_to_unmap_two(p));
	CHECK(waits_to_unmap_two(p + P(4)));
	CHECK(waits_to_unmap_two(p + P(6)));
	put(used);
	close_all();
}

static char *made; /* what is being made; 4 pages */

static void lose_some(void)
{
	munmap(made + P(2), P(1));
	map_at(made + P(2), P(1));
}

TEST(what_is_unmapped_while_it_is_registered_is_not_kept)
{
	struct verbs_reg *reg;
	int error;

	open_keeping(SIZE_MAX);
	made = map_at(NULL, P(4));
	fake.meanwhile = lose_some;
	reg = nm_verbs_reg_make(regs, made, P(4), &error);
	CHECK(reg != NULL && !fake_is_right(reg, made, P(4)));
	CHECK(!is_found(made, P(4)));
	put(reg);
	nm_verbs_regs_clean(regs);
	CHECK_INT(counts().pinned, 0);
	have(made, P(4));
	CHECK(is_there(made, P(4)));
	munmap(made, P(4));
	close_all();
}

static struct verbs_regs *others;

/* Its only other registration of these pages goes. */
static void let_others_go(void)
{
	nm_verbs_regs_close(others);
}

TEST(what_is_being_registered_stays_watched)
{
	for (int from = 0; from < 3; from++) {
		char *p = map_at(NULL, P(8));

		open_keeping(SIZE_MAX);
		others = open_regs(SIZE_MAX, true);
		made = p + P(1);
		nm_verbs_reg_put(others, make_in(others, p + P(from), P(4)));
		fake.meanwhile = let_others_go;
		have(made, P(4));
		CHECK(is_there(made, P(4)));
		lose_some();
		CHECK(!is_found(made, P(4)));
		munmap(p, P(8));
		close_all();
	}
}

TEST(in_a_forked_child_nothing_is_kept_and_its_parent_keeps_on)
{
	char *p = map_at(NULL, P(4));
	int status;
	pid_t pid;

	open_keeping(SIZE_MAX);
	have(p, P(2));
	pid = fork();
	if (pid == 0) {
		bool good = nm_verbs_reg_find(regs, p, P(2)) == NULL;

		have(p + P(2), P(1));
		good = good && !is_found(p + P(2), P(1));
		munmap(p, P(4));
		_exit(!good);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	CHECK(is_there(p, P(2)));
	munmap(p, P(4));
	CHECK(!is_found(p, P(2)));
	close_all();
}

/* --- without --- */

static void check_without(void)
{
	char *p = map_at(NULL, P(4));
	struct verbs_reg *reg;
	int error;

	reg = make(p, P(2));
	CHECK(!is_found(p, P(2)));
	CHECK_INT(counts().pinned, P(2));
	CHECK_PTR(nm_verbs_reg_make(regs, p, P(4), &error), NULL);
	CHECK_INT(error, -ENOMEM);
	put(reg);
	CHECK_INT(load_relaxed(&wakes), 1);
	nm_verbs_regs_clean(regs);
	CHECK_INT(counts().pinned, 0);
	CHECK_INT(load_relaxed(&fake.pinned), 0);
	have(p, P(4));
	munmap(p, P(4));
	close_all();
}

TEST(none_is_kept_if_that_is_not_wanted)
{
	fake_install();
	store_relaxed(&wakes, 0);
	regs = open_regs(P(4), false);
	check_without();
}

TEST(none_is_kept_if_the_kernel_does_not_tell)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (!forbid())
			_exit(77);
		fake_install();
		store_relaxed(&wakes, 0);
		regs = open_regs(P(4), true);
		check_without();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		check_skip("no seccomp");
	CHECK_INT(status, 0);
}
