/*
 * pioman/wait/sem.c with a time: a unit that is posted when that comes is the
 * waiter's, or somebody else's, or stays; and the waiter's frame is not touched
 * when it is gone.
 */
#include "explore.h"

#include <errno.h>

#include <base/spin.h>
#include <pioman/cond.h>

/* --- who does not get a lock tries again: of its sleep see spin.c --- */

void base_spin_lock_slow(struct base_spin *s)
{
	uint32_t free = 0;

	for (; !cas_acquire(&s->word, &free, 1); free = 0)
		explore_relax();
}

void base_spin_unlock_slow(struct base_spin *s)
{
	explore_fail("nobody sleeps for it");
}

#ifndef NDEBUG
void base_spin_rank_push(struct base_spin *s)
{
}

void base_spin_rank_pop(struct base_spin *s)
{
}
#endif

/* --- a condition is one word, and a wait's time comes at once --- */

struct word {
	ATOMIC(uint64_t) value;
} BASE_MAY_ALIAS;

void piom_cond_init(piom_cond_t *c)
{
	store_relaxed(&((struct word *)c)->value, 0);
}

void piom_cond_signal(piom_cond_t *c)
{
	xchg_release(&((struct word *)c)->value, 1);
}

static bool is_signalled(piom_cond_t *c)
{
	return load_acquire(&((struct word *)c)->value) != 0;
}

void piom_cond_wait(piom_cond_t *c)
{
	while (!is_signalled(c))
		explore_relax();
}

int piom_cond_wait_until(piom_cond_t *c, uint64_t ns)
{
	return is_signalled(c) ? 0 : -ETIMEDOUT;
}

#include "../../pioman/wait/sem.c"

/* --- the scenarios --- */

static piom_sem_t sem;
static int posted;
static ATOMIC(int) taken;

static void names(void)
{
	explore_spurious(0, 0);
	piom_sem_init(&sem, 0);
	explore_name(&sem, sizeof(sem), "sem");
	explore_name(&posted, sizeof(posted), "posted");
}

static void wait_in_time(void *arg)
{
	enum { DEPTH = 1024 };
	char *here = __builtin_frame_address(0);

	if (piom_sem_wait_until(&sem, 1) == 0) {
		explore_check(posted == 1);
		fetch_add_relaxed(&taken, 1);
	}
	explore_gone(here - DEPTH, DEPTH);
}

static void post(void *arg)
{
	posted = 1;
	piom_sem_post(&sem);
}

static void unit_is_left(void)
{
	if (load_relaxed(&taken) == 0)
		explore_check(piom_sem_trywait(&sem) == 0);
	explore_check(load_relaxed(&taken) <= 1);
	explore_check(piom_sem_trywait(&sem) == -EAGAIN);
}

EXPLORE(a_unit_goes_to_one_waiter_or_stays)
{
	names();
	explore_spawn("waiter", wait_in_time, NULL);
	explore_spawn("other", wait_in_time, NULL);
	explore_spawn("posts", post, NULL);
	explore_finish(unit_is_left);
}

/* Who got it in time gives it to the other. */
static void pass_on(void *arg)
{
	if (piom_sem_wait_until(&sem, 1) == 0)
		piom_sem_post(&sem);
}

static void wait(void *arg)
{
	piom_sem_wait(&sem);
	explore_check(posted == 1);
}

static void nothing_is_left(void)
{
	explore_check(piom_sem_trywait(&sem) == -EAGAIN);
}

EXPLORE(who_leaves_the_queue_holds_up_nobody)
{
	names();
	explore_spawn("in time", pass_on, NULL);
	explore_spawn("waiter", wait, NULL);
	explore_spawn("posts", post, NULL);
	explore_finish(nothing_is_left);
}
