/*
 * Is this process dead? A kernel thread, the watchman, looks ten times a second
 * while MARCEL_DEADLOCK is on; nobody counts anything for it.
 *
 * The invariant. At a look the process is *still* if
 *
 *  a. every VP is on its idle thread and asleep, or has begun a round of its
 *     search since the look before, or runs a thread that polls and has
 *     begun a round since it came there (vp->settled): so it has done all
 *     that was left to do by whoever ran there last (an `after`, a wake);
 *  b. every user thread is PARKED, or has ended, or polls: it has begun a round
 *     since the look before, and finished it in vain (told.c); no tasklet is
 *     pending, and no layer is at work (base_hang.busy);
 *  c. the counters of all that is done (threads made and ended, threads that an
 *     idle VP has entered, beginnings and ends of polling; packets) are what
 *     they were at the look before, which found it still but for c.
 *
 * Between two such looks no thread ran: every VP was idle in both, and has
 * entered none meanwhile. So whoever could wake one by running had done so
 * when the first look ended, and the second would have seen it ready. From then
 * on only these can wake a thread: a timer, a descriptor, an ltask or a hook
 * that idle VPs run, a kernel thread that is not ours, a signal, a message of
 * another process. If there is none of them the process is *dead*: nothing will
 * ever change. With any of them it is *quiet*, and that can not be told from a
 * process that waits.
 *
 * Who may do so is asked of the layers; here are counted the kernel threads of
 * the process that are not ours, whatever they do, and the signals for which
 * the program has a handler. Messages wake nobody if nothing that they end is
 * pending and no thread waits for an event. A process that gets SIGSEGV by
 * kill() is beyond us, and so is memory that another process changes: nobody
 * waits for that but by running.
 *
 * Threads that poll (engine none, PIOM_WAIT=active, naps between polls) make
 * way for others by themselves, and who is entered then is not counted. So
 * where there are any it takes three looks: at the second no VP has anything
 * left to do, since by the first it idled already or ran who polls; and nobody
 * can be ready at the third whom nothing of the above has woken. That what they
 * wait for was not there before their last round is known since the number of
 * looks, by which they say when that began, grows when a look is over.
 *
 * Who stays quiet for MARCEL_DEADLOCK_QUIET_S says so, once.
 *
 * If only peers may move it, and mpirun is there (MARCEL_DEADLOCK_FD), it is
 * told so with the number of packets sent and received, and asks whether that
 * has stayed so: tools/launch/hang.c decides for the job. A line each:
 *
 *	quiet MOVED SENT RECEIVED    we are still     l   have you moved since?
 *	busy                         or not           r   tell what you wait for
 *	text LINE, edge RANK LINE, end                    the report
 *	silent                       for long         d   the same, still or not
 *	said LINE, state WORD        that report: busy, quiet or dead
 */
#include "hang.h"

#include <marcel/errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/diag.h>
#include <base/hang.h>
#include <base/option.h>
#include "../os/os.h"
#include "../sched/hook.h"
#include "../sched/vp.h"
#include "blame.h"

enum {
	LOOK_MS = 100,
	DOUBTS_MAX = 10, /* looks in which it may be otherwise, if none moved */
};

#define NS_PER_S ((uint64_t)1000000000)

static struct {
	/* -: const while it runs    o: the watchman's    a: relaxed */
	enum marcel_hang_mode mode; /* -: */
	bool runs;                  /* -: */
	int bell;                   /* -: an eventfd: look at the next two */
	ATOMIC(bool) stop, asked;   /* a: */
	int launcher;               /* o: a socket, or -1 */
	uint64_t our_signals;       /* -: whose handlers move nobody */
	uint64_t quiet_ns;          /* -: after which it is said; 0: never */
	pthread_t kernel_thread;    /* -: */
	uint32_t *searched;         /* o: by VP, at the last look */
	struct base_hang last;      /* o: what the last look found */
	bool was_calm;              /* o: that a. and b. hold */
	bool polls;                 /* o: that somebody does */
	unsigned stills;            /* o: so many looks in a row, but one */
	unsigned doubts;            /* o: others since then */
	uint64_t since;             /* o: ns; when nothing moved any more */
	uint64_t cpu;            /* o: ns that we had used at the last look */
	bool is_told, is_silent; /* o: of this stillness, to the launcher */
	bool is_reported;        /* o: of this stillness, that it is dead */
	uint64_t ran;            /* o: what VPs have moved at the last */
	bool wants_answer;       /* o: the launcher, to 'l' */
	bool wants_report;       /* o: and to 'd' */
} hang = { .launcher = -1 };

/* --- one look --- */

/* And not just a nap between polls. */
static bool ends_wait(const struct marcel_timer *t)
{
	return !marcel_thread_has(t->thread, MARCEL_F_POLLS);
}

/* Whether it sleeps: runs no hooks. */
static bool look_at_vp(struct marcel_vp *vp, struct base_hang *h)
{
	uint32_t asleep = load_acquire(&vp->sleeper.asleep); /* order(sleeper)*/
	uintptr_t owner = load_relaxed(&vp->owner);
	struct marcel_lwp *l = (struct marcel_lwp *)owner;
	uint32_t searched = load_relaxed(&vp->searched);
	struct marcel_thread *self;

	h->moved += load_relaxed(&vp->created) + load_relaxed(&vp->ended) +
		    load_relaxed(&vp->entered);
	if (marcel_timers_any(&vp->timers, ends_wait))
		h->by |= BASE_HANG_TIME;
	if ((owner & (MARCEL_SECTION | MARCEL_REVOKING)) != 0) {
		h->busy = true;
	} else if ((self = load_relaxed(&l->self)) == &l->idle) {
		h->busy |= asleep != MARCEL_ASLEEP &&
			   searched == hang.searched[vp->id];
	} else {
		h->busy |=
			!marcel_thread_has(self, MARCEL_F_POLLS) ||
			load_relaxed(&vp->settled) != load_relaxed(&vp->picks);
	}
	hang.searched[vp->id] = searched;
	return asleep == MARCEL_ASLEEP;
}

static int hooks_at(enum marcel_hook_point point)
{
	struct marcel_hook_table *table = &marcel_hooks[point];
	int n = 0;

	base_spin_lock(&marcel_hook_lock);
	for (unsigned i = 0; i < load_relaxed(&table->used); i++) {
		const struct marcel_hook *hook = load_relaxed(&table->slot[i]);

		n += hook != NULL && hook->arg != MARCEL_HOOK_OWN;
	}
	base_spin_unlock(&marcel_hook_lock);
	return n;
}

/* It is PARKED, for a nap, or runs. */
static void look_at_polling(struct marcel_thread *t, uint32_t state,
			    struct base_hang *h)
{
	uint32_t polled = load_relaxed(&t->rest->polled);

	if (state != MARCEL_T_PARKED &&
	    (state != MARCEL_T_RUNNING ||
	     (polled & ~MARCEL_POLLED_TIMED) !=
		     load_relaxed(&marcel_watch.looks)))
		h->busy = true;
	if ((polled & MARCEL_POLLED_TIMED) != 0)
		h->by |= BASE_HANG_TIME;
	h->events++;
	hang.polls = true;
}

static void look_at_thread(struct marcel_thread *t, void *arg)
{
	uint32_t state = load_relaxed(&t->state);
	struct base_hang *h = arg;

	/* Those are counted as kernel threads. */
	if (marcel_thread_has(t, MARCEL_F_FOREIGN) || state == MARCEL_T_FREE ||
	    state == MARCEL_T_ENDED)
		return;
	if (marcel_thread_has(t, MARCEL_F_POLLS)) {
		look_at_polling(t, state, h);
		return;
	}
	if (state != MARCEL_T_PARKED) {
		h->busy = true;
		return;
	}
	switch (marcel_waits_kind(marcel_thread_waits_for(t))) {
	case MARCEL_WAITS_EVENT:
	case MARCEL_WAITS_EVENTS:
		h->events++;
		break;
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

	h->foreign += (int)n - (int)ours;
	if (n == 0 || h->foreign > 0 || load_relaxed(&marcel_sched.guests) != 0)
		h->by |= BASE_HANG_FOREIGN;
	if ((os_signals_handled() & ~hang.our_signals) != 0)
		h->by |= BASE_HANG_SIGNAL;
}

/* What is dear to see is not looked at if the rest says that it moves. */
static void look_at_all(struct base_hang *h)
{
	struct marcel_sched *s = &marcel_sched;
	bool asleep = true;

	memset(h, 0, sizeof(*h));
	hang.polls = false;
	os_barrier_all(); /* what was stored anywhere is seen */
	for (int i = 0; i < s->nvp; i++)
		asleep &= look_at_vp(&s->vps[i], h);
	if (!asleep)
		h->hooks = hooks_at(MARCEL_HOOK_IDLE);
	h->turns = hooks_at(MARCEL_HOOK_SWITCH) + hooks_at(MARCEL_HOOK_TICK);
	h->moved += load_relaxed(&s->created) + load_relaxed(&s->polls);
	hang.ran = h->moved;
	if ((load_relaxed(&s->before_switch) & ~MARCEL_BEFORE_HOOKS) != 0)
		h->busy = true;
	base_dumpers_walk(look_at_layer, h);
	if (h->busy)
		return;
	marcel_thread_walk(look_at_thread, h);
	/* A message would find nobody, and nothing that it ends. */
	if (h->events <= 0 && !h->wanted)
		h->by &= ~(unsigned)BASE_HANG_PEER;
	if (h->ltasks > 0)
		h->by |= BASE_HANG_LTASK;
	/* Who polls switches, and is interrupted. */
	if ((!asleep && h->hooks > 0) || (hang.polls && h->turns > 0))
		h->by |= BASE_HANG_HOOK;
	look_outside(h);
}

static void look(struct base_hang *h)
{
	look_at_all(h);
	if (hang.polls)
		os_barrier_all(); /* whatever we saw was before: see above */
	fetch_add_relaxed(&marcel_watch.looks, 1);
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

enum { VERDICT = 400 };

static void judgement(bool still, char out[VERDICT])
{
	char may[256];

	who_may(hang.last.by, may, sizeof(may));
	if (!still)
		snprintf(out, VERDICT,
			 "not quiet: somebody runs, or did just now");
	else if (hang.last.by == 0)
		snprintf(out, VERDICT,
			 "deadlock: nothing in this process can "
			 "ever move again");
	else
		snprintf(out, VERDICT,
			 "quiet, not provably dead, for %" PRIu64
			 " s: it may be moved by %s",
			 (base_now_ns() - hang.since) / NS_PER_S, may);
}

static void report(bool still)
{
	struct base_teller t = { .line = to_stderr };
	char verdict[VERDICT];

	judgement(still, verdict);
	base_dump("marcel[%d]: %s", getpid(), verdict);
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

static void said_to_launcher(struct base_teller *t, const char *text)
{
	(void)t;
	say_line("said %s\n", text);
}

static void say_quiet(void)
{
	say_line("quiet %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", hang.last.moved,
		 hang.last.sent, hang.last.received);
}

static void report_to_launcher(bool still)
{
	struct base_teller t = { .line = said_to_launcher };
	char verdict[VERDICT];

	judgement(still, verdict);
	say_line("said %s\n", verdict);
	marcel_blame(&t);
	say_line("state %s\n", !still              ? "busy"
			       : hang.last.by != 0 ? "quiet"
						   : "dead");
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
		hang.stills = 0;
	} else if (what == 'd') {
		hang.wants_report = true;
	} else if (what == 'r') {
		marcel_blame(&t);
		say_line("end\n");
	}
}

/* --- the watchman --- */

/* For long, though somebody may move us; who is dead has said so. */
static void tell_silence(void)
{
	if (hang.is_silent || hang.quiet_ns == 0 ||
	    base_now_ns() - hang.since < hang.quiet_ns)
		return;
	hang.is_silent = true;
	if (hang.launcher >= 0)
		say_line("silent\n");
	else if (hang.last.by != 0)
		report(true);
}

/* A stillness has begun, or goes on, or the launcher asks. */
static void tell_still(void)
{
	bool is_sure = (hang.last.by & ~(unsigned)BASE_HANG_PEER) == 0;
	bool of_job = hang.launcher >= 0 && is_sure;

	if (of_job && (!hang.is_told || hang.wants_answer))
		say_quiet();
	else if (hang.launcher >= 0 &&
		 (hang.wants_answer || (hang.is_told && !is_sure)))
		say_line("busy\n");
	if (!hang.is_reported && hang.last.by == 0) {
		hang.is_reported = true;
		report(true);
		if (hang.mode == MARCEL_HANG_ABORT)
			_exit(MARCEL_HANG_EXIT);
	}
	hang.is_told = is_sure; /* else it may be so while all stays still */
	hang.wants_answer = false;
	tell_silence();
}

/* It moves, or somebody has been met at work who moved nothing. */
static void tell_move(bool moved)
{
	bool is_over = moved || ++hang.doubts >= DOUBTS_MAX;

	if (!is_over && !hang.wants_answer)
		return;
	if (hang.launcher >= 0 &&
	    (hang.wants_answer || hang.is_told || hang.is_silent))
		say_line("busy\n");
	hang.wants_answer = hang.is_told = hang.is_silent = false;
	if (!is_over)
		return;
	hang.since = base_now_ns();
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* What kernel threads that are not ours do is known by their CPU time only. */
static bool foreign_compute(uint64_t since_look)
{
	return (hang.last.by & BASE_HANG_FOREIGN) != 0 &&
	       since_look > LOOK_MS * (NS_PER_S / 1000) / 10;
}

/* Once a look. */
static void judge(void)
{
	struct base_hang before = hang.last;
	bool was_calm = hang.was_calm, same, sure;
	uint64_t cpu = hang.cpu, ran = hang.ran;

	look(&hang.last);
	hang.cpu = cpu_ns();
	hang.was_calm = !hang.last.busy;
	same = before.moved == hang.last.moved &&
	       before.sent == hang.last.sent &&
	       before.received == hang.last.received;
	hang.stills = was_calm && hang.was_calm && same ? hang.stills + 1 : 0;
	sure = hang.stills > (hang.polls ? 1 : 0);
	/* The next look tells. */
	if (!sure && hang.was_calm && (!was_calm || hang.stills > 0))
		return;
	if (xchg_relaxed(&hang.asked, false))
		report(sure);
	if (hang.wants_report)
		report_to_launcher(sure);
	hang.wants_report = false;
	if (foreign_compute(hang.cpu - cpu))
		hang.since = base_now_ns();
	if (sure) {
		hang.doubts = 0;
		tell_still();
	} else {
		/* Who is dead may get messages, and is so for all that. */
		if (hang.ran != ran)
			hang.is_reported = false;
		tell_move(hang.ran != ran || (hang.was_calm && !same));
	}
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
	hang.searched =
		calloc((size_t)marcel_sched.nvp, sizeof(*hang.searched));
	hang.bell = eventfd(0, EFD_CLOEXEC);
	if (hang.searched != NULL && hang.bell >= 0 &&
	    os_thread_create(&hang.kernel_thread, watch, NULL) == 0)
		return true;
	if (hang.bell >= 0)
		close(hang.bell);
	free(hang.searched);
	return false;
}

void marcel_hang_init(enum marcel_hang_mode mode, unsigned quiet_s,
		      int dump_signal)
{
	hang.mode = mode;
	if (mode == MARCEL_HANG_OFF)
		return;
	find_launcher();
	hang.our_signals = our_signals(dump_signal);
	hang.quiet_ns = (uint64_t)quiet_s * NS_PER_S;
	hang.since = base_now_ns();
	hang.was_calm = hang.is_told = hang.is_silent = false;
	hang.is_reported = false;
	hang.wants_answer = hang.wants_report = false;
	store_relaxed(&marcel_watch.looks, 1);
	store_relaxed(&hang.stop, false);
	store_relaxed(&hang.asked, false);
	hang.runs = start();
	if (hang.runs)
		fetch_or_relaxed(&marcel_watch.on, MARCEL_WATCH_HANGS);
	else
		base_warn(
			"marcel",
			"MARCEL_DEADLOCK: no kernel thread to look for hangs");
}

void marcel_hang_exit(void)
{
	static const uint64_t one = 1;

	if (!hang.runs)
		return;
	fetch_and_relaxed(&marcel_watch.on, ~(uint32_t)MARCEL_WATCH_HANGS);
	store_relaxed(&hang.stop, true);
	(void)!syscall(SYS_write, hang.bell, &one, sizeof(one));
	pthread_join(hang.kernel_thread, NULL);
	hang.runs = false;
	close(hang.bell);
	free(hang.searched);
}

void marcel_hang_forked(void)
{
	fetch_and_relaxed(&marcel_watch.on, ~(uint32_t)MARCEL_WATCH_HANGS);
	if (hang.runs)
		close(hang.bell);
	if (hang.launcher >= 0)
		close(hang.launcher); /* it is about our parent */
	hang.launcher = -1;
	hang.runs = false;
	hang.mode = MARCEL_HANG_OFF;
}
