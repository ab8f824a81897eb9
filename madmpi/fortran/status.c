/*
 * Statuses of Fortran. The ABI gives all three forms one layout, of
 * MPI_F_STATUS_SIZE integers:
 *
 *   MPI_Status, MPI_F08_status   MPI_SOURCE  MPI_TAG  MPI_ERROR  MPI_internal
 *   INTEGER(MPI_STATUS_SIZE)     [0]         [1]      [2]        [3] ... [7]
 *
 * so a conversion copies, cancelled flag and byte count included. Fortran's
 * handles are the numbers of core/number.c.
 */
#include <stdbool.h>
#include <string.h>

#include <base/compiler.h>

#include "bodies.h"
#include "env/error.h"

_Static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status) &&
		       MPI_F_STATUS_SIZE * sizeof(MPI_Fint) ==
			       sizeof(MPI_Status),
	       "a status has one layout in all languages");

static MPI_Fint ignored[MPI_F_STATUS_SIZE], all_ignored[MPI_F_STATUS_SIZE];
static MPI_F08_status ignored_f08, all_ignored_f08;

/*
 * The addresses that Fortran passes for MPI_STATUS_IGNORE and
 * MPI_STATUSES_IGNORE. This library has no Fortran of its own, so they point
 * to objects of this file. A Fortran binding may store the addresses that it
 * uses itself.
 */
BASE_PUBLIC MPI_Fint *MPI_F_STATUS_IGNORE = ignored;
BASE_PUBLIC MPI_Fint *MPI_F_STATUSES_IGNORE = all_ignored;
BASE_PUBLIC MPI_F08_status *MPI_F08_STATUS_IGNORE = &ignored_f08;
BASE_PUBLIC MPI_F08_status *MPI_F08_STATUSES_IGNORE = &all_ignored_f08;

/* True of a null pointer, by which C ignores statuses, and of Fortran's. */
static bool is_ignored(const void *status)
{
	return status == NULL || status == MPI_F_STATUS_IGNORE ||
	       status == MPI_F_STATUSES_IGNORE ||
	       status == MPI_F08_STATUS_IGNORE ||
	       status == MPI_F08_STATUSES_IGNORE;
}

/* A status that is ignored has nothing to convert, and no room for a result. */
static int convert(const char *fn, const char *from_name, const void *from,
		   const char *to_name, void *to)
{
	if (is_ignored(from) || is_ignored(to))
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "%s is MPI_STATUS_IGNORE, "
				    "MPI_STATUSES_IGNORE or a null pointer",
				    is_ignored(from) ? from_name : to_name);
	memmove(to, from, sizeof(MPI_Status)); /* one status may be both */
	return MPI_SUCCESS;
}

/* MPI_Status_c2f */
int madmpi_status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
	return convert("MPI_Status_c2f", "c_status", c_status, "f_status",
		       f_status);
}

/* MPI_Status_f2c */
int madmpi_status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
	return convert("MPI_Status_f2c", "f_status", f_status, "c_status",
		       c_status);
}

/* MPI_Status_c2f08 */
int madmpi_status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status)
{
	return convert("MPI_Status_c2f08", "c_status", c_status, "f08_status",
		       f08_status);
}

/* MPI_Status_f082c */
int madmpi_status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status)
{
	return convert("MPI_Status_f082c", "f08_status", f08_status, "c_status",
		       c_status);
}

/* MPI_Status_f2f08 */
int madmpi_status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status)
{
	return convert("MPI_Status_f2f08", "f_status", f_status, "f08_status",
		       f08_status);
}

/* MPI_Status_f082f */
int madmpi_status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status)
{
	return convert("MPI_Status_f082f", "f08_status", f08_status, "f_status",
		       f_status);
}
