/*
 * Running a queue: hold it, move submissions in, run every ltask once, let go,
 * look again.
 */
#include "queue.h"

#include <string.h>

#include <base/clock.h>
#include <base/diag.h>
#include <base/pin.h>
#include <base/trace.h>

#include <pioman/pioman.h>

#include "../io/blocking.h"
#include "../io/patience.h"
#include "../point/timer.h"
#include "../state.h"

/* Submissions that come while we run are served so often before we leave. */
enum { ROUNDS = 8 };

/* What a pass over the list found. */
struct pass {
	int worked;
	uint32_t runs, hits;
	enum piom_point point;
	uint32_t held;    /* how: HELD, and MINDED by the watcher */
	uint64_t vain_ns; /* as in piom_queue_run_slow() */
	bool pending;     /* somebody wants to be asked again */
	bool kicked;      /* since all were last asked */
};

void piom_queue_init(struct piom_queue *q, struct piom_queue *parent,
		     struct marcel_level *level)
{
	base_mpsc_init(&q->submitted);
	store_relaxed(&q->word, 0);
	store_relaxed(&q->length, 0);
	q->kicks = 0;
	base_list_init(&q->list);
	q->parent = parent;
	q->level = level;
	q->looked = 0;
	q->siblings = level->parent != NULL ? level->parent->nchildren : 1;
	store_relaxed(&q->is_picky, false);
	store_relaxed(&q->rounds, 0);
	store_relaxed(&q->running, NULL);
	memset(&q->stats, 0, sizeof(q->stats));
}

void piom_queue_submit(struct piom_queue *q, struct piom_task *t)
{
	/* The push comes before the looks at the word and for sleepers:
	 * order(queue), order(idle). */
	base_mpsc_push_seq(&q->submitted, &t->node);
	piom_point_timer_kick();
}

/* --- holding --- */

/* The word while it is held by who found it so: calls are his. */
static uint32_t as_held(uint32_t w, uint32_t held)
{
	return (w & ~(uint32_t)PIOM_QUEUE_CALLED) | held;
}

/* True if it is now ours; *out is the word as it was. */
static bool hold(struct piom_queue *q, uint32_t held, uint32_t *out)
{
	uint32_t w = load_seq(&q->word); /* order(queue) */
	const void *outer = base_pin_handler(&q->running);

	do
		if (w & PIOM_QUEUE_HELD) {
			base_unpin_handler(outer);
			if (unlikely(outer == &q->running)) /* it is we */
				base_handler_check("pioman", "piom_poll()");
			return false;
		}
	while (!cas_weak_acquire(&q->word, &w, /* order(hold), order(ltask) */
				 as_held(w, held)));
	q->outer = outer;
	*out = w;
	return true;
}

/*
 * Let go; w is the word as hold() found it. If it has changed somebody has
 * kicked, perhaps after we ran the task he meant: PENDING stays. True: we have
 * been called, and so is who holds it next.
 */
static bool let_go(struct piom_queue *q, uint32_t held, uint32_t w,
		   bool pending)
{
	uint32_t was = as_held(w, held), seen = was;
	uint32_t to = w & ~(uint32_t)(PIOM_QUEUE_PENDING | PIOM_QUEUE_CALLED);
	const void *outer = q->outer;

	if (pending)
		to |= PIOM_QUEUE_PENDING;
	/* order(hold), order(queue), order(idle) */
	while (!cas_weak_seq(&q->word, &seen, to))
		if (seen != was)
			to = (seen & ~(uint32_t)(PIOM_QUEUE_HELD |
						 PIOM_QUEUE_MINDED)) |
			     PIOM_QUEUE_PENDING;
	base_unpin_handler(outer);
	return seen & PIOM_QUEUE_CALLED;
}

static void kick(struct piom_queue *q, uint32_t how)
{
	uint32_t w = load_relaxed(&q->word);

	/* order(ltask): the work; order(idle): before the look for sleepers */
	while (!cas_weak_seq(&q->word, &w, (w + PIOM_QUEUE_KICK) | how))
		;
	piom_point_timer_kick();
}

void piom_queue_kick(struct piom_queue *q)
{
	kick(q, PIOM_QUEUE_PENDING);
}

void piom_queue_call(struct piom_queue *q)
{
	kick(q, PIOM_QUEUE_PENDING | PIOM_QUEUE_CALLED);
}

/* --- the pass; the queue is held --- */

/* Append the submissions to a list; how many. */
static uint32_t integrate_held(struct piom_queue *q, struct base_list *to)
{
	uint32_t n = 0;

	base_mpsc_for_each (node, base_mpsc_take(&q->submitted)) {
		struct piom_task *t =
			container_of(node, struct piom_task, node);

		base_list_push_back(to, &t->link);
		n++;
	}
	return n;
}

/* The task's last state; its owner may free it at once. */
static void finish(struct piom_task *t, enum piom_state state)
{
	store_relaxed(&t->state, state); /* visible by the signal */
	if (likely(!(t->options & PIOM_TASK_BLOCKING)) ||
	    piom_blocking_leave(t))
		piom_cond_signal(&t->done);
}

/*
 * A task of the queue that is not to be run: false if it was being cancelled,
 * and is gone.
 */
static BASE_NOINLINE bool stays_held(struct piom_task *t)
{
	uint16_t w = load_relaxed(&t->state);

	if (w == PIOM_STATE_CANCELLING) {
		finish(t, PIOM_STATE_CANCELLED);
		return false;
	}
	if (unlikely((w & PIOM_STATE_BITS) != PIOM_STATE_SUBMITTED))
		base_fatal("pioman",
			   "an ltask was changed while it was submitted: "
			   "the function at %p",
			   (void *)(uintptr_t)t->fn);
	/* order(mask): its runs. If it has changed, the masker sees to it. */
	if (w & PIOM_STATE_MASKS)
		cas_release(&t->state, &w, w | PIOM_STATE_MET);
	return true;
}

/* Whether the task wants to be asked again soon. */
static bool wants_more(struct piom_task *t, enum piom_ltask_result result,
		       const struct pass *pass)
{
	bool may_block = t->options & PIOM_TASK_BLOCKING;

	if (result == PIOM_LTASK_QUIET &&
	    (!may_block || !t->waits.unasked || t->waits.unarmable ||
	     piom.mode == PIOM_MODE_POLL))
		return false;
	if (likely(!may_block) || result == PIOM_LTASK_WORKED)
		return true;
	return !piom_blocking_is_armed(t) &&
	       !piom_blocking_arm(t, pass->vain_ns);
}

/* A run has found something; t may be gone. */
static BASE_COLD void trace_run(piom_ltask_fn fn, const struct piom_task *t,
				enum piom_point point, uint64_t began)
{
	uint64_t took = marcel_trace_now() - began;

	marcel_trace_more(MARCEL_TRACE_LTASK,
			  took < UINT32_MAX ? (uint32_t)took : UINT32_MAX,
			  (uintptr_t)fn, (uint32_t)point, 0, (uintptr_t)t);
}

/* Run a task that is on no list; true if it goes back to the main list. */
static bool run_held(struct piom_queue *q, struct piom_task *t,
		     struct pass *pass)
{
	unsigned options = t->options;
	enum piom_ltask_result result;
	piom_ltask_fn fn = t->fn;
	uint64_t due = 0, began = 0;

	if (unlikely(options & PIOM_TASK_BLOCKING))
		due = load_relaxed(&t->waits.due);
	/* From here a NOWAIT task may be gone when its function returns. */
	if ((options & PIOM_LTASK_NOWAIT) && !(options & PIOM_LTASK_REPEAT))
		store_relaxed(&t->state, PIOM_STATE_DONE);
	if (marcel_trace_is_on())
		began = marcel_trace_now();
	store_relaxed(&q->running, fn);
	result = fn(t->arg);
	store_relaxed(&q->running, NULL);
	if (unlikely(began != 0) &&
	    (result == PIOM_LTASK_DONE || result == PIOM_LTASK_WORKED))
		trace_run(fn, t, pass->point, began);
	pass->runs++;
	if (unlikely(options & PIOM_TASK_BLOCKING) &&
	    (result == PIOM_LTASK_DONE || result == PIOM_LTASK_WORKED))
		piom_patience_learn(t, pass->vain_ns, due);
	if (!(options & PIOM_LTASK_REPEAT) || result == PIOM_LTASK_DONE) {
		pass->hits++;
		if (!(options & PIOM_LTASK_NOWAIT))
			finish(t, PIOM_STATE_DONE);
		return false;
	}
	pass->hits += result == PIOM_LTASK_WORKED;
	pass->pending |= wants_more(t, result, pass);
	if (unlikely(t->picky))
		t->wanted = result != PIOM_LTASK_QUIET;
	return true;
}

/* A task that is left to other VPs: its last answer stands, until a kick. */
static void pass_over(struct piom_task *t, struct pass *pass)
{
	t->wanted |= pass->kicked;
	pass->pending |= t->wanted;
}

static bool may_run(const struct piom_task *t, int vp)
{
	return likely(!t->picky) || (vp >= 0 && marcel_vpset_has(&t->set, vp));
}

/* Ask every task of `batch` once; how many have gone back to the main list. */
static uint32_t pass_held(struct piom_queue *q, int vp, struct base_list *batch,
			  struct pass *pass)
{
	struct base_link *link;
	uint32_t stayed = 0;

	while ((link = base_list_take_front(batch)) != NULL) {
		struct piom_task *t =
			container_of(link, struct piom_task, link);

		/* order(mask): what was done before it was unmasked */
		if (unlikely(load_acquire(&t->state) != PIOM_STATE_SUBMITTED)) {
			if (!stays_held(t))
				continue;
		} else if (unlikely(!may_run(t, vp))) {
			pass_over(t, pass);
		} else if (!run_held(q, t, pass)) {
			continue;
		}
		base_list_push_back(&q->list, link);
		stayed++;
	}
	return stayed;
}

/* The clock as a pass begins and ends, if anybody wants to know. */
static uint64_t time_held(void)
{
	return unlikely(piom.stats) ? base_now_ns() : 0;
}

static BASE_COLD void count_time_held(struct piom_queue_stats *s,
				      uint64_t start, bool pending)
{
	uint64_t end = base_now_ns();

	piom_stats_add(&s->took_ns, end - start);
	if (s->left_at != 0 && start - s->left_at > load_relaxed(&s->gap_ns))
		store_relaxed(&s->gap_ns, start - s->left_at);
	s->left_at = pending ? end : 0;
}

/* What the pass has done. */
static void count_held(struct piom_queue *q, struct pass *pass, uint64_t start)
{
	struct piom_queue_stats *s = &q->stats;

	piom_stats_add(&s->passes[pass->point], 1);
	piom_stats_add(&s->polls, pass->runs);
	if (pass->hits != 0)
		piom_stats_add(&s->hits, pass->hits);
	pass->worked += (int)pass->hits;
	pass->runs = 0;
	pass->hits = 0;
	if (unlikely(start != 0))
		count_time_held(s, start, pass->pending);
}

enum turn { TURN_NONE, TURN_OVER, TURN_CALLED };

/*
 * Who asks in passing may not come back soon: if he has been called, and no VP
 * polls, he has ltasks armed as the watcher would, who goes on.
 */
static void heed_call(struct pass *pass)
{
	if (pass->vain_ns == PIOM_PASSING && !piom_any_idle())
		pass->vain_ns = PIOM_TICK;
}

/* Hold the queue for one pass, if nobody else does. */
static enum turn run_once(struct piom_queue *q, int vp, bool all,
			  struct pass *pass)
{
	struct base_list batch;
	uint32_t w, length;
	uint64_t start;
	bool called;

	if (!hold(q, pass->held, &w))
		return TURN_NONE;
	start = time_held();
	base_list_init(&batch);
	length = load_relaxed(&q->length);
	if (unlikely(w & PIOM_QUEUE_CALLED)) {
		heed_call(pass);
		all = true;
	}
	if (all) {
		pass->pending = false;
		pass->kicked = w / PIOM_QUEUE_KICK != q->kicks;
		q->kicks = w / PIOM_QUEUE_KICK;
		base_list_splice_back(&batch, &q->list);
		length = 0;
	} else {
		/* They were asked, but perhaps kicked since. */
		pass->pending |= length > 0 && (w & PIOM_QUEUE_PENDING);
	}
	integrate_held(q, &batch);
	length += pass_held(q, vp, &batch, pass);
	store_relaxed(&q->length, length);
	count_held(q, pass, start);
	called = let_go(q, pass->held, w, pass->pending);
	if (pass->pending && !(w & PIOM_QUEUE_PENDING))
		piom_point_timer_kick();
	return called ? TURN_CALLED : TURN_OVER;
}

int piom_queue_run_slow(struct piom_queue *q, int vp, uint64_t vain_ns,
			enum piom_point point)
{
	struct pass pass = { .vain_ns = vain_ns,
			     .point = point,
			     .held = PIOM_QUEUE_HELD };
	enum turn turn;

	if (point == PIOM_POINT_WATCHER)
		pass.held |= PIOM_QUEUE_MINDED;
	/* The first round asks all, the others only what came meanwhile. */
	for (int round = 0; round < ROUNDS; round++) {
		turn = run_once(q, vp, round == 0, &pass);
		if (turn == TURN_NONE) {
			if (round == 0)
				piom_stats_skip(vp);
			break;
		}
		if (turn == TURN_OVER &&
		    load_seq(&q->submitted.top) == NULL) /* order(queue) */
			break;
	}
	return pass.worked;
}

bool piom_queue_is_ours(const struct piom_queue *q)
{
	const void *handler = base_pin_handler(NULL);

	base_unpin_handler(handler);
	return handler == &q->running;
}

/* We have asked nobody; w is the word as it was found. The watcher may have
 * found the queue held: he is to come again. */
static void ring_if_called(bool called, uint32_t w)
{
	if (unlikely(called || (w & PIOM_QUEUE_CALLED)))
		piom_blocking_ring();
}

bool piom_queue_meet(struct piom_queue *q, struct piom_task *t)
{
	uint32_t w, fresh, length;
	bool called;

	if (!hold(q, PIOM_QUEUE_HELD, &w))
		return false;
	fresh = integrate_held(q, &q->list);
	length = load_relaxed(&q->length) + fresh;
	/* Not yet, if its submitter has yet to push it. */
	if (base_link_is_on(&t->link) &&
	    load_relaxed(&t->state) != PIOM_STATE_SUBMITTED) {
		base_list_remove(&t->link);
		if (stays_held(t))
			base_list_push_back(&q->list, &t->link);
		else
			length--;
	}
	store_relaxed(&q->length, length);
	called = let_go(q, PIOM_QUEUE_HELD, w,
			fresh > 0 || (w & PIOM_QUEUE_PENDING));
	ring_if_called(called, w);
	return true;
}

bool piom_queue_walk(struct piom_queue *q,
		     void (*fn)(struct piom_task *t, void *arg), void *arg)
{
	uint32_t w;
	bool called;

	if (!hold(q, PIOM_QUEUE_HELD, &w))
		return false;
	base_list_for_each (link, &q->list)
		fn(container_of(link, struct piom_task, link), arg);
	called = let_go(q, PIOM_QUEUE_HELD, w, w & PIOM_QUEUE_PENDING);
	ring_if_called(called, w);
	return true;
}
