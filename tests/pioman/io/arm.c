/* pioman/io/blocking: when an ltask is armed, and what that changes. */
#include "../probe.h"

#include <dirent.h>
#include <string.h>

#include "../../../pioman/io/blocking.h"
#include "../../../pioman/state.h"
#include "pipes.h"
#include "rounds.h"

/* How many ltasks' descriptors are in pioman's set. */
static int watched(int fd)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	char path[300], line[256];
	struct dirent *e;
	int n = 0, tfd;
	FILE *f;

	CHECK(dir != NULL);
	while ((e = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", e->d_name);
		f = fopen(path, "r");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			n += sscanf(line, "tfd: %d", &tfd) == 1 && tfd == fd;
		if (f != NULL)
			fclose(f);
	}
	closedir(dir);
	return n;
}

TEST(it_is_armed_when_it_was_asked_in_vain_for_long_enough)
{
	struct reader r;

	with_option("PIOM_IDLE_US", "100");
	reader_init(&r, NULL);
	piom_ltask_submit(&r.task);
	CHECK(pending_after(0));
	CHECK(pending_after(99999));
	CHECK_INT(watched(r.fd[0]), 0);
	CHECK(!pending_after(100000));
	CHECK_INT(watched(r.fd[0]), 1);
	CHECK(!pending_after(0));
	reader_end(&r);
	CHECK_INT(watched(r.fd[0]), 0);
}

TEST(its_own_delay_goes_before_the_idle_time)
{
	struct piom_blocking how = { .delay_ns = 5000 };
	struct reader r;

	reader_init(&r, NULL);
	how.fd = r.fd[0];
	CHECK_INT(piom_ltask_set_blocking(&r.task, &how), 0);
	piom_ltask_submit(&r.task);
	CHECK(pending_after(4999));
	CHECK(!pending_after(5000));
	reader_end(&r);
}

TEST(in_mode_poll_it_is_never_armed)
{
	struct reader r;

	with_option("PIOM_MODE", "poll");
	reader_init(&r, NULL);
	piom_ltask_submit(&r.task);
	CHECK(pending_after(PIOM_LAST));
	reader_end(&r);
}

TEST(in_mode_interrupt_it_is_armed_at_once)
{
	struct reader r;

	with_option("PIOM_MODE", "interrupt");
	reader_init(&r, NULL);
	piom_ltask_submit(&r.task);
	CHECK(!pending_after(0));
	reader_end(&r);
}

TEST(what_comes_unasked_is_armed_for_or_left_alone)
{
	static const char *const modes[] = { "auto", "interrupt", "poll" };
	struct piom_blocking how = { .delay_ns = 5000, .unasked = true };
	struct reader r;

	for (int i = 0; i < 3; i++) {
		with_option("PIOM_MODE", modes[i]);
		reader_init(&r, NULL);
		r.unasked = true;
		how.fd = r.fd[0];
		CHECK_INT(piom_ltask_set_blocking(&r.task, &how), 0);
		piom_ltask_submit(&r.task);
		CHECK_INT(pending_after(4999), i == 0);
		CHECK(!pending_after(5000));
		CHECK_INT(watched(r.fd[0]), i < 2);
		reader_end(&r);
	}
}

TEST(who_is_quiet_and_did_not_ask_for_it_is_not_armed)
{
	struct reader r;

	reader_init(&r, NULL);
	r.unasked = true;
	piom_ltask_submit(&r.task);
	CHECK(!pending_after(PIOM_LAST));
	CHECK_INT(watched(r.fd[0]), 0);
	reader_end(&r);
}

/* Who polls in passing may not come back: he arms as the watcher would. */
TEST(who_is_called_in_passing_leaves_nothing_to_be_asked)
{
	struct piom_queue *q = piom_tree_machine();
	static struct gate g;
	static int vp = 0;
	struct reader r;
	pthread_t t;

	reader_init(&r, NULL);
	piom_ltask_submit(&r.task);
	t = gate_enter(&g, &vp);
	piom_queue_call(q);
	store_release(&g.open, 1);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK(!piom_queue_is_pending(q));
	reader_end(&r);
}

TEST(what_comes_runs_it_though_nobody_polls)
{
	struct reader r;

	reader_init(&r, NULL);
	piom_ltask_submit(&r.task);
	for (int i = 1; i <= 100; i++) {
		while (pending_after(PIOM_LAST))
			sched_yield(); /* the watcher is still there */
		feed(&r);
		while (load_relaxed(&r.bytes) < i)
			sched_yield();
	}
	reader_end(&r);
}

/* It came between the run and the arming. */
static int feed_late(void *arg)
{
	feed(arg);
	return 0;
}

TEST(what_came_before_it_was_armed_runs_it_too)
{
	struct reader r;

	reader_init(&r, feed_late);
	piom_ltask_submit(&r.task);
	fake_be_vp(0);
	piom_poll_all(0, PIOM_LAST, PIOM_POINT_WAIT);
	while (load_relaxed(&r.bytes) < 3)
		sched_yield();
	reader_end(&r);
}

static int refuse(void *arg)
{
	return load_relaxed(&((struct reader *)arg)->runs) < 10;
}

TEST(who_cannot_be_armed_yet_is_asked_on)
{
	struct reader r;

	reader_init(&r, refuse);
	piom_ltask_submit(&r.task);
	while (pending_after(PIOM_LAST))
		CHECK(load_relaxed(&r.runs) < 10);
	CHECK(load_relaxed(&r.runs) >= 10);
	reader_end(&r);
}

TEST(one_that_is_armed_does_not_hide_another_that_is_not)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };
	struct reader r;

	reader_init(&r, NULL);
	piom_ltask_submit(&r.task);
	submit(&p, PIOM_LTASK_REPEAT, 0);
	CHECK(pending_after(PIOM_LAST));
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
	CHECK(!pending_after(PIOM_LAST));
	reader_end(&r);
}

TEST(it_is_armed_again_after_a_restart)
{
	struct reader r;

	reader_init(&r, NULL);
	for (int i = 1; i <= 3; i++) {
		piom_ltask_submit(&r.task);
		CHECK(!pending_after(PIOM_LAST));
		feed(&r);
		while (load_relaxed(&r.bytes) < i)
			sched_yield();
		CHECK_INT(piom_ltask_cancel(&r.task), 0);
		CHECK_INT(watched(r.fd[0]), 0);
		CHECK_INT(piom_exit(), 0);
		CHECK_INT(piom_init(), 0);
	}
	close(r.fd[0]);
	close(r.fd[1]);
}

TEST(what_is_cancelled_while_it_is_armed_and_submitted_again_is_armed_again)
{
	struct reader r;

	reader_init(&r, NULL);
	for (int i = 1; i <= 3; i++) {
		piom_ltask_submit(&r.task);
		CHECK(!pending_after(PIOM_LAST));
		CHECK_INT(watched(r.fd[0]), 1);
		CHECK_INT(piom_ltask_cancel(&r.task), 0);
	}
	piom_ltask_submit(&r.task);
	CHECK(!pending_after(PIOM_LAST));
	feed(&r);
	while (load_relaxed(&r.bytes) < 1)
		sched_yield();
	reader_end(&r);
}

static void nothing(void *arg)
{
	(void)arg;
}

TEST(a_descriptor_that_nobody_can_wait_for_is_refused)
{
	struct piom_blocking how = { .delay_ns = PIOM_BLOCKING_AUTO };
	struct piom_ltask t;
	marcel_vpset_t set = { { 1 } };
	FILE *file = tmpfile();
	int fd[2];

	CHECK_INT(pipe(fd), 0);
	piom_ltask_init(&t, probe_run, NULL, PIOM_LTASK_REPEAT, NULL);
	how.fd = fileno(file);
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EPERM);
	how.fd = -1;
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EBADF);
	how.fd = fd[0];
	piom_ltask_init(&t, probe_run, NULL, PIOM_LTASK_ONESHOT, NULL);
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EINVAL);
	piom_ltask_init(&t, probe_run, NULL,
			PIOM_LTASK_REPEAT | PIOM_LTASK_NOWAIT, NULL);
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EINVAL);
	piom_ltask_init(&t, probe_run, NULL, PIOM_LTASK_REPEAT, &set);
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EINVAL);
	piom_ltask_init(&t, probe_run, NULL, PIOM_LTASK_REPEAT, NULL);
	how.wait = how.wake = nothing;
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EINVAL);
	how.fd = -1;
	how.wake = NULL;
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EINVAL);
	how.wake = nothing;
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EINVAL); /* no arm() */
	how.wait = NULL;
	CHECK_INT(piom_ltask_set_blocking(&t, &how), -EINVAL);
	fclose(file);
	close(fd[0]);
	close(fd[1]);
}

static int promise(void *arg)
{
	(void)arg;
	return 0;
}

/* Where it cannot be armed, what is not awaited keeps nobody awake. */
TEST(who_may_not_have_a_kernel_thread_counts_on_nothing_unasked)
{
	struct piom_blocking how = { .fd = -1,
				     .wait = nothing,
				     .wake = nothing,
				     .arm = promise,
				     .unasked = true };
	struct probe p = { .answer = PIOM_LTASK_QUIET };

	with_option("PIOM_LWP_MAX", "0");
	piom_ltask_init(&p.task, probe_run, &p, PIOM_LTASK_REPEAT, NULL);
	CHECK_INT(piom_ltask_set_blocking(&p.task, &how), 0);
	piom_ltask_submit(&p.task);
	CHECK(!pending_after(PIOM_LAST));
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

/* Closed too early, or of two ltasks: a warning, and polling. */
TEST(what_the_kernel_does_not_take_is_polled)
{
	struct reader r;
	int saved;

	reader_init(&r, NULL);
	saved = dup(r.fd[0]);
	close(r.fd[0]);
	piom_ltask_submit(&r.task);
	CHECK(pending_after(PIOM_LAST));
	CHECK_INT(dup2(saved, r.fd[0]), r.fd[0]);
	close(saved);
	feed(&r);
	CHECK(pending_after(PIOM_LAST));
	CHECK_INT(load_relaxed(&r.bytes), 1);
	reader_end(&r);
}
