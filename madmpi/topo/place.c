/*
 * Neighbours of a topology near each other.
 *
 * The hardware is a tree: hosts, packages, caches, cores. From its root on, the
 * nodes of the topology are divided among the parts of each level, as many to
 * each as processes run there. A part grows node by node: next comes the one
 * that is tied most to what is in and least to what is still out; of equals the
 * one that was met first, so that parts become round and not long. What comes
 * of it is held against leaving everybody his rank, and the cheaper one taken:
 * a message costs twice as much for each level less that its ends share.
 *
 * Every process finds the same, as all know where all run, and all edges.
 */
#include "topo/place.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"
#include "comm/comm.h"
#include "comm/spot.h"
#include "env/error.h"

/* --- where processes run --- */

/* Hosts have the number of the first process there. */
static void tell_levels(struct madmpi_places *p, const struct madmpi_spot *all)
{
	for (int r = 0; r < p->n; r++) {
		int *at = p->at + (size_t)r * (size_t)p->levels;

		at[0] = 0;
		while (!madmpi_spot_share_host(&all[at[0]], &all[r]))
			at[0]++;
		for (int k = 0; k + 1 < p->levels; k++)
			at[k + 1] = all[r].at[k].kind ? all[r].at[k].index : -1;
	}
}

/* The first level at which they differ, or how many levels there are. */
static int common(const struct madmpi_places *p, int a, int b)
{
	const int *x = p->at + (size_t)a * (size_t)p->levels;
	const int *y = p->at + (size_t)b * (size_t)p->levels;
	int level = 0;

	while (level < p->levels && x[level] == y[level])
		level++;
	return level;
}

/* The same of those levels in one part of which both are. */
static int shared(const struct madmpi_places *p, int a, int b)
{
	const int *x = p->at + (size_t)a * (size_t)p->levels;
	int level = common(p, a, b);

	while (level > 0 && x[level - 1] < 0)
		level--;
	return level;
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct madmpi_places *p = arg;
	int x = *(const int *)a, y = *(const int *)b, level = common(p, x, y);

	if (level == p->levels)
		return x < y ? -1 : x > y;
	return p->at[x * p->levels + level] < p->at[y * p->levels + level] ? -1
									   : 1;
}

void madmpi_places_find(struct madmpi_coll *x, struct madmpi_places *p)
{
	size_t n = (size_t)x->size;
	struct madmpi_spot mine, *all = malloc(n * sizeof(*all));

	p->n = x->size;
	p->levels = 1 + MADMPI_SPOT_KINDS;
	p->at = malloc(n * (size_t)p->levels * sizeof(int));
	p->order = malloc(n * sizeof(int));
	if (p->at == NULL || p->order == NULL)
		madmpi_coll_fail(x, -ENOMEM);
	madmpi_spot_find(&mine);
	madmpi_coll_allgather_bytes(x, &mine, sizeof(mine), all);
	if (x->error == 0) {
		tell_levels(p, all);
		for (int r = 0; r < p->n; r++)
			p->order[r] = r;
		qsort_r(p->order, n, sizeof(int), compare, p);
	}
	free(all);
}

void madmpi_places_free(struct madmpi_places *p)
{
	free(p->at);
	free(p->order);
}

bool madmpi_places_differ(const struct madmpi_places *p)
{
	for (int level = 0; level < p->levels; level++) {
		int parts = 1;

		for (int i = 1; i < p->n; i++)
			parts += common(p, p->order[i - 1], p->order[i]) <=
				 level;
		if (parts > 1 && parts < p->n)
			return true;
	}
	return false;
}

/* --- dividing the nodes --- */

struct link {
	int to, weight;
};

struct growth {
	const struct madmpi_places *places;
	int n;         /* nodes */
	size_t *first; /* node v has link[first[v]] to link[first[v + 1] - 1] */
	struct link *link;
	int *node;    /* all; those of a part are together, and ascend */
	int *part;    /* that each node is in */
	int parts;    /* numbers of parts given so far */
	int64_t *tie; /* of each: to what is in, minus to what is out */
	int *met_by;  /* the last part that met it */
	int *met;     /* those that are out, in the order of meeting */
	int nmet;
	int *of; /* the result: node by rank */
};

static int growth_init(struct growth *g, const struct madmpi_places *p, int n,
		       size_t links, int *of)
{
	size_t nodes = (size_t)n;

	*g = (struct growth){ .places = p, .n = n, .of = of };
	g->first = calloc(nodes + 1, sizeof(*g->first));
	g->link = calloc(2 * links + 1, sizeof(*g->link));
	g->node = calloc(nodes, sizeof(*g->node));
	g->part = calloc(nodes, sizeof(*g->part));
	g->tie = calloc(nodes, sizeof(*g->tie));
	g->met_by = calloc(nodes, sizeof(*g->met_by));
	g->met = calloc(nodes, sizeof(*g->met));
	return g->first && g->link && g->node && g->part && g->tie &&
			       g->met_by && g->met
		       ? 0
		       : -ENOMEM;
}

static void growth_exit(struct growth *g)
{
	free(g->first);
	free(g->link);
	free(g->node);
	free(g->part);
	free(g->tie);
	free(g->met_by);
	free(g->met);
}

/* Both ends of an edge know it. */
static void link_nodes(struct growth *g, const struct madmpi_edges *edges)
{
	const struct madmpi_edge *e = edges->edge;

	for (size_t i = 0; i < edges->grow; i++)
		if (e[i].from != e[i].to) {
			g->first[e[i].from]++;
			g->first[e[i].to]++;
		}
	/* Where each one's links end; filling them in goes to where they begin.
	 */
	for (int v = 1; v <= g->n; v++)
		g->first[v] += g->first[v - 1];
	for (size_t i = edges->grow; i-- > 0;) {
		int from = e[i].from, to = e[i].to, weight = e[i].weight;

		if (from == to)
			continue;
		g->link[--g->first[from]] = (struct link){ to, weight };
		g->link[--g->first[to]] = (struct link){ from, weight };
	}
}

/* Of some nodes, the one to take next, if any is still out. */
static int choose(const struct growth *g, const int *some, int n, int out)
{
	int best = -1;

	for (int i = 0; i < n; i++)
		if (g->part[some[i]] == out &&
		    (best < 0 || g->tie[some[i]] > g->tie[best]))
			best = some[i];
	return best;
}

/* Node v goes over to part `in`. */
static void take(struct growth *g, int v, int out, int in)
{
	int kept = 0;

	g->part[v] = in;
	for (size_t l = g->first[v]; l < g->first[v + 1]; l++) {
		int to = g->link[l].to;

		if (g->part[to] != out)
			continue;
		g->tie[to] += 2 * (int64_t)g->link[l].weight;
		if (g->met_by[to] != in)
			g->met[g->nmet++] = to;
		g->met_by[to] = in;
	}
	for (int i = 0; i < g->nmet; i++)
		if (g->met[i] != v)
			g->met[kept++] = g->met[i];
	g->nmet = kept;
}

/* In front those that are in, then the others, both ascending as before. */
static void put_in_front(struct growth *g, int *node, int n, int in)
{
	int front = 0, rest = 0;

	for (int i = 0; i < n; i++)
		if (g->part[node[i]] == in)
			node[front++] = node[i];
		else
			g->met[rest++] = node[i];
	memcpy(node + front, g->met, (size_t)rest * sizeof(*node));
}

/* Of n nodes, which are a part, `want` become one of their own, in front. */
static void grow(struct growth *g, int *node, int n, int want)
{
	int out = g->part[node[0]], in = ++g->parts, v;

	for (int i = 0; i < n; i++) {
		v = node[i];
		g->tie[v] = 0;
		for (size_t l = g->first[v]; l < g->first[v + 1]; l++)
			if (g->part[g->link[l].to] == out)
				g->tie[v] -= g->link[l].weight;
	}
	g->nmet = 0;
	for (; want > 0; want--) {
		v = choose(g, g->met, g->nmet, out);
		if (v < 0)
			v = choose(g, node, n, out);
		take(g, v, out, in);
	}
	put_in_front(g, node, n, in);
}

/* So many processes from that one in the order on share all levels above. */
static void divide(struct growth *g, const int *order, int nprocs, int *node,
		   int n, int level)
{
	int run, want;

	if (nprocs == 1 || level == g->places->levels) {
		for (int i = 0; i < n; i++)
			g->of[order[i]] = node[i];
		return;
	}
	for (; n > 0; order += run, nprocs -= run, node += want, n -= want) {
		run = 1;
		while (run < nprocs &&
		       common(g->places, order[0], order[run]) > level)
			run++;
		want = run < n ? run : n;
		if (want < n)
			grow(g, node, n, want);
		divide(g, order, run, node, want, level + 1);
	}
}

/* What messages cost if of[rank] is the node of each process. */
static double cost(const struct madmpi_places *p,
		   const struct madmpi_edges *edges, const int *of,
		   int *rank_of)
{
	const struct madmpi_edge *e = edges->edge;
	double sum = 0;

	for (int r = 0; r < p->n; r++)
		if (of[r] != MPI_UNDEFINED)
			rank_of[of[r]] = r;
	for (size_t i = 0; i < edges->n; i++)
		sum += (double)e[i].weight *
		       (double)(1u << (p->levels - shared(p, rank_of[e[i].from],
							  rank_of[e[i].to])));
	return sum;
}

int madmpi_places_assign(const struct madmpi_places *p, int nnodes,
			 const struct madmpi_edges *edges, int *node)
{
	struct growth g;
	double stay;
	int rc = growth_init(&g, p, nnodes, edges->grow, node);

	if (rc < 0)
		goto done;
	for (int r = 0; r < p->n; r++)
		node[r] = madmpi_topo_stay(r, nnodes);
	stay = cost(p, edges, node, g.met);
	link_nodes(&g, edges);
	for (int r = 0; r < p->n; r++)
		node[r] = MPI_UNDEFINED;
	for (int v = 0; v < nnodes; v++)
		g.node[v] = v;
	divide(&g, p->order, p->n, g.node, nnodes, 0);
	if (cost(p, edges, node, g.met) < stay)
		goto done;
	for (int r = 0; r < p->n; r++)
		node[r] = madmpi_topo_stay(r, nnodes);
done:
	growth_exit(&g);
	return rc;
}

int madmpi_topo_place(struct madmpi_coll *x, int nnodes,
		      const struct madmpi_edges *edges)
{
	int *all = malloc((size_t)x->size * sizeof(*all));
	int node = madmpi_topo_stay(x->rank, nnodes);
	struct madmpi_places p;

	if (all == NULL || edges->edge == NULL)
		madmpi_coll_fail(x, -ENOMEM);
	madmpi_places_find(x, &p);
	if (x->error == 0 && madmpi_places_differ(&p)) {
		if (madmpi_places_assign(&p, nnodes, edges, all) < 0)
			madmpi_coll_fail(x, -ENOMEM);
		else
			node = all[x->rank];
	}
	madmpi_places_free(&p);
	free(all);
	return node;
}
