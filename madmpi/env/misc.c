/*
 * Time, names, versions, memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bodies.h"
#include "env/error.h"
#include "info/info.h"

/* MPI_Wtime */
double madmpi_wtime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* MPI_Wtick */
double madmpi_wtick(void)
{
	struct timespec t;

	clock_getres(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* MPI_Get_processor_name */
int madmpi_get_processor_name(char *name, int *resultlen)
{
	const char *fn = "MPI_Get_processor_name";

	if (name == NULL || resultlen == NULL)
		return madmpi_null_arg(NULL, fn, name ? "resultlen" : "name");
	if (gethostname(name, MPI_MAX_PROCESSOR_NAME) < 0)
		strcpy(name, "unknown");
	name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
	*resultlen = (int)strlen(name);
	return MPI_SUCCESS;
}

/* MPI_Get_version */
int madmpi_get_version(int *version, int *subversion)
{
	if (version == NULL || subversion == NULL)
		return madmpi_null_arg(NULL, "MPI_Get_version",
				       version ? "subversion" : "version");
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}

/* MPI_Get_library_version */
int madmpi_get_library_version(char *version, int *resultlen)
{
	if (version == NULL || resultlen == NULL)
		return madmpi_null_arg(NULL, "MPI_Get_library_version",
				       version ? "resultlen" : "version");
	*resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
			      "MadMPI " MADMPI_VERSION
			      " (marcel, pioman, nmad), MPI %d.%d, ABI %d.%d",
			      MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION,
			      MPI_ABI_SUBVERSION);
	return MPI_SUCCESS;
}

/* MPI_Pcontrol: there is nothing to control. */
int madmpi_pcontrol(const int level, ...)
{
	(void)level;
	return MPI_SUCCESS;
}

/* MPI_Alloc_mem */
int madmpi_alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	struct madmpi_info *i;
	void *memory;
	int rc = madmpi_check_info(NULL, "MPI_Alloc_mem", info, &i);

	if (rc != MPI_SUCCESS)
		return rc;
	if (baseptr == NULL)
		return madmpi_null_arg(NULL, "MPI_Alloc_mem", "baseptr");
	if (size < 0)
		return madmpi_error(NULL, MPI_ERR_SIZE, "MPI_Alloc_mem",
				    "size is negative (%lld)", (long long)size);
	if (posix_memalign(&memory, madmpi_info_alignment(info),
			   (size_t)size + (size == 0)) != 0)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, "MPI_Alloc_mem",
				    "no memory for %lld bytes",
				    (long long)size);
	memcpy(baseptr, &memory, sizeof(memory));
	return MPI_SUCCESS;
}

/* MPI_Free_mem */
int madmpi_free_mem(void *base)
{
	free(base);
	return MPI_SUCCESS;
}

/* MPI_Get_address */
int madmpi_get_address(const void *location, MPI_Aint *address)
{
	if (address == NULL)
		return madmpi_null_arg(NULL, "MPI_Get_address", "address");
	*address = (MPI_Aint)location;
	return MPI_SUCCESS;
}

/* MPI_Aint_add */
MPI_Aint madmpi_aint_add(MPI_Aint base, MPI_Aint disp)
{
	return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

/* MPI_Aint_diff */
MPI_Aint madmpi_aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
	return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
