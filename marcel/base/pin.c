/*
 * Out of line, because the address of a thread-local word must not outlive a
 * switch of the caller's.
 */
#include <base/pin.h>

#include <base/compiler.h>
#include "../os/tls.h"

BASE_PUBLIC BASE_NOINLINE BASE_NO_TSAN void base_pin(void)
{
	marcel_tls.pins++;
}

BASE_PUBLIC BASE_NOINLINE BASE_NO_TSAN void base_unpin(void)
{
	marcel_tls.pins--;
}
