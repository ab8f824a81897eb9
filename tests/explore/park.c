/*
 * marcel/sched/wake.c: a thread that parks runs again exactly once, not before
 * its context is saved, and sees what its waker did; a wake that comes before
 * the sleep is kept. Two VPs; also a foreign kernel thread that waits.
 *
 * A user thread is a thread of the explorer that waits until some VP switches
 * to it; the word `sp` of a context is written when it is saved and read when
 * it is entered, by plain accesses.
 *
 * covers: park
 */
#include "explore.h"

#include "../../marcel/base/spin.c"
#include "../../marcel/sched/timer.c"
#include "../../marcel/sched/wake.c"

enum { PARKER = 1, IDLE, WAKER, THREADS };

struct marcel_sched marcel_sched;
__thread struct marcel_tls marcel_tls;

static struct marcel_vp vps[2];
static struct marcel_lwp lwps[2];
static struct marcel_thread threads[THREADS];
static struct marcel_thread other; /* woken with the parker; foreign */
static int saved[THREADS];
static struct marcel_vp *handed[THREADS];
static ATOMIC(struct marcel_thread *) published;
static struct marcel_thread *woken[2]; /* of each VP, entered next */
static int data, error_number;
static struct marcel_exceptions no_exceptions;

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

struct marcel_thread *marcel_foreign_self(void)
{
	return &threads[explore_self()];
}

struct marcel_vp *marcel_switch_exceptions(struct marcel_vp *vp,
					   struct marcel_thread *self,
					   struct marcel_thread *next)
{
	explore_fail("nobody has exceptions here");
}

void marcel_hook_switch_slow(struct marcel_vp *vp)
{
}

struct marcel_vp *marcel_lwp_regain(struct marcel_lwp *l)
{
	explore_fail("the VP goes away");
}

static int number_of(const struct marcel_thread *t)
{
	return t == &lwps[0].idle ? IDLE : (int)(t - threads);
}

static const struct marcel_thread *thread_of(const struct marcel_ctx *c)
{
	return container_of(c, struct marcel_thread, ctx);
}

static void enter(const struct marcel_thread *t, void *vp)
{
	int n = number_of(t);

	explore_check(saved[n] == 1);
	saved[n] = 0;
	handed[n] = vp;
	explore_unpark(n, true);
}

void *marcel_ctx_switch(struct marcel_ctx *from, const struct marcel_ctx *to,
			void *vp)
{
	int me = explore_self();

	explore_check(number_of(thread_of(from)) == me);
	saved[me] = 1;
	enter(thread_of(to), vp);
	explore_park();
	be(handed[me]);
	return handed[me];
}

void marcel_runq_push(struct marcel_vp *vp, struct marcel_thread *t)
{
	explore_check(woken[vp->id] == NULL);
	woken[vp->id] = t;
}

void marcel_runq_push_many(struct marcel_vp *vp, struct marcel_thread **t,
			   unsigned n)
{
	explore_check(n == 1);
	marcel_runq_push(vp, t[0]);
}

struct marcel_thread *marcel_switch_next(struct marcel_vp *vp)
{
	struct marcel_thread *t = woken[vp->id];

	woken[vp->id] = NULL;
	return t != NULL ? t : vp->idle;
}

/* VP 0 has nothing else: what is pushed there it runs. */
static void idle(void *arg)
{
	struct marcel_vp *vp = &vps[0];
	struct marcel_thread *t;

	explore_park();
	be(handed[IDLE]);
	marcel_switch_after(vp);
	t = marcel_switch_next(vp);
	if (t != vp->idle)
		marcel_switch(vp, vp->idle, t);
}

static void publish(void *arg)
{
	store_release(&published, arg);
}

static void park_published(void *arg)
{
	be(&vps[0]);
	marcel_park(publish, &threads[PARKER]);
	explore_check(data == 1);
	data = 2;
}

static void park_known(void *arg)
{
	be(&vps[0]);
	marcel_park(NULL, NULL);
	explore_check(data == 1);
	data = 2;
}

static void park_foreign_known(void *arg)
{
	marcel_park(NULL, NULL);
	explore_check(data == 1);
	data = 2;
}

/* VP 1 ends with the waker; what it was given it runs. */
static void end_waker(struct marcel_vp *vp)
{
	if (vp != NULL && woken[vp->id] != NULL)
		enter(marcel_switch_next(vp), vp);
}

static void wake(struct marcel_thread *t)
{
	data++;
	marcel_wake(t);
	end_waker(marcel_vp_self());
}

static void wake_published(void *arg)
{
	struct marcel_thread *t;

	be(&vps[1]);
	while ((t = load_acquire(&published)) == NULL)
		cpu_relax();
	wake(t);
}

static void wake_known(void *arg)
{
	be(&vps[1]);
	wake(&threads[PARKER]);
}

static void wake_with_another(void *arg)
{
	struct marcel_thread *t[] = { &threads[PARKER], &other };

	be(&vps[1]);
	data++;
	marcel_wake_many(t, 2);
	explore_check(load_relaxed(&other.state) == MARCEL_T_WOKEN);
	end_waker(&vps[1]);
}

static void wake_foreign(void *arg)
{
	wake(&threads[PARKER]);
}

static void set_up(void)
{
	for (int i = 0; i < 2; i++) {
		vps[i].id = i;
		vps[i].errno_addr = &error_number;
		vps[i].exceptions = &no_exceptions;
		vps[i].idle = &lwps[i].idle;
		store_relaxed(&lwps[i].vp, &vps[i]);
		store_relaxed(&vps[i].owner, (uintptr_t)&lwps[i]);
		explore_name(&vps[i], sizeof(vps[i]), "vp %d", i);
		explore_name(&lwps[i], sizeof(lwps[i]), "lwp %d", i);
	}
	store_relaxed(&lwps[0].self, &threads[PARKER]);
	store_relaxed(&lwps[1].self, &threads[WAKER]);
	saved[IDLE] = 1;
	for (int i = 0; i < THREADS; i++)
		store_relaxed(&threads[i].state, MARCEL_T_RUNNING);
	for (int i = 0; i < THREADS; i++)
		threads[i].home = -1;
	store_relaxed(&other.state, MARCEL_T_RUNNING);
	store_relaxed(&other.flags, MARCEL_F_FOREIGN);
	explore_name(&threads[PARKER], sizeof(threads[0]), "parker");
	explore_name(&threads[PARKER].state, 4, "state");
	explore_name(&published, sizeof(published), "published");
	explore_name(saved, sizeof(saved), "saved contexts");
	explore_name(&data, sizeof(data), "data");
}

static void it_went_on(void)
{
	explore_check(data == 2);
}

static void spawn(void (*parker)(void *), void (*waker)(void *))
{
	set_up();
	explore_spawn("parker", parker, NULL);
	explore_may_sleep(explore_spawn("idle", idle, NULL));
	explore_spawn("waker", waker, NULL);
	explore_finish(it_went_on);
}

EXPLORE(who_publishes_itself_is_entered_when_it_is_saved)
{
	spawn(park_published, wake_published);
}

EXPLORE(a_wake_may_come_before_the_park)
{
	spawn(park_known, wake_known);
}

EXPLORE(several_may_be_woken_before_one_parks)
{
	spawn(park_known, wake_with_another);
}

EXPLORE(a_foreign_thread_sleeps_and_is_woken)
{
	store_relaxed(&threads[PARKER].flags, MARCEL_F_FOREIGN);
	spawn(park_foreign_known, wake_foreign);
}
