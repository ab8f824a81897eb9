/*
 * Memory that is watched: who asked is told when it is unmapped, moved, mapped
 * over or given back to the kernel, whoever did that, libc included. The kernel
 * tells, by a userfaultfd (unmap.c); nothing is wrapped or replaced.
 *
 * One for the process, as a page has one userfaultfd.
 */
#ifndef NMAD_DRIVERS_VERBS_UNMAP_H
#define NMAD_DRIVERS_VERBS_UNMAP_H

#include <stdbool.h>
#include <stdint.h>

#include <base/list.h>
#include <base/spin.h>

/*
 * Who asks to be told. Both functions are called with nm_verbs_unmap_lock held,
 * by any thread, and must neither allocate, nor wait, nor call what does: what
 * unmaps memory waits until it has been told, perhaps with a lock of libc's.
 */
struct verbs_watcher {
	/* [begin, end), whole pages, is not what it was, or soon will not be */
	void (*gone)(struct verbs_watcher *w, uintptr_t begin, uintptr_t end);
	/*
	 * How far what it wants watched reaches from `at` on; or `at`, and
	 * *next is lowered to where the next begins.
	 */
	uintptr_t (*wants)(struct verbs_watcher *w, uintptr_t at,
			   uintptr_t *next);
	struct base_link on; /* unmap's */
};

/* Guards all that the functions above look at, of all watchers. */
extern struct base_spin nm_verbs_unmap_lock;

/*
 * From here on w may be told. 0; -errno: nothing can be watched here: `loud`:
 * with a line that says why. May allocate and sleep, as may close.
 */
int nm_verbs_unmap_open(struct verbs_watcher *w, bool loud);
void nm_verbs_unmap_close(struct verbs_watcher *w);

/*
 * Watch [begin, end), whole pages, which w->wants() by now. -errno: the kernel
 * cannot watch this. Where one may sleep.
 */
int nm_verbs_unmap_watch(uintptr_t begin, uintptr_t end);
/* Do not watch any more what no watcher wants of [begin, end). May sleep. */
void nm_verbs_unmap_unwatch(uintptr_t begin, uintptr_t end);

/*
 * True: all that was done to watched memory before the call has been told by
 * when the caller holds the lock; it may still be under way without.
 * False: not known, after so many turns of base_spin_turn(). Any thread;
 * without lock; neither allocates nor takes a lock of libc's: a system call
 * where nothing was done.
 */
bool nm_verbs_unmap_is_told(unsigned turns);

#endif
