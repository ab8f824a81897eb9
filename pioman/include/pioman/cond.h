/*
 * Completion of an operation, and waiting for it (PDP 2015).
 *
 * A user thread that waits gives its VP to other ready threads at once; if
 * there is none it polls in place, so that an early completion costs no switch,
 * and then parks; idle VPs poll for it. A foreign thread polls for a bounded
 * time and then between naps. PIOM_WAIT=auto|active|passive|spin chooses. While
 * pioman does not run, who waits sleeps, and nobody polls.
 *
 * No wait is a cancellation point, nor ended by a signal. From an ltask, a
 * tasklet or a hook, where it may not wait, one that would ends the process.
 */
#ifndef PIOMAN_COND_H
#define PIOMAN_COND_H

#include <stddef.h>
#include <stdint.h>

#include <marcel/wait.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One-shot; all zero is valid and not signalled. One waiter at a time. */
typedef struct {
	marcel_event_t piom_event;
} piom_cond_t;

void piom_cond_init(piom_cond_t *c);

/* Nonzero if signalled; then all before the signal is visible. No polling. */
int piom_cond_test(const piom_cond_t *c);

/* At most once per init; last access is one exchange. Callable from ltasks. */
void piom_cond_signal(piom_cond_t *c);

/*
 * A function instead of a waiter, as marcel_event_call(): who signals calls it,
 * and it may free the condition and the record. 0; -EALREADY: it is signalled.
 */
int piom_cond_call(piom_cond_t *c, struct marcel_event_call *call);

/* Block, and poll while waiting. */
void piom_cond_wait(piom_cond_t *c);

/*
 * The same for one who knows where the signal will come from: while it waits in
 * place it looks there, look(arg), and only now and then at all ltasks. A short
 * cut: ltasks must bring the signal too, for who is parked does not look. The
 * look must not block.
 */
typedef void (*piom_look_fn)(void *arg);
void piom_cond_wait_on(piom_cond_t *c, piom_look_fn look, void *arg);

/*
 * The same, but it does not sleep: 0 once it is signalled; -EAGAIN: it has
 * looked for as long as a wait would before a sleep, or it is better not to.
 * For who has to tell somebody before he sleeps; nobody but the look needs to
 * bring the signal.
 */
int piom_cond_poll_on(piom_cond_t *c, piom_look_fn look, void *arg);

/*
 * Block until one is signalled: the lowest index of those that are. Null
 * pointers are passed over; that all are ends the process. None may be named
 * twice.
 */
size_t piom_cond_wait_any(piom_cond_t *const conds[], size_t n);

/*
 * The same, but not past a time: nanoseconds by CLOCK_MONOTONIC. wait_until: 0
 * if it is signalled, else -ETIMEDOUT; wait_any_until: n if none is. Then
 * nobody waits for them any more, and they may be waited for again.
 */
int piom_cond_wait_until(piom_cond_t *c, uint64_t ns);
size_t piom_cond_wait_any_until(piom_cond_t *const conds[], size_t n,
				uint64_t ns);

/* All of them; null pointers are passed over. */
void piom_cond_wait_all(piom_cond_t *const conds[], size_t n);

/*
 * Counting semaphore with the same way of waiting; served in the order in which
 * they came. Who was let through may free it. No limit is checked.
 */
typedef struct {
	uint64_t piom_words[6];
} piom_sem_t;

void piom_sem_init(piom_sem_t *s, unsigned value);
void piom_sem_post(piom_sem_t *s); /* never blocks; callable from ltasks */
void piom_sem_wait(piom_sem_t *s);
int piom_sem_trywait(piom_sem_t *s); /* 0, or -EAGAIN */

/*
 * 0, or -ETIMEDOUT: that time has come (ns by CLOCK_MONOTONIC) and nothing was
 * taken.
 */
int piom_sem_wait_until(piom_sem_t *s, uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
