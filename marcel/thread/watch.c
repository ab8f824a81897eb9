/*
 * The look at unguarded stacks is a switch hook, so that it costs nothing
 * where all stacks have guards. The tick looks as well: who computes does not
 * switch.
 *
 * The page where the guard would be is there, and nobody writes to it but a
 * thread that runs off its stack: so its words are zeros, and to read them
 * costs no memory, because all untouched pages are one.
 */
#include "watch.h"

#include <base/atomic.h>
#include <base/diag.h>
#include <marcel/hook.h>
#include "../sched/hook.h"
#include "../sched/vp.h"
#include "overflow.h"
#include "stack.h"

void marcel_watch_look(struct marcel_thread *t)
{
	const struct marcel_stack *s = t->stack;

	if (s != NULL &&
	    unlikely(marcel_stack_is_smashed(s, __builtin_frame_address(0))))
		marcel_overflow_found(t);
}

static enum marcel_hook_answer look(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	marcel_watch_look(marcel_thread_self());
	return MARCEL_HOOK_NOTHING;
}

static struct marcel_hook hook = { .fn = look, .arg = MARCEL_HOOK_OWN };
static ATOMIC(int) is_on; /* a: relaxed */

void marcel_watch_begin(void)
{
	if (xchg_relaxed(&is_on, 1) == 0 &&
	    marcel_hook_add(MARCEL_HOOK_SWITCH, &hook) < 0)
		base_warn("marcel", "too many switch hooks: stack overflows "
				    "will not be noticed");
}

void marcel_watch_end(void)
{
	if (xchg_relaxed(&is_on, 0) != 0)
		marcel_hook_remove(MARCEL_HOOK_SWITCH, &hook);
}

void marcel_watch_forked(void)
{
	store_relaxed(&is_on, 0);
}
