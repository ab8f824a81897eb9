/*
 * marcel/io: who sleeps in any of the calls holds up nobody, and is cancelled
 * there.
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
