/*
 * What a memory checker such as valgrind is told: where stacks are, so that it
 * takes a switch for one. os/linux/valgrind.c, or checker_none.c where its
 * header is not installed.
 */
#ifndef MARCEL_OS_CHECKER_H
#define MARCEL_OS_CHECKER_H

#include <stddef.h>

/* A stack; its number, for forget(), which is called when it goes. */
unsigned os_checker_stack(void *low, size_t bytes);
void os_checker_forget(unsigned number);

#endif
