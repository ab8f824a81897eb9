/*
 * Signals that threads send each other: <marcel/signal.h>.
 *
 * Who sends one marks the thread by a flag, which a pick looks at together with
 * KEPT. Who picks it holds it, and its context is saved; so a context is made
 * below that one on its stack, in which it takes its signals and then goes on
 * to the first. No switch, wake or entry knows of it. A thread that computes
 * takes them in the handler of the tick.
 */
#include "signal.h"

#include <marcel/errno.h>
#include <pthread.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <base/diag.h>
#include <marcel/hook.h>
#include "../sched/enter.h"
#include "../sched/hook.h"
#include "../thread/cancel.h"
#include "../sched/switch.h"
#include "../sched/tick.h"
#include "../thread/look.h"

struct base_spin marcel_signal_lock = BASE_SPIN_INIT(BASE_RANK_SYNC);

/* --- sets --- */

uint64_t marcel_signal_bits(const sigset_t *set)
{
	uint64_t bits = 0;

	for (int i = 1; i <= MARCEL_SIGNALS; i++)
		if (sigismember(set, i) == 1)
			bits |= marcel_signal_bit(i);
	return bits;
}

void marcel_signal_set(uint64_t bits, sigset_t *out)
{
	sigemptyset(out);
	for (int i = 1; i <= MARCEL_SIGNALS; i++)
		if (bits & marcel_signal_bit(i))
			sigaddset(out, i); /* fails for libc's own */
}

uint64_t marcel_signal_reserved(void)
{
	uint64_t ours = 0;
	sigset_t all;

	sigfillset(&all); /* but libc's own */
	if (marcel_sched.signal != 0)
		ours = marcel_signal_bit(marcel_sched.signal) |
		       marcel_signal_bit(marcel_sched.break_signal);
	return ~marcel_signal_bits(&all) | ours;
}

static uint64_t not_to_be_blocked(void)
{
	return marcel_signal_reserved() | marcel_signal_bit(SIGKILL) |
	       marcel_signal_bit(SIGSTOP);
}

/* --- to take them --- */

/* As if the kernel had sent it to this kernel thread. */
static void act_by_default(int signal)
{
	sigset_t one, old;

	sigemptyset(&one);
	sigaddset(&one, signal);
	pthread_sigmask(SIG_UNBLOCK, &one, &old);
	raise(signal);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void change_mask(struct marcel_thread *self, uint64_t blocked)
{
	base_spin_lock(&marcel_signal_lock);
	self->rest->blocked = blocked & ~not_to_be_blocked();
	base_spin_unlock(&marcel_signal_lock);
}

static void call(const struct sigaction *sa, int signal)
{
	siginfo_t info = { .si_signo = signal, .si_code = SI_TKILL };
	ucontext_t here;

	if (!(sa->sa_flags & SA_SIGINFO)) {
		sa->sa_handler(signal);
		return;
	}
	info.si_pid = getpid();
	info.si_uid = getuid();
	getcontext(&here);
	sa->sa_sigaction(signal, &info, &here);
}

static void act(struct marcel_thread *self, int signal, uint64_t blocked)
{
	struct sigaction sa, none = { .sa_handler = SIG_DFL };
	uint64_t more;

	if (sigaction(signal, NULL, &sa) < 0)
		return;
	if (!(sa.sa_flags & SA_SIGINFO) && sa.sa_handler == SIG_IGN)
		return;
	if (!(sa.sa_flags & SA_SIGINFO) && sa.sa_handler == SIG_DFL) {
		act_by_default(signal);
		return;
	}
	if (sa.sa_flags & SA_RESETHAND)
		sigaction(signal, &none, NULL);
	more = marcel_signal_bits(&sa.sa_mask);
	if (!(sa.sa_flags & SA_NODEFER))
		more |= marcel_signal_bit(signal);
	change_mask(self, blocked | more);
	call(&sa, signal);
	change_mask(self, blocked);
}

/*
 * One that is pending and not blocked, nor one of those for later; 0: none, and
 * unless there are some for later the flag is gone.
 */
static int next(struct marcel_thread *self, uint64_t *blocked, uint64_t later)
{
	uint64_t ready, now;
	int signal = 0;

	base_spin_lock(&marcel_signal_lock);
	*blocked = self->rest->blocked;
	ready = self->rest->pending & ~*blocked;
	now = ready & ~later;
	if (now != 0) {
		signal = __builtin_ctzll(now) + 1;
		self->rest->pending &= ~marcel_signal_bit(signal);
	} else if (ready == 0) {
		fetch_and_relaxed(&self->flags, (uint16_t)~MARCEL_F_SIGNAL);
	}
	base_spin_unlock(&marcel_signal_lock);
	return signal;
}

void marcel_signal_take(struct marcel_thread *self, uint64_t later)
{
	uint64_t blocked;
	int signal, saved = *marcel_errno_location();

	while ((signal = next(self, &blocked, later)) != 0)
		act(self, signal, blocked);
	*marcel_errno_location() = saved;
}

/* --- on the way to a thread --- */

/* Where a thread that takes signals goes on afterwards; on its stack. */
struct marcel_detour {
	struct marcel_ctx back;
	struct marcel_detour *next; /* its own, made before */
};

/* Its frame is left for good, so it must leave no marks in ASan's shadow. */
static BASE_NO_ASAN void take_first(void *value)
{
	struct marcel_vp *vp = value;
	struct marcel_thread *self = marcel_vp_current(vp);
	struct marcel_detour *d = self->rest->detours;
	struct marcel_ctx here;
	uint32_t held;

	marcel_san_finish(NULL);
	marcel_switch_after(vp);
	self->rest->detours = d->next;
	marcel_san_leave();
	marcel_leave(vp);
	held = marcel_cancel_hold(self);
	marcel_signal_take(self, 0);
	marcel_cancel_unhold(self, held);
	vp = marcel_enter();
	marcel_san_return(self);
	marcel_ctx_switch(&here, &d->back, vp);
	__builtin_unreachable();
}

void marcel_signal_arrive(struct marcel_thread *t)
{
	uintptr_t place = (uintptr_t)marcel_ctx_low(&t->ctx);
	struct marcel_detour *d;

	place = (place - sizeof(*d)) & ~(uintptr_t)15;
	d = (struct marcel_detour *)place;
	d->back = t->ctx;
	d->next = t->rest->detours;
	t->rest->detours = d;
	marcel_ctx_make(&t->ctx, d, take_first);
	fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_SIGNAL);
}

/*
 * With one VP threads that only yield are entered by a rotation of the fifo,
 * which looks at none; so if nothing else closes that way, the pick is to be
 * the one of another queue. (TSan does not know that threads of a VP take
 * turns.)
 */
static BASE_NO_TSAN enum marcel_hook_answer look_at_each(void *arg, int vp)
{
	struct marcel_vp *v = &marcel_sched.vps[vp];

	(void)arg;
	if (v->sole && load_relaxed(&v->next.entry) == 0)
		v->fair_at = load_relaxed(&v->picks) + 1;
	return MARCEL_HOOK_NOTHING;
}

static struct marcel_hook hook = { .fn = look_at_each, .arg = MARCEL_HOOK_OWN };
static ATOMIC(int) is_hooked; /* a: relaxed */

/* --- to send them --- */

/* From now on threads that are made have to be told of masks. */
static void are_used(void)
{
	if (!(load_relaxed(&marcel_sched.scarce) & MARCEL_SCARCE_SIGNALS))
		fetch_or_relaxed(&marcel_sched.scarce, MARCEL_SCARCE_SIGNALS);
}

static void send_locked(struct marcel_thread *t, int signal)
{
	siginfo_t info = { .si_signo = signal, .si_code = SI_TKILL };
	struct marcel_sigwait *w;

	info.si_pid = getpid();
	info.si_uid = getuid();
	w = t->rest->sigwait;
	if (w != NULL && (w->set & marcel_signal_bit(signal)) &&
	    marcel_sigwait_grant_locked(w, signal, &info))
		return;
	t->rest->pending |= marcel_signal_bit(signal);
	if (!(t->rest->blocked & marcel_signal_bit(signal)))
		fetch_or_relaxed(&t->flags, MARCEL_F_SIGNAL);
}

static int send_foreign(struct marcel_thread *t, int signal)
{
	if (t != marcel_thread_self())
		return EINVAL;
	return pthread_kill(pthread_self(), signal);
}

BASE_PUBLIC int marcel_kill(marcel_t t, int signal)
{
	if (!marcel_thread_is_alive(t))
		return ESRCH;
	if (signal < 0 || signal > MARCEL_SIGNALS ||
	    (signal != 0 &&
	     marcel_signal_reserved() & marcel_signal_bit(signal)))
		return EINVAL;
	if (signal == 0)
		return 0;
	if (marcel_thread_has(t, MARCEL_F_FOREIGN))
		return send_foreign(t, signal);
	if (signal == SIGKILL || signal == SIGSTOP)
		return kill(getpid(), signal) < 0 ? errno : 0;
	are_used();
	if (marcel_sched.nvp == 1 && xchg_relaxed(&is_hooked, 1) == 0 &&
	    marcel_hook_add(MARCEL_HOOK_SWITCH, &hook) < 0)
		base_warn("marcel", "too many switch hooks: signals may be "
				    "late");
	base_spin_lock(&marcel_signal_lock);
	send_locked(t, signal);
	base_spin_unlock(&marcel_signal_lock);
	if (t == marcel_thread_self())
		marcel_signal_take(t, 0);
	else
		marcel_monitor_call_adrift();
	return 0;
}

/* --- masks --- */

void marcel_signal_inherit(struct marcel_thread *t)
{
	struct marcel_thread *self = marcel_thread_self();
	sigset_t kernels;

	t->rest->pending = 0;
	if (!marcel_thread_has(self, MARCEL_F_FOREIGN)) {
		t->rest->blocked = self->rest->blocked;
		return;
	}
	pthread_sigmask(SIG_SETMASK, NULL, &kernels);
	t->rest->blocked = marcel_signal_bits(&kernels) & ~not_to_be_blocked();
}

static int mask(struct marcel_thread *self, int how, const sigset_t *set)
{
	uint64_t bits = marcel_signal_bits(set);

	switch (how) {
	case SIG_BLOCK:
		bits |= self->rest->blocked;
		break;
	case SIG_UNBLOCK:
		bits = self->rest->blocked & ~bits;
		break;
	case SIG_SETMASK:
		break;
	default:
		return EINVAL;
	}
	are_used();
	change_mask(self, bits);
	marcel_signal_take(self, 0);
	return 0;
}

BASE_PUBLIC int marcel_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	struct marcel_thread *self = marcel_thread_self();
	uint64_t before;
	int rc = 0;

	if (marcel_thread_has(self, MARCEL_F_FOREIGN))
		return pthread_sigmask(how, set, old);
	before = self->rest->blocked;
	if (set != NULL)
		rc = mask(self, how, set);
	if (rc == 0 && old != NULL)
		marcel_signal_set(before, old);
	return rc;
}

BASE_PUBLIC int marcel_sigpending(sigset_t *out)
{
	struct marcel_thread *self = marcel_thread_self();
	uint64_t pending;

	if (marcel_thread_has(self, MARCEL_F_FOREIGN))
		return sigpending(out);
	base_spin_lock(&marcel_signal_lock);
	pending = self->rest->pending;
	base_spin_unlock(&marcel_signal_lock);
	marcel_signal_set(pending, out);
	return 0;
}

/* --- init, exit --- */

void marcel_signal_init(struct marcel_thread *main, uint64_t before)
{
	sigset_t kernels;

	pthread_sigmask(SIG_SETMASK, NULL, &kernels);
	main->rest->pending = 0;
	main->rest->blocked =
		(before | marcel_signal_bits(&kernels)) & ~not_to_be_blocked();
	if (main->rest->blocked != 0)
		are_used();
}

void marcel_signal_exit(void)
{
	marcel_process_signals_stop();
	if (xchg_relaxed(&is_hooked, 0) != 0)
		marcel_hook_remove(MARCEL_HOOK_SWITCH, &hook);
}

void marcel_signal_forked(void)
{
	marcel_sigwaits_forked();
	store_relaxed(&is_hooked, 0);
	marcel_process_signals_forked();
}
