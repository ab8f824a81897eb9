/*
 * The handler of the tick: hand the VP to another LWP, wait to get one again.
 *
 * A preempted thread keeps its kernel thread (Shiina, Iwasaki, Taura, Balaji,
 * "Lightweight preemptive user-level threads", PPoPP 2021): it waits inside the
 * handler, on its own stack, while the VP goes on with another LWP, and to pick
 * it means to give a VP back to its LWP. So any instruction may be interrupted,
 * what is thread-local stays true, and a lock of libc's that it holds is freed
 * by running it.
 *
 * Nothing is done inside the runtime, where the VP's fields may be half written
 * and its locks held. The handler makes no LWP: the monitor has done that.
 */
#include "tick.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../os/os.h"
#include "../os/tls.h"
#include "block.h"
#include "place.h"
#include "runq.h"
#include "sanitizer.h"

enum { LIBC_PARTS = 8 };

static struct {
	int signal;
	struct sigaction before;
	struct {
		uintptr_t from, to;
	} libc[LIBC_PARTS]; /* the code of libc and of the dynamic linker */
	int nlibc;
} tick;

static int note_libc(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const char *name = strrchr(info->dlpi_name, '/');

	(void)bytes;
	(void)arg;
	name = name != NULL ? name + 1 : info->dlpi_name;
	if (strncmp(name, "libc.", 5) != 0 && strncmp(name, "ld-", 3) != 0 &&
	    strncmp(name, "ld64", 4) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum && tick.nlibc < LIBC_PARTS; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		tick.libc[tick.nlibc].from = info->dlpi_addr + p->p_vaddr;
		tick.libc[tick.nlibc].to =
			info->dlpi_addr + p->p_vaddr + p->p_memsz;
		tick.nlibc++;
	}
	return 0;
}

enum { SYSCALL_BYTES = 64 };

/* syscall() itself holds nothing, and libc does not call it. */
static bool is_in_libc(const void *context)
{
	uintptr_t pc = (uintptr_t)cpu_context_pc(context);
	uintptr_t bare = (uintptr_t)syscall;

	if (pc >= bare && pc < bare + SYSCALL_BYTES)
		return false;
	for (int i = 0; i < tick.nlibc; i++)
		if (pc >= tick.libc[i].from && pc < tick.libc[i].to)
			return true;
	return pc == 0; /* unknown */
}

/* The LWP drives its VP: somebody else is to. */
static void hand_over(struct marcel_lwp *l, struct marcel_vp *vp)
{
	struct marcel_lwp *to;

	if (!marcel_runq_seems_ready(vp) &&
	    !marcel_place_leaves(l, load_relaxed(&l->self)))
		return;
	to = marcel_lwp_take(false);
	if (to == NULL) {
		fetch_add_relaxed(&vp->unpreempted, 1);
		return;
	}
	fetch_add_relaxed(&vp->preempted, 1);
	marcel_lwp_hand(vp, to);
	marcel_lwp_regain(l);
}

static void handle(int signal, siginfo_t *info, void *context)
{
	struct marcel_lwp *l = cpu_tls_word();
	int saved = errno;
	uintptr_t owner;

	(void)signal;
	(void)info;
	if (l != NULL)
		store_relaxed(&l->ticked, 0);
	if (l != NULL && l->in_call)
		marcel_call_break(l, context);
	if (l == NULL || load_relaxed(&l->inside) != 0 || marcel_tls.pins != 0)
		return;
	store_light(&l->inside, 1); /* order(revoke) */
	l->in_handler = true;
	l->in_libc = is_in_libc(context);
	owner = load_light(&load_relaxed(&l->vp)->owner); /* order(revoke) */
	if (owner == (uintptr_t)l)
		hand_over(l, load_relaxed(&l->vp));
	else if (l == &marcel_lwps.first && !(owner & MARCEL_SECTION))
		marcel_lwp_regain(l); /* main may wait for this LWP */
	l->in_handler = l->in_libc = false;
	marcel_lwp_leaves(l, 0);
	errno = saved;
}

void marcel_tick_send(struct marcel_lwp *l)
{
	/* Signals of this kind queue; one is enough. */
	if (xchg_relaxed(&l->ticked, 1) == 0)
		os_thread_kill(load_relaxed(&l->tid), tick.signal);
}

int marcel_tick_init(int signal)
{
	struct sigaction ours = { .sa_sigaction = handle,
				  .sa_flags = SA_SIGINFO | SA_RESTART };

	tick.signal = signal;
	tick.nlibc = 0;
	dl_iterate_phdr(note_libc, NULL);
	sigemptyset(&ours.sa_mask);
	if (sigaction(signal, &ours, &tick.before) < 0)
		return -errno;
	marcel_tick_block(false);
	return 0;
}

void marcel_tick_block(bool block)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, marcel_sched.signal);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void marcel_tick_exit(void)
{
	if (tick.signal != 0)
		sigaction(tick.signal, &tick.before, NULL);
	tick.signal = 0;
}
