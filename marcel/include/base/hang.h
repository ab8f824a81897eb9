/*
 * What a layer adds to two questions: can anything in this process still move,
 * and what is it that its threads wait for? marcel asks them (thread/hang.c),
 * on a kernel thread of its own and never in a handler, of the layers that have
 * a dumper (diag.h) with such functions.
 */
#ifndef BASE_HANG_H
#define BASE_HANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/compiler.h>

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
