/*
 * The child of a fork(): what is left of the parent's runtime, and one of its
 * own.
 *
 * The child has one kernel thread, the caller's, and of the parent's runtime
 *
 *	only memory, of which what the caller stands on is alive:
 *
 * its stack and its descriptor, with what these say of itself: name, keys,
 * cleanup handlers, locks that it holds. LWPs, VPs, queues, timers, the monitor
 * and the poller are dead; they may have been in the middle of anything. So
 * lists and caches that others shared are forgotten and locks over them made
 * anew, while what was in them stays mapped and is never used, nor freed: late
 * looks at a descriptor or a VP find one.
 *
 * That is all that fork() costs: most children become another program. Until
 * the child needs more, the caller is a foreign thread among nobody.
 *
 *	fork() -----> LEFT -----------------------> STARTED, as any process
 *	               the first marcel_init(), marcel_create()
 *
 * To start means one VP, which the calling kernel thread drives as LWP 0; the
 * calling thread is main, on whatever stack. The parent's threads, for which
 * objects of the child may still name waiters, are then foreign threads that
 * have gone: to wake one does nothing.
 *
 * A child that was forked inside the runtime, by a hook, a tasklet or a handler
 * of signals that interrupted it there, is half way through something for ever,
 * and starts none.
 */
#include "fork.h"

#include <errno.h>
#include <pthread.h>

#include <base/diag.h>
#include <marcel/marcel.h>
#include "../os/os.h"
#include "../sched/hook.h"
#include "../sched/place.h"
#include "../sched/poller.h"
#include "../sched/start.h"
#include "../sched/tick.h"
#include "../signal/signal.h"
#include "../sync/guard.h"
#include "../sync/late.h"
#include "../trace/trace.h"
#include "cancel.h"
#include "hang.h"
#include "stack.h"

/* Written by the only thread of a new process; is_left also under the lock. */
static struct {
	pthread_mutex_t lock;
	bool is_child;
	bool may_start;
	bool learns;         /* of forks */
	ATOMIC(int) is_left; /* a: relaxed; who sees 0 asks whether it runs */
} child = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool marcel_fork_is_child(void)
{
	return child.is_child;
}

bool marcel_fork_is_left(void)
{
	return load_relaxed(&child.is_left) != 0;
}

bool marcel_fork_has_left(const struct marcel_timers *ts)
{
	if (likely(!child.is_child))
		return false;
	for (int i = 0; i < marcel_nvp(); i++)
		if (ts == &marcel_sched.vps[i].timers)
			return false;
	return true;
}

/* --- in the child, at once --- */

/* Of what can be called without a runtime; somebody may hold them. */
static void renew_locks(void)
{
	base_spin_init(&marcel_place_lock, marcel_place_lock.rank);
	base_spin_init(&marcel_hook_lock, marcel_hook_lock.rank);
	base_spin_init(&marcel_signal_lock, marcel_signal_lock.rank);
	marcel_guard_forked();
	marcel_foreign_forked();
	marcel_thread_forked();
	marcel_cancel_forked();
}

/* What other kernel threads may have been at while the runtime ran. */
static void forget_others(void)
{
	marcel_signal_forked();
	marcel_stack_forked();
	marcel_hook_forked();
	marcel_poller_forked();
	marcel_monitor_forked();
	marcel_lwp_forked();
	base_dump_forked();
	os_threads_forked();
	marcel_hang_forked();
}

/* The caller, which ran on l. */
static void leave_lwp(struct marcel_lwp *l)
{
	struct marcel_thread *t = load_relaxed(&l->self);

	/* A handler of signals forks in the middle of a call. */
	if (l->in_call)
		marcel_cancel_set_wait(t, NULL);
	fetch_and_relaxed(&t->flags,
			  (uint16_t) ~(MARCEL_F_MAIN | MARCEL_F_KEPT |
				       MARCEL_F_SUBSET | MARCEL_F_MOVES |
				       MARCEL_F_SIGNAL));
	fetch_or_relaxed(&t->flags, MARCEL_F_FOREIGN);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	t->home = -1;
	t->rest->lwp = NULL;
	t->rest->returns = false;
	t->rest->pending = 0;
	marcel_tls.lwp = NULL;
	marcel_tls.self = t;
}

static bool is_inside(const struct marcel_lwp *l)
{
	return marcel_tls.pins != 0 ||
	       (l != NULL && load_relaxed(&l->inside) != 0);
}

void marcel_forked(void)
{
	struct marcel_lwp *l = marcel_tls.lwp;
	bool was_left = marcel_fork_is_left();

	renew_locks();
	marcel_trace_forked();
	marcel_priority_forked(l != NULL ? load_relaxed(&l->self) : NULL);
	pthread_mutex_init(&child.lock, NULL);
	/* It runs, or another thread starts or stops it. */
	if (marcel_sched.vps == NULL && marcel_sched.nested == 0)
		return;
	child.may_start = (!was_left || child.may_start) && !is_inside(l);
	child.is_child = true;
	store_relaxed(&child.is_left, 1);
	store_relaxed(&marcel_sched.running, 0);
	forget_others();
	os_cpu_unbind();
	if (l != NULL)
		leave_lwp(l);
	else if (!was_left && marcel_tls.self != NULL)
		marcel_tls.self->rest->blocked = 0; /* the kernel knows */
	marcel_late_forked();
}

/*
 * A sanitizer's allocator does not know of forks, as libc's does, and a kernel
 * thread uses it before it comes to us: the child would find it locked.
 */
static void forks(void)
{
	if (BASE_ASAN || BASE_TSAN)
		os_threads_await();
}

/*
 * Handlers in the child run as they were registered: those of the program may
 * use locks, of which they must not find the parent's waiters. So we are first,
 * and the last one before the fork, unless the runtime is started from another
 * constructor.
 */
__attribute__((constructor(101))) static void learn(void)
{
	if (!child.learns)
		child.learns = pthread_atfork(forks, NULL, marcel_forked) == 0;
}

int marcel_fork_init(void)
{
	learn();
	return child.learns ? 0 : -ENOMEM;
}

/* --- when it needs a runtime --- */

void marcel_fork_leave(void)
{
	pthread_mutex_lock(&child.lock);
	while (marcel_end() == 0)
		;
	store_relaxed(&child.is_left, 1);
	pthread_mutex_unlock(&child.lock);
}

/*
 * Of those that are not foreign only the parent's have not ended, as none does
 * while a runtime of the child's ends. *arg: how many are yet to be joined.
 */
static void leave_behind(struct marcel_thread *t, void *arg)
{
	uint32_t state = load_relaxed(&t->state), *ended = arg;

	if (state == MARCEL_T_FREE || marcel_thread_has(t, MARCEL_F_FOREIGN))
		return;
	/* Another thread that had claimed it is gone: so is its result. */
	if (state == MARCEL_T_ENDED &&
	    load_relaxed(&t->ended) == MARCEL_END_DONE) {
		++*ended;
		return;
	}
	store_relaxed(&t->state, MARCEL_T_FREE);
	store_relaxed(&t->ended, MARCEL_END_DETACHED); /* nobody joins it */
	store_relaxed(&t->flags, MARCEL_F_FOREIGN);
}

int marcel_fork_start(void)
{
	uint32_t ended = 0;
	int rc;

	if (!child.is_child || !child.may_start)
		return -EPERM;
	/* Another kernel thread may just start it, or end it by its own end. */
	pthread_mutex_lock(&child.lock);
	if (marcel_fork_is_left()) {
		marcel_thread_walk(leave_behind, &ended);
		marcel_foreign_keep(marcel_thread_self());
		rc = marcel_start_anew(ended);
		if (rc == 0)
			store_relaxed(&child.is_left, 0);
	} else {
		rc = marcel_is_running() ? 0 : -EPERM;
	}
	pthread_mutex_unlock(&child.lock);
	return rc;
}
