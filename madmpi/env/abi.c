/*
 * Facts about the binary interface.
 *
 * The sizes of Fortran's types are fixed (datatype/predefined.c). The library
 * reports that it knows them. Setting them is the error MPI_ERR_ABI, even to
 * the same values: the standard wants that of values that are set, and wants a
 * program to get them before it sets any.
 */
#include <string.h>

#include <base/compiler.h>

#include "bodies.h"
#include "env/error.h"
#include "info/info.h"

/* MPI_Abi_get_version */
int madmpi_abi_get_version(int *abi_major, int *abi_minor)
{
	if (abi_major == NULL || abi_minor == NULL)
		return madmpi_null_arg(NULL, "MPI_Abi_get_version",
				       abi_major ? "abi_minor" : "abi_major");
	*abi_major = MPI_ABI_VERSION;
	*abi_minor = MPI_ABI_SUBVERSION;
	return MPI_SUCCESS;
}

struct hint {
	const char *key, *value;
};

static const struct hint integers[] = {
	{ "mpi_aint_size", "8" },
	{ "mpi_count_size", "8" },
	{ "mpi_offset_size", "8" },
};
_Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 &&
		       sizeof(MPI_Offset) == 8,
	       "as the table says");

/* Text, since the types themselves are there after MPI_Init only. */
static const struct hint fortran[] = {
	{ "mpi_logical_size", "4" },
	{ "mpi_integer_size", "4" },
	{ "mpi_real_size", "4" },
	{ "mpi_double_precision_size", "8" },
	{ "mpi_logical1_supported", "true" },
	{ "mpi_logical2_supported", "true" },
	{ "mpi_logical4_supported", "true" },
	{ "mpi_logical8_supported", "true" },
	{ "mpi_logical16_supported", "true" },
	{ "mpi_integer1_supported", "true" },
	{ "mpi_integer2_supported", "true" },
	{ "mpi_integer4_supported", "true" },
	{ "mpi_integer8_supported", "true" },
	{ "mpi_integer16_supported", "true" },
	{ "mpi_real2_supported", "true" },
	{ "mpi_real4_supported", "true" },
	{ "mpi_real8_supported", "true" },
	{ "mpi_real16_supported", "true" },
	{ "mpi_complex4_supported", "true" },
	{ "mpi_complex8_supported", "true" },
	{ "mpi_complex16_supported", "true" },
	{ "mpi_complex32_supported", "true" },
	{ "mpi_double_complex_supported", "true" },
};

/* A new info object with these keys. */
static int answer(const char *fn, const struct hint *hints, size_t n,
		  MPI_Info *info)
{
	MPI_Info made;
	int rc;

	if (info == NULL)
		return madmpi_null_arg(NULL, fn, "info");
	rc = madmpi_info_create(&made);
	if (rc != MPI_SUCCESS)
		return rc;
	for (size_t i = 0; i < n && rc == MPI_SUCCESS; i++)
		rc = madmpi_info_set(made, hints[i].key, hints[i].value);
	if (rc == MPI_SUCCESS)
		*info = made;
	else
		madmpi_info_free(&made);
	return rc;
}

/* MPI_Abi_get_info */
int madmpi_abi_get_info(MPI_Info *info)
{
	return answer("MPI_Abi_get_info", integers, BASE_ARRAY_LEN(integers),
		      info);
}

/* MPI_Abi_get_fortran_info */
int madmpi_abi_get_fortran_info(MPI_Info *info)
{
	return answer("MPI_Abi_get_fortran_info", fortran,
		      BASE_ARRAY_LEN(fortran), info);
}

/* MPI_Abi_set_fortran_info */
int madmpi_abi_set_fortran_info(MPI_Info info)
{
	const char *fn = "MPI_Abi_set_fortran_info";

	if (madmpi_info_of(info) == NULL)
		return madmpi_error(NULL, MPI_ERR_INFO, fn,
				    "%p is not an info object", (void *)info);
	return madmpi_error(NULL, MPI_ERR_ABI, fn,
			    "the types of Fortran are fixed in this library; "
			    "MPI_Abi_get_fortran_info returns their sizes");
}

static int check_booleans(const char *fn, int size, const void *logical_true,
			  const void *logical_false)
{
	if (size <= 0 || (size & (size - 1)) != 0)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "logical_size is %d, not a power of two",
				    size);
	if (logical_true == NULL || logical_false == NULL)
		return madmpi_null_arg(NULL, fn,
				       logical_true ? "logical_false"
						    : "logical_true");
	return MPI_SUCCESS;
}

/*
 * MPI_Abi_get_fortran_booleans: 1 and 0, which reductions of LOGICAL make too.
 * The lowest byte comes first on all machines that marcel runs on.
 */
int madmpi_abi_get_fortran_booleans(int logical_size, void *logical_true,
				    void *logical_false, int *is_set)
{
	const char *fn = "MPI_Abi_get_fortran_booleans";
	const __int128 yes = 1, no = 0;
	int rc = check_booleans(fn, logical_size, logical_true, logical_false);

	if (rc != MPI_SUCCESS)
		return rc;
	if (is_set == NULL)
		return madmpi_null_arg(NULL, fn, "is_set");
	*is_set = logical_size <= (int)sizeof(yes);
	if (*is_set) {
		memcpy(logical_true, &yes, (size_t)logical_size);
		memcpy(logical_false, &no, (size_t)logical_size);
	}
	return MPI_SUCCESS;
}

/* MPI_Abi_set_fortran_booleans */
int madmpi_abi_set_fortran_booleans(int logical_size, void *logical_true,
				    void *logical_false)
{
	const char *fn = "MPI_Abi_set_fortran_booleans";
	int rc = check_booleans(fn, logical_size, logical_true, logical_false);

	if (rc != MPI_SUCCESS)
		return rc;
	return madmpi_error(NULL, MPI_ERR_ABI, fn,
			    "the values of Fortran's LOGICAL are fixed in this "
			    "library: 1 and 0");
}
