/*
 * marcel/sync/cond.c with a time: a wait is signalled or runs out, once;
 * neither the frame of who waited nor the condition is touched when they are
 * gone.
 *
 * covers: guard
 */
#include "sync_timers.h"

#include "../../marcel/sync/waitq.c"
#include "../../marcel/sync/mutex.c"
#undef QUEUED
#include "../../marcel/sync/cond.c"

static marcel_mutex_t mutex;
static marcel_cond_t cond;
static bool flag, waited;

static void names(void)
{
	world_init();
	name_timers();
	explore_name(&mutex, sizeof(mutex), "mutex");
	explore_name(&cond, sizeof(cond), "cond");
	explore_name(&flag, sizeof(flag), "flag");
}

static void wait(void *arg)
{
	int rc = 0;

	marcel_mutex_lock(&mutex);
	waited = true;
	if (!flag) {
		rc = marcel_cond_timedwait(&cond, &mutex, &soon);
		explore_check(flag || rc != 0);
	}
	marcel_mutex_unlock(&mutex);
	note(rc);
	frames_are_gone(__builtin_frame_address(0));
}

static void broadcast_and_free(void *arg)
{
	marcel_mutex_lock(&mutex);
	flag = true;
	if (waited) {
		marcel_cond_broadcast(&cond);
		explore_gone(&cond, sizeof(cond));
	}
	marcel_mutex_unlock(&mutex);
}

EXPLORE(a_condition_is_gone_right_after_its_broadcast)
{
	names();
	explore_spawn("waiter", wait, NULL);
	explore_spawn("frees", broadcast_and_free, NULL);
	explore_spawn("expires", time_passes, NULL);
	explore_finish(one_end);
}
