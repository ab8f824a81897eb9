/*
 * Communicators: their life, and what can be asked about them.
 */
#include "comm/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "core/pool.h"
#include "pt2pt/message.h"

struct madmpi_comm *madmpi_world, *madmpi_self;

static struct madmpi_pool pool;

/* Numbers that nm_session_new_id() never gives, the same in all processes. */
static const uint64_t world_ids[] = { UINT64_MAX - 1, UINT64_MAX - 2 };
static const uint64_t self_ids[] = { UINT64_MAX - 3, UINT64_MAX - 4 };

MPI_Comm madmpi_comm_handle(struct madmpi_comm *c)
{
	if (c == madmpi_world)
		return MPI_COMM_WORLD;
	if (c == madmpi_self)
		return MPI_COMM_SELF;
	return (MPI_Comm)c;
}

static int open_sessions(struct madmpi_comm *c, const uint64_t ids[2])
{
	int rc = nm_session_open(ids[0], &c->p2p);

	if (rc < 0)
		return rc;
	rc = nm_session_open(ids[1], &c->coll);
	if (rc < 0)
		nm_session_close(c->p2p);
	return rc;
}

int madmpi_comm_new(struct madmpi_comm *parent, struct madmpi_group *group,
		    const uint64_t ids[2], struct madmpi_comm **out)
{
	struct madmpi_comm *c = madmpi_pool_get(&pool);
	int rc = -ENOMEM;

	if (c == NULL)
		goto err_group;
	c->group = group;
	c->rank = group->rank;
	c->size = group->size;
	c->is_predefined = false;
	c->collectives = 0;
	c->attrs.newest = NULL;
	madmpi_buffer_init(&c->buffer);
	c->name[0] = '\0';
	memset(c->hints, 0, sizeof(c->hints));
	base_spin_init(&c->lock, BASE_RANK_LEAF);
	c->gate = malloc((size_t)c->size * sizeof(*c->gate));
	if (c->gate == NULL)
		goto err_comm;
	for (int i = 0; i < c->size; i++)
		c->gate[i] = nm_gate_of(group->world[i]);
	rc = open_sessions(c, ids);
	if (rc < 0)
		goto err_gates;
	c->errhandler = madmpi_errhandler_of_comm(parent);
	*out = c;
	return 0;
err_gates:
	free(c->gate);
err_comm:
	madmpi_pool_put(&pool, c);
err_group:
	madmpi_group_put(group);
	return rc;
}

static void comm_close(struct madmpi_comm *c)
{
	madmpi_buffer_exit(&c->buffer);
	madmpi_attrs_forget(&c->attrs);
	nm_session_close(c->coll);
	nm_session_close(c->p2p);
	madmpi_errhandler_put(c->errhandler);
	madmpi_group_put(c->group);
	free(c->gate);
}

void madmpi_comm_put_slow(struct madmpi_comm *c)
{
	if (!madmpi_object_put(&c->object))
		return;
	comm_close(c);
	madmpi_pool_put(&pool, c);
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

/* MPI_Comm_test_inter */
int madmpi_comm_test_inter(MPI_Comm comm, int *flag)
{
	struct madmpi_comm *c;
	int rc = madmpi_check_comm("MPI_Comm_test_inter", comm, &c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (flag == NULL)
		return madmpi_null_arg(c, "MPI_Comm_test_inter", "flag");
	*flag = 0;
	return MPI_SUCCESS;
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
	if (result == NULL)
		return madmpi_null_arg(a, fn, "result");
	*result = madmpi_group_relation(a->group, b->group);
	if (*result == MPI_IDENT && a != b)
		*result = MPI_CONGRUENT;
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

static int comm_free(const char *fn, MPI_Comm *comm)
{
	struct madmpi_comm *c;
	int rc;

	if (comm == NULL)
		return madmpi_null_arg(NULL, fn, "comm");
	rc = madmpi_check_comm(fn, *comm, &c);
	if (rc != MPI_SUCCESS)
		return rc;
	if (c->is_predefined)
		return madmpi_error(c, MPI_ERR_COMM, fn, "%s cannot be freed",
				    c->name);
	rc = madmpi_attrs_delete(fn, (struct madmpi_bearer){ .comm = c });
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_buffer_empty(&c->buffer);
	*comm = MPI_COMM_NULL;
	madmpi_object_let_go(&c->object);
	madmpi_comm_put(c);
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
	int rc;

	if (world == NULL)
		return -ENOMEM;
	for (int i = 0; i < size; i++)
		world[i] = first + i;
	g = madmpi_group_new(world, size);
	free(world);
	if (g == NULL)
		return -ENOMEM;
	rc = madmpi_comm_new(NULL, g, ids, out);
	if (rc < 0)
		return rc;
	(*out)->is_predefined = true;
	strcpy((*out)->name, name);
	return 0;
}

int madmpi_comm_init(void)
{
	int rc;

	madmpi_group_init();
	madmpi_pool_init(&pool, MADMPI_COMM, sizeof(struct madmpi_comm));
	rc = predefine("MPI_COMM_WORLD", 0, nm_size(), world_ids,
		       &madmpi_world);
	if (rc < 0)
		return rc;
	return predefine("MPI_COMM_SELF", nm_rank(), 1, self_ids, &madmpi_self);
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
	madmpi_errhandler_remains(madmpi_self->errhandler);
	madmpi_pool_walk(&pool, reap);
	madmpi_world = madmpi_self = NULL;
	madmpi_pool_exit(&pool);
	madmpi_group_exit();
}
