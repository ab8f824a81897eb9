/*
 * Short stretches in which a user thread is not preempted: while it holds what
 * others on the same VP would wait for, or give up for. Pins nest and belong to
 * the kernel thread; a pinned thread does not switch.
 */
#ifndef BASE_PIN_H
#define BASE_PIN_H

void base_pin(void);
void base_unpin(void);

#endif
