/*
 * marcel/os/linux/leave.c: a function is left for another one on its kernel
 * thread only where nothing below would be found half done.
 */
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../../../marcel/arch/ctx.h"
#include "../../../marcel/os/os.h"
#include "../../check.h"

static char *page; /* a read of it is interrupted */
static ATOMIC(int) answer, ends;

static void first(void *arg);
static void *interrupted_in(void *arg);

static void handle(int signal, siginfo_t *info, void *context)
{
	store_relaxed(&answer, os_may_leave(context));
	store_relaxed(&ends, os_may_end(context, first, interrupted_in));
	mprotect(page, os_page_size(), PROT_READ);
}

static void set_up(int signal)
{
	struct sigaction act = { .sa_sigaction = handle,
				 .sa_flags = SA_SIGINFO | SA_RESTART };

	page = os_map(os_page_size());
	CHECK(page != NULL);
	CHECK_INT(sigaction(signal, &act, NULL), 0);
	store_relaxed(&answer, -1);
	os_leave_init();
}

static void tear_down(int signal)
{
	struct sigaction act = { .sa_handler = SIG_DFL };

	sigaction(signal, &act, NULL);
	os_unmap(page, os_page_size());
}

/* Here the handler comes. */
static BASE_NOINLINE void interrupted(void)
{
	CHECK_INT(mprotect(page, os_page_size(), PROT_NONE), 0);
	CHECK_INT(*(volatile char *)page, 0);
}

static void *interrupted_in(void *arg)
{
	interrupted();
	return arg;
}

static BASE_NOINLINE void first(void *arg)
{
	CHECK_PTR(interrupted_in(arg), arg);
}

/* Of our own functions and the program's nobody knows which is which. */
TEST(not_for_good_where_we_are_in_the_program)
{
	set_up(SIGSEGV);
	first(page);
	CHECK_INT(load_relaxed(&answer), 1);
	CHECK_INT(load_relaxed(&ends), 0);
	tear_down(SIGSEGV);
}

TEST(in_the_program)
{
	set_up(SIGSEGV);
	interrupted();
	CHECK_INT(load_relaxed(&answer), 1);
	tear_down(SIGSEGV);
}

TEST(not_with_a_stream_locked)
{
	set_up(SIGSEGV);
	flockfile(stdout);
	interrupted();
	funlockfile(stdout);
	CHECK_INT(load_relaxed(&answer), 0);
	CHECK_INT(ftrylockfile(stdout), 0);
	interrupted();
	funlockfile(stdout);
	CHECK_INT(load_relaxed(&answer), 0);
	interrupted();
	CHECK_INT(load_relaxed(&answer), 1);
	tear_down(SIGSEGV);
}

static int each(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	interrupted();
	return 1;
}

TEST(not_below_libc)
{
	set_up(SIGSEGV);
	CHECK_INT(dl_iterate_phdr(each, NULL), 1);
	CHECK_INT(load_relaxed(&answer), 0);
	tear_down(SIGSEGV);
}

TEST(not_in_libc)
{
	set_up(SIGUSR1);
	CHECK_INT(raise(SIGUSR1), 0);
	CHECK_INT(load_relaxed(&answer), 0);
	tear_down(SIGUSR1);
}

#if !BASE_ASAN /* which stands before qsort() */
static int compare(const void *a, const void *b)
{
	interrupted();
	return 0;
}

TEST(below_qsort)
{
	int two[2] = { 0 };

	set_up(SIGSEGV);
	qsort(two, 2, sizeof(*two), compare);
	CHECK_INT(load_relaxed(&answer), 1);
	tear_down(SIGSEGV);
}
#endif

static struct marcel_ctx main_ctx, other_ctx;

static void interrupted_alone(void *arg)
{
	interrupted();
	marcel_ctx_switch(&other_ctx, &main_ctx, arg);
}

/* Even if libc makes the contexts. */
TEST(where_a_context_begins)
{
	enum { STACK = 65536 };
	char *stack = os_map(STACK);

	CHECK(stack != NULL);
	set_up(SIGSEGV);
	marcel_ctx_make(&other_ctx, stack + STACK, interrupted_alone);
	CHECK_PTR(marcel_ctx_switch(&main_ctx, &other_ctx, page), page);
	CHECK_INT(load_relaxed(&answer), 1);
	tear_down(SIGSEGV);
	os_unmap(stack, STACK);
}

/* --- in a call that only waits for another thread --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ATOMIC(int) locked;

/* libc's word says that somebody waits: whatever he sleeps for, he is there. */
static bool is_awaited(pthread_mutex_t *m)
{
	return __atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED) > 1;
}

static void *holds(void *arg)
{
	pid_t main = getpid();

	pthread_mutex_lock(&lock);
	store_release(&locked, 1);
	while (!is_awaited(&lock) || !os_thread_sleeps(main))
		sched_yield();
	os_thread_kill(main, SIGUSR1);
	while (load_relaxed(&answer) < 0)
		sched_yield();
	pthread_mutex_unlock(&lock);
	return arg;
}

TEST(while_it_waits_for_a_mutex)
{
	pthread_t t;

	set_up(SIGUSR1);
	CHECK_INT(pthread_create(&t, NULL, holds, NULL), 0);
	while (load_acquire(&locked) == 0)
		sched_yield();
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	CHECK_INT(load_relaxed(&answer), 1);
	pthread_join(t, NULL);
	tear_down(SIGUSR1);
}
