/*
 * Communicators that only their members make, and those of who shares memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <base/hash.h>
#include <base/host.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "info/info.h"
#include "pt2pt/message.h"

/* --- MPI_Comm_create_group --- */

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
		rc = madmpi_check_members(fn, c, group, &g);
	if (rc != MPI_SUCCESS)
		return rc;
	if (tag < 0)
		return madmpi_error(c, MPI_ERR_TAG, fn, "tag is negative (%d)",
				    tag);
	*newcomm = MPI_COMM_NULL;
	if (g->rank == MPI_UNDEFINED)
		return MPI_SUCCESS;
	if (g->rank == 0)
		b = (struct birth){
			{ nm_session_new_id(), nm_session_new_id() }, hash_of(g)
		};
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

/* --- MPI_Comm_split_type --- */

enum { PLACE = 160 };

/* The same text: the same kernel, and the same /dev/shm. */
static void place(char out[PLACE])
{
	char host[BASE_HOST_ID];
	struct utsname u;
	struct stat st;

	base_host_id(host);
	if (uname(&u) < 0)
		u.nodename[0] = '\0';
	if (stat("/dev/shm", &st) < 0)
		memset(&st, 0, sizeof(st));
	memset(out, 0, PLACE);
	snprintf(out, PLACE, "%s %.64s %llx", host, u.nodename,
		 (unsigned long long)st.st_dev);
}

/* The lowest rank of those in the same place, or a failure: -ENOMEM, ... */
static int color_of_place(const char *fn, struct madmpi_comm *c, int *color)
{
	char mine[PLACE], *all = malloc((size_t)c->size * PLACE);
	int rc;

	place(mine);
	if (all == NULL)
		return madmpi_error(c, MPI_ERR_NO_MEM, fn,
				    "no memory for %d places", c->size);
	rc = madmpi_coll_allgather_bytes(fn, c, mine, PLACE, all);
	*color = 0;
	while (rc == MPI_SUCCESS &&
	       memcmp(all + (size_t)*color * PLACE, mine, PLACE) != 0)
		++*color;
	free(all);
	return rc;
}

/* Nobody knows of parts of a host: there is no such communicator. */
static bool is_hardware(int type)
{
	return type == MPI_COMM_TYPE_HW_UNGUIDED ||
	       type == MPI_COMM_TYPE_HW_GUIDED ||
	       type == MPI_COMM_TYPE_RESOURCE_GUIDED;
}

/* MPI_Comm_split_type */
int madmpi_comm_split_type(MPI_Comm comm, int split_type, int key,
			   MPI_Info info, MPI_Comm *newcomm)
{
	const char *fn = "MPI_Comm_split_type";
	struct madmpi_comm *c;
	struct madmpi_info *i;
	int rc = madmpi_check_new_comm(fn, comm, newcomm, &c), color = 0;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_info(c, fn, info, &i);
	if (rc != MPI_SUCCESS)
		return rc;
	if (split_type != MPI_COMM_TYPE_SHARED && split_type != MPI_UNDEFINED &&
	    !is_hardware(split_type))
		return madmpi_error(c, MPI_ERR_ARG, fn, "split_type is %d",
				    split_type);
	rc = color_of_place(fn, c, &color);
	if (rc != MPI_SUCCESS)
		return rc;
	if (split_type != MPI_COMM_TYPE_SHARED)
		color = MPI_UNDEFINED;
	rc = madmpi_comm_split_by(fn, c, color, key, newcomm);
	if (rc == MPI_SUCCESS && *newcomm != MPI_COMM_NULL)
		madmpi_comm_hint(madmpi_comm_of(*newcomm), info);
	return rc;
}
