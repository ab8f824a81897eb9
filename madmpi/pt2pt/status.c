/*
 * Reading and writing MPI_Status.
 */
#include "pt2pt/status.h"

#include <errno.h>
#include <stdio.h>

#include "bodies.h"
#include "comm/comm.h"
#include "datatype/type.h"
#include "env/error.h"
#include "pt2pt/signed.h"

struct madmpi_outcome madmpi_outcome_recv(const struct madmpi_comm *c,
					  int source,
					  const struct nm_sr_status *st)
{
	struct madmpi_outcome o = { .error = st->error,
				    .source = source,
				    .tag = (int)st->tag,
				    .bytes = (MPI_Count)st->length,
				    .sent = (MPI_Count)st->sent };

	if (source == MPI_ANY_SOURCE && st->gate != NULL)
		o.source = madmpi_comm_rank_of(c, st->gate);
	if (unlikely(st->error == -ECANCELED)) {
		o.is_cancelled = true;
		o.error = 0;
		o.bytes = 0;
		o.tag = MPI_ANY_TAG;
	}
	return o;
}

struct madmpi_outcome madmpi_outcome_send(const struct nm_sr_status *st)
{
	struct madmpi_outcome o = madmpi_outcome_empty();

	o.is_cancelled = st->error == -ECANCELED;
	o.error = o.is_cancelled ? 0 : st->error;
	return o;
}

int madmpi_outcome_code(const struct madmpi_outcome *o)
{
	return o->error > 0 ? o->error : madmpi_error_class_of_errno(o->error);
}

void madmpi_outcome_differs(struct madmpi_comm *c,
			    const struct madmpi_outcome *o, char *out,
			    size_t room)
{
	char name[MPI_MAX_OBJECT_NAME], what[160];

	madmpi_signed_describe(o->unfit, what, sizeof(what));
	snprintf(out, room,
		 "a message from rank %d%s to rank %d of %s with tag %d has "
		 "other elements than its receive: %s",
		 o->source,
		 madmpi_comm_is_inter(c) ? " of the other group" : "", c->rank,
		 madmpi_comm_name_of(c, name), o->tag, what);
}

static int raise_differs(struct madmpi_comm *c, const char *function,
			 const struct madmpi_outcome *o)
{
	char what[MADMPI_DIFFERS];

	madmpi_outcome_differs(c, o, what, sizeof(what));
	return madmpi_error(c, MPI_ERR_TYPE, function, "%s", what);
}

int madmpi_outcome_raise(struct madmpi_comm *c, const char *function,
			 const struct madmpi_outcome *o)
{
	if (likely(o->error == 0))
		return MPI_SUCCESS;
	if (o->operation != NULL && o->why != NULL)
		return madmpi_error(c, madmpi_outcome_code(o), function,
				    "%s: %s", o->operation, o->why);
	if (o->error > 0)
		return madmpi_error(c, o->error, function,
				    "a function of a generalised request "
				    "returned %d",
				    o->error);
	if (o->operation != NULL && o->error == -EMSGSIZE)
		return madmpi_error(c, MPI_ERR_TRUNCATE, function,
				    "%s: a process sent more data than this "
				    "one expects",
				    o->operation);
	if (o->operation != NULL)
		return madmpi_error_errno(c, o->error, function, o->operation);
	if (o->error == -EMSGSIZE)
		return madmpi_error(c, MPI_ERR_TRUNCATE, function,
				    "a message of %lld bytes from rank %d with "
				    "tag %d was cut to the %lld bytes of the "
				    "buffer",
				    (long long)o->sent, o->source, o->tag,
				    (long long)o->bytes);
	if (o->unfit != NULL)
		return raise_differs(c, function, o);
	if (o->error == -EPROTOTYPE)
		return madmpi_error(c, MPI_ERR_TYPE, function,
				    "a message of %lld bytes from rank %d with "
				    "tag %d ends within an element of the "
				    "datatype",
				    (long long)o->sent, o->source, o->tag);
	if (o->error == -ENODATA)
		return madmpi_error(c, MPI_ERR_COUNT, function,
				    "the partitions that rank %d sends with "
				    "tag %d have %lld bytes, fewer than those "
				    "that receive",
				    o->source, o->tag, (long long)o->sent);
	return madmpi_error_errno(c, o->error, function,
				  "the message could not be transferred");
}

static int bad_type(const char *fn, MPI_Datatype type)
{
	return madmpi_error(NULL, MPI_ERR_TYPE, fn,
			    "datatype %p is not a datatype", (void *)type);
}

/* MPI_Get_count, MPI_Get_count_c */
int madmpi_get_count(const MPI_Status *status, MPI_Datatype datatype,
		     MPI_Count *count)
{
	const char *fn = "MPI_Get_count";
	struct madmpi_type *t = madmpi_type_of(datatype);
	MPI_Count bytes;

	if (status == NULL || count == NULL)
		return madmpi_null_arg(NULL, fn, status ? "count" : "status");
	if (t == NULL)
		return bad_type(fn, datatype);
	bytes = madmpi_status_bytes(status);
	if (t->size == 0)
		*count = bytes == 0 ? 0 : MPI_UNDEFINED;
	else
		*count = bytes % t->size == 0 ? bytes / t->size : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

/* MPI_Get_elements, MPI_Get_elements_c, MPI_Get_elements_x */
int madmpi_get_elements(const MPI_Status *status, MPI_Datatype datatype,
			MPI_Count *count)
{
	const char *fn = "MPI_Get_elements";
	struct madmpi_type *t = madmpi_type_of(datatype);

	if (status == NULL || count == NULL)
		return madmpi_null_arg(NULL, fn, status ? "count" : "status");
	if (t == NULL)
		return bad_type(fn, datatype);
	*count = madmpi_type_elements(t, madmpi_status_bytes(status));
	if (*count < 0)
		*count = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

/* MPI_Test_cancelled */
int madmpi_test_cancelled(const MPI_Status *status, int *flag)
{
	if (status == NULL || flag == NULL)
		return madmpi_null_arg(NULL, "MPI_Test_cancelled",
				       status ? "flag" : "status");
	*flag = status->MPI_internal[2] != 0;
	return MPI_SUCCESS;
}

/* MPI_Status_set_cancelled */
int madmpi_status_set_cancelled(MPI_Status *status, int flag)
{
	if (status == NULL)
		return madmpi_null_arg(NULL, "MPI_Status_set_cancelled",
				       "status");
	status->MPI_internal[2] = flag != 0;
	return MPI_SUCCESS;
}

/* MPI_Status_set_elements, MPI_Status_set_elements_c, ..._x */
int madmpi_status_set_elements(MPI_Status *status, MPI_Datatype datatype,
			       MPI_Count count)
{
	const char *fn = "MPI_Status_set_elements";
	struct madmpi_type *t = madmpi_type_of(datatype);
	MPI_Count bytes;

	if (status == NULL)
		return madmpi_null_arg(NULL, fn, "status");
	if (t == NULL)
		return bad_type(fn, datatype);
	/* Basic elements are meant, as MPI_Get_elements counts them. */
	if (count < 0 || madmpi_type_bytes_of_elements(t, count, &bytes) < 0)
		return madmpi_error(NULL, MPI_ERR_COUNT, fn, "count is %lld",
				    (long long)count);
	madmpi_status_set_bytes(status, bytes);
	return MPI_SUCCESS;
}

/* MPI_Status_get_source */
int madmpi_status_get_source(const MPI_Status *status, int *source)
{
	if (status == NULL || source == NULL)
		return madmpi_null_arg(NULL, "MPI_Status_get_source",
				       status ? "source" : "status");
	*source = status->MPI_SOURCE;
	return MPI_SUCCESS;
}

/* MPI_Status_get_tag */
int madmpi_status_get_tag(const MPI_Status *status, int *tag)
{
	if (status == NULL || tag == NULL)
		return madmpi_null_arg(NULL, "MPI_Status_get_tag",
				       status ? "tag" : "status");
	*tag = status->MPI_TAG;
	return MPI_SUCCESS;
}

/* MPI_Status_get_error */
int madmpi_status_get_error(const MPI_Status *status, int *error)
{
	if (status == NULL || error == NULL)
		return madmpi_null_arg(NULL, "MPI_Status_get_error",
				       status ? "error" : "status");
	*error = status->MPI_ERROR;
	return MPI_SUCCESS;
}

/* MPI_Status_set_source */
int madmpi_status_set_source(MPI_Status *status, int source)
{
	if (status == NULL)
		return madmpi_null_arg(NULL, "MPI_Status_set_source", "status");
	status->MPI_SOURCE = source;
	return MPI_SUCCESS;
}

/* MPI_Status_set_tag */
int madmpi_status_set_tag(MPI_Status *status, int tag)
{
	if (status == NULL)
		return madmpi_null_arg(NULL, "MPI_Status_set_tag", "status");
	status->MPI_TAG = tag;
	return MPI_SUCCESS;
}

/* MPI_Status_set_error */
int madmpi_status_set_error(MPI_Status *status, int error)
{
	if (status == NULL)
		return madmpi_null_arg(NULL, "MPI_Status_set_error", "status");
	status->MPI_ERROR = error;
	return MPI_SUCCESS;
}
