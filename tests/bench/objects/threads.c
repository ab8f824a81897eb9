/*
 * Threads, and what they wait for.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include <marcel/marcel.h>
#include <marcel/signal.h>
#include <pioman/io.h>

#include "objects.h"

static struct thread {
	marcel_t thread;
	marcel_sem_t turn;
	int fd;
} * thread;
static marcel_attr_t small;
static marcel_sem_t answer;

enum { STACK = 16384 };

static bool leave;

static void thread_begin(void)
{
	thread = places(sizeof(*thread));
	NEED(marcel_attr_init(&small));
	NEED(marcel_attr_setstacksize(&small, STACK));
	NEED(marcel_sem_init(&answer, 0, 0));
}

static void thread_end(void)
{
	NEED(marcel_sem_destroy(&answer));
	NEED(marcel_attr_destroy(&small));
	free(thread);
}

/* Start fn(&thread[i]) and wait until it has answered. */
static bool thread_start(int i, void *(*fn)(void *))
{
	leave = false;
	if (marcel_create(&thread[i].thread, &small, fn, &thread[i]) != 0)
		return false;
	NEED(marcel_sem_wait(&answer));
	return true;
}

static void *parked(void *arg)
{
	struct thread *t = arg;

	do {
		marcel_sem_post(&answer);
		marcel_sem_wait(&t->turn);
	} while (!leave);
	return NULL;
}

static bool thread_create(int i)
{
	marcel_sem_init(&thread[i].turn, 0, 0);
	return thread_start(i, parked);
}

static void thread_use(int i)
{
	NEED(marcel_sem_post(&thread[i].turn));
	NEED(marcel_sem_wait(&answer));
}

static void thread_drop(int i)
{
	leave = true;
	NEED(marcel_sem_post(&thread[i].turn));
	NEED(marcel_join(thread[i].thread, NULL));
	leave = false;
}

/* Each with a time of its own, none of which comes. */
static void *timed(void *arg)
{
	struct thread *t = arg;
	struct timespec abs;

	do {
		clock_gettime(CLOCK_REALTIME, &abs);
		abs.tv_sec += 100000 + (t - thread) * 7919 % 100003;
		marcel_sem_post(&answer);
		marcel_sem_timedwait(&t->turn, &abs);
	} while (!leave);
	return NULL;
}

static bool timer_create_(int i)
{
	marcel_sem_init(&thread[i].turn, 0, 0);
	return thread_start(i, timed);
}

/* All wait for one condition; `left` is the last thread that left. */
static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t cond = MARCEL_COND_INITIALIZER;
static marcel_t left;

static void *waits(void *arg)
{
	marcel_mutex_lock(&mutex);
	do {
		marcel_sem_post(&answer);
		marcel_cond_wait(&cond, &mutex);
	} while (!leave);
	left = marcel_self();
	marcel_mutex_unlock(&mutex);
	marcel_sem_post(&answer);
	return arg;
}

static bool waiter_create(int i)
{
	return thread_start(i, waits);
}

static void waiter_use(int i)
{
	(void)i;
	NEED(marcel_mutex_lock(&mutex));
	NEED(marcel_cond_signal(&cond));
	NEED(marcel_mutex_unlock(&mutex));
	NEED(marcel_sem_wait(&answer));
}

/* The oldest thread ends: place i is only the count. */
static void waiter_drop(int i)
{
	leave = true;
	waiter_use(i);
	leave = false;
	NEED(marcel_join(left, NULL));
}

static void *reads(void *arg)
{
	struct thread *t = arg;
	eventfd_t n;

	do {
		marcel_sem_post(&answer);
		piom_read(t->fd, &n, sizeof(n));
	} while (!leave);
	return NULL;
}

static bool descriptor_create(int i)
{
	thread[i].fd = eventfd(0, EFD_NONBLOCK);
	return thread[i].fd >= 0 && thread_start(i, reads);
}

static void descriptor_ring(int i)
{
	NEED(eventfd_write(thread[i].fd, 1));
}

static void descriptor_use(int i)
{
	descriptor_ring(i);
	NEED(marcel_sem_wait(&answer));
}

static void descriptor_drop(int i)
{
	leave = true;
	descriptor_ring(i);
	NEED(marcel_join(thread[i].thread, NULL));
	leave = false;
	NEED(piom_close(thread[i].fd));
}

static void *awaits(void *arg)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	do {
		marcel_sem_post(&answer);
		marcel_sigwait(&set, &signal);
	} while (!leave);
	return arg;
}

static void sigwaiter_begin(void)
{
	sigset_t set;

	thread_begin();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	NEED(marcel_sigmask(SIG_BLOCK, &set, NULL));
}

static bool sigwaiter_create(int i)
{
	return thread_start(i, awaits);
}

static void sigwaiter_use(int i)
{
	NEED(marcel_kill(thread[i].thread, SIGUSR1));
	NEED(marcel_sem_wait(&answer));
}

static void sigwaiter_drop(int i)
{
	leave = true;
	NEED(marcel_kill(thread[i].thread, SIGUSR1));
	NEED(marcel_join(thread[i].thread, NULL));
	leave = false;
}

/* They are ready, and run only if their priority is raised. */
static void ready_begin(void)
{
	thread_begin();
	NEED(marcel_attr_setpriority(&small, MARCEL_PRIORITY_IDLE));
}

static void *ends(void *arg)
{
	return arg;
}

static bool ready_create(int i)
{
	return marcel_create(&thread[i].thread, &small, ends, NULL) == 0;
}

static void ready_use(int i)
{
	NEED(marcel_setpriority(thread[i].thread, MARCEL_PRIORITY_NORMAL));
	NEED(marcel_setpriority(thread[i].thread, MARCEL_PRIORITY_IDLE));
}

static void ready_drop(int i)
{
	NEED(marcel_setpriority(thread[i].thread, MARCEL_PRIORITY_REALTIME));
	NEED(marcel_join(thread[i].thread, NULL));
}

static marcel_key_t *key;

static void key_begin(void)
{
	key = places(sizeof(*key));
}

static bool key_create(int i)
{
	return marcel_key_create(&key[i], NULL) == 0;
}

static void key_use(int i)
{
	NEED(marcel_setspecific(key[i], &value));
	need(marcel_getspecific(key[i]) == &value, "marcel_getspecific");
}

static void key_drop(int i)
{
	NEED(marcel_key_delete(key[i]));
}

static void key_end(void)
{
	free(key);
}

/* clang-format off */
const struct kind objects_threads[] = {
	{ "thread", thread_begin, thread_create, thread_use, thread_drop, thread_end },
	{ "timer", thread_begin, timer_create_, thread_use, thread_drop, thread_end },
	{ "waiter", thread_begin, waiter_create, waiter_use, waiter_drop, thread_end },
	{ "descriptor", thread_begin, descriptor_create, descriptor_use, descriptor_drop, thread_end },
	{ "ready", ready_begin, ready_create, ready_use, ready_drop, thread_end },
	{ "sigwaiter", sigwaiter_begin, sigwaiter_create, sigwaiter_use, sigwaiter_drop, thread_end },
	{ "key", key_begin, key_create, key_use, key_drop, key_end },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
/* clang-format on */
