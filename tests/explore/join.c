/*
 * marcel/thread/thread.c: who joins gets the result and may free the thread at
 * once; of detach and the end one frees it; who waits for the end of all
 * threads is woken by the last.
 *
 * User threads are modelled as in park.c. Two VPs with an idle thread each.
 *
 * Who waits in time is seen to by the idle thread. Who cancels is foreign.
 *
 * covers: join, end, cancel, settle
 */
#include <setjmp.h>

#include "explore.h"

#include "../../marcel/base/spin.c"
#include "../../marcel/sched/timer.c"
#include "../../marcel/sched/wake.c"
#include "../../marcel/thread/cancel.c"
#include "../../marcel/thread/join.c"
#include "../../marcel/thread/thread.c"

enum { SELF = 1, IDLE0, TARGET, IDLE1, THREADS, CANCELS = THREADS };

struct marcel_sched marcel_sched;
__thread struct marcel_tls marcel_tls;

static bool is_looked_for; /* the target, by who cancels */
static bool is_contended;  /* by two who would free it; it is type-stable */
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

/* Who was cancelled by a foreign thread is entered on this VP. */
static struct marcel_vp *outside;

static void enter_outside(struct marcel_thread *t)
{
	int next = number_of(t);

	explore_check(saved[next] == 1);
	saved[next] = 0;
	handed[next] = outside;
	store_relaxed(&marcel_vp_lwp(outside)->self, t);
	explore_unpark(next, true);
}

void marcel_runq_push(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (vp == NULL) {
		enter_outside(t);
		return;
	}
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

void marcel_hook_switch_slow(struct marcel_vp *vp)
{
}

void marcel_stack_put(struct marcel_vp *vp, struct marcel_stack *s)
{
	if (is_looked_for)
		explore_unpark(CANCELS, false);
}

/* Given back: who still touches it errs. */
void marcel_thread_put(struct marcel_vp *vp, struct marcel_thread *t)
{
	freed++;
	if (!is_looked_for && !is_contended)
		explore_gone(t, sizeof(*t));
}

int marcel_is_running(void)
{
	return 1;
}

#define UNREACHED(type, name, ...)                                             \
	type name(__VA_ARGS__)                                                 \
	{                                                                      \
		explore_fail("%s is not part of this scenario", #name);        \
	}

UNREACHED(struct marcel_vp *, marcel_lwp_regain, struct marcel_lwp *l)
UNREACHED(struct marcel_vp *, marcel_switch_exceptions, struct marcel_vp *vp,
	  struct marcel_thread *self, struct marcel_thread *next)
UNREACHED(void, marcel_key_exit, struct marcel_thread *t)
UNREACHED(void, marcel_thread_end_main, struct marcel_thread *t)
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

bool marcel_fork_has_left(const struct marcel_timers *ts)
{
	return false;
}

/* Accesses that are `light` are seq_cst here, as if each passed a barrier. */
bool os_barrier_init(void)
{
	return true;
}

/* What is loaded after a barrier, or a while, is not old. */
void os_barrier_all(void)
{
	for (int i = 0; i < 2; i++) {
		struct marcel_thread *t = load_relaxed(&lwps[i].self);

		while (!cas_relaxed(&lwps[i].self, &t, t))
			;
	}
}

void os_futex_wait_for(void *word, uint32_t value, uint64_t ns)
{
}

/* Who waits until another is out of the runtime waits for its end. */
int sched_yield(void)
{
	explore_park();
	os_barrier_all();
	return 0;
}

int marcel_thread_visit(int (*fn)(struct marcel_thread *t, void *arg),
			void *arg)
{
	return fn(&threads[TARGET], arg);
}

static jmp_buf end;

void marcel_exit(void *value)
{
	_longjmp(end, 1);
}

static struct marcel_thread alien;

struct marcel_thread *marcel_foreign_self(void)
{
	return &alien;
}

/* --- the threads --- */

static void exits(void *arg)
{
	while (is_seed && load_acquire(&queued) == 0) /* order(test) */
		explore_relax();
	be(&vps[1]);
	marcel_thread_end(&result);
}

static BASE_NOINLINE void join_target(void)
{
	void *out = NULL;

	explore_check(marcel_join(&threads[TARGET], &out) == 0);
	explore_check(out == &result);
	joined++;
}

/* The frame of the join, of which `after` was told, is gone then. */
static void joins(void *arg)
{
	enum { DEPTH = 1024 };
	char *here = __builtin_frame_address(0);

	be(&vps[0]);
	join_target();
	explore_gone(here - DEPTH, DEPTH);
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

static void set_up(void (*self)(void *), void (*target)(void *))
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
	explore_may_sleep(explore_spawn("target", target, NULL));
	explore_may_sleep(explore_spawn("idle 1", idle, &vps[1]));
}

EXPLORE(who_joins_gets_the_result_and_frees_the_thread)
{
	set_up(joins, exits);
	explore_finish(joined_once);
}

/* VP 1 steals it and has a stack. */
EXPLORE(a_seed_without_a_stack_does_not_wake_a_joiner_that_still_runs)
{
	is_seed = true;
	set_up(joins, exits);
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
	set_up(joins_in_time, exits);
	explore_finish(joined_once);
}

EXPLORE(detached_or_ended_first_it_is_freed_once)
{
	set_up(detaches, exits);
	explore_finish(freed_once);
}

/* --- two that may not both have it --- */

static int refused;

static void have(int rc)
{
	explore_check(rc == 0 || rc == EINVAL || rc == ESRCH);
	if (rc != 0)
		refused++;
}

static void joins_if_it_may(void *arg)
{
	be(&vps[0]);
	have(marcel_join(&threads[TARGET], NULL));
}

static void detaches_too(void *arg)
{
	have(marcel_detach(&threads[TARGET]));
}

static void tries_to_join(void *arg)
{
	int rc = marcel_tryjoin_np(&threads[TARGET], NULL);

	have(rc == EBUSY ? EINVAL : rc);
}

/* Joined, or detached, by one; the other is told so. */
static void one_has_it(void)
{
	explore_check(refused == 1 && freed == 1);
}

static void set_up_two(void (*other)(void *))
{
	is_contended = true;
	set_up(joins_if_it_may, exits);
	explore_spawn("other", other, NULL);
	explore_finish(one_has_it);
}

EXPLORE(joined_and_detached_it_is_freed_once)
{
	set_up_two(detaches_too);
}

EXPLORE(joined_twice_it_is_freed_once)
{
	set_up_two(tries_to_join);
}

EXPLORE(the_last_thread_wakes_who_waits_for_all)
{
	set_up(waits_for_all, exits);
	store_relaxed(&threads[TARGET].ended, MARCEL_END_DETACHED);
	explore_finish(joined_once);
}

/* --- cancelled --- */

static void cancels(void *arg)
{
	struct search s = { .joiner = &threads[SELF] };

	fetch_or_seq(&threads[SELF].flags, MARCEL_F_CANCEL);
	match(&threads[TARGET], &s);
	if (s.found != NULL)
		marcel_cancel_join(&threads[SELF], s.found);
}

static void ended_once(void)
{
	explore_check(joined == 1);
}

static void set_up_cancel(void (*self)(void *), void (*target)(void *),
			  struct marcel_vp *vp)
{
	outside = vp;
	is_looked_for = true;
	set_up(self, target);
	explore_spawn("cancels", cancels, NULL);
	explore_finish(ended_once);
}

/* It was joined when the target ran in its place. */
static void is_joining(void *arg)
{
	uintptr_t w;

	explore_park();
	be(handed[SELF]);
	marcel_switch_after(handed[SELF]);
	w = load_relaxed(&threads[TARGET].ended);
	explore_check(w == MARCEL_END_NONE || w == MARCEL_END_DONE ||
		      w == ((uintptr_t)&threads[SELF] | MARCEL_END_DONE));
	joined++;
}

EXPLORE(an_end_and_a_cancellation_end_a_join_once)
{
	set_up_cancel(is_joining, exits, &vps[0]);
	saved[SELF] = 1;
	store_relaxed(&threads[SELF].state, MARCEL_T_PARKED);
	store_relaxed(&threads[TARGET].ended, (uintptr_t)&threads[SELF]);
	store_relaxed(&lwps[0].self, &lwps[0].idle);
}

/* Its end it does not come to. */
static void runs_on(void *arg)
{
}

static void is_cancelled(void *arg)
{
	be(&vps[0]);
	if (_setjmp(end) != 0) {
		joined++;
		return;
	}
	marcel_join(&threads[TARGET], NULL);
	explore_fail("it goes on");
}

EXPLORE(who_joins_is_cancelled)
{
	set_up_cancel(is_cancelled, runs_on, &vps[1]);
}
