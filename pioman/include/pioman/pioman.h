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
 * Start; marcel must be running. Calls nest. Reads PIOM_*: -EINVAL after a
 * message for a nonsense value. PIOM_ENGINE=marcel registers with the idle, the
 * switch and the tick hook of marcel; pthread polls by kernel threads of lowest
 * priority and a timer, for programs that compute with OpenMP or threads of
 * their own; none leaves all polling to piom_poll() and to waits.
 */
int piom_init(void);

/*
 * Stop, before marcel does. -EBUSY if ltasks are still submitted; -EINVAL: not
 * started. Not from an ltask, nor in a forked child, nor while another thread
 * polls, waits or reads counters.
 */
int piom_exit(void);

/*
 * Run once every ltask that the caller's VP may run (a foreign thread: those
 * of the machine's queue). Never blocks. The number of ltasks that did work.
 * Not from an ltask.
 */
int piom_poll(void);

#ifdef __cplusplus
}
#endif

#endif
