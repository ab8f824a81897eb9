/*
 * Checking the arguments of point-to-point calls.
 */
#include "pt2pt/message.h"

#include <errno.h>
#include <stdlib.h>

#include "env/error.h"

int madmpi_check_count(const char *function, struct madmpi_comm *c,
		       const char *name, MPI_Count count)
{
	if (likely(count >= 0))
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_COUNT, function, "%s is negative (%lld)",
			    name, (long long)count);
}

int madmpi_check_type(const char *function, struct madmpi_comm *c,
		      const char *name, MPI_Datatype datatype,
		      struct madmpi_type **out)
{
	struct madmpi_type *t = madmpi_type_of(datatype);

	if (unlikely(t == NULL))
		return madmpi_error(c, MPI_ERR_TYPE, function, "%s %p is %s",
				    name, (void *)datatype,
				    datatype == MPI_DATATYPE_NULL
					    ? "MPI_DATATYPE_NULL"
					    : "not a datatype");
	if (unlikely(!load_relaxed(&t->committed)))
		return madmpi_error(c, MPI_ERR_TYPE, function,
				    "%s %p has not been committed", name,
				    (void *)datatype);
	*out = t;
	return MPI_SUCCESS;
}

int madmpi_check_buffer(const char *function, struct madmpi_comm *c,
			const char *name, const void *buf, MPI_Count count,
			const struct madmpi_type *t)
{
	MPI_Count bytes;

	if (unlikely(madmpi_type_bytes(t, count, &bytes) < 0))
		return madmpi_error(c, MPI_ERR_COUNT, function,
				    "%lld elements of %lld bytes are too many",
				    (long long)count, (long long)t->size);
	if (likely((uintptr_t)buf > (uintptr_t)MPI_BUFFER_AUTOMATIC) ||
	    bytes == 0)
		return MPI_SUCCESS;
	/* MPI_BOTTOM is the null pointer too: then data begin elsewhere. */
	if (buf == NULL && t->true_lb != 0)
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_BUFFER, function,
			    "%s is %s, but count is %lld", name,
			    buf == NULL ? "a null pointer" : "not a buffer",
			    (long long)count);
}

static int check_peer(const char *function, enum madmpi_way way,
		      const struct madmpi_message *m)
{
	struct madmpi_comm *c = m->comm;
	int least = way == MADMPI_RECV ? MPI_ANY_SOURCE : 0;

	if (likely(m->peer >= least && m->peer < c->npeers) ||
	    m->peer == MPI_PROC_NULL)
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_RANK, function,
			    "%s is %d, but the %s has %d process%s",
			    way == MADMPI_RECV ? "source" : "dest", m->peer,
			    madmpi_comm_is_inter(c) ? "other group"
						    : "communicator",
			    c->npeers, c->npeers > 1 ? "es" : "");
}

static int check_tag(const char *function, enum madmpi_way way,
		     const struct madmpi_message *m)
{
	if (likely(m->tag >= 0) ||
	    (way == MADMPI_RECV && m->tag == MPI_ANY_TAG))
		return MPI_SUCCESS;
	return madmpi_error(m->comm, MPI_ERR_TAG, function,
			    "tag is %d, which is not within 0..%d", m->tag,
			    MADMPI_TAG_UB);
}

int madmpi_check_comm(const char *function, MPI_Comm comm,
		      struct madmpi_comm **out)
{
	*out = madmpi_comm_of(comm);
	if (likely(*out != NULL))
		return MPI_SUCCESS;
	return madmpi_error(
		NULL, MPI_ERR_COMM, function, "comm %p is %s", (void *)comm,
		comm == MPI_COMM_NULL ? "MPI_COMM_NULL" : "not a communicator");
}

int madmpi_message_envelope(const char *function, enum madmpi_way way, int peer,
			    int tag, MPI_Comm comm, struct madmpi_message *out)
{
	int rc = madmpi_check_comm(function, comm, &out->comm);

	out->peer = peer;
	out->tag = tag;
	if (unlikely(rc != MPI_SUCCESS) || !madmpi_checks)
		return rc;
	rc = check_peer(function, way, out);
	return rc ? rc : check_tag(function, way, out);
}

int madmpi_message_open(const char *function, enum madmpi_way way,
			const void *buf, MPI_Count count, MPI_Datatype datatype,
			int peer, int tag, MPI_Comm comm,
			struct madmpi_message *out)
{
	int rc = madmpi_check_comm(function, comm, &out->comm);

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	out->buf = buf;
	out->count = count;
	out->peer = peer;
	out->tag = tag;
	if (unlikely(count == 0) || unlikely(peer == MPI_PROC_NULL))
		datatype = madmpi_type_or_byte(datatype);
	if (!madmpi_checks) {
		out->type = madmpi_type_of(datatype);
		return MPI_SUCCESS;
	}
	rc = madmpi_check_count(function, out->comm, "count", count);
	if (likely(rc == MPI_SUCCESS))
		rc = check_peer(function, way, out);
	if (likely(rc == MPI_SUCCESS))
		rc = check_tag(function, way, out);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_type(function, out->comm, "datatype",
				       datatype, &out->type);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_buffer(function, out->comm, "buf", buf, count,
					 out->type);
	return rc;
}

int madmpi_message_pack(struct madmpi_message *m, void **copy)
{
	MPI_Count bytes;

	*copy = NULL;
	if (m->peer == MPI_PROC_NULL) /* then there may be no type */
		return 0;
	bytes = m->count * m->type->size;
	*copy = malloc((size_t)bytes + 1);
	if (*copy == NULL)
		return -ENOMEM;
	madmpi_pack_bytes(m->buf, m->count, m->type, *copy);
	m->buf = *copy;
	m->count = bytes;
	m->type = madmpi_type_of(MPI_BYTE);
	return 0;
}
