/*
 * marcel/thread/thread.c: who joins gets the result and may free the thread at
 * once; of detach and the end one frees it; who waits for the end of all
 * threads is woken by the last.
 *
 * User threads are modelled as in park.c. Two VPs with an idle thread each.
 *
 * Who waits in time is seen to by the idle thread.
 *
 * covers: join, end
 */
#include "explore.h"

#include "../../marcel/base/spin.c"
#include "../../marcel/sched/timer.c"
#include "../../marcel/sched/wake.c"
#include "../../marcel/thread/join.c"
#include "../../marcel/thread/thread.c"

enum { SELF = 1, IDLE0, TARGET, IDLE1, THREADS };

struct marcel_sched marcel_sched;
struct marcel_hook_table marcel_hooks[MARCEL_HOOK_POINTS];
__thread struct marcel_tls marcel_tls;

static struct marcel_vp vps[2];
static struct marcel_lwp lwps[2];
static struct marcel_thread threads[THREADS];
static struct marcel_thread_rest rests[THREADS];
static int saved[THREADS];
static struct marcel_vp *handed[THREADS];
static struct marcel_thread *woken[2]; /* of each VP, entered next */
static int error_number, joined, freed;
static struct marcel_exceptions no_exceptions;
static void *result;

/* The caller drives this VP. */
static void be(struct marcel_vp *vp)
{
	marcel_tls.lwp = &lwps[vp->id];
}

/* --- what surrounds it --- */

void *explore_tls_word(void)
{
	return marcel_tls.lwp;
}

static int number_of(const struct marcel_thread *t)
{
	return t == &lwps[0].idle   ? IDLE0
	       : t == &lwps[1].idle ? IDLE1
				    : (int)(t - threads);
}

static const struct marcel_thread *thread_of(const struct marcel_ctx *c)
{
	return container_of(c, struct marcel_thread, ctx);
}

/* `saved` is plain: entered before it is saved, or unordered, is an error. */
void *marcel_ctx_switch(struct marcel_ctx *from, const struct marcel_ctx *to,
			void *vp)
{
	int me = explore_self(), next = number_of(thread_of(to));

	explore_check(number_of(thread_of(from)) == me);
	saved[me] = 1;
	explore_check(saved[next] == 1);
	saved[next] = 0;
	handed[next] = vp;
	explore_unpark(next, true);
	explore_park();
	be(handed[me]);
	return handed[me];
}

void marcel_runq_push(struct marcel_vp *vp, struct marcel_thread *t)
{
	explore_check(woken[vp->id] == NULL);
	woken[vp->id] = t;
}

/* Whether the target is a seed of VP 0 for which there is no stack. */
static bool is_seed;
static ATOMIC(int) queued; /* a: VP 1 can reach it: order(test) */

bool marcel_runq_claim(struct marcel_vp *vp, struct marcel_thread *t)
{
	return is_seed;
}

bool marcel_switch_equip(struct marcel_vp *vp, struct marcel_thread *t)
{
	explore_check(t == &threads[TARGET]);
	store_release(&queued, 1); /* order(test) */
	return false;
}

struct marcel_thread *marcel_switch_next(struct marcel_vp *vp)
{
	struct marcel_thread *t = woken[vp->id];

	woken[vp->id] = NULL;
	return t != NULL ? t : vp->idle;
}

enum marcel_hook_answer marcel_hook_run(struct marcel_vp *vp,
					enum marcel_hook_point point)
{
	return MARCEL_HOOK_NOTHING;
}

void marcel_stack_put(struct marcel_vp *vp, struct marcel_stack *s)
{
}

/* Given back: who still touches it errs. */
void marcel_thread_put(struct marcel_vp *vp, struct marcel_thread *t)
{
	freed++;
	explore_gone(t, sizeof(*t));
}

#define UNREACHED(type, name, ...)                                             \
	type name(__VA_ARGS__)                                                 \
	{                                                                      \
		explore_fail("%s is not part of this scenario", #name);        \
	}

UNREACHED(struct marcel_thread *, marcel_foreign_self, void)
UNREACHED(struct marcel_vp *, marcel_lwp_regain, struct marcel_lwp *l)
UNREACHED(struct marcel_vp *, marcel_switch_exceptions, struct marcel_vp *vp,
	  struct marcel_thread *self, struct marcel_thread *next)
UNREACHED(void, marcel_key_exit, struct marcel_thread *t)
UNREACHED(bool, marcel_vp_wake, struct marcel_vp *vp, bool own)
UNREACHED(void, marcel_runq_push_behind, struct marcel_vp *vp,
	  struct marcel_thread *t)

/* The time has come for who waits. */
static ATOMIC(int) late;

int clock_gettime(clockid_t clock, struct timespec *out)
{
	*out = (struct timespec){ .tv_sec = load_relaxed(&late) ? 3 : 1 };
	return 0;
}

static void idle(void *arg)
{
	struct marcel_vp *vp = arg;
	struct marcel_thread *t;

	explore_park();
	be(vp);
	marcel_switch_after(vp);
	for (;;) {
		t = marcel_switch_next(vp);
		if (t == vp->idle && marcel_timers_are_armed(&vp->timers)) {
			store_relaxed(&late, 1);
			marcel_timers_run(&vp->timers);
			t = marcel_switch_next(vp);
		}
		if (t == vp->idle)
			break;
		marcel_switch(vp, vp->idle, t);
	}
}

bool marcel_foreign_is_forked(void)
{
	return false;
}

/* --- the threads --- */

static void exits(void *arg)
{
	while (is_seed && load_acquire(&queued) == 0) /* order(test) */
		explore_relax();
	be(&vps[1]);
	marcel_thread_end(&result);
}

static void joins(void *arg)
{
	void *out = NULL;

	be(&vps[0]);
	explore_check(marcel_join(&threads[TARGET], &out) == 0);
	explore_check(out == &result);
	joined++;
}

static void detaches(void *arg)
{
	be(&vps[0]);
	explore_check(marcel_detach(&threads[TARGET]) == 0);
}

static void waits_for_all(void *arg)
{
	be(&vps[0]);
	marcel_thread_wait_all();
	joined++;
}

static void freed_once(void)
{
	explore_check(freed == 1);
}

static void joined_once(void)
{
	explore_check(joined == 1 && freed == 1);
}

static void set_up(void (*self)(void *))
{
	marcel_sched.vps = vps;
	marcel_sched.nvp = 2;
	for (int i = 0; i < 2; i++) {
		vps[i].id = i;
		vps[i].errno_addr = &error_number;
		vps[i].exceptions = &no_exceptions;
		vps[i].idle = &lwps[i].idle;
		store_relaxed(&lwps[i].vp, &vps[i]);
		store_relaxed(&vps[i].owner, (uintptr_t)&lwps[i]);
		lwps[i].idle.home = (int16_t)i;
		explore_name(&vps[i], sizeof(vps[i]), "vp %d", i);
		explore_name(&lwps[i], sizeof(lwps[i]), "lwp %d", i);
	}
	store_relaxed(&vps[1].created, 1);
	store_relaxed(&lwps[0].self, &threads[SELF]);
	store_relaxed(&lwps[1].self, &threads[TARGET]);
	saved[IDLE0] = saved[IDLE1] = 1;
	for (int i = 0; i < THREADS; i++) {
		threads[i].home = -1;
		threads[i].rest = &rests[i];
		store_relaxed(&threads[i].state, MARCEL_T_RUNNING);
	}
	explore_name(&threads[SELF], sizeof(threads[0]), "self");
	explore_name(&threads[TARGET], sizeof(threads[0]), "target");
	explore_name(&threads[TARGET].ended, 8, "target's end");
	explore_name(saved, sizeof(saved), "saved contexts");
	explore_name(&marcel_sched.ender, 8, "ender");
	explore_spawn("self", self, NULL);
	explore_may_sleep(explore_spawn("idle 0", idle, &vps[0]));
	explore_may_sleep(explore_spawn("target", exits, NULL));
	explore_may_sleep(explore_spawn("idle 1", idle, &vps[1]));
}

EXPLORE(who_joins_gets_the_result_and_frees_the_thread)
{
	set_up(joins);
	explore_finish(joined_once);
}

/* VP 1 steals it and has a stack. */
EXPLORE(a_seed_without_a_stack_does_not_wake_a_joiner_that_still_runs)
{
	is_seed = true;
	set_up(joins);
	explore_finish(joined_once);
}

static void joins_in_time(void *arg)
{
	const struct timespec soon = { .tv_sec = 2 };
	void *out = NULL;
	int rc;

	be(&vps[0]);
	rc = marcel_timedjoin_np(&threads[TARGET], &out, &soon);
	explore_check(rc == 0 || rc == ETIMEDOUT);
	explore_check(marcel_timers_check(&vps[0].timers) == 0);
	if (rc != 0)
		explore_check(marcel_join(&threads[TARGET], &out) == 0);
	explore_check(out == &result);
	joined++;
}

EXPLORE(an_end_and_a_time_end_a_join_once)
{
	set_up(joins_in_time);
	explore_finish(joined_once);
}

EXPLORE(detached_or_ended_first_it_is_freed_once)
{
	set_up(detaches);
	explore_finish(freed_once);
}

EXPLORE(the_last_thread_wakes_who_waits_for_all)
{
	set_up(waits_for_all);
	store_relaxed(&threads[TARGET].ended, MARCEL_END_DETACHED);
	explore_finish(joined_once);
}
