/*
 * Shared by the parts of the program: the kinds of objects, and the places of
 * the objects of the kind that is measured.
 */
#ifndef BENCH_OBJECTS_H
#define BENCH_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

/* Of an object at place i. */
struct kind {
	const char *name;
	void (*begin)(void);   /* or NULL */
	bool (*create)(int i); /* false: there can be no more */
	void (*use)(int i);    /* or NULL */
	void (*drop)(int i);
	void (*end)(void); /* or NULL */
};

/* Each ends with a kind without a name. */
extern const struct kind objects_mpi[], objects_requests[], objects_tool[],
	objects_threads[], objects_low[];

extern int most;      /* places of all arrays */
extern void **handle; /* by place */
extern int *number;   /* by place */
extern int value;     /* what is sent */
extern MPI_Comm self; /* a duplicate of MPI_COMM_SELF */

/* An array of all places, zero; the program ends if there is no memory. */
void *places(size_t bytes);

/* The program ends unless that is fine. */
void need(bool fine, const char *what);

#define NEED(call) need((call) == 0, #call)

#endif
