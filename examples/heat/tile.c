/*
 * A tile and its exchange. Each border is a message of its own: its tag names
 * the receiving tile and the side, so that it is the same whether the
 * neighbour is in this process or another, and messages of successive steps
 * are told apart by their order.
 */
#include "tile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int grid_owner(const struct grid *g, int index)
{
	return (int)((long)index * g->ranks / ((long)g->rows * g->cols));
}

struct area grid_area(const struct grid *g, int index)
{
	long row = index / g->cols, col = index % g->cols;
	struct area a;

	a.top = (int)(row * g->height / g->rows);
	a.left = (int)(col * g->width / g->cols);
	a.height = (int)((row + 1) * g->height / g->rows) - a.top;
	a.width = (int)((col + 1) * g->width / g->cols) - a.left;
	return a;
}

/* The cell of the tile; -1 and height or width are the rim. */
static float *cell(const struct tile *t, float *cells, int row, int col)
{
	return cells + (long)(row + 1) * t->pitch + col + 1;
}

int tile_init(struct tile *t, const struct grid *g, int index,
	      const float *plane)
{
	size_t bytes;

	t->grid = g;
	t->index = index;
	t->area = grid_area(g, index);
	t->pitch = t->area.width + 2;
	bytes = (size_t)(t->area.height + 2) * (size_t)t->pitch * sizeof(float);
	t->now = calloc(1, bytes);
	t->next = calloc(1, bytes);
	if (t->now == NULL || t->next == NULL) {
		free(t->now);
		free(t->next);
		return -ENOMEM;
	}
	for (int row = 0; row < t->area.height; row++)
		memcpy(cell(t, t->now, row, 0),
		       plane + (long)(t->area.top + row) * g->width +
			       t->area.left,
		       (size_t)t->area.width * sizeof(float));
	MPI_Type_vector(t->area.height, 1, t->pitch, MPI_FLOAT, &t->column);
	MPI_Type_commit(&t->column);
	return 0;
}

void tile_exit(struct tile *t)
{
	MPI_Type_free(&t->column);
	free(t->now);
	free(t->next);
}

/* --- the exchange --- */

/* A side of a tile: its border, the rim beyond it, and who is there. */
struct edge {
	float *border, *rim;
	int count;
	MPI_Datatype type;
	int neighbour; /* tile, or -1: the plane ends */
};

static struct edge edge_of(const struct tile *t, enum side side)
{
	const struct grid *g = t->grid;
	int h = t->area.height, w = t->area.width;
	int row = t->index / g->cols, col = t->index % g->cols;
	struct edge e = { .count = 1, .type = t->column, .neighbour = -1 };

	if (side == NORTH || side == SOUTH) {
		e.count = w;
		e.type = MPI_FLOAT;
		e.border = cell(t, t->now, side == NORTH ? 0 : h - 1, 0);
		e.rim = cell(t, t->now, side == NORTH ? -1 : h, 0);
		if (side == NORTH ? row > 0 : row < g->rows - 1)
			e.neighbour =
				t->index + (side == NORTH ? -g->cols : g->cols);
	} else {
		e.border = cell(t, t->now, 0, side == WEST ? 0 : w - 1);
		e.rim = cell(t, t->now, 0, side == WEST ? -1 : w);
		if (side == WEST ? col > 0 : col < g->cols - 1)
			e.neighbour = t->index + (side == WEST ? -1 : 1);
	}
	return e;
}

static int tag_of(int receiver, enum side side)
{
	return receiver * SIDES + (int)side;
}

/* NORTH and SOUTH, WEST and EAST differ in the lowest bit. */
static enum side opposite(enum side side)
{
	return (enum side)((int)side ^ 1);
}

/* At the edge of the plane the border is its own neighbour. */
static void copy_border(const struct tile *t, const struct edge *e,
			enum side side)
{
	if (side == NORTH || side == SOUTH) {
		memcpy(e->rim, e->border,
		       (size_t)t->area.width * sizeof(float));
		return;
	}
	for (int row = 0; row < t->area.height; row++)
		e->rim[(long)row * t->pitch] = e->border[(long)row * t->pitch];
}

static void exchange(const struct tile *t)
{
	MPI_Request reqs[2 * SIDES];
	int n = 0;

	for (int s = 0; s < SIDES; s++) {
		struct edge e = edge_of(t, (enum side)s);
		int owner;

		if (e.neighbour < 0) {
			copy_border(t, &e, (enum side)s);
			continue;
		}
		owner = grid_owner(t->grid, e.neighbour);
		MPI_Irecv(e.rim, e.count, e.type, owner,
			  tag_of(t->index, (enum side)s), MPI_COMM_WORLD,
			  &reqs[n++]);
		MPI_Isend(e.border, e.count, e.type, owner,
			  tag_of(e.neighbour, opposite((enum side)s)),
			  MPI_COMM_WORLD, &reqs[n++]);
	}
	MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
}

static void spread(struct tile *t)
{
	for (int row = 0; row < t->area.height; row++) {
		const float *here = cell(t, t->now, row, 0);
		const float *north = here - t->pitch, *south = here + t->pitch;
		float *out = cell(t, t->next, row, 0);

		for (int col = 0; col < t->area.width; col++)
			out[col] = heat_cell(here[col], north[col], south[col],
					     here[col - 1], here[col + 1]);
	}
}

void tile_run(struct tile *t)
{
	for (int step = 0; step < t->grid->steps; step++) {
		float *old = t->now;

		exchange(t);
		spread(t);
		t->now = t->next;
		t->next = old;
	}
}

/* --- the result --- */

static int result_tag(const struct grid *g, int index)
{
	return g->rows * g->cols * SIDES + index;
}

/* The cells without their rim, gathered in the buffer that is free now. */
void tile_send(struct tile *t, MPI_Request *req)
{
	for (int row = 0; row < t->area.height; row++)
		memcpy(t->next + (long)row * t->area.width,
		       cell(t, t->now, row, 0),
		       (size_t)t->area.width * sizeof(float));
	MPI_Isend(t->next, t->area.height * t->area.width, MPI_FLOAT, 0,
		  result_tag(t->grid, t->index), MPI_COMM_WORLD, req);
}

/* Rows of a tile lie apart in the plane: a vector of them. */
void tile_receive(const struct grid *g, int index, float *plane)
{
	struct area a = grid_area(g, index);
	MPI_Datatype rows;

	MPI_Type_vector(a.height, a.width, g->width, MPI_FLOAT, &rows);
	MPI_Type_commit(&rows);
	MPI_Recv(plane + (long)a.top * g->width + a.left, 1, rows,
		 grid_owner(g, index), result_tag(g, index), MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Type_free(&rows);
}
