/* marcel/signal: signals between threads, and of the process for who waits. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/signal.h>
#include "../with.h"

static ATOMIC(int) taken, stop;
static ATOMIC(marcel_t) taken_by;

static void handler(int signal)
{
	(void)signal;
	store_relaxed(&taken_by, marcel_self());
	fetch_add_release(&taken, 1);
}

static void handle(int signal, void (*fn)(int), int flags)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = flags };

	sigemptyset(&sa.sa_mask);
	CHECK_INT(sigaction(signal, &sa, NULL), 0);
	store_relaxed(&taken, 0);
	store_relaxed(&taken_by, NULL);
}

static sigset_t set_of(int a, int b)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, a);
	sigaddset(&set, b);
	return set;
}

static marcel_t make(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

static int is_waiting(const struct marcel_info *i, void *arg)
{
	return i->id == arg && i->state == MARCEL_STATE_WAITING;
}

static void until_it_waits(marcel_t t)
{
	while (!marcel_threads(is_waiting, t))
		marcel_yield();
}

/* --- handlers --- */

TEST_VPS(what_one_sends_to_oneself_is_taken_at_once)
{
	sigset_t none;

	handle(SIGUSR1, handler, 0);
	errno = 77;
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(load_relaxed(&taken), 1);
	CHECK(load_relaxed(&taken_by) == marcel_self());
	CHECK_INT(errno, 77);
	CHECK_INT(marcel_sigpending(&none), 0);
	CHECK(!sigismember(&none, SIGUSR1));
}

static void *wait_for_sem(void *arg)
{
	int before = load_relaxed(&taken);

	marcel_sem_wait(arg);
	/* Taken before the wait returned, and not sooner. */
	return (void *)(intptr_t)(load_relaxed(&taken) - before);
}

TEST_VPS(who_waits_takes_it_when_the_wait_is_over)
{
	marcel_sem_t sem;
	marcel_t t;
	void *n;

	handle(SIGUSR1, handler, 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	for (int i = 1; i <= 50; i++) {
		t = make(wait_for_sem, &sem);
		until_it_waits(t);
		CHECK_INT(marcel_kill(t, SIGUSR1), 0);
		CHECK_INT(load_relaxed(&taken), i - 1);
		CHECK_INT(marcel_sem_post(&sem), 0);
		CHECK_INT(marcel_join(t, &n), 0);
		CHECK_INT((intptr_t)n, 1);
		CHECK_INT(load_relaxed(&taken), i);
		CHECK(load_relaxed(&taken_by) == t);
	}
}

static void *yield_until_taken(void *arg)
{
	while (load_relaxed(&taken) == 0)
		marcel_yield();
	return arg;
}

static void *yield_until_stop(void *arg)
{
	while (!load_relaxed(&stop))
		marcel_yield();
	return arg;
}

/* New, ready or running, among others that only yield. */
TEST_VPS(who_is_ready_takes_it_when_it_runs)
{
	enum { OTHERS = 5 };
	marcel_t t, others[OTHERS];

	store_relaxed(&stop, 0);
	for (int i = 0; i < OTHERS; i++)
		others[i] = make(yield_until_stop, NULL);
	for (int i = 0; i < 30; i++) {
		handle(SIGUSR1, handler, 0);
		t = make(yield_until_taken, NULL);
		for (int n = i % 3; n > 0; n--)
			marcel_yield();
		CHECK_INT(marcel_kill(t, SIGUSR1), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK(load_relaxed(&taken_by) == t);
		CHECK_INT(load_relaxed(&taken), 1);
	}
	store_relaxed(&stop, 1);
	for (int i = 0; i < OTHERS; i++)
		CHECK_INT(marcel_join(others[i], NULL), 0);
}

static void *kill_main(void *arg)
{
	CHECK_INT(marcel_kill(*(marcel_t *)arg, SIGUSR1), 0);
	return NULL;
}

TEST_VPS(main_takes_them_too)
{
	marcel_t me = marcel_self();

	for (int i = 0; i < 50; i++) {
		handle(SIGUSR1, handler, 0);
		CHECK_INT(marcel_join(make(kill_main, &me), NULL), 0);
		while (load_relaxed(&taken) == 0)
			CHECK_INT(marcel_join(make(kill_main, &me), NULL), 0);
		CHECK(load_relaxed(&taken_by) == me);
	}
}

/* A handler may wait, and be sent signals while it does. */
static marcel_sem_t in_handler, go_on;

static void wait_in_handler(int signal)
{
	(void)signal;
	fetch_add_relaxed(&taken, 1);
	marcel_sem_post(&in_handler);
	marcel_sem_wait(&go_on);
}

TEST_VPS(a_handler_may_block)
{
	marcel_sem_t sem;
	marcel_t t;

	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&in_handler, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&go_on, 0, 0), 0);
	handle(SIGUSR1, wait_in_handler, 0);
	handle(SIGUSR2, handler, 0);
	t = make(wait_for_sem, &sem);
	until_it_waits(t);
	CHECK_INT(marcel_kill(t, SIGUSR1), 0);
	CHECK_INT(marcel_sem_post(&sem), 0);
	marcel_sem_wait(&in_handler);
	until_it_waits(t);
	/* Another one in the handler's wait; its own is blocked there. */
	CHECK_INT(marcel_kill(t, SIGUSR2), 0);
	CHECK_INT(marcel_kill(t, SIGUSR1), 0);
	CHECK_INT(marcel_sem_post(&go_on), 0);
	marcel_sem_wait(&in_handler);
	CHECK_INT(load_relaxed(&taken), 3);
	CHECK(load_relaxed(&taken_by) == t);
	CHECK_INT(marcel_sem_post(&go_on), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

static void action(int signal, siginfo_t *info, void *context)
{
	CHECK_INT(info->si_signo, signal);
	CHECK_INT(info->si_code, SI_TKILL);
	CHECK_INT(info->si_pid, getpid());
	CHECK(context != NULL);
	fetch_add_relaxed(&taken, 1);
}

static void again(int signal)
{
	if (fetch_add_relaxed(&taken, 1) == 0)
		CHECK_INT(marcel_kill(marcel_self(), signal), 0);
	fetch_add_relaxed(&taken, 10);
}

TEST_VPS(the_flags_of_sigaction_hold)
{
	struct sigaction sa = { .sa_sigaction = action,
				.sa_flags = SA_SIGINFO | SA_RESETHAND };

	handle(SIGUSR1, handler, 0);
	CHECK_INT(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(load_relaxed(&taken), 1);
	CHECK_INT(sigaction(SIGUSR1, NULL, &sa), 0);
	CHECK(sa.sa_handler == SIG_DFL);

	handle(SIGUSR1, again, 0); /* the second when the first is over */
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(load_relaxed(&taken), 22);
	handle(SIGUSR1, again, SA_NODEFER);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(load_relaxed(&taken), 22);
	handle(SIGUSR1, SIG_IGN, 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	handle(SIGUSR1, SIG_DFL, 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGCHLD), 0);
}

static void *terminate(void *arg)
{
	CHECK_INT(marcel_kill(marcel_self(), SIGTERM), 0);
	return arg;
}

static void die_by_a_signal(void)
{
	struct marcel_config two = { .nvp = 2 };

	if (marcel_init(&two) == 0)
		marcel_join(make(terminate, NULL), NULL);
	_exit(1);
}

TEST(without_a_handler_the_process_dies_of_it)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		die_by_a_signal();
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGTERM);
}

/* --- masks --- */

static void *check_inherited(void *arg)
{
	sigset_t now;

	CHECK_INT(marcel_sigmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_INT(sigismember(&now, SIGUSR1), 1);
	CHECK_INT(sigismember(&now, SIGUSR2), 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(load_relaxed(&taken), 0);
	return arg;
}

TEST_VPS(what_is_blocked_is_taken_when_it_is_let_in)
{
	sigset_t one = set_of(SIGUSR1, SIGUSR1), old;

	handle(SIGUSR1, handler, 0);
	CHECK_INT(marcel_sigmask(SIG_BLOCK, &one, NULL), 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	marcel_yield();
	CHECK_INT(load_relaxed(&taken), 0);
	CHECK_INT(marcel_sigpending(&old), 0);
	CHECK_INT(sigismember(&old, SIGUSR1), 1);
	CHECK_INT(marcel_join(make(check_inherited, NULL), NULL), 0);
	CHECK_INT(marcel_sigmask(SIG_UNBLOCK, &one, &old), 0);
	CHECK_INT(sigismember(&old, SIGUSR1), 1);
	CHECK_INT(load_relaxed(&taken), 1); /* not queued */
	CHECK_INT(marcel_sigmask(SIG_SETMASK, NULL, &old), 0);
	CHECK_INT(sigismember(&old, SIGUSR1), 0);
}

/* --- sigwait --- */

static void *wait_for_signals(void *arg)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR2);
	int signal, sum = 0;

	CHECK_INT(marcel_sigmask(SIG_BLOCK, &set, NULL), 0);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(marcel_sigwait(&set, &signal), 0);
		CHECK(signal == SIGUSR1 || signal == SIGUSR2);
		sum++;
		marcel_sem_post(arg);
	}
	return (void *)(intptr_t)sum;
}

TEST_VPS(a_thread_may_wait_for_its_signals)
{
	enum { N = 200 };
	static marcel_sem_t sem[N];
	marcel_t t[N];
	void *sum;

	handle(SIGUSR1, handler, 0);
	handle(SIGUSR2, handler, 0);
	for (int i = 0; i < N; i++) {
		CHECK_INT(marcel_sem_init(&sem[i], 0, 0), 0);
		t[i] = make(wait_for_signals, &sem[i]);
		until_it_waits(t[i]);
	}
	for (int n = 0; n < 10; n++)
		for (int i = 0; i < N; i++) {
			CHECK_INT(marcel_kill(t[i], n % 2 ? SIGUSR1 : SIGUSR2),
				  0);
			marcel_sem_wait(&sem[i]);
		}
	for (int i = 0; i < N; i++) {
		CHECK_INT(marcel_join(t[i], &sum), 0);
		CHECK_INT((intptr_t)sum, 10);
	}
	CHECK_INT(load_relaxed(&taken), 0);
}

TEST_VPS(a_wait_for_signals_ends_in_time)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR2);
	struct timespec none = { 0 }, soon = { .tv_nsec = 2000000 };
	struct timespec bad = { .tv_nsec = -1 };
	siginfo_t info;

	CHECK_INT(marcel_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_INT(marcel_sigtimedwait(&set, &info, &none), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(marcel_sigtimedwait(&set, &info, &soon), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(marcel_sigtimedwait(&set, &info, &bad), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR2), 0);
	CHECK_INT(marcel_sigtimedwait(&set, &info, &none), SIGUSR2);
	CHECK_INT(info.si_signo, SIGUSR2);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(marcel_sigtimedwait(&set, NULL, &soon), SIGUSR1);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(marcel_sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_INT(info.si_signo, SIGUSR1);
	CHECK_INT(marcel_sigmask(SIG_UNBLOCK, &set, NULL), 0);
}

/* Those of the process, where they were blocked before the runtime began. */
static void *wait_for_process(void *arg)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR1);
	siginfo_t info;

	marcel_sem_post(arg);
	CHECK_INT(marcel_sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_INT(info.si_pid, getpid());
	return NULL;
}

static void send_to_the_process(void)
{
	marcel_sem_t sem;
	marcel_t t;

	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	for (int i = 0; i < 20; i++) {
		t = make(wait_for_process, &sem);
		if (i % 2)
			until_it_waits(t);
		CHECK_INT(kill(getpid(), SIGUSR1), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(marcel_sem_trywait(&sem), 0);
	}
}

TEST(signals_of_the_process_wake_who_waits_for_them)
{
	static const int nvp[] = { 1, 2, 4 };
	sigset_t set = set_of(SIGUSR1, SIGUSR1);

	handle(SIGUSR1, handler, 0);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
		with_vps(nvp[i], send_to_the_process);
		CHECK_INT(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	}
	CHECK_INT(load_relaxed(&taken), 0);
}

/* --- kernel threads, bad input --- */

static void *be_foreign(void *arg)
{
	sigset_t set = set_of(SIGUSR2, SIGUSR2), old;
	struct timespec none = { 0 };
	siginfo_t info;
	int signal;

	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	CHECK_INT(load_relaxed(&taken), 1);
	CHECK_INT(marcel_sigmask(SIG_BLOCK, &set, &old), 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR2), 0);
	CHECK_INT(marcel_sigpending(&old), 0);
	CHECK_INT(sigismember(&old, SIGUSR2), 1);
	CHECK_INT(marcel_sigwait(&set, &signal), 0);
	CHECK_INT(signal, SIGUSR2);
	CHECK_INT(marcel_sigtimedwait(&set, &info, &none), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(marcel_kill(*(marcel_t *)arg, SIGUSR1), 0);
	return NULL;
}

TEST_VPS(kernel_threads_have_the_kernels_signals)
{
	pthread_t t;
	marcel_t target;

	handle(SIGUSR1, handler, 0);
	store_relaxed(&stop, 0);
	target = make(yield_until_stop, NULL);
	CHECK_INT(pthread_create(&t, NULL, be_foreign, &target), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
	while (load_acquire(&taken) < 2)
		marcel_yield();
	CHECK(load_relaxed(&taken_by) == target);
	store_relaxed(&stop, 1);
	CHECK_INT(marcel_join(target, NULL), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

TEST_VPS(what_cannot_be_sent_is_refused)
{
	marcel_t t = make(nothing, NULL);
	sigset_t set, none;
	int signal;

	sigemptyset(&none);
	CHECK_INT(marcel_kill(marcel_self(), 0), 0);
	CHECK_INT(marcel_kill(marcel_self(), -1), EINVAL);
	CHECK_INT(marcel_kill(marcel_self(), 65), EINVAL);
	CHECK_INT(marcel_kill(marcel_self(), 32), EINVAL);
	CHECK_INT(marcel_kill(marcel_self(), SIGRTMAX - 2), EINVAL);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_kill(t, 0), ESRCH);
	CHECK_INT(marcel_kill(t, SIGUSR1), ESRCH);
	CHECK_INT(marcel_sigmask(99, &none, NULL), EINVAL);
	CHECK_INT(marcel_sigwait(&none, &signal), EINVAL);
	sigfillset(&set);
	CHECK_INT(marcel_sigmask(SIG_SETMASK, &set, NULL), 0);
	CHECK_INT(marcel_sigmask(SIG_SETMASK, &none, &set), 0);
	CHECK_INT(sigismember(&set, SIGKILL), 0);
	CHECK_INT(sigismember(&set, SIGSTOP), 0);
	CHECK_INT(sigismember(&set, SIGTERM), 1);
}

/* Everybody to everybody; who blocks now and then takes it in the end. */
enum { CROWD = 10 };

static marcel_t crowd[CROWD];
static marcel_sem_t begin, leave;
static ATOMIC(int) done;

static void *send_and_block(void *arg)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR1);

	marcel_sem_wait(&begin);
	for (int i = 0; i < 300 / FEWER; i++) {
		CHECK_INT(marcel_sigmask(i % 2 ? SIG_BLOCK : SIG_UNBLOCK, &set,
					 NULL),
			  0);
		for (int n = 0; n < CROWD; n++)
			CHECK_INT(marcel_kill(crowd[n], SIGUSR1), 0);
		marcel_yield();
	}
	CHECK_INT(marcel_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	fetch_add_relaxed(&done, 1);
	marcel_sem_wait(&leave);
	return arg;
}

TEST_VPS(signals_from_all_to_all_lose_nobody)
{
	handle(SIGUSR1, handler, 0);
	store_relaxed(&done, 0);
	CHECK_INT(marcel_sem_init(&begin, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&leave, 0, 0), 0);
	for (int i = 0; i < CROWD; i++)
		crowd[i] = make(send_and_block, NULL);
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(marcel_sem_post(&begin), 0);
	while (load_relaxed(&done) < CROWD)
		marcel_yield();
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(marcel_sem_post(&leave), 0);
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(marcel_join(crowd[i], NULL), 0);
	CHECK(load_relaxed(&taken) > 0);
}

TEST(signals_between_two_vps)
{
	with_vps(2, who_waits_takes_it_when_the_wait_is_over_body);
	with_vps(2, who_is_ready_takes_it_when_it_runs_body);
	with_vps(2, main_takes_them_too_body);
	with_vps(2, a_handler_may_block_body);
	with_vps(2, a_thread_may_wait_for_its_signals_body);
	with_vps(2, signals_from_all_to_all_lose_nobody_body);
}

/* --- cancellation of who waits --- */

static marcel_sem_t begun;

static void *waits_blocked(void *arg)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_INT(marcel_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_INT(marcel_sem_post(&begun), 0);
	CHECK_INT(marcel_sigwait(&set, &signal), 0);
	CHECK_INT(signal, SIGUSR1);
	return arg;
}

/* It has the signal, or it is cancelled; and it is found by nobody later. */
TEST_VPS(a_signal_and_a_cancellation_may_meet)
{
	marcel_t t;
	void *value;

	CHECK_INT(marcel_sem_init(&begun, 0, 0), 0);
	for (int i = 0; i < 400 / FEWER; i++) {
		CHECK_INT(marcel_create(&t, NULL, waits_blocked, &begun), 0);
		CHECK_INT(marcel_sem_wait(&begun), 0);
		for (int j = 0; j < i % 3; j++)
			marcel_yield();
		if (i % 4 < 2)
			CHECK_INT(marcel_kill(t, SIGUSR1), 0);
		CHECK_INT(marcel_cancel(t), 0);
		if (i % 4 == 2)
			marcel_kill(t, SIGUSR1);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK(value == MARCEL_CANCELED ||
		      (value == &begun && i % 4 != 3));
	}
	CHECK_INT(marcel_sem_destroy(&begun), 0);
}
