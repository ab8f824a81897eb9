#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdbool.h>
#include <string.h>

#include <base/compiler.h>
#include <base/diag.h>

#include "lib.h"

#define LIBRARY "libibverbs.so.1"

struct verbs_lib nm_verbs_lib;

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
#define X(name) { "ibv_" #name, offsetof(struct verbs_lib, name) },
	VERBS_FUNCTIONS(X)
#undef X
};

int nm_verbs_lib_load(bool loud)
{
	static bool loaded;
	void *library;

	if (loaded)
		return 0;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		if (loud)
			base_warn("nmad",
				  "ibverbs: no library: %s; install it "
				  "(libibverbs1, ibverbs-providers)",
				  dlerror());
		return -ENODEV;
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (symbol == NULL) {
			base_warn("nmad", "ibverbs: %s has no %s", LIBRARY,
				  symbols[i].name);
			return -ENODEV;
		}
		memcpy((char *)&nm_verbs_lib + symbols[i].at, &symbol,
		       sizeof(symbol));
	}
	loaded = true;
	return 0;
}
