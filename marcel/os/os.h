/*
 * What marcel asks of the operating system. os/linux/ keeps the promises.
 */
#ifndef MARCEL_OS_H
#define MARCEL_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/*
 * Sleep while the 32-bit word is `value`; may return early. Process-private.
 * Never fails: a word that differs, a signal and a wake look the same.
 */
void os_futex_wait(void *word, uint32_t value);

/* The same for at most so long. */
void os_futex_wait_for(void *word, uint32_t value, uint64_t ns);

/*
 * The same, but not past a time by CLOCK_MONOTONIC or CLOCK_REALTIME (which
 * may be set meanwhile). False: that has come.
 */
bool os_futex_wait_until(void *word, uint32_t value, clockid_t clock,
			 const struct timespec *abs);

/* Wake up to n sleepers. The word may be gone: then nobody is woken. */
void os_futex_wake(void *word, int n);

/* --- memory --- */

size_t os_page_size(void);

/* Zeroed pages, or NULL. */
void *os_map(size_t bytes);
/* The same for stacks: room is not reserved, no huge pages. */
void *os_map_stacks(size_t bytes);
void os_unmap(void *base, size_t bytes);

/* Their memory goes back; they read as zeros. Guards in them stay. */
void os_release(void *base, size_t bytes);

/*
 * Guards: pages that fault. install costs no mapping but needs a kernel that
 * has it, which the probe finds out by trying; protect splits a mapping. Both
 * 0 or -errno.
 */
bool os_guard_probe(void);
int os_guard_install(void *base, size_t bytes);
int os_guard_protect(void *base, size_t bytes);

/* The stack of the calling kernel thread. */
void os_stack_bounds(char **low, size_t *bytes);

/* --- kernel threads and CPUs --- */

/* As pthread_create(), for threads of our own. Positive error numbers. */
int os_thread_create(pthread_t *out, void *(*fn)(void *), void *arg);

/* How many of those run: no less than there are, but at their very end. */
unsigned os_threads_own(void);
/* Until all that have been made have begun. */
void os_threads_await(void);
/* In the child of a fork: there is none. */
void os_threads_forked(void);
/* How many kernel threads the process has, main included; 0: who knows. */
unsigned os_threads(void);
/* The signals for which there are handlers, as of sigset_t's first word. */
uint64_t os_signals_handled(void);

/* The kernel's number of the calling kernel thread. */
pid_t os_tid(void);
/* Of another one, which has not been joined; 0: it has ended, or who knows. */
pid_t os_thread_tid(pthread_t thread);
/* Who has our user number may read our memory, where Yama would forbid it. */
void os_allow_readers(void);
/* False: too many signals of the user are pending. */
bool os_thread_kill(pid_t tid, int signal);
/* What a kernel thread of ours has used of CPUs; 0: it is gone. */
uint64_t os_thread_cpu_ns(pid_t tid);
/* Whether a kernel thread of ours sleeps in the kernel; false: or is gone. */
bool os_thread_sleeps(pid_t tid);
/*
 * Whether it sleeps in a call that goes on by itself after a signal with
 * SA_RESTART; false: or the kernel does not say.
 */
bool os_thread_sleeps_on(pid_t tid);
/*
 * The calling kernel thread gets the signal once more, when it has gone on;
 * *timer is 0 at first and after stop(). From a signal handler, too.
 */
void os_signal_soon(int *timer, int signal, uint64_t ns);
void os_signal_stop(int *timer);
/*
 * The calling kernel thread, which has blocked it, takes that signal without
 * its handler. False: none has come for so long, or something interrupted it.
 */
bool os_signal_take(int signal, uint64_t ns);
/* The calling kernel thread takes no signals. */
void os_thread_no_signals(void);

/*
 * In a signal handler: whether its kernel thread may do something else before
 * the handler returns to what it has interrupted (its third argument).
 */
void os_leave_init(void);
bool os_may_leave(const void *context);

/*
 * The same for good, if all that is on its stack down to `first` (which has
 * called `fn`) is unwound: only if that is the program's own, of the executable
 * or of the object of fn. False: or it cannot be told, as in a program that has
 * us linked statically.
 */
bool os_may_end(const void *context, void (*first)(void *),
		void *(*fn)(void *));

/*
 * Every CPU that runs a kernel thread of ours has passed a full barrier when
 * this returns. init() answers whether the kernel offers that; called while
 * there is no other thread, it has barriers of other processes reach us, too.
 */
bool os_barrier_init(void);
void os_barrier_all(void);

/* The calling kernel thread runs when no other wants to, for ever. */
void os_thread_lowest(void);

/*
 * Another one, of lowest priority, is as others are; 0: the caller. False: not
 * allowed.
 */
bool os_thread_ordinary(pid_t tid);

/* Whether that is allowed. Makes a thread to see, and waits for it. */
bool os_thread_may_lower(void);

/* On how many CPUs the calling kernel thread may run. */
int os_cpu_count(void);

/* Let the calling kernel thread run on this CPU only. 0 or -errno. Also in the
 * handler of a signal that interrupted malloc(). */
int os_cpu_set(int cpu);

/*
 * Kernel threads and processes that the application makes get the affinity
 * that the process had, even when an LWP that we bound makes them. save()
 * remembers the caller's and answers whether that works in this process; if it
 * does not, no LWP may be bound. bind() is os_cpu_set() with that care, 0 or
 * -errno; unbind() gives the remembered affinity to a bound LWP.
 */
bool os_affinity_save(void);
int os_cpu_bind(int cpu);
void os_cpu_unbind(void);

#endif
