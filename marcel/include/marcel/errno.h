/*
 * errno in user threads. Each file that runs in user threads needs this header.
 * The headers of marcel and pioman whose functions may wait include it; <mpi.h>
 * and nmad's headers do not. <errno.h> may come before it or after it.
 *
 * An inline function of another header (std::stoi()) uses the errno that was
 * defined above it. Include this header first, or compile with the option
 * `-include marcel/errno.h` of gcc and clang. Link with -lmarcel: mpicc adds
 * only -lmpi_abi. With `-include`, <errno.h> is read before the file's
 * `#define _GNU_SOURCE`: add -D_GNU_SOURCE= to the command line.
 *
 * libc keeps some values per kernel thread and declares the functions that
 * return their addresses as const. A compiler may therefore call such a
 * function once and reuse the address after the user thread has moved to
 * another kernel thread. A thread moves only in a call that waits or yields,
 * and in marcel_setaffinity() and marcel_create_first(). Calls of marcel,
 * pioman, nmad and MPI may wait, and so may libc's functions that libmarcel
 * replaces: usleep(), read(), poll(), open() and others (<marcel/io.h>). The
 * end of a time slice moves no thread. Main, foreign threads, and threads with
 * marcel_attr_setprivatetls() never move: for them, everything in the table
 * works as with POSIX threads.
 *
 *	errno		follows the user thread, through the macro below
 *	pthread_self(), std::this_thread::get_id()
 *			name the kernel thread, perhaps the one before the move;
 *			<marcel/pthread.h> redefines pthread_self(), but not
 *			get_id(): use marcel_self()
 *	__thread,	belong to the kernel thread: after a move the value is
 *	thread_local	another thread's, and the address may be the old one.
 *			Use marcel_key_create(). To read the kernel thread's
 *			value, call a function that returns the value, not the
 *			address. Define it in another file, without LTO, or with
 *			gcc's __attribute__((noipa))
 *	h_errno, _res	right only until the thread moves, and only in a
 *			function that has not used it before an earlier move:
 *			use getaddrinfo() or gethostbyname_r(), and res_nquery()
 *			with a struct of the thread's own
 *	inet_ntoa(),	the text is right until the thread moves: after that,
 *	strerror()	other threads may overwrite it. strerror() of a number
 *			that libc knows is a constant. Use inet_ntop() and
 *			strerror_r()
 *	dlerror()	lost when the thread moves: call it right after the call
 *			that failed
 *	<ctype.h>	right while all kernel threads have one locale: call
 *			setlocale() before the runtime starts, because libc
 *			updates the tables of the calling kernel thread only
 *	uselocale()	changes the locale of the kernel thread: restore it
 *			before the next call that waits, or use isalpha_l() and
 *			its like
 */
#ifndef MARCEL_ERRNO_H
#define MARCEL_ERRNO_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the address of errno for the calling user thread. The address is
 * valid until the thread moves. A call that moves the thread saves and restores
 * the value. In `errno = f();` a compiler of C, or of C++ before C++17, may
 * take the address before it calls f: if f waits, store its result in a
 * variable first.
 */
int *marcel_errno_location(void);

#ifdef __cplusplus
}
#endif

#undef errno
#define errno (*marcel_errno_location())

#endif
