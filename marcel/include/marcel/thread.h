/*
 * User threads: create, join, attributes, thread-specific keys.
 *
 * A thread is a small descriptor; it gets its stack when it first runs and
 * gives it back when it ends, so threads that wait to start cost nothing else.
 */
#ifndef MARCEL_THREAD_H
#define MARCEL_THREAD_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct marcel_thread *marcel_t;
typedef unsigned marcel_key_t;

#define MARCEL_CREATE_JOINABLE       0
#define MARCEL_CREATE_DETACHED       1
#define MARCEL_NAME_MAX              32 /* bytes of a name, its final 0 included */
#define MARCEL_KEYS_MAX              128 /* keys that can exist at once */
#define MARCEL_STACK_MIN             16384
#define MARCEL_DESTRUCTOR_ITERATIONS 4

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

/*
 * As pthread_create(), but the control words of the floating-point units are
 * the processor's defaults and not the creator's. attr NULL: joinable, default
 * stack, any VP. From a user thread no lock is taken and, once warm, no system
 * call made. EAGAIN: as many exist as MARCEL_MAXTHREADS allows, or there is no
 * memory; EINVAL: bad attribute; EPERM: not running. A thread exists until it
 * was joined or, detached, has ended.
 */
int marcel_create(marcel_t *out, const marcel_attr_t *attr, void *(*fn)(void *),
		  void *arg);

/*
 * As pthread_join(): blocks the calling thread only, then the descriptor is
 * gone. EDEADLK: oneself; EINVAL: detached, or somebody else joins it.
 */
int marcel_join(marcel_t t, void **out);
int marcel_detach(marcel_t t);

/*
 * As pthread_tryjoin_np(): EBUSY if it has not ended. timedjoin and clockjoin
 * wait until a time by CLOCK_REALTIME or that clock: ETIMEDOUT, and it can be
 * joined again; EINVAL: no such time or clock. Other errors as marcel_join().
 */
int marcel_tryjoin_np(marcel_t t, void **out);
int marcel_timedjoin_np(marcel_t t, void **out, const struct timespec *abs);
int marcel_clockjoin_np(marcel_t t, void **out, clockid_t clock,
			const struct timespec *abs);

/* Let another ready thread run first. Never blocks; 0. */
int marcel_yield(void);

/* The caller; a foreign thread gets a descriptor at its first call. */
marcel_t marcel_self(void);
int marcel_equal(marcel_t a, marcel_t b);

/* Name of a live thread; out needs MARCEL_NAME_MAX bytes, else ERANGE. */
int marcel_getname(marcel_t t, char *out, size_t bytes);
int marcel_setname(marcel_t t, const char *name);

/* As pthread_key_*; destructors run when a user or foreign thread ends. */
int marcel_key_create(marcel_key_t *out, void (*destructor)(void *));
int marcel_key_delete(marcel_key_t key);
int marcel_setspecific(marcel_key_t key, const void *value);
void *marcel_getspecific(marcel_key_t key);

/*
 * errno of the calling user thread. Compilers may keep the address behind
 * `errno` across a call that switches threads; code that migrates between VPs
 * reads it through this function, which they cannot.
 */
int *marcel_errno_location(void);

#ifdef __cplusplus
}
#endif

#endif
