/*
 * The life of an ltask, as its owner sees it. The states are drawn in
 * <pioman/ltask.h>; what a queue does with it is in queue.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <base/diag.h>
#include <base/pin.h>

#include <marcel/marcel.h>

#include <pioman/pioman.h>

#include "../io/blocking.h"
#include "../point/pthread.h"
#include "../state.h"
#include "../wait/wait.h"
#include "poll.h"
#include "tree.h"

_Static_assert(sizeof(struct piom_task) <= sizeof(struct piom_ltask),
	       "the public struct has no room for the task");
_Static_assert(_Alignof(struct piom_task) <= _Alignof(struct piom_ltask),
	       "the public struct is not aligned as the task");

/* Those that users may give. */
enum { PUBLIC = PIOM_LTASK_REPEAT | PIOM_LTASK_NOWAIT };

/* The same memory, as the users know it and as it is. */
static struct piom_task *task_of(const struct piom_ltask *t)
{
	return (struct piom_task *)t;
}

BASE_PUBLIC void piom_ltask_init(struct piom_ltask *ltask, piom_ltask_fn fn,
				 void *arg, unsigned options,
				 const marcel_vpset_t *set)
{
	struct piom_task *t = task_of(ltask);

	if (unlikely(fn == NULL))
		base_fatal("pioman", "an ltask was given no function");
	if (unlikely((options & ~(unsigned)PUBLIC) != 0))
		base_fatal("pioman",
			   "an ltask was given options 0x%x: 0x%x mean nothing",
			   options, options & ~(unsigned)PUBLIC);
	memset(t, 0, sizeof(*t));
	base_link_init(&t->link);
	t->fn = fn;
	t->arg = arg;
	t->options = (uint8_t)options;
	if (set != NULL) {
		t->options |= PIOM_TASK_HAS_SET;
		t->set = *set;
	}
	store_relaxed(&t->state, PIOM_STATE_IDLE);
}

/* Whether somebody can wait for it. */
static int check_fd(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -EBADF;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
		return -EPERM;
	return 0;
}

BASE_PUBLIC int piom_ltask_set_blocking(struct piom_ltask *ltask,
					const struct piom_blocking *how)
{
	struct piom_task *t = task_of(ltask);
	int rc;

	if (!(t->options & PIOM_LTASK_REPEAT) ||
	    t->options & (PIOM_LTASK_NOWAIT | PIOM_TASK_HAS_SET) ||
	    (how->wait != NULL) != (how->wake != NULL) ||
	    (how->wait != NULL && (how->fd != -1 || how->arm == NULL)))
		return -EINVAL;
	rc = how->wait != NULL ? 0 : check_fd(how->fd);
	if (rc < 0)
		return rc;
	t->waits = (struct piom_waits){
		.fd = how->fd,
		.wait = how->wait,
		.wake = how->wake,
		.arm = how->arm,
		.unasked = how->unasked,
		.delay_ns = how->delay_ns,
	};
	t->options |= PIOM_TASK_BLOCKING;
	return 0;
}

/*
 * Whether some VPs of the level may not run it. Where kernel threads poll, they
 * do so for whole packages.
 */
static bool is_picky(const struct piom_task *t, const struct marcel_level *l)
{
	bool picky = false;

	for (int i = 0; i < MARCEL_VPSET_WORDS; i++)
		picky |= (l->vps.bits[i] & ~t->set.bits[i]) != 0;
	return picky && piom.engine != PIOM_ENGINE_PTHREAD;
}

/*
 * Whether that is a state to submit from. One that is NOWAIT and REPEAT has no
 * other than SUBMITTED, however often it has ended.
 */
static BASE_COLD void check_state(struct piom_task *t, uint16_t state)
{
	if ((state & PIOM_STATE_BITS) != PIOM_STATE_SUBMITTED &&
	    state != PIOM_STATE_CANCELLING)
		base_fatal("pioman", "an ltask was submitted that was never "
				     "initialised");
	if ((t->options & PUBLIC) != PUBLIC)
		base_fatal("pioman",
			   "an ltask was submitted twice: the function at %p",
			   (void *)(uintptr_t)t->fn);
}

static bool is_submitted(uint16_t state)
{
	return (state & PIOM_STATE_BITS) == PIOM_STATE_SUBMITTED;
}

/* Find the task's queue: once in a run of pioman, since levels stay. */
static BASE_COLD void place(struct piom_task *t)
{
	struct piom_queue *q = piom_tree_machine();

	if (q == NULL)
		base_fatal("pioman", "an ltask was submitted before "
				     "piom_init() or after piom_exit()");
	t->picky = false;
	if (t->options & PIOM_TASK_HAS_SET) {
		q = piom_tree_cover(&t->set);
		if (q == NULL)
			base_fatal("pioman", "an ltask was submitted that no "
					     "VP of this process may run");
		t->picky = is_picky(t, q->level);
	}
	if (t->picky)
		store_relaxed(&q->is_picky, true);
	t->queue = q;
	t->start = piom.start;
}

/* Who polls there does not sleep: a VP of the level, or those of the set. */
static void wake_pollers(const struct piom_queue *q, const marcel_vpset_t *set)
{
	if (piom.engine == PIOM_ENGINE_PTHREAD)
		piom_point_pthread_kick(q->level);
	if (piom.engine != PIOM_ENGINE_MARCEL)
		return;
	if (likely(set == NULL)) {
		marcel_kick(q->level);
		return;
	}
	for (int vp = 0; vp < marcel_nvp(); vp++)
		if (marcel_vpset_has(set, vp))
			marcel_kick(marcel_topo_vp(vp));
}

BASE_PUBLIC void piom_ltask_submit(struct piom_ltask *ltask)
{
	struct piom_task *t = task_of(ltask);
	uint16_t state = load_relaxed(&t->state);
	struct piom_queue *q;
	marcel_vpset_t set;
	bool picky;

	if (unlikely(state != PIOM_STATE_IDLE && state != PIOM_STATE_DONE &&
		     state != PIOM_STATE_CANCELLED))
		check_state(t, state);
	if (unlikely(t->queue == NULL || t->start != piom.start))
		place(t);
	q = t->queue;
	picky = t->picky;
	if (unlikely(picky)) {
		set = t->set;
		t->wanted = true;
	}
	if (unlikely(t->options & PIOM_TASK_BLOCKING))
		piom_blocking_begin(t);
	piom_cond_init(&t->done);
	store_relaxed(&t->state, PIOM_STATE_SUBMITTED);
	/* --- committed: it may run, and be gone, after the push --- */
	piom_queue_submit(q, t);
	wake_pollers(q, unlikely(picky) ? &set : NULL);
}

BASE_PUBLIC void piom_ltask_kick(struct piom_ltask *ltask)
{
	struct piom_task *t = task_of(ltask);

	if (unlikely(t->queue == NULL))
		return; /* never submitted: its first run will look */
	piom_queue_kick(t->queue);
	wake_pollers(t->queue, unlikely(t->picky) ? &t->set : NULL);
}

BASE_PUBLIC int piom_ltask_test(const struct piom_ltask *t)
{
	return piom_cond_test(&task_of(t)->done);
}

BASE_PUBLIC void piom_ltask_wait(struct piom_ltask *t)
{
	if (!piom_ltask_test(t))
		base_handler_check("pioman", "piom_ltask_wait()");
	piom_cond_wait(&task_of(t)->done);
}

BASE_PUBLIC int piom_ltask_wait_until(struct piom_ltask *t, uint64_t ns)
{
	if (!piom_ltask_test(t))
		base_handler_check("pioman", "piom_ltask_wait_until()");
	return piom_cond_wait_until(&task_of(t)->done, ns);
}

/* It is over for somebody who tried to cancel it. */
static int cancelled(struct piom_task *t)
{
	return load_relaxed(&t->state) == PIOM_STATE_CANCELLED ? 0 : -EALREADY;
}

/* It is no more: its owner may have the memory when we return. */
static int over(struct piom_task *t, uint16_t state)
{
	/* Who made it DONE, or cancels it, may be about to signal: not if that
	 * is after its own run, from which we are called. */
	if (state != PIOM_STATE_IDLE && !(t->options & PIOM_LTASK_NOWAIT) &&
	    !piom_queue_is_ours(t->queue))
		while (!piom_cond_test(&t->done))
			piom_wait_relax();
	return -EALREADY;
}

BASE_PUBLIC int piom_ltask_cancel(struct piom_ltask *ltask)
{
	struct piom_task *t = task_of(ltask);
	uint16_t state = PIOM_STATE_SUBMITTED;
	bool met = false;

	base_handler_check("pioman", "piom_ltask_cancel()");
	/* However often it is masked. */
	while (!cas_weak_relaxed(&t->state, &state, PIOM_STATE_CANCELLING))
		if (!is_submitted(state))
			return over(t, state);
	/* Either we throw it out, or who holds the queue does; and if it is
	 * exported its end is not yet ours. */
	while (!piom_cond_test(&t->done)) {
		if (met || !piom_queue_meet(t->queue, t)) {
			piom_wait_relax();
			continue;
		}
		met = true;
		wake_pollers(t->queue, NULL);
	}
	return cancelled(t);
}

/* --- masks --- */

/* Until it does not run. */
static void wait_for_run(struct piom_task *t)
{
	/* order(mask): its runs */
	while (!(load_acquire(&t->state) & PIOM_STATE_MET) &&
	       !piom_cond_test(&t->done)) {
		if (piom_queue_meet(t->queue, t)) {
			wake_pollers(t->queue, NULL);
			return;
		}
		piom_wait_relax();
	}
}

BASE_PUBLIC int piom_ltask_mask(struct piom_ltask *ltask)
{
	struct piom_task *t = task_of(ltask);
	uint16_t state = load_relaxed(&t->state);

	do {
		if (!is_submitted(state))
			return over(t, state);
		base_check(state < PIOM_STATE_MASKS);
	} while (!cas_weak_relaxed(&t->state, &state, state + PIOM_STATE_MASK));
	if (piom_queue_is_ours(t->queue))
		return 0; /* we are in its run, or in no hurry */
	base_handler_check("pioman", "piom_ltask_mask()");
	wait_for_run(t);
	return is_submitted(load_relaxed(&t->state)) ? 0 : -EALREADY;
}

BASE_PUBLIC void piom_ltask_unmask(struct piom_ltask *ltask)
{
	struct piom_task *t = task_of(ltask);
	struct piom_queue *q = t->queue;
	marcel_vpset_t set = t->set;
	bool picky = t->picky;
	uint16_t state = load_relaxed(&t->state), to;

	do {
		if (!is_submitted(state))
			return;
		if (state < PIOM_STATE_MASK)
			base_fatal("pioman",
				   "an ltask was unmasked that is not masked: "
				   "the function at %p",
				   (void *)(uintptr_t)t->fn);
		to = (uint16_t)(state - PIOM_STATE_MASK);
		if (to < PIOM_STATE_MASK)
			to = PIOM_STATE_SUBMITTED;
		/* order(mask): what was done before, for the next run */
	} while (!cas_weak_release(&t->state, &state, to));
	if (to != PIOM_STATE_SUBMITTED)
		return;
	/* --- committed: it may run, and be gone --- */
	piom_queue_kick(q);
	wake_pollers(q, picky ? &set : NULL);
}
