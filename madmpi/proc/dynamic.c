/*
 * Dynamic processes: there are none. Functions that would make some are errors,
 * but a program may ask whether it was started by another one, and for names
 * that another one has published.
 */
#include "bodies.h"
#include "env/error.h"
#include "info/info.h"

/* MPI_Comm_get_parent */
int madmpi_comm_get_parent(MPI_Comm *parent)
{
	if (parent == NULL)
		return madmpi_null_arg(NULL, "MPI_Comm_get_parent", "parent");
	*parent = MPI_COMM_NULL;
	return MPI_SUCCESS;
}

/* MPI_Lookup_name: nothing can be published. */
int madmpi_lookup_name(const char *service_name, MPI_Info info, char *port_name)
{
	const char *fn = "MPI_Lookup_name";
	struct madmpi_info *i;
	int rc = madmpi_check_info(NULL, fn, info, &i);

	if (rc != MPI_SUCCESS)
		return rc;
	if (service_name == NULL || port_name == NULL)
		return madmpi_null_arg(
			NULL, fn, service_name ? "port_name" : "service_name");
	return madmpi_error(NULL, MPI_ERR_NAME, fn,
			    "no port is published as \"%s\": this library "
			    "does not have MPI_Publish_name",
			    service_name);
}
