/*
 * Where C++ keeps its exceptions: asked once for each kernel thread.
 */
#include "exception.h"

#include <dlfcn.h>

#include "../sched/sanitizer.h"

/* libstdc++'s, or another C++ library's; none need be there. */
extern void *__cxa_get_globals(void) __attribute__((weak));

/* For all kernel threads where there is no C++; nobody writes it. */
static struct marcel_exceptions none;

struct marcel_exceptions *marcel_exceptions_find(void)
{
	void *(*get)(void) = __cxa_get_globals;
	struct marcel_exceptions *e;
	void *lib;

	if (get == NULL) {
		/* Loaded after us, or out of our sight. */
		lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
		if (lib == NULL)
			return &none;
		get = (void *(*)(void))dlsym(lib, "__cxa_get_globals");
		dlclose(lib);
	}
	if (get == NULL)
		return &none;
	e = get();
	marcel_san_shared(e, sizeof(*e));
	return e;
}
