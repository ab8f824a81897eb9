/*
 * The sequential run. It shares only the law of one cell with the tiles: the
 * edge of the plane is found by limiting the coordinates.
 */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

float *verify_begin(const struct picture *p)
{
	size_t bytes = (size_t)p->width * (size_t)p->height * sizeof(float);
	float *copy = malloc(bytes);

	if (copy != NULL)
		memcpy(copy, p->heat, bytes);
	return copy;
}

static int limit(int n, int end)
{
	return n < 0 ? 0 : n < end ? n : end - 1;
}

static void spread_row(const struct grid *g, const float *plane, float *next,
		       int y)
{
	const float *here = plane + (long)y * g->width;
	const float *north = plane + (long)limit(y - 1, g->height) * g->width;
	const float *south = plane + (long)limit(y + 1, g->height) * g->width;
	float *out = next + (long)y * g->width;

	for (int x = 0; x < g->width; x++)
		out[x] = heat_cell(here[x], north[x], south[x],
				   here[limit(x - 1, g->width)],
				   here[limit(x + 1, g->width)]);
}

static int compare(const struct grid *g, const float *got, const float *want)
{
	size_t cells = (size_t)g->width * (size_t)g->height;

	for (size_t i = 0; i < cells; i++) {
		if (memcmp(&got[i], &want[i], sizeof(float)) == 0)
			continue;
		fprintf(stderr,
			"heat: verify: cell %zu,%zu is %.9g, sequentially "
			"%.9g\n",
			i % (size_t)g->width, i / (size_t)g->width,
			(double)got[i], (double)want[i]);
		return 1;
	}
	printf("verify: all %zu cells are those of a sequential run, bit for "
	       "bit\n",
	       cells);
	return 0;
}

int verify_end(const struct grid *g, float *copy, const float *got)
{
	size_t bytes = (size_t)g->width * (size_t)g->height * sizeof(float);
	float *next = malloc(bytes);
	int differs = 1;

	if (next == NULL) {
		fprintf(stderr, "heat: verify: no memory\n");
	} else {
		for (int step = 0; step < g->steps; step++) {
			for (int y = 0; y < g->height; y++)
				spread_row(g, copy, next, y);
			memcpy(copy, next, bytes);
		}
		differs = compare(g, got, copy);
	}
	free(next);
	free(copy);
	return differs;
}
