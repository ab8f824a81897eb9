/*
 * A kernel thread that polls sleeps while nothing wants to be asked. It says so
 * and then looks; who submits or kicks does so and then looks for sleepers:
 * order(idle).
 */
#ifndef PIOMAN_POINT_SLEEPER_H
#define PIOMAN_POINT_SLEEPER_H

#include <marcel/errno.h>
#include <semaphore.h>
#include <stdbool.h>

#include <base/atomic.h>
#include <base/compiler.h>

struct piom_sleeper {
	ATOMIC(uint32_t) asleep; /* a: order(idle) */
	sem_t wake;              /* a: posted by who clears `asleep` */
};

static inline void piom_sleeper_init(struct piom_sleeper *s)
{
	store_relaxed(&s->asleep, 0);
	sem_init(&s->wake, 0, 0);
}

static inline void piom_sleeper_destroy(struct piom_sleeper *s)
{
	sem_destroy(&s->wake);
}

/* The thread itself: until it is woken, unless it stays up. */
static inline void piom_sleeper_sleep(struct piom_sleeper *s,
				      bool (*stays_up)(void *arg), void *arg)
{
	store_seq(&s->asleep, 1); /* order(idle) */
	if (stays_up(arg) && xchg_relaxed(&s->asleep, 0) != 0)
		return;
	while (sem_wait(&s->wake) < 0 && errno == EINTR)
		;
}

/* Anyone; never blocks. Whether it slept. */
static inline bool piom_sleeper_wake(struct piom_sleeper *s)
{
	if (likely(load_seq(&s->asleep) == 0) || /* order(idle) */
	    xchg_relaxed(&s->asleep, 0) == 0)
		return false;
	sem_post(&s->wake);
	return true;
}

#endif
