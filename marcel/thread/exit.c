/*
 * The end of a thread before its function returns: its stack is unwound.
 *
 * The unwinder is the one that C++ uses. It is found and not linked: a process
 * in which it is not loaded has no frames that want it. It calls stop() for
 * each frame before that frame's own handlers, and for the last time where the
 * stack, or what is known of it, ends; there the thread ends, too, because
 * nothing above is needed any more.
 *
 * Handlers of C code are records in its frames, threaded from the thread's
 * descriptor. The unwinder gives the stack pointer of the frame it is about to
 * leave: what lies below belongs to frames that have been left.
 */
#include <marcel/cancel.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include <base/diag.h>
#include <marcel/marcel.h>
#include "../sched/block.h"
#include "../sched/enter.h"
#include "../sched/sanitizer.h"
#include "cancel.h"
#include "exception.h"

#pragma weak _Unwind_ForcedUnwind
#pragma weak _Unwind_GetCFA

_Static_assert(sizeof(struct _Unwind_Exception) <=
		       sizeof(((struct marcel_thread_rest *)0)->unwinding),
	       "the unwinder's object fits its place");

typedef _Unwind_Reason_Code (*force_fn)(struct _Unwind_Exception *,
					_Unwind_Stop_Fn, void *);
typedef _Unwind_Word (*cfa_fn)(struct _Unwind_Context *);

/* a: relaxed; all who write agree */
static ATOMIC(uintptr_t) get_cfa;

/* NULL: no unwinder is loaded. */
static force_fn find_unwinder(void)
{
	uintptr_t force = (uintptr_t)_Unwind_ForcedUnwind;
	uintptr_t cfa = (uintptr_t)_Unwind_GetCFA;
	void *lib;

	if (force == 0 || cfa == 0) {
		/* Loaded by who was loaded after us, or out of our sight. */
		lib = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
		if (lib == NULL)
			return NULL;
		force = (uintptr_t)dlsym(lib, "_Unwind_ForcedUnwind");
		cfa = (uintptr_t)dlsym(lib, "_Unwind_GetCFA");
		dlclose(lib);
		if (force == 0 || cfa == 0)
			return NULL;
	}
	store_relaxed(&get_cfa, cfa);
	return (force_fn)force;
}

/* --- handlers of C code --- */

BASE_PUBLIC void marcel_cleanup_enter(struct marcel_cleanup *c)
{
	struct marcel_thread *t = marcel_thread_self();

	marcel_thread_use_rest(t);
	c->marcel_below = t->rest->cleanup;
	t->rest->cleanup = c;
}

BASE_PUBLIC void marcel_cleanup_leave(struct marcel_cleanup *c, int execute)
{
	marcel_thread_self()->rest->cleanup = c->marcel_below;
	if (execute)
		c->marcel_fn(c->marcel_arg);
}

/* Those in frames below this stack pointer. */
static void run_handlers(struct marcel_thread *t, uintptr_t sp)
{
	struct marcel_cleanup *c;

	while ((c = t->rest->cleanup) != NULL && (uintptr_t)c < sp)
		marcel_cleanup_leave(c, 1);
}

/* --- the end --- */

/* Also of the child of a fork that has no runtime: then there is none to end.
 */
BASE_COLD BASE_NORETURN void marcel_thread_end_main(struct marcel_thread *t)
{
	marcel_key_exit(t);
	while (marcel_end() == 0)
		;
	exit(0);
}

/* Not a user thread; but one may have forked this process off. */
static BASE_COLD BASE_NORETURN void exit_foreign(struct marcel_thread *t,
						 void *value)
{
	run_handlers(t, UINTPTR_MAX);
	if (t->stack != NULL)
		marcel_thread_end_main(t);
	pthread_exit(value);
}

/* Nothing of the stack is needed any more. */
static BASE_NORETURN void unwound(struct marcel_thread *t)
{
	struct marcel_vp *vp;

	run_handlers(t, UINTPTR_MAX);
	if (marcel_thread_has(t, MARCEL_F_MAIN))
		marcel_thread_end_main(t);
	marcel_san_enter();
	vp = marcel_enter();
	if (marcel_exceptions_any(vp->exceptions))
		*vp->exceptions = (struct marcel_exceptions){ 0 };
	marcel_leave(vp);
	marcel_san_leave();
	marcel_thread_end(t->arg);
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
				_Unwind_Exception_Class class,
				struct _Unwind_Exception *e,
				struct _Unwind_Context *context, void *arg)
{
	cfa_fn cfa = (cfa_fn)load_relaxed(&get_cfa);
	struct marcel_thread *t = arg;

	if (actions & _UA_END_OF_STACK)
		unwound(t);
	run_handlers(t, cfa(context));
	return _URC_NO_REASON;
}

/* catch (...) without throw. */
static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *e)
{
	base_fatal("marcel", "a catch (...) has kept what ends its thread: it "
			     "must throw it on");
}

BASE_PUBLIC void marcel_exit(void *value)
{
	struct marcel_thread *t = marcel_thread_self();
	struct _Unwind_Exception *e =
		(struct _Unwind_Exception *)(void *)t->rest->unwinding;
	force_fn force;

	marcel_cancel_ends(t);
	marcel_call_abandon();
	if (unlikely(marcel_thread_has(t, MARCEL_F_FOREIGN)))
		exit_foreign(t, value);
	marcel_san_enter(); /* the descriptor has been another thread's */
	t->arg = value;
	memset(e, 0, sizeof(*e));
	e->exception_cleanup = swallowed;
	marcel_san_leave();
	force = find_unwinder();
	if (force != NULL) {
		force(e, stop, t);
		/* Back only if it does not understand the stack. */
	}
	unwound(t);
}
