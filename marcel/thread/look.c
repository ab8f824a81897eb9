/*
 * What others may learn of a thread while it runs on: for dumps, for lists, and
 * as attributes.
 *
 * Descriptors and stacks stay what they are until the runtime ends, so all that
 * can happen is that a word is out of date.
 */
#include "look.h"

#include <errno.h>
#include <string.h>

#include <base/diag.h>
#include "../os/os.h"
#include "../sched/sanitizer.h"
#include "../sched/private.h"
#include "attr.h"

bool marcel_thread_is_alive(struct marcel_thread *t)
{
	uint32_t state = t != NULL ? load_relaxed(&t->state) : MARCEL_T_FREE;

	return state != MARCEL_T_FREE && state != MARCEL_T_ENDED;
}

/* --- what it does --- */

const char *marcel_waits_name(uint64_t word)
{
	static const char *const names[] = {
		[MARCEL_WAITS_NONE] = NULL,
		[MARCEL_WAITS_MUTEX] = "mutex",
		[MARCEL_WAITS_CONDITION] = "condition",
		[MARCEL_WAITS_SEMAPHORE] = "semaphore",
		[MARCEL_WAITS_BARRIER] = "barrier",
		[MARCEL_WAITS_READ_LOCK] = "read lock",
		[MARCEL_WAITS_WRITE_LOCK] = "write lock",
		[MARCEL_WAITS_ONCE] = "once",
		[MARCEL_WAITS_JOIN] = "join",
		[MARCEL_WAITS_EVENT] = "event",
		[MARCEL_WAITS_EVENTS] = "any of several events",
		[MARCEL_WAITS_DESCRIPTOR] = "a descriptor",
		[MARCEL_WAITS_SIGNAL] = "signal",
		[MARCEL_WAITS_SLEEP] = "sleep",
		[MARCEL_WAITS_ALL] = "end of all threads",
	};

	return names[marcel_waits_kind(word) % MARCEL_WAITS_KINDS];
}

/* The thread may get its stack, or give it back, meanwhile. */
static BASE_NO_TSAN struct marcel_stack *stack_of(struct marcel_thread *t)
{
	return t->stack;
}

static const char *waits_for(struct marcel_thread *t)
{
	struct marcel_stack *s = stack_of(t);

	return marcel_waits_name(s != NULL ? load_relaxed(&s->waits)
					   : load_relaxed(&t->rest->waits));
}

/* The VP on which it runs, or -1. */
static int runs_on(struct marcel_thread *t)
{
	for (int i = 0; i < marcel_sched.nvp; i++)
		if (marcel_vp_current(&marcel_sched.vps[i]) == t)
			return i;
	return -1;
}

static enum marcel_kind kind_of(struct marcel_thread *t)
{
	if (marcel_thread_has(t, MARCEL_F_MAIN))
		return MARCEL_KIND_MAIN;
	return marcel_thread_has(t, MARCEL_F_FOREIGN) ? MARCEL_KIND_FOREIGN
						      : MARCEL_KIND_USER;
}

bool marcel_thread_look(struct marcel_thread *t, struct marcel_info *out)
{
	uint32_t state = load_relaxed(&t->state);

	out->id = t;
	out->kind = kind_of(t);
	out->vp = -1;
	out->waits = NULL;
	marcel_thread_get_name(t, out->name);
	switch (state) {
	case MARCEL_T_FREE:
		return false;
	case MARCEL_T_NEW:
		out->state = MARCEL_STATE_NEW;
		break;
	case MARCEL_T_PARKED:
		out->state = MARCEL_STATE_WAITING;
		out->waits = waits_for(t);
		break;
	case MARCEL_T_ENDED:
		out->state = MARCEL_STATE_ENDED;
		break;
	default:
		out->vp = runs_on(t);
		out->state = out->vp < 0 && out->kind != MARCEL_KIND_FOREIGN
				     ? MARCEL_STATE_READY
				     : MARCEL_STATE_RUNNING;
	}
	return load_relaxed(&t->state) != MARCEL_T_FREE;
}

BASE_PUBLIC const char *marcel_state_name(enum marcel_state state)
{
	static const char *const names[] = {
		[MARCEL_STATE_NEW] = "new",
		[MARCEL_STATE_READY] = "ready",
		[MARCEL_STATE_RUNNING] = "running",
		[MARCEL_STATE_WAITING] = "waiting",
		[MARCEL_STATE_ENDED] = "ended",
	};

	return (unsigned)state < BASE_ARRAY_LEN(names) ? names[state] : "?";
}

BASE_PUBLIC int marcel_getinfo(marcel_t t, struct marcel_info *out)
{
	struct marcel_info info;

	if (!marcel_thread_look(t, &info))
		return ESRCH;
	*out = info;
	return 0;
}

struct visit {
	int (*fn)(const struct marcel_info *info, void *arg);
	void *arg;
};

static int visit(struct marcel_thread *t, void *arg)
{
	struct visit *v = arg;
	struct marcel_info info;

	return marcel_thread_look(t, &info) ? v->fn(&info, v->arg) : 0;
}

BASE_PUBLIC int
marcel_threads(int (*fn)(const struct marcel_info *info, void *arg), void *arg)
{
	struct visit v = { fn, arg };

	if (fn == NULL)
		return EINVAL;
	return marcel_thread_visit(visit, &v);
}

/* --- its attributes --- */

/* A kernel thread's stack is known of main, and of the caller. */
static void look_at_kernel_stack(struct marcel_thread *t, struct marcel_attr *a)
{
	if (t == marcel_thread_self())
		os_stack_bounds(&a->stack, &a->stacksize);
	else if (marcel_thread_has(t, MARCEL_F_MAIN)) {
		a->stack = t->rest->stack_low;
		a->stacksize = t->rest->stack_bytes;
	}
}

static void look_at_stack(struct marcel_thread *t, struct marcel_attr *a)
{
	struct marcel_stack *s = stack_of(t);

	if (s != NULL) {
		a->stack = s->low;
		a->stacksize = s->bytes;
		a->guardsize = marcel_stack_guard_bytes(s);
	} else if (marcel_thread_has(t, MARCEL_F_MAIN | MARCEL_F_FOREIGN)) {
		look_at_kernel_stack(t, a);
	} else {
		a->stacksize = marcel_thread_has(t, MARCEL_F_STACK)
				       ? t->rest->stacksize
				       : marcel_sched.stacksize;
	}
}

BASE_PUBLIC int marcel_getattr_np(marcel_t t, marcel_attr_t *attr)
{
	struct marcel_attr *a = (struct marcel_attr *)attr;
	int rc = marcel_thread_is_alive(t) ? marcel_attr_init(attr) : ESRCH;

	if (rc != 0)
		return rc;
	a->detach = load_relaxed(&t->ended) == MARCEL_END_DETACHED
			    ? MARCEL_CREATE_DETACHED
			    : MARCEL_CREATE_JOINABLE;
	marcel_thread_get_name(t, a->name);
	a->is_private = marcel_private_is(t);
	a->is_steady = !marcel_thread_is_preemptible(t);
	marcel_san_enter();
	look_at_stack(t, a);
	a->has_set = marcel_getaffinity(t, &a->set) == 0;
	marcel_san_leave();
	return 0;
}
