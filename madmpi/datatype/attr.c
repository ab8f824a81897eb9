/*
 * Attributes of datatypes; comm/attr.c has what is common to all objects.
 */
#include "comm/attr.h"

#include "bodies.h"
#include "datatype/type.h"
#include "env/error.h"

static int check(const char *fn, MPI_Datatype datatype,
		 struct madmpi_bearer *out)
{
	out->comm = NULL;
	out->type = madmpi_type_of(datatype);
	if (out->type != NULL)
		return MPI_SUCCESS;
	return madmpi_error(NULL, MPI_ERR_TYPE, fn,
			    "datatype %p is not a datatype", (void *)datatype);
}

/* MPI_Type_set_attr */
int madmpi_type_set_attr(MPI_Datatype datatype, int type_keyval,
			 void *attribute_val)
{
	const char *fn = "MPI_Type_set_attr";
	struct madmpi_bearer b;
	int rc = check(fn, datatype, &b);

	if (rc != MPI_SUCCESS)
		return rc;
	return madmpi_attr_set(fn, b, type_keyval, attribute_val);
}

/* MPI_Type_get_attr */
int madmpi_type_get_attr(MPI_Datatype datatype, int type_keyval,
			 void *attribute_val, int *flag)
{
	const char *fn = "MPI_Type_get_attr";
	struct madmpi_bearer b;
	int rc = check(fn, datatype, &b);

	if (rc != MPI_SUCCESS)
		return rc;
	return madmpi_attr_find(fn, b, type_keyval, attribute_val, flag);
}

/* MPI_Type_delete_attr */
int madmpi_type_delete_attr(MPI_Datatype datatype, int type_keyval)
{
	const char *fn = "MPI_Type_delete_attr";
	struct madmpi_bearer b;
	int rc = check(fn, datatype, &b);

	if (rc != MPI_SUCCESS)
		return rc;
	return madmpi_attr_remove(fn, b, type_keyval);
}
