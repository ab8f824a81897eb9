/*
 * marcel/sched/tick.c and monitor.c: a thread that computes without a call, or
 * that sleeps in the kernel unannounced, holds up nobody; wherever it was
 * interrupted, it goes on as if nothing had been.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/hook.h>
#include "../../../marcel/sched/block.h"
#include "../../../marcel/sched/enter.h"
#include "../../../marcel/sched/switch.h"
#include "../loose.h"
#include "../slice.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { OTHERS = 100 };

/* --- who computes --- */

static void *runs(void *arg)
{
	fetch_add_relaxed(&ran, 1);
	return arg;
}

TEST_TICK(others_and_main_run_beside_one_that_computes, "1000")
{
	marcel_t busy[2], t[OTHERS];
	int n = marcel_nvp();

	for (int i = 0; i < n; i++)
		busy[i] = start(computes, NULL);
	for (int i = 0; i < OTHERS; i++)
		t[i] = start(runs, NULL);
	for (int i = 0; i < OTHERS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&ran), OTHERS);
	store_relaxed(&stop, 1);
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
}

static void *stops(void *arg)
{
	store_relaxed(&stop, 1);
	return arg;
}

/*
 * Nanoseconds that the LWPs which drive nothing, nor keep anybody, have run.
 * The handler of the tick takes that lock.
 */
static uint64_t pool_ran(void)
{
	uint64_t ns = 0;

	CHECK_INT(marcel_setpreemptible(0, NULL), 0);
	base_spin_lock(&marcel_lwps.lock);
	for (struct marcel_lwp *l = marcel_lwps.normal; l != NULL; l = l->next)
		ns += os_thread_cpu_ns(load_relaxed(&l->tid));
	base_spin_unlock(&marcel_lwps.lock);
	CHECK_INT(marcel_setpreemptible(1, NULL), 0);
	return ns;
}

enum { HANDED = 6 };

/*
 * In some span: in others the monitor has one more made, or lets somebody go on
 * without the VP, as where one of them is late to get a CPU.
 */
static void *computes_until_handed(void *arg)
{
	uint64_t before;
	uint32_t seen;

	do {
		seen = preemptions();
		before = pool_ran();
		while (preemptions() < seen + HANDED)
			;
	} while (before == 0 || pool_ran() != before);
	store_relaxed(&stop, 1);
	return arg;
}

static void two_compute(void)
{
	marcel_t t = start(computes, NULL);

	CHECK_INT(marcel_join(start(computes_until_handed, NULL), NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(a_preempted_thread_goes_on_without_a_third_kernel_thread)
{
	with_slice("1000", 1, two_compute);
}

enum {
	SLEEPS = 10,
	TICKS_MAX = 1000, /* of a VP, of a hundred or so that the sleeps last */
};

/*
 * The least that a VP has been: one that another process keeps from its CPU
 * stands still meanwhile, with the sleeper perhaps.
 */
static uint32_t least_preempted(void)
{
	uint32_t n, least = UINT32_MAX;

	for (int i = 0; i < marcel_sched.nvp; i++) {
		n = load_relaxed(&marcel_sched.vps[i].preempted);
		least = n < least ? n : least;
	}
	return least;
}

/* Unless somebody is starved. */
static void *computes_a_while(void *arg)
{
	while (load_relaxed(&stop) == 0 && least_preempted() < TICKS_MAX)
		;
	return arg;
}

static void *sleeps(void *arg)
{
	const struct timespec slices = { .tv_nsec = 2000000 };

	for (int i = 0; i < SLEEPS; i++)
		CHECK_INT(marcel_nanosleep(&slices, NULL), 0);
	store_relaxed(&stop, 1);
	return arg;
}

TEST_TICK(who_sleeps_wakes_among_those_that_compute, "1000")
{
	marcel_t busy[4], t = start(sleeps, NULL);
	int n = 2 * marcel_nvp();

	for (int i = 0; i < n; i++)
		busy[i] = start(computes_a_while, NULL);
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
	CHECK(least_preempted() < TICKS_MAX);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST_TICK(others_run_while_main_computes, "1000")
{
	marcel_t t = start(stops, NULL);
	pid_t tid = gettid();

	computes(NULL);
	CHECK_INT(gettid(), tid);
	CHECK_INT(marcel_join(t, NULL), 0);
}

/* The monitor marks the owner before it sees that the LWP is inside. */
static void switch_while_it_tries(void)
{
	struct marcel_vp *vp = marcel_enter();
	struct marcel_lwp *l = marcel_vp_lwp(vp);
	struct marcel_thread *self = load_relaxed(&l->self);

	store_relaxed(&vp->owner, (uintptr_t)l | MARCEL_REVOKING);
	marcel_switch_leave(vp, self, &l->idle);
	CHECK_PTR(load_relaxed(&l->self), &l->idle);
	store_relaxed(&l->self, self);
	store_relaxed(&vp->owner, (uintptr_t)l);
	marcel_leave(vp);
}

TEST(who_switches_is_noted_while_the_monitor_tries)
{
	without_ticks(switch_while_it_tries);
}

/* --- hooks of the tick --- */

enum { HOOKED = 5 };

static ATOMIC(int) hooked, wanted;

static enum marcel_hook_answer comes(void *arg, int vp)
{
	CHECK_INT(vp, marcel_current_vp());
	CHECK(marcel_self() != arg); /* not in the middle of what computes */
	if (fetch_add_relaxed(&hooked, 1) + 1 == HOOKED)
		store_relaxed(&stop, 1);
	return MARCEL_HOOK_NOTHING;
}

static bool is_wanted(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	return load_relaxed(&wanted) != 0;
}

/*
 * Nobody waits for the VP: it is the hook alone that comes; and none is due
 * while main goes on without.
 */
TEST_TICK(hooks_come_between_what_computes, "1000")
{
	struct marcel_hook hook = { .fn = comes,
				    .arg = marcel_self(),
				    .wanted = is_wanted };
	uint64_t n;

	store_relaxed(&hooked, 0);
	store_relaxed(&wanted, 0);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_TICK, &hook), 0);
	n = load_relaxed(&marcel_monitor.looks) + 5;
	while (load_relaxed(&marcel_monitor.looks) < n)
		;
	CHECK_INT(load_relaxed(&hooked), 0);
	CHECK_INT(load_relaxed(&marcel_monitor.ticks), 0);
	store_relaxed(&wanted, 1);
	while (load_relaxed(&stop) == 0)
		if (is_without_vp())
			marcel_yield();
	CHECK(load_relaxed(&hooked) >= HOOKED);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_TICK, &hook), 0);
}

/* What each VP had been preempted when one more thread was made. */
static uint32_t before[2], after[2];

static void count_slices(uint32_t *out)
{
	for (int i = 0; i < marcel_sched.nvp; i++)
		out[i] = load_relaxed(&marcel_sched.vps[i].preempted);
}

static void *counts(void *arg)
{
	count_slices(after);
	return arg;
}

static bool runs_within_three_slices(void)
{
	count_slices(before);
	CHECK_INT(marcel_join(start(counts, NULL), NULL), 0);
	for (int i = 0; i < marcel_sched.nvp; i++)
		if (after[i] - before[i] > 3)
			return false;
	return true;
}

/*
 * Of some, one: while another process has the CPU of a thread that was picked
 * and is about to count, those on the other VP go on.
 */
static void *foreign(void *arg)
{
	while (!runs_within_three_slices())
		;
	stops(NULL);
	return arg;
}

/* One thread a VP, main too; a foreign one meanwhile. */
static void all_compute(void *(*fn)(void *), void *(*foreign_fn)(void *))
{
	marcel_t busy[1];
	pthread_t p;
	int n = marcel_nvp() - 1;

	for (int i = 0; i < n; i++)
		busy[i] = start(fn, NULL);
	CHECK_INT(pthread_create(&p, NULL, foreign_fn, NULL), 0);
	fn(NULL);
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

/* All VPs compute: no slice but those that end, and at most three, go by. */
TEST_TICK(what_a_foreign_thread_makes_runs_within_three_slices, "1000")
{
	all_compute(computes, foreign);
}

/*
 * The linker puts this before the monitor's. How long it has asked to sleep
 * since a thread was made, and with it in the sleep in which that was: until it
 * sent a tick. While that thread is made, the monitor is about to sleep: so
 * long as that takes, nobody else waits.
 */
enum { FREE, TO_BE_HELD, HELD };

static ATOMIC(int) monitor; /* a: acq_rel, `slept` and what it is compared to */
static uint64_t slept, ticks_before;

void __real_os_futex_wait_for(void *word, uint32_t value, uint64_t ns);
void __wrap_os_futex_wait_for(void *word, uint32_t value, uint64_t ns);

void __wrap_os_futex_wait_for(void *word, uint32_t value, uint64_t ns)
{
	int wanted = TO_BE_HELD;

	if (word == &marcel_monitor.hurry) {
		if (cas_acq_rel(&monitor, &wanted, HELD))
			while (load_acquire(&monitor) == HELD)
				sched_yield();
		if (load_relaxed(&marcel_monitor.ticks) == ticks_before)
			slept += ns;
	}
	__real_os_futex_wait_for(word, value, ns);
}

static ATOMIC(int) computing;
static ATOMIC(uint32_t) beats[2]; /* of each that computes */

static void *says_that_it_computes(void *arg)
{
	int me = fetch_add_relaxed(&computing, 1);

	while (load_relaxed(&stop) == 0)
		fetch_add_relaxed(&beats[me], 1);
	return arg;
}

/* Again, if others had the CPU that it is to go on with. */
static void until_each_computes(void)
{
	for (int i = 0; i < marcel_sched.nvp; i++)
		for (uint32_t was = load_relaxed(&beats[i]);
		     load_relaxed(&beats[i]) == was;)
			sched_yield();
}

static uint64_t ticks_by_then; /* when it ran */

static void *runs_by_a_tick(void *arg)
{
	ticks_by_then = load_relaxed(&marcel_monitor.ticks);
	return arg;
}

/*
 * Until a tick is sent for it: one that was sent before takes its time to come
 * where another process has the CPU, and then lets the thread run as well.
 */
static void *foreign_when_all_compute(void *arg)
{
	marcel_t t;

	while (load_relaxed(&computing) < marcel_sched.nvp)
		sched_yield();
	do {
		until_each_computes();
		store_release(&monitor, TO_BE_HELD);
		while (load_acquire(&monitor) != HELD)
			sched_yield();
		ticks_before = load_relaxed(&marcel_monitor.ticks);
		slept = 0;
		t = start(runs_by_a_tick, NULL);
		store_release(&monitor, FREE);
		CHECK_INT(marcel_join(t, NULL), 0);
	} while (ticks_by_then == ticks_before);
	stops(NULL);
	return arg;
}

/* Every VP stays with who computes until then, however long others take. */
TEST_TICK(a_tick_is_sent_before_three_slices_are_over, "1000")
{
	store_relaxed(&computing, 0);
	all_compute(says_that_it_computes, foreign_when_all_compute);
	CHECK(slept >= marcel_sched.slice_ns);
	CHECK(slept <= 3 * marcel_sched.slice_ns);
}

/* Nobody waits: the monitor looks, and sends nothing. */
TEST(a_thread_alone_sees_no_tick)
{
	struct marcel_config one = { .nvp = 1 };
	uint64_t end;

	setenv("MARCEL_TIMESLICE_US", "100", 1);
	CHECK_INT(marcel_init(&one), 0);
	end = load_relaxed(&marcel_monitor.looks) + 200;
	while (load_relaxed(&marcel_monitor.looks) < end)
		;
	CHECK_INT(load_relaxed(&marcel_monitor.ticks), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- there is no room for signals --- */

/* So many looks of the monitor long. */
static void compute_for(uint64_t looks)
{
	uint64_t end = load_relaxed(&marcel_monitor.looks) + looks;

	while (load_relaxed(&marcel_monitor.looks) < end)
		;
}

static void *computes_until_others_ran(void *arg)
{
	while (load_relaxed(&ran) == 0)
		;
	return arg;
}

/* As when other processes of the user have used up what they may queue. */
TEST(a_tick_that_could_not_be_sent_is_sent_later)
{
	struct marcel_config one = { .nvp = 1 };
	struct rlimit all, none;
	marcel_t t, other;

	setenv("MARCEL_TIMESLICE_US", "200", 1);
	store_relaxed(&ran, 0);
	CHECK_INT(marcel_init(&one), 0);
	CHECK_INT(getrlimit(RLIMIT_SIGPENDING, &all), 0);
	none = (struct rlimit){ 0, all.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	other = start(runs, NULL);
	compute_for(50);
	CHECK_INT(load_relaxed(&ran), 0);
	CHECK_INT(setrlimit(RLIMIT_SIGPENDING, &all), 0);
	t = start(computes_until_others_ran, NULL);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- who becomes another program --- */

/* It would not survive one that is sent, or is on its way. */
TEST(no_tick_comes_while_they_are_held)
{
	struct marcel_config one = { .nvp = 1 };
	struct marcel_lwp *held;
	marcel_t other;

	setenv("MARCEL_TIMESLICE_US", "200", 1);
	store_relaxed(&ran, 0);
	CHECK_INT(marcel_init(&one), 0);
	compute_for(2);
	held = marcel_tick_hold();
	CHECK(held != NULL);
	CHECK_PTR(marcel_tick_hold(), NULL);
	other = start(runs, NULL);
	compute_for(50);
	CHECK_INT(load_relaxed(&ran), 0);
	marcel_tick_release(held);
	while (load_relaxed(&ran) == 0)
		;
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* It would come as soon as it is allowed. */
TEST(a_tick_that_the_program_has_blocked_is_taken)
{
	struct marcel_config one = { .nvp = 1 };
	struct marcel_lwp *held;
	sigset_t now;
	marcel_t other;

	setenv("MARCEL_TIMESLICE_US", "200", 1);
	store_relaxed(&ran, 0);
	CHECK_INT(marcel_init(&one), 0);
	marcel_tick_block(true);
	other = start(runs, NULL);
	do
		CHECK_INT(sigpending(&now), 0);
	while (sigismember(&now, marcel_sched.signal) == 0);
	held = marcel_tick_hold();
	CHECK(held != NULL);
	marcel_tick_block(false);
	compute_for(50);
	CHECK_INT(load_relaxed(&ran), 0);
	marcel_tick_release(held);
	while (load_relaxed(&ran) == 0)
		;
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- who is not to be interrupted --- */

/* Others run only after it has allowed that; then it waits for them. */
static void *is_steady(void *arg)
{
	marcel_attr_t attr;
	uint64_t ticks;
	uint32_t preempted;
	marcel_t other;
	int old;

	compute_for(2); /* the look that found main's slice over is over */
	ticks = load_relaxed(&marcel_monitor.ticks);
	preempted = preemptions();
	CHECK_INT(marcel_getattr_np(marcel_self(), &attr), 0);
	CHECK_INT(marcel_attr_getpreemptible(&attr, &old), 0);
	CHECK_INT(old, 0);
	other = start(runs, NULL);
	compute_for(100);
	CHECK_INT(load_relaxed(&ran), 0);
	CHECK_INT(preemptions(), preempted);
	CHECK_INT(load_relaxed(&marcel_monitor.ticks), ticks);
	CHECK_INT(marcel_setpreemptible(1, &old), 0);
	CHECK_INT(old, 0);
	while (load_relaxed(&ran) == 0)
		;
	CHECK_INT(marcel_join(other, NULL), 0);
	return arg;
}

TEST(a_thread_that_is_not_preemptible_computes_on)
{
	struct marcel_config one = { .nvp = 1 };
	marcel_attr_t attr;
	marcel_t t, other;

	setenv("MARCEL_TIMESLICE_US", "200", 1);
	store_relaxed(&ran, 0);
	CHECK_INT(marcel_init(&one), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpreemptible(&attr, 0), 0);
	CHECK_INT(marcel_create(&t, &attr, is_steady, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK(preemptions() > 0);

	/* The same for main, which says it of itself; and it is not kept. */
	store_relaxed(&ran, 0);
	CHECK_INT(marcel_setpreemptible(0, NULL), 0);
	other = start(runs, NULL);
	compute_for(100);
	CHECK_INT(load_relaxed(&ran), 0);
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	CHECK_INT(marcel_setpreemptible(0, NULL), ENOTSUP);
	CHECK_INT(marcel_init(&one), 0);
	store_relaxed(&ran, 0);
	other = start(runs, NULL);
	while (load_relaxed(&ran) == 0)
		;
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- asleep, unannounced --- */

static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
static long counted;

static void *locks(void *arg)
{
	intptr_t mine = 0;

	(void)arg;
	for (; load_relaxed(&stop) == 0; mine++) {
		pthread_mutex_lock(&kernel_lock);
		for (int i = 0; i < 3000; i++)
			__asm__ volatile("" ::: "memory");
		counted++;
		pthread_mutex_unlock(&kernel_lock);
		marcel_others_ready();
	}
	return (void *)mine;
}

/* Who holds it is preempted, and the next one sleeps in the kernel. */
TEST_TICK(a_pthread_mutex_of_a_preempted_thread, "500")
{
	intptr_t sum = 0;
	marcel_t t[4];
	void *mine;

	counted = 0;
	for (int i = 0; i < 4; i++)
		t[i] = start(locks, NULL);
	while (preemptions() < 50)
		marcel_yield();
	store_relaxed(&stop, 1);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(marcel_join(t[i], &mine), 0);
		sum += (intptr_t)mine;
	}
	CHECK_INT(counted, sum);
}

static int ends[2];

static void *reads(void *arg)
{
	char c = 0;

	CHECK_INT(syscall(SYS_read, ends[0], &c, 1), 1);
	CHECK_INT(c, 'x');
	return arg;
}

static void *writes(void *arg)
{
	CHECK_INT(write(ends[1], "x", 1), 1);
	return arg;
}

static void read_beside_others(int preemptible)
{
	marcel_attr_t attr;
	marcel_t r, w;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpreemptible(&attr, preemptible), 0);
	CHECK_INT(marcel_create(&r, &attr, reads, NULL), 0);
	marcel_yield();
	w = start(writes, NULL);
	CHECK_INT(marcel_join(w, NULL), 0);
	CHECK_INT(marcel_join(r, NULL), 0);
	close(ends[0]);
	close(ends[1]);
}

TEST_TICK(a_read_that_nobody_announced, "1000")
{
	read_beside_others(1);
	read_beside_others(0);
}

static int more[2];
static ATOMIC(int) goes_on;

/* It began on main's LWP, and loses its VP before the wrapper of a call ends.
 */
static void *reads_twice(void *arg)
{
	char c = 0;

	store_relaxed(&goes_on, 1);
	reads(arg);
	store_relaxed(&goes_on, 2);
	CHECK(marcel_call_begin());
	CHECK_INT(syscall(SYS_read, more[0], &c, 1), 1);
	marcel_call_end(false);
	CHECK_INT(c, 'y');
	return arg;
}

/* It has the VP until the other sleeps again, most likely. */
static void *writes_and_stays(void *arg)
{
	while (load_relaxed(&goes_on) == 0)
		marcel_yield();
	writes(arg);
	while (load_relaxed(&goes_on) == 1)
		marcel_yield();
	for (int i = 0; i < 10000; i++)
		marcel_yield();
	return arg;
}

/* Main, ready, runs on no LWP but its own. */
TEST_TICK(no_other_sleeps_on_mains_lwp_though_it_lost_its_vp, "1000")
{
	marcel_t r, w;

	for (int i = 0; i < 20; i++) {
		store_relaxed(&goes_on, 0);
		CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
		CHECK_INT(pipe2(more, O_CLOEXEC), 0);
		r = start(reads_twice, NULL);
		w = start(writes_and_stays, NULL);
		CHECK_INT(marcel_join(w, NULL), 0);
		CHECK_INT(write(more[1], "y", 1), 1);
		CHECK_INT(marcel_join(r, NULL), 0);
		for (int j = 0; j < 2; j++) {
			close(ends[j]);
			close(more[j]);
		}
	}
}

/* --- a page of a slow file --- */

static struct {
	int fd;
	char *page;
	size_t bytes;
} slow;

static void open_slow(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	slow.bytes = (size_t)sysconf(_SC_PAGESIZE);
	slow.fd =
		(int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (slow.fd < 0 && errno == EINVAL) /* before Linux 5.11 */
		slow.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (slow.fd < 0 || ioctl(slow.fd, UFFDIO_API, &api) < 0)
		check_skip("the kernel refuses userfaultfd");
	slow.page = mmap(NULL, slow.bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(slow.page != MAP_FAILED);
	range.range.start = (uintptr_t)slow.page;
	range.range.len = slow.bytes;
	CHECK_INT(ioctl(slow.fd, UFFDIO_REGISTER, &range), 0);
}

/* It has the page once others have run. */
static void *serves(void *arg)
{
	char *from = calloc(1, slow.bytes);
	struct uffd_msg msg;
	struct uffdio_copy copy = { .dst = (uintptr_t)slow.page,
				    .src = (uintptr_t)from,
				    .len = slow.bytes };

	from[7] = 'x';
	CHECK_INT(read(slow.fd, &msg, sizeof(msg)), sizeof(msg));
	CHECK_INT(msg.event, UFFD_EVENT_PAGEFAULT);
	while (load_relaxed(&ran) < OTHERS)
		sched_yield();
	CHECK_INT(ioctl(slow.fd, UFFDIO_COPY, &copy), 0);
	free(from);
	return arg;
}

static void *touches(void *arg)
{
	CHECK_INT(((volatile char *)slow.page)[7], 'x');
	CHECK_INT(load_relaxed(&ran), OTHERS);
	return arg;
}

/* All on one VP, the last; main waits. */
static void a_page_that_comes_late(void)
{
	marcel_t t, others[OTHERS];
	marcel_attr_t attr;
	pthread_t p;

	CHECK_INT(pthread_create(&p, NULL, serves, NULL), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_nvp() - 1), 0);
	CHECK_INT(marcel_create(&t, &attr, touches, NULL), 0);
	for (int i = 0; i < OTHERS; i++)
		CHECK_INT(marcel_create(&others[i], &attr, runs, NULL), 0);
	for (int i = 0; i < OTHERS; i++)
		CHECK_INT(marcel_join(others[i], NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

static void with_slow_page(int nvp)
{
	open_slow();
	with_slice("1000", nvp, a_page_that_comes_late);
	CHECK_INT(munmap(slow.page, slow.bytes), 0);
	CHECK_INT(close(slow.fd), 0);
}

TEST(a_page_that_comes_late_on_1_vp)
{
	with_slow_page(1);
}

TEST(a_page_that_comes_late_on_2_vps)
{
	with_slow_page(2);
}
