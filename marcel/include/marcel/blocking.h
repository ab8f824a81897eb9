/*
 * Announced blocking: calls that put their kernel thread to sleep.
 *
 * As in Trahay, Denis, Aumage, Namyst, "Improving reactivity and communication
 * overlap in MPI using a generic I/O manager" (EuroPVM/MPI 2007), section 3.2:
 * a spare kernel thread of lowest priority runs the other threads of the VP
 * while the caller sleeps in the kernel, and a call that does not sleep costs
 * no switch.
 */
#ifndef MARCEL_BLOCKING_H
#define MARCEL_BLOCKING_H

#include <marcel/errno.h>

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the caller does until marcel_blocking_end() may sleep in the kernel: its
 * VP may go on without it meanwhile. The caller stays on its kernel thread, and
 * errno as it is. A call to marcel in between ends the section. Where no kernel
 * thread can be had (MARCEL_LWP_MAX), the VP waits with the caller. No signal
 * of the runtime's ends a system call in a section with EINTR.
 *
 * From user threads and main; from a foreign thread, outside a section (end)
 * and in one (begin) they do nothing. Neither fails. begin() may switch to
 * other threads; end() does not block. Not from hooks or `after` functions.
 */
void marcel_blocking_begin(void);
void marcel_blocking_end(void);

/*
 * As pthread_create(), for a kernel thread that is foreign to marcel, blocks
 * all signals but those of its own faults, and has ordinary priority whoever
 * calls: what drives a VP may have the lowest, which a child would inherit.
 * Runtime started. Blocks for short. 0; -EAGAIN.
 */
int marcel_kernel_thread(pthread_t *out, void *(*fn)(void *), void *arg);

#ifdef __cplusplus
}
#endif

#endif
