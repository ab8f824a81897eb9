/*
 * Locks whose holder libc knows by the kernel thread, and with which code of
 * the program runs: of streams, and of the list of loaded objects. Where one is
 * held must be known (sched/lwp.h). Counted before it is taken and after it was
 * given back: too long rather than too short.
 */
#include <link.h>

#include "../../io/next.h"
#include "front.h"

typedef int object_fn(struct dl_phdr_info *, size_t, void *);
typedef int each_fn(object_fn *, void *);
typedef void lock_fn(FILE *);
typedef int try_fn(FILE *);

BASE_PUBLIC void flockfile(FILE *f)
{
	static struct front_next next = { .name = "flockfile" };
	lock_fn *fn = front_find(&next);

	marcel_io_holds_lock(1);
	fn(f);
}

BASE_PUBLIC int ftrylockfile(FILE *f)
{
	static struct front_next next = { .name = "ftrylockfile" };
	try_fn *fn = front_find(&next);
	int rc;

	marcel_io_holds_lock(1);
	rc = fn(f);
	if (rc != 0)
		marcel_io_holds_lock(-1);
	return rc;
}

BASE_PUBLIC void funlockfile(FILE *f)
{
	static struct front_next next = { .name = "funlockfile" };
	lock_fn *fn = front_find(&next);

	fn(f);
	marcel_io_holds_lock(-1);
}

/* ASan calls it before it can look at memory. */
BASE_PUBLIC BASE_NO_ASAN int dl_iterate_phdr(object_fn *each, void *arg)
{
	static struct front_next next = { .name = "dl_iterate_phdr" };
	each_fn *fn = front_find(&next);
	int rc;

	marcel_io_holds_lock(1);
	rc = fn(each, arg);
	marcel_io_holds_lock(-1);
	return rc;
}
