/*
 * The machine that a test runs on, as the kernel sees it: tools/lab/numa runs
 * such tests on several, and says in TEST_MACHINE what they must find there:
 * nodes, cores of each and L3 caches.
 */
#ifndef TESTS_MARCEL_HERE_H
#define TESTS_MARCEL_HERE_H

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../../marcel/sched/vp.h"
#include "with.h"

struct here {
	unsigned cpu, node;
};

/* Where the calling kernel thread is. */
static inline struct here here(void)
{
	struct here h;

	CHECK_INT(syscall(SYS_getcpu, &h.cpu, &h.node, NULL), 0);
	return h;
}

/* On each VP in turn, a thread that may run there only. */
static inline void on_each_vp(void *(*fn)(void *), void *arg)
{
	marcel_attr_t attr;
	marcel_t t;

	for (int vp = 0; vp < marcel_nvp(); vp++) {
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
		CHECK_INT(marcel_create(&t, &attr, fn, arg), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
}

static inline void *note_node(void *arg)
{
	((unsigned *)arg)[marcel_current_vp()] = here().node;
	return NULL;
}

/* Who has only said so looks round once more. */
static inline bool sleeps(struct marcel_vp *vp)
{
	return load_relaxed(&vp->sleeper.asleep) == MARCEL_ASLEEP &&
	       os_thread_sleeps(load_relaxed(&marcel_vp_lwp(vp)->tid));
}

/* Until all VPs but this one do. */
static inline void until_others_sleep(void)
{
	for (int vp = 0; vp < marcel_nvp(); vp++)
		while (vp != marcel_current_vp() &&
		       !sleeps(&marcel_sched.vps[vp]))
			sched_yield();
}

#endif
