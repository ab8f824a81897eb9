/*
 * Shared memory of a window: a segment of all its members.
 *
 *   its head | locks | part of rank 0 | part of rank 1 | ...
 */
#include "rma/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "coll/coll.h"
#include "coll/segment.h"
#include "rma/wire.h"

struct one_lock {
	struct base_spin spin;
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* At the beginning of the memory. */
struct head {
	unsigned char segment[MADMPI_SEGMENT_HEAD];
	struct one_lock lock[]; /* by rank; zero is unlocked */
};

struct madmpi_shared {
	struct madmpi_segment segment; /* -: */
};

static struct base_spin *lock_of(const struct madmpi_shared *s, int rank)
{
	struct head *head = s->segment.at;

	return &head->lock[rank].spin;
}

static size_t round_up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

/*
 * Where the part of a member begins, that of rank `size` being the end. 0: it
 * is further than memory goes.
 */
static size_t offset_of(const struct madmpi_win *w, int rank, bool apart)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at, bytes;
	size_t step = w->align > page ? w->align : page;

	at = round_up(sizeof(struct head) +
			      (size_t)w->size * sizeof(struct one_lock),
		      step);
	for (int i = 0; i < rank; i++) {
		bytes = (size_t)w->member[i].size;
		if (__builtin_add_overflow(at, bytes, &at) ||
		    at > (size_t)PTRDIFF_MAX - step)
			return 0;
		if (apart)
			at = round_up(at, step);
	}
	return at;
}

int madmpi_shared_make(struct madmpi_coll *c, struct madmpi_win *w, bool apart,
		       int error)
{
	struct madmpi_shared *s = calloc(1, sizeof(*s));
	size_t bytes = error == 0 ? offset_of(w, w->size, apart) : 0;
	int rc;

	if (error == 0 && (s == NULL || bytes == 0))
		error = -ENOMEM;
	rc = madmpi_segment_share(c, bytes, error == 0 ? w->align : 0, error,
				  s != NULL ? &s->segment : NULL);
	if (rc != 0) {
		free(s);
		return rc;
	}
	w->shared = s;
	for (int i = 0; i < w->size; i++)
		if (w->member[i].size > 0)
			w->member[i].at =
				(char *)s->segment.at + offset_of(w, i, apart);
	/* Parts behind one another are aligned as far as their sizes are. */
	for (int i = 0; i < w->size; i++)
		while (((uintptr_t)w->member[i].at & (w->align - 1)) != 0)
			w->align /= 2;
	return 0;
}

void madmpi_shared_drop(struct madmpi_win *w)
{
	if (w->shared != NULL)
		madmpi_segment_drop(&w->shared->segment);
	free(w->shared);
	w->shared = NULL;
}

/* So long it takes nobody who lives, most likely; milliseconds. */
enum { PATIENCE = 256 };

/* As nmad knows, who is asked for nothing else. */
static bool has_died(const struct madmpi_win *w, uint32_t name)
{
	uint32_t rank = name - BASE_SPIN_NAMES;
	struct nm_sr_status st;

	return name >= BASE_SPIN_NAMES && rank < (uint32_t)w->size &&
	       nm_sr_probe(w->comm->p2p, w->comm->gate[rank], MADMPI_RMA_NEVER,
			   NM_TAG_EXACT, &st) == -ECONNRESET;
}

/*
 * Of a lock in shared memory nobody waits on a futex: whoever has it is pinned,
 * and all others take turns in looking. It is held by a rank. Who dies with it
 * leaves it to one of the others, and some elements as they were and others
 * not.
 */
void madmpi_shared_lock(struct madmpi_win *w, int rank)
{
	struct base_spin *spin = lock_of(w->shared, rank);
	uint32_t me = BASE_SPIN_NAMES + (uint32_t)w->rank, holder;
	unsigned turn = 0, turns = 0;

	while (!base_spin_take(spin, 0, me)) {
		base_spin_turn(&turn);
		if (++turns % PATIENCE != 0)
			continue;
		holder = load_relaxed(&spin->word);
		if (has_died(w, holder) && base_spin_take(spin, holder, me))
			return;
	}
}

void madmpi_shared_unlock(struct madmpi_win *w, int rank)
{
	base_spin_unlock(lock_of(w->shared, rank));
}
