/*
 * Nodes of topologies on machines made up: hosts of so many processes each.
 */
#include <stdlib.h>

#include "topo/place.h"

#include "../../check.h"

enum { MOST = 4096 };

/* Levels are hosts and, within one, processes. */
static int at[2 * MOST], order[MOST], node[MOST];
static struct madmpi_edge edge[3 * MOST];

static struct madmpi_places hosts(int n, int each)
{
	for (int r = 0; r < n; r++) {
		at[2 * r] = r / each * each;
		at[2 * r + 1] = r % each;
		order[r] = r;
	}
	return (struct madmpi_places){ n, 2, at, order };
}

/* As Cartesian topologies say it: what closes it comes last. */
static struct madmpi_edges grid(int a, int b, int c, bool is_closed)
{
	const int dims[3] = { a, b, c };
	size_t n = 3 * (size_t)(a * b * c), front = 0, back = n;

	for (int v = 0; v < a * b * c; v++)
		for (int i = 2, below = 1; i >= 0; i--) {
			int x = v / below % dims[i];

			if (x < dims[i] - 1)
				edge[front++] =
					(struct madmpi_edge){ v, v + below, 1 };
			else
				edge[--back] = (struct madmpi_edge){
					v, is_closed ? v - x * below : v, 1
				};
			below *= dims[i];
		}
	return (struct madmpi_edges){ edge, n, front };
}

/* Everybody has a node; how many edges lead from one host to another. */
static int leave(int n, int each, const struct madmpi_edges *e)
{
	static int host[MOST];
	int count = 0;

	memset(host, -1, sizeof(host));
	for (int r = 0; r < n; r++) {
		CHECK(node[r] >= 0 && node[r] < n && host[node[r]] < 0);
		host[node[r]] = r / each;
	}
	for (size_t i = 0; i < e->n; i++)
		count += host[e->edge[i].from] != host[e->edge[i].to];
	return count;
}

static int best(int a, int b, int c, bool is_closed, int each)
{
	struct madmpi_edges e = grid(a, b, c, is_closed);
	struct madmpi_places p = hosts(a * b * c, each);

	CHECK_INT(madmpi_places_assign(&p, a * b * c, &e, node), 0);
	return leave(a * b * c, each, &e);
}

TEST(parts_of_open_grids_are_square)
{
	CHECK_INT(best(4, 4, 1, false, 4), 8);
	CHECK_INT(best(16, 16, 1, false, 16), 96);
	CHECK_INT(best(32, 32, 1, false, 64), 192);
	CHECK_INT(best(64, 64, 1, false, 64), 896);
	CHECK_INT(best(4, 4, 4, false, 8), 48);
	CHECK_INT(best(8, 8, 8, false, 64), 192);
}

TEST(parts_of_closed_grids_are_square)
{
	CHECK_INT(best(16, 16, 1, true, 16), 128);
	CHECK_INT(best(32, 32, 1, true, 64), 256);
	CHECK_INT(best(64, 64, 1, true, 64), 1024);
	CHECK_INT(best(8, 8, 8, true, 64), 384);
}

static bool all_stay(int n)
{
	for (int r = 0; r < n; r++)
		if (node[r] != r)
			return false;
	return true;
}

TEST(where_nothing_is_gained_everybody_stays)
{
	best(64, 1, 1, false, 8);
	CHECK(all_stay(64));
	best(64, 1, 1, true, 8);
	CHECK(all_stay(64));
	best(4, 4, 1, true, 4);
	CHECK(all_stay(16));
	best(8, 8, 1, false, 64);
	CHECK(all_stay(64));
	best(8, 8, 1, false, 1);
	CHECK(all_stay(64));
}

/* Random graphs on random machines: never worse, and each time the same. */
TEST(a_new_order_is_never_worse)
{
	static int again[MOST];
	unsigned seed = 7;

	for (int round = 0; round < 100; round++) {
		int n = 2 + rand_r(&seed) % 40, each = 1 + rand_r(&seed) % n;
		struct madmpi_places p = hosts(n, each);
		size_t m = (size_t)(rand_r(&seed) % (4 * n));
		struct madmpi_edges e = { edge, m, m };
		double stay = 0, sum = 0;
		int rank_of[64];

		for (size_t i = 0; i < m; i++)
			edge[i] = (struct madmpi_edge){ rand_r(&seed) % n,
							rand_r(&seed) % n,
							rand_r(&seed) % 100 };
		CHECK_INT(madmpi_places_assign(&p, n, &e, node), 0);
		memcpy(again, node, sizeof(again));
		CHECK_INT(madmpi_places_assign(&p, n, &e, node), 0);
		CHECK(memcmp(again, node, sizeof(again)) == 0);
		leave(n, each, &e);
		for (int r = 0; r < n; r++)
			rank_of[node[r]] = r;
		for (size_t i = 0; i < m; i++) {
			int u = edge[i].from, v = edge[i].to;
			int w = edge[i].weight;

			stay += u == v ? 0 : w * (u / each == v / each ? 2 : 4);
			u = rank_of[u];
			v = rank_of[v];
			sum += u == v ? 0 : w * (u / each == v / each ? 2 : 4);
		}
		CHECK(sum <= stay);
	}
}

/* Who is left over is told so, and the nodes are together. */
TEST(fewer_nodes_than_processes)
{
	struct madmpi_places p = hosts(12, 4);
	struct madmpi_edges e = grid(4, 1, 1, false);

	/* Ranks go round the hosts. */
	for (int r = 0; r < 12; r++) {
		at[2 * r] = r % 3;
		at[2 * r + 1] = r / 3;
		order[r] = r / 4 + r % 4 * 3;
	}
	CHECK_INT(madmpi_places_assign(&p, 4, &e, node), 0);
	for (int r = 0; r < 12; r++)
		CHECK_INT(node[r], r % 3 == 0 ? r / 3 : MPI_UNDEFINED);
}
