/*
 * marcel/thread/stack.c, arena.c: stacks are reused, coloured and guarded, and
 * their memory goes back.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/compiler.h>
#include "../parked.h"
#include "../../../marcel/os/os.h"
#include "../../../marcel/sched/vp.h"
#include "../../../marcel/thread/arena.h"
#include "../../../marcel/thread/stack.h"

static void *place(void *arg)
{
	(void)arg;
	return __builtin_frame_address(0);
}

static void use_one_stack(void)
{
	void *first, *next;
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, place, NULL), 0);
	CHECK_INT(marcel_join(t, &first), 0);
	for (int i = 0; i < 1000; i++) {
		CHECK_INT(marcel_create(&t, NULL, place, NULL), 0);
		CHECK_INT(marcel_join(t, &next), 0);
		CHECK_PTR(next, first);
	}
}

TEST(a_hot_stack_serves_the_next_thread)
{
	without_ticks(use_one_stack);
}

static void *run_sized(size_t bytes)
{
	marcel_attr_t a;
	marcel_t t;
	void *at;

	CHECK_INT(marcel_attr_init(&a), 0);
	CHECK_INT(marcel_attr_setstacksize(&a, bytes), 0);
	CHECK_INT(marcel_create(&t, &a, place, NULL), 0);
	CHECK_INT(marcel_join(t, &at), 0);
	return at;
}

static unsigned long stacks_out(void)
{
	struct marcel_arena_counts n;

	marcel_arena_count(&n);
	return (unsigned long)n.used;
}

static void use_one_of_each_size(void)
{
	static const size_t sizes[] = { 300000, 1 << 20, 2 << 20 };
	unsigned long used;
	void *first;

	used = stacks_out();
	for (unsigned k = 0; k < BASE_ARRAY_LEN(sizes); k++) {
		first = run_sized(sizes[k]);
		for (int i = 0; i < 100; i++)
			CHECK_PTR(run_sized(sizes[k]), first);
		CHECK_INT(stacks_out(), used + 1);
	}
	CHECK(run_sized(sizes[0]) != first);
}

TEST(a_hot_stack_of_another_size_stays_for_the_next_of_its_size)
{
	without_ticks(use_one_of_each_size);
}

static void use_a_huge_one(void)
{
	unsigned long used = stacks_out();

	run_sized(2 * MARCEL_STACK_EARLY);
	CHECK_INT(stacks_out(), used);
}

TEST(of_a_huge_stack_nothing_stays)
{
	without_ticks(use_a_huge_one);
}

/* With the scheduler out of the way. */
enum { MANY = 200 };

TEST(stacks_do_not_overlap_and_have_their_room)
{
	static const size_t sizes[] = { 16384, 65536, 80000, 300000, 5000000 };
	struct marcel_stack *s[MANY];

	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_AUTO), 0);
	for (unsigned k = 0; k < BASE_ARRAY_LEN(sizes); k++) {
		for (int i = 0; i < MANY; i++) {
			s[i] = marcel_stack_get(NULL, sizes[k]);
			CHECK(s[i] != NULL);
			CHECK(s[i]->bytes >= sizes[k]);
			CHECK(s[i]->is_guarded);
			CHECK(marcel_stack_is_guard(s[i], s[i]->low - 1));
			CHECK(!marcel_stack_is_guard(s[i], s[i]->low));
			memset(s[i]->low, i, 64);
			memset((char *)s[i] - 64, i, 64);
		}
		for (int i = 0; i < MANY; i++) {
			CHECK_INT(s[i]->low[63], (char)i);
			CHECK_INT(((char *)s[i])[-64], (char)i);
			marcel_stack_put(NULL, s[i]);
		}
	}
	marcel_stack_exit();
}

TEST(the_tops_of_stacks_differ_in_their_cache_sets)
{
	unsigned seen[64] = { 0 };

	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_AUTO), 0);
	for (int i = 0; i < 64; i++) {
		struct marcel_stack *s = marcel_stack_get(NULL, 65536);

		CHECK(s != NULL);
		seen[(uintptr_t)s / 64 % 64]++;
	}
	for (int i = 0; i < 64; i++)
		CHECK(seen[i] <= 8);
	marcel_stack_exit();
}

TEST(a_guard_that_the_kernel_cannot_read_is_believed)
{
	int fds[2];
	char *p = os_map(os_page_size());

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(write(fds[1], p, 1), 1);
	if (os_guard_probe()) {
		CHECK_INT(os_guard_install(p, os_page_size()), 0);
		CHECK_INT(write(fds[1], p, 1), -1);
	}
	os_unmap(p, os_page_size());
	p = os_map(os_page_size());
	CHECK_INT(os_guard_protect(p, os_page_size()), 0);
	CHECK_INT(write(fds[1], p, 1), -1);
	os_unmap(p, os_page_size());
	close(fds[0]);
	close(fds[1]);
}

/* --- what goes back, and what stays --- */

/* The kernel reads it, so a guard is an error and no fault. */
static bool can_be_read(int fd, const void *p)
{
	char c;

	return write(fd, p, 1) == 1 && read(fd - 1, &c, 1) == 1;
}

static bool is_resident(void *p)
{
	uintptr_t page = os_page_size();
	unsigned char vec = 0;

	CHECK_INT(mincore((void *)((uintptr_t)p & -page), page, &vec), 0);
	return vec & 1;
}

enum { BURST = 6000, KEPT_EVERY = 50, SMALL = 16384 };

static struct marcel_stack *burst[BURST];

static void get_burst(void)
{
	for (int i = 0; i < BURST; i++) {
		burst[i] = marcel_stack_get(NULL, SMALL);
		CHECK(burst[i] != NULL);
		memset((char *)burst[i] - 256, 1, 256);
	}
}

/* How many of the burst, but those kept, are still in memory. */
static int count_resident(int kept_every)
{
	int n = 0;

	for (int i = 0; i < BURST; i++)
		if (kept_every == 0 || i % kept_every != 0)
			n += is_resident(burst[i]);
	return n;
}

TEST(after_a_burst_the_memory_of_free_stacks_goes_back)
{
	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_AUTO), 0);
	get_burst();
	CHECK_INT(count_resident(0), BURST);
	for (int i = 0; i < BURST; i++)
		marcel_stack_put(NULL, burst[i]);
	CHECK(count_resident(0) <= 1024);
	CHECK(count_resident(0) > 500);
	marcel_stack_exit();
}

TEST(stacks_in_use_between_free_ones_stay_as_they_are)
{
	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_AUTO), 0);
	get_burst();
	for (int i = 0; i < BURST; i++)
		if (i % KEPT_EVERY != 0)
			marcel_stack_put(NULL, burst[i]);
	CHECK(count_resident(KEPT_EVERY) <= 1024);
	for (int i = 0; i < BURST; i += KEPT_EVERY)
		for (int k = 1; k <= 256; k++)
			CHECK_INT(((char *)burst[i])[-k], 1);
	marcel_stack_exit();
}

TEST(a_stack_that_went_back_comes_again_with_its_guard)
{
	struct marcel_arena_counts n;
	int fds[2];

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_AUTO), 0);
	for (int round = 0; round < 3; round++) {
		get_burst();
		marcel_arena_count(&n);
		CHECK_INT(n.used, BURST);
		CHECK_INT(n.warm, 0);
		for (int i = 0; i < BURST; i++) {
			CHECK(burst[i]->is_guarded);
			CHECK(!can_be_read(fds[1], burst[i]->low - 1));
			CHECK(can_be_read(fds[1], burst[i]->low));
		}
		for (int i = 0; i < BURST; i++)
			marcel_stack_put(NULL, burst[i]);
	}
	marcel_stack_exit();
	close(fds[0]);
	close(fds[1]);
}

TEST(few_large_stacks_keep_their_memory)
{
	enum { LARGE = 40 };
	struct marcel_stack *s[LARGE];
	int n = 0;

	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_AUTO), 0);
	for (int i = 0; i < LARGE; i++) {
		s[i] = marcel_stack_get(NULL, 8 << 20);
		CHECK(s[i] != NULL);
	}
	for (int i = 0; i < LARGE; i++)
		marcel_stack_put(NULL, s[i]);
	for (int i = 0; i < LARGE; i++)
		n += is_resident(s[i]);
	CHECK_INT(n, (64 << 20) / (8 << 20));
	marcel_stack_exit();
}

/* --- a thread that blocks touches one page --- */

static void *block(void *arg)
{
	char frame[1000];

	memset(frame, 1, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
	marcel_sem_wait(arg);
	__asm__ volatile("" : : "r"(frame) : "memory");
	return NULL;
}

/* No tick comes, whose frame would take another page. */
static void block_many(void)
{
	enum { THREADS = 100 };
	uintptr_t page = os_page_size();
	marcel_t t[THREADS];
	marcel_sem_t sem;
	int pages = 0;

	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, block, &sem), 0);
	for (int i = 0; i < THREADS; i++)
		until_parked(t[i]);
	for (int i = 0; i < THREADS; i++) {
		char *top = (char *)((uintptr_t)t[i]->stack & -page);

		CHECK(is_resident(top));
		for (char *p = t[i]->stack->low; p < top; p += page)
			pages += is_resident(p);
	}
	/* Who first calls a function has it looked up, on its own stack. */
	CHECK(pages <= 2);
	for (int i = 0; i < THREADS; i++)
		marcel_sem_post(&sem);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(a_blocked_thread_has_touched_one_page_of_its_stack)
{
	if (BASE_ASAN || BASE_TSAN)
		check_skip("frames are larger with sanitizers");
	without_ticks(block_many);
}

static unsigned notes_size(size_t bytes)
{
	unsigned noted;
	marcel_attr_t a;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&a), 0);
	CHECK_INT(marcel_attr_setstacksize(&a, bytes), 0);
	CHECK_INT(marcel_create(&t, &a, place, NULL), 0);
	noted = marcel_thread_has(t, MARCEL_F_STACK);
	CHECK_INT(marcel_join(t, NULL), 0);
	return noted;
}

TEST(who_asks_for_what_is_had_anyway_costs_no_more)
{
	struct marcel_config config = { .nvp = 1, .stacksize = 262144 };

	setenv("MARCEL_TIMESLICE_US", "0", 1); /* it is a seed still */
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_TIMESLICE_US");
	CHECK(!notes_size(262144));
	CHECK(!notes_size(262144 - 4096));
	CHECK(notes_size(262144 + 1));
	CHECK(notes_size(524288));
	CHECK_INT(marcel_end(), 0);
}

/* --- where guards run out --- */

TEST(past_the_budget_of_mappings_stacks_have_no_guard_page)
{
	enum { PAST = 20100 };
	static struct marcel_stack *s[PAST];
	struct marcel_arena_counts n;
	size_t guarded = 0;

	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_MPROTECT), 0);
	for (int i = 0; i < PAST; i++) {
		s[i] = marcel_stack_get(NULL, SMALL);
		CHECK(s[i] != NULL);
		guarded += s[i]->is_guarded;
	}
	marcel_arena_count(&n);
	CHECK(s[0]->is_guarded);
	CHECK(!s[PAST - 1]->is_guarded);
	CHECK(guarded <= 20000);
	CHECK_INT(n.unguarded, PAST - guarded);
	for (int i = 0; i < PAST; i++)
		marcel_stack_put(NULL, s[i]);
	marcel_stack_exit();
}

TEST(who_runs_off_a_stack_without_guard_leaves_a_trace)
{
	struct marcel_stack *s;

	CHECK_INT(marcel_stack_init(65536, MARCEL_GUARDS_CANARY), 0);
	s = marcel_stack_get(NULL, SMALL);
	CHECK(s != NULL && !s->is_guarded);
	memset(s->low, 255, s->bytes);
	CHECK(!marcel_stack_is_smashed(s, s->low));
	CHECK(marcel_stack_is_smashed(s, s->low - 1));
	s->low[-1] = 1;
	CHECK(marcel_stack_is_smashed(s, s->low));
	marcel_stack_put(NULL, s);
	marcel_stack_exit();
}
