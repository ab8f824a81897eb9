/*
 * Locks: asked for at the target, which grants them in the order in which the
 * requests come (serve.c). A process has one lock of a target at most.
 *
 * While a lock is asked for or given back it is neither held nor free, so that
 * of several threads that do so one does, and the others are told.
 */
#include "bodies.h"
#include "env/error.h"
#include "pt2pt/message.h"
#include "rma/op.h"

enum { AT_ONCE = 8 }; /* targets that are asked together */

static bool is_open(const struct madmpi_win *w)
{
	return w->epoch != MADMPI_EPOCH_NONE && w->epoch != MADMPI_EPOCH_FENCE;
}

static int report(const char *fn, struct madmpi_win *w, int rank, int error,
		  madmpi_rma_word_t class)
{
	if (error != 0)
		class = (madmpi_rma_word_t)madmpi_error_class_of_errno(error);
	if (class == MPI_SUCCESS)
		return MPI_SUCCESS;
	return madmpi_error(w->comm, (int)class, fn,
			    "the window of rank %d: %s", rank,
			    madmpi_error_text((int)class));
}

/* The locks of the targets [first, end), a few at a time. */
static int lock_targets(const char *fn, struct madmpi_win *w, int first,
			int end, bool exclusive)
{
	struct madmpi_ask ask[AT_ONCE];
	int rc = MPI_SUCCESS, one, n, error;

	for (; first < end; first += n) {
		n = end - first < AT_ONCE ? end - first : AT_ONCE;
		for (int i = 0; i < n; i++)
			madmpi_ask_begin(w, &ask[i], first + i, MADMPI_RMA_LOCK,
					 exclusive);
		for (int i = 0; i < n; i++) {
			madmpi_rma_word_t class = MPI_SUCCESS;

			error = madmpi_ask_end(&ask[i], &class);
			one = report(fn, w, first + i, error, class);
			rc = rc ? rc : one;
		}
	}
	return rc;
}

/*
 * What MPI_Win_lock_all has got before it failed: nothing was done under these
 * locks. A target that gave none takes none back.
 */
static void give_back(struct madmpi_win *w)
{
	madmpi_rma_word_t class;
	struct madmpi_ask ask;

	for (int i = 0; i < w->size; i++) {
		madmpi_ask_begin(w, &ask, i, MADMPI_RMA_UNLOCK, 0);
		madmpi_ask_end(&ask, &class);
	}
}

/* What the window is at, from now on. */
static void set_epoch(struct madmpi_win *w, enum madmpi_epoch epoch)
{
	base_spin_lock(&w->lock);
	w->epoch = epoch;
	base_spin_unlock(&w->lock);
}

/* One target is held, from now on. */
static void hold(struct madmpi_win *w, struct madmpi_target *t, int lock_type)
{
	base_spin_lock(&w->lock);
	t->held = lock_type;
	base_spin_unlock(&w->lock);
}

/* One target is not held any more. */
static void leave(struct madmpi_win *w, struct madmpi_target *t)
{
	base_spin_lock(&w->lock);
	t->held = 0;
	if (--w->nlocked == 0)
		w->epoch = MADMPI_EPOCH_NONE;
	base_spin_unlock(&w->lock);
}

/* MPI_Win_lock */
int madmpi_win_lock(int lock_type, int rank, int assert, MPI_Win win)
{
	const char *fn = "MPI_Win_lock";
	bool exclusive = lock_type == MPI_LOCK_EXCLUSIVE, fits;
	struct madmpi_target *t;
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_target(fn, w, rank);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_assert(fn, w, assert, MPI_MODE_NOCHECK);
	if (rc != MPI_SUCCESS)
		return rc;
	if (!exclusive && lock_type != MPI_LOCK_SHARED)
		return madmpi_error(w->comm, MPI_ERR_LOCKTYPE, fn,
				    "lock_type is %d, which is none",
				    lock_type);
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	t = &w->targets[rank];
	base_spin_lock(&w->lock);
	fits = !is_open(w) || (w->epoch == MADMPI_EPOCH_LOCKED && t->held == 0);
	if (fits) {
		w->epoch = MADMPI_EPOCH_LOCKED;
		w->nlocked++;
		t->held = MADMPI_HELD_BETWEEN;
		t->unchecked = assert &MPI_MODE_NOCHECK;
	}
	base_spin_unlock(&w->lock);
	if (!fits)
		return madmpi_error(w->comm, MPI_ERR_RMA_SYNC, fn,
				    "rank %d is locked already, or an epoch of "
				    "another kind is open",
				    rank);
	if ((assert &MPI_MODE_NOCHECK) == 0)
		rc = lock_targets(fn, w, rank, rank + 1, exclusive);
	if (rc == MPI_SUCCESS)
		hold(w, t, lock_type);
	else
		leave(w, t);
	return rc;
}

/* MPI_Win_unlock */
int madmpi_win_unlock(int rank, MPI_Win win)
{
	const char *fn = "MPI_Win_unlock";
	struct madmpi_target *t;
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);
	bool held, unchecked;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_target(fn, w, rank);
	if (rc != MPI_SUCCESS || rank == MPI_PROC_NULL)
		return rc;
	t = &w->targets[rank];
	base_spin_lock(&w->lock);
	held = t->held > 0;
	if (held)
		t->held = MADMPI_HELD_BETWEEN;
	unchecked = t->unchecked;
	base_spin_unlock(&w->lock);
	if (!held)
		return madmpi_error(w->comm, MPI_ERR_RMA_SYNC, fn,
				    "no lock of rank %d is held", rank);
	rc = unchecked ? madmpi_win_flush_targets(fn, w, rank, rank + 1)
		       : madmpi_win_unlock_targets(fn, w, rank, rank + 1);
	leave(w, t);
	return rc;
}

/* MPI_Win_lock_all */
int madmpi_win_lock_all(int assert, MPI_Win win)
{
	const char *fn = "MPI_Win_lock_all";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);
	bool fits;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_assert(fn, w, assert, MPI_MODE_NOCHECK);
	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&w->lock);
	fits = !is_open(w);
	if (fits) {
		w->epoch = MADMPI_EPOCH_BETWEEN;
		w->targets[0].unchecked = assert &MPI_MODE_NOCHECK;
	}
	base_spin_unlock(&w->lock);
	if (!fits)
		return madmpi_win_refuse(fn, w, "an epoch is open already");
	if ((assert &MPI_MODE_NOCHECK) == 0)
		rc = lock_targets(fn, w, 0, w->size, false);
	if (rc != MPI_SUCCESS)
		give_back(w);
	set_epoch(w, rc ? MADMPI_EPOCH_NONE : MADMPI_EPOCH_ALL);
	return rc;
}

/* MPI_Win_unlock_all */
int madmpi_win_unlock_all(MPI_Win win)
{
	const char *fn = "MPI_Win_unlock_all";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);
	bool fits, unchecked;

	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&w->lock);
	fits = w->epoch == MADMPI_EPOCH_ALL;
	if (fits)
		w->epoch = MADMPI_EPOCH_BETWEEN;
	unchecked = w->targets[0].unchecked;
	base_spin_unlock(&w->lock);
	if (!fits)
		return madmpi_win_refuse(fn, w,
					 "MPI_Win_lock_all was not called");
	rc = unchecked ? madmpi_win_flush_targets(fn, w, 0, w->size)
		       : madmpi_win_unlock_targets(fn, w, 0, w->size);
	set_epoch(w, MADMPI_EPOCH_NONE);
	return rc;
}
