/*
 * What goes on without a call that would do it: what others have left for this
 * process, and sends that wait. Whoever polls looks, and a thread does, which
 * sleeps while there is nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "object.h"

static pthread_t thread;
static ATOMIC(bool) is_stopping;
/* What wake was when all was looked at; when to do so again. */
static ATOMIC(uint32_t) handled;
static ATOMIC(uint64_t) earliest;

/* Ports and the device itself; the list is locked. */
static void look_at_device(struct fv_context *c)
{
	uint32_t down = load_acquire(&fv_me->down[c->device]);
	struct ibv_async_event e;

	for (int port = 1; port <= FV_PORTS; port++) {
		if (((down ^ c->told_down) >> port & 1) == 0)
			continue;
		e.event_type = down >> port & 1 ? IBV_EVENT_PORT_ERR
						: IBV_EVENT_PORT_ACTIVE;
		e.element.cq = NULL;
		e.element.port_num = port;
		fv_events_put(&c->async, &e);
	}
	c->told_down = down;
	if (!fv_is_fatal(c->device) || c->told_fatal)
		return;
	c->told_fatal = true;
	e.element.cq = NULL;
	e.event_type = IBV_EVENT_DEVICE_FATAL;
	fv_events_put(&c->async, &e);
}

/* Returns when it wants to be looked at again. */
static uint64_t look_at_sends(struct fv_qp *q, bool at_once)
{
	uint64_t next = UINT64_MAX;

	/* Who has it locked is beginning what can be. */
	if (!fv_lock_try(&q->sq_lock))
		return fv_now_us() + 100;
	fv_run(q, at_once);
	if (q->is_waiting)
		next = q->next_try;
	fv_unlock(&q->sq_lock);
	return next;
}

bool fv_progress_due(void)
{
	if (load_acquire(&fv_me->wake) != load_relaxed(&handled))
		return true;
	return load_relaxed(&fv_waiting) != 0 &&
	       fv_now_us() >= load_relaxed(&earliest);
}

void fv_progress(bool patient)
{
	uint64_t next = UINT64_MAX, t;
	uint32_t wake;
	bool is_new;

	if (patient)
		fv_lock(&fv_list_lock);
	else if (!fv_lock_try(&fv_list_lock))
		return;
	wake = load_acquire(&fv_me->wake);
	is_new = wake != load_relaxed(&handled);
	store_relaxed(&handled, wake);
	for (struct fv_context *c = fv_contexts; c != NULL && is_new;
	     c = c->next)
		look_at_device(c);
	for (struct fv_cq *c = fv_cq_list; c != NULL && is_new; c = c->next)
		fv_cq_look(c);
	for (struct fv_srq *s = fv_srq_list; s != NULL && is_new; s = s->next)
		fv_srq_look(s);
	for (struct fv_qp *q = fv_qp_list; q != NULL; q = q->next) {
		if (is_new)
			fv_qp_look(q);
		t = look_at_sends(q, is_new);
		next = t < next ? t : next;
	}
	store_relaxed(&earliest, next);
	fv_unlock(&fv_list_lock);
}

static void *run(void *arg)
{
	uint64_t next, now;
	uint32_t seen;

	while (!load_acquire(&is_stopping)) {
		seen = load_acquire(&fv_me->wake);
		fv_progress(true);
		if (load_relaxed(&fv_waiting) == 0) {
			fv_sleep(seen, -1);
			continue;
		}
		next = load_relaxed(&earliest);
		now = fv_now_us();
		if (next > now)
			fv_sleep(seen, next - now < 10000 ? (long)(next - now)
							  : 10000);
	}
	return NULL;
}

int fv_progress_start(void)
{
	sigset_t all, before;
	int error;

	store_relaxed(&is_stopping, false);
	store_relaxed(&handled, load_acquire(&fv_me->wake));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

void fv_progress_stop(void)
{
	store_release(&is_stopping, true);
	fv_wake(fv_me);
	pthread_join(thread, NULL);
}
