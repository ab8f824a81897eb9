/*
 * Counting semaphore. A waiter is a condition on its own stack, so that it
 * waits as everybody waits, and the poster's last access to the semaphore is
 * letting go of its lock: who was let through may destroy it.
 */
#include <errno.h>

#include <base/compiler.h>
#include <base/list.h>
#include <base/pin.h>
#include <base/spin.h>

#include <pioman/cond.h>

/* What is inside a piom_sem_t. l: all, its lock */
struct sem {
	struct base_spin lock;
	unsigned value;
	struct base_list waiters;
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct sem) <= sizeof(piom_sem_t), "piom_sem_t");
_Static_assert(_Alignof(struct sem) <= _Alignof(piom_sem_t), "piom_sem_t");

struct waiter {
	struct base_link link; /* l: the semaphore's */
	piom_cond_t through;   /* a: signalled once by the poster */
};

static struct sem *sem_of(piom_sem_t *s)
{
	return (struct sem *)s;
}

BASE_PUBLIC void piom_sem_init(piom_sem_t *sem, unsigned value)
{
	struct sem *s = sem_of(sem);

	base_spin_init(&s->lock, BASE_RANK_SYNC);
	s->value = value;
	base_list_init(&s->waiters);
}

BASE_PUBLIC void piom_sem_post(piom_sem_t *sem)
{
	struct sem *s = sem_of(sem);
	struct base_link *first;

	base_spin_lock(&s->lock);
	first = base_list_take_front(&s->waiters);
	if (first == NULL)
		s->value++;
	base_spin_unlock(&s->lock);
	if (first != NULL)
		piom_cond_signal(
			&container_of(first, struct waiter, link)->through);
}

BASE_PUBLIC int piom_sem_trywait(piom_sem_t *sem)
{
	struct sem *s = sem_of(sem);
	int err = -EAGAIN;

	base_spin_lock(&s->lock);
	if (s->value > 0) {
		s->value--;
		err = 0;
	}
	base_spin_unlock(&s->lock);
	return err;
}

/* True: one was taken; else the caller is in the queue. */
static bool take_or_queue(struct sem *s, struct waiter *self)
{
	bool through;

	base_spin_lock(&s->lock);
	through = s->value > 0;
	if (through) {
		s->value--;
	} else {
		piom_cond_init(&self->through);
		base_list_push_back(&s->waiters, &self->link);
	}
	base_spin_unlock(&s->lock);
	return through;
}

BASE_PUBLIC void piom_sem_wait(piom_sem_t *sem)
{
	struct waiter self;

	if (take_or_queue(sem_of(sem), &self))
		return;
	base_handler_check("pioman", "piom_sem_wait()");
	piom_cond_wait(&self.through);
}

/* False: a poster has let it through already, and is about to signal. */
static bool leave(struct sem *s, struct waiter *self)
{
	bool waits;

	base_spin_lock(&s->lock);
	waits = base_link_is_on(&self->link);
	if (waits)
		base_list_remove(&self->link);
	base_spin_unlock(&s->lock);
	return waits;
}

BASE_PUBLIC int piom_sem_wait_until(piom_sem_t *sem, uint64_t ns)
{
	struct waiter self;

	if (take_or_queue(sem_of(sem), &self))
		return 0;
	base_handler_check("pioman", "piom_sem_wait_until()");
	if (piom_cond_wait_until(&self.through, ns) == 0)
		return 0;
	if (leave(sem_of(sem), &self))
		return -ETIMEDOUT;
	piom_cond_wait(&self.through);
	return 0;
}
