/*
 * Topologies: their life, and what all kinds have in common.
 */
#include "topo/topo.h"

#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "pt2pt/message.h"

struct madmpi_topo *madmpi_topo_new(int kind, size_t ints)
{
	struct madmpi_topo *t = calloc(1, sizeof(*t) + ints * sizeof(int));

	if (t == NULL)
		return NULL;
	madmpi_object_init(&t->object, MADMPI_FREED);
	t->kind = kind;
	return t;
}

void madmpi_topo_put(struct madmpi_topo *t)
{
	if (t != NULL && madmpi_object_put(&t->object))
		free(t);
}

static const char *name_of(int kind)
{
	switch (kind) {
	case MPI_CART:
		return "Cartesian";
	case MPI_GRAPH:
		return "graph";
	default:
		return "distributed graph";
	}
}

int madmpi_check_topo(const char *fn, MPI_Comm comm, int kind,
		      struct madmpi_comm **c, struct madmpi_topo **t)
{
	int rc = madmpi_check_comm(fn, comm, c);

	if (rc != MPI_SUCCESS)
		return rc;
	*t = (*c)->topo;
	if (*t != NULL && (*t)->kind == kind)
		return MPI_SUCCESS;
	return madmpi_error(*c, MPI_ERR_TOPOLOGY, fn,
			    "comm %p has %s%s topology, not a %s one",
			    (void *)comm, *t ? "a " : "no",
			    *t ? name_of((*t)->kind) : "", name_of(kind));
}

int madmpi_check_list(const char *fn, struct madmpi_comm *c, const char *name,
		      const int *list, int n)
{
	return n > 0 && list == NULL ? madmpi_null_arg(c, fn, name)
				     : MPI_SUCCESS;
}

int madmpi_topo_unite(struct madmpi_coll *x, int color, int node,
		      struct madmpi_topo *t, MPI_Comm *newcomm)
{
	int rc;

	if (node == MPI_UNDEFINED)
		color = node;
	else if (t == NULL)
		madmpi_coll_fail(x, -ENOMEM);
	rc = madmpi_comm_split_by(x, color, node, newcomm);
	if (rc == MPI_SUCCESS && *newcomm != MPI_COMM_NULL)
		madmpi_comm_of(*newcomm)->topo = t;
	else
		madmpi_topo_put(t);
	return rc;
}

/* MPI_Topo_test */
int madmpi_topo_test(MPI_Comm comm, int *status)
{
	const char *fn = "MPI_Topo_test";
	struct madmpi_comm *c;
	int rc = madmpi_check_comm(fn, comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (status == NULL)
		return madmpi_null_arg(c, fn, "status");
	*status = c->topo ? c->topo->kind : MPI_UNDEFINED;
	return MPI_SUCCESS;
}
