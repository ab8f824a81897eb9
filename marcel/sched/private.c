/*
 * Threads with thread-local storage of their own: see private.h.
 */
#include "private.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>

#include <base/clock.h>
#include "../thread/cputime.h"
#include "../thread/stack.h"
#include "runq.h"
#include "switch.h"

static struct {
	pthread_once_t once;
	pthread_key_t key; /* of kernel threads: its destructor comes late */
	int rc;            /* 0, or why there is no key */
} private = { .once = PTHREAD_ONCE_INIT };

/* --- the end --- */

/*
 * Those of the program have had their turns; the last one is left to those who
 * watch kernel threads.
 */
static void destructor(void *arg)
{
	struct marcel_lwp *l = arg;

	if (++l->turns >= PTHREAD_DESTRUCTOR_ITERATIONS - 1 ||
	    pthread_setspecific(private.key, l) != 0)
		marcel_tasklet_schedule(&l->end);
}

static void ended(void *arg)
{
	struct marcel_lwp *l = arg;
	struct marcel_thread *t = l->only;

	marcel_lwp_ended(l);
	marcel_thread_ended(t);
}

void marcel_private_leave(struct marcel_lwp *l)
{
	l->turns = 0;
	if (pthread_setspecific(private.key, l) != 0)
		marcel_tasklet_schedule(&l->end); /* no memory */
}

/* --- its life --- */

/* As marcel_switch(), but what comes after is left to who drives vp next. */
static struct marcel_vp *enter(struct marcel_vp *vp, struct marcel_lwp *l)
{
	void *fake;

	if (unlikely(marcel_sched.counts_cpu))
		marcel_cputime_leaves(l);
	marcel_trace_enter(vp, l->only);
	marcel_switch_leave(vp, &l->idle, l->only);
	marcel_san_release(l->only); /* what lies in thread-local storage */
	marcel_san_start(&fake, l->only);
	vp = marcel_ctx_switch(&l->idle.ctx, &l->only->ctx, vp);
	marcel_san_finish(fake);
	marcel_san_acquire(l->only);
	return vp;
}

/* One that was to come only while a thread sleeps; or NULL. */
static struct marcel_lwp *spare_of(struct marcel_vp *vp)
{
	struct marcel_lwp *l = load_relaxed(&vp->stand_in);

	if (l == NULL)
		return marcel_lwp_take(true);
	store_relaxed(&vp->stand_in, NULL);
	vp->taken_ns = base_now_ns();
	return l;
}

/* If all LWPs are used up one has to come back, or to go on itself. */
static struct marcel_lwp *next_driver(struct marcel_vp *vp)
{
	struct marcel_lwp *to = vp->give;

	vp->give = NULL;
	while (to == NULL && (to = marcel_switch_successor(vp)) == NULL &&
	       (to = marcel_lwp_of_kept(vp)) == NULL &&
	       (to = spare_of(vp)) == NULL)
		sched_yield();
	return to;
}

void marcel_private_run(struct marcel_lwp *l)
{
	struct marcel_vp *vp;

	while (!l->ends && (vp = marcel_lwp_wait(l)) != NULL) {
		vp->handed = NULL;
		if (marcel_vp_enters(vp, l->only))
			vp = enter(vp, l);
		marcel_lwp_hand(vp, next_driver(vp));
	}
}

/* --- its beginning --- */

static void make_key(void)
{
	private.rc = pthread_key_create(&private.key, destructor);
}

int marcel_private_set(struct marcel_thread *t)
{
	struct marcel_lwp *l;

	pthread_once(&private.once, make_key);
	if (private.rc != 0)
		goto err_stack;
	if (t->stack == NULL)
		t->stack = marcel_stack_get(NULL,
					    marcel_thread_has(t, MARCEL_F_STACK)
						    ? t->rest->stacksize
						    : marcel_sched.stacksize);
	if (t->stack == NULL)
		return EAGAIN;
	l = marcel_lwp_make_for(t, ended);
	if (l == NULL)
		goto err_stack;
	marcel_thread_use_rest(t);
	if (!marcel_thread_has(t, MARCEL_F_SUBSET) && t->home < 0) {
		t->rest->set = marcel_topo_machine()->vps;
		t->rest->level = marcel_topo_machine();
		fetch_or_relaxed(&t->flags, MARCEL_F_SUBSET);
	}
	t->rest->lwp = l;
	t->rest->returns = false;
	fetch_or_relaxed(&t->flags, MARCEL_F_KEPT);
	marcel_switch_begin(t);
	if (marcel_lwp_start(l) == 0)
		return 0;
	marcel_san_free(t);
err_stack:
	if (t->stack != NULL)
		marcel_stack_put(NULL, t->stack);
	return EAGAIN;
}
