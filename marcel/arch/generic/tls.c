/*
 * The thread-local word of processors without an accessor in assembly. These
 * functions are never inlined, so no address outlives a context switch.
 */
#include "../cpu.h"

#include <base/compiler.h>
#include "../../os/tls.h"

BASE_NOINLINE void *cpu_tls_word(void)
{
	return marcel_tls.lwp;
}

BASE_NOINLINE void cpu_tls_pin(int n)
{
	marcel_tls.pins += n;
}

BASE_NOINLINE bool cpu_tls_in_handler(void)
{
	return marcel_tls.handler != NULL;
}
