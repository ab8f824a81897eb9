/*
 * Starting and stopping the runtime.
 *
 * The caller of marcel_init() becomes the main thread: bound to VP 0, which
 * its kernel thread drives. VP 0's idle loop has a stack of its own, because
 * the kernel thread's is main's. The others idle on their LWP's own stack.
 */
#include <marcel/marcel.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>
#include <base/option.h>
#include <marcel/settings.h>
#include "../os/os.h"
#include "../signal/signal.h"
#include "../sync/late.h"
#include "../thread/cputime.h"
#include "../thread/dump.h"
#include "../thread/fork.h"
#include "../thread/hang.h"
#include "../thread/overflow.h"
#include "../thread/stack.h"
#include "../trace/trace.h"
#include "block.h"
#include "enter.h"
#include "offer.h"
#include "runq.h"
#include "start.h"
#include "switch.h"
#include "tasklet.h"
#include "tick.h"
#include "vp.h"

struct marcel_sched marcel_sched;

BASE_OFFER_NOTE("marcel", "marcel_offer");

enum {
	O_NVP,
	O_STACKSIZE,
	O_BIND,
	O_SPIN_US,
	O_VERBOSE,
	O_DUMP_SIGNAL,
	O_DEADLOCK,
	O_DEADLOCK_QUIET_S,
	O_LWP_MAX,
	O_TIMESLICE_US,
	O_GUARDS,
	O_SIGNAL,
	O_CANCEL_SIGNAL,
	O_MAXTHREADS,
	O_SCHED,
	O_CPUTIME,
	O_TOPOLOGY,
	O_TRACE,
	O_TRACE_BUFFER,
	O_TOP,
};

/* As enum marcel_guards has them. */
static const char *const guards[] = { "auto", "advice", "mprotect", "canary",
				      NULL };

/* As enum marcel_hang_mode has them. */
static const char *const deadlock[] = { "off", "report", "abort", NULL };

static struct base_option options[] = {
	[O_NVP] = { "MARCEL_NVP", BASE_OPTION_INT, "0", 0, MARCEL_VP_MAX, NULL,
		    "virtual processors; 0: the allowed CPUs, shared among the "
		    "ranks of the machine" },
	[O_STACKSIZE] = { "MARCEL_STACKSIZE", BASE_OPTION_SIZE, "64k",
			  MARCEL_STACK_MIN, MARCEL_STACK_MAX, NULL,
			  "bytes of a thread's stack" },
	[O_BIND] = { "MARCEL_BIND", BASE_OPTION_BOOL, "1", 0, 0, NULL,
		     "bind each kernel thread to a CPU" },
	[O_SPIN_US] = { "MARCEL_SPIN_US", BASE_OPTION_INT, "50", 0, 1000000,
			NULL, "how long an idle VP looks before it sleeps" },
	[O_VERBOSE] = { "MARCEL_VERBOSE", BASE_OPTION_BOOL, "0", 0, 0, NULL,
			"print the settings and the VPs" },
	[O_DUMP_SIGNAL] = { "MARCEL_DUMP_SIGNAL", BASE_OPTION_STRING, "", 0, 0,
			    NULL, "signal that prints all threads; none" },
	[O_DEADLOCK] = { "MARCEL_DEADLOCK", BASE_OPTION_CHOICE, "off", 0, 0,
			 deadlock,
			 "look whether nothing can ever move again, and say "
			 "who waits for what; abort: and end" },
	[O_DEADLOCK_QUIET_S] = { "MARCEL_DEADLOCK_QUIET_S", BASE_OPTION_INT,
				 "60", 0, 1000000, NULL,
				 "seconds in which nothing moves after which "
				 "MARCEL_DEADLOCK says so, though something "
				 "might; 0: never" },
	[O_LWP_MAX] = { "MARCEL_LWP_MAX", BASE_OPTION_INT, "64", 1, 4096, NULL,
			"kernel threads for each virtual processor" },
	[O_TIMESLICE_US] = { "MARCEL_TIMESLICE_US", BASE_OPTION_INT, "10000", 0,
			     1000000000, NULL,
			     "how long a thread may run while others wait; "
			     "0: as long as it likes" },
	[O_SIGNAL] = { "MARCEL_SIGNAL", BASE_OPTION_INT, "0", 0, 64, NULL,
		       "the signal of preemption; 0: SIGRTMAX - 2" },
	[O_CANCEL_SIGNAL] = { "MARCEL_CANCEL_SIGNAL", BASE_OPTION_INT, "0", 0,
			      64, NULL,
			      "the signal of cancellation; 0: SIGRTMAX - 3" },
	[O_CPUTIME] = { "MARCEL_CPUTIME", BASE_OPTION_BOOL, "0", 0, 0, NULL,
			"count the CPU time of each thread" },
	[O_MAXTHREADS] = { "MARCEL_MAXTHREADS", BASE_OPTION_INT, "0", 0,
			   LONG_MAX, NULL,
			   "threads that may exist at once; 0: no limit" },
	[O_GUARDS] = { "MARCEL_GUARDS", BASE_OPTION_CHOICE, "auto", 0, 0,
		       guards, "what ends a stack; auto: what the kernel has" },
	[O_SCHED] = { "MARCEL_SCHED", BASE_OPTION_STRING, "steal", 0, 0, NULL,
		      "who runs next; random:SEED[,hash]: by lot, on one VP" },
	[O_TOPOLOGY] = { "MARCEL_TOPOLOGY", BASE_OPTION_STRING, "", 0, 0, NULL,
			 "another machine to run as if on: lstopo's .xml file, "
			 "or hwloc's words" },
	[O_TRACE] = { "MARCEL_TRACE", BASE_OPTION_STRING, "", 0, 0, NULL,
		      "file for what threads, tasks and messages do; of a job: "
		      "FILE.RANK" },
	[O_TRACE_BUFFER] = { "MARCEL_TRACE_BUFFER", BASE_OPTION_SIZE, "1m",
			     4096, 1 << 30, NULL,
			     "bytes of events in memory, twice per VP" },
	[O_TOP] = { "MARCEL_TOP", BASE_OPTION_BOOL, "0", 0, 0, NULL,
		    "let marcel-top read this process even where the kernel "
		    "lets only debuggers of its parents" },
};

const struct base_option_table marcel_options =
	BASE_OPTION_TABLE("marcel", options);

BASE_PUBLIC const struct base_option_table *marcel_settings(size_t i)
{
	return i == 0 ? &marcel_options : NULL;
}

/* Which CPU each VP runs on, and whether that is too many for `ncpu`. */
static void place(const struct marcel_config *config, const int *allowed,
		  int nallowed, int ncpu, int *cpu)
{
	struct marcel_sched *s = &marcel_sched;
	int ranks = config->local_ranks > 1 ? config->local_ranks : 1;
	int n = config->nvp ? config->nvp : (int)options[O_NVP].value;

	if (n == 0 && s->random.on)
		n = 1;
	if (n == 0)
		n = nallowed / ranks > 0 ? nallowed / ranks : 1;
	if (n > MARCEL_VP_MAX)
		n = MARCEL_VP_MAX;
	s->nvp = n;
	s->oversubscribed = (long)n * ranks > ncpu;
	for (int i = 0; i < n; i++)
		cpu[i] = allowed[((long)config->local_rank * n + i) % nallowed];
}

static int check_config(const struct marcel_config *c)
{
	if (c->nvp < 0 || c->nvp > MARCEL_VP_MAX) {
		base_warn("marcel", "nvp %d: not from 1 to %d", c->nvp,
			  MARCEL_VP_MAX);
		return -EINVAL;
	}
	if (c->stacksize != 0 && (c->stacksize < marcel_stack_min() ||
				  c->stacksize > MARCEL_STACK_MAX)) {
		base_warn("marcel", "stack size %zu: not from %zu to %zu",
			  c->stacksize, marcel_stack_min(), MARCEL_STACK_MAX);
		return -EINVAL;
	}
	if (c->local_ranks < 0 || c->local_rank < 0 ||
	    (c->local_rank > 0 && c->local_rank >= c->local_ranks)) {
		base_warn("marcel", "local rank %d of %d: not a rank",
			  c->local_rank, c->local_ranks);
		return -EINVAL;
	}
	return 0;
}

/* Whose turn it is is drawn by lot: with one VP, and as long as it likes. */
static int read_sched(const struct marcel_config *config)
{
	struct marcel_sched *s = &marcel_sched;
	const char *text = options[O_SCHED].string;
	int n = config->nvp ? config->nvp : (int)options[O_NVP].value;
	int rc = marcel_random_parse(text, &s->random);

	if (rc < 0 || !s->random.on)
		return rc;
	if (n > 1) {
		base_warn("marcel",
			  "MARCEL_SCHED=%s: %d virtual processors, but what "
			  "several do at a time cannot be repeated: have 1",
			  text, n);
		return -EINVAL;
	}
	s->slice_ns = 0;
	return marcel_random_init();
}

size_t marcel_sched_stacksize(void)
{
	struct base_option *o = &options[O_STACKSIZE];
	size_t bytes = marcel_sched.stacksize, least = marcel_stack_min();
	long n;

	if (bytes != 0)
		return bytes;
	/* Nonsense is for marcel_init() to refuse. */
	if (base_parse_long(o->fallback, true, &n) == 0)
		bytes = (size_t)n;
	if (getenv(o->name) != NULL &&
	    base_parse_long(getenv(o->name), true, &n) == 0 && n >= o->min)
		bytes = (size_t)n;
	return bytes > least ? bytes : least;
}

/*
 * Real-time ones that libc leaves free: of the others some cannot be caught,
 * some are libc's or ours by another meaning, as SIGSEGV is that of overflow.c.
 */
static bool is_free_signal(const struct base_option *o)
{
	if (o->value == 0 || (o->value >= SIGRTMIN && o->value <= SIGRTMAX))
		return true;
	base_warn("marcel", "%s=%ld: not 0 or a real-time signal, %d to %d",
		  o->name, o->value, SIGRTMIN, SIGRTMAX);
	return false;
}

/* One of them may be the other's default. */
static int read_signals(void)
{
	struct marcel_sched *s = &marcel_sched;
	int tick = (int)options[O_SIGNAL].value;
	int end = (int)options[O_CANCEL_SIGNAL].value;

	if (!is_free_signal(&options[O_SIGNAL]) ||
	    !is_free_signal(&options[O_CANCEL_SIGNAL]))
		return -EINVAL;
	if (tick == 0)
		tick = end == SIGRTMAX - 2 ? SIGRTMAX - 3 : SIGRTMAX - 2;
	if (end == 0)
		end = tick == SIGRTMAX - 3 ? SIGRTMAX - 2 : SIGRTMAX - 3;
	if (tick == end) {
		base_warn("marcel",
			  "MARCEL_CANCEL_SIGNAL=%d: is MARCEL_SIGNAL, too",
			  end);
		return -EINVAL;
	}
	s->signal = tick;
	s->break_signal = end;
	return 0;
}

static int read_options(const struct marcel_config *config, int *dump_signal)
{
	struct marcel_sched *s = &marcel_sched;
	int rc = base_option_load(&marcel_options);

	if (rc < 0)
		return rc;
	if ((rc = check_config(config)) < 0)
		return rc;
	if ((rc = marcel_dump_signal(options[O_DUMP_SIGNAL].string,
				     dump_signal)) < 0)
		return rc;
	s->stacksize = config->stacksize ? config->stacksize
					 : (size_t)options[O_STACKSIZE].value;
	if (s->stacksize < marcel_stack_min())
		s->stacksize = marcel_stack_min();
	s->spin_ns = (uint64_t)options[O_SPIN_US].value * 1000;
	s->slice_ns = (uint64_t)options[O_TIMESLICE_US].value * 1000;
	if ((rc = read_signals()) < 0)
		return rc;
	s->lwp_max = (unsigned)options[O_LWP_MAX].value;
	s->threads_max = options[O_MAXTHREADS].value;
	s->counts_cpu = options[O_CPUTIME].value;
	store_relaxed(&s->threads, 0);
	store_relaxed(&s->scarce,
		      (load_relaxed(&s->scarce) & MARCEL_SCARCE_SIGNALS) |
			      (s->threads_max > 0 ? MARCEL_SCARCE_THREADS : 0));
	if ((rc = read_sched(config)) < 0)
		return rc;
	if (options[O_TOP].value)
		os_allow_readers();
	if (options[O_VERBOSE].value)
		base_option_print(&marcel_options);
	return 0;
}

/* The machine, the VPs' CPUs, the tree. */
static int init_topo(const struct marcel_config *config, int *cpu)
{
	struct marcel_sched *s = &marcel_sched;
	int *allowed = calloc(4096, sizeof(*allowed));
	const char *name = options[O_TOPOLOGY].string;
	hwloc_topology_t hw;
	bool ours;
	int rc, n;

	if (allowed == NULL)
		return -ENOMEM;
	rc = marcel_topo_load(name, &hw, allowed, 4096);
	if (rc == -EINVAL)
		base_warn(
			"marcel",
			"MARCEL_TOPOLOGY=%s: not a file of hwloc's XML, nor a "
			"machine such as \"package:2 core:4 pu:1\"",
			name);
	else if (rc < 0)
		base_warn("marcel", "hwloc finds no CPU to use");
	if (rc < 0)
		goto out_free;
	ours = hwloc_topology_is_thissystem(hw);
	place(config, allowed, rc, ours ? rc : os_cpu_count(), cpu);
	s->bind = options[O_BIND].value && !s->oversubscribed && ours &&
		  os_affinity_save();
	s->robs = s->nvp > 1 && os_barrier_init();
	/* Who is not bound may come to any CPU. */
	n = ours && !s->bind ? rc : s->nvp;
	rc = marcel_topo_build(hw, cpu, s->nvp, &s->topo);
	if (rc == 0)
		marcel_topo_locate(hw, ours && !s->bind ? allowed : cpu, n,
				   &s->topo);
	hwloc_topology_destroy(hw);
out_free:
	free(allowed);
	return rc;
}

static void exit_topo(void)
{
	struct marcel_sched *s = &marcel_sched;

	marcel_topo_free(&s->topo);
	s->nvp = 0;
	s->oversubscribed = false;
	s->bind = false;
}

static int init_stacks(void)
{
	enum marcel_guards g = (enum marcel_guards)options[O_GUARDS].value;
	int rc = marcel_stack_init(marcel_sched.stacksize, g);

	if (rc < 0)
		base_warn("marcel", "MARCEL_GUARDS=%s: this kernel cannot",
			  guards[g]);
	return rc == -ENOTSUP ? -EINVAL : rc;
}

static int init_vps(const int *cpu)
{
	struct marcel_sched *s = &marcel_sched;
	size_t vps = (size_t)s->nvp * sizeof(*s->vps);
	size_t qs = s->topo.nlevels * sizeof(*s->levelqs);
	int rc;

	s->vps = aligned_alloc(BASE_CACHE_PAIR, vps);
	s->levelqs = aligned_alloc(BASE_CACHE_LINE, qs);
	if (s->vps == NULL || s->levelqs == NULL)
		goto err_free;
	memset(s->vps, 0, vps);
	memset(s->levelqs, 0, qs);
	for (unsigned i = 0; i < s->topo.nlevels; i++)
		marcel_levelq_init(&s->levelqs[i]);
	for (int i = 0; i < s->nvp; i++) {
		rc = marcel_vp_init(&s->vps[i], i);
		if (rc < 0) {
			while (i-- > 0)
				marcel_vp_exit(&s->vps[i]);
			goto err_free;
		}
		s->vps[i].cpu = cpu[i];
	}
	return 0;
err_free:
	free(s->vps);
	free(s->levelqs);
	s->vps = NULL;
	return -ENOMEM;
}

static void exit_vps(void)
{
	struct marcel_sched *s = &marcel_sched;

	for (int i = 0; i < s->nvp; i++) {
		marcel_thread_flush(&s->vps[i]);
		marcel_vp_exit(&s->vps[i]);
	}
	free(s->vps);
	free(s->levelqs);
	s->vps = NULL;
}

/* LWP 0's loop begins, on its own stack, when main first leaves. */
static void idle_first(void *value)
{
	struct marcel_vp *vp = value;

	marcel_san_finish(NULL);
	marcel_switch_after(vp);
	marcel_vp_idle(&marcel_lwps.first);
	base_check(!"VP 0 stops");
}

/* blocked: signals that its mask has beside the kernel's. */
static int become_main(uint64_t blocked)
{
	struct marcel_sched *s = &marcel_sched;
	struct marcel_thread *t = marcel_foreign_self();
	struct marcel_thread *idle = &marcel_lwps.first.idle;
	struct marcel_stack *stack = marcel_stack_get(NULL, s->stacksize);

	if (stack == NULL)
		return -ENOMEM;
	if (t->stack == NULL) /* else in a child */
		os_stack_bounds(&t->rest->stack_low, &t->rest->stack_bytes);
	marcel_san_adopt(t);
	marcel_foreign_to_main(t);
	s->main = t;
	t->rest->number = 0;
	marcel_lwp_init((unsigned)s->nvp * s->lwp_max, &s->vps[0], t);
	idle->stack = stack;
	marcel_san_new(idle);
	marcel_ctx_make(&idle->ctx, stack, idle_first);
	marcel_signal_init(t, blocked);
	marcel_trace_main(&s->vps[0], t);
	if (s->counts_cpu)
		marcel_cputime_init(t);
	return 0;
}

static void cease_main(void)
{
	struct marcel_sched *s = &marcel_sched;

	if (s->counts_cpu)
		marcel_cputime_exit();
	marcel_lwp_exit();
	marcel_foreign_from_main(s->main);
	s->main = NULL;
	marcel_san_free(&marcel_lwps.first.idle);
}

static int start_lwps(void)
{
	struct marcel_sched *s = &marcel_sched;
	int i, rc = 0;

	for (i = 1; i < s->nvp && rc == 0; i++)
		rc = marcel_vp_start(&s->vps[i]);
	if (rc == 0)
		return 0;
	base_warn("marcel", "cannot start kernel thread %d of %d", i, s->nvp);
	for (i--; i-- > 1;)
		marcel_vp_stop(&s->vps[i]);
	marcel_lwp_stop();
	return -EAGAIN;
}

static void stop_lwps(void)
{
	struct marcel_sched *s = &marcel_sched;

	for (int i = 1; i < s->nvp; i++)
		marcel_vp_stop(&s->vps[i]);
	marcel_lwp_stop();
}

static void *main_altstack;

/* TSan does not know a switch in a signal handler. */
static int start_ticks(void)
{
	int rc;

	if (BASE_TSAN)
		return 0;
	if ((rc = marcel_tick_init()) < 0)
		goto err_signal;
	if ((rc = marcel_call_init()) < 0)
		goto err_tick;
	if (marcel_sched.slice_ns != 0 && (rc = marcel_monitor_init()) < 0)
		goto err_call;
	return 0;
err_call:
	marcel_call_exit();
err_tick:
	marcel_tick_exit();
err_signal:
	return rc;
}

/* The settings are known, and the tree. */
static int start_vps(const int *cpu, uint64_t blocked)
{
	struct marcel_sched *s = &marcel_sched;
	int rc;

	if ((rc = init_stacks()) < 0)
		goto err_topo;
	if ((rc = init_vps(cpu)) < 0)
		goto err_stack;
	if ((rc = become_main(blocked)) < 0)
		goto err_vps;
	if ((rc = start_lwps()) < 0)
		goto err_main;
	main_altstack = marcel_overflow_lwp_init();
	marcel_overflow_init();
	if ((rc = start_ticks()) < 0)
		goto err_lwps;
	marcel_late_init();
	store_release(&s->running, 1); /* order(running) */
	return 0;
err_lwps:
	marcel_overflow_exit();
	marcel_overflow_lwp_exit(main_altstack);
	stop_lwps();
err_main:
	os_cpu_unbind();
	cease_main();
err_vps:
	exit_vps();
err_stack:
	marcel_stack_exit();
err_topo:
	exit_topo();
	return rc;
}

static int start(const struct marcel_config *config)
{
	int cpu[MARCEL_VP_MAX], dump_signal = 0, rc;

	if ((rc = marcel_fork_init()) < 0)
		return rc;
	if ((rc = read_options(config, &dump_signal)) < 0)
		return rc;
	/* A child knows from its parent, and may not ask the linker. */
	if (!BASE_TSAN && !marcel_fork_is_child())
		os_leave_init();
	if ((rc = init_topo(config, cpu)) < 0) {
		exit_topo();
		return rc;
	}
	rc = marcel_trace_init(options[O_TRACE].string,
			       (size_t)options[O_TRACE_BUFFER].value,
			       marcel_sched.nvp);
	if (rc < 0) {
		exit_topo();
		return rc;
	}
	if ((rc = start_vps(cpu, 0)) < 0) {
		marcel_trace_exit();
		return rc;
	}
	marcel_dump_init(dump_signal);
	marcel_hang_init((enum marcel_hang_mode)options[O_DEADLOCK].value,
			 (unsigned)options[O_DEADLOCK_QUIET_S].value,
			 dump_signal);
	return 0;
}

static void stop(void)
{
	struct marcel_sched *s = &marcel_sched;
	struct marcel_vp *vp;

	/* A blocking section may have left main without its VP. */
	for (vp = marcel_enter(); !marcel_foreign_shut(); vp = marcel_enter()) {
		marcel_leave(vp);
		marcel_thread_wait_all();
		sched_yield(); /* somebody may be about to make one */
	}
	marcel_hang_exit();
	marcel_dump_exit();
	marcel_monitor_exit();
	marcel_signal_exit();
	stop_lwps();
	marcel_random_print();
	marcel_tick_exit();
	marcel_call_exit();
	marcel_trace_exit();
	/* A guest may cancel main, which is in no wait: see cancel.c. */
	store_light(&marcel_lwps.first.inside, 2); /* order(cancel) */
	marcel_runq_wait_guests(marcel_tasklets_drop);
	store_light(&marcel_lwps.first.inside, 1); /* order(cancel) */
	marcel_tasklets_drop();
	marcel_late_exit();
	marcel_overflow_exit();
	marcel_overflow_lwp_exit(main_altstack);
	os_cpu_unbind();
	marcel_san_enter();
	cease_main();
	exit_vps();
	marcel_stack_exit();
	exit_topo();
	marcel_san_leave();
	store_relaxed(&s->created, 0);
}

/* What the parent had: mapped for good, as nobody knows who looks at it. */
static void forget_parents(uint32_t threads)
{
	struct marcel_sched *s = &marcel_sched;

	marcel_san_ignore(s->vps);
	marcel_san_ignore(s->levelqs);
	marcel_san_ignore(s->topo.levels);
	marcel_san_ignore(s->topo.leaf);
	marcel_san_ignore(s->topo.children);
	marcel_san_ignore(s->topo.neighbours);
	memset(&s->idle, 0, sizeof(s->idle));
	store_relaxed(&s->ender, NULL);
	store_relaxed(&s->created, 0);
	store_relaxed(&s->guests, 0);
	store_relaxed(&s->threads, threads);
	fetch_and_relaxed(&s->scarce, ~(unsigned)MARCEL_SCARCE_STACKS);
}

/* The VP may run wherever the process may, beside the parent's. */
int marcel_start_anew(uint32_t threads)
{
	struct marcel_sched *s = &marcel_sched;
	uint64_t blocked = marcel_thread_self()->rest->blocked;
	int cpu = -1, rc;

	forget_parents(threads);
	s->nvp = 1;
	s->bind = s->robs = false;
	s->oversubscribed = true;
	rc = marcel_topo_build(NULL, &cpu, 1, &s->topo);
	if (rc == 0)
		rc = start_vps(&cpu, blocked);
	if (rc != 0)
		return rc;
	marcel_dump_anew();
	s->nested = 1;
	return 0;
}

BASE_PUBLIC int marcel_init(const struct marcel_config *config)
{
	static const struct marcel_config none;
	struct marcel_sched *s = &marcel_sched;
	int rc;

	if (marcel_fork_is_left()) {
		rc = marcel_fork_start();
		return rc == 0 && marcel_thread_self() != s->main ? -EPERM : rc;
	}
	if (s->nested > 0 && marcel_thread_self() != s->main)
		return -EPERM;
	if (s->nested == 0) {
		rc = start(config ? config : &none);
		if (rc < 0)
			return rc;
	}
	s->nested++;
	return 0;
}

BASE_PUBLIC int marcel_end(void)
{
	struct marcel_sched *s = &marcel_sched;

	if (s->nested == 0 || marcel_fork_is_left())
		return -EINVAL;
	if (marcel_thread_self() != s->main)
		return -EPERM;
	if (s->nested == 1)
		stop();
	s->nested--;
	return 0;
}

BASE_PUBLIC int marcel_is_running(void)
{
	return load_acquire(&marcel_sched.running); /* order(running) */
}

BASE_PUBLIC int marcel_nvp(void)
{
	return marcel_is_running() ? marcel_sched.nvp : 0;
}

BASE_PUBLIC int marcel_vp_cpu(int vp)
{
	return vp >= 0 && vp < marcel_nvp() ? marcel_sched.vps[vp].cpu : -1;
}

BASE_PUBLIC int marcel_current_vp(void)
{
	struct marcel_vp *vp = marcel_vp_self();

	return vp != NULL ? vp->id : -1;
}
