/*
 * What threads say of themselves while somebody watches, and what a layer adds
 * to two questions: can anything in this process still move,
 * and what is it that its threads wait for? marcel asks them (thread/hang.c),
 * on a kernel thread of its own and never in a handler, of the layers that have
 * a dumper (diag.h) with such functions.
 */
#ifndef BASE_HANG_H
#define BASE_HANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

/* --- what a thread says --- */

/* Who watches; bits. */
enum marcel_watch_for { MARCEL_WATCH_TRACE = 1, MARCEL_WATCH_HANGS = 2 };

struct marcel_watch {
	/* a: relaxed; by marcel */
	ATOMIC(uint32_t) on;    /* bits: of these */
	ATOMIC(uint32_t) looks; /* for hangs, so far: never 0 while they do */
};

extern struct marcel_watch marcel_watch;

/* A branch on a word that never changes while the runtime runs. */
static inline bool marcel_is_watched(void)
{
	return unlikely(load_relaxed(&marcel_watch.on) != 0);
}

static inline bool marcel_is_watched_for(enum marcel_watch_for what)
{
	return unlikely((load_relaxed(&marcel_watch.on) & what) != 0);
}

/* The slow halves of those below; only while it is watched. */
const char *marcel_function_push(const char *name);
void marcel_function_pop(const char *was);

/*
 * The calling thread is in the function of that name, a constant, until
 * marcel_function_end(what this returned). Any thread.
 */
static inline const char *marcel_function_begin(const char *name)
{
	return marcel_is_watched() ? marcel_function_push(name) : NULL;
}

static inline void marcel_function_end(const char *was)
{
	if (marcel_is_watched())
		marcel_function_pop(was);
}

/* Several events, NULL among them. */
struct marcel_events {
	const void *const *event;
	size_t n;
};

/* In the frame of a thread that waits for one of them, and polls. */
struct marcel_polling {
	struct marcel_events events;
	bool is_timed;  /* it stops at some time */
	uint32_t began; /* looks when this round began; 0: there was none */
};

/*
 * Another round begins; the one before, if there was one, found no event, and
 * is counted elsewhere if it found anything else. Who waits so does not move:
 * it is as good as asleep. Only while hangs are watched for; any thread, at the
 * top of its loop.
 */
void marcel_polls(struct marcel_polling *p);

/* It does not poll any more. If it ever did. */
void marcel_polls_end(struct marcel_polling *p);

/* --- what a layer adds --- */

/* Who may move a process in which no thread runs; bits. */
enum base_hang_by {
	BASE_HANG_TIME = 1,       /* a wait that ends at some time */
	BASE_HANG_DESCRIPTOR = 2, /* a descriptor that somebody waits for */
	BASE_HANG_LTASK = 4,      /* a task of pioman's */
	BASE_HANG_FOREIGN = 8,    /* a kernel thread that is not ours */
	BASE_HANG_SIGNAL = 16,    /* a signal: its handler, or who awaits it */
	BASE_HANG_PEER = 32,      /* messages of other processes of the job */
	BASE_HANG_TRANSFER = 64,  /* the body of a message that is under way */
	BASE_HANG_HOOK = 128,     /* a hook that VPs run while they idle */
};

struct base_hang {
	bool busy;   /* somebody is at work: ask again later */
	unsigned by; /* of enum base_hang_by */
	int ltasks;  /* pioman's; whoever knows what his do takes them off */
	int hooks;   /* that VPs which do not sleep run; likewise */
	int turns;   /* hooks that run at switches and ticks; likewise */
	int foreign; /* kernel threads that are not ours; likewise */
	int events;  /* that threads wait for; likewise */
	bool wanted; /* something that messages end is not over */
	uint64_t
		moved; /* a sum of counters: it changes with whatever is done */
	uint64_t sent, received; /* packets, to and from other processes */
};

/* Where lines of a report go. */
struct base_teller {
	void (*line)(struct base_teller *t, const char *text);
	/* NULL: or who waits for that rank of the job, in words */
	void (*edge)(struct base_teller *t, int rank, const char *text);
};

/* One line, as printf, without a newline; one longer than 500 bytes is cut. */
void base_tell(struct base_teller *t, const char *fmt, ...) BASE_PRINTF(2, 3);

struct base_hang_layer {
	/* Add to *h what this layer knows. */
	void (*look)(void *arg, struct base_hang *h);
	/*
	 * What the event is that a thread waits for, in words, and which rank
	 * of the job could end that wait, or -1. False: it is not known here.
	 */
	bool (*name)(void *arg, const void *event, char *out, size_t room,
		     int *rank);
	/* What is here that nobody wants, or is not over. NULL: nothing ever.*/
	void (*tell)(void *arg, struct base_teller *t);
};

#endif
