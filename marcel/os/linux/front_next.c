/*
 * The definition that comes after ours.
 */
#include "front.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>

#include <base/diag.h>

/* libc may stand before us: in a dlopened library, or linked out of turn. */
static BASE_NO_ASAN void *in_libc(const char *name)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);

	return libc != NULL ? dlsym(libc, name) : NULL;
}

BASE_NO_ASAN void *front_find(struct front_next *n)
{
	void *p = load_relaxed(&n->fn);

	if (p != NULL)
		return p;
	p = dlsym(RTLD_NEXT, n->name);
	if (p == NULL)
		p = in_libc(n->name);
	if (p == NULL)
		base_fatal("marcel", "libc has no %s", n->name);
	store_relaxed(&n->fn, p);
	return p;
}
