/*
 * Intercommunicators: how two groups meet, what can be asked, how they unite.
 *
 * They meet through their leaders, who have a communicator in common. Both send
 * the other one their group and two fresh numbers, all at once, and tell their
 * group what came; the contexts are those of the first group's leader. Which
 * one that is, all know without asking: the one whose first process has the
 * lower rank in MPI_COMM_WORLD.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "comm/inter.h"
#include "pt2pt/message.h"

int madmpi_check_intra(const char *fn, struct madmpi_comm *c)
{
	if (likely(!madmpi_comm_is_inter(c)))
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_COMM, fn,
			    "comm %p is an intercommunicator",
			    (void *)madmpi_comm_handle(c));
}

int madmpi_check_inter(const char *fn, MPI_Comm comm, struct madmpi_comm **out)
{
	int rc = madmpi_check_comm(fn, comm, out);

	if (rc != MPI_SUCCESS || madmpi_comm_is_inter(*out))
		return rc;
	return madmpi_error(*out, MPI_ERR_COMM, fn,
			    "comm %p is not an intercommunicator",
			    (void *)comm);
}

/* MPI_Comm_test_inter */
int madmpi_comm_test_inter(MPI_Comm comm, int *flag)
{
	struct madmpi_comm *c;
	int rc = madmpi_check_comm("MPI_Comm_test_inter", comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (flag == NULL)
		return madmpi_null_arg(c, "MPI_Comm_test_inter", "flag");
	*flag = madmpi_comm_is_inter(c);
	return MPI_SUCCESS;
}

/* MPI_Comm_remote_size */
int madmpi_comm_remote_size(MPI_Comm comm, int *size)
{
	const char *fn = "MPI_Comm_remote_size";
	struct madmpi_comm *c;
	int rc = madmpi_check_inter(fn, comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (size == NULL)
		return madmpi_null_arg(c, fn, "size");
	*size = c->npeers;
	return MPI_SUCCESS;
}

/* --- MPI_Intercomm_create --- */

/* One call of it. */
struct call {
	struct madmpi_meeting m;
	struct madmpi_comm *bridge;
	int remote; /* the other leader, in that */
	int tag;
};

/* What only the leader's arguments say. */
static int check_bridge(struct call *c, MPI_Comm peer_comm)
{
	const struct madmpi_meeting *m = &c->m;
	int rc = madmpi_check_comm(m->function, peer_comm, &c->bridge);

	if (rc != MPI_SUCCESS)
		return rc;
	if (c->bridge->session != m->local->session)
		return madmpi_error(m->local, MPI_ERR_COMM, m->function,
				    "peer_comm and local_comm are of different "
				    "sessions");
	if (c->remote < 0 || c->remote >= c->bridge->npeers)
		return madmpi_error(m->local, MPI_ERR_RANK, m->function,
				    "remote_leader is %d, but peer_comm has "
				    "%d process%s",
				    c->remote, c->bridge->npeers,
				    c->bridge->npeers > 1 ? "es" : "");
	if (c->bridge->peers->world[c->remote] == nm_rank())
		return madmpi_error(m->local, MPI_ERR_RANK, m->function,
				    "remote_leader %d is the local leader",
				    c->remote);
	return MPI_SUCCESS;
}

static int no_memory(const struct madmpi_meeting *m)
{
	return madmpi_error(m->local, MPI_ERR_NO_MEM, m->function,
			    "no memory for a group of %d", m->theirs.size);
}

/* Bytes of ranks, and room for those of the other group. */
static MPI_Count bytes_of(int n)
{
	return (MPI_Count)sizeof(int) * n;
}

static int *room_for(const struct madmpi_meeting *m)
{
	return malloc((size_t)bytes_of(m->theirs.size));
}

/*
 * Between the leaders, under a tag of the bridge that no collective has: what
 * the program does there, with whatever tag, is not in the way. Tags that
 * differ in the bit that is missing here are told apart by what is sent.
 */
static int meet(struct call *x)
{
	struct madmpi_meeting *m = &x->m;
	const struct madmpi_group *ours = m->local->group;
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	struct madmpi_coll c = { .function = m->function,
				 .comm = x->bridge,
				 .gate = x->bridge->gate,
				 .tag = MADMPI_COLL_LEADERS |
					(nm_tag_t)x->tag %
						MADMPI_COLL_LEADERS };
	struct madmpi_side mine = { .size = ours->size, .tag = x->tag };

	madmpi_comm_new_ids(mine.ids);
	madmpi_coll_exchange(&c, &mine, sizeof(mine), byte, x->remote,
			     &m->theirs, sizeof(mine), byte, x->remote);
	if (c.error != 0)
		return madmpi_coll_end(&c);
	m->world = room_for(m);
	if (m->world == NULL)
		madmpi_coll_fail(&c, -ENOMEM);
	madmpi_coll_exchange(&c, ours->world, bytes_of(ours->size), byte,
			     x->remote, m->world, bytes_of(m->theirs.size),
			     byte, x->remote);
	if (c.error == 0 && m->theirs.tag != x->tag)
		return madmpi_error(m->local, MPI_ERR_TAG, m->function,
				    "tag is %d here and %d there", x->tag,
				    m->theirs.tag);
	if (ours->world[0] < m->world[0])
		memcpy(m->theirs.ids, mine.ids, sizeof(mine.ids));
	return madmpi_coll_end(&c);
}

int madmpi_meeting_hear(struct madmpi_meeting *m, const int *world, int size,
			const uint64_t ids[2])
{
	m->theirs.size = size;
	memcpy(m->theirs.ids, ids, sizeof(m->theirs.ids));
	m->world = room_for(m);
	if (m->world == NULL)
		return no_memory(m);
	memcpy(m->world, world, (size_t)bytes_of(size));
	return MPI_SUCCESS;
}

/* From the leader to its group: what it has heard, or that it has failed. */
static int tell(struct madmpi_meeting *m)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	bool leads = m->local->rank == m->leader;
	struct madmpi_coll *c = &m->coll;

	if (!leads)
		m->theirs = (struct madmpi_side){ .size = 0 };
	madmpi_bcast_binomial(c, &m->theirs, sizeof(m->theirs), byte,
			      m->leader);
	/* Who has not heard takes part in what follows all the same. */
	if (m->theirs.error == MPI_SUCCESS && m->theirs.size == 0)
		m->theirs.size = 1;
	if (m->theirs.error != MPI_SUCCESS && leads)
		return m->theirs.error; /* which it has reported */
	if (m->theirs.error != MPI_SUCCESS)
		return madmpi_error(m->local, m->theirs.error, m->function,
				    "the local leader, rank %d, has found this "
				    "error",
				    m->leader);
	if (!leads)
		m->world = room_for(m);
	if (m->world == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	madmpi_bcast_binomial(c, m->world, bytes_of(m->theirs.size), byte,
			      m->leader);
	return madmpi_coll_end(c);
}

static int check_disjoint(const struct madmpi_meeting *m)
{
	const struct madmpi_group *ours = m->local->group;

	for (int i = 0; i < m->theirs.size; i++)
		if (ours->inverse[m->world[i]] >= 0)
			return madmpi_error(
				m->local, MPI_ERR_GROUP, m->function,
				"the groups overlap: rank %d of local_comm is "
				"rank %d of the other one",
				ours->inverse[m->world[i]], i);
	return MPI_SUCCESS;
}

static int make(const struct madmpi_meeting *m, struct madmpi_comm **out)
{
	struct madmpi_group *peers;
	int rc;

	peers = madmpi_group_new(m->world, m->theirs.size);
	if (peers == NULL)
		return no_memory(m);
	madmpi_group_get(m->local->group);
	rc = madmpi_comm_new_inter(m->local, m->local->group, peers,
				   m->theirs.ids, out);
	return rc == 0 ? MPI_SUCCESS
		       : madmpi_error_errno(m->local, rc, m->function,
					    "new communicator");
}

int madmpi_meeting_end(struct madmpi_meeting *m, int error,
		       struct madmpi_comm **out)
{
	int rc;

	m->theirs.error = error;
	rc = tell(m);
	if (rc == MPI_SUCCESS)
		rc = check_disjoint(m);
	if (rc == MPI_SUCCESS)
		rc = make(m, out);
	free(m->world);
	return rc;
}

/* What all processes say. */
static int check_local(struct call *c, MPI_Comm local_comm,
		       const MPI_Comm *newintercomm)
{
	struct madmpi_meeting *m = &c->m;
	int rc = madmpi_check_comm(m->function, local_comm, &m->local);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_intra(m->function, m->local);
	if (rc != MPI_SUCCESS)
		return rc;
	if (m->leader < 0 || m->leader >= m->local->size)
		return madmpi_error(m->local, MPI_ERR_RANK, m->function,
				    "local_leader is %d, but local_comm has "
				    "%d process%s",
				    m->leader, m->local->size,
				    m->local->size > 1 ? "es" : "");
	if (c->tag < 0)
		return madmpi_error(m->local, MPI_ERR_TAG, m->function,
				    "tag is negative (%d)", c->tag);
	if (newintercomm == NULL)
		return madmpi_null_arg(m->local, m->function, "newintercomm");
	return MPI_SUCCESS;
}

/* MPI_Intercomm_create */
int madmpi_intercomm_create(MPI_Comm local_comm, int local_leader,
			    MPI_Comm peer_comm, int remote_leader, int tag,
			    MPI_Comm *newintercomm)
{
	struct call c = { .m = { .function = "MPI_Intercomm_create",
				 .leader = local_leader },
			  .remote = remote_leader,
			  .tag = tag };
	struct madmpi_comm *made;
	int rc = check_local(&c, local_comm, newintercomm);

	if (rc != MPI_SUCCESS)
		return rc;
	if (c.m.local->rank == local_leader) {
		rc = check_bridge(&c, peer_comm);
		if (rc == MPI_SUCCESS)
			rc = meet(&c);
	}
	/* After they met: a process of both groups calls for one at a time. */
	if (!madmpi_coll_begin_call(&c.m.coll, c.m.function, c.m.local)) {
		free(c.m.world);
		return madmpi_coll_end(&c.m.coll);
	}
	rc = madmpi_meeting_end(&c.m, rc, &made);
	if (rc == MPI_SUCCESS)
		*newintercomm = madmpi_comm_handle(made);
	return rc;
}

/* --- MPI_Intercomm_merge --- */

/* What each process of both groups says. */
struct vote {
	uint64_t ids[2];
	int high;
};

/* The one group of both: this one before or behind the other one. */
static struct madmpi_group *merged(const struct madmpi_comm *c, bool behind)
{
	const struct madmpi_group *low = behind ? c->peers : c->group;
	const struct madmpi_group *high = behind ? c->group : c->peers;
	int *world = malloc((size_t)bytes_of(low->size + high->size));
	struct madmpi_group *g;

	if (world == NULL)
		return NULL;
	memcpy(world, low->world, (size_t)bytes_of(low->size));
	memcpy(world + low->size, high->world, (size_t)bytes_of(high->size));
	g = madmpi_group_new(world, low->size + high->size);
	free(world);
	return g;
}

static int check_votes(const char *fn, struct madmpi_comm *c,
		       const struct vote *all)
{
	for (int i = 0; i < madmpi_comm_everybody(c); i++) {
		int first = i < c->size ? 0 : c->size;

		if (all[i].high != all[first].high)
			return madmpi_error(c, MPI_ERR_ARG, fn,
					    "high is %d in rank 0 and %d in "
					    "rank %d of the %s group",
					    all[first].high, all[i].high,
					    i - first,
					    first ? "remote" : "local");
	}
	return MPI_SUCCESS;
}

/* The higher group is behind; if both say the same, the first is before. */
static int merge(const char *fn, struct madmpi_comm *c, const struct vote *all,
		 struct madmpi_comm **out)
{
	const struct vote *ours = &all[0], *others = &all[c->size];
	bool first = madmpi_comm_is_first(c), behind = ours->high;
	struct madmpi_group *g;
	int rc = -ENOMEM;

	if (ours->high == others->high)
		behind = !first;
	g = merged(c, behind);
	if (g != NULL)
		rc = madmpi_comm_new(c, g, first ? ours->ids : others->ids,
				     out);
	return rc == 0 ? MPI_SUCCESS
		       : madmpi_error_errno(c, rc, fn, "new communicator");
}

/* MPI_Intercomm_merge */
int madmpi_intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm)
{
	const char *fn = "MPI_Intercomm_merge";
	struct vote mine = { .high = high != 0 }, *all;
	struct madmpi_comm *c, *made = NULL;
	struct madmpi_coll x;
	int rc = madmpi_check_inter(fn, intercomm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (newintracomm == NULL)
		return madmpi_null_arg(c, fn, "newintracomm");
	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	all = calloc((size_t)madmpi_comm_everybody(c), sizeof(*all));
	if (c->rank == 0)
		madmpi_comm_new_ids(mine.ids);
	madmpi_coll_allgather_bytes(&x, &mine, sizeof(mine), all);
	rc = madmpi_coll_end(&x);
	if (rc == MPI_SUCCESS)
		rc = check_votes(fn, c, all);
	if (rc == MPI_SUCCESS)
		rc = merge(fn, c, all, &made);
	free(all);
	if (rc == MPI_SUCCESS)
		*newintracomm = madmpi_comm_handle(made);
	return rc;
}
