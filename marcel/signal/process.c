/*
 * Signals of the process, for user threads that wait for them: one kernel
 * thread, made for the first of these, waits for all. It gets those that every
 * kernel thread blocks; the kernel gives others to one that does not.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <marcel/sync.h>
#include "../os/os.h"
#include "../sched/poller.h"
#include "../sched/vp.h"
#include "signal.h"

static struct {
	marcel_mutex_t lock; /* who starts it */
	bool runs;           /* under lock */
	pthread_t thread;    /* under lock */
	ATOMIC(pid_t) tid;   /* a: relaxed; see look() */
	ATOMIC(int) stop;    /* a: relaxed; after it a signal */
} process = { .lock = MARCEL_MUTEX_INITIALIZER };

/*
 * The set: the signals that threads wait for, and the one that wakes this
 * thread. `exactly` leaves out the threads whose wait has timed out. Use it
 * after a signal that nobody took: otherwise this thread takes it again at
 * once.
 */
static void collect(sigset_t *set, bool exactly)
{
	uint64_t bits;

	base_spin_lock(&marcel_signal_lock);
	bits = exactly ? marcel_sigwaits_set_exactly() : marcel_sigwaits_set();
	base_spin_unlock(&marcel_signal_lock);
	marcel_signal_set(bits, set);
	sigaddset(set, marcel_sched.signal);
}

/* To one who waits. False: nobody does any more, it is the process's again. */
static bool give(int signal, const siginfo_t *info)
{
	bool given = false;

	base_spin_lock(&marcel_signal_lock);
	base_list_for_each (n, &marcel_sigwaits) {
		struct marcel_sigwait *w =
			container_of(n, struct marcel_sigwait, link);

		given = (w->set & marcel_signal_bit(signal)) &&
			marcel_sigwait_grant_locked(w, signal, info);
		if (given)
			break;
	}
	base_spin_unlock(&marcel_signal_lock);
	if (!given)
		kill(getpid(), signal);
	return given;
}

static void *process_main(void *arg)
{
	bool given = true;
	siginfo_t info;
	sigset_t set;
	int signal;

	(void)arg;
	os_thread_no_signals();
	store_relaxed(&process.tid, os_tid());
	while (!load_relaxed(&process.stop)) {
		collect(&set, !given);
		signal = sigwaitinfo(&set, &info);
		given = signal <= 0 || signal == marcel_sched.signal ||
			give(signal, &info);
	}
	return NULL;
}

int marcel_process_signals_start(void)
{
	int rc = 0;

	marcel_mutex_lock(&process.lock);
	if (!process.runs) {
		store_relaxed(&process.stop, 0);
		store_relaxed(&process.tid, 0);
		rc = marcel_poller_create(&process.thread, process_main, NULL);
		process.runs = rc == 0;
	}
	marcel_mutex_unlock(&process.lock);
	return -rc;
}

/*
 * It says who it is and then collects, under the lock under which the caller
 * has put itself into the list: so if it is not known, it will find that.
 */
void marcel_process_signals_look(void)
{
	pid_t tid = load_relaxed(&process.tid);

	/* That many signals are somebody's mistake, and pass. */
	while (tid != 0 && !os_thread_kill(tid, marcel_sched.signal))
		sched_yield();
}

void marcel_process_signals_stop(void)
{
	if (!process.runs)
		return;
	store_relaxed(&process.stop, 1);
	while (load_relaxed(&process.tid) == 0)
		sched_yield();
	marcel_process_signals_look();
	pthread_join(process.thread, NULL);
	process.runs = false;
}

void marcel_process_signals_forked(void)
{
	process.lock = (marcel_mutex_t)MARCEL_MUTEX_INITIALIZER;
	process.runs = false;
	store_relaxed(&process.tid, 0);
}
