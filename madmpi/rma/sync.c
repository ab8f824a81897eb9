/*
 * Fences, and waiting for operations to be complete.
 *
 * Before the first use of a window's epoch by an operation nobody knows whether
 * a fence has begun one: one that was not used is over with any other call.
 */
#include "bodies.h"
#include "coll/coll.h"
#include "env/error.h"
#include "pt2pt/message.h"
#include "rma/op.h"

enum { AT_ONCE = 8 }; /* targets that are asked together */

/* Until what was issued to the target so far is over. Its `flushing` is held.
 */
static void await(struct madmpi_win *w, struct madmpi_target *t)
{
	piom_cond_t idle;
	unsigned old;

	piom_cond_init(&idle);
	base_spin_lock(&w->lock);
	old = t->phase;
	t->phase = 1 - old;
	if (t->active[old] != 0)
		t->idle = &idle;
	else
		old = 2;
	base_spin_unlock(&w->lock);
	if (old < 2)
		piom_cond_wait(&idle);
}

/* The first failure of operations that no request tells of. */
static int take_error(struct madmpi_win *w, struct madmpi_target *t)
{
	int error;

	base_spin_lock(&w->lock);
	error = t->error;
	t->error = 0;
	base_spin_unlock(&w->lock);
	return error;
}

static int report(const char *fn, struct madmpi_win *w, int rank, int error,
		  int class)
{
	if (error != 0)
		class = madmpi_error_class_of_errno(error);
	if (likely(class == MPI_SUCCESS))
		return MPI_SUCCESS;
	return madmpi_error(w->comm, class, fn,
			    "an operation on the window of rank %d failed: %s",
			    rank, madmpi_error_text(class));
}

int madmpi_win_flush_local_targets(const char *fn, struct madmpi_win *w,
				   int first, int end)
{
	int rc = MPI_SUCCESS, one;

	for (int i = first; i < end; i++) {
		struct madmpi_target *t = &w->targets[i];

		if (madmpi_win_is_near(w, i))
			continue;
		marcel_mutex_lock(&t->flushing);
		await(w, t);
		marcel_mutex_unlock(&t->flushing);
		one = report(fn, w, i, take_error(w, t), MPI_SUCCESS);
		rc = rc ? rc : one;
	}
	madmpi_rma_reap(w);
	return rc;
}

/* Whether requests were sent of whose end nobody knows; then none were. */
static bool take_dirty(struct madmpi_win *w, struct madmpi_target *t)
{
	bool dirty;

	base_spin_lock(&w->lock);
	dirty = t->dirty;
	t->dirty = false;
	base_spin_unlock(&w->lock);
	return dirty;
}

/*
 * A few targets at once. Their mutexes are held from the question on: who finds
 * a target clean must not go on before it is.
 */
static int flush_some(const char *fn, struct madmpi_win *w, int first, int n,
		      bool unlock)
{
	struct madmpi_ask ask[AT_ONCE];
	bool asked[AT_ONCE];
	int rc = MPI_SUCCESS, one, error;

	for (int i = 0; i < n; i++) {
		struct madmpi_target *t = &w->targets[first + i];

		marcel_mutex_lock(&t->flushing);
		asked[i] = take_dirty(w, t) || unlock;
		if (asked[i])
			madmpi_ask_begin(w, &ask[i], first + i,
					 unlock ? MADMPI_RMA_UNLOCK
						: MADMPI_RMA_FLUSH,
					 0);
	}
	for (int i = 0; i < n; i++) {
		struct madmpi_target *t = &w->targets[first + i];
		madmpi_rma_word_t class = MPI_SUCCESS;

		error = asked[i] ? madmpi_ask_end(&ask[i], &class) : 0;
		await(w, t);
		marcel_mutex_unlock(&t->flushing);
		one = take_error(w, t);
		one = report(fn, w, first + i, error ? error : one, (int)class);
		rc = rc ? rc : one;
	}
	return rc;
}

static int flush_all(const char *fn, struct madmpi_win *w, int first, int end,
		     bool unlock)
{
	int rc = MPI_SUCCESS, one, n;

	for (int i = first; i < end; i += n) {
		n = end - i < AT_ONCE ? end - i : AT_ONCE;
		one = flush_some(fn, w, i, n, unlock);
		rc = rc ? rc : one;
	}
	madmpi_rma_reap(w);
	return rc;
}

int madmpi_win_flush_targets(const char *fn, struct madmpi_win *w, int first,
			     int end)
{
	/* What the origin does itself is over. */
	return w->is_shared ? MPI_SUCCESS : flush_all(fn, w, first, end, false);
}

int madmpi_win_unlock_targets(const char *fn, struct madmpi_win *w, int first,
			      int end)
{
	return flush_all(fn, w, first, end, true);
}

/* The messages of a barrier, each of which says that a member has died. */
static void fail_barrier(struct madmpi_coll *c)
{
	madmpi_coll_fail(c, -ECONNRESET);
	for (int far = 1; far < c->size; far *= 2)
		madmpi_coll_send(c, NULL, 0, madmpi_type_of(MPI_BYTE),
				 (c->rank + far) % c->size);
}

void madmpi_win_fail_barrier(struct madmpi_win *w)
{
	struct madmpi_coll c;

	madmpi_coll_begin(&c, "MPI_Win_free", w->comm);
	fail_barrier(&c);
}

/*
 * Once a member has died no barrier succeeds any more. A member may even lack
 * the window (win.c, abandon()) and take part in the first barrier only. So
 * after a death this process waits for nobody, but tells the others. After any
 * other failure, of memory, all have made the steps and the next one may
 * succeed.
 */
int madmpi_win_barrier(const char *fn, struct madmpi_win *w)
{
	struct madmpi_coll c;

	madmpi_coll_begin(&c, fn, w->comm);
	if (w->has_lost)
		fail_barrier(&c);
	else
		madmpi_barrier_dissemination(&c);
	w->has_lost |= c.error == -ECONNRESET;
	return madmpi_coll_end(&c);
}

/* --- fences --- */

/* MPI_Win_fence */
int madmpi_win_fence(int assert, MPI_Win win)
{
	const char *fn = "MPI_Win_fence";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w), one;
	bool fits;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_assert(fn, w, assert,
					 MPI_MODE_NOSTORE | MPI_MODE_NOPUT |
						 MPI_MODE_NOPRECEDE |
						 MPI_MODE_NOSUCCEED);
	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&w->lock);
	fits = w->epoch < MADMPI_EPOCH_STARTED && w->posted == NULL;
	if (fits)
		w->epoch = assert &MPI_MODE_NOSUCCEED ? MADMPI_EPOCH_NONE
						      : MADMPI_EPOCH_FENCE;
	base_spin_unlock(&w->lock);
	if (!fits)
		return madmpi_win_refuse(fn, w,
					 "an epoch of another kind is open");
	rc = madmpi_win_flush_targets(fn, w, 0, w->size);
	/* The others wait for this one, however it went. */
	one = madmpi_win_barrier(fn, w);
	return rc ? rc : one;
}

/* --- within passive epochs --- */

/* The window, and whether the rank (or all that are meant) is locked. */
static int check_locked(const char *fn, MPI_Win win, int rank, bool all,
			struct madmpi_win **w)
{
	int rc = madmpi_check_win(fn, win, w);
	bool locked;

	if (rc == MPI_SUCCESS && !all)
		rc = madmpi_check_target(fn, *w, rank);
	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&(*w)->lock);
	locked = (*w)->epoch == MADMPI_EPOCH_ALL ||
		 ((*w)->epoch == MADMPI_EPOCH_LOCKED &&
		  (all || rank < 0 || (*w)->targets[rank].held > 0));
	base_spin_unlock(&(*w)->lock);
	if (locked || rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (all)
		return madmpi_win_refuse(fn, *w, "no lock is held");
	return madmpi_error((*w)->comm, MPI_ERR_RMA_SYNC, fn,
			    "no lock of rank %d is held", rank);
}

/* MPI_Win_flush */
int madmpi_win_flush(int rank, MPI_Win win)
{
	const char *fn = "MPI_Win_flush";
	struct madmpi_win *w;
	int rc = check_locked(fn, win, rank, false, &w);

	if (rc != MPI_SUCCESS || rank == MPI_PROC_NULL)
		return rc;
	return madmpi_win_flush_targets(fn, w, rank, rank + 1);
}

/* MPI_Win_flush_all */
int madmpi_win_flush_all(MPI_Win win)
{
	const char *fn = "MPI_Win_flush_all";
	struct madmpi_win *w;
	int rc = check_locked(fn, win, 0, true, &w);

	return rc ? rc : madmpi_win_flush_targets(fn, w, 0, w->size);
}

/* MPI_Win_flush_local */
int madmpi_win_flush_local(int rank, MPI_Win win)
{
	const char *fn = "MPI_Win_flush_local";
	struct madmpi_win *w;
	int rc = check_locked(fn, win, rank, false, &w);

	if (rc != MPI_SUCCESS || rank == MPI_PROC_NULL)
		return rc;
	return madmpi_win_flush_local_targets(fn, w, rank, rank + 1);
}

/* MPI_Win_flush_local_all */
int madmpi_win_flush_local_all(MPI_Win win)
{
	const char *fn = "MPI_Win_flush_local_all";
	struct madmpi_win *w;
	int rc = check_locked(fn, win, 0, true, &w);

	return rc ? rc : madmpi_win_flush_local_targets(fn, w, 0, w->size);
}

/*
 * MPI_Win_sync: what was done before is seen before what is done after. The
 * second lock is taken after the first was released, which is after all before.
 */
int madmpi_win_sync(MPI_Win win)
{
	struct madmpi_win *w;
	int rc = madmpi_check_win("MPI_Win_sync", win, &w);

	for (int i = 0; rc == MPI_SUCCESS && i < 2; i++) {
		base_spin_lock(&w->lock);
		base_spin_unlock(&w->lock);
	}
	return rc;
}
