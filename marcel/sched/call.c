/*
 * Calls that sleep in the kernel: no tick ends them, a cancellation does.
 *
 * The monitor sends no tick to who is in a section, but one may be on its way,
 * and of many calls signal(7) says that they fail with EINTR then, or no longer
 * wait as long as they were to. So the LWP blocks the tick meanwhile. (A user's
 * handler that forks must not hand that on, nor who becomes another program:
 * marcel_hush_lift().)
 *
 * While a call lasts the `wait` of its thread (thread/cancel.h) names the LWP
 * on which it sleeps, and to take it out is to send that a signal of its own,
 * which is never blocked. Its handler has the call fail with EINTR: if the
 * kernel was about to begin, or to begin again, it goes on behind the
 * instruction. So nothing that a call has done is lost, and its caller ends
 * only if it has failed. If the signal comes between our look and the
 * instruction, a timer of the kernel repeats it.
 */
#include <marcel/errno.h>
#include <signal.h>

#include <marcel/blocking.h>

#include "../os/os.h"
#include "../os/tls.h"
#include "../thread/cancel.h"
#include "block.h"
#include "sanitizer.h"
#include "tick.h"

enum { AGAIN_NS = 100000 };

static struct {
	int signal;
	struct sigaction before;
} breaker;

/* --- no tick --- */

static void hush(struct marcel_lwp *l, enum marcel_hush who)
{
	/* TSan has no tick. */
	if (l == NULL || BASE_TSAN || marcel_sched.slice_ns == 0)
		return;
	marcel_tick_block(true);
	l->hushed = who;
}

static void unhush(struct marcel_lwp *l)
{
	if (l == NULL || l->hushed == MARCEL_HUSH_NONE)
		return;
	l->hushed = MARCEL_HUSH_NONE;
	marcel_tick_block(false);
}

void marcel_hush_lift(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (unlikely(l != NULL) && l->hushed != MARCEL_HUSH_NONE)
		marcel_tick_block(false);
}

/* Handlers of a fork may have ended the section, elsewhere even. */
void marcel_hush_again(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (unlikely(l != NULL) && l->hushed != MARCEL_HUSH_NONE &&
	    l->hushed != MARCEL_HUSH_OVER)
		marcel_tick_block(true);
}

/* If a user's handler ends it, that returns to the mask of the section. */
void marcel_hush_end(struct marcel_lwp *l)
{
	marcel_tick_block(false);
	l->hushed = MARCEL_HUSH_OVER;
}

void marcel_hush_mask(sigset_t *mask)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (l == NULL || BASE_TSAN)
		return;
	sigaddset(mask, marcel_sched.signal);
	sigdelset(mask, breaker.signal);
}

void marcel_hush_set(sigset_t *set)
{
	if (BASE_TSAN)
		return;
	sigdelset(set, marcel_sched.signal);
	sigdelset(set, breaker.signal);
}

/* --- sections --- */

BASE_PUBLIC void marcel_blocking_begin(void)
{
	base_handler_check("marcel", "marcel_blocking_begin()");
	if (marcel_block_begin())
		hush(cpu_tls_word(), MARCEL_HUSH_SECTION);
}

BASE_PUBLIC void marcel_blocking_end(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (l == NULL)
		return;
	unhush(l);
	marcel_lwp_end_section(l);
}

/* --- cancellation points --- */

static enum marcel_claim claim_call(struct marcel_timer *t)
{
	struct marcel_lwp *l = container_of(t, struct marcel_lwp, call);

	if (!BASE_TSAN &&
	    !os_thread_kill(load_relaxed(&l->tid), breaker.signal))
		return MARCEL_CLAIM_LATER;
	return MARCEL_CLAIM_GONE;
}

static uintptr_t owner_of_vp(struct marcel_lwp *l)
{
	return load_relaxed(&load_relaxed(&l->vp)->owner);
}

BASE_NO_TSAN bool marcel_call_may(struct marcel_lwp *l)
{
	return load_relaxed(&l->inside) == 0 && marcel_tls.pins == 0 &&
	       !l->in_call &&
	       owner_of_vp(l) != ((uintptr_t)l | MARCEL_SECTION) &&
	       load_relaxed(&l->self) != &l->idle;
}

/*
 * Who has lost its VP needs no section. But main's LWP does not sleep for
 * another thread, nor for main while another needs it: there a VP is waited
 * for, and block.c sees to that.
 */
static bool needs_section(struct marcel_lwp *l)
{
	return (owner_of_vp(l) & ~MARCEL_REVOKING) == (uintptr_t)l ||
	       l == &marcel_lwps.first;
}

bool marcel_call_begin(void)
{
	static const struct marcel_timer_kind kind = { .claim = claim_call };
	struct marcel_lwp *l = cpu_tls_word();

	if (needs_section(l) && !marcel_block_begin())
		return false;
	l = cpu_tls_word();
	hush(l, MARCEL_HUSH_CALL);
	marcel_san_acquire(&l->call);
	marcel_timer_set_never(&l->call, &kind, load_relaxed(&l->self));
	l->in_call = true;
	marcel_cancel_show(&l->call);
	marcel_cancel_look(&l->call);
	return true;
}

void marcel_call_alone(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (l != NULL &&
	    (l->hushed == MARCEL_HUSH_NONE || l->hushed == MARCEL_HUSH_OVER))
		hush(l, MARCEL_HUSH_CALL);
}

void marcel_call_end(bool failed)
{
	struct marcel_lwp *l = cpu_tls_word();
	int saved = *marcel_os_errno();

	if (l != NULL)
		marcel_san_acquire(&l->call);
	if (l != NULL && l->in_call) {
		marcel_cancel_hide(&l->call);
		l->in_call = false;
		if (unlikely(l->again != 0))
			os_signal_stop(&l->again);
		*marcel_os_errno() = saved;
	}
	if (l != NULL)
		marcel_san_release(&l->call);
	marcel_blocking_end();
	if (failed)
		marcel_cancel_point();
}

/* Of the thread that runs on l, the caller; TSan knows only threads. */
static BASE_NO_TSAN bool is_in_call(const struct marcel_lwp *l)
{
	return l->in_call;
}

void marcel_call_abandon(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (unlikely(l != NULL && is_in_call(l)))
		marcel_call_end(false);
}

/* --- to break them --- */

static void handle(int signal, siginfo_t *info, void *context)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_thread *t;
	int saved = errno;

	(void)info;
	if (l == NULL || !l->in_call)
		return; /* too late */
	t = load_relaxed(&l->self);
	if (marcel_thread_has(t, MARCEL_F_CANCEL) &&
	    !marcel_thread_has(t, MARCEL_F_SHELTER)) {
		/* Perhaps another call than the one that is to sleep. */
		cpu_context_break_call(context);
		os_signal_soon(&l->again, signal, AGAIN_NS);
	}
	errno = saved;
}

int marcel_call_init(void)
{
	struct sigaction ours = { .sa_sigaction = handle,
				  .sa_flags = SA_SIGINFO | SA_RESTART };

	sigemptyset(&ours.sa_mask);
	/* In a child it was ours already. */
	if (sigaction(marcel_sched.break_signal, &ours,
		      breaker.signal == 0 ? &breaker.before : NULL) < 0)
		return -errno;
	breaker.signal = marcel_sched.break_signal;
	marcel_call_allow();
	return 0;
}

void marcel_call_allow(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, marcel_sched.break_signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void marcel_call_exit(void)
{
	if (breaker.signal != 0)
		sigaction(breaker.signal, &breaker.before, NULL);
	breaker.signal = 0;
}
