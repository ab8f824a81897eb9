/*
 * How a thread ends before its function returns: exit, cancellation, cleanup
 * handlers.
 *
 * The thread's stack is unwound first, as by an exception that nobody may
 * keep: destructors of C++ objects and cleanup handlers run, innermost first,
 * then the destructors of keys. catch (...) sees it and must end in throw; a
 * process that swallows it is ended with a message, as is one that lets it
 * leave a noexcept function. Frames without unwind tables end the unwinding;
 * handlers behind them still run.
 */
#ifndef MARCEL_CANCEL_H
#define MARCEL_CANCEL_H

#include <marcel/thread.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * End the calling thread; who joins it gets the value. In main: run its
 * handlers, wait for all other user threads, end the process with status 0.
 * In a foreign thread: handlers pushed by C code that was compiled without
 * -fexceptions run, then pthread_exit() does all else. Not from hooks or
 * `after` functions.
 */
void marcel_exit(void *value) __attribute__((noreturn));

/* What a cancelled thread has ended with. */
#define MARCEL_CANCELED ((void *)-1)

#define MARCEL_CANCEL_ENABLE       0
#define MARCEL_CANCEL_DISABLE      1
#define MARCEL_CANCEL_DEFERRED     0
#define MARCEL_CANCEL_ASYNCHRONOUS 1

/*
 * Have t end as by marcel_exit(MARCEL_CANCELED) at its next cancellation point,
 * or in the one where it waits, if and as soon as it allows that. From any
 * thread, once or often; it does not wait for t. What t waits for and is
 * granted at the same moment it has: then it goes on to its next one. Of a
 * thread that has ended and was not joined: 0, and nothing happens. ESRCH: a
 * thread that is no more, if that can still be seen. Not from hooks or `after`
 * functions.
 *
 * Cancellation points are testcancel, cond_wait, sem_wait, join, their timed
 * forms, what sleeps (<marcel/time.h>), sigwait and its kin, and calls that may
 * sleep in the kernel
 * (<marcel/io.h>, but getaddrinfo): if such a call has done something it
 * returns that, and its caller goes on. From a wait for a condition a thread
 * first comes back to the mutex. A mutex, a read-write lock, a barrier, once,
 * an event are none. A foreign thread ends at the same
 * points but calls in the kernel. Past MARCEL_LWP_MAX such a call ends only by
 * itself.
 */
int marcel_cancel(marcel_t t);
void marcel_testcancel(void);

/*
 * What the caller allows from now on; *old, if not NULL, is what it did before.
 * At first: ENABLE, DEFERRED. EINVAL: no such state or type. With ASYNCHRONOUS
 * a thread may also end in these two functions, when it cancels itself, and at
 * the end of a time slice, between any two instructions, if all functions on
 * its stack are of the executable or of the object of its first function: not
 * inside marcel, libc, other libraries, or what these have called, nor in a
 * handler of a signal. So it should call only what POSIX calls async-cancel-
 * safe, these two and marcel_cancel(); what it locks or allocates otherwise is
 * lost if it ends before its handlers know.
 *
 * It does not end there, but at cancellation points, if it is main, is not
 * preemptible, or MARCEL_TIMESLICE_US is 0; if the program has marcel in it as
 * a static library, or an allocator; if its first function is in a library, but
 * for one of the program's that has no thread-local storage; within
 * marcel_blocking_begin() and its end; if code on the stack has no unwind
 * tables (-fno-asynchronous-unwind-tables); with glibc before 2.35, or TSan.
 * Nor in a function of C++, or of C with -fexceptions, that has destructors or
 * handlers to run, nor called by one that takes it for throwing nothing, as
 * noexcept, nor below catch (...). Such a function should compute in another
 * one that the compiler does not see: if it calls nothing that may throw,
 * nobody is told what it has to run at all.
 */
int marcel_setcancelstate(int state, int *old);
int marcel_setcanceltype(int type, int *old);

/* A handler that C code has pushed; in the frame that pushed it. */
struct marcel_cleanup {
	void (*marcel_fn)(void *);
	void *marcel_arg;
	struct marcel_cleanup *marcel_below;
};

/* What the macros below are made of. */
void marcel_cleanup_enter(struct marcel_cleanup *c);
void marcel_cleanup_leave(struct marcel_cleanup *c, int execute);

#ifdef __cplusplus
}
#endif

/*
 * As pthread_cleanup_push() and _pop(): a pair in one block, as they open and
 * close one. fn(arg) runs if the thread ends in between, in C++ and in C with
 * -fexceptions also when an exception passes, or at the pop if `execute` is
 * not 0. Leave the block in between by the thread's end only.
 */
#if defined __cplusplus
class marcel_cleanup_scope
{
	void (*fn)(void *);
	void *arg;

      public:
	int marcel_execute;

	marcel_cleanup_scope(void (*fn_)(void *), void *arg_)
	    : fn(fn_), arg(arg_), marcel_execute(1)
	{
	}
	~marcel_cleanup_scope()
#if __cplusplus >= 201103L
		noexcept(false)
#endif
	{
		if (marcel_execute)
			fn(arg);
	}
};

#define marcel_cleanup_push(fn, arg)                                           \
	do {                                                                   \
	marcel_cleanup_scope marcel_scope(fn, arg)
#define marcel_cleanup_pop(execute)                                            \
	marcel_scope.marcel_execute = (execute);                               \
	}                                                                      \
	while (0)
#elif defined __EXCEPTIONS
struct marcel_cleanup_scope {
	void (*marcel_fn)(void *);
	void *marcel_arg;
	int marcel_execute;
};

static inline void marcel_cleanup_run(struct marcel_cleanup_scope *s)
{
	if (s->marcel_execute)
		s->marcel_fn(s->marcel_arg);
}

#define marcel_cleanup_push(fn, arg)                                           \
	do {                                                                   \
	struct marcel_cleanup_scope marcel_scope                               \
		__attribute__((cleanup(marcel_cleanup_run))) = { fn, arg, 1 }
#define marcel_cleanup_pop(execute)                                            \
	marcel_scope.marcel_execute = (execute);                               \
	}                                                                      \
	while (0)
#else
#define marcel_cleanup_push(fn, arg)                                           \
	do {                                                                   \
		struct marcel_cleanup marcel_scope = { fn, arg, 0 };           \
	marcel_cleanup_enter(&marcel_scope)
#define marcel_cleanup_pop(execute)                                            \
	marcel_cleanup_leave(&marcel_scope, execute);                          \
	}                                                                      \
	while (0)
#endif

#endif
