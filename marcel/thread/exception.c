/*
 * Where C++ keeps its exceptions: asked once for each kernel thread.
 */
#include "exception.h"

#include <dlfcn.h>

#include "../arch/cpu.h"
#include "../sched/lwp.h"
#include "../sched/sanitizer.h"
#include "fork.h"

/* libstdc++'s, or another C++ library's; none need be there. */
extern void *__cxa_get_globals(void) __attribute__((weak));

/* For all kernel threads where there is no C++; nobody writes it. */
static struct marcel_exceptions none;

static void *(*get_globals)(void); /* written while the runtime starts */

/*
 * As main, for all: whoever holds the dynamic linker's lock may have been
 * preempted, and wait for the very LWP that begins.
 */
static void find_function(void)
{
	void *lib;

	/* The parent asked; its linker may have been at work at the fork. */
	if (marcel_fork_is_child())
		return;
	get_globals = __cxa_get_globals;
	if (get_globals != NULL)
		return;
	/* Loaded after us, or out of our sight. It is to stay. */
	lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (lib != NULL)
		get_globals = (void *(*)(void))dlsym(lib, "__cxa_get_globals");
}

struct marcel_exceptions *marcel_exceptions_find(void)
{
	struct marcel_exceptions *e;

	if (cpu_tls_word() == &marcel_lwps.first)
		find_function();
	if (get_globals == NULL)
		return &none;
	e = get_globals();
	marcel_san_shared(e, sizeof(*e));
	return e;
}
