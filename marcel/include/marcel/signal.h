/*
 * Signals of user threads. What marcel_kill() sends, a thread takes on its own
 * stack: at once if it sends it to itself, in a function of the runtime's when
 * it next runs after it waited, yielded or was new, or, if it computes, at a
 * tick (so not without time slices, nor if it is not preemptible). So no wait
 * is cut short, and a thread that is in the kernel takes it afterwards.
 *
 * Handlers are the process's, from sigaction(): with SA_NODEFER, SA_RESETHAND
 * and sa_mask; siginfo says SI_TKILL, and the context is where the handler was
 * called from. A handler may have interrupted anything, and may call what POSIX
 * calls async-signal-safe (marcel_sem_post(), too), nothing that waits for
 * another thread or lets one run, as marcel_yield(): what it interrupted may
 * know on which kernel thread it is. What has no handler acts on the whole
 * process. A signal that is pending already is not queued.
 *
 * Signals that the kernel sends to the process are another matter: their
 * handlers run on some kernel thread, with the mask that it had when the
 * runtime was started, and switching there is no good idea. Those that were
 * blocked before that in main can be waited for by marcel_sigwait().
 *
 * Not offered: masks of single user threads for what the kernel sends,
 * alternate stacks (SA_ONSTACK means nothing), EINTR from waits, queued
 * signals.
 */
#ifndef MARCEL_SIGNAL_H
#define MARCEL_SIGNAL_H

#include <signal.h>
#include <sys/select.h> /* sigset_t, in strict C too */

#include <marcel/thread.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * As pthread_kill(), of signal 0 too. ESRCH: t has ended; EINVAL: no such
 * signal, one of libc's or the runtime's own, or t is another foreign thread.
 */
int marcel_kill(marcel_t t, int signal);

/*
 * As pthread_sigmask(), for what marcel_kill() sends; new threads inherit it.
 * A signal that it lets in has been taken on return. A foreign thread's is the
 * kernel's.
 */
int marcel_sigmask(int how, const sigset_t *set, sigset_t *old);

/* As sigpending(), of what marcel_kill() has sent: 0. */
int marcel_sigpending(sigset_t *out);

/*
 * As sigwait(), which returns an error, and sigwaitinfo() and sigtimedwait(),
 * which return the signal, or -1 and errno: EAGAIN, the time is over; EINVAL.
 * Only the calling thread waits. The signals of the set should be blocked.
 */
int marcel_sigwait(const sigset_t *set, int *out);
#ifdef SI_USER /* else <signal.h> has no siginfo_t */
int marcel_sigwaitinfo(const sigset_t *set, siginfo_t *info);
int marcel_sigtimedwait(const sigset_t *set, siginfo_t *info,
			const struct timespec *time);
#endif

#ifdef __cplusplus
}
#endif

#endif
