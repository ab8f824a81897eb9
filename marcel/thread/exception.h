/*
 * What C++ keeps of exceptions for each kernel thread: which are being handled,
 * how many are on their way. It belongs to the user thread, and threads seldom
 * have any: a switch looks at one word and saves nothing while it is 0.
 *
 * The layout is that of the C++ ABI, struct __cxa_eh_globals.
 */
#ifndef MARCEL_THREAD_EXCEPTION_H
#define MARCEL_THREAD_EXCEPTION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <base/compiler.h>

struct marcel_exceptions {
	void *caught;
	unsigned uncaught;
} BASE_MAY_ALIAS;

/*
 * Eight bytes that are 0 if both are: of the address all but what is 0 in no
 * other address than NULL, and of the number as much as it can ever be.
 */
enum {
	MARCEL_EXCEPTIONS_LOOK = sizeof(void *) == 4                         ? 0
				 : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2
									     : 4
};

/* Whether the running thread has any. */
static inline bool marcel_exceptions_any(const struct marcel_exceptions *e)
{
	uint64_t look;

	memcpy(&look, (const char *)e + MARCEL_EXCEPTIONS_LOOK, sizeof(look));
	return look != 0;
}

/*
 * The calling kernel thread's, found once per kernel thread; where no C++ is
 * loaded, some that are always 0.
 */
struct marcel_exceptions *marcel_exceptions_find(void);

#endif
