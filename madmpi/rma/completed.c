/*
 * The end of access epochs, as the target sees it: the thread that serves
 * counts what each origin has completed, others wait for that or test it.
 *
 * A test must not answer from the count alone: the last request may have come
 * without being served yet. So it asks the thread to serve all that has come,
 * and answers then. A thread that waits for data of a request, or for a reply
 * to leave, answers at once, because MPI_Win_wait() would wait for it, too.
 */
#include <errno.h>

#include "rma/serving.h"

/* Wake the thread that waits for `more`. The mutex is held, and given back. */
static void unlock_and_wake(struct madmpi_serve *s)
{
	piom_cond_t *more = s->more;

	s->more = NULL;
	marcel_mutex_unlock(&s->mutex);
	if (more != NULL)
		piom_cond_signal(more);
}

void madmpi_serve_complete(struct madmpi_win *w)
{
	struct madmpi_serve *s = w->serve;

	marcel_mutex_lock(&s->mutex);
	s->origin[s->now.rank].completed++;
	unlock_and_wake(s);
}

void madmpi_serve_gone(struct madmpi_serve *s, struct origin *o)
{
	marcel_mutex_lock(&s->mutex);
	o->gone = true;
	unlock_and_wake(s);
}

void madmpi_serve_caught_up(struct madmpi_serve *s)
{
	marcel_mutex_lock(&s->mutex);
	store_relaxed(&s->asked, false);
	unlock_and_wake(s);
}

void madmpi_serve_wait(struct madmpi_serve *s, struct nm_sr_request *req)
{
	if (likely(nm_sr_is_complete(req)))
		return;
	marcel_mutex_lock(&s->mutex);
	s->waits_for_data = true;
	store_relaxed(&s->asked, false);
	unlock_and_wake(s);
	nm_sr_wait(req);
	marcel_mutex_lock(&s->mutex);
	s->waits_for_data = false;
	marcel_mutex_unlock(&s->mutex);
}

/* The mutex is held. 0; -EAGAIN; -ECONNRESET: but for those that have died. */
static int all_completed(const struct madmpi_serve *s, const int ranks[], int n)
{
	int rc = 0;

	for (int i = 0; i < n; i++) {
		const struct origin *o = &s->origin[ranks[i]];

		if (o->completed == 0 && !o->gone)
			return -EAGAIN;
		if (o->completed == 0)
			rc = -ECONNRESET;
	}
	return rc;
}

/* The same, and the epochs are taken. The mutex is held. */
static int take_completed(struct madmpi_serve *s, const int ranks[], int n)
{
	int rc = all_completed(s, ranks, n);

	for (int i = 0; rc != -EAGAIN && i < n; i++)
		if (s->origin[ranks[i]].completed > 0)
			s->origin[ranks[i]].completed--;
	return rc;
}

int madmpi_serve_completed(struct madmpi_win *w, const int ranks[], int n,
			   bool wait)
{
	struct madmpi_serve *s = w->serve;
	bool asks = !wait, answered;
	piom_cond_t more;
	int rc;

	for (;;) {
		marcel_mutex_lock(&s->mutex);
		rc = take_completed(s, ranks, n);
		answered = !wait && !asks && !load_relaxed(&s->asked);
		if (rc != -EAGAIN || answered || (asks && s->waits_for_data))
			break;
		piom_cond_init(&more);
		s->more = &more;
		if (asks)
			store_relaxed(&s->asked, true);
		marcel_mutex_unlock(&s->mutex);
		if (asks)
			piom_sem_post(&s->work);
		/* No cancellation point, as no call of MPI is one. */
		piom_cond_wait(&more);
		asks = false;
	}
	marcel_mutex_unlock(&s->mutex);
	return rc;
}
