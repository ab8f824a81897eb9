/*
 * Calls that sleep in the kernel and are cancellation points.
 *
 * While one lasts, the `wait` of its thread (thread/cancel.h) names the LWP on
 * which it sleeps, and to take it out is to send the tick there. The tick's
 * handler has the call fail with EINTR: if the kernel was about to begin, or to
 * begin again, it goes on behind the instruction. So nothing that a call has
 * done is lost, and its caller ends only if it has failed. If the signal comes
 * between our look and the instruction, a timer of the kernel repeats it.
 */
#include <marcel/blocking.h>

#include "../os/os.h"
#include "../thread/cancel.h"
#include "block.h"
#include "sanitizer.h"
#include "tick.h"

enum { AGAIN_NS = 100000 };

static enum marcel_claim claim_call(struct marcel_timer *t)
{
	/* TSan has no tick. */
	if (!BASE_TSAN)
		marcel_tick_send(container_of(t, struct marcel_lwp, call));
	return MARCEL_CLAIM_GONE;
}

bool marcel_call_begin(void)
{
	static const struct marcel_timer_kind kind = { .claim = claim_call };
	struct marcel_lwp *l;

	if (!marcel_block_begin())
		return false;
	l = cpu_tls_word();
	marcel_san_acquire(l);
	marcel_timer_set_never(&l->call, &kind);
	l->in_call = true;
	marcel_cancel_show(&l->call);
	marcel_cancel_look(&l->call);
	return true;
}

void marcel_call_end(bool failed)
{
	struct marcel_lwp *l = cpu_tls_word();
	int saved = *marcel_os_errno();

	if (l != NULL)
		marcel_san_acquire(l);
	if (l != NULL && l->in_call) {
		marcel_cancel_hide(&l->call);
		l->in_call = false;
		if (unlikely(l->again != 0))
			os_signal_stop(&l->again);
		*marcel_os_errno() = saved;
	}
	if (l != NULL)
		marcel_san_release(l);
	marcel_blocking_end();
	if (failed)
		marcel_cancel_point();
}

void marcel_call_break(struct marcel_lwp *l, void *context)
{
	struct marcel_thread *t = load_relaxed(&l->self);

	if (marcel_thread_has(t, MARCEL_F_CANCEL) &&
	    !marcel_thread_has(t, MARCEL_F_SHELTER)) {
		/* Perhaps another call than the one that is to sleep. */
		cpu_context_break_call(context);
		os_signal_soon(&l->again, marcel_sched.signal, AGAIN_NS);
	}
}
