/*
 * What marcel asks of the operating system. os/linux/ keeps the promises.
 */
#ifndef MARCEL_OS_H
#define MARCEL_OS_H

#include <stdint.h>

/*
 * Sleep while the 32-bit word is `value`; may return early. Process-private.
 * Never fails: a word that differs, a signal and a wake look the same.
 */
void os_futex_wait(void *word, uint32_t value);

/* Wake up to n sleepers. The word may be gone: then nobody is woken. */
void os_futex_wake(void *word, int n);

#endif
