/*
 * The life of a virtual processor: its kernel thread, its idle loop.
 */
#include "vp.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <base/diag.h>
#include "../os/os.h"
#include "../thread/overflow.h"
#include "../thread/stack.h"
#include "hook.h"
#include "runq.h"
#include "switch.h"

__thread struct marcel_tls marcel_tls;

/* errno's place, by a declaration that does not promise a constant. */
extern int *marcel_os_errno(void) __asm__("__errno_location");

BASE_NOINLINE void marcel_vp_attach(struct marcel_vp *vp)
{
	marcel_tls.vp = vp;
	if (vp == NULL)
		return;
	vp->errno_addr = marcel_os_errno();
	marcel_san_shared(vp->errno_addr, sizeof(int));
}

BASE_PUBLIC BASE_NOINLINE int *marcel_errno_location(void)
{
	return marcel_os_errno();
}

/* --- idle --- */

enum {
	OVERSUBSCRIBED_YIELDS = 3, /* then sleep: others need this CPU */
	SPINS_PER_LOOK = 20,       /* cpu_relax() between two looks */
};

/*
 * Found while searching: the last searcher wakes the next for more, which may
 * also be work for hooks that was kicked while we were the only searcher.
 */
static void found(struct marcel_vp *vp)
{
	if (marcel_idle_found(&marcel_sched.idle) &&
	    (marcel_runq_look_shared() ||
	     marcel_hook_run(vp, MARCEL_HOOK_IDLE) != MARCEL_HOOK_NOTHING))
		marcel_runq_wake_one(vp);
}

/*
 * Nothing was found for long enough. Publish that, look at everything once
 * more, and sleep. True: we still are, or again, a searcher.
 */
static bool doze(struct marcel_vp *vp)
{
	marcel_idle_doze(&marcel_sched.idle, &vp->sleeper);
	if (marcel_runq_look(vp) || load_seq(&vp->stop) || /* order(idle) */
	    marcel_hook_run(vp, MARCEL_HOOK_IDLE) != MARCEL_HOOK_NOTHING)
		return marcel_idle_undoze(&marcel_sched.idle, &vp->sleeper);
	return marcel_idle_sleep(&vp->sleeper);
}

/* Between two looks. While hooks poll, each look may bring a message. */
static void pause_search(enum marcel_hook_answer answer)
{
	int spins = answer == MARCEL_HOOK_PENDING ? 1 : SPINS_PER_LOOK;

	if (marcel_sched.oversubscribed) {
		sched_yield();
		return;
	}
	for (int i = 0; i < spins; i++)
		cpu_relax();
}

/* The VP counts as a searcher. Until a thread can run here; NULL: stop. */
static struct marcel_thread *search_on(struct marcel_vp *vp)
{
	enum marcel_hook_answer answer;
	struct marcel_thread *t;
	uint64_t since = 0;
	unsigned tries = 0;

	for (;;) {
		t = marcel_runq_pick(vp);
		if (t == NULL)
			t = marcel_runq_steal(vp);
		if (t != NULL || load_relaxed(&vp->stop)) {
			found(vp);
			return t;
		}
		answer = marcel_hook_run(vp, MARCEL_HOOK_IDLE);
		if (answer == MARCEL_HOOK_WORKED) {
			tries = 0;
			continue;
		}
		if (tries++ == 0)
			since = base_now_ns();
		if (marcel_sched.oversubscribed
			    ? tries <= OVERSUBSCRIBED_YIELDS
			    : base_now_ns() - since < marcel_sched.spin_ns) {
			pause_search(answer);
		} else if (answer == MARCEL_HOOK_PENDING) {
			sched_yield();
		} else {
			if (!doze(vp))
				marcel_idle_search(&marcel_sched.idle);
			tries = 0;
		}
	}
}

static struct marcel_thread *search(struct marcel_vp *vp)
{
	marcel_idle_search(&marcel_sched.idle);
	return search_on(vp);
}

void marcel_vp_idle(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	for (;;) {
		t = marcel_runq_pick(vp);
		if (t == NULL)
			t = search(vp);
		if (t == NULL)
			return;
		if (load_relaxed(&t->state) == MARCEL_T_NEW &&
		    unlikely(!marcel_switch_equip(vp, t))) {
			sched_yield();
			continue;
		}
		marcel_switch(vp, &vp->idle, t);
	}
}

/* --- its kernel thread --- */

static void *lwp_main(void *arg)
{
	struct marcel_vp *vp = arg;
	void *altstack = marcel_overflow_lwp_init();

	if (marcel_sched.bind)
		os_cpu_bind(vp->cpu);
	os_stack_bounds(&vp->idle_rest.stack_low, &vp->idle_rest.stack_bytes);
	marcel_san_adopt(&vp->idle);
	marcel_vp_attach(vp);
	marcel_san_enter();
	marcel_vp_idle(vp);
	marcel_san_leave();
	marcel_vp_attach(NULL);
	marcel_overflow_lwp_exit(altstack);
	return NULL;
}

int marcel_vp_start(struct marcel_vp *vp)
{
	return -os_thread_create(&vp->lwp, lwp_main, vp);
}

void marcel_vp_stop(struct marcel_vp *vp)
{
	store_seq(&vp->stop, 1); /* order(idle) */
	marcel_idle_wake(&marcel_sched.idle, &vp->sleeper, true);
	pthread_join(vp->lwp, NULL);
}

/* --- init, exit --- */

enum { DEQUE_SIZE = 1 << 10 };

static void init_above(struct marcel_vp *vp)
{
	struct marcel_topo *topo = &marcel_sched.topo;
	struct marcel_level *l = marcel_topo_leaf(topo, vp->id);

	if (l->parent != NULL)
		l = l->parent; /* the leaf's own queue is `bound` */
	for (; l != NULL; l = l->parent) {
		unsigned n = marcel_topo_number(topo, l);

		base_check(vp->nabove < MARCEL_ABOVE_MAX);
		vp->above[vp->nabove++] = &marcel_sched.levelqs[n];
	}
}

int marcel_vp_init(struct marcel_vp *vp, int id)
{
	memset(vp, 0, sizeof(*vp));
	vp->id = id;
	vp->sole = marcel_sched.nvp == 1;
	vp->fair_countdown = MARCEL_PICKS_FAIR;
	base_list_init(&vp->bound);
	base_mpsc_init(&vp->remote);
	vp->idle.home = (int16_t)id;
	vp->idle.rest = &vp->idle_rest;
	store_relaxed(&vp->current, &vp->idle);
	store_relaxed(&vp->idle.state, MARCEL_T_RUNNING);
	marcel_thread_name(&vp->idle, "idle");
	init_above(vp);
	vp->victims = calloc((size_t)marcel_sched.nvp, sizeof(*vp->victims));
	if (vp->victims == NULL ||
	    marcel_deque_init(&vp->fifo, DEQUE_SIZE) < 0 ||
	    marcel_deque_init(&vp->seeds, DEQUE_SIZE) < 0) {
		marcel_vp_exit(vp);
		return -ENOMEM;
	}
	for (int i = 0; i < marcel_sched.nvp - 1; i++) {
		int n = marcel_topo_neighbour(&marcel_sched.topo, id, i);

		vp->victims[i] = &marcel_sched.vps[n];
	}
	return 0;
}

void marcel_vp_exit(struct marcel_vp *vp)
{
	marcel_deque_exit(&vp->fifo);
	marcel_deque_exit(&vp->seeds);
	free(vp->victims);
	vp->victims = NULL;
}
