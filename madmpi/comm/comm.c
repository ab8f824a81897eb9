/*
 * Communicators: their life, and what can be asked about them.
 */
#include "comm/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/coll.h"
#include "coll/hosts.h"
#include "coll/node.h"
#include "core/pool.h"
#include "pt2pt/message.h"
#include "session/session.h"

struct madmpi_comm *madmpi_world, *madmpi_self;
int madmpi_appnum = -1;

static struct madmpi_pool pool;

/* Numbers that nm_session_new_id() never gives, the same in all processes. */
static const uint64_t world_ids[] = { UINT64_MAX - 1, UINT64_MAX - 2 };
static const uint64_t self_ids[] = { UINT64_MAX - 3, UINT64_MAX - 4 };

/* Other threads may begin or end the world model: only its own ones look. */
MPI_Comm madmpi_comm_handle(struct madmpi_comm *c)
{
	if (!c->is_predefined)
		return (MPI_Comm)c;
	return c == madmpi_self ? MPI_COMM_SELF : MPI_COMM_WORLD;
}

void madmpi_comm_new_ids(uint64_t ids[2])
{
	ids[0] = nm_session_new_id();
	ids[1] = nm_session_new_id();
}

/* Its name may be about to change, and is a hint. */
static void describe_comm(const struct madmpi_comm *c, char *out, size_t room)
{
	if (c->name[0] != '\0')
		snprintf(out, room, "%.64s", c->name);
	else
		snprintf(out, room, "communicator %llx",
			 (unsigned long long)c->id);
}

const char *madmpi_comm_name_of(struct madmpi_comm *c, char out[])
{
	base_spin_lock(&c->lock);
	strcpy(out, c->name[0] != '\0' ? c->name : "the communicator");
	base_spin_unlock(&c->lock);
	return out;
}

static void describe_p2p(void *arg, nm_tag_t tag, int any_tag, char *out,
			 size_t room)
{
	char name[80];

	describe_comm(arg, name, sizeof(name));
	if (any_tag)
		snprintf(out, room, "any tag, %s", name);
	else
		snprintf(out, room, "tag %u, %s", tag, name);
}

static void describe_coll(void *arg, nm_tag_t tag, int any_tag, char *out,
			  size_t room)
{
	const struct madmpi_comm *c = arg;
	char name[80];

	(void)any_tag;
	describe_comm(c, name, sizeof(name));
	if (tag == MADMPI_COLL_BELL)
		snprintf(out, room, "collective operation %u of %s",
			 c->collectives, name);
	else if (tag == MADMPI_COLL_FINALIZE)
		snprintf(out, room, "MPI_Finalize of %s", name);
	else
		snprintf(out, room, "%scollective operation %u of %s",
			 tag >= MADMPI_COLL_WHY          ? ""
			 : tag >= MADMPI_COLL_PERSISTENT ? "persistent "
			 : tag >= MADMPI_COLL_BACKGROUND ? "non-blocking "
							 : "",
			 tag % MADMPI_COLL_BACKGROUND + 1, name);
}

int madmpi_comm_open(struct madmpi_comm *c, const uint64_t ids[2])
{
	int rc = nm_session_open(madmpi_signed_session(ids[0]), &c->p2p);

	c->id = ids[0];
	if (rc == 0)
		rc = nm_session_among(c->p2p, c->gate, c->npeers);
	if (rc == 0)
		rc = nm_session_open(ids[1], &c->coll);
	if (rc < 0)
		return rc;
	nm_session_describe(c->p2p, describe_p2p, c);
	nm_session_describe(c->coll, describe_coll, c);
	return 0;
}

/* NULL: no memory. */
static struct nm_gate **gates_of(const struct madmpi_group *g)
{
	struct nm_gate **gate = malloc((size_t)g->size * sizeof(*gate));

	for (int i = 0; gate != NULL && i < g->size; i++)
		gate[i] = nm_gate_of(g->world[i]);
	return gate;
}

static void free_gates(struct madmpi_comm *c)
{
	if (c->local_gate != c->gate)
		free(c->local_gate);
	free(c->gate);
}

static void put_groups(struct madmpi_group *group, struct madmpi_group *peers)
{
	if (peers != group)
		madmpi_group_put(peers);
	madmpi_group_put(group);
}

/* Of one group, which is its own peers, or of two. No sessions yet. */
static int comm_new(struct madmpi_comm *parent, struct madmpi_group *group,
		    struct madmpi_group *peers, struct madmpi_comm **out)
{
	struct madmpi_comm *c = madmpi_pool_get(&pool);

	if (c == NULL)
		goto err_group;
	c->group = group;
	c->rank = group->rank;
	c->size = group->size;
	c->peers = peers;
	c->npeers = peers->size;
	c->p2p = c->coll = c->part = NULL;
	c->part_tag = 0;
	c->is_predefined = false;
	c->topo = NULL;
	c->win = NULL;
	c->collectives = c->backgrounds = c->persistents = c->blocking = 0;
	c->no_node = false;
	c->node = NULL;
	c->hosts = NULL;
	c->attrs.newest = NULL;
	madmpi_buffer_init(&c->buffer);
	c->name[0] = '\0';
	memset(c->hints, 0, sizeof(c->hints));
	c->session = parent != NULL ? parent->session : group->session;
	base_link_init(&c->on);
	base_spin_init(&c->lock, BASE_RANK_LEAF);
	c->gate = gates_of(peers);
	c->local_gate = peers == group ? c->gate : gates_of(group);
	if (c->gate == NULL || c->local_gate == NULL)
		goto err_gates;
	if (peers == group &&
	    madmpi_hosts_new(c->gate, c->size, c->rank, &c->hosts) < 0)
		goto err_gates;
	c->errhandler = madmpi_errhandler_of_comm(parent);
	madmpi_group_join(group, c->session);
	madmpi_group_join(peers, c->session);
	if (c->session != NULL)
		madmpi_session_add(c->session, &c->session->comms, &c->on);
	*out = c;
	return 0;
err_gates:
	free_gates(c);
	madmpi_pool_put(&pool, c);
err_group:
	put_groups(group, peers);
	return -ENOMEM;
}

static int comm_new_open(struct madmpi_comm *parent, struct madmpi_group *group,
			 struct madmpi_group *peers, const uint64_t ids[2],
			 struct madmpi_comm **out)
{
	struct madmpi_comm *c;
	int rc = comm_new(parent, group, peers, &c);

	if (rc < 0)
		return rc;
	rc = madmpi_comm_open(c, ids);
	if (rc == 0)
		*out = c;
	else
		madmpi_comm_put(c);
	return rc;
}

int madmpi_comm_new(struct madmpi_comm *parent, struct madmpi_group *group,
		    const uint64_t ids[2], struct madmpi_comm **out)
{
	return comm_new_open(parent, group, group, ids, out);
}

int madmpi_comm_new_inter(struct madmpi_comm *parent,
			  struct madmpi_group *group,
			  struct madmpi_group *peers, const uint64_t ids[2],
			  struct madmpi_comm **out)
{
	return comm_new_open(parent, group, peers, ids, out);
}

int madmpi_comm_new_like(struct madmpi_comm *parent, struct madmpi_comm **out)
{
	madmpi_group_get(parent->group);
	if (madmpi_comm_is_inter(parent))
		madmpi_group_get(parent->peers);
	return comm_new(parent, parent->group, parent->peers, out);
}

static void comm_close(struct madmpi_comm *c)
{
	madmpi_buffer_exit(&c->buffer);
	madmpi_attrs_forget(&c->attrs);
	madmpi_node_free(c->node);
	free(c->hosts);
	if (c->part != NULL)
		nm_session_close(c->part);
	if (c->coll != NULL)
		nm_session_close(c->coll);
	if (c->p2p != NULL)
		nm_session_close(c->p2p);
	madmpi_errhandler_put(c->errhandler);
	madmpi_topo_put(c->topo);
	put_groups(c->group, c->peers);
	free_gates(c);
}

void madmpi_comm_put_slow(struct madmpi_comm *c)
{
	struct madmpi_session *s = c->session;

	if (!madmpi_session_object_put(s, &c->object, &c->on))
		return;
	comm_close(c);
	madmpi_pool_put(&pool, c);
	madmpi_session_put(s);
}

/* MPI_Comm_rank */
int madmpi_comm_rank(MPI_Comm comm, int *rank)
{
	struct madmpi_comm *c;
	int rc = madmpi_check_comm("MPI_Comm_rank", comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (rank == NULL)
		return madmpi_null_arg(c, "MPI_Comm_rank", "rank");
	*rank = c->rank;
	return MPI_SUCCESS;
}

/* MPI_Comm_size */
int madmpi_comm_size(MPI_Comm comm, int *size)
{
	struct madmpi_comm *c;
	int rc = madmpi_check_comm("MPI_Comm_size", comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (size == NULL)
		return madmpi_null_arg(c, "MPI_Comm_size", "size");
	*size = c->size;
	return MPI_SUCCESS;
}

/* Both groups of both: the less alike of the two answers. */
static int relation(const struct madmpi_comm *a, const struct madmpi_comm *b)
{
	int own = madmpi_group_relation(a->group, b->group), others = own;

	if (a == b)
		return MPI_IDENT;
	if (madmpi_comm_is_inter(a) != madmpi_comm_is_inter(b))
		return MPI_UNEQUAL;
	if (madmpi_comm_is_inter(a))
		others = madmpi_group_relation(a->peers, b->peers);
	if (own == MPI_UNEQUAL || others == MPI_UNEQUAL)
		return MPI_UNEQUAL;
	return own == MPI_SIMILAR || others == MPI_SIMILAR ? MPI_SIMILAR
							   : MPI_CONGRUENT;
}

/* MPI_Comm_compare */
int madmpi_comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
	const char *fn = "MPI_Comm_compare";
	struct madmpi_comm *a, *b;
	int rc = madmpi_check_comm(fn, comm1, &a);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_comm(fn, comm2, &b);
	if (rc != MPI_SUCCESS)
		return rc;
	if (a->session != b->session)
		return madmpi_error(a, MPI_ERR_COMM, fn,
				    "comm1 and comm2 are of different "
				    "sessions");
	if (result == NULL)
		return madmpi_null_arg(a, fn, "result");
	*result = relation(a, b);
	return MPI_SUCCESS;
}

/* MPI_Comm_set_name */
int madmpi_comm_set_name(MPI_Comm comm, const char *comm_name)
{
	struct madmpi_comm *c;
	int rc = madmpi_check_comm("MPI_Comm_set_name", comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (comm_name == NULL)
		return madmpi_null_arg(c, "MPI_Comm_set_name", "comm_name");
	base_spin_lock(&c->lock);
	snprintf(c->name, sizeof(c->name), "%s", comm_name);
	base_spin_unlock(&c->lock);
	return MPI_SUCCESS;
}

/* MPI_Comm_get_name */
int madmpi_comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
	const char *fn = "MPI_Comm_get_name";
	struct madmpi_comm *c;
	int rc;

	if (comm_name == NULL || resultlen == NULL)
		return madmpi_null_arg(NULL, fn,
				       comm_name ? "resultlen" : "comm_name");
	if (comm == MPI_COMM_NULL) {
		*resultlen = sprintf(comm_name, "MPI_COMM_NULL");
		return MPI_SUCCESS;
	}
	rc = madmpi_check_comm(fn, comm, &c);
	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&c->lock);
	strcpy(comm_name, c->name);
	base_spin_unlock(&c->lock);
	*resultlen = (int)strlen(comm_name);
	return MPI_SUCCESS;
}

static void let_go(struct madmpi_comm *c)
{
	madmpi_buffer_empty(&c->buffer);
	madmpi_object_let_go(&c->object);
	madmpi_comm_put(c);
}

void madmpi_comm_give_up(struct madmpi_comm *c)
{
	madmpi_attrs_delete("MPI_Session_finalize",
			    (struct madmpi_bearer){ .comm = c });
	let_go(c);
}

static int comm_free(const char *fn, MPI_Comm *comm)
{
	struct madmpi_comm *c;
	int rc;

	if (comm == NULL)
		return madmpi_null_arg(NULL, fn, "comm");
	rc = madmpi_check_comm(fn, *comm, &c);
	if (rc != MPI_SUCCESS)
		return rc;
	if (madmpi_object_is_let_go(&c->object))
		return madmpi_error(NULL, MPI_ERR_COMM, fn,
				    "comm %p was freed already", (void *)*comm);
	if (c->is_predefined)
		return madmpi_error(c, MPI_ERR_COMM, fn, "%s cannot be freed",
				    c->name);
	rc = madmpi_attrs_delete(fn, (struct madmpi_bearer){ .comm = c });
	if (rc != MPI_SUCCESS)
		return rc;
	*comm = MPI_COMM_NULL;
	let_go(c);
	return MPI_SUCCESS;
}

/* MPI_Comm_free */
int madmpi_comm_free(MPI_Comm *comm)
{
	return comm_free("MPI_Comm_free", comm);
}

/* MPI_Comm_disconnect */
int madmpi_comm_disconnect(MPI_Comm *comm)
{
	return comm_free("MPI_Comm_disconnect", comm);
}

/* One of the two communicators that are always there. */
static int predefine(const char *name, int first, int size,
		     const uint64_t ids[2], struct madmpi_comm **out)
{
	int *world = malloc((size_t)size * sizeof(int));
	struct madmpi_group *g;
	struct madmpi_comm *c;
	int rc;

	if (world == NULL)
		return -ENOMEM;
	for (int i = 0; i < size; i++)
		world[i] = first + i;
	g = madmpi_group_new(world, size);
	free(world);
	if (g == NULL)
		return -ENOMEM;
	rc = madmpi_comm_new(NULL, g, ids, &c);
	if (rc != 0)
		return rc;
	c->is_predefined = true;
	strcpy(c->name, name);
	*out = c;
	return 0;
}

int madmpi_comm_init(void)
{
	madmpi_appnum = nm_appnum();
	madmpi_group_init();
	madmpi_pool_init(&pool, MADMPI_COMM, sizeof(struct madmpi_comm));
	return predefine("MPI_COMM_SELF", nm_rank(), 1, self_ids, &madmpi_self);
}

int madmpi_comm_begin_world(void)
{
	return predefine("MPI_COMM_WORLD", 0, nm_size(), world_ids,
			 &madmpi_world);
}

void madmpi_comm_end_world(void)
{
	madmpi_buffer_empty(&madmpi_world->buffer);
	madmpi_buffer_empty(&madmpi_self->buffer);
	madmpi_errhandler_remains(madmpi_self->errhandler);
	madmpi_world = NULL;
}

int madmpi_comm_farewell(void)
{
	struct madmpi_bearer self = { .comm = madmpi_self };
	struct madmpi_bearer world = { .comm = madmpi_world };
	int rc = madmpi_attrs_delete("MPI_Finalize", self);

	return rc != MPI_SUCCESS ? rc
				 : madmpi_attrs_delete("MPI_Finalize", world);
}

/* All of them, the predefined ones and those that were never freed. */
static void reap(struct madmpi_object *o)
{
	comm_close(container_of(o, struct madmpi_comm, object));
}

void madmpi_comm_exit(void)
{
	madmpi_pool_walk(&pool, reap);
	madmpi_world = madmpi_self = NULL;
	madmpi_pool_exit(&pool);
	madmpi_group_exit();
}
