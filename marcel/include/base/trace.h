/*
 * What the libraries say of what they do, for MARCEL_TRACE: where nobody asked
 * for it, a branch on a word that never changes while the runtime runs.
 *
 * The file's form is in marcel/trace/format.h.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

/*
 * Kinds. "thread": b is the descriptor. The thread that does something is the
 * one that runs on the lane (RUN); on the lane of a kernel thread, that itself.
 * "text": a is its length in bytes, and MOREs hold it, 16 bytes each: those of
 * c in memory order, then those of b; the rest is 0.
 */
enum marcel_trace_kind {
	MARCEL_TRACE_NONE, /* no record is 0 */
	MARCEL_TRACE_MORE,
	/* a kernel thread records its first event; b: kernel's id (gettid);
	 * text: its name. A lane is used again after its thread has ended. */
	MARCEL_TRACE_LANE,

	/* --- user threads --- */
	/* thread is made, by who runs here; main, and threads that were there
	 * before: the first event of it */
	MARCEL_TRACE_NEW = 16,
	/* thread is called; text */
	MARCEL_TRACE_NAME,
	/* this VP runs the thread from now on; whatever ran here does not */
	MARCEL_TRACE_RUN,
	/* thread has been woken, by who runs here: from blocked to ready. No
	 * effect on one that is not blocked: it will stay awake when it next
	 * tries to sleep */
	MARCEL_TRACE_READY,
	/* thread is about to sleep until a READY; text: what it waits for, such
	 * as "mutex"; may be empty. A RUN of it without READY: it was woken as
	 * it went to sleep, or by its kernel thread */
	MARCEL_TRACE_BLOCK,
	/* thread makes way, and stays ready; a: 1 if it was interrupted */
	MARCEL_TRACE_YIELD,
	/* thread ends; only destructors of a kernel thread of its own still
	 * come. Its address may come again */
	MARCEL_TRACE_ENDED,

	/* --- VPs: what is not a thread --- */
	/* nothing to run: it looks for work, and polls */
	MARCEL_TRACE_IDLE = 32,
	/* sleeps in the kernel; a: 1 if for a short time only (it watches) */
	MARCEL_TRACE_SLEEP,
	/* awake: looks for work again */
	MARCEL_TRACE_WAKE,

	/* --- pioman --- */
	/* an ltask was run and found something; just now; a: ticks that it
	 * took (so it began at time - a); b: its function; and more: c: the
	 * ltask, a: where (0 idle, 1 switch, 2 tick, 3 on demand, 4 a wait,
	 * 5 a kernel thread that polls, 6 a timer, 7 the watcher), b: 0 */
	MARCEL_TRACE_LTASK = 48,
	/* an ltask waits in the kernel from now on; b: its function; and more:
	 * c: the ltask, a: 0 the watcher waits for its descriptor, which is b,
	 * 1 a kernel thread waits in its function */
	MARCEL_TRACE_EXPORT,
	/* and that is over, an interrupt; a: 0 a descriptor, which is b, 1 a
	 * kernel thread comes back, and the ltask is b */
	MARCEL_TRACE_INTERRUPT,

	/* --- nmad. a: number of the message, b: rank of the peer << 32 | tag,
	 * and more: c: session, b: bytes. A message is one of (source,
	 * destination, session, number); the session's value is the same in
	 * all processes. --- */
	/* it is put in line for the network; source: this rank */
	MARCEL_TRACE_SEND = 64,
	/* its send is complete */
	MARCEL_TRACE_SENT,
	/* its first packet is here, in order; source: the peer; MORE's a: 1 if
	 * nobody waited for it (unexpected), and bytes may be 0 */
	MARCEL_TRACE_ARRIVE,
	/* its receive is complete, the data are there; bytes: that it had */
	MARCEL_TRACE_RECV,

	/* --- MPI. a: function, a STRINGS id. Calls nest in one thread, which
	 * may be on another lane when it leaves --- */
	MARCEL_TRACE_MPI_ENTER = 80,
	/* b: what it returns, as int */
	MARCEL_TRACE_MPI_LEAVE,
};

/* Whether events are recorded; marcel's, between init and end. */
struct marcel_trace_switch {
	ATOMIC(int) on; /* a: relaxed */
};

extern struct marcel_trace_switch marcel_trace_switch;

/* The slow halves of those below; only while it is on. */
void marcel_trace_put(enum marcel_trace_kind kind, uint32_t a, uint64_t b);
void marcel_trace_put_more(enum marcel_trace_kind kind, uint32_t a, uint64_t b,
			   uint32_t more_a, uint64_t more_b, uint64_t more_c);

static inline bool marcel_trace_is_on(void)
{
	return unlikely(load_relaxed(&marcel_trace_switch.on) != 0);
}

/* Anyone, anywhere but in a handler of signals of a kernel thread not ours. */
static inline void marcel_trace(enum marcel_trace_kind kind, uint32_t a,
				uint64_t b)
{
	if (marcel_trace_is_on())
		marcel_trace_put(kind, a, b);
}

/* The same for kinds "and more". */
static inline void marcel_trace_more(enum marcel_trace_kind kind, uint32_t a,
				     uint64_t b, uint32_t more_a,
				     uint64_t more_b, uint64_t more_c)
{
	if (marcel_trace_is_on())
		marcel_trace_put_more(kind, a, b, more_a, more_b, more_c);
}

/* Now, in the ticks of the file; only while events are recorded. */
uint64_t marcel_trace_now(void);

/* This process is one of a job: the name of its file, and its header. */
void marcel_trace_job(int rank, int size);

/* What values of a kind's `a` are called: names[i] that of i. They are copied.
 */
void marcel_trace_names(enum marcel_trace_kind kind, const char *const *names,
			uint32_t n);

#endif
