/*
 * The plane of heat is cut into rows x cols tiles, and these are dealt out to
 * the ranks in runs. A tile keeps its cells with a rim of one cell around
 * them, in which it holds its neighbours' borders:
 *
 *      . n n n n .      n, s, w, e: copies of what lies beyond; at the edge
 *      w o o o o e      of the plane, of the tile's own border, so that no
 *      w o o o o e      heat is lost there
 *      . s s s s .
 */
#ifndef HEAT_TILE_H
#define HEAT_TILE_H

#include <mpi.h>

#include "picture.h"

enum side { NORTH, SOUTH, WEST, EAST, SIDES };

/* How the plane is cut; the same in all ranks. */
struct grid {
	int width, height; /* cells */
	int rows, cols;    /* tiles */
	int ranks;
	int steps;
};

/* A rectangle of cells of the plane. */
struct area {
	int top, left, height, width;
};

/* Used by one thread at a time. */
struct tile {
	const struct grid *grid;
	int index; /* row * cols + column */
	struct area area;
	int pitch;           /* cells from one row to the next */
	float *now, *next;   /* cells with rim */
	MPI_Datatype column; /* a west or east border */
};

/* Who has the tile, and which cells it covers. */
int grid_owner(const struct grid *g, int index);
struct area grid_area(const struct grid *g, int index);

/* Take the tile's cells from the plane; memory or -ENOMEM. */
int tile_init(struct tile *t, const struct grid *g, int index,
	      const float *plane);
void tile_exit(struct tile *t);

/* All steps: exchange borders with the neighbours, then spread. */
void tile_run(struct tile *t);

/* Send the cells to rank 0; *req completes when they may be touched. */
void tile_send(struct tile *t, MPI_Request *req);

/* In rank 0: receive the cells of a tile into the plane. */
void tile_receive(const struct grid *g, int index, float *plane);

/* The law: a cell moves towards the mean of its four neighbours. */
static inline float heat_cell(float here, float north, float south, float west,
			      float east)
{
	return here + 0.2f * ((north + south) + (west + east) - 4 * here);
}

#endif
