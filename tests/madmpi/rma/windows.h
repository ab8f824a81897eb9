/*
 * Windows of every kind, for tests that do the same with all of them.
 */
#ifndef TESTS_MADMPI_RMA_WINDOWS_H
#define TESTS_MADMPI_RMA_WINDOWS_H

#include "../program.h"

struct kind {
	const char *name;
	int flavor;
	const char *shm; /* of MPI_Win_allocate: alloc_shm */
};

static const struct kind kinds[] = {
	{ "create", MPI_WIN_FLAVOR_CREATE, NULL },
	{ "allocate, by messages", MPI_WIN_FLAVOR_ALLOCATE, "false" },
	{ "allocate", MPI_WIN_FLAVOR_ALLOCATE, "true" },
	{ "shared", MPI_WIN_FLAVOR_SHARED, NULL },
	{ "dynamic", MPI_WIN_FLAVOR_DYNAMIC, NULL },
	{ NULL, 0, NULL },
};

/* Of dynamic windows: where all have their memory. */
static MPI_Aint *addresses;

static inline MPI_Win window_on(const struct kind *kind, MPI_Comm comm,
				MPI_Aint bytes, int unit, void *memory)
{
	MPI_Info info = MPI_INFO_NULL;
	void *base = NULL;
	MPI_Aint at;
	MPI_Win win;

	switch (kind->flavor) {
	case MPI_WIN_FLAVOR_CREATE:
		base = malloc((size_t)bytes + 1);
		MPI_Win_create(base, bytes, unit, MPI_INFO_NULL, comm, &win);
		break;
	case MPI_WIN_FLAVOR_ALLOCATE:
		MPI_Info_create(&info);
		MPI_Info_set(info, "alloc_shm", kind->shm);
		MPI_Win_allocate(bytes, unit, info, comm, &base, &win);
		MPI_Info_free(&info);
		break;
	case MPI_WIN_FLAVOR_SHARED:
		/* Parts of odd sizes would leave others unaligned. */
		MPI_Info_create(&info);
		MPI_Info_set(info, "alloc_shared_noncontig", "true");
		MPI_Win_allocate_shared(bytes, unit, info, comm, &base, &win);
		MPI_Info_free(&info);
		break;
	default:
		base = malloc((size_t)bytes + 1);
		MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
		MPI_Win_attach(win, base, bytes);
		addresses = realloc(addresses, (size_t)size * sizeof(at));
		MPI_Get_address(base, &at);
		MPI_Allgather(&at, 1, MPI_AINT, addresses, 1, MPI_AINT, comm);
	}
	memcpy(memory, &base, sizeof(base));
	return win;
}

static inline MPI_Win window(const struct kind *kind, MPI_Aint bytes, int unit,
			     void *memory)
{
	return window_on(kind, MPI_COMM_WORLD, bytes, unit, memory);
}

/* The displacement of element i of a target's memory. */
static inline MPI_Aint place(const struct kind *kind, int target, MPI_Aint i,
			     int unit)
{
	return kind->flavor == MPI_WIN_FLAVOR_DYNAMIC
		       ? addresses[target] + i * unit
		       : i;
}

static inline void end_window(const struct kind *kind, MPI_Win *win,
			      void *memory)
{
	MPI_Win_free(win);
	EXPECT(*win == MPI_WIN_NULL);
	if (kind->flavor == MPI_WIN_FLAVOR_CREATE ||
	    kind->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		free(memory);
}

#endif
