/*
 * The tables behind <marcel/hook.h>, and the kick.
 *
 * A VP that runs hooks says so in `hooking`, odd meanwhile, and then loads the
 * slots; who removes a hook empties its slot and then looks at every VP. This
 * is a store-load race, order(hook): one of the two sees the other, so the
 * remover waits for a VP that may still be in the hook. What a thread did in a
 * hook there, the next one to run hooks there has behind it, and so the remover
 * that waits for that one: by the order in which threads have the VP, which
 * TSan is told here.
 */
#include "hook.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <marcel/marcel.h>
#include "runq.h"
#include "sanitizer.h"
#include "tasklet.h"

struct marcel_hook_table marcel_hooks[MARCEL_HOOK_POINTS];

struct base_spin marcel_hook_lock = BASE_SPIN_INIT(BASE_RANK_LEAF);

static struct marcel_hooking asking; /* the monitor */

enum marcel_hook_answer marcel_hook_run(struct marcel_vp *vp,
					enum marcel_hook_point point)
{
	struct marcel_hook_table *table = &marcel_hooks[point];
	enum marcel_hook_answer answer, highest = MARCEL_HOOK_NOTHING;
	unsigned used = load_seq(&table->used); /* order(idle) */
	uint32_t seq = load_relaxed(&vp->hooking.seq);
	struct marcel_hook *hook;
	const void *outer;
	int saved;

	if (used == 0 || (seq & 1) != 0)
		return MARCEL_HOOK_NOTHING;
	saved = *vp->errno_addr;
	marcel_san_acquire(&vp->hooking.seq);
	store_seq(&vp->hooking.seq, seq + 1); /* order(hook) */
	for (unsigned i = 0; i < used; i++) {
		hook = load_seq(&table->slot[i]); /* order(hook) */
		if (hook == NULL)
			continue;
		outer = base_pin_handler(&hook->fn);
		answer = hook->fn(hook->arg, vp->id);
		base_unpin_handler(outer);
		if (answer > highest)
			highest = answer;
	}
	store_release(&vp->hooking.seq,
		      seq + 2); /* order(hook): no hook runs */
	*vp->errno_addr = saved;
	return highest;
}

void marcel_hook_switch_slow(struct marcel_vp *vp)
{
	if (marcel_tasklets_are_pending(vp))
		marcel_tasklets_run(vp);
	if (load_relaxed(&marcel_sched.before_switch) & MARCEL_BEFORE_HOOKS)
		marcel_hook_run(vp, MARCEL_HOOK_SWITCH);
	marcel_san_enter();
	marcel_runq_attend(vp);
	marcel_san_leave();
}

BASE_COLD void marcel_hook_refuse(struct marcel_vp *vp, const char *why)
{
	struct marcel_thread *t = marcel_vp_current(vp);

	if (why == NULL)
		why = marcel_waits_name(marcel_thread_waits_for(t));
	base_handler_check("marcel", why);
	__builtin_unreachable();
}

/*
 * Who added them counts on threads, messages and VPs that are not in a child;
 * and who asked one is not there either.
 */
void marcel_hook_forked(void)
{
	memset(marcel_hooks, 0, sizeof(marcel_hooks));
	store_relaxed(&asking.seq, 0);
	store_relaxed(&marcel_sched.before_switch, 0);
}

static bool is_point(enum marcel_hook_point point)
{
	return (unsigned)point < MARCEL_HOOK_POINTS;
}

BASE_PUBLIC int marcel_hook_add(enum marcel_hook_point point,
				struct marcel_hook *hook)
{
	struct marcel_hook_table *table;
	unsigned i = 0;

	if (!is_point(point) || hook == NULL || hook->fn == NULL)
		return -EINVAL;
	table = &marcel_hooks[point];
	base_spin_lock(&marcel_hook_lock);
	while (i < MARCEL_HOOKS_MAX && load_relaxed(&table->slot[i]) != NULL)
		i++;
	if (i == MARCEL_HOOKS_MAX) {
		base_spin_unlock(&marcel_hook_lock);
		return -ENOSPC;
	}
	store_seq(&table->slot[i], hook); /* order(hook): *hook */
	if (i >= load_relaxed(&table->used))
		store_seq(&table->used, i + 1); /* order(idle) */
	if (point == MARCEL_HOOK_SWITCH)
		fetch_or_relaxed(&marcel_sched.before_switch,
				 MARCEL_BEFORE_HOOKS);
	base_spin_unlock(&marcel_hook_lock);
	/* A VP that sleeps may have to poll from now on. */
	if (marcel_is_running() && marcel_idle_wanted(&marcel_sched.idle))
		marcel_runq_wake_one(NULL);
	return 0;
}

/* Whether a hook of this point wants to be run there; if it does not say so. */
static bool ask(struct marcel_hooking *h, enum marcel_hook_point point, int vp,
		bool silent)
{
	struct marcel_hook_table *table = &marcel_hooks[point];
	unsigned used = load_relaxed(&table->used);
	uint32_t seq = load_relaxed(&h->seq);
	struct marcel_hook *hook;
	bool wanted = false;

	if (used == 0 || (seq & 1) != 0)
		return false;
	marcel_san_acquire(&h->seq);
	store_seq(&h->seq, seq + 1); /* order(hook) */
	for (unsigned i = 0; i < used && !wanted; i++) {
		hook = load_seq(&table->slot[i]); /* order(hook) */
		if (hook != NULL)
			wanted = hook->wanted == NULL
					 ? silent
					 : hook->wanted(hook->arg, vp);
	}
	store_release(&h->seq, seq + 2); /* order(hook): none is asked */
	return wanted;
}

bool marcel_hook_wants_tick(struct marcel_vp *vp)
{
	return ask(&asking, MARCEL_HOOK_TICK, vp->id, true);
}

bool marcel_hook_wants_idle(struct marcel_vp *vp)
{
	return ask(&vp->hooking, MARCEL_HOOK_IDLE, vp->id, false);
}

/* Wait until who may be in a removed hook has left it. */
static void wait_for(struct marcel_hooking *h)
{
	uint32_t seq = load_seq(&h->seq); /* order(hook) */

	if ((seq & 1) == 0)
		return;
	while (load_acquire(&h->seq) == seq) /* order(hook) */
		sched_yield();
}

BASE_PUBLIC int marcel_hook_remove(enum marcel_hook_point point,
				   struct marcel_hook *hook)
{
	struct marcel_hook_table *table;
	unsigned i = 0, used;

	if (!is_point(point) || hook == NULL)
		return -EINVAL;
	table = &marcel_hooks[point];
	base_spin_lock(&marcel_hook_lock);
	used = load_relaxed(&table->used);
	while (i < used && load_relaxed(&table->slot[i]) != hook)
		i++;
	if (i == used) {
		base_spin_unlock(&marcel_hook_lock);
		return -ENOENT;
	}
	store_seq(&table->slot[i], NULL); /* order(hook) */
	while (used > 0 && load_relaxed(&table->slot[used - 1]) == NULL)
		used--;
	store_relaxed(&table->used, used); /* too many do no harm */
	if (point == MARCEL_HOOK_SWITCH && used == 0)
		fetch_and_relaxed(&marcel_sched.before_switch,
				  ~MARCEL_BEFORE_HOOKS);
	base_spin_unlock(&marcel_hook_lock);
	for (int i = 0; i < marcel_nvp(); i++)
		wait_for(&marcel_sched.vps[i].hooking);
	wait_for(&asking);
	return 0;
}

/* The i-th VP by distance from one of them, or by number: NULL. */
static struct marcel_vp *by_distance(const struct marcel_vp *from, int i)
{
	if (from == NULL)
		return &marcel_sched.vps[i];
	return i == 0 ? &marcel_sched.vps[from->id] : from->victims[i - 1];
}

/*
 * A searcher sees work that all VPs see. Work of a level below the machine it
 * may not see, so there its searching does not count. Who is woken is the one
 * nearest to the caller, whose caches have what the work is about; that may be
 * its own VP, which has said that it sleeps and runs its hooks once more.
 */
BASE_PUBLIC void marcel_kick(struct marcel_level *level)
{
	struct marcel_sched *s = &marcel_sched;
	uint64_t w = load_seq(&s->idle.word); /* order(idle) */
	struct marcel_vp *self, *vp;

	if (likely(marcel_idle_sleepers(w) == 0) ||
	    (level->parent == NULL && marcel_idle_searchers(w) != 0))
		return;
	self = marcel_vp_self();
	for (int i = 0; i < s->nvp; i++) {
		vp = by_distance(self, i);
		if (marcel_vpset_has(&level->vps, vp->id) &&
		    marcel_vp_wake(vp, false))
			return;
	}
}

BASE_PUBLIC int marcel_any_idle(void)
{
	return load_relaxed(&marcel_sched.idle.word) != 0;
}

BASE_PUBLIC int marcel_is_oversubscribed(void)
{
	return marcel_sched.oversubscribed;
}
