/*
 * Communicators of who shares memory, or a part of the hardware.
 *
 * Everybody tells where he is (spot.h). All see the same, so all decide alike.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <marcel/topo.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "comm/spot.h"
#include "info/info.h"
#include "pt2pt/message.h"
#include "session/session.h"

/* --- what splits --- */

enum {
	BY_NOTHING = -3, /* nobody is in a new communicator */
	BY_WHOLE = -2,   /* everybody is in the same one */
	BY_HOST = -1,    /* else the number of a kind of hardware */
};

static bool share(const struct madmpi_spot *a, const struct madmpi_spot *b,
		  int by)
{
	if (by == BY_WHOLE)
		return true;
	return by == BY_HOST ? madmpi_spot_share_host(a, b)
			     : madmpi_spot_share(a, b, by);
}

/* Everybody is in one of that kind, but not all in the same. */
static bool divides(const struct madmpi_spot all[], int n, int by)
{
	bool several = false;

	for (int i = 0; i < n; i++) {
		if (!share(&all[i], &all[i], by) ||
		    (by >= 0 && all[i].at[by].kind != all[0].at[by].kind))
			return false;
		several |= !share(&all[0], &all[i], by);
	}
	return several;
}

/* Unguided: the largest that makes the communicator smaller. */
static int largest(const struct madmpi_spot all[], int n)
{
	if (divides(all, n, BY_HOST))
		return BY_HOST;
	for (int by = 0; by < MADMPI_SPOT_KINDS && all[0].at[by].kind != 0;
	     by++)
		if (divides(all, n, by))
			return by;
	return BY_NOTHING;
}

static const char scheme[] = "hwloc://";

/* The kind with this name, with or without a scheme. */
static int kind_named(const char *name)
{
	const struct marcel_place *p = marcel_topo_places();

	if (strcasecmp(name, "mpi_shared_memory") == 0)
		return BY_HOST;
	if (strncasecmp(name, scheme, strlen(scheme)) == 0)
		name += strlen(scheme);
	for (int i = 0; p != NULL && p[i].type != NULL && i < MADMPI_SPOT_KINDS;
	     i++)
		if (strcasecmp(name, p[i].type) == 0)
			return i;
	return BY_NOTHING;
}

/* What an info object may guide. */
struct guide {
	char type[MPI_MAX_INFO_VAL], pset[MPI_MAX_INFO_VAL];
};

static void read_key(MPI_Info info, const char *key, char *value)
{
	int room = MPI_MAX_INFO_VAL, flag = 0;

	value[0] = '\0';
	if (info != MPI_INFO_NULL)
		madmpi_info_get_string(info, key, &room, value, &flag);
}

static void read_guide(MPI_Info info, struct guide *g)
{
	read_key(info, "mpi_hw_resource_type", g->type);
	read_key(info, "mpi_pset_name", g->pset);
}

static bool is_ambiguous(int split_type, const struct guide *g)
{
	return split_type == MPI_COMM_TYPE_RESOURCE_GUIDED &&
	       g->type[0] != '\0' && g->pset[0] != '\0';
}

static int split_by(int split_type, const struct guide *g,
		    const struct madmpi_spot all[], int n)
{
	switch (split_type) {
	case MPI_COMM_TYPE_SHARED:
		return BY_HOST;
	case MPI_COMM_TYPE_HW_UNGUIDED:
		return largest(all, n);
	case MPI_COMM_TYPE_HW_GUIDED:
		return kind_named(g->type);
	case MPI_COMM_TYPE_RESOURCE_GUIDED:
		if (is_ambiguous(split_type, g))
			return BY_NOTHING;
		if (g->pset[0] == '\0')
			return kind_named(g->type);
		return madmpi_pset_named(g->pset) == MADMPI_PSET_WORLD
			       ? BY_WHOLE
			       : BY_NOTHING;
	default:
		return BY_NOTHING; /* MPI_UNDEFINED */
	}
}

/*
 * The lowest rank in MPI_COMM_WORLD of those who share it, in both groups if
 * there are two; or MPI_UNDEFINED.
 */
static int color_of(const struct madmpi_comm *c, const struct madmpi_spot all[],
		    int n, int by)
{
	const struct madmpi_spot *mine = &all[c->rank];
	int color = nm_rank(), world;

	if (by == BY_NOTHING || !share(mine, mine, by))
		return MPI_UNDEFINED;
	for (int i = 0; i < n; i++) {
		world = i < c->size ? c->group->world[i]
				    : c->peers->world[i - c->size];
		if (world < color && share(&all[i], mine, by))
			color = world;
	}
	return color;
}

static void color_and_kind(struct madmpi_coll *x, int split_type,
			   const struct guide *g, int *color, int *by)
{
	int n = madmpi_comm_everybody(x->comm);
	struct madmpi_spot mine, *all = malloc((size_t)n * sizeof(*all));

	madmpi_spot_find(&mine);
	madmpi_coll_allgather_bytes(x, &mine, sizeof(mine), all);
	if (x->error == 0) {
		*by = split_by(split_type, g, all, n);
		*color = color_of(x->comm, all, n, *by);
		/* A set of one process, whatever the others say. */
		if (split_type == MPI_COMM_TYPE_RESOURCE_GUIDED &&
		    !is_ambiguous(split_type, g) &&
		    madmpi_pset_named(g->pset) == MADMPI_PSET_SELF)
			*color = nm_rank();
	}
	free(all);
}

/* Unguided, an info object is told what the new communicator shares. */
static void tell_kind(MPI_Info info, int by)
{
	char value[MPI_MAX_INFO_VAL];

	if (by == BY_HOST)
		snprintf(value, sizeof(value), "mpi_shared_memory");
	else
		snprintf(value, sizeof(value), "%s%s", scheme,
			 marcel_topo_places()[by].type);
	madmpi_info_set(info, "mpi_hw_resource_type", value);
}

static bool is_type(int split_type)
{
	return split_type == MPI_COMM_TYPE_SHARED ||
	       split_type == MPI_COMM_TYPE_HW_UNGUIDED ||
	       split_type == MPI_COMM_TYPE_HW_GUIDED ||
	       split_type == MPI_COMM_TYPE_RESOURCE_GUIDED ||
	       split_type == MPI_UNDEFINED;
}

/* MPI_Comm_split_type */
int madmpi_comm_split_type(MPI_Comm comm, int split_type, int key,
			   MPI_Info info, MPI_Comm *newcomm)
{
	const char *fn = "MPI_Comm_split_type";
	struct madmpi_comm *c;
	struct madmpi_info *i;
	struct madmpi_coll x;
	int rc = madmpi_check_new_comm(fn, comm, newcomm, &c);
	int color = MPI_UNDEFINED, by = BY_NOTHING;
	struct guide g;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_info(c, fn, info, &i);
	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_type(split_type))
		return madmpi_error(c, MPI_ERR_ARG, fn, "split_type is %d",
				    split_type);
	read_guide(info, &g);
	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	color_and_kind(&x, split_type, &g, &color, &by);
	rc = madmpi_comm_split_by(&x, color, key, newcomm);
	/* The others need us to come this far. */
	if (rc == MPI_SUCCESS && is_ambiguous(split_type, &g))
		rc = madmpi_error(c, MPI_ERR_INFO, fn,
				  "mpi_hw_resource_type \"%.60s\" and "
				  "mpi_pset_name \"%.60s\" are both set",
				  g.type, g.pset);
	if (rc != MPI_SUCCESS || *newcomm == MPI_COMM_NULL)
		return rc;
	madmpi_comm_hint(madmpi_comm_of(*newcomm), info);
	if (split_type == MPI_COMM_TYPE_HW_UNGUIDED && info != MPI_INFO_NULL)
		tell_kind(info, by);
	return MPI_SUCCESS;
}

/* MPI_Get_hw_resource_info: a new object, the caller's. */
int madmpi_get_hw_resource_info(MPI_Info *hw_info)
{
	const struct marcel_place *p = marcel_topo_places();
	char key[MPI_MAX_INFO_KEY];
	int rc;

	if (hw_info == NULL)
		return madmpi_null_arg(NULL, "MPI_Get_hw_resource_info",
				       "hw_info");
	rc = madmpi_info_create(hw_info);
	for (; rc == MPI_SUCCESS && p != NULL && p->type != NULL; p++) {
		snprintf(key, sizeof(key), "%s%s", scheme, p->type);
		rc = madmpi_info_set(*hw_info, key,
				     p->index >= 0 ? "true" : "false");
	}
	return rc;
}
