/* marcel/sched/idle.h: who wakes a VP, at each of its instructions. */
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../../../marcel/sched/block.h"
#include "../trap.h"
#include "../with.h"

static marcel_sem_t sem;
static int claimed, interruptible;
static ATOMIC(int) adrift;

/* Of the VP, when it slept. */
static uint32_t picks;

/* What it calls is libc's: pinned, it is no user thread that may wait. */
static bool sleeps_in_kernel(struct marcel_vp *vp)
{
	bool sleeps;

	cpu_tls_pin(1);
	sleeps = os_thread_sleeps(load_relaxed(&marcel_vp_lwp(vp)->tid));
	cpu_tls_pin(-1);
	return sleeps;
}

/* It is no sleeper any more, and has not heard of it. */
static bool is_claimed(void)
{
	struct marcel_vp *vp = &marcel_sched.vps[0];

	return sleeps_in_kernel(vp) &&
	       load_relaxed(&vp->sleeper.asleep) != MARCEL_ASLEEP &&
	       load_relaxed(&vp->picks) == picks;
}

static bool is_asleep(struct marcel_vp *vp)
{
	return load_relaxed(&vp->sleeper.asleep) == MARCEL_ASLEEP &&
	       sleeps_in_kernel(vp);
}

static void handle(int signal)
{
	bool within = marcel_is_within();

	(void)signal;
	if (is_claimed()) {
		claimed++;
		interruptible += !within;
	}
}

static bool has_vp(struct marcel_vp *vp)
{
	return marcel_vp_lwp(vp) == marcel_tls.lwp;
}

/* No wrapper knows of it: the monitor gives the VP to whoever runs the other.
 */
static void sleep_in_kernel(void)
{
	const struct timespec t = { .tv_nsec = 2000000 };

	syscall(SYS_nanosleep, &t, NULL);
}

static void *sleeps(void *arg)
{
	while (load_relaxed(&adrift) == 0)
		marcel_yield();
	CHECK_INT(marcel_sem_wait(&sem), 0);
	return arg;
}

static void *wakes(void *arg)
{
	struct marcel_vp *vp = &marcel_sched.vps[0];
	marcel_t t;

	store_relaxed(&adrift, 0);
	CHECK_INT(marcel_create(&t, NULL, sleeps, NULL), 0);
	while (has_vp(vp))
		sleep_in_kernel();
	store_relaxed(&adrift, 1);
	/* A tick that was sent before may give it back. */
	while (!has_vp(vp) && !is_asleep(vp))
		sleep_in_kernel();
	picks = load_relaxed(&vp->picks);
	trap(TRAP_FLAG);
	marcel_sem_post(&sem);
	trap(0);
	CHECK_INT(marcel_join(t, NULL), 0);
	return arg;
}

/*
 * Were it interrupted there, it would wait for a VP, and the VP for what it
 * claimed.
 */
static void wake_from_outside(void)
{
	struct sigaction sa = { .sa_handler = handle };
	marcel_t t;

	claimed = interruptible = 0;
	CHECK_INT(sigaction(SIGTRAP, &sa, NULL), 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	while (claimed == 0) {
		CHECK_INT(marcel_create(&t, NULL, wakes, NULL), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
	CHECK_INT(interruptible, 0);
	CHECK_INT(marcel_sem_destroy(&sem), 0);
}

TEST(no_tick_comes_between_a_claim_and_the_wake)
{
	with_vps(1, wake_from_outside);
}
