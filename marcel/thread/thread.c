/*
 * The life of a user thread: create, first and last function, join, detach.
 *
 * `ended` is one word, order(join):
 *
 *	NONE      joinable, nobody waits
 *	a thread  who joins it; only we resume it, or (TIMED) its timer, or
 *		  who cancels it: cancel.h
 *	DETACHED  nobody will join it
 *
 * The end adds DONE to whichever it is. Alone, it is there to be claimed: who
 * puts its own name before it may read the result, and frees the descriptor.
 * A name before it is of who does that, or has: so a descriptor is freed once,
 * and who comes later learns that there is no such thread, until it is another
 * one's.
 *
 * Adding DONE is the last access to the descriptor, after the stack went back,
 * unless it is detached; what lies on a stack cannot give it back, so both
 * happen in the after action of the thread's last switch.
 */
#include "thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <marcel/marcel.h>
#include "../sched/enter.h"
#include "../sched/hook.h"
#include "../sched/place.h"
#include "../sched/private.h"
#include "../sched/runq.h"
#include "../sched/switch.h"
#include "../signal/signal.h"
#include "apart.h"
#include "arena.h"
#include "attr.h"
#include "cancel.h"
#include "fork.h"
#include "stack.h"

/* --- create --- */

static bool has_early_stack(const struct marcel_attr *a)
{
	return a->brings || a->guards || a->stacksize > MARCEL_STACK_EARLY;
}

/* One that is had now, and not when the thread first runs. */
static struct marcel_stack *get_stack(struct marcel_thread *t,
				      const struct marcel_attr *a)
{
	size_t bytes =
		a->stacksize != 0 ? a->stacksize : marcel_sched.stacksize;
	size_t page = marcel_arena_guard_bytes();

	fetch_or_relaxed(&t->flags, MARCEL_F_STACK);
	if (a->brings)
		return marcel_apart_bring(a->stack, bytes);
	/* What rounds to the guard of all stacks is no other. */
	if (a->guards && (a->guardsize == 0 || a->guardsize > page))
		return marcel_apart_map(bytes, a->guardsize);
	return marcel_stack_get(NULL, bytes);
}

static BASE_COLD int set_attr(struct marcel_thread *t,
			      const struct marcel_attr *a)
{
	int rc;

	if (a->detach == MARCEL_CREATE_DETACHED)
		store_relaxed(&t->ended, MARCEL_END_DETACHED);
	/* The attribute may be older than the runtime. */
	if (a->has_set && (rc = marcel_place_set(t, &a->set)) != 0)
		return rc;
	/* What the default holds is not noted: nothing of `rest` is touched. */
	if (a->stacksize != 0 && !marcel_stack_is_default(a->stacksize)) {
		t->rest->stacksize = a->stacksize;
		fetch_or_relaxed(&t->flags, MARCEL_F_STACK);
	}
	if (has_early_stack(a) && (t->stack = get_stack(t, a)) == NULL)
		return EAGAIN;
	if (a->is_steady)
		marcel_thread_set_preemptible(t, false);
	if (a->priority != MARCEL_PRIORITY_NORMAL)
		marcel_thread_set_priority(t, a->priority);
	if (a->name[0] != 0)
		marcel_setname(t, a->name);
	return a->is_private ? marcel_private_set(t) : 0;
}

/* Whether one more may exist; it is counted if there is a limit. */
static BASE_COLD bool may_exist(unsigned scarce)
{
	struct marcel_sched *s = &marcel_sched;

	if ((scarce & MARCEL_SCARCE_STACKS) && !marcel_stack_can_be_had())
		return false;
	if (!(scarce & MARCEL_SCARCE_THREADS) ||
	    fetch_add_relaxed(&s->threads, 1) < s->threads_max)
		return true;
	fetch_sub_relaxed(&s->threads, 1);
	return false;
}

static BASE_COLD struct marcel_thread *get_scarce(struct marcel_vp *vp,
						  unsigned scarce)
{
	struct marcel_thread *t;

	if (!may_exist(scarce))
		return NULL;
	t = marcel_thread_get(vp);
	if (t == NULL && (scarce & MARCEL_SCARCE_THREADS))
		fetch_sub_relaxed(&marcel_sched.threads, 1);
	if (t != NULL && (scarce & MARCEL_SCARCE_SIGNALS))
		marcel_signal_inherit(t);
	return t;
}

/* Another descriptor, counted if need be. NULL: there are too many. */
static struct marcel_thread *get(struct marcel_vp *vp)
{
	unsigned scarce = load_relaxed(&marcel_sched.scarce);

	if (unlikely(scarce != 0))
		return get_scarce(vp, scarce);
	return marcel_thread_get(vp);
}

static void let_go(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (unlikely(load_relaxed(&marcel_sched.scarce) &
		     MARCEL_SCARCE_THREADS))
		fetch_sub_relaxed(&marcel_sched.threads, 1);
	if (likely(!marcel_cancel_keeps(t)))
		marcel_thread_put(vp, t);
}

static void count_created(struct marcel_vp *vp)
{
	if (likely(vp != NULL))
		store_relaxed(&vp->created, load_relaxed(&vp->created) + 1);
	else
		fetch_add_relaxed(&marcel_sched.created, 1);
}

/*
 * vp: the caller's, or NULL; nobody else's meanwhile. It is not ready yet;
 * NULL: there is none, and *rc says why.
 */
static inline struct marcel_thread *make(struct marcel_vp *vp, marcel_t *out,
					 const struct marcel_attr *a,
					 void *(*fn)(void *), void *arg,
					 int *rc)
{
	struct marcel_thread *t = get(vp);

	*rc = EAGAIN;
	if (unlikely(t == NULL))
		return NULL;
	store_relaxed(&t->state, MARCEL_T_NEW);
	store_relaxed(&t->flags, 0);
	t->home = -1;
	t->stack = NULL;
	t->fn = fn;
	t->arg = arg;
	store_relaxed(&t->ended, MARCEL_END_NONE);
	marcel_trace_vp(vp, MARCEL_TRACE_NEW, 0, t);
	if (unlikely(a != NULL) && (*rc = set_attr(t, a)) != 0) {
		marcel_trace_vp(vp, MARCEL_TRACE_ENDED, 0, t);
		/* For who knows it as a thread that has gone. */
		store_relaxed(&t->ended, MARCEL_END_DETACHED);
		let_go(vp, t);
		return NULL;
	}
	count_created(vp);
	*out = t;
	*rc = 0;
	marcel_san_release(t);
	return t;
}

static inline int create(struct marcel_vp *vp, marcel_t *out,
			 const struct marcel_attr *a, void *(*fn)(void *),
			 void *arg)
{
	struct marcel_thread *t;
	int rc;

	marcel_san_enter();
	t = make(vp, out, a, fn, arg, &rc);
	if (likely(t != NULL))
		marcel_runq_push(vp, t);
	marcel_san_leave();
	return rc;
}

/* The caller is no user thread, for whose end marcel_end() waits. */
static BASE_NOINLINE int create_as_guest(marcel_t *out,
					 const struct marcel_attr *a,
					 void *(*fn)(void *), void *arg)
{
	uint32_t was = 0;
	struct marcel_vp *vp;
	int rc;

	while (!marcel_foreign_makes())
		if ((rc = marcel_fork_start()) != 0)
			return rc == -EPERM ? EPERM : EAGAIN;
	vp = marcel_nest(&was);
	rc = create(vp, out, a, fn, arg);
	marcel_unnest(vp, was);
	marcel_foreign_made();
	return rc;
}

BASE_PUBLIC int marcel_create(marcel_t *out, const marcel_attr_t *attr,
			      void *(*fn)(void *), void *arg)
{
	const struct marcel_attr *a = NULL;
	struct marcel_vp *vp;
	uint32_t was = 0;
	int rc;

	if (unlikely(attr != NULL) && (a = marcel_attr_read(attr)) == NULL)
		return EINVAL;
	vp = marcel_nest(&was);
	if (unlikely(vp == NULL || was != 0)) {
		marcel_unnest(vp, was);
		return create_as_guest(out, a, fn, arg);
	}
	rc = create(vp, out, a, fn, arg);
	marcel_unnest(vp, 0);
	return rc;
}

/*
 * Whether t, which is new, may go before what is ready here: nobody who is more
 * urgent waits for it, and no other VP has nothing to do.
 */
static bool may_begin_here(struct marcel_vp *vp, struct marcel_thread *t)
{
	return vp->handovers < MARCEL_HANDOVERS_MAX &&
	       (vp->sole || load_relaxed(&marcel_sched.idle.word) == 0) &&
	       !marcel_thread_has(t, MARCEL_F_KEPT) &&
	       marcel_thread_may_run(t, vp->id) &&
	       marcel_thread_band_now(t) <=
		       marcel_thread_band_now(marcel_vp_current(vp));
}

/* Whoever made the new one is what runs next here. */
static void made_after(void *arg)
{
	marcel_runq_push(marcel_vp_self(), arg);
}

static struct marcel_vp *begin_here(struct marcel_vp *vp,
				    struct marcel_thread *t)
{
	struct marcel_thread *self = marcel_vp_current(vp);

	/* Without memory for a stack it is queued. */
	if (!marcel_switch_equip(vp, t))
		return vp;
	vp->handovers++;
	vp->after = made_after;
	vp->after_arg = self;
	return marcel_switch_ready(vp, self, t);
}

BASE_PUBLIC int marcel_create_first(marcel_t *out, const marcel_attr_t *attr,
				    void *(*fn)(void *), void *arg)
{
	const struct marcel_attr *a = NULL;
	struct marcel_thread *t;
	struct marcel_vp *vp;
	bool here;
	int rc;

	if (unlikely(attr != NULL) && (a = marcel_attr_read(attr)) == NULL)
		return EINVAL;
	if (unlikely(cpu_tls_in_handler()) || (vp = marcel_enter()) == NULL)
		return marcel_create(out, attr, fn, arg);
	marcel_san_enter();
	t = make(vp, out, a, fn, arg, &rc);
	here = t != NULL && may_begin_here(vp, t);
	marcel_san_leave();
	if (likely(here)) {
		marcel_hook_switch(vp, "create");
		here = vp->handovers < MARCEL_HANDOVERS_MAX; /* nobody urgent */
	}
	marcel_san_enter();
	if (likely(here))
		vp = begin_here(vp, t);
	else if (t != NULL)
		marcel_runq_push(vp, t);
	marcel_san_leave();
	marcel_leave(vp);
	return rc;
}

/* --- first and last --- */

void marcel_thread_first(void *value)
{
	struct marcel_vp *vp = value;
	struct marcel_thread *t = marcel_vp_current(vp);
	void *(*fn)(void *);

	marcel_san_finish(NULL);
	marcel_switch_after(vp);
	*vp->errno_addr = 0;
	marcel_san_acquire(t);
	marcel_san_acquire(t->stack);
	fn = t->stack->fn;
	marcel_san_leave();
	marcel_leave(vp);
	marcel_thread_end(fn(t->arg));
}

/* Threads that were made and have not ended. Racy while some are made. */
static uint64_t count_live(void)
{
	struct marcel_sched *s = &marcel_sched;
	uint64_t ended = 0, created;

	/* Ends first: whoever is counted there was created before. */
	for (int i = 0; i < s->nvp; i++)
		ended += load_seq(&s->vps[i].ended); /* order(end) */
	created = load_relaxed(&s->created);
	for (int i = 0; i < s->nvp; i++)
		created += load_relaxed(&s->vps[i].created);
	return created - ended;
}

/* Another one has ended: tell marcel_end() if it waits for the last. */
static void count_ended(struct marcel_vp *vp)
{
	struct marcel_thread *ender;
	uint64_t n = load_relaxed(&vp->ended) + 1;

	if (vp->sole) /* marcel_end() runs on this VP, too */
		store_relaxed(&vp->ended, n);
	else
		store_seq(&vp->ended, n);                    /* order(end) */
	if (likely(load_seq(&marcel_sched.ender) == NULL) || /* order(end) */
	    count_live() != 0)
		return;
	ender = xchg_acquire(&marcel_sched.ender, NULL); /* order(end) */
	if (ender != NULL)
		marcel_wake(ender);
}

/* On the next thread's stack: what the dead leave behind. */
static void bury(struct marcel_vp *vp, struct marcel_thread *t)
{
	marcel_san_free(t);
	marcel_stack_put(vp, t->stack);
	count_ended(vp);
}

static void end_after(void *arg)
{
	struct marcel_vp *vp = marcel_vp_self();
	struct marcel_thread *t = arg;
	uintptr_t joiner;

	store_relaxed(&t->state, MARCEL_T_ENDED); /* then its stack goes */
	bury(vp, t);
	joiner =
		fetch_add_acq_rel(&t->ended, MARCEL_END_DONE); /* order(join) */
	if (joiner == MARCEL_END_DETACHED)
		let_go(vp, t);
	else if (joiner != MARCEL_END_NONE)
		marcel_wake(
			(struct marcel_thread *)(joiner & ~MARCEL_END_TIMED));
}

void marcel_thread_ended(struct marcel_thread *t)
{
	end_after(t);
}

/* The same when we switched to the joiner: it needs no wake. */
static void end_joined_after(void *arg)
{
	struct marcel_thread *t = arg;

	store_relaxed(&t->state, MARCEL_T_ENDED); /* then its stack goes */
	bury(marcel_vp_self(), t);
	/* Nobody else changes it: the joiner is no timed one, and runs here. */
	store_relaxed(&t->ended, load_relaxed(&t->ended) + MARCEL_END_DONE);
}

/* Whether it may go before what else is ready. */
static bool comes_first(struct marcel_thread *joiner)
{
	return likely(!marcel_thread_has(joiner,
					 MARCEL_F_FOREIGN | MARCEL_F_BAND)) ||
	       (!marcel_thread_has(joiner, MARCEL_F_FOREIGN) &&
		marcel_thread_band(joiner) == MARCEL_BAND_REALTIME);
}

/* The thread that joins t, if it can go on here at once. */
static struct marcel_thread *joiner_here(struct marcel_vp *vp,
					 struct marcel_thread *t)
{
	uintptr_t w = load_acquire(&t->ended); /* order(join) */
	struct marcel_thread *joiner = (struct marcel_thread *)w;

	if (w <= MARCEL_END_DETACHED || w & MARCEL_END_TIMED ||
	    !comes_first(joiner) || !marcel_thread_may_run(joiner, vp->id) ||
	    marcel_vp_is_kept(vp, joiner) ||
	    vp->handovers >= MARCEL_HANDOVERS_MAX)
		return NULL;
	/* order(cancel): who takes the joiner out has seen that we are here */
	if (unlikely(load_light(&joiner->flags) & MARCEL_F_CANCEL))
		return NULL;
	vp->handovers++;
	store_relaxed(&joiner->state, MARCEL_T_RUNNING);
	return joiner;
}

/* For the last time; what waits for its end sees all that it did. */
static inline struct marcel_vp *enter_to_end(struct marcel_thread *t,
					     void *value)
{
	struct marcel_vp *vp;

	if (unlikely(marcel_thread_has(t, MARCEL_F_KEYS)))
		marcel_key_exit(t);
	vp = marcel_enter();
	marcel_hook_switch(vp, "exit");
	marcel_san_enter();
	t->arg = value;
	marcel_san_release(&t->ended);
	marcel_san_release(t->stack);
	return vp;
}

/* With its kernel thread, after whose end others learn of it; or all ends. */
static BASE_COLD BASE_NORETURN void end_otherwise(struct marcel_thread *t,
						  void *value)
{
	struct marcel_vp *vp;

	if (marcel_thread_has(t, MARCEL_F_MAIN | MARCEL_F_FOREIGN))
		marcel_thread_end_main(t); /* it forked this process off */
	vp = enter_to_end(t, value);
	marcel_private_end(t);
	marcel_switch_last(vp, t, marcel_switch_next(vp));
}

void marcel_thread_end(void *value)
{
	struct marcel_thread *t = marcel_thread_self(), *next;
	struct marcel_vp *vp;

	if (unlikely(marcel_thread_has(t, MARCEL_F_FOREIGN | MARCEL_F_KEPT)))
		end_otherwise(t, value);
	vp = enter_to_end(t, value);
	next = joiner_here(vp, t);
	if (likely(next != NULL)) {
		vp->after = end_joined_after;
	} else {
		next = marcel_switch_next(vp);
		vp->after = end_after;
	}
	vp->after_arg = t;
	marcel_switch_last(vp, t, next);
}

/* --- join, detach --- */

/* Nobody will ask for this one again. */
static void put(struct marcel_thread *t)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);

	marcel_san_enter();
	let_go(vp, t);
	marcel_san_leave();
	marcel_unnest(vp, was);
}

bool marcel_thread_claim(struct marcel_thread *t, uintptr_t who)
{
	uintptr_t done = MARCEL_END_DONE;

	/* order(join): what it did */
	return cas_acquire(&t->ended, &done, who | MARCEL_END_DONE);
}

int marcel_thread_refuses(struct marcel_thread *t)
{
	/* What is given back by a foreign thread never ended. */
	return load_relaxed(&t->ended) & MARCEL_END_DONE ||
			       load_relaxed(&t->state) == MARCEL_T_FREE
		       ? ESRCH
		       : EINVAL;
}

void marcel_thread_collect(struct marcel_thread *t, void **out)
{
	marcel_san_acquire(&t->ended);
	if (out != NULL)
		*out = t->arg;
	put(t);
}

/* A joiner that sleeps; on its own stack. */
struct join {
	struct marcel_thread *self, *target;
	int rc;
};

/* Once the joiner is seen it may run, and its frame is gone. */
static void join_after(void *arg)
{
	struct join *j = arg;
	struct marcel_thread *self = j->self, *target = j->target;
	uintptr_t none = MARCEL_END_NONE;

	/* order(join): the joiner's context, for who ends; order(cancel) */
	if (cas_seq(&target->ended, &none, (uintptr_t)self)) {
		if (unlikely(load_seq(&self->flags) & /* order(cancel) */
			     MARCEL_F_CANCEL))
			marcel_cancel_join_here(self, target);
		return;
	}
	if (!marcel_thread_claim(target, (uintptr_t)self))
		j->rc = marcel_thread_refuses(target);
	marcel_wake(self);
}

/* The joiner of a thread that nobody but the caller can make run. */
static bool set_joiner(struct marcel_vp *vp, struct marcel_thread *t,
		       struct marcel_thread *self)
{
	uintptr_t none = MARCEL_END_NONE;

	if (!vp->sole) /* order(join) */
		return cas_acq_rel(&t->ended, &none, (uintptr_t)self);
	if (load_relaxed(&t->ended) != MARCEL_END_NONE)
		return false;
	store_relaxed(&t->ended, (uintptr_t)self);
	return true;
}

/*
 * t is our newest seed: run it in our place. Nobody else can reach it, so it
 * may know its joiner before that one's context is saved: it runs later. If
 * there is no stack for it, it is in a queue again, where others reach it.
 */
static bool join_seed(struct marcel_vp **where, struct marcel_thread *self,
		      struct marcel_thread *t)
{
	struct marcel_vp *vp = *where;

	if (vp->handovers >= MARCEL_HANDOVERS_MAX ||
	    !marcel_runq_claim(vp, t) || unlikely(!marcel_switch_equip(vp, t)))
		return false;
	if (unlikely(!set_joiner(vp, t, self))) {
		marcel_runq_push_behind(vp, t);
		return false;
	}
	vp->handovers++;
	marcel_thread_waits(self, MARCEL_WAITS_JOIN, t);
	store_relaxed(&self->state, MARCEL_T_PARKED);
	*where = marcel_switch_blocked(vp, self, t);
	return true;
}

/* The same, from outside; false if the caller has to park. */
static bool join_at_once(struct marcel_thread *self, struct marcel_thread *t)
{
	struct marcel_vp *vp = marcel_enter();
	bool joined;

	if (unlikely(vp == NULL))
		return false;
	/* order(cancel): we are here, for who wants us to end */
	if (unlikely(load_light(&self->flags) & MARCEL_F_CANCEL)) {
		marcel_leave(vp);
		return false;
	}
	marcel_hook_switch(vp, "join");
	marcel_san_enter();
	joined = join_seed(&vp, self, t);
	marcel_san_leave();
	marcel_leave(vp);
	return joined;
}

/* It ended, or is not to be joined: nothing to wait for. */
static int join_no_more(struct marcel_thread *self, struct marcel_thread *t,
			void **out)
{
	marcel_cancel_point(); /* who claims it sees to it */
	if (!marcel_thread_claim(t, (uintptr_t)self))
		return marcel_thread_refuses(t);
	marcel_thread_collect(t, out);
	return 0;
}

/* Whoever wants us to end: its end came first, and it is ours. */
static bool is_mine(struct marcel_thread *self, struct marcel_thread *t)
{
	return load_relaxed(&t->ended) == ((uintptr_t)self | MARCEL_END_DONE);
}

BASE_PUBLIC int marcel_join(marcel_t t, void **out)
{
	struct marcel_thread *self = marcel_thread_self();
	struct join j = { self, t, 0 };

	if (unlikely(t == NULL))
		return ESRCH;
	if (t == self)
		return EDEADLK;
	if (load_relaxed(&t->ended) != MARCEL_END_NONE)
		return join_no_more(self, t, out);
	if (!join_at_once(self, t)) {
		marcel_cancel_point();
		marcel_thread_waits(self, MARCEL_WAITS_JOIN, t);
		marcel_park(join_after, &j);
		if (j.rc != 0)
			return j.rc;
	}
	if (unlikely(marcel_thread_has(self, MARCEL_F_CANCEL)) &&
	    !is_mine(self, t)) {
		marcel_cancel_act();
		return marcel_join(t, out); /* it is sheltered by now */
	}
	marcel_thread_collect(t, out);
	return 0;
}

BASE_PUBLIC int marcel_detach(marcel_t t)
{
	uintptr_t none = MARCEL_END_NONE;

	if (unlikely(t == NULL))
		return ESRCH;
	/* order(join) */
	if (cas_release(&t->ended, &none, MARCEL_END_DETACHED))
		return 0;
	if (!marcel_thread_claim(t, MARCEL_END_DETACHED))
		return marcel_thread_refuses(t);
	put(t);
	return 0;
}

/* --- who --- */

BASE_PUBLIC marcel_t marcel_self(void)
{
	return marcel_thread_self();
}

BASE_PUBLIC int marcel_equal(marcel_t a, marcel_t b)
{
	return a == b;
}

BASE_PUBLIC int marcel_getname(marcel_t t, char *out, size_t bytes)
{
	if (t == NULL)
		return ESRCH;
	if (out == NULL)
		return EINVAL;
	if (bytes < MARCEL_NAME_MAX)
		return ERANGE;
	marcel_thread_get_name(t, out);
	return 0;
}

BASE_PUBLIC int marcel_setname(marcel_t t, const char *name)
{
	if (t == NULL)
		return ESRCH;
	if (name == NULL)
		return EINVAL;
	if (strlen(name) >= MARCEL_NAME_MAX)
		return ERANGE;
	marcel_thread_name(t, name);
	if (marcel_trace_is_here())
		marcel_trace_text(MARCEL_TRACE_NAME, t, name);
	return 0;
}

/* --- the end of all --- */

static void wait_after(void *arg)
{
	struct marcel_thread *ender;

	store_seq(&marcel_sched.ender, arg); /* order(end) */
	if (count_live() != 0)
		return;
	ender = xchg_relaxed(&marcel_sched.ender, NULL);
	if (ender != NULL)
		marcel_wake(ender);
}

bool marcel_thread_any(void)
{
	return count_live() != 0;
}

void marcel_thread_wait_all(void)
{
	struct marcel_thread *self = marcel_thread_self();

	while (count_live() != 0) {
		marcel_thread_waits(self, MARCEL_WAITS_ALL, NULL);
		marcel_park(wait_after, self);
	}
}
