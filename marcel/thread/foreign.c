/*
 * Kernel threads that are not ours: they get a descriptor when they first
 * need one and give it back when they end.
 *
 * They may make user threads, as long as the runtime runs, and it may end at
 * any time, in the child of a fork even without anybody knowing when. So who
 * makes one says so first, and the end waits for them:
 *
 *	under the door's lock, running becomes 0 while nobody makes a thread
 *	and all threads that were made have ended;
 *	under the same lock who wants to make one sees that it is 1.
 *
 * Who makes one is pinned: no tick comes between, and a handler of signals that
 * forks has interrupted the runtime.
 */
#include "thread.h"

#include <errno.h>
#include <pthread.h>

#include <base/diag.h>
#include <base/spin.h>
#include <marcel/marcel.h>
#include "../arch/cpu.h"
#include "../sched/vp.h"
#include "cancel.h"
#include "fork.h"

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
	struct base_spin lock;
	unsigned makers; /* l: who make threads just now */
} door = { .lock = BASE_SPIN_INIT(BASE_RANK_LEAF) };

/* A child's runtime was started for it, by the first call that needed one. */
static void end_main(void)
{
	if (!marcel_fork_is_child())
		base_fatal("marcel", "the kernel thread that called "
				     "marcel_init() ends without marcel_end() "
				     "or marcel_exit()");
	marcel_fork_leave();
}

/* A kernel thread ends. Other destructors may need a descriptor again. */
static void give_back(void *arg)
{
	struct marcel_thread *t = arg;

	if (marcel_thread_has(t, MARCEL_F_KEYS))
		marcel_key_exit(t);
	if (marcel_thread_has(t, MARCEL_F_MAIN))
		end_main();
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
	store_relaxed(&t->flags, MARCEL_F_FOREIGN);
	t->home = -1;
	t->stack = NULL;
	t->rest->keys = NULL;
	store_relaxed(&t->ended, MARCEL_END_DETACHED); /* not to be joined */
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	marcel_tls.self = t;
	marcel_foreign_keep(t);
	return t;
}

void marcel_foreign_keep(struct marcel_thread *t)
{
	pthread_once(&once, make_key);
	pthread_setspecific(key, t);
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

/* --- threads that they make --- */

bool marcel_foreign_makes(void)
{
	bool may;

	base_spin_lock(&door.lock);
	may = marcel_is_running();
	door.makers += may;
	if (may)
		cpu_tls_pin(1);
	base_spin_unlock(&door.lock);
	return may;
}

void marcel_foreign_made(void)
{
	base_spin_lock(&door.lock);
	/* In a child that a handler has forked there are none. */
	if (door.makers > 0)
		door.makers--;
	cpu_tls_pin(-1);
	base_spin_unlock(&door.lock);
}

bool marcel_foreign_shut(void)
{
	bool may;

	base_spin_lock(&door.lock);
	may = door.makers == 0 && !marcel_thread_any();
	if (may)
		store_relaxed(&marcel_sched.running, 0);
	base_spin_unlock(&door.lock);
	return may;
}

void marcel_foreign_forked(void)
{
	base_spin_init(&door.lock, door.lock.rank);
	door.makers = 0;
}
