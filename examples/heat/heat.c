/*
 * heat: spread the heat of a picture over the plane. The plane is cut into
 * tiles, each tile is a user thread, and each thread exchanges the borders of
 * its tile with its neighbours by MPI calls of its own, whether they live in
 * its process or in another. A thread that waits for a border blocks alone.
 *
 *   mpirun -n 2 heat --tiles 32x32 --steps 100 --verify picture.pgm
 */
#include <errno.h>
#include <marcel/marcel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "options.h"
#include "picture.h"
#include "tile.h"
#include "verify.h"

static int rank, ranks;

static void fail(const char *what, int error)
{
	fprintf(stderr, "heat: rank %d: %s: %s\n", rank, what, strerror(error));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- spread --- */

static void *tile_main(void *arg)
{
	struct tile *t = arg;
	MPI_Request req;

	tile_run(t);
	tile_send(t, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	return NULL;
}

/* Rank 0 collects all tiles, in any rank, while their threads still run. */
static void collect(const struct grid *g, float *plane)
{
	for (int i = 0; rank == 0 && i < g->rows * g->cols; i++)
		tile_receive(g, i, plane);
}

static void run_threads(const struct grid *g, struct tile *tiles, int n,
			float *plane)
{
	marcel_t *threads = calloc((size_t)n + 1, sizeof(*threads));

	if (threads == NULL)
		fail("threads", ENOMEM);
	for (int i = 0; i < n; i++) {
		int rc = marcel_create(&threads[i], NULL, tile_main, &tiles[i]);

		if (rc != 0)
			fail("marcel_create", rc);
	}
	collect(g, plane);
	for (int i = 0; i < n; i++)
		marcel_join(threads[i], NULL);
	free(threads);
}

/* For comparison: the process has one tile and no thread but this one. */
static void run_single(const struct grid *g, struct tile *tiles, int n,
		       float *plane)
{
	MPI_Request req = MPI_REQUEST_NULL;

	if (n > 0) {
		tile_run(&tiles[0]);
		tile_send(&tiles[0], &req);
	}
	collect(g, plane);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* Make the tiles of this rank; the number of them. */
static int make_tiles(const struct grid *g, const float *plane,
		      struct tile **out)
{
	int all = g->rows * g->cols, n = 0;
	struct tile *tiles = calloc((size_t)all, sizeof(*tiles));

	if (tiles == NULL)
		fail("tiles", ENOMEM);
	for (int i = 0; i < all; i++)
		if (grid_owner(g, i) == rank &&
		    tile_init(&tiles[n++], g, i, plane) != 0)
			fail("tiles", ENOMEM);
	*out = tiles;
	return n;
}

/* The result replaces `plane` in rank 0. Returns the seconds it took. */
static double spread(const struct grid *g, float *plane, int single)
{
	struct tile *tiles;
	int n = make_tiles(g, plane, &tiles);
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	if (single)
		run_single(g, tiles, n, plane);
	else
		run_threads(g, tiles, n, plane);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	while (n > 0)
		tile_exit(&tiles[--n]);
	free(tiles);
	return start;
}

/* --- before and after --- */

/* Rank 0 reads; everybody gets the whole picture. False: rank 0 said why. */
static int distribute(const char *path, struct picture *p)
{
	char why[512];
	int size[2] = { 0, 0 };

	if (rank == 0) {
		if (picture_read(path, p, why, sizeof(why)) == 0) {
			size[0] = p->width;
			size[1] = p->height;
		} else {
			fprintf(stderr, "heat: %s\n", why);
		}
	}
	MPI_Bcast(size, 2, MPI_INT, 0, MPI_COMM_WORLD);
	if (size[0] == 0)
		return 0;
	p->width = size[0];
	p->height = size[1];
	if (rank != 0)
		p->heat = malloc((size_t)size[0] * (size_t)size[1] *
				 sizeof(float));
	if (p->heat == NULL)
		fail("the picture", ENOMEM);
	for (int y = 0; y < p->height; y++)
		MPI_Bcast(p->heat + (long)y * p->width, p->width, MPI_FLOAT, 0,
			  MPI_COMM_WORLD);
	return 1;
}

static int write_result(const struct picture *p, const char *prefix)
{
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s.pgm", prefix);
	rc = picture_write_pgm(p, path);
	if (rc == 0) {
		printf("picture: %s\n", path);
		snprintf(path, sizeof(path), "%s.png", prefix);
		rc = picture_write_png(p, path);
	}
	if (rc == -ENOSYS) {
		printf("no PNG: built without libpng\n");
		return 0;
	}
	if (rc == 0)
		printf("picture: %s\n", path);
	else
		fprintf(stderr, "heat: %s: %s\n", path, strerror(-rc));
	return rc != 0;
}

/* CPU seconds of all ranks, in rank 0. */
static double cpu_seconds(void)
{
	struct rusage u;
	double mine, sum = 0;

	getrusage(RUSAGE_SELF, &u);
	mine = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return sum;
}

static int check_size(const struct grid *g)
{
	if (g->rows <= g->height && g->cols <= g->width)
		return 1;
	if (rank == 0)
		fprintf(stderr,
			"heat: --tiles %dx%d: the picture has only %d rows and "
			"%d columns\n",
			g->rows, g->cols, g->height, g->width);
	return 0;
}

static int heat(const struct options *o)
{
	struct picture p = { .heat = NULL };
	struct grid g = { .rows = o->rows,
			  .cols = o->cols,
			  .ranks = ranks,
			  .steps = o->steps };
	float *alone = NULL;
	double seconds, cpu;
	int bad = 0;

	if (!distribute(o->picture, &p))
		return 1;
	g.width = p.width;
	g.height = p.height;
	if (o->single) {
		g.rows = ranks;
		g.cols = 1;
	}
	if (!check_size(&g)) {
		picture_exit(&p);
		return 1;
	}
	if (o->verify && rank == 0) {
		size_t bytes =
			(size_t)p.width * (size_t)p.height * sizeof(float);

		alone = malloc(bytes);
		if (alone == NULL)
			fail("verify", ENOMEM);
		memcpy(alone, p.heat, bytes);
	}
	seconds = spread(&g, p.heat, o->single);
	cpu = cpu_seconds();
	if (rank == 0) {
		printf("%d x %d cells, %d steps, %d ranks, %d %s: %.3f s, CPU "
		       "%.3f s\n",
		       p.width, p.height, g.steps, ranks, g.rows * g.cols,
		       o->single ? "tiles without threads"
				 : "tiles, a thread each",
		       seconds, cpu);
		bad = write_result(&p, o->out);
	}
	if (alone != NULL)
		bad |= verify_end(&g, alone, p.heat);
	picture_exit(&p);
	return bad;
}

int main(int argc, char **argv)
{
	struct options o;
	int provided, code;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	code = options_parse(&o, argc, argv, rank == 0);
	if (code == 0 && provided < MPI_THREAD_MULTIPLE) {
		fprintf(stderr, "heat: this MPI does not allow threads\n");
		code = 1;
	}
	if (code == 0)
		code = heat(&o);
	MPI_Finalize();
	return code < 0 ? 0 : code;
}
