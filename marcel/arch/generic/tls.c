/*
 * The thread-local word of processors without an accessor in assembly. This
 * function is never inlined, so its result cannot outlive a context switch.
 */
#include "../cpu.h"

#include <base/compiler.h>
#include "../../os/tls.h"

BASE_NOINLINE void *cpu_tls_word(void)
{
	return marcel_tls.lwp;
}
