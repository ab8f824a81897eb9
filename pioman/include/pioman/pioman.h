/*
 * pioman: an I/O manager. Work that makes communication progress is described
 * by small tasks (ltasks), which run when a VP is idle, when a thread switches,
 * or when somebody asks; who waits for an event waits here.
 *
 * All functions return 0 or a negative errno and may be called from user
 * threads and foreign threads alike, unless they say otherwise.
 */
#ifndef PIOMAN_PIOMAN_H
#define PIOMAN_PIOMAN_H

#include <pioman/cond.h>
#include <pioman/io.h>
#include <pioman/ltask.h>
#include <pioman/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Start; calls nest. Reads PIOM_*. -EINVAL: marcel does not run, or, after a
 * message, a variable's value is nonsense; other -errno: what the kernel
 * refuses of memory, descriptors and threads. Then nothing has been started.
 * Not from an ltask; may block, also on another thread's piom_init().
 * PIOM_ENGINE=marcel registers with the idle, the switch and the tick hook of
 * marcel; pthread polls by kernel threads of lowest priority and a timer, for
 * programs that compute with OpenMP or threads of their own; none leaves all
 * polling to piom_poll() and to waits.
 */
int piom_init(void);

/*
 * Undo one piom_init(); the last stops it, before marcel stops. -EBUSY if
 * ltasks are still submitted, or threads wait for descriptors; -EINVAL: not
 * started, as also in the child of a fork(). Not from an ltask, nor while
 * another thread polls, waits or reads counters.
 */
int piom_exit(void);

/*
 * Run once every ltask that the caller's VP may run (a foreign thread: those
 * of the machine's queue; with PIOM_ENGINE=pthread both, those of the package
 * that the thread is on). Never blocks. The number of ltasks that did work; 0
 * while pioman does not run. Not from an ltask.
 */
int piom_poll(void);

/*
 * True if a VP has nothing to run, so that it would soon run a kicked ltask:
 * what is left to one is then done beside the caller, who may go on computing.
 * With PIOM_ENGINE=marcel; else false. A hint; anyone, never blocks.
 */
int piom_any_idle(void);

#ifdef __cplusplus
}
#endif

#endif
