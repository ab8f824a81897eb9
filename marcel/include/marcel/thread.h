/*
 * User threads: create, join, attributes, thread-specific keys.
 *
 * A thread is a small descriptor; it gets its stack when it first runs and
 * gives it back when it ends, so threads that wait to start cost nothing else.
 *
 * Of all functions of these headers that have an error to give: ESRCH for NULL
 * as a thread, EINVAL for NULL where something must be read or written. But a
 * lock, a semaphore and the like is not looked at before it is used, nor what
 * marcel_create() writes to: NULL there is a crash.
 */
#ifndef MARCEL_THREAD_H
#define MARCEL_THREAD_H

#include <marcel/errno.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timespec; /* strict C has none before C11 */

typedef struct marcel_thread *marcel_t;
typedef unsigned marcel_key_t;

#define MARCEL_CREATE_JOINABLE       0
#define MARCEL_CREATE_DETACHED       1
#define MARCEL_NAME_MAX              32 /* bytes of a name, its final 0 included */
#define MARCEL_KEYS_MAX              128 /* keys that can exist at once */
#define MARCEL_STACK_MIN             16384
#define MARCEL_DESTRUCTOR_ITERATIONS 4

struct marcel_level;

/* A set of VPs, one bit each: where a thread may run. */
#define MARCEL_VPSET_WORDS 4
typedef struct {
	uint64_t bits[MARCEL_VPSET_WORDS];
} marcel_vpset_t;

#define MARCEL_VP_MAX (MARCEL_VPSET_WORDS * 64)

/* Opaque; made by marcel_attr_init(). */
typedef struct {
	uint64_t marcel_words[16];
} marcel_attr_t;

/* As pthread_attr_*: EINVAL for a value that is not allowed. */
int marcel_attr_init(marcel_attr_t *attr);
int marcel_attr_destroy(marcel_attr_t *attr);
int marcel_attr_setstacksize(marcel_attr_t *attr, size_t bytes);
int marcel_attr_getstacksize(const marcel_attr_t *attr, size_t *out);
int marcel_attr_setdetachstate(marcel_attr_t *attr, int state);
int marcel_attr_getdetachstate(const marcel_attr_t *attr, int *out);
/* Copies the name; ERANGE if it is longer than MARCEL_NAME_MAX allows. */
int marcel_attr_setname(marcel_attr_t *attr, const char *name);
/* The thread runs only on this VP; EINVAL if there is no such VP. */
int marcel_attr_setvp(marcel_attr_t *attr, int vp);
/* The thread runs only on VPs of the set; EINVAL if none of it exists. */
int marcel_attr_setvpset(marcel_attr_t *attr, const marcel_vpset_t *set);
/* The same with the VPs of a level (<marcel/topo.h>); EINVAL if not of ours. */
int marcel_attr_setlevel(marcel_attr_t *attr, const struct marcel_level *level);
/* What was set, or marcel_getattr_np() has found: no name is "", no set all. */
int marcel_attr_getname(const marcel_attr_t *attr, char *out, size_t bytes);
int marcel_attr_getvpset(const marcel_attr_t *attr, marcel_vpset_t *out);
int marcel_attr_getstack(const marcel_attr_t *attr, void **low, size_t *bytes);
int marcel_attr_getguardsize(const marcel_attr_t *attr, size_t *out);

/*
 * The thread runs on the caller's memory from `low` on, of any alignment, which
 * is the thread's until it was joined: then it may be used again, for another
 * thread too. Nothing but what the thread does is written there, and nothing
 * ends it: who runs off it is named only if what lies below faults. EINVAL: no
 * memory, or less than MARCEL_STACK_MIN (or what the processor needs) bytes.
 */
int marcel_attr_setstack(marcel_attr_t *attr, void *low, size_t bytes);

/*
 * Below the stack lies a guard of that many bytes, rounded up to pages; 0:
 * none. Any other than the page that all have is mapped by itself, with its
 * stack, when the thread is created, and unmapped when it ends: system calls
 * each time. Of no meaning for a stack that the caller brings.
 */
int marcel_attr_setguardsize(marcel_attr_t *attr, size_t bytes);

/*
 * Bands of priority; a thread is normal if nothing else is said, whoever makes
 * it. A VP runs a real-time thread before all normal ones, and an idle one only
 * if nothing else is ready there or can be had from other VPs. Within a band
 * all get their turn; a lower band waits as long as the higher ones are ready,
 * so a real-time thread that yields makes way for real-time threads only. Where
 * a thread may run matters more than its band. Preempted is who computes while
 * an equal or a higher band waits, at the end of a time slice; for a real-time
 * thread that becomes ready, but by a time-out, and that no VP is free for, a
 * lower band is at once. Mutexes, conditions, semaphores and the like serve
 * whoever has waited longest, of any band, and do not raise the band of who
 * holds them.
 */
#define MARCEL_PRIORITY_IDLE     (-1)
#define MARCEL_PRIORITY_NORMAL   0
#define MARCEL_PRIORITY_REALTIME 1

int marcel_attr_setpriority(marcel_attr_t *attr, int priority);
int marcel_attr_getpriority(const marcel_attr_t *attr, int *out);

/*
 * As pthread_setschedprio(), of a thread that has not been joined: from when
 * it next becomes ready, or yields; what waits in a queue keeps its place.
 * EINVAL: no such priority; ENOTSUP: a foreign thread, which is always normal.
 */
int marcel_setpriority(marcel_t t, int priority);
int marcel_getpriority(marcel_t t, int *out);

/*
 * For so long from now t, which has not been joined, is scheduled as if it were
 * real-time, and by its own priority again afterwards; 0 ends that at once, and
 * each call counts instead of the one before. Meanwhile marcel_setpriority()
 * and marcel_getpriority() are about its own priority. As there, it counts from
 * when t next becomes ready, or yields: what waits in a queue keeps its place,
 * also if the time is over before its turn has come. Who computes past its time
 * is interrupted as others of its own priority are. Anyone may call; never
 * blocks. ESRCH: no thread; ENOTSUP: a foreign thread, which is always normal.
 */
int marcel_favour(marcel_t t, uint64_t ns);

/*
 * From now on t is favoured for so long each time that it is woken: by an event
 * that it waits for, a post, an unlock, a time-out. 0 ends that, not a favour
 * that it has. For threads that are to react at once, where others compute. Who
 * is woken more often than that is as good as real-time.
 * Anyone may call; never blocks. As marcel_favour() otherwise.
 */
int marcel_favour_woken(marcel_t t, uint64_t ns);

/*
 * What the caller waits for, from here until it says otherwise (0), comes from
 * outside: a message, a file, a child. Returns what was so before. While
 * threads compute until they are interrupted, the caller is favoured for a
 * fifth of a millisecond each time that it is woken, so that it reacts at once
 * and need not wait for the time slices of all; where all make way for each
 * other nothing changes, and nothing is paid. Those who compute get slices all
 * the same, however many react. pioman's waits, and so all that stand on them,
 * and marcel's calls for IO say it by themselves. Never blocks; of no effect
 * for a foreign thread.
 */
int marcel_await_io(int on);

/*
 * Whether time slices end (1, as for every thread if nothing else is said):
 * else (0) what it computes is never interrupted, and what is ready on its VP
 * and may run on no other waits until it waits, yields or ends; as does who
 * wants to change where it runs. What blocks it in the kernel still takes its
 * VP from it; then main may go before it, if it has main's kernel thread. The
 * second is of the caller; *old, if not NULL, was so before. EINVAL: neither 0
 * nor 1; ENOTSUP: a foreign thread, which has no slices.
 */
int marcel_attr_setpreemptible(marcel_attr_t *attr, int on);
int marcel_attr_getpreemptible(const marcel_attr_t *attr, int *out);
int marcel_setpreemptible(int on, int *old);

/*
 * 1: the thread has a kernel thread of its own, from its creation to its end,
 * on which nothing else runs but hooks and tasklets. So what libraries keep by
 * kernel thread is its own: gettid(), __thread variables, robust and recursive
 * pthread mutexes, thread_local objects and pthread keys, whose destructors
 * have run when it can be joined. It is scheduled like any other, but to switch
 * to it and from it costs some microseconds each, and its creation as much as a
 * kernel thread's, which counts for MARCEL_LWP_MAX: then EAGAIN. Its stack is
 * had at creation. 0, as for every thread if nothing else is said: it may run
 * on another kernel thread after each call of marcel that may wait.
 */
int marcel_attr_setprivatetls(marcel_attr_t *attr, int on);
int marcel_attr_getprivatetls(const marcel_attr_t *attr, int *out);

/*
 * As pthread_create(), but the control words of the floating-point units are
 * the processor's defaults and not the creator's. attr NULL: joinable, default
 * stack, any VP. From a user thread no lock is taken and, once warm, no system
 * call made. EAGAIN: as many exist as MARCEL_MAXTHREADS allows, or there is no
 * memory; EINVAL: bad attribute; EPERM: not running. A thread exists until it
 * was joined or, detached, has ended. In the child of a fork() the first call
 * starts a runtime: marcel_init().
 */
int marcel_create(marcel_t *out, const marcel_attr_t *attr, void *(*fn)(void *),
		  void *arg);

/*
 * The same, and the thread begins at once, in the place of the caller, who is
 * the next to run there. But it is made ready as by marcel_create() where it
 * may not run there or is less urgent than the caller, or another VP is idle,
 * or others have waited for long, or the caller is foreign or in a handler. For
 * what is to begin before the caller goes on to compute, and costs nobody an
 * interrupt then.
 */
int marcel_create_first(marcel_t *out, const marcel_attr_t *attr,
			void *(*fn)(void *), void *arg);

/*
 * As pthread_join(): blocks the calling thread only, then the descriptor is
 * gone. EDEADLK: oneself; EINVAL: detached, or somebody else joins it; ESRCH:
 * NULL, or it was joined, or detached and has ended, and no other thread has
 * got its place, which is as long as that can be told.
 */
int marcel_join(marcel_t t, void **out);
int marcel_detach(marcel_t t); /* errors as above, but EDEADLK */

/*
 * As pthread_tryjoin_np(): EBUSY if it has not ended. timedjoin and clockjoin
 * wait until a time by CLOCK_REALTIME or that clock: ETIMEDOUT, and it can be
 * joined again; EINVAL: no such time or clock. Other errors as marcel_join().
 */
int marcel_tryjoin_np(marcel_t t, void **out);
int marcel_timedjoin_np(marcel_t t, void **out, const struct timespec *abs);
int marcel_clockjoin_np(marcel_t t, void **out, clockid_t clock,
			const struct timespec *abs);

/* Let another ready thread of its band, or a higher one, run first; 0. */
int marcel_yield(void);

/*
 * The same, and if t is ready on the caller's VP, or may run there and is on
 * no other, it is t that runs next; but others do now and then, so that nobody
 * starves. Takes as long as there are ready threads. ESRCH: t has ended.
 */
int marcel_yield_to(marcel_t t);

/*
 * Where t runs from now on: on the VPs of the set that exist. The caller is
 * there on return; a thread that waits or is ready goes there when it is next
 * picked, one that runs at its next switch or, at the latest, if there is a
 * tick, after two time slices (on the kernel thread that called marcel_init():
 * at its next switch). EINVAL: none of the set exists, t is main and VP 0 is
 * not in it, or t is a foreign thread; ESRCH: t has ended.
 */
int marcel_setaffinity(marcel_t t, const marcel_vpset_t *set);
/* The VPs that exist, of what was set last. Errors as above. */
int marcel_getaffinity(marcel_t t, marcel_vpset_t *out);

/* The caller; a foreign thread gets a descriptor at its first call. */
marcel_t marcel_self(void);
int marcel_equal(marcel_t a, marcel_t b);

/* Name of a live thread; out needs MARCEL_NAME_MAX bytes, else ERANGE. */
int marcel_getname(marcel_t t, char *out, size_t bytes);
int marcel_setname(marcel_t t, const char *name);

/*
 * As pthread_getattr_np(): what t is and has, now. Initialises *attr, which is
 * good for marcel_create() too, but not for a second thread on that stack. The
 * stack is NULL if t has none yet, and of another kernel thread that is not
 * ours. ESRCH: t has ended.
 */
int marcel_getattr_np(marcel_t t, marcel_attr_t *attr);

/* What a thread does; see marcel_state_name(). */
enum marcel_state {
	MARCEL_STATE_NEW,     /* it has never run */
	MARCEL_STATE_READY,   /* runs on no VP: it waits for one, or is in the
			       * kernel, or computes and has lost its own */
	MARCEL_STATE_RUNNING, /* foreign ones too, if they do not wait */
	MARCEL_STATE_WAITING, /* in a function of marcel's */
	MARCEL_STATE_ENDED,   /* and not been joined */
};

enum marcel_kind { MARCEL_KIND_USER, MARCEL_KIND_MAIN, MARCEL_KIND_FOREIGN };

struct marcel_info {
	marcel_t id;
	enum marcel_kind kind;
	enum marcel_state state;
	int vp;            /* where it runs, if RUNNING; else -1 */
	const char *waits; /* for what, if WAITING and known; else NULL */
	char name[MARCEL_NAME_MAX];
};

/*
 * Calls fn for every thread until it answers other than 0, which is then the
 * result. A thread that exists all the while is seen once; one that begins or
 * ends meanwhile is seen once or not at all. What is said of it was so a moment
 * ago. fn may call what it likes. Not while the runtime starts or stops.
 */
int marcel_threads(int (*fn)(const struct marcel_info *info, void *arg),
		   void *arg);

/*
 * Stores what marcel_threads() tells of t. Any thread may call it; never
 * blocks. Returns 0, or ESRCH if t was detached and has ended; its id may be
 * another thread's by then.
 */
int marcel_getinfo(marcel_t t, struct marcel_info *out);

/*
 * The CPU time that t has used, in ns, whichever kernel threads it ran on.
 * Costs a system call per switch, so it is counted only if MARCEL_CPUTIME is
 * set when the runtime starts: ENOENT else, and for a foreign thread but the
 * caller. ESRCH: t has ended.
 */
int marcel_cputime(marcel_t t, uint64_t *ns);

/* "new", "ready", "running", "waiting", "ended". */
const char *marcel_state_name(enum marcel_state state);

/* As pthread_key_*; destructors run when a user or foreign thread ends. */
int marcel_key_create(marcel_key_t *out, void (*destructor)(void *));
int marcel_key_delete(marcel_key_t key);
int marcel_setspecific(marcel_key_t key, const void *value);
void *marcel_getspecific(marcel_key_t key);

#ifdef __cplusplus
}
#endif

#endif
