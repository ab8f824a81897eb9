/*
 * marcel/sched/poller.c: any number of threads waits for descriptors, on a
 * bounded number of kernel threads.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <base/spin.h>
#include <marcel/io.h>
#include "../../../marcel/os/os.h"
#include "../../../marcel/sched/vp.h"
#include "../with.h"
#include "../../tasks.h"

enum {
	WANTED = FEWER > 1 ? 500 : 10000,
	FDS_EACH = 3, /* a pipe, and the poller's duplicate */
	FDS_ELSE = 100,
	LWPS = 4,
};

static int pipes[WANTED][2];
static marcel_t readers[WANTED];

/* As many as there may be descriptors for. */
static int readers_max(void)
{
	struct rlimit r = { WANTED * FDS_EACH + FDS_ELSE,
			    WANTED * FDS_EACH + FDS_ELSE };

	if (setrlimit(RLIMIT_NOFILE, &r) < 0) {
		CHECK_INT(getrlimit(RLIMIT_NOFILE, &r), 0);
		r.rlim_cur = r.rlim_max;
		CHECK_INT(setrlimit(RLIMIT_NOFILE, &r), 0);
	}
	if (r.rlim_cur >= WANTED * FDS_EACH + FDS_ELSE)
		return WANTED;
	return ((int)r.rlim_cur - FDS_ELSE) / FDS_EACH;
}

static int is_parked(const struct marcel_info *info, void *arg)
{
	*(int *)arg += info->state == MARCEL_STATE_WAITING &&
		       info->waits != NULL &&
		       strcmp(info->waits, "a descriptor") == 0;
	return 0;
}

/* Kernel threads that are in a reader's call, or sleep there. */
static BASE_NO_TSAN int in_calls(bool asleep)
{
	int n = 0;

	CHECK_INT(marcel_setpreemptible(0, NULL), 0);
	base_spin_lock(&marcel_lwps.lock);
	for (struct marcel_lwp *l = marcel_lwps.all; l != NULL; l = l->all)
		n += l->in_call &&
		     (!asleep || os_thread_sleeps(load_relaxed(&l->tid)));
	base_spin_unlock(&marcel_lwps.lock);
	CHECK_INT(marcel_setpreemptible(1, NULL), 0);
	return n;
}

/* None has returned: nothing was written. */
static bool all_are_blocked(int n)
{
	int parked = 0;

	CHECK_INT(marcel_threads(is_parked, &parked), 0);
	/* To ask thousands whether they sleep takes long. */
	return parked + in_calls(false) >= n && parked + in_calls(true) >= n;
}

static void *reader(void *arg)
{
	int i = (int)(intptr_t)arg;
	char c = 0;

	CHECK_INT(marcel_read(pipes[i][0], &c, 1), 1);
	CHECK_INT(c, 'a' + i % 26);
	return arg;
}

static void body(int nvp)
{
	struct marcel_config config = { .nvp = nvp };
	int n = readers_max();

	/* What was joined before is in /proc for a moment. */
	while (!BASE_TSAN && !BASE_ASAN && kernel_threads() > 1)
		sched_yield();
	setenv("MARCEL_LWP_MAX", BASE_TSAN || BASE_ASAN ? "4096" : "4", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_LWP_MAX");
	for (int i = 0; i < n; i++) {
		CHECK_INT(pipe2(pipes[i], O_CLOEXEC), 0);
		CHECK_INT(marcel_create(&readers[i], NULL, reader,
					(void *)(intptr_t)i),
			  0);
	}
	while (!all_are_blocked(n))
		marcel_yield();
	/* main, the monitor, the poller; and who looks for hangs */
	if (!BASE_TSAN && !BASE_ASAN)
		CHECK(kernel_threads() <=
		      nvp * LWPS + 3 + (getenv("MARCEL_DEADLOCK") != NULL));
	for (int i = n; i-- > 0;) {
		char c = (char)('a' + i % 26);

		CHECK_INT(marcel_write(pipes[i][1], &c, 1), 1);
		CHECK_INT(marcel_join(readers[i], NULL), 0);
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	CHECK_INT(marcel_end(), 0);
}

TEST(ten_thousand_reads_whose_data_arrive_in_reverse_order_on_1_vp)
{
	body(1);
}

TEST(ten_thousand_reads_whose_data_arrive_in_reverse_order_on_4_vps)
{
	body(4);
}
