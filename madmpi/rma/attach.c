/*
 * Memory that is attached to a dynamic window. A target looks here for every
 * access, so one that is out of bounds is an error and never a crash.
 */
#include <stdlib.h>

#include "bodies.h"
#include "env/error.h"
#include "rma/win.h"

enum { MORE = 16 };

static int check(const char *fn, MPI_Win win, struct madmpi_win **w)
{
	int rc = madmpi_check_win(fn, win, w);

	if (rc != MPI_SUCCESS || (*w)->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return rc;
	return madmpi_error((*w)->comm, MPI_ERR_RMA_FLAVOR, fn,
			    "the window is not dynamic");
}

/* The mutex is held. False: no memory. */
static bool make_room(struct madmpi_win *w)
{
	struct madmpi_region *larger;

	if (w->nregions % MORE != 0)
		return true;
	larger = realloc(w->regions,
			 (size_t)(w->nregions + MORE) * sizeof(*larger));
	if (larger == NULL)
		return false;
	w->regions = larger;
	return true;
}

/* The mutex is held. */
static bool overlaps(const struct madmpi_win *w, uintptr_t base, MPI_Aint size)
{
	for (int i = 0; i < w->nregions; i++)
		if (base < w->regions[i].base + (uintptr_t)w->regions[i].size &&
		    w->regions[i].base < base + (uintptr_t)size)
			return true;
	return false;
}

/* MPI_Win_attach */
int madmpi_win_attach(MPI_Win win, void *base, MPI_Aint size)
{
	const char *fn = "MPI_Win_attach";
	struct madmpi_win *w;
	int rc = check(fn, win, &w);
	bool overlap, room = true;

	if (rc != MPI_SUCCESS)
		return rc;
	if (size < 0)
		return madmpi_error(w->comm, MPI_ERR_SIZE, fn,
				    "size is negative (%lld)", (long long)size);
	if (base == NULL && size > 0)
		return madmpi_null_arg(w->comm, fn, "base");
	marcel_mutex_lock(&w->mutex);
	overlap = overlaps(w, (uintptr_t)base, size);
	if (!overlap)
		room = make_room(w);
	if (!overlap && room)
		w->regions[w->nregions++] =
			(struct madmpi_region){ (uintptr_t)base, size };
	marcel_mutex_unlock(&w->mutex);
	if (overlap)
		return madmpi_error(w->comm, MPI_ERR_RMA_ATTACH, fn,
				    "some of the %lld bytes at %p are attached "
				    "already",
				    (long long)size, base);
	if (!room)
		return madmpi_error(w->comm, MPI_ERR_NO_MEM, fn,
				    "no memory for a region");
	return MPI_SUCCESS;
}

/* MPI_Win_detach */
int madmpi_win_detach(MPI_Win win, const void *base)
{
	const char *fn = "MPI_Win_detach";
	struct madmpi_win *w;
	int rc = check(fn, win, &w), at = -1;

	if (rc != MPI_SUCCESS)
		return rc;
	marcel_mutex_lock(&w->mutex);
	for (int i = 0; i < w->nregions && at < 0; i++)
		if (w->regions[i].base == (uintptr_t)base)
			at = i;
	if (at >= 0)
		w->regions[at] = w->regions[--w->nregions];
	marcel_mutex_unlock(&w->mutex);
	if (at < 0)
		return madmpi_error(w->comm, MPI_ERR_RMA_ATTACH, fn,
				    "nothing is attached at %p", base);
	return MPI_SUCCESS;
}
