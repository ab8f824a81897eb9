/*
 * marcel/thread/priority.c: who looks at a thread that is favoured, and sees
 * its time to be over, changes nothing of the one that has its descriptor next.
 *
 * covers: spin
 */
#include "explore.h"

#include "../../marcel/base/spin.c"
#include "../../marcel/thread/priority.c"

static struct marcel_thread_rest rest;
static struct marcel_thread thread = { .rest = &rest };

/* Time stands still: what ends at 1 s is over. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
	*out = (struct timespec){ .tv_sec = 1 };
	return 0;
}

/* As the monitor, which holds no thread. */
static void looks(void *arg)
{
	marcel_thread_is_urgent(&thread);
}

/* The thread has ended, and was joined: as put() does, and who makes another.*/
static void makes_another(void *arg)
{
	marcel_thread_no_favour(&thread);
	store_relaxed(&thread.flags, 0);
}

static void it_is_normal(void)
{
	explore_check(marcel_thread_band(&thread) == MARCEL_BAND_NORMAL);
	explore_check(load_relaxed(&rest.favour) == 0);
}

EXPLORE(a_late_look_changes_no_other_thread)
{
	marcel_thread_set_priority(&thread, MARCEL_PRIORITY_IDLE);
	marcel_favour(&thread, UINT64_MAX);
	store_relaxed(&rest.favour, 1); /* long ago */
	explore_name(&thread, sizeof(thread), "thread");
	explore_name(&rest, sizeof(rest), "rest");
	explore_name(locks, sizeof(locks), "lock");
	explore_spawn("monitor", looks, NULL);
	explore_spawn("owner", makes_another, NULL);
	explore_finish(it_is_normal);
}
