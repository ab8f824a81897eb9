/*
 * A window of the one-sided benchmarks: every rank gives as much, all are open
 * to all (MPI_Win_lock_all) from its beginning to its end. Memory that MPI
 * allocates may be shared between the ranks of a machine; that of a program,
 * which it made itself, mostly is not.
 */
#ifndef BENCH_MPI_WINDOW_H
#define BENCH_MPI_WINDOW_H

#include "bench.h"

enum window_kind { ALLOCATED, CREATED };

struct window {
	MPI_Win win;
	enum window_kind kind;
	char *at; /* of this rank */
};

/* All ranks; it holds bench_fill()'s bytes. */
static inline void window_open(struct window *w, enum window_kind kind,
			       size_t bytes)
{
	w->kind = kind;
	if (kind == ALLOCATED) {
		MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL,
				 MPI_COMM_WORLD, &w->at, &w->win);
	} else {
		w->at = bench_alloc(bytes);
		MPI_Win_create(w->at, (MPI_Aint)bytes, 1, MPI_INFO_NULL,
			       MPI_COMM_WORLD, &w->win);
	}
	MPI_Win_lock_all(0, w->win);
	bench_fill(w->at, bytes, bench.rank);
	MPI_Win_sync(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* What others have put here is to be seen, after a barrier of all. */
static inline void window_look(struct window *w)
{
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(w->win);
}

static inline void window_close(struct window *w)
{
	MPI_Win_unlock_all(w->win);
	MPI_Win_free(&w->win);
	if (w->kind == CREATED)
		free(w->at);
}

#endif
