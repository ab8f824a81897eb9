/*
 * marcel/thread/apart.c: stacks that a program brings are its own again once
 * their threads were joined; guards are as large as was asked for.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <base/atomic.h>
#include "../../../marcel/sched/sanitizer.h"
#include "../../../marcel/thread/stack.h"
#include "../child.h"
#include "../with.h"

enum { PAGE = 4096, BYTES = 1 << 18, EDGE = 64, ROUNDS = 1000 };

static char *map(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void bring(marcel_attr_t *attr, void *low, size_t bytes)
{
	CHECK_INT(marcel_attr_init(attr), 0);
	CHECK_INT(marcel_attr_setstack(attr, low, bytes), 0);
}

/* --- what it is allowed to be --- */

TEST_VPS(what_is_no_stack_is_refused)
{
	static char none[1];
	marcel_attr_t attr, bad;
	size_t bytes;
	void *low;
	int on;

	memset(&bad, 0, sizeof(bad));
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setstack(&attr, NULL, BYTES), EINVAL);
	CHECK_INT(marcel_attr_setstack(&attr, none, MARCEL_STACK_MIN - 1),
		  EINVAL);
	CHECK_INT(marcel_attr_setstack(&attr, none, (size_t)1 << 41), EINVAL);
	CHECK_INT(marcel_attr_setstack(&attr, (void *)(UINTPTR_MAX - BYTES / 2),
				       BYTES),
		  EINVAL);
	CHECK_INT(marcel_attr_setstack(&bad, none, BYTES), EINVAL);
	CHECK_INT(marcel_attr_setguardsize(&attr, (size_t)1 << 41), EINVAL);
	CHECK_INT(marcel_attr_setguardsize(&bad, PAGE), EINVAL);
	CHECK_INT(marcel_attr_setpreemptible(&attr, 2), EINVAL);
	CHECK_INT(marcel_attr_setpreemptible(&bad, 1), EINVAL);
	CHECK_INT(marcel_attr_getpreemptible(&bad, &on), EINVAL);
	CHECK_INT(marcel_setpreemptible(-1, NULL), EINVAL);

	/* What was refused has changed nothing. */
	CHECK_INT(marcel_attr_getstack(&attr, &low, &bytes), 0);
	CHECK_PTR(low, NULL);
	CHECK_INT(bytes, 65536);
	CHECK_INT(marcel_attr_getguardsize(&attr, &bytes), 0);
	CHECK_INT(bytes, PAGE);
	CHECK_INT(marcel_attr_getpreemptible(&attr, &on), 0);
	CHECK_INT(on, 1);
}

TEST_VPS(what_was_set_is_read_back)
{
	static char room[BYTES];
	marcel_attr_t attr;
	size_t bytes;
	void *low;
	int on;

	bring(&attr, room, sizeof(room));
	CHECK_INT(marcel_attr_getstack(&attr, &low, &bytes), 0);
	CHECK_PTR(low, room);
	CHECK_INT(bytes, sizeof(room));
	CHECK_INT(marcel_attr_getstacksize(&attr, &bytes), 0);
	CHECK_INT(bytes, sizeof(room));
	CHECK_INT(marcel_attr_setguardsize(&attr, 10), 0);
	CHECK_INT(marcel_attr_getguardsize(&attr, &bytes), 0);
	CHECK_INT(bytes, 10);
	CHECK_INT(marcel_attr_setpreemptible(&attr, 0), 0);
	CHECK_INT(marcel_attr_getpreemptible(&attr, &on), 0);
	CHECK_INT(on, 0);
}

/* --- stacks that are brought --- */

struct range {
	char *low;
	size_t bytes;
};

/* Where the caller stands; what is found of it. */
static void *is_inside(void *arg)
{
	struct range *r = arg;
	char *here = __builtin_frame_address(0);
	marcel_attr_t attr;
	size_t bytes;
	void *low;

	CHECK(here >= r->low && here < r->low + r->bytes);
	marcel_yield();
	CHECK_INT(marcel_getattr_np(marcel_self(), &attr), 0);
	CHECK_INT(marcel_attr_getstack(&attr, &low, &bytes), 0);
	CHECK_PTR(low, r->low);
	CHECK(bytes <= r->bytes && bytes > r->bytes - EDGE);
	CHECK_INT(marcel_attr_getguardsize(&attr, &bytes), 0);
	CHECK_INT(bytes, 0);
	return arg;
}

static void run_in(char *low, size_t bytes)
{
	struct range r = { low, bytes };
	marcel_attr_t attr;
	marcel_t t;
	void *value;

	bring(&attr, low, bytes);
	CHECK_INT(marcel_create(&t, &attr, is_inside, &r), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, &r);
}

TEST_VPS(a_thread_stays_within_what_was_brought)
{
	char *room = map(BYTES + 2 * PAGE);

	for (int off = 0; off < EDGE; off += 7) {
		char *low = room + PAGE + off, *high = low + BYTES;

		memset(room, 1, BYTES + 2 * PAGE);
		run_in(low, BYTES);
		for (int i = 1; i <= PAGE; i++)
			CHECK_INT(low[-i], 1);
		for (char *p = high; p < room + BYTES + 2 * PAGE; p++)
			CHECK_INT(*p, 1);
	}
	munmap(room, BYTES + 2 * PAGE);
}

static int look(const struct marcel_info *info, void *arg)
{
	return info == arg;
}

TEST_VPS(it_can_be_used_again_and_unmapped)
{
	char *room = map(BYTES);

	for (int i = 0; i < ROUNDS / FEWER; i++)
		run_in(room, BYTES);
	munmap(room, BYTES);
	for (int i = 0; i < 20; i++) {
		room = map(BYTES);
		run_in(room, BYTES);
		memset(room, 1, BYTES);
		munmap(room, BYTES);
		/* What has ended is looked at still. */
		CHECK_INT(marcel_threads(look, NULL), 0);
	}
}

static void *nothing(void *arg)
{
	return arg;
}

TEST_VPS(nobody_else_is_given_it)
{
	char *room = map(BYTES);
	marcel_t t[100];

	run_in(room, BYTES);
	mprotect(room, BYTES, PROT_NONE);
	for (int i = 0; i < 100; i++)
		CHECK_INT(marcel_create(&t[i], NULL, nothing, NULL), 0);
	for (int i = 0; i < 100; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	munmap(room, BYTES);
}

static ATOMIC(int) waits;
static marcel_sem_t go;

static void *waits_there(void *arg)
{
	fetch_add_relaxed(&waits, 1);
	CHECK_INT(marcel_sem_wait(&go), 0);
	return is_inside(arg);
}

TEST_VPS(many_wait_on_their_own)
{
	enum { N = 20 };
	struct range r[N];
	marcel_attr_t attr;
	marcel_t t[N];

	store_relaxed(&waits, 0);
	CHECK_INT(marcel_sem_init(&go, 0, 0), 0);
	for (int i = 0; i < N; i++) {
		r[i] = (struct range){ map(BYTES), BYTES };
		bring(&attr, r[i].low, BYTES);
		CHECK_INT(marcel_create(&t[i], &attr, waits_there, &r[i]), 0);
	}
	while (load_relaxed(&waits) < N)
		marcel_yield();
	for (int i = 0; i < N; i++)
		CHECK_INT(marcel_cancel(t[i]), 0);
	for (int i = 0; i < N; i++) {
		CHECK_INT(marcel_join(t[i], NULL), 0);
		munmap(r[i].low, BYTES);
	}
	CHECK_INT(marcel_sem_destroy(&go), 0);
}

static void *brings(void *arg)
{
	char *room = map(BYTES);

	run_in(room, BYTES);
	munmap(room, BYTES);
	CHECK_INT(marcel_sem_post(&go), 0);
	return arg;
}

TEST_VPS(foreign_threads_bring_some_too)
{
	pthread_t p;

	CHECK_INT(marcel_sem_init(&go, 0, 0), 0);
	CHECK_INT(pthread_create(&p, NULL, brings, NULL), 0);
	CHECK_INT(marcel_sem_wait(&go), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

/* --- guards --- */

static void *guard_of(void *arg)
{
	marcel_attr_t attr;
	size_t bytes;

	CHECK_INT(marcel_getattr_np(marcel_self(), &attr), 0);
	CHECK_INT(marcel_attr_getguardsize(&attr, &bytes), 0);
	(void)arg;
	return (void *)bytes;
}

static size_t guarded_by(size_t guard, size_t bytes)
{
	marcel_attr_t attr;
	marcel_t t;
	void *value;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setguardsize(&attr, guard), 0);
	if (bytes != 0)
		CHECK_INT(marcel_attr_setstacksize(&attr, bytes), 0);
	CHECK_INT(marcel_create(&t, &attr, guard_of, NULL), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	return (size_t)value;
}

TEST_VPS(guards_are_whole_pages)
{
	static const size_t sizes[] = { 0, 65536, 100000, 8 << 20 };

	for (unsigned i = 0; i < BASE_ARRAY_LEN(sizes); i++) {
		CHECK_INT(guarded_by(0, sizes[i]), 0);
		CHECK_INT(guarded_by(1, sizes[i]), PAGE);
		CHECK_INT(guarded_by(PAGE, sizes[i]), PAGE);
		CHECK_INT(guarded_by(PAGE + 1, sizes[i]), 2 * PAGE);
		CHECK_INT(guarded_by(1 << 20, sizes[i]), 1 << 20);
	}
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int c, n = 0;

	CHECK(f != NULL);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

TEST_VPS(what_was_mapped_is_unmapped)
{
	int before;

	guarded_by(3 * PAGE, 0);
	before = mappings();
	for (int i = 0; i < ROUNDS / FEWER; i++)
		guarded_by(3 * PAGE, 0);
	/* The libraries may have mapped a few things meanwhile. */
	CHECK(mappings() < before + 100);
}

/* --- who runs off --- */

/* The first byte that is touched of what lies below. */
static void *touches(void *arg)
{
	size_t below = (size_t)arg;
	volatile char *low = marcel_self()->stack->low;

	low[-(ptrdiff_t)below] = 1;
	return arg;
}

static void fall(marcel_attr_t *attr, size_t below)
{
	marcel_t t;

	if (marcel_attr_setname(attr, "deep thought") != 0 ||
	    marcel_create(&t, attr, touches, (void *)below) != 0)
		_exit(1);
	marcel_join(t, NULL);
}

static void fall_far(void)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_attr_t attr;

	if (marcel_init(&config) != 0)
		_exit(1);
	marcel_attr_init(&attr);
	marcel_attr_setguardsize(&attr, 1 << 20);
	fall(&attr, 1 << 20);
}

static void fall_off_what_was_brought(void)
{
	struct marcel_config config = { .nvp = 2 };
	char *room = map(BYTES + PAGE);
	marcel_attr_t attr;

	mprotect(room, PAGE, PROT_NONE);
	if (marcel_init(&config) != 0)
		_exit(1);
	bring(&attr, room + PAGE, BYTES);
	fall(&attr, 1);
}

static void check_fall(void (*body)(void), const char *words)
{
	int status;

	/* Sanitizers take the signal. */
	if (BASE_ASAN || BASE_TSAN)
		return;
	status = in_child(body);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSEGV);
	CHECK(strstr(said, "stack overflow") != NULL);
	CHECK(strstr(said, "\"deep thought\"") != NULL);
	CHECK(strstr(said, words) != NULL);
}

TEST(a_large_guard_is_one_to_its_end)
{
	check_fall(fall_far, "MARCEL_STACKSIZE");
	setenv("MARCEL_GUARDS", "mprotect", 1);
	check_fall(fall_far, "MARCEL_STACKSIZE");
	unsetenv("MARCEL_GUARDS");
}

TEST(who_runs_off_a_brought_stack_is_named)
{
	check_fall(fall_off_what_was_brought, "marcel_attr_setstack");
}
