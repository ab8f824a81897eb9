/*
 * For the sister libraries, which cannot name our thread-local words.
 */
#include <base/pin.h>

#include <string.h>

#include <base/compiler.h>
#include <base/diag.h>
#include "../os/tls.h"

BASE_PUBLIC void base_pin(void)
{
	cpu_tls_pin(1);
}

BASE_PUBLIC void base_unpin(void)
{
	cpu_tls_pin(-1);
}

/* Who is not pinned may read another kernel thread's word, and is told yes. */
BASE_PUBLIC BASE_NO_TSAN bool base_is_pinned(void)
{
	return marcel_tls.pins != 0;
}

/*
 * The words are the kernel thread's, which a user thread may leave at any
 * instruction at which it is not pinned. (TSan knows user threads, which have
 * them in turn.)
 */
BASE_PUBLIC BASE_NO_TSAN const void *base_pin_handler(const void *fn)
{
	const void *outer;

	cpu_tls_pin(1);
	outer = marcel_tls.handler;
	marcel_tls.handler = fn;
	return outer;
}

BASE_PUBLIC BASE_NO_TSAN void base_unpin_handler(const void *outer)
{
	marcel_tls.handler = outer;
	cpu_tls_pin(-1);
}

BASE_PUBLIC bool base_in_handler(void)
{
	return cpu_tls_in_handler();
}

static BASE_COLD BASE_NO_TSAN void refuse(const char *module, const char *what)
{
	const void *fn;

	memcpy(&fn, marcel_tls.handler, sizeof(fn));
	base_fatal(module, "a handler blocks: %s, in the function at %p",
		   what != NULL ? what : "park", fn);
}

BASE_PUBLIC void base_handler_check(const char *module, const char *what)
{
	if (unlikely(cpu_tls_in_handler()))
		refuse(module, what);
}
