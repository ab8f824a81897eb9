/*
 * How long an ltask that finds nothing is asked again before it waits in the
 * kernel, with PIOM_MODE=auto (EuroPVM/MPI 2007, section 3.4).
 *
 * Polling sees an event at once and costs a core; an interrupt costs a wake-up
 * of a kernel thread and nothing meanwhile. So an idle VP polls for what is
 * near, and for nothing else:
 *
 *   somebody knows when it will come   the hint, piom_ltask_expect()
 *   else                               as long as it usually takes, and some
 *                                      more; not at all, if that is longer than
 *                                      PIOM_IDLE_US
 *
 * What it usually takes is learnt from each event that an idle VP or the kernel
 * has waited for: the mean of the last value and the new one, which counts for
 * one and a half PIOM_IDLE_US at most. So two that come late in a row end
 * polling, and one that comes soon begins it again.
 *
 * A VP that computes asks next at its next tick, or never: the task is armed,
 * unless it is expected later still or must not interrupt anybody.
 */
#ifndef PIOMAN_IO_PATIENCE_H
#define PIOMAN_IO_PATIENCE_H

#include <stdbool.h>

#include "../ltask/queue.h"

/* Who holds the queue, after the task was asked in vain: whether to arm it. */
bool piom_patience_is_over(const struct piom_task *t, uint64_t vain_ns);

/* The same: it is armed. */
void piom_patience_armed(struct piom_task *t, uint64_t vain_ns);

/* It is submitted. */
void piom_patience_begin(struct piom_task *t);

/*
 * Something was found, by one who has polled for so long; that was hinted at
 * before the run. A hint that was given in it, or since, is about the next.
 */
void piom_patience_learn(struct piom_task *t, uint64_t vain_ns, uint64_t due);

#endif
