/*
 * Hooks of the scheduler: who removes one may free it; who adds one, or kicks,
 * is not overslept.
 *
 * covers: hook, idle
 */
#include "machine.h"

static struct marcel_level level;
static struct marcel_hook hook;
static int called, running;
static ATOMIC(int) work;

/* Plain accesses: a hook that runs after its removal is a race. */
static enum marcel_hook_answer note(void *arg, int vp)
{
	running++;
	called++;
	running--;
	return MARCEL_HOOK_NOTHING;
}

/* Finds work if there is some: a thread becomes ready. */
static enum marcel_hook_answer look_for_work(void *arg, int vp)
{
	if (load_seq(&work) == 0)
		return MARCEL_HOOK_NOTHING;
	store_relaxed(&work, 0);
	marcel_runq_push(marcel_vp_self(), &threads[0]);
	return MARCEL_HOOK_WORKED;
}

static void run(void *arg)
{
	marcel_hook_run(&vps[0], MARCEL_HOOK_IDLE);
	marcel_hook_run(&vps[0], MARCEL_HOOK_IDLE);
}

static void remove_it(void *arg)
{
	explore_check(marcel_hook_remove(MARCEL_HOOK_IDLE, &hook) == 0);
	explore_gone(&hook, sizeof(hook));
	explore_gone(&running, sizeof(running));
}

static void add(void *arg)
{
	hook.fn = arg;
	explore_check(marcel_hook_add(MARCEL_HOOK_IDLE, &hook) == 0);
}

static void post(void *arg)
{
	store_seq(&work, 1);
	marcel_kick(&level);
}

static void one(void *arg)
{
	take_one(arg);
}

static void it_ran(void)
{
	explore_check(ran[0] == 1);
}

static void names(void)
{
	explore_name(marcel_hooks, sizeof(marcel_hooks), "hooks");
	explore_name(&hook, sizeof(hook), "the hook");
	explore_name(&vps[0].hooking, sizeof(vps[0].hooking), "hooking 0");
	explore_name(&vps[1].hooking, sizeof(vps[1].hooking), "hooking 1");
	marcel_vpset_zero(&level.vps);
	marcel_vpset_add(&level.vps, 1);
}

EXPLORE(a_removed_hook_runs_no_more)
{
	set_up(1);
	names();
	hook.fn = note;
	marcel_hook_add(MARCEL_HOOK_IDLE, &hook);
	explore_spawn("vp 0", run, NULL);
	explore_spawn("remover", remove_it, NULL);
}

/* The monitor asks, which uses the hook as well. */
static bool note_it(void *arg, int vp)
{
	return note(arg, vp) == MARCEL_HOOK_WORKED;
}

static void monitor_asks(void *arg)
{
	marcel_hook_wants_tick(&vps[0]);
	marcel_hook_wants_tick(&vps[0]);
}

static void vp_asks(void *arg)
{
	marcel_hook_wants_idle(&vps[0]);
	marcel_hook_run(&vps[0], MARCEL_HOOK_IDLE);
}

static void remove_asked(void *arg)
{
	explore_check(marcel_hook_remove(MARCEL_HOOK_TICK, &hook) == 0);
	explore_gone(&hook, sizeof(hook));
	explore_gone(&running, sizeof(running));
}

EXPLORE(a_removed_hook_is_asked_no_more)
{
	set_up(1);
	names();
	hook.fn = note;
	hook.wanted = note_it;
	marcel_hook_add(MARCEL_HOOK_TICK, &hook);
	explore_spawn("monitor", monitor_asks, NULL);
	explore_spawn("remover", remove_asked, NULL);
}

EXPLORE(a_removed_hook_is_asked_no_more_by_an_idle_vp)
{
	set_up(1);
	names();
	hook.fn = note;
	hook.wanted = note_it;
	marcel_hook_add(MARCEL_HOOK_IDLE, &hook);
	explore_spawn("vp 0", vp_asks, NULL);
	explore_spawn("remover", remove_it, NULL);
}

EXPLORE(an_added_hook_is_seen_whole)
{
	set_up(1);
	names();
	explore_spawn("vp 0", run, NULL);
	explore_spawn("adder", add, note);
}

EXPLORE(nobody_sleeps_over_a_hook_that_is_added)
{
	set_up(2);
	names();
	store_relaxed(&work, 1);
	explore_spawn("adder", add, look_for_work);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(it_ran);
}

EXPLORE(nobody_sleeps_over_a_hook_that_fills_a_hole)
{
	static struct marcel_hook first = { .fn = note };
	static struct marcel_hook second = { .fn = note };

	set_up(2);
	names();
	marcel_hook_add(MARCEL_HOOK_IDLE, &first);
	marcel_hook_add(MARCEL_HOOK_IDLE, &second);
	marcel_hook_remove(MARCEL_HOOK_IDLE, &first);
	store_relaxed(&work, 1);
	explore_spawn("adder", add, look_for_work);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(it_ran);
}

EXPLORE(nobody_sleeps_over_a_kick)
{
	set_up(2);
	names();
	hook.fn = look_for_work;
	marcel_hook_add(MARCEL_HOOK_IDLE, &hook);
	explore_spawn("kicker", post, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(it_ran);
}
