/*
 * The names that MPI 3.0 deleted, for programs that still use them: those of
 * MPI-1 that mpi.h no longer has. mpicc -compat defines MADMPI_COMPAT, and
 * mpi.h then includes this header, so the program need not be changed.
 *
 *   here                              instead, since MPI 2.0
 *   MPI_Address                       MPI_Get_address
 *   MPI_Type_hvector, _hindexed,      MPI_Type_create_hvector, _hindexed,
 *     _struct                           _struct
 *   MPI_Type_extent, _lb, _ub         MPI_Type_get_extent
 *   MPI_LB, MPI_UB                    MPI_Type_create_resized
 *   MPI_Errhandler_create, _get,      MPI_Comm_create_errhandler,
 *     _set, MPI_Handler_function        MPI_Comm_get_errhandler, ...
 *   MPI_COMBINER_*_INTEGER            none: no datatype has them
 *
 * Each function has its PMPI_ twin. Those that have a successor with the same
 * arguments are macros for its name, so their addresses can be taken. A tool
 * that defines MPI_Type_struct therefore defines MPI_Type_create_struct, and
 * must match its prototype. MPI_Type_extent, MPI_Type_lb and MPI_Type_ub are
 * static functions: a program or tool that defines one of them does not compile
 * with this header. A preloaded tool sees their calls as MPI_Type_get_extent.
 *
 * MPI_Attr_get, MPI_Attr_put, MPI_Attr_delete, MPI_Keyval_create,
 * MPI_Keyval_free, MPI_DUP_FN, MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN,
 * MPI_Copy_function and MPI_Delete_function are deprecated, not deleted: mpi.h
 * has them. Not here: the C++ bindings (MPI::) and MPI_Type_count of MPI 1.0.
 */
#ifndef MPI_COMPAT_H
#define MPI_COMPAT_H

#include <mpi.h>

#define MPI_Address        MPI_Get_address
#define PMPI_Address       PMPI_Get_address
#define MPI_Type_hvector   MPI_Type_create_hvector
#define PMPI_Type_hvector  PMPI_Type_create_hvector
#define MPI_Type_hindexed  MPI_Type_create_hindexed
#define PMPI_Type_hindexed PMPI_Type_create_hindexed
#define MPI_Type_struct    MPI_Type_create_struct
#define PMPI_Type_struct   PMPI_Type_create_struct

/*
 * Elements of MPI_Type_struct without data, each of which sets one bound of
 * the new type to its displacement. If there are several, the lowest MPI_LB and
 * the highest MPI_UB decide, including markers nested in other elements. The
 * ABI has no such types: only this library knows these.
 */
#define MPI_LB ((MPI_Datatype)0x000002fe)
#define MPI_UB ((MPI_Datatype)0x000002ff)

typedef MPI_Comm_errhandler_function MPI_Handler_function;
#define MPI_Errhandler_create  MPI_Comm_create_errhandler
#define PMPI_Errhandler_create PMPI_Comm_create_errhandler
#define MPI_Errhandler_get     MPI_Comm_get_errhandler
#define PMPI_Errhandler_get    PMPI_Comm_get_errhandler
#define MPI_Errhandler_set     MPI_Comm_set_errhandler
#define PMPI_Errhandler_set    PMPI_Comm_set_errhandler

/* No datatype has these combiners, which were for Fortran. */
#define MPI_COMBINER_HVECTOR_INTEGER  (-1)
#define MPI_COMBINER_HINDEXED_INTEGER (-2)
#define MPI_COMBINER_STRUCT_INTEGER   (-3)

/* The bounds, from MPI_Type_get_extent. A result is written on success only. */
#define MPI_COMPAT_BOUNDS(prefix)                                              \
	static __inline__ int prefix##Type_extent(MPI_Datatype datatype,       \
						  MPI_Aint *extent)            \
	{                                                                      \
		MPI_Aint lb;                                                   \
                                                                               \
		return prefix##Type_get_extent(datatype, &lb, extent);         \
	}                                                                      \
	static __inline__ int prefix##Type_lb(MPI_Datatype datatype,           \
					      MPI_Aint *displacement)          \
	{                                                                      \
		MPI_Aint extent;                                               \
                                                                               \
		return prefix##Type_get_extent(datatype, displacement,         \
					       &extent);                       \
	}                                                                      \
	static __inline__ int prefix##Type_ub(MPI_Datatype datatype,           \
					      MPI_Aint *displacement)          \
	{                                                                      \
		MPI_Aint extent;                                               \
		int rc = prefix##Type_get_extent(datatype, displacement,       \
						 &extent);                     \
                                                                               \
		if (rc == MPI_SUCCESS)                                         \
			*displacement += extent;                               \
		return rc;                                                     \
	}

MPI_COMPAT_BOUNDS(MPI_)
MPI_COMPAT_BOUNDS(PMPI_)

#undef MPI_COMPAT_BOUNDS

#endif
