/*
 * Distributed graph topologies. Each process describes some edges: with
 * MPI_Dist_graph_create_adjacent those that it is at an end of, with
 * MPI_Dist_graph_create any, which then travel to both of their ends.
 *
 * Several edges from one process to another are in the same order at both ends,
 * as messages along them are told apart by their order only: by the process
 * that described them, then as that one did.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "info/info.h"
#include "pt2pt/message.h"
#include "topo/place.h"
#include "topo/topo.h"

/* With lists to be filled in. NULL: no memory. */
static struct madmpi_topo *dist_new(int indegree, int outdegree,
				    bool is_weighted)
{
	size_t in = (size_t)indegree, out = (size_t)outdegree;
	struct madmpi_topo *t = madmpi_topo_new(MPI_DIST_GRAPH, 2 * (in + out));

	if (t == NULL)
		return NULL;
	t->indegree = indegree;
	t->outdegree = outdegree;
	t->sources = t->memory;
	t->destinations = t->memory + in;
	t->dist.is_weighted = is_weighted;
	t->dist.source_weights = t->memory + in + out;
	t->dist.dest_weights = t->memory + 2 * in + out;
	return t;
}

/* How many ints the lists of a process take. */
static size_t ints_of(int indegree, int outdegree)
{
	return 2 * ((size_t)indegree + (size_t)outdegree);
}

/* --- near each other --- */

/* Bytes to one process and from one, which may be the same. */
static void swap(struct madmpi_coll *x, const void *s, MPI_Count ns, int to,
		 void *r, MPI_Count nr, int from)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);

	madmpi_coll_exchange(x, s, ns, byte, to, r, nr, byte, from);
}

/* The lists of all processes, in the memory of each. */
struct lists {
	int (*degrees)[2]; /* in and out, by rank */
	size_t *at;        /* by rank: where its lists begin; then the end */
	int *all;          /* as in a topology's memory[] */
};

static void lists_exit(struct lists *l)
{
	free(l->degrees);
	free(l->at);
	free(l->all);
}

/* Fills in at[], of nothing if the lists are not wanted. */
static void lists_lay_out(struct madmpi_coll *x, struct lists *l, bool wanted)
{
	l->at = calloc((size_t)x->size + 1, sizeof(*l->at));
	for (int i = 0; wanted && l->at != NULL && i < x->size; i++)
		l->at[i + 1] =
			l->at[i] + ints_of(l->degrees[i][0], l->degrees[i][1]);
	l->all = l->at ? malloc((l->at[x->size] + 1) * sizeof(*l->all)) : NULL;
	if (l->all == NULL)
		madmpi_coll_fail(x, -ENOMEM);
}

/*
 * Gathers the lists if they are wanted. The processes that have not failed want
 * alike; one that has failed cannot know, so all make the same steps, and
 * nothing is in them if the lists are not wanted.
 */
static void gather_lists(struct madmpi_coll *x, const struct madmpi_topo *t,
			 bool wanted, struct lists *l)
{
	const MPI_Count unit = sizeof(int);
	int mine[2] = { t ? t->indegree : 0, t ? t->outdegree : 0 };
	int next = (x->rank + 1) % x->size, s = x->rank, r;
	int previous = (x->rank - 1 + x->size) % x->size;
	size_t *at, none[2] = { 0, 0 };

	l->degrees = malloc((size_t)x->size * sizeof(*l->degrees));
	madmpi_coll_allgather_bytes(x, mine, sizeof(mine), l->degrees);
	lists_lay_out(x, l, wanted && x->error == 0);
	at = l->at;
	if (x->error == 0 && at[s + 1] > at[s])
		memcpy(l->all + at[s], t->memory,
		       (at[s + 1] - at[s]) * sizeof(int));
	/* Pass on what came in the step before. */
	for (int step = 1; step < x->size; step++, s = r) {
		const size_t *out = at ? at + s : none;
		const size_t *in = at ? at + (s - 1 + x->size) % x->size : none;

		r = (s - 1 + x->size) % x->size;
		swap(x, l->all ? l->all + out[0] : NULL,
		     (MPI_Count)(out[1] - out[0]) * unit, next,
		     l->all ? l->all + in[0] : NULL,
		     (MPI_Count)(in[1] - in[0]) * unit, previous);
	}
}

/* All edges, of the processes one after the other. NULL: no memory. */
static struct madmpi_edge *edges_of(const struct lists *l, int size, size_t *n)
{
	struct madmpi_edge *all = malloc((l->at[size] + 1) * sizeof(*all));

	*n = 0;
	for (int r = 0; all != NULL && r < size; r++) {
		int in = l->degrees[r][0], out = l->degrees[r][1];
		const int *destination = l->all + l->at[r] + in;
		const int *weight = destination + out + in;

		for (int i = 0; i < out; i++)
			all[(*n)++] = (struct madmpi_edge){ r, destination[i],
							    weight[i] };
	}
	return all;
}

/* Node v's lists instead of *t. 0 or -ENOMEM. */
static int become(const struct lists *l, int v, struct madmpi_topo **t)
{
	int in = l->degrees[v][0], out = l->degrees[v][1];
	struct madmpi_topo *its = dist_new(in, out, (*t)->dist.is_weighted);

	if (its == NULL)
		return -ENOMEM;
	if (in + out > 0)
		memcpy(its->memory, l->all + l->at[v],
		       ints_of(in, out) * sizeof(int));
	madmpi_topo_put(*t);
	*t = its;
	return 0;
}

/* The node of this process, which all find alike; *t becomes that. */
static int assign(const struct madmpi_places *p, const struct lists *l,
		  int rank, int *node, struct madmpi_topo **t)
{
	int *all = malloc((size_t)p->n * sizeof(*all)), rc = -ENOMEM;
	struct madmpi_edges edges;
	struct madmpi_edge *edge;
	size_t n;

	edge = edges_of(l, p->n, &n);
	edges = (struct madmpi_edges){ edge, n, n };
	if (all != NULL && edge != NULL)
		rc = madmpi_places_assign(p, p->n, &edges, all);
	if (rc == 0)
		rc = become(l, *node = all[rank], t);
	free(edge);
	free(all);
	return rc;
}

/* Let the processes change places, *t with them: returns the own node. */
static int place(struct madmpi_coll *x, struct madmpi_topo **t)
{
	struct lists l = { .degrees = NULL };
	struct madmpi_places p;
	int node = x->rank;
	bool differ;

	madmpi_places_find(x, &p);
	differ = x->error == 0 && madmpi_places_differ(&p);
	gather_lists(x, *t, differ, &l);
	if (differ && x->error == 0)
		madmpi_coll_fail(x, assign(&p, &l, x->rank, &node, t));
	lists_exit(&l);
	madmpi_places_free(&p);
	return node;
}

/*
 * What both do with the lists of this process, whose reference is taken. NULL:
 * there is no memory for them, or the operation has failed.
 */
static int unite(struct madmpi_coll *x, int reorder, struct madmpi_topo *t,
		 MPI_Comm *newcomm)
{
	int node = x->rank;

	if (t == NULL)
		madmpi_coll_fail(x, -ENOMEM);
	if (reorder)
		node = place(x, &t);
	return madmpi_topo_unite(x, 0, node, t, newcomm);
}

/* --- arguments --- */

static int check_nodes(const char *fn, struct madmpi_comm *c, const char *name,
		       const int *list, int n)
{
	int rc = madmpi_check_list(fn, c, name, list, n);

	for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
		if (list[i] < 0 || list[i] >= c->size)
			return madmpi_error(c, MPI_ERR_RANK, fn,
					    "%s[%d] is %d, but the "
					    "communicator has %d process%s",
					    name, i, list[i], c->size,
					    c->size > 1 ? "es" : "");
	return rc;
}

static int check_numbers(const char *fn, struct madmpi_comm *c,
			 const char *name, const int *list, int n)
{
	int rc = madmpi_check_list(fn, c, name, list, n);

	for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
		if (list[i] < 0)
			return madmpi_error(c, MPI_ERR_ARG, fn,
					    "%s[%d] is negative (%d)", name, i,
					    list[i]);
	return rc;
}

static int check_weights(const char *fn, struct madmpi_comm *c,
			 const char *name, const int *weights, int n)
{
	if (weights == MPI_UNWEIGHTED)
		return MPI_SUCCESS;
	if (n > 0 && weights == MPI_WEIGHTS_EMPTY)
		return madmpi_error(c, MPI_ERR_ARG, fn,
				    "%s is MPI_WEIGHTS_EMPTY, but there are %d "
				    "edges",
				    name, n);
	return check_numbers(fn, c, name, weights, n);
}

static int check_degree(const char *fn, struct madmpi_comm *c, const char *name,
			int degree)
{
	if (degree >= 0)
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_ARG, fn, "%s is negative (%d)", name,
			    degree);
}

static int check_create(const char *fn, MPI_Comm comm_old, MPI_Info info,
			MPI_Comm *newcomm, struct madmpi_comm **c)
{
	struct madmpi_info *hints;
	int rc = madmpi_check_new_comm(fn, comm_old, newcomm, c);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_intra(fn, *c);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_info(*c, fn, info, &hints);
	if (rc == MPI_SUCCESS)
		*newcomm = MPI_COMM_NULL;
	return rc;
}

/* --- by edges of one's own --- */

static void fill(int *to, int *weights, const int *list, const int *given,
		 int n)
{
	for (int i = 0; i < n; i++) {
		to[i] = list[i];
		weights[i] = given == MPI_UNWEIGHTED ? 1 : given[i];
	}
}

/* MPI_Dist_graph_create_adjacent */
int madmpi_dist_graph_create_adjacent(MPI_Comm comm_old, int indegree,
				      const int sources[],
				      const int sourceweights[], int outdegree,
				      const int destinations[],
				      const int destweights[], MPI_Info info,
				      int reorder, MPI_Comm *comm_dist_graph)
{
	const char *fn = "MPI_Dist_graph_create_adjacent";
	bool in = sourceweights != MPI_UNWEIGHTED;
	bool out = destweights != MPI_UNWEIGHTED;
	struct madmpi_topo *t;
	struct madmpi_comm *c;
	struct madmpi_coll x;
	int rc = check_create(fn, comm_old, info, comm_dist_graph, &c);

	if (rc == MPI_SUCCESS)
		rc = check_degree(fn, c, "indegree", indegree);
	if (rc == MPI_SUCCESS)
		rc = check_degree(fn, c, "outdegree", outdegree);
	if (rc == MPI_SUCCESS)
		rc = check_nodes(fn, c, "sources", sources, indegree);
	if (rc == MPI_SUCCESS)
		rc = check_nodes(fn, c, "destinations", destinations,
				 outdegree);
	if (rc == MPI_SUCCESS)
		rc = check_weights(fn, c, "sourceweights", sourceweights,
				   indegree);
	if (rc == MPI_SUCCESS)
		rc = check_weights(fn, c, "destweights", destweights,
				   outdegree);
	if (rc != MPI_SUCCESS)
		return rc;
	if (in != out && indegree > 0 && outdegree > 0)
		return madmpi_error(c, MPI_ERR_ARG, fn,
				    "only one of sourceweights and destweights "
				    "is MPI_UNWEIGHTED");
	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	/* What is said of no edges does not count. */
	t = dist_new(indegree, outdegree,
		     outdegree > 0  ? out
		     : indegree > 0 ? in
				    : in && out);
	if (t != NULL) {
		fill(t->sources, t->dist.source_weights, sources, sourceweights,
		     indegree);
		fill(t->destinations, t->dist.dest_weights, destinations,
		     destweights, outdegree);
	}
	return unite(&x, reorder, t, comm_dist_graph);
}

/* --- by anybody's edges --- */

/* Edges on their way to their ends. */
struct traffic {
	struct madmpi_edge *out;  /* to process p: from first[p] on */
	size_t *first;            /* has an end, too */
	struct madmpi_edge **got; /* from each process */
	MPI_Count *ngot;
};

static int traffic_init(struct traffic *f, int nprocs, size_t nedges)
{
	size_t n = (size_t)nprocs;

	f->out = malloc((2 * nedges + 1) * sizeof(*f->out));
	f->first = calloc(n + 1, sizeof(*f->first));
	f->got = calloc(n, sizeof(*f->got));
	f->ngot = calloc(n, sizeof(*f->ngot));
	return f->out && f->first && f->got && f->ngot ? 0 : -ENOMEM;
}

static void traffic_exit(struct traffic *f, int nprocs)
{
	for (int p = 0; f->got != NULL && p < nprocs; p++)
		free(f->got[p]);
	free(f->got);
	free(f->ngot);
	free(f->out);
	free(f->first);
}

/* To one end, or to both. */
static void sort(struct traffic *f, int nprocs, const struct madmpi_edge *e,
		 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		f->first[e[i].from]++;
		if (e[i].to != e[i].from)
			f->first[e[i].to]++;
	}
	/* Where those of each end; filling them in goes to the beginnings. */
	for (int p = 1; p <= nprocs; p++)
		f->first[p] += f->first[p - 1];
	while (n-- > 0) {
		f->out[--f->first[e[n].from]] = e[n];
		if (e[n].to != e[n].from)
			f->out[--f->first[e[n].to]] = e[n];
	}
}

/* All processes to all, a round each. */
static void travel(struct madmpi_coll *x, struct traffic *f)
{
	MPI_Count unit = sizeof(struct madmpi_edge), n, theirs;
	struct madmpi_edge *out, *got;
	int to, from;

	for (int round = 0; round < x->size; round++) {
		to = (x->rank + round) % x->size;
		from = (x->rank - round + x->size) % x->size;
		out = x->error == 0 ? f->out + f->first[to] : NULL;
		n = out ? (MPI_Count)(f->first[to + 1] - f->first[to]) : 0;
		theirs = 0;
		swap(x, &n, sizeof(n), to, &theirs, sizeof(theirs), from);
		got = x->error == 0 ? malloc((size_t)(theirs * unit) + 1)
				    : NULL;
		if (got == NULL)
			madmpi_coll_fail(x, -ENOMEM);
		swap(x, out, n * unit, to, got, theirs * unit, from);
		if (got == NULL)
			continue;
		f->got[from] = got;
		f->ngot[from] = theirs;
	}
}

/* The lists of process `rank` from the edges that came to it. */
static struct madmpi_topo *collect(const struct traffic *f, int nprocs,
				   int rank, bool is_weighted)
{
	int in = 0, out = 0;
	struct madmpi_topo *t;

	for (int p = 0; p < nprocs; p++)
		for (MPI_Count i = 0; i < f->ngot[p]; i++) {
			in += f->got[p][i].to == rank;
			out += f->got[p][i].from == rank;
		}
	t = dist_new(in, out, is_weighted);
	if (t == NULL)
		return NULL;
	in = out = 0;
	for (int p = 0; p < nprocs; p++)
		for (MPI_Count i = 0; i < f->ngot[p]; i++) {
			const struct madmpi_edge *e = &f->got[p][i];

			if (e->to == rank) {
				t->sources[in] = e->from;
				t->dist.source_weights[in++] = e->weight;
			}
			if (e->from == rank) {
				t->destinations[out] = e->to;
				t->dist.dest_weights[out++] = e->weight;
			}
		}
	return t;
}

/* What this process describes, edge by edge. NULL: no memory. */
static struct madmpi_edge *describe(int n, const int sources[],
				    const int degrees[],
				    const int destinations[],
				    const int weights[], size_t *nedges)
{
	struct madmpi_edge *all;
	size_t k = 0;

	*nedges = 0;
	for (int i = 0; i < n; i++)
		*nedges += (size_t)degrees[i];
	all = malloc((*nedges + 1) * sizeof(*all));
	for (int i = 0; i < n && all != NULL; i++)
		for (int d = 0; d < degrees[i]; d++, k++)
			all[k] = (struct madmpi_edge){
				sources[i], destinations[k],
				weights == MPI_UNWEIGHTED ? 1 : weights[k]
			};
	return all;
}

static int check_described(const char *fn, struct madmpi_comm *c, int n,
			   const int sources[], const int degrees[],
			   const int destinations[], const int weights[])
{
	long long nedges = 0;
	int rc = check_degree(fn, c, "n", n);

	if (rc == MPI_SUCCESS)
		rc = check_nodes(fn, c, "sources", sources, n);
	if (rc == MPI_SUCCESS)
		rc = check_numbers(fn, c, "degrees", degrees, n);
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
		nedges += degrees[i];
	if (rc == MPI_SUCCESS && nedges > INT_MAX)
		rc = madmpi_error(c, MPI_ERR_ARG, fn,
				  "degrees name %lld edges in all", nedges);
	if (rc == MPI_SUCCESS)
		rc = check_nodes(fn, c, "destinations", destinations,
				 (int)nedges);
	if (rc == MPI_SUCCESS)
		rc = check_weights(fn, c, "weights", weights, (int)nedges);
	return rc;
}

/* MPI_Dist_graph_create */
int madmpi_dist_graph_create(MPI_Comm comm_old, int n, const int sources[],
			     const int degrees[], const int destinations[],
			     const int weights[], MPI_Info info, int reorder,
			     MPI_Comm *comm_dist_graph)
{
	const char *fn = "MPI_Dist_graph_create";
	struct madmpi_edge *mine = NULL;
	struct madmpi_topo *t = NULL;
	struct madmpi_comm *c;
	struct madmpi_coll x;
	struct traffic f;
	size_t nedges;
	int rc = check_create(fn, comm_old, info, comm_dist_graph, &c);

	if (rc == MPI_SUCCESS)
		rc = check_described(fn, c, n, sources, degrees, destinations,
				     weights);
	if (rc != MPI_SUCCESS)
		return rc;
	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	mine = describe(n, sources, degrees, destinations, weights, &nedges);
	if (traffic_init(&f, c->size, nedges) < 0 || mine == NULL)
		madmpi_coll_fail(&x, -ENOMEM);
	else
		sort(&f, c->size, mine, nedges);
	travel(&x, &f);
	if (x.error == 0)
		t = collect(&f, c->size, c->rank, weights != MPI_UNWEIGHTED);
	traffic_exit(&f, c->size);
	free(mine);
	return unite(&x, reorder, t, comm_dist_graph);
}

/* --- what can be asked --- */

/* MPI_Dist_graph_neighbors_count */
int madmpi_dist_graph_neighbors_count(MPI_Comm comm, int *indegree,
				      int *outdegree, int *weighted)
{
	const char *fn = "MPI_Dist_graph_neighbors_count";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_DIST_GRAPH, &c, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	if (indegree == NULL || outdegree == NULL || weighted == NULL)
		return madmpi_null_arg(c, fn,
				       !indegree    ? "indegree"
				       : !outdegree ? "outdegree"
						    : "weighted");
	*indegree = t->indegree;
	*outdegree = t->outdegree;
	*weighted = t->dist.is_weighted;
	return MPI_SUCCESS;
}

/* One side of it: the neighbours, how many the caller wants, and where. */
struct side {
	const char *max_name, *name, *weights_name;
	const int *list, *weights; /* NULL: none are given */
	int n, max;
	int *to, *weights_to;
};

static int check_side(const char *fn, struct madmpi_comm *c, struct side *s)
{
	int rc = check_degree(fn, c, s->max_name, s->max);

	s->n = s->n < s->max ? s->n : s->max;
	if (!c->topo->dist.is_weighted || s->weights_to == MPI_UNWEIGHTED ||
	    s->weights_to == MPI_WEIGHTS_EMPTY)
		s->weights = NULL;
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, s->name, s->to, s->n);
	if (rc == MPI_SUCCESS && s->weights != NULL)
		rc = madmpi_check_list(fn, c, s->weights_name, s->weights_to,
				       s->n);
	return rc;
}

/* The first ones, and their weights where there are any. */
static void give(const struct side *s)
{
	for (int i = 0; i < s->n; i++)
		s->to[i] = s->list[i];
	for (int i = 0; s->weights != NULL && i < s->n; i++)
		s->weights_to[i] = s->weights[i];
}

/* MPI_Dist_graph_neighbors */
int madmpi_dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[],
				int sourceweights[], int maxoutdegree,
				int destinations[], int destweights[])
{
	const char *fn = "MPI_Dist_graph_neighbors";
	struct side in = { "maxindegree",   "sources",
			   "sourceweights", .max = maxindegree,
			   .to = sources,   .weights_to = sourceweights };
	struct side out = { "maxoutdegree",     "destinations",
			    "destweights",      .max = maxoutdegree,
			    .to = destinations, .weights_to = destweights };
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_DIST_GRAPH, &c, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	in.n = t->indegree;
	in.list = t->sources;
	in.weights = t->dist.source_weights;
	out.n = t->outdegree;
	out.list = t->destinations;
	out.weights = t->dist.dest_weights;
	rc = check_side(fn, c, &in);
	if (rc == MPI_SUCCESS)
		rc = check_side(fn, c, &out);
	if (rc != MPI_SUCCESS)
		return rc;
	give(&in);
	give(&out);
	return MPI_SUCCESS;
}
