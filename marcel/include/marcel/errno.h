/*
 * errno in user threads. <marcel/thread.h>, <marcel/marcel.h> and
 * <marcel/pthread.h> include this header. Order does not matter: <errno.h> or
 * <cerrno> may come before or after it. Each file whose code runs in user
 * threads needs one of these headers; <mpi.h> alone does not redefine errno.
 * Inline functions of other headers (std::stoi()) use errno as it was defined
 * where they stand: include this header before them, or compile with
 * `-include marcel/errno.h`.
 *
 * libc keeps some values per kernel thread and declares the functions that
 * return their addresses const. A compiler then computes the address once and
 * uses it after a call that moved the user thread to another kernel thread.
 * Only calls that may wait (of marcel, pioman, nmad, MPI) move a thread. A time
 * slice that ends moves nobody: a preempted thread keeps its kernel thread.
 * Main and foreign threads never move, and a thread with
 * marcel_attr_setprivatetls() keeps its own kernel thread: for them, all of the
 * table holds as with POSIX threads.
 *
 *	errno		follows the user thread, through the macro below
 *	h_errno		right only until the next call that may wait, and only
 *			if the function does not use it before such a call:
 *			use getaddrinfo() or gethostbyname_r(), which return
 *			their errors
 *	__thread,	belong to the kernel thread: after a call that may wait
 *	thread_local	the value is another thread's, and the address may be
 *			the old one: use marcel_key_create(); for the kernel
 *			thread's value, a function that is not inlined
 *	<ctype.h>	right while all kernel threads have one locale: call
 *			setlocale() before the runtime starts, for libc updates
 *			the tables of the calling kernel thread only
 *	uselocale()	changes the locale of the kernel thread: restore it
 *			before the next call that may wait, or use
 *			isalpha_l() and its like
 */
#ifndef MARCEL_ERRNO_H
#define MARCEL_ERRNO_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the address of errno for the calling user thread. The address is
 * right until the thread's next call that may wait, and until a handler of
 * pthread_kill()'s signals makes such a call. A switch saves and restores the
 * value. In `errno = f();` a C compiler may take the address before it calls f:
 * if f may wait, write `rc = f(); errno = rc;`.
 */
int *marcel_errno_location(void);

#ifdef __cplusplus
}
#endif

#undef errno
#define errno (*marcel_errno_location())

#endif
