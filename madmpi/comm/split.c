/*
 * New communicators from parts of old ones.
 *
 * The number of a new context comes from the first member of the new group,
 * out of its own counter; no process asks what numbers others have left, so
 * there is no retry and no common resource, and any number of threads may make
 * communicators of different parents at once. Where every process of the parent
 * calls with data of its own anyway (split, create), each one puts numbers of
 * its own beside the data, and the members use those of their first; of two
 * groups, those of the first of the first group.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "pt2pt/message.h"

static int finish(const char *fn, struct madmpi_comm *parent, int rc,
		  struct madmpi_comm *c, MPI_Comm *newcomm)
{
	if (rc < 0)
		return madmpi_error_errno(parent, rc, fn, "new communicator");
	*newcomm = madmpi_comm_handle(c);
	return MPI_SUCCESS;
}

int madmpi_check_new_comm(const char *fn, MPI_Comm comm, MPI_Comm *newcomm,
			  struct madmpi_comm **out)
{
	int rc = madmpi_check_comm(fn, comm, out);

	if (rc == MPI_SUCCESS && newcomm == NULL)
		return madmpi_null_arg(NULL, fn, "newcomm");
	return rc;
}

/* What each process of the parent says about itself. */
struct entry {
	int color;
	int key;
	uint64_t ids[2];
};

struct sorted {
	int key;
	int rank;
};

static int compare(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/*
 * Those of a group who say this color, in the order of their keys. *first: what
 * the first of them says, if there is one. NULL: no memory.
 */
static struct madmpi_group *of_color(const struct madmpi_group *from,
				     const struct entry *all, int color,
				     const struct entry **first)
{
	struct sorted *s = calloc((size_t)from->size, sizeof(*s));
	int *world = calloc((size_t)from->size, sizeof(*world)), n = 0;
	struct madmpi_group *g = NULL;

	if (s == NULL || world == NULL)
		goto done;
	for (int i = 0; i < from->size; i++)
		if (all[i].color == color)
			s[n++] = (struct sorted){ all[i].key, i };
	qsort(s, (size_t)n, sizeof(*s), compare);
	for (int i = 0; i < n; i++)
		world[i] = from->world[s[i].rank];
	*first = n > 0 ? &all[s[0].rank] : NULL;
	g = madmpi_group_new(world, n);
done:
	free(s);
	free(world);
	return g;
}

/*
 * The new communicator of all entries of this color. 0 or -errno. *out is NULL
 * if it were one of two groups, and nobody in the other one says so.
 */
static int gather_color(struct madmpi_comm *c, const struct entry *all,
			int color, struct madmpi_comm **out)
{
	const struct entry *first, *other;
	struct madmpi_group *g, *peers;

	*out = NULL;
	g = of_color(c->group, all, color, &first);
	if (g == NULL)
		return -ENOMEM;
	if (!madmpi_comm_is_inter(c))
		return madmpi_comm_new(c, g, first->ids, out);
	peers = of_color(c->peers, all + c->size, color, &other);
	if (peers != NULL && peers->size > 0)
		return madmpi_comm_new_inter(
			c, g, peers,
			madmpi_comm_is_first(c) ? first->ids : other->ids, out);
	madmpi_group_put(g);
	return peers != NULL ? 0 : -ENOMEM;
}

int madmpi_comm_split_by(struct madmpi_coll *x, int color, int key,
			 MPI_Comm *newcomm)
{
	struct madmpi_comm *c = x->comm, *made = NULL;
	struct entry mine = { .color = color, .key = key };
	struct entry *all =
		calloc((size_t)madmpi_comm_everybody(c), sizeof(*all));
	int rc;

	if (color != MPI_UNDEFINED)
		madmpi_comm_new_ids(mine.ids);
	madmpi_coll_allgather_bytes(x, &mine, sizeof(mine), all);
	rc = madmpi_coll_end(x);
	if (rc != MPI_SUCCESS) {
		free(all);
		return rc;
	}
	*newcomm = MPI_COMM_NULL;
	if (color != MPI_UNDEFINED) {
		rc = gather_color(c, all, color, &made);
		if (rc < 0 || made != NULL)
			rc = finish(x->function, c, rc, made, newcomm);
	}
	free(all);
	return rc;
}

/* A call that does nothing but split. */
static int split(const char *fn, struct madmpi_comm *c, int color, int key,
		 MPI_Comm *newcomm)
{
	struct madmpi_coll x;

	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	return madmpi_comm_split_by(&x, color, key, newcomm);
}

/* MPI_Comm_split */
int madmpi_comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
	const char *fn = "MPI_Comm_split";
	struct madmpi_comm *c;
	int rc = madmpi_check_new_comm(fn, comm, newcomm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (color < 0 && color != MPI_UNDEFINED)
		return madmpi_error(c, MPI_ERR_ARG, fn,
				    "color is %d: neither MPI_UNDEFINED nor "
				    "0 or more",
				    color);
	return split(fn, c, color, key, newcomm);
}

int madmpi_check_members(const char *fn, struct madmpi_comm *c, MPI_Group group,
			 struct madmpi_group **out)
{
	struct madmpi_group *g = madmpi_group_of(group);

	*out = g;
	if (g == NULL)
		return madmpi_error(c, MPI_ERR_GROUP, fn,
				    "group %p is not a group", (void *)group);
	if (g->session != c->session && g->size > 0)
		return madmpi_error(c, MPI_ERR_GROUP, fn,
				    "group and communicator are of different "
				    "sessions");
	for (int i = 0; i < g->size; i++)
		if (c->group->inverse[g->world[i]] < 0)
			return madmpi_error(c, MPI_ERR_GROUP, fn,
					    "process %d of the group is not in "
					    "the communicator",
					    i);
	return MPI_SUCCESS;
}

/* MPI_Comm_create: a split by membership, ordered as the group is. */
int madmpi_comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
	const char *fn = "MPI_Comm_create";
	struct madmpi_group *g;
	struct madmpi_comm *c;
	int rc = madmpi_check_new_comm(fn, comm, newcomm, &c);
	int color = MPI_UNDEFINED;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_members(fn, c, group, &g);
	if (rc != MPI_SUCCESS)
		return rc;
	/*
	 * Different groups may be made at once; they do not overlap. Of two
	 * groups each names its part of the one that is made.
	 */
	if (g->rank != MPI_UNDEFINED)
		color = madmpi_comm_is_inter(c) ? 0 : g->world[0];
	return split(fn, c, color, g->rank, newcomm);
}
