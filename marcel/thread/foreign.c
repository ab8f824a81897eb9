/*
 * Kernel threads that are not ours: they get a descriptor when they first
 * need one and give it back when they end. Also what is left in a forked
 * child, where every thread is foreign.
 */
#include "thread.h"

#include <errno.h>
#include <pthread.h>

#include <base/diag.h>
#include "../os/os.h"
#include "../sched/hook.h"
#include "../sched/place.h"
#include "../signal/signal.h"
#include "cancel.h"

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Written by the only thread of a new process. */
static bool is_forked;

/* A kernel thread ends. Other destructors may need a descriptor again. */
static void give_back(void *arg)
{
	struct marcel_thread *t = arg;

	if (marcel_thread_has(t, MARCEL_F_MAIN))
		base_fatal("marcel", "the kernel thread that called "
				     "marcel_init() ends without marcel_end() "
				     "or marcel_exit()");
	if (marcel_thread_has(t, MARCEL_F_KEYS))
		marcel_key_exit(t);
	marcel_tls.self = NULL;
	if (!marcel_cancel_keeps(t))
		marcel_thread_put(NULL, t);
}

static void make_key(void)
{
	int rc = pthread_key_create(&key, give_back);

	if (rc != 0)
		base_fatal("marcel", "no pthread key left (error %d)", rc);
}

static BASE_COLD struct marcel_thread *adopt(void)
{
	struct marcel_thread *t = marcel_thread_get(NULL);

	if (t == NULL)
		base_fatal("marcel", "no memory for a thread's descriptor");
	pthread_once(&once, make_key);
	store_relaxed(&t->flags, MARCEL_F_FOREIGN);
	t->home = -1;
	t->stack = NULL;
	t->rest->keys = NULL;
	store_relaxed(&t->ended, MARCEL_END_DETACHED); /* not to be joined */
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	marcel_tls.self = t;
	pthread_setspecific(key, t);
	return t;
}

BASE_NOINLINE struct marcel_thread *marcel_foreign_self(void)
{
	struct marcel_thread *t = marcel_tls.self;

	return likely(t != NULL) ? t : adopt();
}

void marcel_foreign_to_main(struct marcel_thread *t)
{
	fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_FOREIGN);
	fetch_or_relaxed(&t->flags, MARCEL_F_MAIN);
	t->home = 0;
}

void marcel_foreign_from_main(struct marcel_thread *t)
{
	fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_MAIN);
	fetch_or_relaxed(&t->flags, MARCEL_F_FOREIGN);
	store_relaxed(&t->rest->steady, 0);
	t->home = -1;
}

bool marcel_foreign_is_forked(void)
{
	return is_forked;
}

/* Locks of what can be called without a runtime; somebody may hold them. */
static void renew_locks(void)
{
	base_spin_init(&marcel_place_lock, marcel_place_lock.rank);
	base_spin_init(&marcel_hook_lock, marcel_hook_lock.rank);
	base_spin_init(&marcel_signal_lock, marcel_signal_lock.rank);
}

/*
 * The child has one thread, the one that forked, whatever it was: from now on
 * it is a kernel thread among nobody. The runtime's memory stays as it is, and
 * nothing of it is ever used or freed.
 */
void marcel_foreign_forked(void)
{
	struct marcel_lwp *l = marcel_tls.lwp;
	struct marcel_thread *t;

	renew_locks();
	marcel_thread_forked();
	marcel_cancel_forked();
	if (load_relaxed(&marcel_sched.running) == 0)
		return;
	is_forked = true;
	store_relaxed(&marcel_sched.running, 0);
	os_cpu_unbind();
	if (l == NULL)
		return;
	t = load_relaxed(&l->self);
	fetch_and_relaxed(&t->flags,
			  (uint16_t) ~(MARCEL_F_MAIN | MARCEL_F_KEPT));
	fetch_or_relaxed(&t->flags, MARCEL_F_FOREIGN);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	marcel_tls.lwp = NULL;
	marcel_tls.self = t;
}

int marcel_foreign_init(void)
{
	return -pthread_atfork(NULL, NULL, marcel_foreign_forked);
}
