/*
 * The dump of VPs and threads. Runs in a signal handler while everything else
 * runs on: it reads words that may be out of date, and memory that stays what
 * it is (VPs, descriptors).
 */
#include "dump.h"

#include <marcel/errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <base/option.h>
#include "../sched/vp.h"
#include "hang.h"
#include "look.h"

static int dump_signal; /* of the last init */
static bool is_on;
static struct sigaction before;

static void dump_thread(struct marcel_thread *t, void *arg)
{
	static const char *const kinds[] = {
		[MARCEL_KIND_USER] = "",
		[MARCEL_KIND_MAIN] = "main, ",
		[MARCEL_KIND_FOREIGN] = "foreign, ",
	};
	struct marcel_info i;

	(void)arg;
	if (!marcel_thread_look(t, &i))
		return;
	base_dump("thread %p \"%s\" %s%s%s%s", (void *)t, i.name, kinds[i.kind],
		  marcel_state_name(i.state), i.waits != NULL ? ", for " : "",
		  i.waits != NULL ? i.waits : "");
}

static void dump_vp(struct marcel_vp *vp)
{
	struct marcel_lwp *l = marcel_vp_lwp(vp);
	struct marcel_thread *t = load_relaxed(&l->self);

	base_dump("vp %d: cpu %d, %s, thread %p, fifo %ld, seeds %ld%s%s",
		  vp->id, marcel_sched.bind ? vp->cpu : -1,
		  load_relaxed(&vp->sleeper.asleep) == MARCEL_ASLEEP ? "asleep"
		  : t == &l->idle                                    ? "idle"
								     : "busy",
		  t == &l->idle ? NULL : (void *)t,
		  (long)marcel_deque_length(&vp->fifo),
		  (long)marcel_deque_length(&vp->seeds),
		  load_relaxed(&vp->next.entry) ? ", one handed over" : "",
		  load_relaxed(&vp->nbound) == 0 ? "" : ", some bound");
}

static void dump(void *arg)
{
	struct marcel_sched *s = &marcel_sched;

	(void)arg;
	marcel_stack_dump();
	for (int i = 0; i < s->nvp; i++)
		dump_vp(&s->vps[i]);
	for (unsigned i = 0; i < s->topo.nlevels; i++)
		if (load_relaxed(&s->levelqs[i].length) > 0)
			base_dump("%s %u: %u ready",
				  marcel_level_name(s->topo.levels[i].kind),
				  s->topo.levels[i].index,
				  load_relaxed(&s->levelqs[i].length));
	marcel_thread_walk(dump_thread, NULL);
	marcel_hang_ask();
}

static struct base_dumper dumper = { .name = "marcel", .fn = dump };

static void handle(int sig)
{
	int saved = errno;

	(void)sig;
	base_dump_all();
	errno = saved;
}

/* The signal of this number or name, or 0. */
static int signal_of(const char *text)
{
	const char *name, *word = strncmp(text, "SIG", 3) ? text : text + 3;
	long n;

	if (base_parse_long(text, false, &n) == 0)
		return n > 0 && n < NSIG ? (int)n : 0;
	for (int i = 1; i < NSIG; i++) {
		name = sigabbrev_np(i);
		if (name != NULL && strcmp(name, word) == 0)
			return i;
	}
	return 0;
}

/* A program can go on after it; not so a fault, which would come again. */
static bool can_be_asked_for(int sig)
{
	static const int never[] = { SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
				     SIGTRAP, SIGSYS, SIGKILL, SIGSTOP };

	for (size_t i = 0; i < BASE_ARRAY_LEN(never); i++)
		if (sig == never[i])
			return false;
	return sigaction(sig, NULL, NULL) == 0; /* libc keeps some */
}

int marcel_dump_signal(const char *text, int *out)
{
	int sig = signal_of(text);

	if (*text != 0 && !can_be_asked_for(sig)) {
		base_warn("marcel",
			  "MARCEL_DUMP_SIGNAL=%s: not the number or name of a "
			  "signal to be handled, such as SIGUSR2",
			  text);
		return -EINVAL;
	}
	*out = sig;
	return 0;
}

void marcel_dump_init(int signal)
{
	struct sigaction ours = { .sa_handler = handle,
				  .sa_flags = SA_RESTART | SA_ONSTACK };

	base_dumper_add(&dumper);
	is_on = true;
	dump_signal = signal;
	if (signal != 0)
		sigaction(signal, &ours, &before);
}

void marcel_dump_exit(void)
{
	struct sigaction now;

	/* Who took the signal after us keeps it. */
	if (dump_signal != 0 && sigaction(dump_signal, NULL, &now) == 0 &&
	    now.sa_handler == handle)
		sigaction(dump_signal, &before, NULL);
	base_dumper_remove(&dumper);
	is_on = false;
}

void marcel_dump_anew(void)
{
	if (!is_on)
		marcel_dump_init(dump_signal);
}
