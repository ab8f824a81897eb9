/*
 * What a watcher is told of, nm_watch(). While nobody watches each place costs
 * a load and a branch; none is on the way of small messages that are expected.
 */
#ifndef NMAD_CORE_WATCH_H
#define NMAD_CORE_WATCH_H

#include <nmad/event.h>

#include <base/atomic.h>
#include <base/compiler.h>

struct nm_core;
struct nm_gate;

struct nm_watcher {
	/* a: relaxed; nothing but the function is found by them */
	ATOMIC(uint32_t) kinds; /* a: enum nm_watched, bits */
	ATOMIC(nm_watch_fn) fn; /* a: */
};

extern struct nm_watcher nm_watcher;

/* calls.c, core lock held: it is due to be told. */
void nm_calls_sight(struct nm_core *core, enum nm_watched what,
		    const struct nm_gate *gate, uint32_t tag,
		    size_t length) BASE_COLD;

/* Core lock held. */
static inline void nm_watch_see(struct nm_core *core, enum nm_watched what,
				const struct nm_gate *gate, uint32_t tag,
				size_t length)
{
	if (unlikely((load_relaxed(&nm_watcher.kinds) & what) != 0))
		nm_calls_sight(core, what, gate, tag, length);
}

#endif
