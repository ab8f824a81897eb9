/*
 * marcel/io: who sleeps in any of the calls holds up nobody, and is cancelled
 * there; what does not sleep is as libc has it.
 */
#include "kinds.h"

#include "../../../marcel/thread/thread.h"

static void *calls(void *arg)
{
	const struct kind *k = arg;

	k->call();
	return arg;
}

/* In the kernel, or about to be. */
static void until_shown(marcel_t t)
{
	while (load_acquire(&t->state) == MARCEL_T_NEW ||
	       load_relaxed(&t->stack->wait) == NULL)
		marcel_yield();
}

/* One VP, no tick: main gives what the other waits for. */
static void others_run(void)
{
	marcel_t t;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		const struct kind *k = &kinds[i];

		if (k->give == NULL)
			continue;
		if (k->before != NULL)
			k->before();
		CHECK_INT(marcel_create(&t, NULL, calls, (void *)k), 0);
		until_shown(t);
		k->give();
		CHECK_INT(marcel_join(t, NULL), 0);
	}
}

TEST(who_sleeps_leaves_the_others_running)
{
	open_all();
	without_ticks(others_run);
	close_all();
}

/* With what was given, the next one is served. */
static void are_cancelled(void)
{
	void *value;
	marcel_t t;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		const struct kind *k = &kinds[i];

		if (k->give == NULL && !k->handlers)
			continue;
		for (int n = 0; n < 3; n++) {
			if (k->before != NULL && n == 0)
				k->before();
			CHECK_INT(marcel_create(&t, NULL, calls, (void *)k), 0);
			if (n > 0)
				until_shown(t);
			CHECK_INT(marcel_cancel(t), 0);
			CHECK_INT(marcel_join(t, &value), 0);
			CHECK_PTR(value, MARCEL_CANCELED);
		}
		if (k->give == NULL)
			continue;
		CHECK_INT(marcel_create(&t, NULL, calls, (void *)k), 0);
		until_shown(t);
		k->give();
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_PTR(value, k);
	}
}

TEST(who_sleeps_is_cancelled_on_1_vp)
{
	open_all();
	with_vps(1, are_cancelled);
	close_all();
}

TEST(who_sleeps_is_cancelled_on_4_vps)
{
	open_all();
	with_vps(4, are_cancelled);
	close_all();
}

/* --- as libc --- */

static void *copies(void *arg)
{
	bool *can = arg;
	struct message m;
	ssize_t n;

	give_message();
	fails(marcel_msgrcv(e.queue, &m, sizeof(m.text), 0, MSG_COPY), EINVAL);
	n = marcel_msgrcv(e.queue, &m, sizeof(m.text), 0,
			  MSG_COPY | IPC_NOWAIT);
	*can = n >= 0;
	if (*can)
		CHECK_INT(m.type, 7);
	else
		CHECK_INT(errno, ENOSYS);
	call_msgrcv(); /* it is there still */
	return NULL;
}

static bool can_copy;

static void copy_everywhere(void)
{
	marcel_t t;

	copies(&can_copy);
	CHECK_INT(marcel_create(&t, NULL, copies, &can_copy), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(a_copy_of_a_message_is_not_waited_for)
{
	open_all();
	with_vps(1, copy_everywhere);
	close_all();
	if (!can_copy)
		check_skip("this kernel copies none (without "
			   "CONFIG_CHECKPOINT_RESTORE): only errors were seen");
}

/* What cannot wait is no cancellation point either. */
static void *tries_to_lock(void *arg)
{
	struct flock all = { .l_type = F_WRLCK };

	CHECK_INT(marcel_cancel(marcel_self()), 0);
	fails(marcel_flock(e.want, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK_INT(marcel_lockf(e.want, F_TLOCK, 0), -1);
	CHECK(errno == EACCES || errno == EAGAIN);
	CHECK_INT(marcel_fcntl(e.want, F_OFD_SETLK, &all), -1);
	CHECK(errno == EACCES || errno == EAGAIN);
	return arg;
}

static void try_locks(void)
{
	void *value;
	marcel_t t;

	lock();
	lock_range();
	CHECK_INT(marcel_create(&t, NULL, tries_to_lock, &e), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, &e);
	give_range();
	give_flock();
}

TEST(a_lock_that_is_tried_is_not_waited_for)
{
	open_all();
	with_vps(1, try_locks);
	close_all();
}
