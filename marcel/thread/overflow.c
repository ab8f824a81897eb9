/*
 * Names the thread that ran off its stack, then lets the process die of it.
 *
 * The handler stands on an alternate stack, since the thread has none left.
 * It looks at the fault's address and at the stack pointer: when a signal's
 * frame does not fit, the address says nothing. A fault that is not ours goes
 * to the handler that was there before.
 */
#include "overflow.h"

#include <marcel/errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include <base/diag.h>
#include "../arch/cpu.h"
#include "../sched/vp.h"
#include "apart.h"
#include "stack.h"

enum { HANDLER_BYTES = 16384 }; /* beside the signal's own frame */

static struct sigaction before;
static int is_installed;

static size_t altstack_bytes(void)
{
	return HANDLER_BYTES + getauxval(AT_MINSIGSTKSZ);
}

/* The kernel found no room for the frame of another signal. */
static bool is_refused_frame(const struct marcel_stack *s,
			     const siginfo_t *info, const char *sp)
{
	return info->si_code == SI_KERNEL && sp >= s->low &&
	       sp < s->low + getauxval(AT_MINSIGSTKSZ);
}

/* The thread that ran off its stack, or NULL. */
static struct marcel_thread *victim(const siginfo_t *info, const void *context)
{
	struct marcel_lwp *l = cpu_tls_word();
	const char *sp = cpu_context_sp(context);
	struct marcel_thread *t;

	if (l == NULL)
		return NULL;
	t = load_relaxed(&l->self);
	if (t->stack == NULL)
		return NULL;
	if (marcel_stack_is_guard(t->stack, info->si_addr) ||
	    marcel_stack_is_guard(t->stack, sp) ||
	    marcel_stack_is_smashed(t->stack, sp) ||
	    is_refused_frame(t->stack, info, sp))
		return t;
	return NULL;
}

/* Die of this signal as if nobody had taken it. */
static void die(int sig, const siginfo_t *info)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	sigaction(sig, &dfl, NULL);
	/* A fault comes again on return; what was sent, or refused, not. */
	if (info->si_code <= 0 || info->si_code == SI_KERNEL)
		raise(sig);
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(sig, info, context);
	} else if (before.sa_handler != SIG_DFL &&
		   before.sa_handler != SIG_IGN) {
		before.sa_handler(sig);
	} else {
		die(sig, info);
	}
}

static void report(struct marcel_thread *t)
{
	char name[MARCEL_NAME_MAX];

	marcel_thread_get_name(t, name);
	base_dump("marcel[%d]: stack overflow in thread %p \"%s\": its stack "
		  "has %lu bytes; %s",
		  (int)getpid(), (void *)t, name,
		  (unsigned long)t->stack->bytes,
		  marcel_stack_is_apart(t->stack) &&
				  marcel_apart_is_brought(t->stack)
			  ? "the program brought it by marcel_attr_setstack()"
			  : "raise MARCEL_STACKSIZE or its attribute");
}

void marcel_overflow_found(struct marcel_thread *t)
{
	sigset_t set;

	report(t);
	signal(SIGSEGV, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(SIGSEGV);
	abort();
}

static void handle(int sig, siginfo_t *info, void *context)
{
	struct marcel_thread *t = victim(info, context);
	int saved = errno;

	if (t == NULL) {
		errno = saved;
		pass_on(sig, info, context);
		return;
	}
	report(t);
	die(sig, info);
	errno = saved;
}

int marcel_overflow_init(void)
{
	struct sigaction ours = { .sa_sigaction = handle,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK |
					      SA_NODEFER };

	if (is_installed)
		return 0; /* by the parent of this process */
	if (sigaction(SIGSEGV, &ours, &before) < 0)
		return -errno;
	is_installed = 1;
	return 0;
}

void marcel_overflow_exit(void)
{
	struct sigaction now;

	/* Who took the signal after us keeps it. */
	if (is_installed && sigaction(SIGSEGV, NULL, &now) == 0 &&
	    (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle)
		sigaction(SIGSEGV, &before, NULL);
	is_installed = 0;
}

void *marcel_overflow_lwp_init(void)
{
	stack_t s = { 0 };

	if (sigaltstack(NULL, &s) == 0 && !(s.ss_flags & SS_DISABLE))
		return NULL; /* it has one, a sanitizer's perhaps */
	s.ss_flags = 0;
	s.ss_size = altstack_bytes();
	s.ss_sp = os_map(s.ss_size);
	if (s.ss_sp == NULL)
		return NULL; /* then an overflow has no message */
	if (sigaltstack(&s, NULL) < 0) {
		os_unmap(s.ss_sp, s.ss_size);
		return NULL;
	}
	return s.ss_sp;
}

void marcel_overflow_lwp_exit(void *altstack)
{
	stack_t off = { .ss_flags = SS_DISABLE };

	if (altstack == NULL)
		return;
	sigaltstack(&off, NULL);
	os_unmap(altstack, altstack_bytes());
}
