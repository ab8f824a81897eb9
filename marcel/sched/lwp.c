/*
 * Kernel threads: made, waiting for a VP, giving it away, ended.
 *
 * To give a VP, its driver makes itself free (as the VP's spare, or in the
 * pool), writes the VP into the other LWP, then the other into `owner`, then
 * tells it, order(give). From the first of these on somebody may give the
 * driver another VP; it finds that when it comes to wait.
 */
#include "lwp.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include "../os/os.h"
#include "../thread/cputime.h"
#include "../thread/exception.h"
#include "../thread/overflow.h"
#include "block.h"
#include "poller.h"
#include "private.h"
#include "runq.h"
#include "switch.h"
#include "tick.h"
#include "vp.h"

__thread struct marcel_tls marcel_tls;

struct marcel_lwps marcel_lwps = { .lock = BASE_SPIN_INIT(BASE_RANK_POOL) };

static BASE_NOINLINE void attach(struct marcel_lwp *l)
{
	marcel_tls.lwp = l;
	if (l == NULL)
		return;
	l->errno_addr = marcel_os_errno();
	l->exceptions = marcel_exceptions_find();
	marcel_san_libc();
}

static void init_lwp(struct marcel_lwp *l, struct marcel_vp *vp)
{
	memset(l, 0, sizeof(*l));
	store_relaxed(&l->vp, vp);
	l->cpu = -1;
	base_spin_init(&l->cpu_lock, BASE_RANK_LEAF);
	l->idle.home = (int16_t)-1;
	l->idle.rest = &l->idle_rest;
	store_relaxed(&l->self, &l->idle);
	store_relaxed(&l->idle.state, MARCEL_T_RUNNING);
	marcel_thread_name(&l->idle, "idle");
}

BASE_PUBLIC BASE_NOINLINE int *marcel_errno_location(void)
{
	return marcel_os_errno();
}

/* --- wait and tell --- */

void marcel_lwp_tell(struct marcel_lwp *l)
{
	store_release(&l->told, 1); /* order(give): its VP */
	os_futex_wake(&l->told, 1);
}

/* Whether l drives its VP now, because it was given or may be taken. */
static bool takes(struct marcel_lwp *l)
{
	struct marcel_vp *vp = load_relaxed(&l->vp);
	uintptr_t o;

	if (unlikely(vp == NULL))
		return false; /* an older hint, and it has driven none yet */
	o = load_acquire(&vp->owner); /* order(section) */
	if (o == (uintptr_t)l) {
		marcel_vp_attach(vp, l);
		marcel_trace_enter(vp, load_relaxed(&l->self));
		marcel_switch_after(vp); /* of who left a private LWP */
		if (unlikely(l->is_fair))
			marcel_runq_be_fair(vp);
		l->is_fair = false;
		return true;
	}
	/* order(section): the VP, as its driver left it */
	if (!(o & MARCEL_SECTION) || load_relaxed(&vp->stand_in) != l ||
	    !cas_acquire(&vp->owner, &o, (uintptr_t)l))
		return false;
	store_relaxed(&vp->stand_in, NULL);
	vp->taken_ns = base_now_ns();
	marcel_vp_attach(vp, l);
	marcel_trace_enter(vp, load_relaxed(&l->self));
	marcel_vp_settle(vp);
	return true;
}

struct marcel_vp *marcel_lwp_wait(struct marcel_lwp *l)
{
	bool drives;

	store_relaxed(&l->waits, 1);
	do {
		/* order(give): l->vp */
		while (xchg_acquire(&l->told, 0) == 0)
			os_futex_wait(&l->told, 0);
		if (l->stop)
			return NULL;
		drives = takes(l);
	} while (!drives && load_relaxed(&l->is_loose) == 0);
	store_relaxed(&l->waits, 0);
	return drives ? load_relaxed(&l->vp) : NULL;
}

/* --- the pool --- */

void marcel_lwp_put(struct marcel_lwp *l)
{
	struct marcel_lwp **list =
		l->is_low ? &marcel_lwps.low : &marcel_lwps.normal;

	base_spin_lock(&marcel_lwps.lock);
	l->next = *list;
	*list = l;
	base_spin_unlock(&marcel_lwps.lock);
}

/*
 * The monitor, which may raise it meanwhile, says so and then does it. So the
 * last word of the two is 0 if the last deed is ours: it is raised again.
 */
static void lower(struct marcel_lwp *l)
{
	os_thread_lowest();
	store_relaxed(&l->raised, 0);
}

/*
 * Up to its first wait it allocates nothing: who holds the allocator's lock may
 * have been interrupted, and wait for the VP that it is to drive.
 */
static void *lwp_main(void *arg)
{
	struct marcel_lwp *l = arg;
	void *altstack = marcel_overflow_lwp_init();

	store_relaxed(&l->tid, os_tid());
	/* Who makes it may have blocked what it likes. */
	pthread_sigmask(SIG_SETMASK, &marcel_lwps.mask, NULL);
	marcel_tick_block(false);
	marcel_call_allow();
	if (l->is_low)
		lower(l);
	if (BASE_ASAN)
		os_stack_bounds(&l->idle_rest.stack_low,
				&l->idle_rest.stack_bytes);
	marcel_san_adopt(&l->idle);
	store_relaxed(&l->inside, 1); /* the tick may come */
	attach(l);
	marcel_san_enter();
	if (l->only != NULL)
		marcel_private_run(l);
	else if (marcel_lwp_wait(l) != NULL)
		marcel_vp_idle(l);
	marcel_san_leave();
	attach(NULL);
	marcel_overflow_lwp_exit(altstack);
	if (l->only != NULL)
		marcel_private_leave(l);
	return NULL;
}

/* One more, or one less, may be made. */
static bool change_left(int by)
{
	bool may;

	base_spin_lock(&marcel_lwps.lock);
	may = by > 0 || marcel_lwps.left > 0;
	if (may)
		marcel_lwps.left += (unsigned)by;
	base_spin_unlock(&marcel_lwps.lock);
	return may;
}

static struct marcel_lwp *alloc_lwp(void)
{
	struct marcel_lwp *l = aligned_alloc(BASE_CACHE_LINE, sizeof(*l));

	if (l != NULL)
		init_lwp(l, NULL);
	return l;
}

static void list(struct marcel_lwp *l)
{
	base_spin_lock(&marcel_lwps.lock);
	l->all = marcel_lwps.all;
	marcel_lwps.all = l;
	base_spin_unlock(&marcel_lwps.lock);
}

/* What may get no CPU for long is known by its number: it is not asleep. */
static int create(struct marcel_lwp *l)
{
	int rc = marcel_poller_create(&l->kernel_thread, lwp_main, l);
	pid_t tid = rc == 0 ? os_thread_tid(l->kernel_thread) : 0;

	if (tid != 0)
		store_relaxed(&l->tid, tid);
	return rc;
}

static BASE_COLD struct marcel_lwp *make(bool low)
{
	struct marcel_lwp *l;

	if (!change_left(-1))
		return NULL;
	l = alloc_lwp();
	if (l == NULL)
		goto err_left;
	l->is_low = low;
	if (create(l) != 0)
		goto err_free;
	list(l);
	return l;
err_free:
	free(l);
err_left:
	change_left(1);
	return NULL;
}

/* --- for one thread --- */

static void no_longer_keep(struct marcel_thread *t)
{
	fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_KEPT);
	t->rest->lwp = NULL;
}

/*
 * An old one whose kernel thread is gone, or NULL. Late looks find an LWP in
 * that memory still, so it is no other's before the runtime ends.
 */
static struct marcel_lwp *take_ended(void)
{
	struct marcel_lwp **at, **end, *list, *l;

	base_spin_lock(&marcel_lwps.lock);
	list = marcel_lwps.ended;
	marcel_lwps.ended = NULL;
	base_spin_unlock(&marcel_lwps.lock);
	/* To join takes locks of libc's. */
	at = &list;
	while ((l = *at) != NULL && !l->is_joined &&
	       pthread_tryjoin_np(l->kernel_thread, NULL) != 0)
		at = &l->next;
	if (l != NULL) {
		l->is_joined = true;
		*at = l->next;
	}
	for (end = &list; *end != NULL;)
		end = &(*end)->next;
	base_spin_lock(&marcel_lwps.lock);
	*end = marcel_lwps.ended;
	marcel_lwps.ended = list;
	base_spin_unlock(&marcel_lwps.lock);
	return l;
}

struct marcel_lwp *marcel_lwp_make_for(struct marcel_thread *t,
				       void (*end)(void *))
{
	struct marcel_lwp *l;

	if (!change_left(-1))
		return NULL;
	l = take_ended();
	if (l == NULL) {
		l = alloc_lwp();
		if (l == NULL)
			goto err_left;
		l->is_joined = true;
		marcel_tasklet_init(&l->end, end, l);
		list(l);
	}
	l->only = t;
	l->ends = l->in_call = l->is_fair = false;
	l->hushed = MARCEL_HUSH_NONE;
	store_relaxed(&l->is_loose, 0);
	l->cpu = -1;
	store_relaxed(&l->told, 0);
	store_relaxed(&l->waits, 0);
	store_relaxed(&l->ticked, 0);
	l->cpu_since = 0;
	return l;
err_left:
	change_left(1);
	return NULL;
}

int marcel_lwp_start(struct marcel_lwp *l)
{
	int rc = create(l);

	if (rc == 0)
		l->is_joined = false;
	else
		marcel_lwp_ended(l);
	return rc;
}

void marcel_lwp_ended(struct marcel_lwp *l)
{
	no_longer_keep(l->only);
	store_relaxed(&l->vp, NULL); /* it is not adrift */
	base_spin_lock(&marcel_lwps.lock);
	l->next = marcel_lwps.ended;
	marcel_lwps.ended = l;
	marcel_lwps.left++;
	base_spin_unlock(&marcel_lwps.lock);
}

struct marcel_lwp *marcel_lwp_take(bool low)
{
	struct marcel_lwp **list = low ? &marcel_lwps.low : &marcel_lwps.normal;
	struct marcel_lwp *l;

	base_spin_lock(&marcel_lwps.lock);
	l = *list;
	if (l != NULL)
		*list = l->next;
	base_spin_unlock(&marcel_lwps.lock);
	return l;
}

struct marcel_lwp *marcel_lwp_get(bool low)
{
	struct marcel_lwp *l = marcel_lwp_take(low);

	return l != NULL ? l : make(low);
}

/* Or seems to be: it may be about to be told. */
static bool is_adrift(struct marcel_lwp *l)
{
	struct marcel_vp *vp = load_relaxed(&l->vp);

	return vp != NULL && marcel_vp_lwp(vp) != l &&
	       load_relaxed(&l->self) != &l->idle &&
	       load_relaxed(&l->waits) == 0 && load_relaxed(&l->inside) == 0;
}

struct marcel_lwp *marcel_lwp_of(struct marcel_thread *t)
{
	struct marcel_lwp *l;

	if (load_relaxed(&marcel_lwps.first.self) == t)
		return &marcel_lwps.first;
	base_spin_lock(&marcel_lwps.lock);
	for (l = marcel_lwps.all; l != NULL; l = l->all)
		if (load_relaxed(&l->self) == t)
			break;
	base_spin_unlock(&marcel_lwps.lock);
	return l;
}

struct marcel_lwp *marcel_lwp_adrift(struct marcel_lwp *after)
{
	struct marcel_lwp *first = &marcel_lwps.first, *l;

	if (after == NULL && is_adrift(first))
		return first;
	base_spin_lock(&marcel_lwps.lock);
	l = after == NULL || after == first ? marcel_lwps.all : after->all;
	while (l != NULL && !is_adrift(l))
		l = l->all;
	base_spin_unlock(&marcel_lwps.lock);
	return l;
}

struct marcel_lwp *marcel_lwp_here(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return l != NULL && load_relaxed(&l->tid) == os_tid() ? l : NULL;
}

void marcel_lwp_provide(void)
{
	struct marcel_lwp *l = marcel_lwp_get(false);

	if (l != NULL)
		marcel_lwp_put(l);
}

bool marcel_lwp_may_provide(void)
{
	bool may;

	base_spin_lock(&marcel_lwps.lock);
	may = marcel_lwps.normal == NULL && marcel_lwps.left > 0;
	base_spin_unlock(&marcel_lwps.lock);
	return may;
}

/* --- give and regain --- */

/* The driver of vp is free from now on: anyone may give it a VP. */
static void retire(struct marcel_vp *vp, struct marcel_lwp *l)
{
	if (l == &marcel_lwps.first)
		return; /* only who drives VP 0 gives it that one */
	if (unlikely(load_relaxed(&l->raised) != 0))
		lower(l);
	if (l->is_low && load_relaxed(&marcel_lwps.lowers) != 0 &&
	    load_relaxed(&vp->stand_in) == NULL)
		store_relaxed(&vp->stand_in, l);
	else
		marcel_lwp_put(l);
}

void marcel_lwp_hand(struct marcel_vp *vp, struct marcel_lwp *to)
{
	store_relaxed(&to->vp, vp);
	store_release(&vp->owner, (uintptr_t)to); /* order(section) */
	marcel_lwp_tell(to);
}

struct marcel_lwp *marcel_lwp_take_give(struct marcel_vp *vp)
{
	struct marcel_lwp *to = vp->give;

	vp->give = NULL;
	return to;
}

struct marcel_lwp *marcel_lwp_of_kept(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	if (marcel_timers_are_due(&vp->timers))
		marcel_timers_run(&vp->timers);
	while (vp->give == NULL) {
		t = marcel_runq_take_kept(vp, marcel_vp_lwp(vp), false);
		if (t == NULL)
			break;
		marcel_vp_enters_slow(vp, t);
	}
	return marcel_lwp_take_give(vp);
}

struct marcel_vp *marcel_lwp_give(struct marcel_vp *vp)
{
	struct marcel_lwp *l = marcel_vp_lwp(vp),
			  *to = marcel_lwp_take_give(vp);

	retire(vp, l);
	marcel_lwp_hand(vp, to);
	return marcel_lwp_wait(l);
}

/* While the monitor tries: it is done in no time. */
static bool is_restored(struct marcel_lwp *l)
{
	struct marcel_vp *vp = load_relaxed(&l->vp);
	uintptr_t o;

	while ((o = load_relaxed(&vp->owner)) ==
	       ((uintptr_t)l | MARCEL_REVOKING))
		sched_yield();
	return o == (uintptr_t)l;
}

bool marcel_lwp_end_section(struct marcel_lwp *l)
{
	struct marcel_vp *vp = load_relaxed(&l->vp);
	uintptr_t mine = (uintptr_t)l | MARCEL_SECTION;
	uint32_t was;
	int saved;

	/* order(section): nobody has taken it, so it is as we left it */
	if (load_relaxed(&vp->owner) != mine)
		return false;
	was = load_relaxed(&l->inside);
	store_light(&l->inside, 1); /* order(revoke) */
	if (!cas_relaxed(&vp->owner, &mine, (uintptr_t)l)) {
		store_light(&l->inside, was);
		return false;
	}
	marcel_san_enter();
	saved = *l->errno_addr;
	marcel_trace_enter(vp, load_relaxed(&l->self));
	marcel_vp_settle(vp);
	*l->errno_addr = saved;
	marcel_san_leave();
	marcel_lwp_leaves(l, was);
	return true;
}

/* If not now, then as soon as it gives such a lock back: io/file.c. */
static BASE_NOINLINE bool may_leave(const void *context)
{
	bool may = os_may_leave(context);

	marcel_tls.asked = !may;
	return may;
}

/*
 * Another thread, main most often, is to run on the LWP that t keeps: t is in a
 * queue of VP 0 still, and will be entered. If t may not be left where it was
 * interrupted, it goes on first, until the next tick.
 */
static struct marcel_vp *let_other_run(struct marcel_vp *vp,
				       struct marcel_thread *t)
{
	struct marcel_thread *other = vp->handed;
	const void *context = t->rest->interrupted;

	vp->handed = NULL;
	if (context == NULL)
		return marcel_switch(vp, t, other);
	if (!may_leave(context)) {
		marcel_runq_push_to(vp, other);
		marcel_runq_withdraw(vp, t);
		return vp;
	}
	if (marcel_sched.counts_cpu)
		marcel_cputime_leaves(marcel_vp_lwp(vp));
	/* The other takes ticks; t's handler ends without another. */
	marcel_tick_block(false);
	vp = marcel_switch(vp, t, other);
	marcel_tick_block(true);
	return vp;
}

/*
 * t, which runs on l, which drives nothing, is ready and kept by l. In queues
 * of which every pick asks for that: not in a fifo.
 */
static void keep(struct marcel_lwp *l, struct marcel_thread *t)
{
	t->rest->lwp = l;
	t->rest->returns = true;
	fetch_or_relaxed(&t->flags, MARCEL_F_KEPT);
	if (l != &marcel_lwps.first) {
		marcel_runq_push(NULL, t);
		return;
	}
	if (!marcel_thread_has(t, MARCEL_F_MAIN))
		marcel_lwps.nkept++;
	if (t->rest->interrupted != NULL)
		marcel_lwps.ninterrupted++;
	marcel_runq_push_to(&marcel_sched.vps[0], t);
}

/* l, which waits no more, keeps a thread that has been let loose. */
static bool is_loose(struct marcel_lwp *l)
{
	if (l == &marcel_lwps.first)
		marcel_levelq_settle(marcel_sched.vps[0].above[0], l);
	if (likely(load_relaxed(&l->is_loose) == 0))
		return false;
	store_relaxed(&l->is_loose, 0);
	return true;
}

/* Until t goes on; vp: there is one already. NULL: without one. */
static struct marcel_vp *
come_back(struct marcel_lwp *l, struct marcel_thread *t, struct marcel_vp *vp)
{
	if (vp == NULL)
		vp = marcel_lwp_wait(l);
	while (!is_loose(l) && unlikely(vp->handed != NULL))
		vp = let_other_run(vp, t);
	if (l == &marcel_lwps.first && t->rest->interrupted != NULL) {
		marcel_lwps.ninterrupted--;
		if (vp != NULL)
			marcel_vp_attach(vp, l); /* it may go on as ever */
	}
	t->rest->returns = false;
	if (marcel_thread_has(t, MARCEL_F_MAIN) || l->only != NULL)
		return vp;
	if (l == &marcel_lwps.first)
		marcel_lwps.nkept--;
	no_longer_keep(t);
	return vp;
}

/* The calling thread waits until it is picked; vp: as come_back(). */
static struct marcel_vp *wait_for_turn(struct marcel_lwp *l,
				       struct marcel_vp *vp)
{
	struct marcel_thread *t = load_relaxed(&l->self);
	int saved;

	marcel_san_enter();
	saved = *l->errno_addr;
	keep(l, t);
	if (vp != NULL)
		marcel_vp_attach(vp, l); /* somebody sits interrupted now */
	vp = come_back(l, t, vp);
	*l->errno_addr = saved;
	marcel_san_leave();
	return vp;
}

BASE_NOINLINE struct marcel_vp *marcel_lwp_regain(struct marcel_lwp *l)
{
	marcel_hush_over(l);
	if (marcel_lwp_end_section(l) || is_restored(l))
		return load_relaxed(&l->vp);
	return wait_for_turn(l, NULL);
}

bool marcel_lwp_make_way(struct marcel_lwp *l, struct marcel_vp *vp)
{
	if (l != &marcel_lwps.first)
		return false;
	if (vp->handed == NULL)
		vp->handed = marcel_runq_take_kept(vp, l, true);
	if (vp->handed == NULL)
		return false;
	fetch_add_relaxed(&vp->preempted, 1);
	marcel_trace_vp(vp, MARCEL_TRACE_YIELD, 1, load_relaxed(&l->self));
	wait_for_turn(l, vp); /* nobody else picks it from VP 0 */
	return true;
}

/* --- init, exit --- */

void marcel_lwp_init(unsigned max, struct marcel_vp *vp,
		     struct marcel_thread *main)
{
	struct marcel_lwp *l = &marcel_lwps.first;

	init_lwp(l, vp);
	store_relaxed(&l->self, main);
	main->rest->lwp = l;
	fetch_or_relaxed(&main->flags, MARCEL_F_KEPT);
	attach(l);
	store_relaxed(&vp->owner, (uintptr_t)l);
	marcel_vp_attach(vp, l);
	store_relaxed(&l->tid, os_tid());
	pthread_sigmask(SIG_SETMASK, NULL, &marcel_lwps.mask);
	marcel_lwps.left = max;
	marcel_lwps.normal = marcel_lwps.low = marcel_lwps.all = NULL;
	marcel_lwps.ended = NULL;
}

void marcel_lwp_stop(void)
{
	struct marcel_lwp *l;

	marcel_poller_stop();
	/* One may be about to hand its VP, which has stopped, to another. */
	for (l = marcel_lwps.all; l != NULL; l = l->all) {
		l->stop = true;
		marcel_lwp_tell(l);
	}
	for (l = marcel_lwps.all; l != NULL; l = l->all)
		if (!l->is_joined)
			pthread_join(l->kernel_thread, NULL);
}

void marcel_lwp_exit(void)
{
	struct marcel_lwp *l, *next;

	no_longer_keep(load_relaxed(&marcel_lwps.first.self));
	attach(NULL);
	for (l = marcel_lwps.all; l != NULL; l = next) {
		next = l->all;
		free(l);
	}
	marcel_lwps.all = NULL;
}

void marcel_lwp_forked(void)
{
	base_spin_init(&marcel_lwps.lock, BASE_RANK_POOL);
	for (struct marcel_lwp *l = marcel_lwps.all; l != NULL; l = l->all)
		marcel_san_ignore(l);
	marcel_lwps.all = NULL;
	store_relaxed(&marcel_lwps.lowers, 0); /* until a poller starts */
	marcel_lwps.ninterrupted = marcel_lwps.nkept = 0;
}
