/*
 * Cancellation: see cancel.h.
 *
 * What a thread allows is its own affair: `cancel` in its rest, and of that in
 * its flags, for who makes it wait, whether it is sheltered. That somebody
 * wants it to end stays in its flags until it has ended.
 */
#include "cancel.h"

#include <errno.h>
#include <sched.h>

#include <base/spin.h>
#include <marcel/cancel.h>
#include <marcel/marcel.h>
#include <marcel/wait.h>
#include "../os/os.h"
#include "../sched/runq.h"
#include "../sched/tick.h"
#include "../sched/vp.h"

/* Bits of `cancel`. */
enum { ASYNCHRONOUS = 1, DISABLED = 2, ENDS = 4, HANDLES = 8 };

/* Without the kernel's barrier: far longer than a store takes to be seen. */
enum { PATIENCE_NS = 1000000 };

struct marcel_cancels marcel_cancels;

/* Held by who looks at what a `wait` names. */
static struct base_spin looking = BASE_SPIN_INIT(BASE_RANK_POOL);

/* l: descriptors of threads that ended while somebody cancels */
static struct {
	struct base_spin lock;
	struct marcel_thread *first; /* l: linked by `free` */
} kept = { .lock = BASE_SPIN_INIT(BASE_RANK_POOL) };

/* --- what a thread waits for --- */

void marcel_cancel_barrier(void)
{
	uint32_t word = 0;

	if (os_barrier_init())
		os_barrier_all();
	else
		os_futex_wait_for(&word, 0, PATIENCE_NS);
}

/* As it is by now; what comes of an old one is seen to below. */
static BASE_NO_TSAN BASE_NOINLINE struct marcel_stack *
stack_of(struct marcel_thread *t)
{
	return t->stack;
}

/*
 * NULL: nothing that it could be taken out of. If it has ended its stack may
 * be another thread's, but that is after it said so.
 */
static struct marcel_timer *get_wait(struct marcel_thread *t)
{
	struct marcel_stack *s = stack_of(t);
	struct marcel_timer *w;
	uint32_t state;

	w = s != NULL ? load_light(&s->wait)        /* order(cancel) */
		      : load_light(&t->rest->wait); /* order(cancel) */
	state = load_relaxed(&t->state);
	return state != MARCEL_T_ENDED && state != MARCEL_T_FREE ? w : NULL;
}

/* Under the lock: nobody else will end the wait, or it is over. */
static enum marcel_claim claim(struct marcel_timer *w)
{
	enum marcel_claim c = w->kind->claim(w);

	if (c != MARCEL_CLAIM_MINE)
		return c;
	if (w->in != NULL && !marcel_timer_disarm(w) &&
	    w->kind == &marcel_timer_plain)
		return MARCEL_CLAIM_GONE;
	marcel_cancel_set_wait(w->thread, NULL);
	return c;
}

/* Take it out of what it waits for. False: of nothing that it shows. */
static bool withdraw(struct marcel_thread *t)
{
	struct marcel_timer *w;
	enum marcel_claim c;

	for (;;) {
		c = MARCEL_CLAIM_GONE;
		base_spin_lock(&looking);
		w = get_wait(t);
		if (w != NULL)
			c = claim(w);
		base_spin_unlock(&looking);
		if (c != MARCEL_CLAIM_LATER)
			break;
		sched_yield();
	}
	if (c == MARCEL_CLAIM_MINE)
		w->kind->expire(w);
	return w != NULL;
}

void marcel_cancel_look_slow(struct marcel_timer *t)
{
	/* As who cancels: who grants may have begun before. */
	marcel_cancel_barrier();
	withdraw(t->thread);
}

/* Until nobody looks any more at what the thread's word has named. */
void marcel_cancel_hide_slow(void)
{
	base_spin_lock(&looking);
	base_spin_unlock(&looking);
}

/* --- joins --- */

/*
 * Whether another LWP runs it in the runtime. A guest has counted itself, with
 * a barrier after: if marcel runs by now its VPs stay.
 */
static bool is_inside(struct marcel_thread *t)
{
	struct marcel_sched *s = &marcel_sched;
	struct marcel_lwp *l, *self = cpu_tls_word();

	if (!marcel_is_running())
		return false;
	for (int i = 0; i < s->nvp; i++) {
		l = marcel_vp_lwp(&s->vps[i]);
		if (l != NULL && l != self &&
		    load_light(&l->inside) == 1 && /* order(cancel) */
		    /* order(settle): what it did before it switched */
		    load_acquire(&l->self) == t)
			return true;
	}
	return false;
}

/*
 * Until it is out of the stretch, if it was in one, in which it did not see
 * that the joiner is wanted. All that it stored there is seen then.
 */
static void settle(struct marcel_thread *t)
{
	while (is_inside(t))
		sched_yield();
	marcel_cancel_barrier();
}

void marcel_cancel_join(struct marcel_thread *joiner, struct marcel_thread *t)
{
	uintptr_t who = (uintptr_t)joiner;

	settle(t);
	if (marcel_thread_has(joiner, MARCEL_F_SHELTER))
		return;
	/* The end of t may have switched to it. */
	if (!marcel_thread_has(joiner, MARCEL_F_FOREIGN) &&
	    load_relaxed(&joiner->state) != MARCEL_T_PARKED)
		return;
	/* Its context is seen: it was found, or t has been waited for. */
	if (cas_relaxed(&t->ended, &who, MARCEL_END_NONE))
		marcel_wake(joiner);
}

void marcel_cancel_join_here(struct marcel_thread *joiner,
			     struct marcel_thread *t)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (l != NULL)
		store_light(&l->inside, 2); /* order(cancel) */
	marcel_cancel_join(joiner, t);
	if (l != NULL)
		store_light(&l->inside, 1); /* order(cancel) */
}

struct search {
	struct marcel_thread *joiner, *found;
};

static int match(struct marcel_thread *t, void *arg)
{
	struct search *s = arg;

	/* order(cancel): it may be about to look whether it is wanted */
	if (load_seq(&t->ended) != (uintptr_t)s->joiner)
		return 0;
	s->found = t;
	return 1;
}

/* Perhaps it joins somebody. */
static void withdraw_join(struct marcel_thread *t)
{
	struct search s = { .joiner = t };

	settle(t);
	if (!marcel_thread_has(t, MARCEL_F_FOREIGN) &&
	    load_relaxed(&t->state) != MARCEL_T_PARKED)
		return;
	marcel_thread_visit(match, &s);
	if (s.found != NULL)
		marcel_cancel_join(t, s.found);
}

/* --- what the thread allows --- */

void marcel_cancel_act(void)
{
	struct marcel_thread *self = marcel_thread_self();

	if (marcel_thread_has(self, MARCEL_F_CANCEL) &&
	    !marcel_thread_has(self, MARCEL_F_SHELTER))
		marcel_exit(MARCEL_CANCELED);
}

bool marcel_cancel_is_due(struct marcel_thread *t)
{
	return marcel_thread_has(t, MARCEL_F_CANCEL) &&
	       !marcel_thread_has(t, MARCEL_F_SHELTER) &&
	       (load_relaxed(&t->rest->cancel) & ASYNCHRONOUS) != 0;
}

static void allow(struct marcel_thread *self, uint32_t c)
{
	marcel_thread_use_rest(self);
	store_relaxed(&self->rest->cancel, c);
	if (c & (DISABLED | ENDS | HANDLES))
		fetch_or_relaxed(&self->flags, MARCEL_F_SHELTER);
	else
		fetch_and_relaxed(&self->flags, (uint16_t)~MARCEL_F_SHELTER);
	if (c & ASYNCHRONOUS)
		marcel_cancel_act();
}

void marcel_cancel_ends(struct marcel_thread *self)
{
	allow(self, ENDS);
}

uint32_t marcel_cancel_hold(struct marcel_thread *self)
{
	uint32_t c = load_relaxed(&self->rest->cancel);

	allow(self, c | HANDLES);
	return c & HANDLES;
}

void marcel_cancel_unhold(struct marcel_thread *self, uint32_t was)
{
	uint32_t c = load_relaxed(&self->rest->cancel) & ~(uint32_t)HANDLES;

	if (was != 0)
		return;
	store_relaxed(&self->rest->cancel, c);
	/* Not allow(): it may be in the middle of a wait. */
	if (!(c & (DISABLED | ENDS)))
		fetch_and_relaxed(&self->flags, (uint16_t)~MARCEL_F_SHELTER);
}

BASE_PUBLIC int marcel_setcancelstate(int state, int *old)
{
	struct marcel_thread *self = marcel_thread_self();
	uint32_t c = load_relaxed(&self->rest->cancel);

	if (state != MARCEL_CANCEL_ENABLE && state != MARCEL_CANCEL_DISABLE)
		return EINVAL;
	if (old != NULL)
		*old = c & DISABLED ? MARCEL_CANCEL_DISABLE
				    : MARCEL_CANCEL_ENABLE;
	allow(self,
	      state == MARCEL_CANCEL_DISABLE ? c | DISABLED : c & ~DISABLED);
	return 0;
}

BASE_PUBLIC int marcel_setcanceltype(int type, int *old)
{
	struct marcel_thread *self = marcel_thread_self();
	uint32_t c = load_relaxed(&self->rest->cancel);

	if (type != MARCEL_CANCEL_DEFERRED &&
	    type != MARCEL_CANCEL_ASYNCHRONOUS)
		return EINVAL;
	if (old != NULL)
		*old = c & ASYNCHRONOUS ? MARCEL_CANCEL_ASYNCHRONOUS
					: MARCEL_CANCEL_DEFERRED;
	allow(self, type == MARCEL_CANCEL_ASYNCHRONOUS ? c | ASYNCHRONOUS
						       : c & ~ASYNCHRONOUS);
	return 0;
}

BASE_PUBLIC void marcel_testcancel(void)
{
	marcel_cancel_point();
}

static void cancel_self(struct marcel_thread *self)
{
	fetch_or_relaxed(&self->flags, MARCEL_F_CANCEL);
	if (load_relaxed(&self->rest->cancel) & ASYNCHRONOUS)
		marcel_cancel_act();
}

static void cancel_other(struct marcel_thread *t)
{
	fetch_or_seq(&t->flags, MARCEL_F_CANCEL); /* order(cancel) */
	marcel_cancel_barrier();
	if (!withdraw(t))
		withdraw_join(t);
	if (marcel_cancel_is_due(t))
		marcel_monitor_wake(); /* it may compute, and no VP with it */
}

/* --- threads that end meanwhile --- */

/* A foreign thread looks at LWPs, though no thread may be left: a guest. */
static void begin_work(void)
{
	if (cpu_tls_word() == NULL)
		marcel_runq_guest_begin();
	base_spin_lock(&kept.lock);
	/* order(cancels): then we look at a thread's state */
	store_seq(&marcel_cancels.at_work,
		  load_relaxed(&marcel_cancels.at_work) + 1);
	base_spin_unlock(&kept.lock);
	marcel_cancel_barrier();
}

static void end_work(void)
{
	struct marcel_thread *t, *list = NULL;
	uint32_t n;

	base_spin_lock(&kept.lock);
	n = load_relaxed(&marcel_cancels.at_work) - 1;
	/* order(cancels): what we did with the thread */
	store_release(&marcel_cancels.at_work, n);
	if (n == 0) {
		list = kept.first;
		kept.first = NULL;
	}
	base_spin_unlock(&kept.lock);
	while ((t = list) != NULL) {
		list = t->free;
		marcel_thread_put(NULL, t);
	}
	if (cpu_tls_word() == NULL)
		marcel_runq_guest_end();
}

bool marcel_cancel_keeps_slow(struct marcel_thread *t)
{
	bool keep;

	base_spin_lock(&kept.lock);
	keep = load_relaxed(&marcel_cancels.at_work) != 0;
	if (keep) {
		t->free = kept.first;
		kept.first = t;
	}
	base_spin_unlock(&kept.lock);
	return keep;
}

BASE_PUBLIC int marcel_cancel(marcel_t t)
{
	int rc = 0;

	if (t == NULL)
		return ESRCH;
	store_relaxed(&marcel_cancels.any, 1);
	if (t == marcel_thread_self()) {
		cancel_self(t);
		return 0;
	}
	begin_work();
	if (load_seq(&t->state) == MARCEL_T_FREE) /* order(cancels) */
		rc = ESRCH;
	else
		cancel_other(t);
	end_work();
	return rc;
}

void marcel_cancel_forked(void)
{
	base_spin_init(&looking, BASE_RANK_POOL);
	base_spin_init(&kept.lock, BASE_RANK_POOL);
	kept.first = NULL;
	store_relaxed(&marcel_cancels.at_work, 0);
}
