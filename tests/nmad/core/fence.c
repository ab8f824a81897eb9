/*
 * nmad/core/connect.c: who waits in a fence holds up neither its VP nor a
 * thread that was interrupted on its kernel thread. The launcher is waited for
 * by libc's own function, as in a static program: nothing announces that.
 */
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <marcel/cancel.h>
#include "../../marcel/slice.h"

#include "../../../nmad/boot/boot.h"
#include "../../../nmad/core/core.h"

static int ends[2];
static ssize_t (*libc_read)(int fd, void *to, size_t bytes);

/* Until somebody of this process has let it through. */
static int boot_fence(struct nm_boot *b)
{
	char c = 0;

	(void)b;
	CHECK_INT(libc_read(ends[0], &c, 1), 1);
	return c == 'x' ? -ECONNRESET : -EPROTO;
}

static const struct nm_boot_client client = { .name = "test",
					      .fence = boot_fence };

static void open_boot(struct nm_boot *b)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);

	CHECK(libc != NULL);
	*(void **)&libc_read = dlsym(libc, "read");
	CHECK(libc_read != NULL);
	*b = (struct nm_boot){ .client = &client,
			       .info.size = 2,
			       .has_key = true,
			       .pid = getpid() };
	CHECK_INT(pipe(ends), 0);
}

static void close_ends(void)
{
	close(ends[0]);
	close(ends[1]);
}

static void fence_and_close(struct nm_boot *b)
{
	CHECK_INT(nm_launcher_fence(b), -ECONNRESET);
	close_ends();
}

static void *lets_through(void *arg)
{
	CHECK_INT(syscall(SYS_write, ends[1], "x", 1), 1);
	return arg;
}

static void let_through_by_another(void)
{
	struct nm_boot b;
	marcel_t t;

	open_boot(&b);
	t = start(lets_through, NULL);
	fence_and_close(&b);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(others_run_while_one_is_in_a_fence)
{
	without_ticks(let_through_by_another);
}

static void *fences(void *arg)
{
	CHECK_INT(nm_launcher_fence(arg), -ECONNRESET);
	store_relaxed(&stop, 1);
	return arg;
}

static void cancel_who_waits(void)
{
	struct nm_boot b;
	marcel_t t;
	void *out;

	store_relaxed(&stop, 0);
	open_boot(&b);
	t = start(fences, &b);
	marcel_yield();
	CHECK_INT(marcel_cancel(t), 0);
	marcel_yield();
	CHECK_INT(load_relaxed(&stop), 0);
	CHECK_INT(syscall(SYS_write, ends[1], "x", 1), 1);
	CHECK_INT(marcel_join(t, &out), 0);
	CHECK_INT(load_relaxed(&stop), 1);
	close_ends();
}

TEST(who_is_cancelled_in_a_fence_goes_on_after_it)
{
	without_ticks(cancel_who_waits);
}

/* Main has the one VP, and nobody knows that it waits. */
static void fence_without_a_vp(void)
{
	struct nm_boot b;
	pthread_t p;

	store_relaxed(&stop, 0);
	open_boot(&b);
	CHECK_INT(syscall(SYS_write, ends[1], "x", 1), 1);
	CHECK_INT(pthread_create(&p, NULL, fences, &b), 0);
	while (load_relaxed(&stop) == 0)
		;
	CHECK_INT(pthread_join(p, NULL), 0);
	close_ends();
}

TEST(who_is_no_user_thread_needs_no_vp_for_a_fence)
{
	without_ticks(fence_without_a_vp);
}

static ATOMIC(pid_t) first_on; /* where it ran when it was interrupted */

/* Main's kernel thread, and main is to run: a tick interrupts it. */
static void *computes_first(void *arg)
{
	store_relaxed(&first_on, gettid());
	computes(NULL);
	return lets_through(arg);
}

static void let_through_by_who_was_interrupted(void)
{
	struct nm_boot b;
	marcel_t t;

	open_boot(&b);
	/* Nor is main interrupted, before it gives its kernel thread away. */
	CHECK_INT(marcel_setpreemptible(0, NULL), 0);
	t = start(computes_first, NULL);
	while (load_relaxed(&first_on) == 0)
		marcel_yield();
	CHECK_INT(load_relaxed(&first_on), getpid());
	store_relaxed(&stop, 1);
	fence_and_close(&b);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(who_is_in_a_fence_holds_up_nobody_that_was_interrupted_there)
{
	if (BASE_TSAN)
		check_skip("TSan has no tick");
	with_slice("1000", 1, let_through_by_who_was_interrupted);
}
