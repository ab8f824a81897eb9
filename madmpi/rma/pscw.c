/*
 * Epochs between groups: who posts tells each origin so, by a message that the
 * origin waits for when it starts; who completes sends a request, which the
 * target takes after all that were before it, and counts.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "env/error.h"
#include "pt2pt/message.h"
#include "pt2pt/request.h"
#include "rma/op.h"
#include "rma/serve.h"

/* The rank in the window of a member of a group, or -1. */
static int rank_of(const struct madmpi_win *w, const struct madmpi_group *g,
		   int i)
{
	return w->comm->group->inverse[g->world[i]];
}

static int check(const char *fn, MPI_Group group, int assert, int allowed,
		 MPI_Win win, struct madmpi_win **w, struct madmpi_group **g)
{
	int rc = madmpi_check_win(fn, win, w);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_assert(fn, *w, assert, allowed);
	if (rc != MPI_SUCCESS)
		return rc;
	*g = madmpi_group_of(group);
	if (*g == NULL)
		return madmpi_error((*w)->comm, MPI_ERR_GROUP, fn,
				    "group %p is not a group", (void *)group);
	for (int i = 0; i < (*g)->size; i++)
		if (rank_of(*w, *g, i) < 0)
			return madmpi_error((*w)->comm, MPI_ERR_GROUP, fn,
					    "rank %d of the group is not in "
					    "the window",
					    i);
	return MPI_SUCCESS;
}

static int fail(const char *fn, struct madmpi_win *w, int rc, int rank, int err)
{
	if (err == 0)
		return rc;
	err = madmpi_error(w->comm, madmpi_error_class_of_errno(err), fn,
			   "a message with rank %d failed", rank);
	return rc ? rc : err;
}

/* --- exposure --- */

/* MPI_Win_post */
int madmpi_win_post(MPI_Group group, int assert, MPI_Win win)
{
	const char *fn = "MPI_Win_post";
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct madmpi_group *g;
	struct madmpi_win *w;
	int rc = check(fn, group, assert,
		       MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT,
		       win, &w, &g);
	bool fits;
	int rank;

	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&w->lock);
	fits = w->posted == NULL && w->epoch != MADMPI_EPOCH_FENCED;
	if (fits) {
		w->posted = g;
		madmpi_group_get(g);
	}
	base_spin_unlock(&w->lock);
	if (!fits)
		return madmpi_win_refuse(fn, w,
					 "the window is exposed already, or a "
					 "fence has begun an epoch");
	for (int i = 0; i < g->size; i++) {
		rank = rank_of(w, g, i);
		rc = fail(fn, w, rc, rank, madmpi_serve_watch(w, rank));
		if (assert & MPI_MODE_NOCHECK)
			continue;
		rc = fail(fn, w, rc, rank,
			  nm_sr_send(w->comm->p2p, w->comm->gate[rank],
				     MADMPI_RMA_POST, &nothing, 0));
	}
	return rc;
}

/* The group that the window is exposed to, or NULL, reported. */
static struct madmpi_group *posted(const char *fn, struct madmpi_win *w,
				   int *rc)
{
	struct madmpi_group *g;

	base_spin_lock(&w->lock);
	g = w->posted;
	base_spin_unlock(&w->lock);
	if (g == NULL)
		*rc = madmpi_win_refuse(fn, w, "MPI_Win_post was not called");
	return g;
}

/* *over: all origins have completed, or died, and the exposure has ended. */
static int end_exposure(const char *fn, struct madmpi_win *w, bool wait,
			bool *over)
{
	int rc = MPI_SUCCESS, error, *ranks;
	struct madmpi_group *g = posted(fn, w, &rc);

	if (g == NULL)
		return rc;
	ranks = malloc(((size_t)g->size + 1) * sizeof(*ranks));
	if (ranks == NULL)
		return madmpi_error(w->comm, MPI_ERR_NO_MEM, fn,
				    "no memory for the group");
	for (int i = 0; i < g->size; i++)
		ranks[i] = rank_of(w, g, i);
	error = madmpi_serve_completed(w, ranks, g->size, wait);
	free(ranks);
	*over = error != -EAGAIN;
	if (!*over)
		return MPI_SUCCESS;
	base_spin_lock(&w->lock);
	w->posted = NULL;
	base_spin_unlock(&w->lock);
	madmpi_group_put(g);
	if (error != 0)
		return madmpi_error_errno(w->comm, error, fn,
					  "a process that was to complete");
	return MPI_SUCCESS;
}

/* MPI_Win_wait */
int madmpi_win_wait(MPI_Win win)
{
	const char *fn = "MPI_Win_wait";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);
	bool over;

	return rc ? rc : end_exposure(fn, w, true, &over);
}

/* MPI_Win_test */
int madmpi_win_test(MPI_Win win, int *flag)
{
	const char *fn = "MPI_Win_test";
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w);
	bool over = false;

	if (rc == MPI_SUCCESS && flag == NULL)
		return madmpi_null_arg(w->comm, fn, "flag");
	if (rc == MPI_SUCCESS)
		rc = end_exposure(fn, w, false, &over);
	if (rc != MPI_SUCCESS)
		return rc;
	*flag = over;
	if (!over)
		madmpi_make_way();
	return MPI_SUCCESS;
}

/* --- access --- */

/* MPI_Win_start */
int madmpi_win_start(MPI_Group group, int assert, MPI_Win win)
{
	const char *fn = "MPI_Win_start";
	struct nm_data nothing = nm_data_flat(NULL, 0);
	struct madmpi_group *g;
	struct madmpi_win *w;
	int rc = check(fn, group, assert, MPI_MODE_NOCHECK, win, &w, &g);
	bool fits;
	int rank;

	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&w->lock);
	fits = w->epoch == MADMPI_EPOCH_NONE || w->epoch == MADMPI_EPOCH_FENCE;
	if (fits) {
		w->epoch = MADMPI_EPOCH_STARTED;
		w->started = g;
		madmpi_group_get(g);
		for (int i = 0; i < g->size; i++)
			w->targets[rank_of(w, g, i)].started = true;
	}
	base_spin_unlock(&w->lock);
	if (!fits)
		return madmpi_win_refuse(fn, w, "an epoch is open already");
	for (int i = 0; i < g->size && !(assert &MPI_MODE_NOCHECK); i++) {
		rank = rank_of(w, g, i);
		rc = fail(fn, w, rc, rank,
			  nm_sr_recv(w->comm->p2p, w->comm->gate[rank],
				     MADMPI_RMA_POST, NM_TAG_EXACT, &nothing,
				     NULL));
	}
	return rc;
}

/* The epoch is over here. */
static int send_complete(struct madmpi_win *w, int rank)
{
	struct madmpi_rma_head head = { .kind = MADMPI_RMA_COMPLETE };
	struct nm_data d = nm_data_flat(&head, sizeof(head));

	return nm_sr_send(w->comm->p2p, w->comm->gate[rank], MADMPI_RMA_HEAD,
			  &d, 0);
}

/* MPI_Win_complete */
int madmpi_win_complete(MPI_Win win)
{
	const char *fn = "MPI_Win_complete";
	struct madmpi_group *g = NULL;
	struct madmpi_win *w;
	int rc = madmpi_check_win(fn, win, &w), rank, one;

	if (rc != MPI_SUCCESS)
		return rc;
	base_spin_lock(&w->lock);
	if (w->epoch == MADMPI_EPOCH_STARTED) {
		g = w->started;
		w->started = NULL;
		w->epoch = MADMPI_EPOCH_NONE;
		for (int i = 0; i < g->size; i++)
			w->targets[rank_of(w, g, i)].started = false;
	}
	base_spin_unlock(&w->lock);
	if (g == NULL)
		return madmpi_win_refuse(fn, w, "MPI_Win_start was not called");
	for (int i = 0; i < g->size; i++) {
		rank = rank_of(w, g, i);
		rc = fail(fn, w, rc, rank, send_complete(w, rank));
	}
	for (int i = 0; i < g->size; i++) {
		rank = rank_of(w, g, i);
		one = madmpi_win_flush_local_targets(fn, w, rank, rank + 1);
		rc = rc ? rc : one;
	}
	madmpi_group_put(g);
	return rc;
}
