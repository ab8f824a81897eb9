/*
 * marcel_errno_location() for scenarios, which are linked without libmarcel:
 * no thread moves to another kernel thread there.
 */
#include <errno.h>

int *marcel_errno_location(void);

int *marcel_errno_location(void)
{
	return &errno;
}
