/*
 * MPI_Pack, MPI_Unpack, MPI_Pack_size.
 */
#include "bodies.h"
#include "pt2pt/message.h"

/* What both directions check. */
static int check(const char *fn, MPI_Comm comm, const void *buf,
		 MPI_Count count, MPI_Datatype datatype, const void *packed,
		 MPI_Count size, const MPI_Count *position,
		 struct madmpi_type **t)
{
	struct madmpi_comm *c;
	int rc = madmpi_check_comm(fn, comm, &c);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_count(fn, c, "count", count);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_type(fn, c, "datatype", datatype, t);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_buffer(fn, c, "buf", buf, count, *t);
	if (rc != MPI_SUCCESS)
		return rc;
	if (position == NULL)
		return madmpi_null_arg(c, fn, "position");
	if (*position < 0 || *position > size ||
	    count * (*t)->size > size - *position)
		return madmpi_error(c, MPI_ERR_TRUNCATE, fn,
				    "%lld bytes at position %lld do not fit "
				    "in %lld",
				    (long long)(count * (*t)->size),
				    (long long)*position, (long long)size);
	return madmpi_check_buffer(fn, c, "the packed buffer", packed,
				   count * (*t)->size,
				   madmpi_type_of(MPI_BYTE));
}

/* MPI_Pack, MPI_Pack_c */
int madmpi_pack(const void *inbuf, MPI_Count incount, MPI_Datatype datatype,
		void *outbuf, MPI_Count outsize, MPI_Count *position,
		MPI_Comm comm)
{
	struct madmpi_type *t;
	int rc = check("MPI_Pack", comm, inbuf, incount, datatype, outbuf,
		       outsize, position, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_pack_bytes(inbuf, incount, t, (char *)outbuf + *position);
	*position += incount * t->size;
	return MPI_SUCCESS;
}

/* MPI_Unpack, MPI_Unpack_c */
int madmpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position,
		  void *outbuf, MPI_Count outcount, MPI_Datatype datatype,
		  MPI_Comm comm)
{
	struct madmpi_type *t;
	int rc = check("MPI_Unpack", comm, outbuf, outcount, datatype, inbuf,
		       insize, position, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_unpack_bytes((const char *)inbuf + *position, outbuf, outcount,
			    t);
	*position += outcount * t->size;
	return MPI_SUCCESS;
}

/* MPI_Pack_size, MPI_Pack_size_c */
int madmpi_pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm,
		     MPI_Count *size)
{
	const char *fn = "MPI_Pack_size";
	struct madmpi_comm *c;
	struct madmpi_type *t;
	int rc = madmpi_check_comm(fn, comm, &c);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_count(fn, c, "incount", incount);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_type(fn, c, "datatype", datatype, &t);
	if (rc != MPI_SUCCESS)
		return rc;
	if (size == NULL)
		return madmpi_null_arg(c, fn, "size");
	if (madmpi_type_bytes(t, incount, size) < 0)
		return madmpi_error(c, MPI_ERR_COUNT, fn,
				    "%lld elements are too many",
				    (long long)incount);
	return MPI_SUCCESS;
}
