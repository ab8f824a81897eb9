/*
 * Groups: ordered sets of processes.
 *
 * A group keeps both directions, rank to world rank and back, because matching
 * a message from any source needs the second one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"
#include "comm/comm.h"
#include "core/pool.h"
#include "pt2pt/message.h"
#include "session/session.h"

static struct madmpi_pool pool;
static struct madmpi_group empty = { .object.kind = ATOMIC_INIT(MADMPI_GROUP),
				     .rank = MPI_UNDEFINED };

void madmpi_group_get(struct madmpi_group *g)
{
	if (g != &empty)
		madmpi_object_get(&g->object);
}

void madmpi_group_put(struct madmpi_group *g)
{
	struct madmpi_session *s = g->session;

	if (g == &empty || !madmpi_session_object_put(s, &g->object, &g->on))
		return;
	free(g->world);
	madmpi_pool_put(&pool, g);
	madmpi_session_put(s);
}

void madmpi_group_join(struct madmpi_group *g, struct madmpi_session *s)
{
	if (g == &empty || g->session == s || s == NULL)
		return;
	g->session = s;
	madmpi_session_add(s, &s->groups, &g->on);
}

void madmpi_group_give_up(struct madmpi_group *g)
{
	int n = load_relaxed(&g->handles);

	store_relaxed(&g->handles, 0);
	while (n-- > 0)
		madmpi_group_put(g);
}

/* One that communicators have, but the program no longer, is no group. */
struct madmpi_group *madmpi_group_of(MPI_Group handle)
{
	struct madmpi_group *g;

	if (madmpi_handle_is_constant(handle))
		return handle == MPI_GROUP_EMPTY ? &empty : NULL;
	g = madmpi_handle_object(handle, MADMPI_GROUP);
	return g != NULL && load_relaxed(&g->handles) > 0 ? g : NULL;
}

/* One for the program. */
static MPI_Group group_handle(struct madmpi_group *g)
{
	fetch_add_relaxed(&g->handles, 1);
	return g == &empty ? MPI_GROUP_EMPTY : (MPI_Group)g;
}

MPI_Group madmpi_group_hand_out(struct madmpi_group *g)
{
	madmpi_group_get(g);
	return group_handle(g);
}

struct madmpi_group *madmpi_group_new(const int *world, int size)
{
	int all = nm_size();
	struct madmpi_group *g;

	if (size == 0)
		return &empty;
	g = madmpi_pool_get(&pool);
	if (g == NULL)
		return NULL;
	g->world = malloc(((size_t)size + (size_t)all) * sizeof(int));
	if (g->world == NULL) {
		madmpi_pool_put(&pool, g);
		return NULL;
	}
	g->inverse = g->world + size;
	g->size = size;
	store_relaxed(&g->handles, 0);
	g->session = NULL;
	base_link_init(&g->on);
	for (int i = 0; i < all; i++)
		g->inverse[i] = -1;
	for (int i = 0; i < size; i++) {
		g->world[i] = world[i];
		g->inverse[world[i]] = i;
	}
	g->rank = g->inverse[nm_rank()];
	if (g->rank < 0)
		g->rank = MPI_UNDEFINED;
	return g;
}

/* Rank of a world rank in g, or -1. */
static int rank_of(const struct madmpi_group *g, int world)
{
	return g->size > 0 ? g->inverse[world] : -1;
}

static int check_group(const char *fn, MPI_Group group,
		       struct madmpi_group **out)
{
	*out = madmpi_group_of(group);
	if (*out != NULL)
		return MPI_SUCCESS;
	return madmpi_error(
		NULL, MPI_ERR_GROUP, fn, "group %p is %s", (void *)group,
		group == MPI_GROUP_NULL ? "MPI_GROUP_NULL" : "not a group");
}

/* By the handler of its session, if it belongs to one. */
static int wrong(const struct madmpi_group *g, int code, const char *fn,
		 const char *fmt, ...) BASE_PRINTF(4, 5);

static int wrong(const struct madmpi_group *g, int code, const char *fn,
		 const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return g->session != NULL
		       ? madmpi_session_error(g->session, code, fn, "%s", text)
		       : madmpi_error(NULL, code, fn, "%s", text);
}

/* Two that meet in a call. */
static int check_groups(const char *fn, MPI_Group group1, MPI_Group group2,
			struct madmpi_group **a, struct madmpi_group **b)
{
	int rc = check_group(fn, group1, a);

	if (rc == MPI_SUCCESS)
		rc = check_group(fn, group2, b);
	if (rc != MPI_SUCCESS || (*a)->session == (*b)->session ||
	    *a == &empty || *b == &empty)
		return rc;
	return wrong(*a, MPI_ERR_GROUP, fn,
		     "the groups %p and %p are of different sessions",
		     (void *)group1, (void *)group2);
}

/* MPI_Comm_group */
int madmpi_comm_group(MPI_Comm comm, MPI_Group *group)
{
	const char *fn = "MPI_Comm_group";
	struct madmpi_comm *c;
	int rc = madmpi_check_comm(fn, comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (group == NULL)
		return madmpi_null_arg(c, fn, "group");
	*group = madmpi_group_hand_out(c->group);
	return MPI_SUCCESS;
}

/* MPI_Comm_remote_group */
int madmpi_comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
	const char *fn = "MPI_Comm_remote_group";
	struct madmpi_comm *c;
	int rc = madmpi_check_inter(fn, comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (group == NULL)
		return madmpi_null_arg(c, fn, "group");
	*group = madmpi_group_hand_out(c->peers);
	return MPI_SUCCESS;
}

/* MPI_Group_size */
int madmpi_group_size(MPI_Group group, int *size)
{
	struct madmpi_group *g;
	int rc = check_group("MPI_Group_size", group, &g);

	if (rc != MPI_SUCCESS)
		return rc;
	if (size == NULL)
		return wrong(g, MPI_ERR_ARG, "MPI_Group_size",
			     "size is a null pointer");
	*size = g->size;
	return MPI_SUCCESS;
}

/* MPI_Group_rank */
int madmpi_group_rank(MPI_Group group, int *rank)
{
	struct madmpi_group *g;
	int rc = check_group("MPI_Group_rank", group, &g);

	if (rc != MPI_SUCCESS)
		return rc;
	if (rank == NULL)
		return wrong(g, MPI_ERR_ARG, "MPI_Group_rank",
			     "rank is a null pointer");
	*rank = g->rank;
	return MPI_SUCCESS;
}

/* MPI_Group_translate_ranks */
int madmpi_group_translate_ranks(MPI_Group group1, int n, const int ranks1[],
				 MPI_Group group2, int ranks2[])
{
	const char *fn = "MPI_Group_translate_ranks";
	struct madmpi_group *a, *b;
	int rc = check_groups(fn, group1, group2, &a, &b);

	if (rc != MPI_SUCCESS)
		return rc;
	if (n < 0)
		return wrong(a, MPI_ERR_ARG, fn, "n is negative (%d)", n);
	if (n > 0 && (ranks1 == NULL || ranks2 == NULL))
		return wrong(a, MPI_ERR_ARG, fn, "%s is a null pointer",
			     ranks1 ? "ranks2" : "ranks1");
	for (int i = 0; i < n; i++) {
		if (ranks1[i] == MPI_PROC_NULL) {
			ranks2[i] = MPI_PROC_NULL;
			continue;
		}
		if (ranks1[i] < 0 || ranks1[i] >= a->size)
			return wrong(a, MPI_ERR_RANK, fn,
				     "ranks1[%d] is %d, but the group "
				     "has %d processes",
				     i, ranks1[i], a->size);
		ranks2[i] = rank_of(b, a->world[ranks1[i]]);
		if (ranks2[i] < 0)
			ranks2[i] = MPI_UNDEFINED;
	}
	return MPI_SUCCESS;
}

/* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL. */
int madmpi_group_relation(const struct madmpi_group *a,
			  const struct madmpi_group *b)
{
	int result = MPI_IDENT;

	if (a->size != b->size)
		return MPI_UNEQUAL;
	for (int i = 0; i < a->size; i++) {
		if (a->world[i] == b->world[i])
			continue;
		if (rank_of(b, a->world[i]) < 0)
			return MPI_UNEQUAL;
		result = MPI_SIMILAR;
	}
	return result;
}

/* MPI_Group_compare */
int madmpi_group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
	const char *fn = "MPI_Group_compare";
	struct madmpi_group *a, *b;
	int rc = check_groups(fn, group1, group2, &a, &b);

	if (rc != MPI_SUCCESS)
		return rc;
	if (result == NULL)
		return wrong(a, MPI_ERR_ARG, fn, "result is a null pointer");
	*result = madmpi_group_relation(a, b);
	return MPI_SUCCESS;
}

/* The group of these world ranks, as a handle. Frees the array. */
static int make(const char *fn, struct madmpi_session *s, int *world, int n,
		MPI_Group *newgroup)
{
	struct madmpi_group *g = world ? madmpi_group_new(world, n) : NULL;

	free(world);
	if (g == NULL)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory for a group of %d", n);
	madmpi_group_join(g, s);
	*newgroup = group_handle(g);
	return MPI_SUCCESS;
}

/* Room for n ranks and more. */
static int *room(int n)
{
	return malloc(((size_t)n + 1) * sizeof(int));
}

static int check_ranks(const char *fn, const struct madmpi_group *g, int n,
		       const int ranks[])
{
	if (n < 0 || (n > 0 && ranks == NULL))
		return wrong(g, MPI_ERR_ARG, fn, "n is %d, ranks %p", n,
			     (const void *)ranks);
	for (int i = 0; i < n; i++) {
		if (ranks[i] < 0 || ranks[i] >= g->size)
			return wrong(g, MPI_ERR_RANK, fn,
				     "ranks[%d] is %d, but the group "
				     "has %d processes",
				     i, ranks[i], g->size);
		for (int j = 0; j < i; j++)
			if (ranks[j] == ranks[i])
				return wrong(g, MPI_ERR_RANK, fn,
					     "rank %d is given twice",
					     ranks[i]);
	}
	return MPI_SUCCESS;
}

static int include(const char *fn, MPI_Group group, int n, const int ranks[],
		   MPI_Group *newgroup)
{
	struct madmpi_group *g;
	int rc = check_group(fn, group, &g), *world;

	if (rc == MPI_SUCCESS && newgroup == NULL)
		rc = wrong(g, MPI_ERR_ARG, fn, "newgroup is a null pointer");
	if (rc == MPI_SUCCESS)
		rc = check_ranks(fn, g, n, ranks);
	if (rc != MPI_SUCCESS)
		return rc;
	world = room(n);
	for (int i = 0; world != NULL && i < n; i++)
		world[i] = g->world[ranks[i]];
	return make(fn, g->session, world, n, newgroup);
}

/* MPI_Group_incl */
int madmpi_group_incl(MPI_Group group, int n, const int ranks[],
		      MPI_Group *newgroup)
{
	return include("MPI_Group_incl", group, n, ranks, newgroup);
}

static int exclude(const char *fn, MPI_Group group, int n, const int ranks[],
		   MPI_Group *newgroup)
{
	struct madmpi_group *g;
	int rc = check_group(fn, group, &g), *world, left = 0;

	if (rc == MPI_SUCCESS && newgroup == NULL)
		rc = wrong(g, MPI_ERR_ARG, fn, "newgroup is a null pointer");
	if (rc == MPI_SUCCESS)
		rc = check_ranks(fn, g, n, ranks);
	if (rc != MPI_SUCCESS)
		return rc;
	world = room(g->size);
	if (world == NULL)
		return make(fn, NULL, NULL, 0, newgroup);
	for (int i = 0; i < g->size; i++)
		world[i] = g->world[i];
	for (int i = 0; i < n; i++)
		world[ranks[i]] = -1;
	for (int i = 0; i < g->size; i++)
		if (world[i] >= 0)
			world[left++] = world[i];
	return make(fn, g->session, world, left, newgroup);
}

/* MPI_Group_excl */
int madmpi_group_excl(MPI_Group group, int n, const int ranks[],
		      MPI_Group *newgroup)
{
	return exclude("MPI_Group_excl", group, n, ranks, newgroup);
}

/* The ranks of one range, or -1: it is none. */
static int count_range(const struct madmpi_group *g, const int range[3])
{
	long first = range[0], last = range[1], stride = range[2], n;

	if (stride == 0 || (last - first) * stride < 0 || first < 0 ||
	    first >= g->size)
		return -1;
	n = (last - first) / stride;
	last = first + n * stride;
	return last >= 0 && last < g->size ? (int)n + 1 : -1;
}

/* *out: all ranks that the ranges name, to be freed; *count of them. */
static int expand(const char *fn, MPI_Group group, int n, int ranges[][3],
		  const MPI_Group *newgroup, int **out, int *count)
{
	struct madmpi_group *g;
	int rc = check_group(fn, group, &g), found = 0, one;

	*out = NULL;
	if (rc != MPI_SUCCESS)
		return rc;
	if (newgroup == NULL)
		return wrong(g, MPI_ERR_ARG, fn, "newgroup is a null pointer");
	if (n < 0 || (n > 0 && ranges == NULL))
		return wrong(g, MPI_ERR_ARG, fn, "n is %d, ranges %p", n,
			     (const void *)ranges);
	for (int i = 0; i < n; i++) {
		one = count_range(g, ranges[i]);
		if (one < 0)
			return wrong(
				g,
				ranges[i][2] == 0 ? MPI_ERR_ARG : MPI_ERR_RANK,
				fn,
				"ranges[%d] is %d to %d by %d, but the group "
				"has %d processes",
				i, ranges[i][0], ranges[i][1], ranges[i][2],
				g->size);
		if (__builtin_add_overflow(found, one, &found) ||
		    found > g->size)
			return wrong(g, MPI_ERR_RANK, fn,
				     "the ranges name a rank twice");
	}
	*out = room(found);
	if (*out == NULL)
		return wrong(g, MPI_ERR_NO_MEM, fn, "no memory for %d ranks",
			     found);
	*count = 0;
	for (int i = 0; i < n; i++)
		for (int k = count_range(g, ranges[i]), r = ranges[i][0]; k > 0;
		     k--, r += ranges[i][2])
			(*out)[(*count)++] = r;
	return MPI_SUCCESS;
}

/* MPI_Group_range_incl */
int madmpi_group_range_incl(MPI_Group group, int n, int ranges[][3],
			    MPI_Group *newgroup)
{
	const char *fn = "MPI_Group_range_incl";
	int *ranks, count;
	int rc = expand(fn, group, n, ranges, newgroup, &ranks, &count);

	if (rc == MPI_SUCCESS)
		rc = include(fn, group, count, ranks, newgroup);
	free(ranks);
	return rc;
}

/* MPI_Group_range_excl */
int madmpi_group_range_excl(MPI_Group group, int n, int ranges[][3],
			    MPI_Group *newgroup)
{
	const char *fn = "MPI_Group_range_excl";
	int *ranks, count;
	int rc = expand(fn, group, n, ranges, newgroup, &ranks, &count);

	if (rc == MPI_SUCCESS)
		rc = exclude(fn, group, count, ranks, newgroup);
	free(ranks);
	return rc;
}

/*
 * Members of a that are (or are not) in b; then, if asked for, those of b that
 * are not in a.
 */
static int combine(const char *fn, MPI_Group group1, MPI_Group group2,
		   bool in_both, bool only_a, bool only_b, MPI_Group *newgroup)
{
	struct madmpi_group *a, *b;
	int rc = check_groups(fn, group1, group2, &a, &b), *world, n = 0;

	if (rc != MPI_SUCCESS)
		return rc;
	if (newgroup == NULL)
		return wrong(a, MPI_ERR_ARG, fn, "newgroup is a null pointer");
	world = room(a->size + b->size);
	if (world == NULL)
		return make(fn, NULL, NULL, 0, newgroup);
	for (int i = 0; i < a->size; i++)
		if (rank_of(b, a->world[i]) >= 0 ? in_both : only_a)
			world[n++] = a->world[i];
	for (int i = 0; only_b && i < b->size; i++)
		if (rank_of(a, b->world[i]) < 0)
			world[n++] = b->world[i];
	return make(fn, a == &empty ? b->session : a->session, world, n,
		    newgroup);
}

/* MPI_Group_union */
int madmpi_group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	return combine("MPI_Group_union", group1, group2, true, true, true,
		       newgroup);
}

/* MPI_Group_intersection */
int madmpi_group_intersection(MPI_Group group1, MPI_Group group2,
			      MPI_Group *newgroup)
{
	return combine("MPI_Group_intersection", group1, group2, true, false,
		       false, newgroup);
}

/* MPI_Group_difference */
int madmpi_group_difference(MPI_Group group1, MPI_Group group2,
			    MPI_Group *newgroup)
{
	return combine("MPI_Group_difference", group1, group2, false, true,
		       false, newgroup);
}

/* MPI_Group_free */
int madmpi_group_free(MPI_Group *group)
{
	struct madmpi_group *g;
	int rc;

	if (group == NULL)
		return madmpi_null_arg(NULL, "MPI_Group_free", "group");
	rc = check_group("MPI_Group_free", *group, &g);
	if (rc != MPI_SUCCESS)
		return rc;
	fetch_sub_relaxed(&g->handles, 1);
	madmpi_group_put(g);
	*group = MPI_GROUP_NULL;
	return MPI_SUCCESS;
}

void madmpi_group_init(void)
{
	madmpi_pool_init(&pool, MADMPI_GROUP, sizeof(struct madmpi_group));
}

/* Groups the program did not free. */
static void reap(struct madmpi_object *o)
{
	free(container_of(o, struct madmpi_group, object)->world);
}

void madmpi_group_exit(void)
{
	madmpi_pool_walk(&pool, reap);
	madmpi_pool_exit(&pool);
}
