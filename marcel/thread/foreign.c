/*
 * Kernel threads that are not ours: they get a descriptor when they first
 * need one and give it back when they end.
 */
#include "thread.h"

#include <errno.h>
#include <pthread.h>

#include <base/diag.h>
#include <marcel/marcel.h>
#include "../sched/vp.h"
#include "cancel.h"
#include "fork.h"

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

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
