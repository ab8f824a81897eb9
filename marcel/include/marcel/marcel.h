/*
 * marcel: a two-level thread library. User threads run on one kernel thread
 * (LWP) per virtual processor (VP); a switch never enters the kernel.
 *
 * Functions with a POSIX twin behave as POSIX says and return its positive
 * error numbers; all others return 0 or a negative errno. Every function may
 * be called from user threads and from kernel threads that marcel did not make
 * ("foreign" threads), unless it says otherwise.
 */
#ifndef MARCEL_MARCEL_H
#define MARCEL_MARCEL_H

#include <marcel/thread.h>
#include <marcel/cancel.h>
#include <marcel/sync.h>
#include <marcel/time.h>
#include <marcel/wait.h>
#include <marcel/topo.h>
#include <marcel/blocking.h>
#include <marcel/hook.h>
#include <marcel/tasklet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to start. Zero means: from the environment, else the default. */
struct marcel_config {
	int nvp;          /* virtual processors; MARCEL_NVP */
	size_t stacksize; /* bytes of a default stack; MARCEL_STACKSIZE */
	int local_rank;   /* this process among those that share the CPUs ... */
	int local_ranks;  /* ... and how many they are; 0 or 1: alone */
};

/*
 * Start the runtime; config NULL: all from the environment. The caller becomes
 * the first user thread: it stays on its kernel thread, which from now on also
 * drives VP 0 and must not end before marcel_end(). Calls nest: each is undone
 * by one marcel_end(), and only the outermost does anything.
 *
 * 0; -EINVAL: a nonsense value, named on stderr with what is allowed; -EAGAIN,
 * -ENOMEM: no LWP or no memory could be had; -ENODEV: no CPU to run on; -EPERM:
 * from another thread than the one that started the runtime.
 *
 * In the child of a fork(), made by any thread while the runtime ran, there is
 * none at first, and the caller is a foreign thread. The first marcel_init() or
 * marcel_create() there starts one, of which the calling thread is main as if
 * it had called marcel_init() once: with one VP, which is bound to no CPU, and
 * the parent's settings; config is not looked at. Nothing else of the parent's
 * goes on: neither threads nor hooks nor tasklets, and MPI is an error. -EPERM:
 * the child was forked by a hook, a tasklet, or a handler of signals that
 * interrupted the runtime.
 */
int marcel_init(const struct marcel_config *config);

/*
 * Stop the runtime. Waits for all other user threads to end. Only the thread
 * that called marcel_init(). 0; -EINVAL: not started, or in a forked child that
 * has started none; -EPERM: another thread.
 */
int marcel_end(void);

/*
 * True between marcel_init() and marcel_end(); in a forked child when it has
 * started a runtime of its own.
 */
int marcel_is_running(void);

/* Number of virtual processors; 0 before marcel_init(). Never blocks. */
int marcel_nvp(void);

/*
 * A hash over all picks so far, each a thread by the number of its creation,
 * with MARCEL_SCHED=random:SEED; else 0. It keeps its value until the next
 * marcel_init(). Equal hashes: the threads were run in the same order. Left out
 * of what a seed repeats are time-outs, calls that sleep in the kernel, and
 * what kernel threads that are not ours do; such a program may have another
 * hash each time. Never blocks.
 */
uint64_t marcel_schedule_hash(void);

/* The VP the caller runs on, or -1 for a foreign thread. Never blocks. */
int marcel_current_vp(void);

#ifdef __cplusplus
}
#endif

#endif
