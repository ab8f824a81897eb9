/*
 * A program written for POSIX threads, on marcel: include this in place of
 * <pthread.h>, <semaphore.h> and <sched.h>, and link with -lmarcel. The names
 * of POSIX then mean marcel's types and functions, whose contracts hold.
 *
 * What differs from kernel threads:
 *
 *	the first pthread_create() starts the runtime, and its caller becomes
 *	the main thread, which must not end before the process;
 *	a thread has 64 KiB of stack if no attribute says otherwise;
 *	errno follows the thread, other thread-local storage does not: the
 *	table in <marcel/errno.h> says what holds;
 *	sem_post() may be called by handlers of signals once it has started;
 *	signals of pthread_kill() are taken as <marcel/signal.h> says: they end
 *	no pause() and no sigsuspend(), which are the kernel thread's, as are
 *	raise(), sigprocmask() and what <sched.h> does to processes;
 *	a read-write lock is fair if no attribute says otherwise: who reads and
 *	locks it again waits behind a writer, unless it prefers readers, as
 *	PTHREAD_RWLOCK_PREFER_READER_NP says and, as in glibc,
 *	PTHREAD_RWLOCK_PREFER_WRITER_NP; the kind that prefers writers is
 *	PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP.
 *
 * ENOTSUP: what is shared by processes, robust mutexes, priority inheritance
 * and ceilings. What else of <pthread.h> is not here does not compile.
 *
 * In C++ the standard library's own threads and locks stay kernel threads'.
 */
#ifndef MARCEL_PTHREAD_H
#define MARCEL_PTHREAD_H

#include <marcel/errno.h> /* for inline functions of the headers below */

/* All that names these in declarations comes first. */
#ifdef __cplusplus
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

#include <marcel/marcel.h>
#include <marcel/signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * marcel_create(), which starts the runtime if nothing has: its caller is then
 * the main thread. EAGAIN: it cannot be started; why is on stderr.
 */
int marcel_posix_create(marcel_t *out, const marcel_attr_t *attr,
			void *(*fn)(void *), void *arg);

/*
 * Policies are bands: SCHED_OTHER and SCHED_BATCH normal, SCHED_IDLE idle,
 * SCHED_FIFO and SCHED_RR real-time, without privileges and whatever the
 * priority from 1 to 99. A thread is found as SCHED_OTHER, SCHED_IDLE, or
 * SCHED_RR of priority 1. Who is made has its maker's band unless the attribute
 * is explicit, or marcel_attr_setpriority() has said another. EINVAL: no such
 * policy, or not its priority; ENOTSUP: a foreign thread is not normal.
 */
int marcel_posix_setschedparam(marcel_t t, int policy,
			       const struct sched_param *param);
int marcel_posix_getschedparam(marcel_t t, int *policy,
			       struct sched_param *param);
int marcel_posix_setschedprio(marcel_t t, int priority);
int marcel_posix_attr_setschedpolicy(marcel_attr_t *attr, int policy);
int marcel_posix_attr_getschedpolicy(const marcel_attr_t *attr, int *out);
int marcel_posix_attr_setschedparam(marcel_attr_t *attr,
				    const struct sched_param *param);
int marcel_posix_attr_getschedparam(const marcel_attr_t *attr,
				    struct sched_param *out);
int marcel_posix_attr_setinheritsched(marcel_attr_t *attr, int how);
int marcel_posix_attr_getinheritsched(const marcel_attr_t *attr, int *out);
/* As on Linux PTHREAD_SCOPE_SYSTEM only; ENOTSUP for the other. */
int marcel_posix_attr_setscope(marcel_attr_t *attr, int scope);
int marcel_posix_attr_getscope(const marcel_attr_t *attr, int *out);

/*
 * CPUs are those on which the VPs are: on any of the set that has a VP; EINVAL
 * if there is none, or of main if VP 0's is not in it. A foreign thread sets
 * its own. The attribute's starts the runtime, which knows the VPs.
 */
int marcel_posix_setaffinity(marcel_t t, size_t bytes, const cpu_set_t *cpus);
int marcel_posix_getaffinity(marcel_t t, size_t bytes, cpu_set_t *out);
int marcel_posix_attr_setaffinity(marcel_attr_t *attr, size_t bytes,
				  const cpu_set_t *cpus);
int marcel_posix_attr_getaffinity(const marcel_attr_t *attr, size_t bytes,
				  cpu_set_t *out);

/* A number that is given back, and has no other meaning. */
int marcel_posix_setconcurrency(int level);
int marcel_posix_getconcurrency(void);

/* What is pending for the caller, by whomever it was sent. */
int marcel_posix_sigpending(sigset_t *out);

/* Any room that holds the name; ERANGE else. */
int marcel_posix_getname(marcel_t t, char *out, size_t bytes);

/* Semaphores as POSIX has them: -1 and errno for an error. */
int marcel_posix_sem_init(marcel_sem_t *s, int pshared, unsigned value);
int marcel_posix_sem_destroy(marcel_sem_t *s);
int marcel_posix_sem_wait(marcel_sem_t *s);
int marcel_posix_sem_trywait(marcel_sem_t *s);
int marcel_posix_sem_timedwait(marcel_sem_t *s, const struct timespec *abs);
int marcel_posix_sem_clockwait(marcel_sem_t *s, clockid_t clock,
			       const struct timespec *abs);
int marcel_posix_sem_post(marcel_sem_t *s);
int marcel_posix_sem_getvalue(marcel_sem_t *s, int *out);

#ifdef __cplusplus
}
#endif

/* --- what would otherwise be a macro already --- */

#undef pthread_cleanup_push
#undef pthread_cleanup_pop
#undef PTHREAD_BARRIER_SERIAL_THREAD
#undef PTHREAD_CANCELED
#undef PTHREAD_CANCEL_ASYNCHRONOUS
#undef PTHREAD_CANCEL_DEFERRED
#undef PTHREAD_CANCEL_DISABLE
#undef PTHREAD_CANCEL_ENABLE
#undef PTHREAD_COND_INITIALIZER
#undef PTHREAD_CREATE_DETACHED
#undef PTHREAD_CREATE_JOINABLE
#undef PTHREAD_DESTRUCTOR_ITERATIONS
#undef PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP
#undef PTHREAD_KEYS_MAX
#undef PTHREAD_MUTEX_DEFAULT
#undef PTHREAD_MUTEX_ERRORCHECK
#undef PTHREAD_MUTEX_INITIALIZER
#undef PTHREAD_MUTEX_NORMAL
#undef PTHREAD_MUTEX_RECURSIVE
#undef PTHREAD_MUTEX_ROBUST
#undef PTHREAD_MUTEX_STALLED
#undef PTHREAD_ONCE_INIT
#undef PTHREAD_PRIO_INHERIT
#undef PTHREAD_PRIO_NONE
#undef PTHREAD_PRIO_PROTECT
#undef PTHREAD_PROCESS_PRIVATE
#undef PTHREAD_PROCESS_SHARED
#undef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#undef PTHREAD_RWLOCK_INITIALIZER
#undef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#undef PTHREAD_STACK_MIN

/* --- threads --- */

#define pthread_t      marcel_t
#define pthread_attr_t marcel_attr_t
#define pthread_key_t  marcel_key_t

#define PTHREAD_CANCELED              MARCEL_CANCELED
#define PTHREAD_CANCEL_ASYNCHRONOUS   MARCEL_CANCEL_ASYNCHRONOUS
#define PTHREAD_CANCEL_DEFERRED       MARCEL_CANCEL_DEFERRED
#define PTHREAD_CANCEL_DISABLE        MARCEL_CANCEL_DISABLE
#define PTHREAD_CANCEL_ENABLE         MARCEL_CANCEL_ENABLE
#define PTHREAD_CREATE_DETACHED       MARCEL_CREATE_DETACHED
#define PTHREAD_CREATE_JOINABLE       MARCEL_CREATE_JOINABLE
#define PTHREAD_DESTRUCTOR_ITERATIONS MARCEL_DESTRUCTOR_ITERATIONS
#define PTHREAD_KEYS_MAX              MARCEL_KEYS_MAX
#define PTHREAD_STACK_MIN             MARCEL_STACK_MIN

#define pthread_create              marcel_posix_create
#define pthread_join                marcel_join
#define pthread_tryjoin_np          marcel_tryjoin_np
#define pthread_timedjoin_np        marcel_timedjoin_np
#define pthread_clockjoin_np        marcel_clockjoin_np
#define pthread_detach              marcel_detach
#define pthread_exit                marcel_exit
#define pthread_cancel              marcel_cancel
#define pthread_testcancel          marcel_testcancel
#define pthread_setcancelstate      marcel_setcancelstate
#define pthread_setcanceltype       marcel_setcanceltype
#define pthread_self                marcel_self
#define pthread_equal               marcel_equal
#define pthread_yield               marcel_yield
#define sched_yield                 marcel_yield
#define pthread_setname_np          marcel_setname
#define pthread_getname_np          marcel_posix_getname
#define pthread_cleanup_push        marcel_cleanup_push
#define pthread_cleanup_pop         marcel_cleanup_pop
#define pthread_key_create          marcel_key_create
#define pthread_key_delete          marcel_key_delete
#define pthread_setspecific         marcel_setspecific
#define pthread_getspecific         marcel_getspecific
#define pthread_attr_init           marcel_attr_init
#define pthread_attr_destroy        marcel_attr_destroy
#define pthread_attr_setstacksize   marcel_attr_setstacksize
#define pthread_attr_getstacksize   marcel_attr_getstacksize
#define pthread_attr_setdetachstate marcel_attr_setdetachstate
#define pthread_attr_getdetachstate marcel_attr_getdetachstate
#define pthread_attr_setstack       marcel_attr_setstack
#define pthread_attr_getstack       marcel_attr_getstack
#define pthread_attr_setguardsize   marcel_attr_setguardsize
#define pthread_attr_getguardsize   marcel_attr_getguardsize
#define pthread_getattr_np          marcel_getattr_np

/* --- who runs, and where --- */

#define pthread_setschedparam        marcel_posix_setschedparam
#define pthread_getschedparam        marcel_posix_getschedparam
#define pthread_setschedprio         marcel_posix_setschedprio
#define pthread_attr_setschedpolicy  marcel_posix_attr_setschedpolicy
#define pthread_attr_getschedpolicy  marcel_posix_attr_getschedpolicy
#define pthread_attr_setschedparam   marcel_posix_attr_setschedparam
#define pthread_attr_getschedparam   marcel_posix_attr_getschedparam
#define pthread_attr_setinheritsched marcel_posix_attr_setinheritsched
#define pthread_attr_getinheritsched marcel_posix_attr_getinheritsched
#define pthread_attr_setscope        marcel_posix_attr_setscope
#define pthread_attr_getscope        marcel_posix_attr_getscope
#define pthread_setaffinity_np       marcel_posix_setaffinity
#define pthread_getaffinity_np       marcel_posix_getaffinity
#define pthread_attr_setaffinity_np  marcel_posix_attr_setaffinity
#define pthread_attr_getaffinity_np  marcel_posix_attr_getaffinity
#define pthread_setconcurrency       marcel_posix_setconcurrency
#define pthread_getconcurrency       marcel_posix_getconcurrency

/* --- mutexes and conditions --- */

#define pthread_mutex_t     marcel_mutex_t
#define pthread_mutexattr_t marcel_mutexattr_t
#define pthread_cond_t      marcel_cond_t
#define pthread_condattr_t  marcel_condattr_t
#define pthread_once_t      marcel_once_t

#define PTHREAD_COND_INITIALIZER  MARCEL_COND_INITIALIZER
#define PTHREAD_MUTEX_DEFAULT     MARCEL_MUTEX_DEFAULT
#define PTHREAD_MUTEX_ERRORCHECK  MARCEL_MUTEX_ERRORCHECK
#define PTHREAD_MUTEX_INITIALIZER MARCEL_MUTEX_INITIALIZER
#define PTHREAD_MUTEX_NORMAL      MARCEL_MUTEX_NORMAL
#define PTHREAD_MUTEX_RECURSIVE   MARCEL_MUTEX_RECURSIVE
#define PTHREAD_MUTEX_ROBUST      MARCEL_MUTEX_ROBUST
#define PTHREAD_MUTEX_STALLED     MARCEL_MUTEX_STALLED
#define PTHREAD_ONCE_INIT         MARCEL_ONCE_INIT
#define PTHREAD_PRIO_INHERIT      MARCEL_PRIO_INHERIT
#define PTHREAD_PRIO_NONE         MARCEL_PRIO_NONE
#define PTHREAD_PRIO_PROTECT      MARCEL_PRIO_PROTECT
#define PTHREAD_PROCESS_PRIVATE   MARCEL_PROCESS_PRIVATE
#define PTHREAD_PROCESS_SHARED    MARCEL_PROCESS_SHARED

#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP                                 \
	MARCEL_MUTEX_RECURSIVE_INITIALIZER
#define PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP                                \
	MARCEL_MUTEX_ERRORCHECK_INITIALIZER

#define pthread_mutex_init            marcel_mutex_init
#define pthread_mutex_destroy         marcel_mutex_destroy
#define pthread_mutex_lock            marcel_mutex_lock
#define pthread_mutex_trylock         marcel_mutex_trylock
#define pthread_mutex_timedlock       marcel_mutex_timedlock
#define pthread_mutex_clocklock       marcel_mutex_clocklock
#define pthread_mutex_unlock          marcel_mutex_unlock
#define pthread_mutexattr_init        marcel_mutexattr_init
#define pthread_mutexattr_destroy     marcel_mutexattr_destroy
#define pthread_mutexattr_settype     marcel_mutexattr_settype
#define pthread_mutexattr_gettype     marcel_mutexattr_gettype
#define pthread_mutexattr_setpshared  marcel_mutexattr_setpshared
#define pthread_mutexattr_getpshared  marcel_mutexattr_getpshared
#define pthread_mutexattr_setprotocol marcel_mutexattr_setprotocol
#define pthread_mutexattr_getprotocol marcel_mutexattr_getprotocol
#define pthread_mutexattr_setrobust   marcel_mutexattr_setrobust
#define pthread_mutexattr_getrobust   marcel_mutexattr_getrobust
#define pthread_cond_init             marcel_cond_init
#define pthread_cond_destroy          marcel_cond_destroy
#define pthread_cond_wait             marcel_cond_wait
#define pthread_cond_timedwait        marcel_cond_timedwait
#define pthread_cond_clockwait        marcel_cond_clockwait
#define pthread_cond_signal           marcel_cond_signal
#define pthread_cond_broadcast        marcel_cond_broadcast
#define pthread_condattr_init         marcel_condattr_init
#define pthread_condattr_destroy      marcel_condattr_destroy
#define pthread_condattr_setclock     marcel_condattr_setclock
#define pthread_condattr_getclock     marcel_condattr_getclock
#define pthread_condattr_setpshared   marcel_condattr_setpshared
#define pthread_condattr_getpshared   marcel_condattr_getpshared
#define pthread_once                  marcel_once

/* --- the other locks --- */

#define pthread_rwlock_t      marcel_rwlock_t
#define pthread_rwlockattr_t  marcel_rwlockattr_t
#define pthread_barrier_t     marcel_barrier_t
#define pthread_barrierattr_t marcel_barrierattr_t
#define pthread_spinlock_t    marcel_spin_t
#define sem_t                 marcel_sem_t

#define PTHREAD_BARRIER_SERIAL_THREAD MARCEL_BARRIER_SERIAL_THREAD
#define PTHREAD_RWLOCK_INITIALIZER    MARCEL_RWLOCK_INITIALIZER

#define PTHREAD_RWLOCK_DEFAULT_NP                    MARCEL_RWLOCK_FAIR
#define PTHREAD_RWLOCK_PREFER_READER_NP              MARCEL_RWLOCK_PREFER_READER
#define PTHREAD_RWLOCK_PREFER_WRITER_NP              MARCEL_RWLOCK_PREFER_WRITER_NP
#define PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP MARCEL_RWLOCK_PREFER_WRITER
#define PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP                      \
	MARCEL_RWLOCK_PREFER_WRITER_INITIALIZER

#define pthread_rwlock_init            marcel_rwlock_init
#define pthread_rwlock_destroy         marcel_rwlock_destroy
#define pthread_rwlock_rdlock          marcel_rwlock_rdlock
#define pthread_rwlock_tryrdlock       marcel_rwlock_tryrdlock
#define pthread_rwlock_timedrdlock     marcel_rwlock_timedrdlock
#define pthread_rwlock_clockrdlock     marcel_rwlock_clockrdlock
#define pthread_rwlock_wrlock          marcel_rwlock_wrlock
#define pthread_rwlock_trywrlock       marcel_rwlock_trywrlock
#define pthread_rwlock_timedwrlock     marcel_rwlock_timedwrlock
#define pthread_rwlock_clockwrlock     marcel_rwlock_clockwrlock
#define pthread_rwlock_unlock          marcel_rwlock_unlock
#define pthread_barrier_init           marcel_barrier_init
#define pthread_barrier_destroy        marcel_barrier_destroy
#define pthread_barrier_wait           marcel_barrier_wait
#define pthread_rwlockattr_init        marcel_rwlockattr_init
#define pthread_rwlockattr_destroy     marcel_rwlockattr_destroy
#define pthread_rwlockattr_setkind_np  marcel_rwlockattr_setkind
#define pthread_rwlockattr_getkind_np  marcel_rwlockattr_getkind
#define pthread_rwlockattr_setpshared  marcel_rwlockattr_setpshared
#define pthread_rwlockattr_getpshared  marcel_rwlockattr_getpshared
#define pthread_barrierattr_init       marcel_barrierattr_init
#define pthread_barrierattr_destroy    marcel_barrierattr_destroy
#define pthread_barrierattr_setpshared marcel_barrierattr_setpshared
#define pthread_barrierattr_getpshared marcel_barrierattr_getpshared
#define pthread_spin_init              marcel_spin_init
#define pthread_spin_destroy           marcel_spin_destroy
#define pthread_spin_lock              marcel_spin_lock
#define pthread_spin_trylock           marcel_spin_trylock
#define pthread_spin_unlock            marcel_spin_unlock
#define sem_init                       marcel_posix_sem_init
#define sem_destroy                    marcel_posix_sem_destroy
#define sem_wait                       marcel_posix_sem_wait
#define sem_trywait                    marcel_posix_sem_trywait
#define sem_timedwait                  marcel_posix_sem_timedwait
#define sem_clockwait                  marcel_posix_sem_clockwait
#define sem_post                       marcel_posix_sem_post
#define sem_getvalue                   marcel_posix_sem_getvalue

/* --- signals --- */

#define pthread_kill    marcel_kill
#define pthread_sigmask marcel_sigmask
#define sigwait         marcel_sigwait
#define sigwaitinfo     marcel_sigwaitinfo
#define sigtimedwait    marcel_sigtimedwait
#define sigpending      marcel_posix_sigpending

/*
 * Not offered: an error that says why, and not the kernel threads'. The names
 * are of things that cannot be called, nor used otherwise.
 */
#if defined __has_attribute
#if __has_attribute(unavailable)
#define MARCEL_POSIX_NOT(name, why)                                            \
	extern const int name __attribute__((unavailable(why)))
#endif
#endif
#ifndef MARCEL_POSIX_NOT
#define MARCEL_POSIX_NOT(name, why) struct name
#endif
#ifdef __cplusplus
extern "C" {
#endif
MARCEL_POSIX_NOT(marcel_posix_no_queue,
		 "marcel: signals do not queue, nor carry a value");
MARCEL_POSIX_NOT(marcel_posix_no_clock,
		 "marcel: a user thread has no clock of the kernel's; "
		 "marcel_cputime() tells what it has used");
MARCEL_POSIX_NOT(marcel_posix_no_default,
		 "marcel: defaults are in the environment, MARCEL_STACKSIZE");
MARCEL_POSIX_NOT(marcel_posix_no_mask,
		 "marcel: a thread begins with its maker's mask of signals");
MARCEL_POSIX_NOT(marcel_posix_no_robust,
		 "marcel: mutexes are not robust, a user thread does not die "
		 "alone");
MARCEL_POSIX_NOT(marcel_posix_no_ceiling,
		 "marcel: mutexes have no priority ceiling, priorities are "
		 "three bands");
MARCEL_POSIX_NOT(marcel_posix_no_names,
		 "marcel: semaphores with names are shared by processes");
#ifdef __cplusplus
}
#endif
#undef MARCEL_POSIX_NOT

#define pthread_sigqueue                 marcel_posix_no_queue
#define pthread_getcpuclockid            marcel_posix_no_clock
#define pthread_setattr_default_np       marcel_posix_no_default
#define pthread_getattr_default_np       marcel_posix_no_default
#define pthread_attr_setsigmask_np       marcel_posix_no_mask
#define pthread_attr_getsigmask_np       marcel_posix_no_mask
#define pthread_mutex_consistent         marcel_posix_no_robust
#define pthread_mutex_getprioceiling     marcel_posix_no_ceiling
#define pthread_mutex_setprioceiling     marcel_posix_no_ceiling
#define pthread_mutexattr_getprioceiling marcel_posix_no_ceiling
#define pthread_mutexattr_setprioceiling marcel_posix_no_ceiling
#define sem_open                         marcel_posix_no_names
#define sem_close                        marcel_posix_no_names
#define sem_unlink                       marcel_posix_no_names

#undef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP

#endif
