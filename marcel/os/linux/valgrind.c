/*
 * Stacks for valgrind. Where the program does not run under it, each of these
 * is a few instructions that do nothing.
 */
#include "../checker.h"

#include <valgrind/valgrind.h>

unsigned os_checker_stack(void *low, size_t bytes)
{
	return VALGRIND_STACK_REGISTER(low, (char *)low + bytes - 1);
}

void os_checker_forget(unsigned number)
{
	VALGRIND_STACK_DEREGISTER(number);
}
