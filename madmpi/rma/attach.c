/*
 * Memory that is attached to a dynamic window. A target looks here for every
 * access, so one that is out of bounds is an error and never a crash.
 *
 * Regions are in a treap: a search tree by address, which is a heap by
 * priority, too. Priorities are hashes, of the region's own address as well:
 * several empty regions may begin at one. So the tree is balanced in whatever
 * order memory is attached, and all takes log(regions) steps.
 */
#include <stdlib.h>

#include <base/hash.h>

#include "bodies.h"
#include "env/error.h"
#include "rma/win.h"

static int check(const char *fn, MPI_Win win, struct madmpi_win **w)
{
	int rc = madmpi_check_win(fn, win, w);

	if (rc != MPI_SUCCESS || (*w)->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return rc;
	return madmpi_error((*w)->comm, MPI_ERR_RMA_FLAVOR, fn,
			    "the window is not dynamic");
}

/* --- the tree; the mutex is held --- */

static bool is_before(const struct madmpi_region *a,
		      const struct madmpi_region *b)
{
	return a->base < b->base || (a->base == b->base && a->size < b->size);
}

/* The last one that begins at or below an address; NULL: none. */
static const struct madmpi_region *last_from(const struct madmpi_win *w,
					     uintptr_t at)
{
	const struct madmpi_region *r = w->regions, *last = NULL;

	while (r != NULL) {
		if (r->base <= at)
			last = r;
		r = r->base <= at ? r->right : r->left;
	}
	return last;
}

static void insert(struct madmpi_win *w, struct madmpi_region *new)
{
	struct madmpi_region **at = &w->regions, *r;
	struct madmpi_region **low = &new->left, **high = &new->right;

	while (*at != NULL && (*at)->priority >= new->priority)
		at = is_before(new, *at) ? &(*at)->left : &(*at)->right;
	/* The subtree at this place is split between both sides of `new`. */
	for (r = *at; r != NULL;)
		if (is_before(new, r)) {
			*high = r;
			high = &r->left;
			r = r->left;
		} else {
			*low = r;
			low = &r->right;
			r = r->right;
		}
	*low = *high = NULL;
	*at = new;
}

/* Take the region at this place out: its two sides become one subtree. */
static struct madmpi_region *take(struct madmpi_region **at)
{
	struct madmpi_region *r = *at, *a = r->left, *b = r->right;

	while (a != NULL && b != NULL)
		if (a->priority >= b->priority) {
			*at = a;
			at = &a->right;
			a = a->right;
		} else {
			*at = b;
			at = &b->left;
			b = b->left;
		}
	*at = a != NULL ? a : b;
	return r;
}

/* Take out a region that begins at this address. Returns NULL if none does. */
static struct madmpi_region *take_at(struct madmpi_win *w, uintptr_t base)
{
	struct madmpi_region **at = &w->regions;

	while (*at != NULL && (*at)->base != base)
		at = base < (*at)->base ? &(*at)->left : &(*at)->right;
	return *at != NULL ? take(at) : NULL;
}

/* Only the last region that begins before the end of r can overlap r. */
static bool overlaps(const struct madmpi_win *w, const struct madmpi_region *r)
{
	uintptr_t end = r->base + (uintptr_t)r->size;
	const struct madmpi_region *other = last_from(w, end - 1);

	return other != NULL && other->base < end &&
	       r->base < other->base + (uintptr_t)other->size;
}

uintptr_t madmpi_win_attached_from(const struct madmpi_win *w, uintptr_t at)
{
	const struct madmpi_region *r = last_from(w, at);

	return r != NULL && at - r->base < (uintptr_t)r->size
		       ? r->base + (uintptr_t)r->size
		       : at;
}

void madmpi_win_detach_all(struct madmpi_win *w)
{
	while (w->regions != NULL)
		free(take(&w->regions));
}

/* --- what programs call --- */

/* MPI_Win_attach */
int madmpi_win_attach(MPI_Win win, void *base, MPI_Aint size)
{
	const char *fn = "MPI_Win_attach";
	struct madmpi_win *w;
	int rc = check(fn, win, &w);
	struct madmpi_region *r;
	bool overlap;

	if (rc != MPI_SUCCESS)
		return rc;
	if (size < 0)
		return madmpi_error(w->comm, MPI_ERR_SIZE, fn,
				    "size is negative (%lld)", (long long)size);
	if (base == NULL && size > 0)
		return madmpi_null_arg(w->comm, fn, "base");
	r = malloc(sizeof(*r));
	if (r == NULL)
		return madmpi_error(w->comm, MPI_ERR_NO_MEM, fn,
				    "no memory for a region");
	r->base = (uintptr_t)base;
	r->size = size;
	r->priority = base_hash_mix(r->base, (uintptr_t)r);
	marcel_mutex_lock(&w->mutex);
	overlap = overlaps(w, r);
	if (!overlap)
		insert(w, r);
	marcel_mutex_unlock(&w->mutex);
	if (!overlap)
		return MPI_SUCCESS;
	free(r);
	return madmpi_error(w->comm, MPI_ERR_RMA_ATTACH, fn,
			    "some of the %lld bytes at %p are attached already",
			    (long long)size, base);
}

/* MPI_Win_detach */
int madmpi_win_detach(MPI_Win win, const void *base)
{
	const char *fn = "MPI_Win_detach";
	struct madmpi_region *r;
	struct madmpi_win *w;
	int rc = check(fn, win, &w);

	if (rc != MPI_SUCCESS)
		return rc;
	marcel_mutex_lock(&w->mutex);
	r = take_at(w, (uintptr_t)base);
	marcel_mutex_unlock(&w->mutex);
	if (r == NULL)
		return madmpi_error(w->comm, MPI_ERR_RMA_ATTACH, fn,
				    "nothing is attached at %p", base);
	free(r);
	return MPI_SUCCESS;
}
