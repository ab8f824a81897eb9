/*
 * Mutex, condition, semaphore, read-write lock, barrier, spinlock, once.
 *
 * Semantics and error numbers are POSIX's. Objects are memory of the caller;
 * static initialisers exist where POSIX has them, nothing is allocated. User
 * threads and foreign threads may use one object together: a user thread that
 * waits gives its VP to the next ready thread, a foreign one sleeps.
 *
 * The access that lets another thread proceed is the last access to the
 * object: after unlock, post, barrier the last user may destroy it at once.
 *
 * Timed waits: `timed` functions take a time by CLOCK_REALTIME, or by the clock
 * of a condition; `clock` functions by CLOCK_REALTIME or CLOCK_MONOTONIC, and
 * EINVAL for any other. ETIMEDOUT comes not before that time; EINVAL is a time
 * whose tv_nsec is not from 0 to 999,999,999. Neither comes from a call that
 * need not wait (but for a condition: EINVAL). A signal does not end a wait.
 * What is granted at the same moment is not lost: either this call has it, or
 * another waiter.
 *
 * Not offered: process-shared, robust, priority inheritance, priority ceiling.
 */
#ifndef MARCEL_SYNC_H
#define MARCEL_SYNC_H

#include <marcel/errno.h>

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timespec; /* strict C has none before C11 */

#define MARCEL_MUTEX_NORMAL     0
#define MARCEL_MUTEX_RECURSIVE  1
#define MARCEL_MUTEX_ERRORCHECK 2
#define MARCEL_MUTEX_DEFAULT    MARCEL_MUTEX_NORMAL

#define MARCEL_PROCESS_PRIVATE 0
#define MARCEL_PROCESS_SHARED  1
#define MARCEL_PRIO_NONE       0
#define MARCEL_PRIO_INHERIT    1
#define MARCEL_PRIO_PROTECT    2
#define MARCEL_MUTEX_STALLED   0
#define MARCEL_MUTEX_ROBUST    1

#define MARCEL_RWLOCK_FAIR             0
#define MARCEL_RWLOCK_PREFER_READER    1
#define MARCEL_RWLOCK_PREFER_WRITER    2
#define MARCEL_RWLOCK_PREFER_WRITER_NP 3

#define MARCEL_BARRIER_SERIAL_THREAD (-1)

typedef struct {
	uint64_t marcel_words[6];
} marcel_mutex_t;

typedef struct {
	uint64_t marcel_words[2];
} marcel_mutexattr_t;

typedef struct {
	uint64_t marcel_words[6];
} marcel_cond_t;

typedef struct {
	uint64_t marcel_words[2];
} marcel_condattr_t;

typedef struct {
	uint64_t marcel_words[5];
} marcel_sem_t;

typedef struct {
	uint64_t marcel_words[8];
} marcel_rwlock_t;

typedef struct {
	uint64_t marcel_words[2];
} marcel_rwlockattr_t;

typedef struct {
	uint64_t marcel_words[6];
} marcel_barrier_t;

typedef struct {
	uint64_t marcel_words[2];
} marcel_barrierattr_t;

typedef struct {
	uint64_t marcel_words[6];
} marcel_spin_t;

typedef struct {
	uint64_t marcel_words[4];
} marcel_once_t;

/* clang-format off */
#define MARCEL_MUTEX_INITIALIZER  { { 0 } }
#define MARCEL_MUTEX_RECURSIVE_INITIALIZER  { { 32 } }
#define MARCEL_MUTEX_ERRORCHECK_INITIALIZER { { 64 } }
#define MARCEL_COND_INITIALIZER   { { 0 } }
#define MARCEL_RWLOCK_INITIALIZER { { 0 } }
#define MARCEL_ONCE_INIT          { { 0 } }
#define MARCEL_RWLOCK_PREFER_WRITER_INITIALIZER                                \
	{ { 0, MARCEL_RWLOCK_PREFER_WRITER } }
/* clang-format on */

int marcel_mutexattr_init(marcel_mutexattr_t *attr);
int marcel_mutexattr_destroy(marcel_mutexattr_t *attr);
int marcel_mutexattr_settype(marcel_mutexattr_t *attr, int type);
int marcel_mutexattr_gettype(const marcel_mutexattr_t *attr, int *out);

/* As POSIX's; what is not the default, 0, is ENOTSUP. EINVAL: no such value. */
int marcel_mutexattr_setpshared(marcel_mutexattr_t *attr, int pshared);
int marcel_mutexattr_getpshared(const marcel_mutexattr_t *attr, int *out);
int marcel_mutexattr_setprotocol(marcel_mutexattr_t *attr, int protocol);
int marcel_mutexattr_getprotocol(const marcel_mutexattr_t *attr, int *out);
int marcel_mutexattr_setrobust(marcel_mutexattr_t *attr, int robust);
int marcel_mutexattr_getrobust(const marcel_mutexattr_t *attr, int *out);

/*
 * lock, timedlock and clocklock may block; trylock and unlock never do. An
 * uncontended lock or unlock is one atomic operation. EDEADLK: errorcheck only;
 * EPERM: unlock of what is not locked or, errorcheck and recursive, not by the
 * caller; EAGAIN: recursion too deep; EBUSY: trylock, or destroy of a locked
 * mutex.
 */
int marcel_mutex_init(marcel_mutex_t *m, const marcel_mutexattr_t *attr);
int marcel_mutex_destroy(marcel_mutex_t *m);
int marcel_mutex_lock(marcel_mutex_t *m);
int marcel_mutex_trylock(marcel_mutex_t *m);
int marcel_mutex_timedlock(marcel_mutex_t *m, const struct timespec *abs);
int marcel_mutex_clocklock(marcel_mutex_t *m, clockid_t clock,
			   const struct timespec *abs);
int marcel_mutex_unlock(marcel_mutex_t *m);

int marcel_condattr_init(marcel_condattr_t *attr);
int marcel_condattr_destroy(marcel_condattr_t *attr);
/* Of timedwait: CLOCK_REALTIME (the default) or CLOCK_MONOTONIC. */
int marcel_condattr_setclock(marcel_condattr_t *attr, clockid_t clock);
int marcel_condattr_getclock(const marcel_condattr_t *attr, clockid_t *out);
/* PRIVATE, the default; SHARED is ENOTSUP. */
int marcel_condattr_setpshared(marcel_condattr_t *attr, int pshared);
int marcel_condattr_getpshared(const marcel_condattr_t *attr, int *out);

/*
 * attr NULL: CLOCK_REALTIME. wait without the mutex is EPERM; it frees a
 * recursive mutex however often that was locked, and locks it as often again,
 * before ETIMEDOUT too, however long that takes. destroy with waiters is EBUSY.
 */
int marcel_cond_init(marcel_cond_t *c, const marcel_condattr_t *attr);
int marcel_cond_destroy(marcel_cond_t *c);
int marcel_cond_wait(marcel_cond_t *c, marcel_mutex_t *m);
int marcel_cond_timedwait(marcel_cond_t *c, marcel_mutex_t *m,
			  const struct timespec *abs);
int marcel_cond_clockwait(marcel_cond_t *c, marcel_mutex_t *m, clockid_t clock,
			  const struct timespec *abs);
int marcel_cond_signal(marcel_cond_t *c);
int marcel_cond_broadcast(marcel_cond_t *c);

/*
 * As sem_*, but errors are returned, not put into errno. pshared must be 0
 * (ENOTSUP otherwise). post never blocks; EOVERFLOW past INT32_MAX. While
 * marcel runs, handlers of signals may post, whatever they have interrupted.
 */
int marcel_sem_init(marcel_sem_t *s, int pshared, unsigned value);
int marcel_sem_destroy(marcel_sem_t *s);
int marcel_sem_wait(marcel_sem_t *s);
int marcel_sem_trywait(marcel_sem_t *s);
int marcel_sem_timedwait(marcel_sem_t *s, const struct timespec *abs);
int marcel_sem_clockwait(marcel_sem_t *s, clockid_t clock,
			 const struct timespec *abs);
int marcel_sem_post(marcel_sem_t *s);
int marcel_sem_getvalue(marcel_sem_t *s, int *out);

int marcel_rwlockattr_init(marcel_rwlockattr_t *attr);
int marcel_rwlockattr_destroy(marcel_rwlockattr_t *attr);
/*
 * Whom the lock prefers; EINVAL: no such kind.
 * FAIR, the default: a waiting writer keeps new readers out, and threads get
 * their turn in the order in which they came.
 * PREFER_READER: a reader waits only while a writer has the lock, which then
 * goes to all waiting readers, or if there are none to a writer: so writers
 * wait for as long as readers follow one another. Only here may a thread that
 * reads lock it for reading again; elsewhere a writer may wait between.
 * PREFER_WRITER: a waiting writer keeps new readers out, and a freed lock goes
 * to writers, in the order in which they came, before readers: so these wait
 * for as long as writers follow one another.
 * PREFER_WRITER_NP: PREFER_READER by the number of glibc's kind of that name,
 * which prefers readers, for <marcel/pthread.h>; getkind() gives it back.
 */
int marcel_rwlockattr_setkind(marcel_rwlockattr_t *attr, int kind);
int marcel_rwlockattr_getkind(const marcel_rwlockattr_t *attr, int *out);
/* PRIVATE, the default; SHARED is ENOTSUP. */
int marcel_rwlockattr_setpshared(marcel_rwlockattr_t *attr, int pshared);
int marcel_rwlockattr_getpshared(const marcel_rwlockattr_t *attr, int *out);
/* Nothing but PRIVATE to set: SHARED is ENOTSUP. */
int marcel_barrierattr_init(marcel_barrierattr_t *attr);
int marcel_barrierattr_destroy(marcel_barrierattr_t *attr);
int marcel_barrierattr_setpshared(marcel_barrierattr_t *attr, int pshared);
int marcel_barrierattr_getpshared(const marcel_barrierattr_t *attr, int *out);

/*
 * attr NULL: the same as one just initialised. rdlock, wrlock and their timed
 * and clock forms may block, until the lock's kind says that it is the caller's
 * turn; a try has the lock if they would not wait. A writer whose time has come
 * lets those in that waited only for it. EDEADLK: the caller is its writer;
 * EPERM: unlock of what the caller cannot hold; EAGAIN: too many readers;
 * EBUSY: try, or destroy of a locked one.
 */
int marcel_rwlock_init(marcel_rwlock_t *l, const marcel_rwlockattr_t *attr);
int marcel_rwlock_destroy(marcel_rwlock_t *l);
int marcel_rwlock_rdlock(marcel_rwlock_t *l);
int marcel_rwlock_tryrdlock(marcel_rwlock_t *l);
int marcel_rwlock_timedrdlock(marcel_rwlock_t *l, const struct timespec *abs);
int marcel_rwlock_clockrdlock(marcel_rwlock_t *l, clockid_t clock,
			      const struct timespec *abs);
int marcel_rwlock_wrlock(marcel_rwlock_t *l);
int marcel_rwlock_trywrlock(marcel_rwlock_t *l);
int marcel_rwlock_timedwrlock(marcel_rwlock_t *l, const struct timespec *abs);
int marcel_rwlock_clockwrlock(marcel_rwlock_t *l, clockid_t clock,
			      const struct timespec *abs);
int marcel_rwlock_unlock(marcel_rwlock_t *l);

/*
 * attr NULL: as above; count 0 is EINVAL, more than 1,048,576 EAGAIN. One
 * waiter a round gets SERIAL, and may destroy it at once.
 */
int marcel_barrier_init(marcel_barrier_t *b, const marcel_barrierattr_t *attr,
			unsigned count);
int marcel_barrier_destroy(marcel_barrier_t *b);
int marcel_barrier_wait(marcel_barrier_t *b);

/*
 * A mutex for whose holder one spins for a microsecond before one waits as for
 * a mutex: the holder may have lost its CPU, or be behind the caller on the
 * same VP. pshared must be 0 (ENOTSUP otherwise). EDEADLK: the caller holds it;
 * EPERM: unlock of what is not locked; EBUSY: trylock, or destroy of a locked
 * one.
 */
int marcel_spin_init(marcel_spin_t *s, int pshared);
int marcel_spin_destroy(marcel_spin_t *s);
int marcel_spin_lock(marcel_spin_t *s);
int marcel_spin_trylock(marcel_spin_t *s);
int marcel_spin_unlock(marcel_spin_t *s);

/* fn runs once; callers that come meanwhile wait until it has returned. */
int marcel_once(marcel_once_t *once, void (*fn)(void));

#ifdef __cplusplus
}
#endif

#endif
