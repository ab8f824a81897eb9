/*
 * sem_post() in a handler of signals that may come at any instruction of the
 * runtime: here it comes at each, in one round or another.
 */
#include <signal.h>
#include <ucontext.h>

#include <base/atomic.h>
#include "../trap.h"
#include "../with.h"

/* It comes so seldom that a loop that it has upset ends between. */
enum { WAITERS = 400, STEPS = 16 };

static marcel_sem_t sem, turn;
static int steps, posts;
static ATOMIC(int) arrived, freed;

static void handle(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)signal;
	(void)info;
	if (posts == WAITERS) {
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	if (++steps % STEPS != 0)
		return;
	posts++;
	CHECK_INT(marcel_sem_post(&sem), 0);
}

static void *wait_once(void *arg)
{
	fetch_add_relaxed(&arrived, 1);
	CHECK_INT(marcel_sem_wait(&sem), 0);
	fetch_add_relaxed(&freed, 1);
	return arg;
}

static void *answer(void *arg)
{
	CHECK_INT(marcel_sem_post(&turn), 0);
	return arg;
}

/* What takes the guard, and what goes through the scheduler. */
static void be_interrupted(void)
{
	marcel_t t;

	trap(TRAP_FLAG);
	CHECK_INT(marcel_sem_post(&sem), 0);
	marcel_yield();
	marcel_create(&t, NULL, answer, NULL);
	marcel_sem_wait(&turn);
	marcel_join(t, NULL);
	trap(0);
}

static void interrupt(void)
{
	static marcel_t t[WAITERS + 1];
	struct sigaction sa = { .sa_sigaction = handle,
				.sa_flags = SA_SIGINFO };

	store_relaxed(&arrived, 0);
	store_relaxed(&freed, 0);
	posts = 0;
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&turn, 0, 0), 0);
	CHECK_INT(sigaction(SIGTRAP, &sa, NULL), 0);
	for (int i = 0; i <= WAITERS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, wait_once, NULL), 0);
	while (load_relaxed(&arrived) <= WAITERS)
		marcel_yield();
	be_interrupted();
	CHECK(posts > 30); /* the way through the runtime is not short */
	for (; posts < WAITERS; posts++)
		CHECK_INT(marcel_sem_post(&sem), 0);
	for (int i = 0; i <= WAITERS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&freed), WAITERS + 1);
	CHECK_INT(marcel_sem_destroy(&sem), 0);
}

TEST(a_handler_may_post_whatever_it_interrupts)
{
	for (int first = 0; first < STEPS; first++) {
		steps = first;
		without_ticks(interrupt);
	}
}
