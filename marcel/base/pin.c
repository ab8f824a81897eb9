/*
 * For the sister libraries, which cannot name our thread-local words.
 */
#include <base/pin.h>

#include <base/compiler.h>
#include "../os/tls.h"

BASE_PUBLIC void base_pin(void)
{
	cpu_tls_pin(1);
}

BASE_PUBLIC void base_unpin(void)
{
	cpu_tls_pin(-1);
}
