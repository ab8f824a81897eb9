/*
 * Communicators from groups, without one that is there before: the first member
 * draws the numbers of the contexts and sends them down a tree of letters.
 */
#include <string.h>

#include <base/hash.h>

#include "bodies.h"
#include "comm/comm.h"
#include "comm/inter.h"
#include "info/info.h"
#include "session/letter.h"

/* What both functions are given. */
struct call {
	const char *function;
	struct madmpi_errhandler *e; /* told of what goes wrong */
	struct madmpi_group *group;  /* of this process */
	const char *tag;
	MPI_Info info;
	MPI_Comm *newcomm;
};

static uint64_t mix(uint64_t h, const struct madmpi_group *g)
{
	h = base_hash_mix(h, (uint64_t)g->size);
	for (int i = 0; i < g->size; i++)
		h = base_hash_mix(h, (uint64_t)g->world[i]);
	return h;
}

static int check_text_and_info(const struct call *c)
{
	if (c->tag == NULL)
		return madmpi_error_by(c->e, MPI_ERR_ARG, c->function,
				       "stringtag is a null pointer");
	if (strlen(c->tag) >= MPI_MAX_STRINGTAG_LEN)
		return madmpi_error_by(c->e, MPI_ERR_ARG, c->function,
				       "stringtag has %zu characters, not up "
				       "to %d",
				       strlen(c->tag),
				       MPI_MAX_STRINGTAG_LEN - 1);
	if (c->info != MPI_INFO_NULL && madmpi_info_of(c->info) == NULL)
		return madmpi_error_by(c->e, MPI_ERR_INFO, c->function,
				       "%p is not an info object",
				       (void *)c->info);
	return MPI_SUCCESS;
}

/* Everything but a second group. The result is null from here on. */
static int check(struct call *c, MPI_Group group, MPI_Errhandler errhandler)
{
	int rc;

	c->e = madmpi_errhandler_for(errhandler, MADMPI_COMM);
	if (c->e == NULL)
		return madmpi_error(NULL, MPI_ERR_ERRHANDLER, c->function,
				    "%p is not an error handler of "
				    "communicators",
				    (void *)errhandler);
	if (c->newcomm == NULL)
		return madmpi_error_by(c->e, MPI_ERR_ARG, c->function,
				       "the place of the result is a null "
				       "pointer");
	c->group = madmpi_group_of(group);
	if (c->group == NULL)
		return madmpi_error_by(c->e, MPI_ERR_GROUP, c->function,
				       "group %p is not a group",
				       (void *)group);
	rc = check_text_and_info(c);
	if (rc != MPI_SUCCESS)
		return rc;
	*c->newcomm = MPI_COMM_NULL;
	if (c->group->size > 0 && c->group->rank == MPI_UNDEFINED)
		return madmpi_error_by(c->e, MPI_ERR_GROUP, c->function,
				       "this process is not in the group");
	return MPI_SUCCESS;
}

static void address(struct madmpi_letter *l, enum madmpi_letter_kind kind,
		    const struct call *c, uint64_t members)
{
	memset(l, 0, sizeof(*l));
	l->kind = kind;
	l->members = members;
	strcpy(l->tag, c->tag);
}

/* What goes wrong is passed on, so that nobody waits for ever. */
static void note(struct madmpi_letter *l, int rc)
{
	if (rc < 0 && l->error == MPI_SUCCESS)
		l->error = madmpi_error_class_of_errno(rc);
}

static struct nm_gate *member(const struct madmpi_group *g, int rank)
{
	return nm_gate_of(g->world[(rank + g->size) % g->size]);
}

/*
 * A letter that one member has written goes to all, down the tree of
 * madmpi_bcast_binomial(). Every member but the root receives it from the
 * member above. Returns the distance to the members below.
 */
static int hear(const struct madmpi_group *g, struct madmpi_letter *l, int root)
{
	int me = (g->rank - root + g->size) % g->size, step = 1;

	for (; step < g->size; step *= 2)
		if (me & step) {
			note(l,
			     madmpi_letter_recv(member(g, g->rank - step), l));
			break;
		}
	return step;
}

/*
 * Then to the members below. Members of a local group go on through that tree
 * from the same root: if the one above has told a member that all is well it
 * takes part in that, so it must not fail because another one below is dead.
 */
static void tell(const struct madmpi_group *g, struct madmpi_letter *l,
		 int root, int step)
{
	int me = (g->rank - root + g->size) % g->size, rc;

	while ((step /= 2) > 0) {
		if (me + step >= g->size)
			continue;
		rc = madmpi_letter_send(member(g, g->rank + step), l);
		if (l->kind != MADMPI_LETTER_LOCAL)
			note(l, rc);
	}
}

/*
 * Of the one group, by its member root; kind says for what. A process makes its
 * communicator before it tells those below, so that they do not go on if there
 * is no memory for it. MPI_SUCCESS or what was reported.
 */
static int make(const struct call *c, enum madmpi_letter_kind kind, int root,
		struct madmpi_comm **out)
{
	struct madmpi_comm *made = NULL;
	struct madmpi_letter l;
	int rc = 0, step;

	address(&l, kind, c, mix(0, c->group));
	if (c->group->rank == root)
		madmpi_comm_new_ids(l.ids);
	step = hear(c->group, &l, root);
	if (l.error == MPI_SUCCESS) {
		madmpi_group_get(c->group);
		rc = madmpi_comm_new(NULL, c->group, l.ids, &made);
		note(&l, rc);
	}
	tell(c->group, &l, root, step);
	if (l.error == MPI_SUCCESS) {
		madmpi_errhandler_give(made, c->e);
		*out = made;
		return MPI_SUCCESS;
	}
	if (rc == 0 && made != NULL)
		madmpi_comm_put(made);
	return madmpi_error_by(c->e, l.error, c->function,
			       rc < 0 ? "new communicator"
			       : l.error == MPI_ERR_PROC_ABORTED
				       ? "a member of the group cannot be "
					 "reached"
				       : "another member of the group could "
					 "not do its part");
}

/* MPI_Comm_create_from_group */
int madmpi_comm_create_from_group(MPI_Group group, const char *stringtag,
				  MPI_Info info, MPI_Errhandler errhandler,
				  MPI_Comm *newcomm)
{
	struct call c = { .function = "MPI_Comm_create_from_group",
			  .tag = stringtag,
			  .info = info,
			  .newcomm = newcomm };
	struct madmpi_comm *made;
	int rc = check(&c, group, errhandler);

	if (rc != MPI_SUCCESS || c.group->size == 0)
		return rc;
	rc = make(&c, MADMPI_LETTER_INTRA, 0, &made);
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_comm_hint(made, info);
	*newcomm = madmpi_comm_handle(made);
	return MPI_SUCCESS;
}

/* --- MPI_Intercomm_create_from_groups --- */

/* The remote group and its leader matter to the local one only. */
static int check_remote(const struct call *c, MPI_Group handle, int leader,
			struct madmpi_group **out)
{
	struct madmpi_group *g = madmpi_group_of(handle);

	*out = g;
	if (g == NULL || g->size == 0)
		return madmpi_error_by(c->e, MPI_ERR_GROUP, c->function,
				       "remote_group %p is %s", (void *)handle,
				       g ? "empty" : "not a group");
	if (g->session != c->group->session)
		return madmpi_error_by(c->e, MPI_ERR_GROUP, c->function,
				       "the groups are of different sessions");
	if (leader < 0 || leader >= g->size)
		return madmpi_error_by(c->e, MPI_ERR_RANK, c->function,
				       "remote_leader is %d, but remote_group "
				       "has %d processes",
				       leader, g->size);
	for (int i = 0; i < g->size; i++)
		if (c->group->inverse[g->world[i]] >= 0)
			return madmpi_error_by(
				c->e, MPI_ERR_GROUP, c->function,
				"the groups overlap: rank %d of remote_group "
				"is in local_group",
				i);
	return MPI_SUCCESS;
}

/*
 * The leaders tell each other numbers; those of the first group's are used. Or
 * `error`, a class that was reported: then the other leader fails, too.
 */
static int meet(const struct call *c, const struct madmpi_group *remote,
		int leader, int error, struct madmpi_meeting *m)
{
	const struct madmpi_group *local = c->group;
	struct nm_gate *there = nm_gate_of(remote->world[leader]);
	bool first = local->world[0] < remote->world[0];
	struct madmpi_letter mine, theirs;
	int rc;

	address(&mine, MADMPI_LETTER_LEADERS, c,
		first ? mix(mix(0, local), remote)
		      : mix(mix(0, remote), local));
	theirs = mine;
	madmpi_comm_new_ids(mine.ids);
	mine.error = error;
	rc = madmpi_letter_send(there, &mine);
	if (rc == 0)
		rc = madmpi_letter_recv(there, &theirs);
	if (rc < 0)
		return madmpi_error_by(c->e, madmpi_error_class_of_errno(rc),
				       c->function,
				       "the leader of the remote group cannot "
				       "be reached");
	if (error != MPI_SUCCESS)
		return error;
	if (theirs.error != MPI_SUCCESS)
		return madmpi_error_by(c->e, theirs.error, c->function,
				       "the remote group could not do its "
				       "part");
	return madmpi_meeting_hear(m, remote->world, remote->size,
				   first ? mine.ids : theirs.ids);
}

/* All processes; without a communicator of their group, the leader. */
static int make_inter(const struct call *c, struct madmpi_meeting *m, int error,
		      MPI_Group remote_group, int remote_leader)
{
	struct madmpi_group *remote;
	struct madmpi_comm *made;
	int rc = error;

	if (c->group->rank == m->leader) {
		rc = check_remote(c, remote_group, remote_leader, &remote);
		if (rc == MPI_SUCCESS)
			rc = meet(c, remote, remote_leader, error, m);
	}
	if (error != MPI_SUCCESS)
		return error;
	madmpi_coll_begin(&m->coll, c->function, m->local);
	rc = madmpi_meeting_end(m, rc, &made);
	madmpi_comm_put(m->local);
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_comm_hint(made, c->info);
	*c->newcomm = madmpi_comm_handle(made);
	return MPI_SUCCESS;
}

/* MPI_Intercomm_create_from_groups */
int madmpi_intercomm_create_from_groups(MPI_Group local_group, int local_leader,
					MPI_Group remote_group,
					int remote_leader,
					const char *stringtag, MPI_Info info,
					MPI_Errhandler errhandler,
					MPI_Comm *newintercomm)
{
	struct call c = { .function = "MPI_Intercomm_create_from_groups",
			  .tag = stringtag,
			  .info = info,
			  .newcomm = newintercomm };
	struct madmpi_meeting m = { .function = c.function,
				    .leader = local_leader };
	int rc = check(&c, local_group, errhandler);

	if (rc != MPI_SUCCESS || c.group->size == 0 ||
	    remote_group == MPI_GROUP_EMPTY)
		return rc;
	if (local_leader < 0 || local_leader >= c.group->size)
		return madmpi_error_by(c.e, MPI_ERR_RANK, c.function,
				       "local_leader is %d, but local_group "
				       "has %d processes",
				       local_leader, c.group->size);
	rc = make(&c, MADMPI_LETTER_LOCAL, local_leader, &m.local);
	return make_inter(&c, &m, rc, remote_group, remote_leader);
}
