/*
 * The handler of the tick: hand the VP to another LWP, wait to get one again.
 *
 * A preempted thread keeps its kernel thread (Shiina, Iwasaki, Taura, Balaji,
 * "Lightweight preemptive user-level threads", PPoPP 2021): it waits inside the
 * handler, on its own stack, while the VP goes on with another LWP, and to pick
 * it means to give a VP back to its LWP. So any instruction may be interrupted,
 * what is thread-local stays true, and a lock of libc's that it holds is freed
 * by running it.
 *
 * A thread of asynchronous cancellation type that somebody has cancelled ends
 * here, as if it called marcel_exit() at the instruction that was interrupted;
 * but only if nothing but the program's own code is on its stack. What the
 * program may do there is the program's to know: functions that are not its own
 * are left in the middle of nothing.
 *
 * A thread to which somebody has sent a signal takes it here, as if the kernel
 * had sent it.
 *
 * The frame of the signal lies on the thread's own stack. Where no guard page
 * ends that, this is where a thread that computes and never switches is seen to
 * have run off it, and one whose stack had no room for the frame: too late, but
 * before anybody else runs on this VP, and by its name.
 *
 * Nothing is done inside the runtime, where the VP's fields may be half written
 * and its locks held. The handler makes no LWP: the monitor has one made.
 */
#include "tick.h"

#include <marcel/errno.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <marcel/cancel.h>
#include "../os/os.h"
#include "../os/tls.h"
#include "../signal/signal.h"
#include "../thread/cancel.h"
#include "../thread/watch.h"
#include "../trace/trace.h"
#include "place.h"
#include "runq.h"
#include "sanitizer.h"
#include "tasklet.h"

/* Of an LWP's `ticked`; 0: none is on its way, one may be sent. */
enum { ON_ITS_WAY = 1, HELD };

enum { AGAIN_NS = 1000000 };

static struct {
	int signal;
	struct sigaction before;
} tick;

/* What is done before a thread is entered, on a stack of an LWP's own. */
static bool has_work(struct marcel_vp *vp)
{
	return marcel_tasklets_are_pending(vp) ||
	       load_relaxed(&vp->hook_due) != 0;
}

/*
 * Who takes the VP from t: the LWP that keeps the next thread, told at once;
 * else `any`, which runs that or looks for one itself. The next one is picked
 * here even if `any` has work to do before: there t would be among the others,
 * as if it had waited like them. NULL: the next one, which is handed, is to run
 * where t was interrupted. To go there by `any` would be a race with us, who
 * are not back in our wait yet, which `any` wins if it takes our core: then the
 * next one is stuck until t's turn is over again. Where there is work to do
 * before, it goes by `any` all the same.
 */
static struct marcel_lwp *
next_lwp(struct marcel_vp *vp, struct marcel_thread *t, struct marcel_lwp *any)
{
	struct marcel_thread *next;
	struct marcel_lwp *to;

	if (marcel_timers_are_due(&vp->timers))
		marcel_timers_run(&vp->timers);
	next = marcel_thread_is_urgent(t) ? marcel_runq_pick_urgent(vp)
					  : marcel_runq_pick(vp);
	if (next == NULL)
		return any;
	if (has_work(vp) || !marcel_thread_has(next, MARCEL_F_KEPT)) {
		vp->handed = next;
		return any;
	}
	if (next->rest->lwp == marcel_vp_lwp(vp)) {
		vp->handed = next;
		if (next->rest->lwp != &marcel_lwps.first)
			return any;
		marcel_lwp_put(any);
		return NULL;
	}
	marcel_vp_enters_slow(vp, next); /* not here: who shall drive it? */
	to = marcel_lwp_take_give(vp);
	if (to == NULL)
		return any;
	marcel_lwp_put(any);
	return to;
}

/* The LWP drives its VP: somebody else is to. */
static void hand_over(struct marcel_lwp *l, struct marcel_vp *vp)
{
	struct marcel_thread *t = load_relaxed(&l->self);
	struct marcel_lwp *to;

	if (!marcel_thread_is_preemptible(t))
		return;
	if (!marcel_runq_seems_ready(vp, marcel_thread_band_now(t)) &&
	    !marcel_place_leaves(l, t) && load_relaxed(&vp->hook_due) == 0)
		return;
	marcel_runq_be_fair(vp);
	to = marcel_lwp_take(false);
	to = to != NULL ? next_lwp(vp, t, to) : marcel_lwp_of_kept(vp);
	if (to == NULL) {
		if (!marcel_lwp_make_way(l, vp))
			fetch_add_relaxed(&vp->unpreempted, 1);
		return;
	}
	fetch_add_relaxed(&vp->preempted, 1);
	marcel_trace_vp(vp, MARCEL_TRACE_YIELD, 1, t);
	l->preempted++;
	marcel_lwp_hand(vp, to);
	marcel_lwp_regain(l);
}

/* Whether t, which was interrupted there, is cancelled there. */
static bool is_cancelled(struct marcel_thread *t, const void *context)
{
	return unlikely(marcel_cancel_is_due(t)) && t->stack != NULL &&
	       marcel_thread_is_preemptible(t) &&
	       os_may_end(context, marcel_thread_first, t->stack->fn);
}

/* The unwinder knows the frame of a signal; of its mask it knows nothing. */
static BASE_COLD BASE_NORETURN void end_there(const ucontext_t *uc)
{
	pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, NULL);
	marcel_exit(MARCEL_CANCELED);
}

/*
 * Ticks come again, as to whatever it computes. What was interrupted may be a
 * handler of a signal that the kernel has sent: what is blocked for that one
 * comes later.
 */
static BASE_COLD void take_signals(struct marcel_thread *t,
				   const ucontext_t *uc)
{
	uint64_t later = marcel_signal_bits(&uc->uc_sigmask) &
			 ~marcel_signal_bits(&marcel_lwps.mask);
	uint32_t held = marcel_cancel_hold(t);
	sigset_t ours;

	pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, &ours);
	marcel_signal_take(t, later);
	pthread_sigmask(SIG_SETMASK, &ours, NULL);
	marcel_cancel_unhold(t, held);
}

static void handle(int signal, siginfo_t *info, void *context)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_thread *t;
	bool ends = false, takes = false;
	int saved = errno;
	uintptr_t owner;

	(void)signal;
	(void)info;
	if (l != NULL)
		store_relaxed(&l->ticked, 0);
	if (l == NULL || load_relaxed(&l->inside) != 0 || marcel_tls.pins != 0)
		return;
	t = load_relaxed(&l->self);
	store_light(&l->inside, 1); /* order(revoke) */
	marcel_watch_look(t);
	t->rest->interrupted = context;
	owner = load_light(&load_relaxed(&l->vp)->owner); /* order(revoke) */
	if (owner != ((uintptr_t)l | MARCEL_SECTION)) {
		if (owner == (uintptr_t)l)
			hand_over(l, load_relaxed(&l->vp));
		else /* it lost its VP; main may need LWP 0 */
			marcel_lwp_regain(l);
		ends = is_cancelled(t, context);
		takes = marcel_thread_has(t, MARCEL_F_SIGNAL) &&
			marcel_thread_is_preemptible(t);
	}
	t->rest->interrupted = NULL;
	marcel_lwp_leaves(l, 0);
	if (unlikely(ends))
		end_there(context);
	if (unlikely(takes))
		take_signals(t, context);
	errno = saved;
}

void marcel_tick_send(struct marcel_lwp *l)
{
	uint32_t none = 0;

	/* Signals of this kind queue; one is enough. */
	if (cas_relaxed(&l->ticked, &none, ON_ITS_WAY) &&
	    !os_thread_kill(load_relaxed(&l->tid), tick.signal))
		store_relaxed(&l->ticked, 0); /* they queue up to a limit */
}

/*
 * One that is pending, even because the program has blocked it, survives until
 * the new program lets it through: it is taken here. No handler comes between,
 * which might want the same. One that could not be sent never comes, and its
 * sender says so, to nobody in particular: hence the time.
 */
struct marcel_lwp *marcel_tick_hold(void)
{
	struct marcel_lwp *l = marcel_lwp_here();
	uint32_t was = 0;
	sigset_t all, old;

	if (l == NULL || marcel_sched.slice_ns == 0)
		return NULL;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (; !cas_relaxed(&l->ticked, &was, HELD) && was != HELD; was = 0)
		if (os_signal_take(tick.signal, AGAIN_NS))
			store_relaxed(&l->ticked, 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return was == HELD ? NULL : l;
}

void marcel_tick_release(struct marcel_lwp *l)
{
	if (l != NULL)
		store_relaxed(&l->ticked, 0);
}

int marcel_tick_init(void)
{
	int signal = marcel_sched.signal;
	struct sigaction ours = { .sa_sigaction = handle,
				  .sa_flags = SA_SIGINFO | SA_RESTART };

	sigemptyset(&ours.sa_mask);
	/* In a child it was ours already. */
	if (sigaction(signal, &ours, tick.signal == 0 ? &tick.before : NULL) <
	    0)
		return -errno;
	tick.signal = signal;
	marcel_tick_block(false);
	return 0;
}

void marcel_tick_block(bool block)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, marcel_sched.signal);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void marcel_tick_exit(void)
{
	if (tick.signal != 0)
		sigaction(tick.signal, &tick.before, NULL);
	tick.signal = 0;
}
