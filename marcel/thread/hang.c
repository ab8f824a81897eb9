/*
 * Is this process dead? A kernel thread, the watchman, looks ten times a second
 * while MARCEL_DEADLOCK is on; nobody counts anything for it.
 *
 * The invariant. At a look the process is *still* if
 *
 *  a. every VP is on its idle thread and asleep, or has run its hooks since the
 *     look before: so it has done all that was left to do by whoever ran there
 *     last (an `after`, a wake);
 *  b. every user thread is PARKED or has ended, no tasklet is pending, and no
 *     layer is at work (base_hang.busy);
 *  c. the counters of all that is done (threads made and ended, threads that an
 *     idle VP has entered; packets) are what they were at the look before,
 *     which found it still but for c.
 *
 * Between two such looks no thread ran: every VP was idle in both, and has
 * entered none meanwhile. So whoever could wake one by running had done so
 * when the first look ended, and the second would have seen it ready. From then
 * on only these can wake a thread: a timer, a descriptor, an ltask or a hook
 * that idle VPs run, a kernel thread that is not ours, a signal, a message of
 * another process. If there is
 * none of them the process is *dead*: nothing will ever change. With any of
 * them it is *quiet*, and that can not be told from a process that waits.
 *
 * Who may do so is asked of the layers; here are counted the kernel threads of
 * the process that are not ours, whatever they do, and the signals for which
 * the program has a handler. A process that gets SIGSEGV by kill() is beyond
 * us, and so is memory that another process changes: nobody waits for that but
 * by running.
 *
 * If only peers may move it, and mpirun is there (MARCEL_DEADLOCK_FD), it is
 * told so with the number of packets sent and received, and asks whether that
 * has stayed so: tools/launch/hang.c decides for the job. A line each:
 *
 *	quiet MOVED SENT RECEIVED    we are still     l   have you moved since?
 *	busy                         or not           r   tell what you wait for
 *	text LINE, edge RANK LINE, end                    the report
 */
#include "hang.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/hang.h>
#include <base/option.h>
#include "../os/os.h"
#include "../sched/hook.h"
#include "../sched/vp.h"
#include "blame.h"

enum { LOOK_MS = 100 };

static struct {
	/* -: const while it runs    o: the watchman's    a: relaxed */
	enum marcel_hang_mode mode; /* -: */
	bool runs;                  /* -: */
	int bell;                   /* -: an eventfd: look at the next two */
	ATOMIC(bool) stop, asked;   /* a: */
	int launcher;               /* o: a socket, or -1 */
	uint64_t our_signals;       /* -: whose handlers move nobody */
	pthread_t kernel_thread;    /* -: */
	uint32_t *hooks;            /* o: by VP, its hooking.seq at the last */
	struct base_hang last;      /* o: what the last look found */
	bool was_calm;              /* o: that a. and b. hold */
	bool is_told;               /* o: of this stillness */
	bool wants_answer;          /* o: the launcher, to 'l' */
} hang = { .launcher = -1 };

/* --- one look --- */

/* Whether it sleeps: runs no hooks. */
static bool look_at_vp(struct marcel_vp *vp, struct base_hang *h)
{
	uint32_t asleep = load_acquire(&vp->sleeper.asleep); /* order(sleeper)*/
	uintptr_t owner = load_relaxed(&vp->owner);
	struct marcel_lwp *l = (struct marcel_lwp *)owner;
	uint32_t hooks = load_relaxed(&vp->hooking.seq);

	if ((owner & (MARCEL_SECTION | MARCEL_REVOKING)) != 0 ||
	    load_relaxed(&l->self) != &l->idle ||
	    (asleep != MARCEL_ASLEEP && hooks == hang.hooks[vp->id]))
		h->busy = true;
	hang.hooks[vp->id] = hooks;
	h->moved += load_relaxed(&vp->created) + load_relaxed(&vp->ended) +
		    load_relaxed(&vp->entered);
	if (marcel_timers_are_armed(&vp->timers))
		h->by |= BASE_HANG_TIME;
	return asleep == MARCEL_ASLEEP;
}

static int hooks_at_idle(void)
{
	struct marcel_hook_table *table = &marcel_hooks[MARCEL_HOOK_IDLE];
	unsigned used = load_relaxed(&table->used);
	int n = 0;

	for (unsigned i = 0; i < used; i++)
		n += load_relaxed(&table->slot[i]) != NULL;
	return n;
}

static void look_at_thread(struct marcel_thread *t, void *arg)
{
	uint32_t state = load_relaxed(&t->state);
	struct base_hang *h = arg;

	/* Those are counted as kernel threads. */
	if (marcel_thread_has(t, MARCEL_F_FOREIGN) || state == MARCEL_T_FREE ||
	    state == MARCEL_T_ENDED)
		return;
	if (state != MARCEL_T_PARKED) {
		h->busy = true;
		return;
	}
	switch (marcel_waits_kind(marcel_thread_waits_for(t))) {
	case MARCEL_WAITS_DESCRIPTOR:
		h->by |= BASE_HANG_DESCRIPTOR;
		break;
	case MARCEL_WAITS_SIGNAL:
		h->by |= BASE_HANG_SIGNAL;
		break;
	default:
		break;
	}
}

static void look_at_layer(struct base_dumper *d, void *arg)
{
	struct base_hang *h = arg;

	if (!h->busy && d->hang != NULL && d->hang->look != NULL)
		d->hang->look(d->arg, h);
}

static void look_outside(struct base_hang *h)
{
	/* Main is LWP 0; TSan has a kernel thread. */
	unsigned ours = os_threads_own() + 1 + (BASE_TSAN ? 1 : 0);
	unsigned n = os_threads();

	if (n == 0 || n > ours || load_relaxed(&marcel_sched.guests) != 0)
		h->by |= BASE_HANG_FOREIGN;
	if ((os_signals_handled() & ~hang.our_signals) != 0)
		h->by |= BASE_HANG_SIGNAL;
}

/* What is dear to see is not looked at if the rest says that it moves. */
static void look(struct base_hang *h)
{
	struct marcel_sched *s = &marcel_sched;
	bool asleep = true;

	memset(h, 0, sizeof(*h));
	os_barrier_all(); /* what was stored anywhere is seen */
	for (int i = 0; i < s->nvp; i++)
		asleep &= look_at_vp(&s->vps[i], h);
	if (!asleep)
		h->hooks = hooks_at_idle();
	h->moved += load_relaxed(&s->created);
	if ((load_relaxed(&s->before_switch) & ~MARCEL_BEFORE_HOOKS) != 0)
		h->busy = true;
	base_dumpers_walk(look_at_layer, h);
	if (h->busy)
		return;
	marcel_thread_walk(look_at_thread, h);
	if (h->ltasks > 0)
		h->by |= BASE_HANG_LTASK;
	if (!asleep && h->hooks > 0)
		h->by |= BASE_HANG_HOOK;
	look_outside(h);
}

/* --- what is said --- */

static void to_stderr(struct base_teller *t, const char *text)
{
	(void)t;
	base_dump("marcel[%d]:   %s", getpid(), text);
}

static void who_may(unsigned by, char *out, size_t room)
{
	static const char *const whos[] = {
		"a timed wait",
		"a descriptor",
		"a task of pioman",
		"a kernel thread that is not marcel's",
		"a signal",
		"messages of other ranks",
		"a message that is under way",
		"a hook",
	};
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < BASE_ARRAY_LEN(whos); i++)
		if ((by & 1u << i) != 0 && at < room)
			at += (size_t)snprintf(out + at, room - at, "%s%s",
					       at > 0 ? ", " : "", whos[i]);
}

static void report(bool still)
{
	struct base_teller t = { .line = to_stderr };
	char may[256];

	who_may(hang.last.by, may, sizeof(may));
	if (!still)
		base_dump("marcel[%d]: not quiet: somebody runs, or did just "
			  "now",
			  getpid());
	else if (hang.last.by == 0)
		base_dump("marcel[%d]: deadlock: nothing in this process can "
			  "ever move again",
			  getpid());
	else
		base_dump("marcel[%d]: quiet, not provably dead: it may be "
			  "moved by %s",
			  getpid(), may);
	marcel_blame(&t);
	base_dump("marcel[%d]: end of report", getpid());
}

/* --- the launcher --- */

static void say(const char *text, size_t n)
{
	ssize_t sent;

	while (n > 0 && hang.launcher >= 0) {
		sent = send(hang.launcher, text, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			close(hang.launcher);
			hang.launcher = -1; /* it ends us, or nobody does */
			return;
		}
		text += sent;
		n -= (size_t)sent;
	}
}

static BASE_PRINTF(1, 2) void say_line(const char *fmt, ...)
{
	char text[640];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say(text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void to_launcher(struct base_teller *t, const char *text)
{
	(void)t;
	say_line("text %s\n", text);
}

static void edge_to_launcher(struct base_teller *t, int rank, const char *text)
{
	(void)t;
	say_line("edge %d %s\n", rank, text);
}

static void say_quiet(void)
{
	say_line("quiet %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", hang.last.moved,
		 hang.last.sent, hang.last.received);
}

/* It has asked for something. */
static void hear(void)
{
	struct base_teller t = { .line = to_launcher,
				 .edge = edge_to_launcher };
	char what;
	ssize_t n = recv(hang.launcher, &what, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close(hang.launcher);
		hang.launcher = -1;
	} else if (what == 'l') {
		hang.wants_answer = true;
		hang.was_calm = false; /* only what is seen from now on */
	} else if (what == 'r') {
		marcel_blame(&t);
		say_line("end\n");
	}
}

/* --- the watchman --- */

/* A stillness has begun, or the launcher asks. */
static void tell_still(void)
{
	bool of_job = hang.launcher >= 0 && hang.last.by == BASE_HANG_PEER;
	bool is_sure = of_job || hang.last.by == 0;

	if (of_job && (!hang.is_told || hang.wants_answer))
		say_quiet();
	else if (hang.launcher >= 0 &&
		 (hang.wants_answer || (hang.is_told && !is_sure)))
		say_line("busy\n");
	if (!hang.is_told && hang.last.by == 0) {
		report(true);
		if (hang.mode == MARCEL_HANG_ABORT)
			_exit(MARCEL_HANG_EXIT);
	}
	hang.is_told = is_sure; /* else it may be so while all stays still */
	hang.wants_answer = false;
}

/* Once a look. */
static void judge(void)
{
	struct base_hang before = hang.last;
	bool was_calm = hang.was_calm, still;

	look(&hang.last);
	hang.was_calm = !hang.last.busy;
	still = was_calm && hang.was_calm && before.moved == hang.last.moved &&
		before.sent == hang.last.sent &&
		before.received == hang.last.received;
	if (xchg_relaxed(&hang.asked, false))
		report(still);
	if (still) {
		tell_still();
		return;
	}
	if (hang.was_calm && !was_calm && hang.wants_answer)
		return; /* the next look tells */
	if (hang.launcher >= 0 && (hang.wants_answer || hang.is_told))
		say_line("busy\n");
	hang.wants_answer = false;
	hang.is_told = false;
}

static void *watch(void *arg)
{
	struct pollfd fds[2] = { { .fd = hang.bell, .events = POLLIN } };
	uint64_t rings;

	(void)arg;
	os_thread_no_signals();
	while (!load_relaxed(&hang.stop)) {
		fds[1] = (struct pollfd){ .fd = hang.launcher,
					  .events = POLLIN };
		if (poll(fds, 2, LOOK_MS) <= 0) {
			judge();
			continue;
		}
		if (fds[0].revents != 0)
			(void)!syscall(SYS_read, hang.bell, &rings,
				       sizeof(rings));
		if (fds[1].revents != 0)
			hear();
	}
	return NULL;
}

void marcel_hang_ask(void)
{
	static const uint64_t one = 1;

	if (!hang.runs)
		return;
	store_relaxed(&hang.asked, true);
	/* Not by write(), which is a wrapper that lets others run. */
	(void)!syscall(SYS_write, hang.bell, &one, sizeof(one));
}

/* --- start and stop --- */

/*
 * mpirun's socket, if it has given us one. It stays when the runtime ends, for
 * the next; programs that we start are not told of it.
 */
static void find_launcher(void)
{
	const char *text = getenv("MARCEL_DEADLOCK_FD");
	int type;
	socklen_t n = sizeof(type);
	long fd;

	if (text == NULL || *text == '\0')
		return;
	if (base_parse_long(text, false, &fd) == 0 && fd >= 0 &&
	    getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0) {
		fcntl((int)fd, F_SETFD, FD_CLOEXEC);
		hang.launcher = (int)fd;
	}
	unsetenv("MARCEL_DEADLOCK_FD");
}

static uint64_t bit(int signal)
{
	return (uint64_t)1 << (signal - 1);
}

/*
 * Ours, libc's, and those that a fault of somebody who runs raises: nobody
 * does.
 */
static uint64_t our_signals(int dump_signal)
{
	uint64_t set = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) |
		       bit(SIGTRAP) | bit(SIGSYS);

	for (int i = 32; i < SIGRTMIN; i++)
		set |= bit(i);
	set |= bit(marcel_sched.signal) | bit(marcel_sched.break_signal);
	return dump_signal != 0 ? set | bit(dump_signal) : set;
}

static bool start(void)
{
	hang.hooks = calloc((size_t)marcel_sched.nvp, sizeof(*hang.hooks));
	hang.bell = eventfd(0, EFD_CLOEXEC);
	if (hang.hooks != NULL && hang.bell >= 0 &&
	    os_thread_create(&hang.kernel_thread, watch, NULL) == 0)
		return true;
	if (hang.bell >= 0)
		close(hang.bell);
	free(hang.hooks);
	return false;
}

void marcel_hang_init(enum marcel_hang_mode mode, int dump_signal)
{
	hang.mode = mode;
	if (mode == MARCEL_HANG_OFF)
		return;
	find_launcher();
	hang.our_signals = our_signals(dump_signal);
	hang.was_calm = hang.is_told = hang.wants_answer = false;
	store_relaxed(&hang.stop, false);
	store_relaxed(&hang.asked, false);
	hang.runs = start();
	if (!hang.runs)
		base_warn(
			"marcel",
			"MARCEL_DEADLOCK: no kernel thread to look for hangs");
}

void marcel_hang_exit(void)
{
	static const uint64_t one = 1;

	if (!hang.runs)
		return;
	store_relaxed(&hang.stop, true);
	(void)!syscall(SYS_write, hang.bell, &one, sizeof(one));
	pthread_join(hang.kernel_thread, NULL);
	hang.runs = false;
	close(hang.bell);
	free(hang.hooks);
}

void marcel_hang_forked(void)
{
	if (hang.runs)
		close(hang.bell);
	if (hang.launcher >= 0)
		close(hang.launcher); /* it is about our parent */
	hang.launcher = -1;
	hang.runs = false;
	hang.mode = MARCEL_HANG_OFF;
}
