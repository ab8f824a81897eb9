/*
 * Whether a function that a signal has interrupted may be left, in the handler,
 * for other code that then runs on the same kernel thread; or for good.
 *
 * That code must not find what the thread has left half done: so no function on
 * the stack may belong to an object that keeps state of its own per kernel
 * thread (the allocator, the sanitizers, OpenMP) or locks that it knows by the
 * kernel thread (libc, the dynamic linker), but for a few that are harmless;
 * and none of the locks that front_lock.c counts may be held.
 *
 * An OpenMP runtime that waits in the kernel, or has called what waits there,
 * has nothing half done. It must be left: main may wait in its barrier, on LWP
 * 0, for what a thread still has to do that was interrupted there.
 *
 * What is left for good nobody completes, and it may be known to others than
 * the thread. So there every function must be the program's, down to where the
 * thread began, which has to be seen; and the unwinder must be able to leave
 * them: landing.h.
 *
 * The unwinder of libgcc takes no lock for this, and neither does
 * _dl_find_object(). Frames beyond code without unwind tables are not seen.
 */
#include "../os.h"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

#include <base/compiler.h>
#include "../../arch/cpu.h"
#include "../../arch/ctx.h"
#include "../tls.h"
#include "landing.h"

enum { FRAMES_MAX = 1000 };

/* Functions of libc that have nothing of their thread's half done. */
static const struct {
	const char *name;
	bool calls_back; /* only while it does */
} harmless[] = {
	{ "pthread_mutex_lock" },
	{ "pthread_mutex_timedlock" },
	{ "pthread_mutex_clocklock" },
	{ "pthread_rwlock_rdlock" },
	{ "pthread_rwlock_timedrdlock" },
	{ "pthread_rwlock_clockrdlock" },
	{ "pthread_rwlock_wrlock" },
	{ "pthread_rwlock_timedwrlock" },
	{ "pthread_rwlock_clockwrlock" },
	{ "pthread_cond_wait" },
	{ "pthread_cond_timedwait" },
	{ "pthread_cond_clockwait" },
	{ "pthread_barrier_wait" },
	{ "pthread_join" },
	{ "sem_wait" },
	{ "sem_timedwait" },
	{ "sem_clockwait" },
	{ "syscall" },
	{ "memcpy" },
	{ "memmove" },
	{ "memset" },
	{ "memcmp" },
	{ "__libc_start_main", true },
	{ "qsort", true },
	{ "qsort_r", true },
	{ "bsearch", true },
};

static struct {
	/* libc's, and those that stand before it; or NULL */
	const void *fns[BASE_ARRAY_LEN(harmless)][2];
	const void *us; /* where our own object begins */
	const void *allocator;
} leave;

struct frame {
	uintptr_t pc;  /* of the instruction, or in the call */
	uintptr_t fn;  /* its function */
	bool is_exact; /* a signal came there */
	const void *lsda;
};

struct walk {
	uintptr_t pc; /* interrupted there */
	/* Whether to go on with the frame that has called this one. */
	bool (*see)(struct walk *w, const struct frame *f);
	const void *context; /* of the signal */
	int frames;          /* seen before */
	bool found;          /* the frame of pc */
	bool may;
	/* for another: */
	uintptr_t
		outer; /* if the last frame so far keeps state, its function */
	bool left;     /* a frame that does not */
	/* for good: */
	uintptr_t first; /* function of the thread */
	const void *own; /* object that is the program's, too */
};

#ifdef MARCEL_HAVE_DL_FIND_OBJECT

static const void *object_of(const void *pc)
{
	struct dl_find_object o;

	return _dl_find_object((void *)pc, &o) == 0 ? o.dlfo_map_start : NULL;
}

static bool has_tls(const ElfW(Ehdr) * eh)
{
	const ElfW(Phdr) *p = (const void *)((const char *)eh + eh->e_phoff);

	for (int i = 0; i < eh->e_phnum; i++)
		if (p[i].p_type == PT_TLS)
			return true;
	return false;
}

/* Whether the code there may have something half done for its thread. */
static bool keeps_state(uintptr_t pc)
{
	struct dl_find_object o;
	const char *name;

	if (_dl_find_object((void *)pc, &o) != 0)
		return false; /* made at run time */
	if (o.dlfo_map_start == leave.allocator)
		return true;
	if (o.dlfo_map_start == leave.us)
		return false;
	name = o.dlfo_link_map->l_name;
	if (*name == '\0')
		return false; /* the program */
	name = strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name;
	return strncmp(name, "ld-", 3) == 0 || strncmp(name, "ld64", 4) == 0 ||
	       has_tls(o.dlfo_map_start);
}

/* libgomp's code, or that of LLVM and Intel. */
static bool is_openmp(uintptr_t pc)
{
	struct dl_find_object o;
	const char *name, *slash;

	if (_dl_find_object((void *)pc, &o) != 0)
		return false;
	name = o.dlfo_link_map->l_name;
	slash = strrchr(name, '/');
	name = slash != NULL ? slash + 1 : name;
	return strncmp(name, "libgomp.", 8) == 0 ||
	       strncmp(name, "libomp", 6) == 0 ||
	       strncmp(name, "libiomp", 7) == 0;
}

/* Of the executable or that object, and not ours. */
static bool is_programs(uintptr_t pc, const void *own)
{
	struct dl_find_object o;

	if (_dl_find_object((void *)pc, &o) != 0 ||
	    o.dlfo_map_start == leave.us || keeps_state(pc))
		return false;
	return o.dlfo_map_start == own || *o.dlfo_link_map->l_name == '\0';
}

#else

static const void *object_of(const void *pc)
{
	(void)pc;
	return NULL;
}

static bool keeps_state(uintptr_t pc)
{
	(void)pc;
	return true;
}

static bool is_openmp(uintptr_t pc)
{
	(void)pc;
	return false;
}

static bool is_programs(uintptr_t pc, const void *own)
{
	(void)pc;
	(void)own;
	return false;
}

#endif

static bool is_harmless(uintptr_t fn, bool calls_back)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(harmless); i++)
		if (fn == (uintptr_t)leave.fns[i][0] ||
		    fn == (uintptr_t)leave.fns[i][1])
			return calls_back || !harmless[i].calls_back;
	return false;
}

/* Innermost first; the first ones are the handler's own. */
static _Unwind_Reason_Code look(struct _Unwind_Context *frame, void *arg)
{
	struct walk *w = arg;
	int exact;
	uintptr_t pc = _Unwind_GetIPInfo(frame, &exact);
	struct frame f;

	if (!w->found && pc != w->pc)
		return _URC_NO_REASON;
	w->found = true;
	if (pc == (uintptr_t)marcel_ctx_base())
		return _URC_END_OF_STACK; /* what lies below never ran */
	f = (struct frame){
		/* What a frame has called may be the last thing in it. */
		.pc = exact ? pc : pc - 1,
		.fn = _Unwind_GetRegionStart(frame),
		.is_exact = exact,
		.lsda = _Unwind_GetLanguageSpecificData(frame),
	};
	if (w->frames == FRAMES_MAX)
		w->may = false;
	else if (w->see(w, &f)) {
		w->frames++;
		return _URC_NO_REASON;
	}
	return _URC_END_OF_STACK;
}

/* What the signal has interrupted; false: unknown, or a lock is held. */
static bool may_walk(struct walk *w, const void *context)
{
	w->pc = (uintptr_t)cpu_context_pc(context);
	return w->pc != 0 && marcel_tls.locks == 0;
}

/* --- for another --- */

static bool is_half_done(const struct walk *w, uintptr_t pc)
{
	return keeps_state(pc) &&
	       !(is_openmp(pc) && cpu_context_in_call(w->context));
}

/* What was called from elsewhere decides, not what that has called in turn. */
static bool may_leave_frame(struct walk *w, const struct frame *f)
{
	uintptr_t outer = w->outer;

	w->outer = is_half_done(w, f->pc) ? f->fn : 0;
	w->may = w->outer != 0 || outer == 0 || is_harmless(outer, w->left);
	w->left = w->left || w->outer == 0;
	return w->may;
}

BASE_NOINLINE bool os_may_leave(const void *context)
{
	struct walk w = { .see = may_leave_frame, .context = context };

	if (!may_walk(&w, context))
		return false;
	_Unwind_Backtrace(look, &w);
	return w.found ? w.may && w.outer == 0 : !is_half_done(&w, w.pc);
}

/* --- for good --- */

/*
 * A handler of the program's, whose mask would stay, was called by code of
 * libc's or the kernel's, as its stack shows.
 */
static bool may_end_frame(struct walk *w, const struct frame *f)
{
	if (f->fn == w->first) {
		w->may = w->frames > 0;
		return false;
	}
	return is_programs(f->pc, w->own) &&
	       os_landing_passes(f->lsda, f->pc - f->fn, f->is_exact);
}

BASE_NOINLINE bool os_may_end(const void *context, void (*first)(void *),
			      void *(*fn)(void *))
{
	struct walk w = { .see = may_end_frame,
			  .first = (uintptr_t)first,
			  .own = object_of((const void *)(uintptr_t)fn) };

	if (!may_walk(&w, context) || !is_programs(w.pc, w.own))
		return false;
	_Unwind_Backtrace(look, &w);
	return w.may;
}

/* --- init --- */

void os_leave_init(void)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	struct walk last = { .see = may_leave_frame }; /* its pc is 0 */

	for (unsigned i = 0; i < BASE_ARRAY_LEN(harmless); i++) {
		const char *name = harmless[i].name;

		leave.fns[i][0] = libc != NULL ? dlsym(libc, name) : NULL;
		leave.fns[i][1] = dlsym(RTLD_DEFAULT, name);
	}
	if (libc != NULL)
		dlclose(libc);
	leave.us = object_of((const void *)os_leave_init);
	leave.allocator = object_of(dlsym(RTLD_DEFAULT, "malloc"));
	/* Names are looked up, and what is made once is made, here. */
	_Unwind_Backtrace(look, &last);
}
