/*
 * Communicators that only their members make.
 */
#include <base/hash.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "pt2pt/message.h"

/* What the first member sends down a tree of the members. */
struct birth {
	uint64_t ids[2];
	uint64_t members; /* which ones it means: their hash */
};

static uint64_t hash_of(const struct madmpi_group *g)
{
	uint64_t h = (uint64_t)g->size;

	for (int i = 0; i < g->size; i++)
		h = base_hash_mix(h, (uint64_t)g->world[i]);
	return h;
}

/* A member's rank in the parent. */
static int peer(const struct madmpi_coll *c, const struct madmpi_group *g,
		int member)
{
	return c->comm->group->inverse[g->world[member]];
}

/*
 * Through the parent's collective context, under the call's tag, which no
 * collective has: others of the parent may do what they like meanwhile.
 */
static int tell(const char *fn, struct madmpi_comm *parent,
		const struct madmpi_group *g, int tag, struct birth *b)
{
	struct madmpi_type *bytes = madmpi_type_of(MPI_BYTE);
	struct madmpi_coll c = { .function = fn,
				 .comm = parent,
				 .gate = parent->local_gate,
				 .tag = MADMPI_COLL_TAGS | (nm_tag_t)tag };
	int step = 1;

	for (; step < g->size; step *= 2)
		if (g->rank & step) {
			madmpi_coll_recv(&c, b, sizeof(*b), bytes,
					 peer(&c, g, g->rank - step));
			break;
		}
	while ((step /= 2) > 0)
		if (g->rank + step < g->size)
			madmpi_coll_send(&c, b, sizeof(*b), bytes,
					 peer(&c, g, g->rank + step));
	return madmpi_coll_end(&c);
}

/* MPI_Comm_create_group */
int madmpi_comm_create_group(MPI_Comm comm, MPI_Group group, int tag,
			     MPI_Comm *newcomm)
{
	const char *fn = "MPI_Comm_create_group";
	struct birth b = { .ids = { 0, 0 } };
	struct madmpi_comm *c, *made;
	struct madmpi_group *g;
	int rc = madmpi_check_new_comm(fn, comm, newcomm, &c);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_intra(fn, c);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_members(fn, c, group, &g);
	if (rc != MPI_SUCCESS)
		return rc;
	if (tag < 0)
		return madmpi_error(c, MPI_ERR_TAG, fn, "tag is negative (%d)",
				    tag);
	*newcomm = MPI_COMM_NULL;
	if (g->rank == MPI_UNDEFINED)
		return MPI_SUCCESS;
	if (g->rank == 0) {
		madmpi_comm_new_ids(b.ids);
		b.members = hash_of(g);
	}
	rc = tell(fn, c, g, tag, &b);
	if (rc != MPI_SUCCESS)
		return rc;
	if (b.members != hash_of(g))
		return madmpi_error(c, MPI_ERR_GROUP, fn,
				    "the members name different groups with "
				    "tag %d",
				    tag);
	madmpi_group_get(g);
	rc = madmpi_comm_new(c, g, b.ids, &made);
	if (rc < 0)
		return madmpi_error_errno(c, rc, fn, "new communicator");
	*newcomm = madmpi_comm_handle(made);
	return MPI_SUCCESS;
}
