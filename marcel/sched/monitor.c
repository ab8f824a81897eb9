/*
 * The monitor: a kernel thread that looks at every VP once a time slice.
 *
 * A VP that has run the same thread since the last look, while others wait for
 * it, is helped in one of two ways. If its LWP runs, the thread is preempted:
 * tick.c. If the LWP sleeps in the kernel, at both looks, the thread waits for
 * something of which we were not told (a pthread mutex whose holder has been
 * preempted, a page of a slow file, read() by syscall()); then the VP is taken
 * from it, order(revoke):
 *
 *	monitor				LWP
 *	owner: L -> L | REVOKING	inside = 1
 *	a barrier on every CPU		owner is L? else it waits or has lost it
 *	inside is 0?
 *	  L | REVOKING -> another
 *	else L | REVOKING -> L
 *
 * Where nobody waits for the VP of an LWP that has slept like that for long, it
 * is taken all the same: its next driver finds nothing to do and lets it sleep
 * as any other, order(idle), and then nobody need look at it, or at anything.
 *
 * A thread that is to be cancelled, or to take signals, where it computes is
 * interrupted at every look, whether or not others wait for its VP.
 *
 * A VP that runs real-time threads, at two looks, picks no others meanwhile,
 * and VPs that have others of their own do not steal: so what waits in its
 * deques goes to the queue of the machine, from which all VPs pick in turn.
 *
 * Who sees the VPs asleep, all of them, sleeps too: order(monitor).
 *
 * A real-time thread need not wait for the end of a slice: who pushes one where
 * others compute has the monitor look between its looks, order(hurry):
 *
 *	pusher				monitor
 *	push				sleep: hurry is 0, for a slice at most
 *	hurry = 1; was it 0? wake	hurry was 1? hurry = 0, then look
 *
 * So what was pushed before hurry is 1 is seen by a look that begins later, and
 * however many were pushed meanwhile, it is one look. That one interrupts and
 * does nothing else: what is remembered from slice to slice stays. An interrupt
 * that finds its LWP inside the runtime, or no LWP to go on with, is lost; so
 * while somebody urgent is still ready there, it looks again, each time after
 * twice as long, until the slice ends. A VP that changes threads just while it
 * is looked at may be taken for one that need not be interrupted, and a guest
 * be interrupted behind its push: then the end of the slice it is, as for
 * everybody.
 *
 * Who awaits IO is woken as if it were real-time (priority.c) while some thread
 * computes: one that had to be interrupted in one of the last slices. But if
 * those who are woken like that leave nothing of a VP to the others, it ends
 * until one of the others has used up a slice, of which it is interrupted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <base/diag.h>
#include "../os/os.h"
#include "../thread/cancel.h"
#include "hook.h"
#include "place.h"
#include "poller.h"
#include "runq.h"
#include "sanitizer.h"
#include "tick.h"

enum {
	AGAIN_NS = 50000,  /* more than an interrupt takes */
	STILL_LOOKS = 8,   /* whoever has not run since is asleep for long */
	QUIET_LOOKS = 8,   /* nobody computes if none was interrupted since */
	URGENT_LOOKS = 16, /* others starve if none of them has run since */
};

/* What the monitor remembers of a VP. */
struct look {
	struct marcel_lwp *lwp;
	struct marcel_thread *thread;
	uint64_t progress;
	uint64_t at_ns;  /* when its clock was read, or 0; and by then */
	uint64_t cpu_ns; /* the LWP had run so long */
	unsigned still;  /* looks since it has run, if nobody waited */
	unsigned urgent; /* looks that have met but urgent threads */
	bool was_asleep; /* in the kernel */
	bool was_told;   /* that it has the VP, or may take it, by us */
};

static struct {
	pthread_t thread;
	bool runs;
	ATOMIC(uint32_t) stop; /* a: relaxed; after it a wake */
	bool can_revoke;
	unsigned first;     /* which VP an early look begins with */
	struct look *looks; /* one for each VP */
	unsigned quiet;     /* looks since a thread was interrupted */
} monitor;

struct marcel_monitor marcel_monitor;

void marcel_monitor_wake(void)
{
	/* No tick comes between, which nobody else would end. */
	cpu_tls_pin(1);
	if (xchg_relaxed(&marcel_monitor.asleep, 0) != 0)
		os_futex_wake(&marcel_monitor.asleep, 1);
	cpu_tls_pin(-1);
}

void marcel_monitor_call_adrift(void)
{
	marcel_cancel_barrier();
	marcel_monitor_wake();
}

/*
 * Who shall drive a VP that we have taken: anyone; or, if all are used up, one
 * that keeps a ready thread. What the VP's own waits for may be had from that.
 */
static struct marcel_lwp *successor(struct marcel_vp *vp)
{
	struct marcel_lwp *to = marcel_lwp_take(false);

	if (to != NULL) {
		to->is_fair = true;
		return to;
	}
	marcel_san_enter();
	to = marcel_lwp_of_kept(vp);
	marcel_san_leave();
	return to;
}

/* The LWP has slept in the kernel all the time. False: it cannot be. */
static bool take_from(struct marcel_vp *vp, struct marcel_lwp *l)
{
	uintptr_t mine = (uintptr_t)l, marked = mine | MARCEL_REVOKING;
	struct marcel_lwp *to;

	if (!cas_seq(&vp->owner, &mine, marked)) /* order(revoke) */
		return false;
	os_barrier_all();
	if (load_seq(&l->inside) != 0) { /* order(revoke): the VP */
		/* Perhaps it has written another owner. */
		if (cas_relaxed(&vp->owner, &marked, (uintptr_t)l))
			marcel_lwp_tell(l); /* it may have looked meanwhile */
		return false;
	}
	if (load_relaxed(&vp->owner) != marked)
		return false;
	to = successor(vp);
	if (to == NULL) {
		os_barrier_all(); /* it sees what we did in the queues */
		store_relaxed(&vp->owner, (uintptr_t)l);
		return false;
	}
	fetch_add_relaxed(&vp->revoked, 1);
	marcel_lwp_hand(vp, to);
	return true;
}

/*
 * Its LWP sleeps inside the runtime, or there is none to go on with the VP: on
 * a lock of libc's, most likely, as the allocator's, that a thread holds which
 * was interrupted and waits for a VP. One such thread goes on without.
 */
static void let_loose(struct marcel_vp *vp)
{
	struct marcel_lwp *l = NULL;

	for (unsigned i = 0; i < vp->nabove && l == NULL; i++)
		l = marcel_levelq_let_loose(vp->above[i]);
	if (l == NULL)
		return;
	store_relaxed(&marcel_monitor.loosened,
		      load_relaxed(&marcel_monitor.loosened) + 1);
	marcel_lwp_tell(l);
}

/*
 * l sleeps where LWPs wait for a VP, though it has one, or may take it: whoever
 * was about to tell it so may have lost its CPU. So it is told, once.
 */
static bool is_to_be_told(struct marcel_lwp *l, struct look *last)
{
	if (last->was_told || load_relaxed(&l->waits) == 0)
		return false;
	last->was_told = true;
	marcel_lwp_tell(l);
	return true;
}

/*
 * Grows whenever another thread has gone on there: one was picked, or one that
 * was entered without that has ended. Who makes threads keeps the VP from them.
 */
static uint64_t progress_of(struct marcel_vp *vp)
{
	return load_relaxed(&vp->ended) + load_relaxed(&vp->picks);
}

static void tick(struct marcel_lwp *l)
{
	store_relaxed(&marcel_monitor.ticks,
		      load_relaxed(&marcel_monitor.ticks) + 1);
	marcel_tick_send(l);
}

/*
 * Another process on its CPU must not starve the VP for more than a slice. It
 * may lower itself just now: it says so when it has (lwp.c), and we before.
 */
static void raise_low(struct marcel_lwp *l)
{
	if (!l->is_low || load_relaxed(&l->raised) != 0 ||
	    load_relaxed(&l->tid) == 0)
		return;
	store_relaxed(&l->raised, 1);
	if (os_thread_ordinary(load_relaxed(&l->tid)))
		return;
	/* The program has given privileges up: no more such spares. */
	store_relaxed(&l->raised, 0);
	store_relaxed(&marcel_lwps.lowers, 0);
}

/*
 * A thread waits for LWP 0, on which another runs that has lost its VP, or
 * sleeps in a call that a signal does not end.
 */
static void call_first(void)
{
	struct marcel_lwp *first = &marcel_lwps.first;
	pid_t tid = load_relaxed(&first->tid);

	if (!os_thread_sleeps(tid) || os_thread_sleeps_on(tid))
		tick(first);
}

/*
 * l has slept with its VP at two looks, and others wait. If nobody can go on
 * with the VP, what waits may be kept by l itself, as main is by LWP 0.
 */
static void help_asleep(struct marcel_vp *vp, struct marcel_lwp *l, bool idle)
{
	if (!idle && monitor.can_revoke && take_from(vp, l))
		return;
	if (!idle && l == &marcel_lwps.first)
		call_first();
	let_loose(vp);
}

static void note_time(struct look *last, pid_t tid)
{
	if (tid == 0)
		return;
	last->at_ns = base_now_ns();
	last->cpu_ns = os_thread_cpu_ns(tid);
}

/*
 * Who has computed since the last look, but for what interrupts take, need not
 * be looked at in /proc, which costs ten times as much as to read its clock.
 * Calls that a tick would end, if one was begun just now, are not many, and a
 * tick may come upon one however we look.
 */
static bool is_asleep(struct look *last, pid_t tid)
{
	struct look before = *last;
	uint64_t ns;

	note_time(last, tid);
	ns = base_now_ns() - before.at_ns; /* no less than by its clock */
	if (before.at_ns != 0 && last->cpu_ns - before.cpu_ns >= ns - ns / 64)
		return false;
	return os_thread_sleeps(tid);
}

/* For others: it computes. */
static void interrupt(struct marcel_lwp *l)
{
	monitor.quiet = 0;
	store_relaxed(&marcel_sched.some_compute, true);
	tick(l);
}

/* After a look at every VP. */
static void judge_who_computes(void)
{
	bool starve = false;

	for (int i = 0; i < marcel_sched.nvp; i++) {
		if (monitor.looks[i].urgent < URGENT_LOOKS)
			continue;
		monitor.looks[i].urgent = 0;
		starve = true;
	}
	if (starve || ++monitor.quiet >= QUIET_LOOKS)
		store_relaxed(&marcel_sched.some_compute, false);
}

/* Whether t is to go elsewhere, or hooks or others are to have its VP. */
static bool is_wanted(struct marcel_vp *vp, struct marcel_lwp *l,
		      struct marcel_thread *t)
{
	if (t != &l->idle && marcel_hook_wants_tick(vp)) {
		store_relaxed(&vp->hook_due, 1);
		return true;
	}
	return marcel_place_leaves(l, t) ||
	       marcel_runq_seems_ready(vp, marcel_thread_band_now(t));
}

/*
 * t has run on l since the last look, and nobody waits for the VP. Who sleeps
 * does not grow older by the clock of his CPU time; so does who is starved, but
 * /proc knows him.
 */
static void help_alone(struct marcel_vp *vp, struct marcel_lwp *l,
		       struct marcel_thread *t, struct look *last)
{
	pid_t tid = load_relaxed(&l->tid);
	uint64_t cpu_ns = last->cpu_ns;
	bool known = last->at_ns != 0;

	if (t == &l->idle || !monitor.can_revoke) {
		last->at_ns = 0;
		return;
	}
	note_time(last, tid);
	if (!known || last->cpu_ns != cpu_ns) {
		last->still = 0;
		return;
	}
	if (++last->still < STILL_LOOKS)
		return;
	last->still = 0; /* if it cannot be, not at each look */
	if (marcel_lwp_may_provide())
		marcel_poller_want_lwp(); /* it is there next time */
	else if (os_thread_sleeps(tid))
		take_from(vp, l);
}

/*
 * t has run on l since the last look. Threads of any band may be what it waits
 * for, if it sleeps.
 */
static void help(struct marcel_vp *vp, struct marcel_lwp *l,
		 struct marcel_thread *t, struct look *last)
{
	bool was_asleep = last->was_asleep;
	bool wanted = is_wanted(vp, l, t);
	pid_t tid = load_relaxed(&l->tid);

	last->was_asleep = false;
	if (!wanted && !marcel_runq_seems_ready(vp, MARCEL_BANDS)) {
		help_alone(vp, l, t, last);
		return;
	}
	last->still = 0;
	if (marcel_lwp_may_provide())
		marcel_poller_want_lwp();
	last->was_asleep = tid == 0 || is_asleep(last, tid);
	if (!last->was_asleep)
		last->was_told = false;
	if (last->was_asleep && was_asleep && !is_to_be_told(l, last))
		help_asleep(vp, l, t == &l->idle);
	else if (!last->was_asleep && wanted && t != &l->idle &&
		 marcel_thread_is_preemptible(t))
		interrupt(l);
}

/* Whether t is to end or to take signals, wherever it computes: see tick.c. */
static bool is_called(struct marcel_thread *t)
{
	return marcel_cancel_is_due(t) || marcel_thread_has(t, MARCEL_F_SIGNAL);
}

static BASE_COLD void call(struct marcel_lwp *l, struct marcel_thread *t)
{
	pid_t tid = load_relaxed(&l->tid);

	if (marcel_thread_is_preemptible(t) && tid != 0 &&
	    !os_thread_sleeps(tid))
		tick(l);
}

/*
 * The VP is in a section. Its spare, told that it may be taken, is to have done
 * that by the next look: another process may starve it; or, if it has not begun
 * yet, it sleeps inside the runtime.
 */
static void look_at_section(struct marcel_vp *vp, struct look *last)
{
	struct marcel_lwp *l = load_relaxed(&vp->stand_in);
	struct look now = { .urgent = last->urgent };
	pid_t tid;

	if (l != NULL && load_relaxed(&l->told) != 0) {
		raise_low(l);
		tid = load_relaxed(&l->tid);
		now.lwp = l;
		now.was_asleep = tid == 0 || os_thread_sleeps(tid);
		now.was_told = last->was_told && last->lwp == l;
		if (now.was_asleep && last->was_asleep && last->lwp == l &&
		    !is_to_be_told(l, &now))
			let_loose(vp);
	}
	*last = now;
}

static void look_at(struct marcel_vp *vp, struct look *last)
{
	uintptr_t owner = load_relaxed(&vp->owner);
	struct marcel_lwp *l = (struct marcel_lwp *)owner;
	struct marcel_thread *t;
	uint64_t progress;
	bool urgent;

	if (owner & (MARCEL_SECTION | MARCEL_REVOKING)) {
		look_at_section(vp, last);
		return;
	}
	t = load_relaxed(&l->self);
	urgent = !vp->sole && marcel_thread_is_urgent(t);
	if (unlikely(urgent && last->urgent > 0))
		marcel_runq_share(vp);
	last->urgent = urgent ? last->urgent + 1 : 0;
	if (unlikely(is_called(t)))
		call(l, t);
	progress = progress_of(vp);
	if (l != last->lwp || t != last->thread || progress != last->progress) {
		*last = (struct look){ .lwp = l,
				       .thread = t,
				       .progress = progress,
				       .urgent = last->urgent };
		if (marcel_runq_seems_ready(vp, MARCEL_BANDS) ||
		    load_relaxed(&marcel_hooks[MARCEL_HOOK_TICK].used) != 0)
			note_time(last, load_relaxed(&l->tid));
		return;
	}
	raise_low(l);
	help(vp, l, t, last);
}

/* A signal ends no sleep: it is taken after that, when somebody is awake. */
static bool is_adrift_called(struct marcel_lwp *l)
{
	struct marcel_thread *t = load_relaxed(&l->self);

	return marcel_cancel_is_due(t) ||
	       marcel_thread_has(t, MARCEL_F_MOVES) ||
	       (marcel_thread_has(t, MARCEL_F_SIGNAL) &&
		!os_thread_sleeps(load_relaxed(&l->tid)));
}

/*
 * A thread that was asleep unannounced, lost its VP and is awake again is to
 * wait for its turn as any other. Seen at two looks: it may just return. Or it
 * is to end where it computes, to take a signal or to move, and no VP need be
 * awake for that: whether there is one.
 */
static bool call_adrift(void)
{
	struct marcel_lwp *l = marcel_lwp_adrift(NULL);
	bool due, any = false;

	for (; l != NULL; l = marcel_lwp_adrift(l)) {
		due = is_adrift_called(l);
		any |= due;
		if ((due || l->was_adrift) &&
		    !os_thread_sleeps(load_relaxed(&l->tid)))
			tick(l);
		l->was_adrift = !l->was_adrift;
	}
	return any;
}

static bool is_one_adrift_called(void)
{
	struct marcel_lwp *l = marcel_lwp_adrift(NULL);

	while (l != NULL && !is_adrift_called(l))
		l = marcel_lwp_adrift(l);
	return l != NULL;
}

/* Whether a VP is awake, or a thread waits for LWP 0. */
static bool look_at_all(void)
{
	struct marcel_sched *s = &marcel_sched;
	bool any = false;

	for (int i = 0; i < s->nvp; i++) {
		if (load_relaxed(&s->vps[i].is_watched) == 0)
			continue;
		any = true;
		look_at(&s->vps[i], &monitor.looks[i]);
	}
	if (load_relaxed(&s->vps[0].nstuck) != 0) {
		any = true;
		call_first();
	}
	any |= call_adrift();
	judge_who_computes();
	store_relaxed(&marcel_monitor.looks,
		      load_relaxed(&marcel_monitor.looks) + 1);
	return any;
}

/* --- between two looks --- */

/* The LWP that drives vp, to run what is less urgent than real-time; or NULL.*/
static struct marcel_lwp *computes_less_urgent(struct marcel_vp *vp)
{
	uintptr_t owner = load_relaxed(&vp->owner);
	struct marcel_lwp *l = (struct marcel_lwp *)owner;
	struct marcel_thread *t;

	if (owner & (MARCEL_SECTION | MARCEL_REVOKING))
		return NULL;
	t = load_relaxed(&l->self);
	return t != &l->idle && t != load_relaxed(&l->makes_way) &&
			       !marcel_thread_is_urgent(t) &&
			       marcel_thread_is_preemptible(t)
		       ? l
		       : NULL;
}

static void hurry(void)
{
	/* No tick comes between: who is next finds 1 and wakes nobody. */
	cpu_tls_pin(1);
	/* order(hurry): what was pushed */
	if (xchg_release(&marcel_monitor.hurry, 1) == 0)
		os_futex_wake(&marcel_monitor.hurry, 1);
	cpu_tls_pin(-1);
}

BASE_COLD void marcel_monitor_urgent(const marcel_vpset_t *set)
{
	struct marcel_sched *s = &marcel_sched;

	if (s->slice_ns == 0)
		return; /* there is no monitor */
	for (int i = 0; i < s->nvp; i++)
		if ((set == NULL || marcel_vpset_has(set, i)) &&
		    computes_less_urgent(&s->vps[i]) != NULL) {
			hurry();
			return;
		}
}

/* Sleep so long, or until somebody is in a hurry: true. */
static bool sleep_unless_hurried(uint64_t ns)
{
	os_futex_wait_for(&marcel_monitor.hurry, 0, ns);
	/* order(hurry): we look next */
	return xchg_acquire(&marcel_monitor.hurry, 0) != 0;
}

static bool awaits_urgent(struct marcel_vp *vp)
{
	/* What is in its leaf may run nowhere else. */
	for (unsigned i = 0; i < vp->nabove; i++)
		if (marcel_levelq_has_for(vp->above[i], MARCEL_BAND_REALTIME,
					  i == 0 ? -1 : vp->id))
			return true;
	return false;
}

/* Who sleeps unannounced is the next slice's; a call of it would be ended. */
static void interrupt_early(struct marcel_lwp *l)
{
	pid_t tid = load_relaxed(&l->tid);

	if (tid == 0 || os_thread_sleeps(tid))
		return;
	monitor.quiet = 0; /* but who computes has not used up a slice */
	tick(l);
}

/*
 * As many VPs as real-time threads are ready, and those that nobody can stand
 * in for, beginning with another each time: one may not be interruptible now.
 */
static bool look_for_urgent(void)
{
	struct marcel_sched *s = &marcel_sched;
	uint64_t left = load_relaxed(&s->before_switch) / MARCEL_BEFORE_URGENT;
	struct marcel_lwp *l;
	struct marcel_vp *vp;
	bool any = false;

	if (left == 0)
		return false;
	if (marcel_lwp_may_provide())
		marcel_poller_want_lwp();
	for (int i = 0; i < s->nvp; i++) {
		vp = &s->vps[(monitor.first + (unsigned)i) % (unsigned)s->nvp];
		if (load_relaxed(&vp->is_watched) == 0 ||
		    (l = computes_less_urgent(vp)) == NULL ||
		    !awaits_urgent(vp))
			continue;
		any = true;
		if (left == 0 &&
		    !marcel_levelq_has(vp->above[0], MARCEL_BAND_REALTIME))
			continue;
		interrupt_early(l);
		left -= left != 0;
	}
	monitor.first++;
	store_relaxed(&marcel_monitor.early,
		      load_relaxed(&marcel_monitor.early) + 1);
	return any;
}

static void sleep_for_slice(void)
{
	uint64_t now = base_now_ns(), end = now + marcel_sched.slice_ns;
	uint64_t pause = marcel_sched.slice_ns;
	bool again = false;

	for (; now < end && load_relaxed(&monitor.stop) == 0;
	     now = base_now_ns()) {
		if (sleep_unless_hurried(pause < end - now ? pause : end - now))
			pause = AGAIN_NS;
		else if (again)
			pause *= 2;
		else
			continue;
		again = look_for_urgent();
		if (!again)
			pause = marcel_sched.slice_ns;
	}
}

static void sleep_with_vps(void)
{
	struct marcel_sched *s = &marcel_sched;

	/* order(monitor): we say that we sleep, then look who is up */
	store_seq(&marcel_monitor.asleep, 1);
	for (int i = 0; i < s->nvp; i++)
		/* order(monitor): with it, what waits there for LWP 0 */
		if (load_seq(&s->vps[i].is_watched) != 0 ||
		    load_relaxed(&s->vps[i].nstuck) != 0) {
			store_relaxed(&marcel_monitor.asleep, 0);
			return;
		}
	/* Who calls has a barrier run before it looks whether we sleep. */
	if (is_one_adrift_called())
		store_relaxed(&marcel_monitor.asleep, 0);
	while (load_relaxed(&marcel_monitor.asleep) != 0 &&
	       load_relaxed(&monitor.stop) == 0)
		os_futex_wait(&marcel_monitor.asleep, 1);
}

static void *monitor_main(void *arg)
{
	(void)arg;
	os_thread_no_signals();
	while (load_relaxed(&monitor.stop) == 0) {
		sleep_for_slice();
		if (!look_at_all())
			sleep_with_vps();
	}
	return NULL;
}

int marcel_monitor_init(void)
{
	monitor.looks = calloc((size_t)marcel_sched.nvp, sizeof(struct look));
	if (monitor.looks == NULL)
		return -ENOMEM;
	monitor.can_revoke = os_barrier_init();
	store_relaxed(&monitor.stop, 0);
	store_relaxed(&marcel_monitor.looks, 0);
	store_relaxed(&marcel_monitor.early, 0);
	store_relaxed(&marcel_monitor.ticks, 0);
	store_relaxed(&marcel_monitor.loosened, 0);
	store_relaxed(&marcel_monitor.asleep, 0);
	store_relaxed(&marcel_monitor.hurry, 0);
	if (marcel_poller_start() < 0 ||
	    os_thread_create(&monitor.thread, monitor_main, NULL) != 0) {
		free(monitor.looks);
		return -EAGAIN;
	}
	monitor.runs = true;
	return 0;
}

void marcel_monitor_exit(void)
{
	if (!monitor.runs)
		return;
	store_relaxed(&monitor.stop, 1);
	marcel_monitor_wake();
	hurry();
	pthread_join(monitor.thread, NULL);
	free(monitor.looks);
	monitor.runs = false;
	store_relaxed(&marcel_sched.some_compute, false);
}

void marcel_monitor_forked(void)
{
	marcel_san_ignore(monitor.looks);
	store_relaxed(&marcel_monitor.asleep, 0); /* nobody wakes it */
	store_relaxed(&marcel_sched.some_compute, false);
	monitor.runs = false;
}
