/*
 * Names of datatypes. Few types get one, so it is allocated.
 */
#include "datatype/name.h"

#include <stdlib.h>
#include <string.h>

#include <base/spin.h>

#include "bodies.h"
#include "datatype/type.h"
#include "env/error.h"

/* Of all types: held while a name is exchanged, or copied. */
static struct base_spin lock = BASE_SPIN_INIT(BASE_RANK_LEAF);

/* MPI_Type_set_name */
int madmpi_type_set_name(MPI_Datatype datatype, const char *type_name)
{
	const char *fn = "MPI_Type_set_name";
	struct madmpi_type *t = madmpi_type_of(datatype);
	char *name, *old;

	if (t == NULL)
		return madmpi_error(NULL, MPI_ERR_TYPE, fn,
				    "datatype %p is not a datatype",
				    (void *)datatype);
	if (type_name == NULL)
		return madmpi_null_arg(NULL, fn, "type_name");
	name = strndup(type_name, MPI_MAX_OBJECT_NAME - 1);
	if (name == NULL)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory for a name");
	base_spin_lock(&lock);
	old = t->given;
	t->given = name;
	base_spin_unlock(&lock);
	free(old);
	return MPI_SUCCESS;
}

/* MPI_Type_get_name */
int madmpi_type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
	const char *fn = "MPI_Type_get_name", *name = "";
	struct madmpi_type *t = madmpi_type_of(datatype);

	if (type_name == NULL || resultlen == NULL)
		return madmpi_null_arg(NULL, fn,
				       type_name ? "resultlen" : "type_name");
	if (t == NULL && datatype != MPI_DATATYPE_NULL)
		return madmpi_error(NULL, MPI_ERR_TYPE, fn,
				    "datatype %p is not a datatype",
				    (void *)datatype);
	base_spin_lock(&lock);
	if (t == NULL)
		name = "MPI_DATATYPE_NULL";
	else if (t->given != NULL)
		name = t->given;
	else if (t->name != NULL)
		name = t->name;
	strcpy(type_name, name);
	base_spin_unlock(&lock);
	*resultlen = (int)strlen(type_name);
	return MPI_SUCCESS;
}

void madmpi_type_forget_names(void)
{
	for (int i = 0; i < MADMPI_TYPE_CONSTANTS; i++) {
		free(madmpi_type_predefined[i].given);
		madmpi_type_predefined[i].given = NULL;
	}
}
