/*
 * marcel-top: what it knows of a process, and who finds out.
 */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define MARCEL_TOP "marcel-top"

/* Where a VP is when one looks at it. */
enum vp_does {
	VP_THREAD, /* runs a thread */
	VP_LTASKS, /* polls: it runs hooks, pioman's ltasks */
	VP_IDLE,   /* looks for a thread, or its driver is in a system call */
	VP_SLEEPS, /* in the kernel */
	VP_DOES,
};

struct vp {
	int cpu;                /* or -1: not bound */
	uint64_t seen[VP_DOES]; /* looks, since the last counts */
};

/* Threads, by state, at the last counts. */
struct threads {
	long running, ready, blocked, ended, foreign;
};

/* Since the process began; what there is no library for is not known. */
enum count {
	COUNT_SWITCHES,
	COUNT_PREEMPTED,
	COUNT_CREATED,
	COUNT_POLLS,
	COUNT_HITS,
	COUNT_INTERRUPTS,
	COUNT_SENDS,
	COUNT_RECEIVES,
	COUNT_UNEXPECTED,
	COUNT_PACKETS_OUT,
	COUNT_PACKETS_IN,
	COUNTS,
};

extern const char *const count_names[COUNTS];

/* The tables of a library in that process: offer.c. */
struct offer;

enum { LIB_MARCEL, LIB_PIOMAN, LIB_NMAD, LIBS };

struct process {
	struct process *next;
	pid_t pid, parent;
	uint64_t start; /* as the kernel counts: pid and start are unique */
	char name[32];
	struct offer *offers[LIBS]; /* or NULL */
	char trouble[160]; /* why nothing can be said about it, or "" */
	bool seen;         /* by the last search */
	bool is_shown;     /* there is something to say about it */

	int rank, size; /* -1: not known */
	int nvp;
	struct vp *vps; /* [nvp] */
	struct threads threads;
	long ltasks, pending;
	double at, before; /* seconds; of the last two counts; 0: none */
	bool known[COUNTS];
	uint64_t counts[COUNTS], last[COUNTS];
};

/* --- find.c --- */

/*
 * Bring the list up to date: all processes that one may look at, or the one.
 * Those that have ended leave it. Of one that is asked for by its number the
 * trouble says if it cannot be read.
 */
void find_processes(struct process **list, pid_t only);
void forget_processes(struct process **list);

/* --- offer.c --- */

/*
 * What the libraries of the process offer. 0: none does; 1: `offers` is set;
 * or -errno, with `trouble` set: it may not be read, or is of another version.
 */
int offer_open(struct process *p);
void offer_close(struct process *p);

/* What the library says of the name. False: that is not in it. */
bool offer_has(const struct offer *o, const char *name, uintptr_t *out);

/* That memory. False: not there, or no more. */
bool remote_read(pid_t pid, uintptr_t address, void *out, size_t bytes);

/* --- look.c --- */

/* Where each VP is now. False: the process has ended, or marcel in it has. */
bool look_at_vps(struct process *p);

/* Threads and counters; the looks begin anew with the next one. */
bool look_at_counts(struct process *p, double now);

/* --- show.c --- */

struct place {
	FILE *out;
	int rows, columns; /* of a screen; 0: as many as there are */
};

void show_processes(const struct place *where, const struct process *list,
		    double seconds);

#endif
