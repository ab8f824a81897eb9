/*
 * Programs whose threads hang, each in another way, and some that only look so:
 * threads WHICH. Two VPs, unless the environment says otherwise.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

#include "../named.h"

static marcel_mutex_t first = MARCEL_MUTEX_INITIALIZER,
		      second = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t cond = MARCEL_COND_INITIALIZER;
static marcel_rwlock_t rwlock = MARCEL_RWLOCK_INITIALIZER;
static marcel_sem_t sem;
static marcel_barrier_t barrier, both_have;
static marcel_t joiner[2];

static void *lock_twice(void *arg)
{
	marcel_mutex_lock(&first);
	marcel_mutex_lock(&first);
	return arg;
}

static void *lock_second_first(void *arg)
{
	marcel_mutex_lock(&second);
	marcel_barrier_wait(&both_have);
	marcel_mutex_lock(&first);
	return arg;
}

static void *lock_first_second(void *arg)
{
	marcel_mutex_lock(&first);
	marcel_barrier_wait(&both_have);
	marcel_mutex_lock(&second);
	return arg;
}

static void abba(void)
{
	marcel_t t = start("ab", lock_first_second, NULL);

	start("ba", lock_second_first, NULL);
	marcel_join(t, NULL);
}

/* The signal is gone before anybody waits. */
static void *wait_for_cond(void *arg)
{
	marcel_mutex_lock(&first);
	marcel_cond_wait(&cond, &first);
	marcel_mutex_unlock(&first);
	return arg;
}

static void *join_other(void *arg)
{
	marcel_barrier_wait(&both_have);
	marcel_join(*(marcel_t *)arg, NULL);
	return NULL;
}

static void joins(void)
{
	joiner[0] = start("left", join_other, &joiner[1]);
	joiner[1] = start("right", join_other, &joiner[0]);
	marcel_barrier_wait(&both_have);
	marcel_sem_wait(&sem);
}

static void *wait_for_sem(void *arg)
{
	marcel_sem_wait(&sem);
	return arg;
}

static void *come_to_barrier(void *arg)
{
	marcel_barrier_wait(&barrier);
	return arg;
}

static void *write_while_reading(void *arg)
{
	marcel_rwlock_rdlock(&rwlock);
	marcel_rwlock_wrlock(&rwlock);
	return arg;
}

static enum piom_ltask_result never(void *arg)
{
	(void)arg;
	return PIOM_LTASK_AGAIN;
}

static struct piom_ltask task;

/* It is waited for, but nobody submits it, or it never ends. */
static void *wait_for_task(void *arg)
{
	piom_ltask_wait(&task);
	return arg;
}

static void *wait_for_own_task(void *arg)
{
	struct piom_ltask own;

	piom_ltask_init(&own, never, NULL, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_wait(&own);
	return arg;
}

static void ltasks(void)
{
	for (int i = 0; i < 20; i++)
		start("one of many", wait_for_own_task, NULL);
}

/* --- not dead --- */

static void *wait_for_task_until(void *arg)
{
	piom_cond_t cond;

	piom_cond_init(&cond);
	piom_cond_wait_until(&cond, UINT64_MAX / 4);
	return arg;
}

static void *sleep_for_ever(void *arg)
{
	marcel_sleep(100000);
	return arg;
}

static void *pause_for_ever(void *arg)
{
	pause();
	return arg;
}

/* It may wake somebody some day. */
static enum marcel_hook_answer look_again(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	return MARCEL_HOOK_PENDING;
}

static struct marcel_hook hook = { .fn = look_again };

static void handle(int signal)
{
	(void)signal;
	marcel_sem_post(&sem);
}

static const struct {
	const char *name;
	void *(*fn)(void *);
} ways[] = {
	{ "self", lock_twice },
	{ "condition", wait_for_cond },
	{ "semaphore", wait_for_sem },
	{ "barrier", come_to_barrier },
	{ "ltask", wait_for_task },
	{ "sleep", sleep_for_ever },
	{ "writer", write_while_reading },
	{ "foreign", wait_for_sem },
	{ "handler", wait_for_sem },
	{ "hook", wait_for_sem },
	{ "turns", wait_for_task },
	{ "endless", wait_for_task },
	{ "ltasks", wait_for_task },
	{ "timed", wait_for_task_until },
};

static void prepare(const char *which)
{
	pthread_t foreign;

	marcel_sem_init(&sem, 0, 0);
	marcel_barrier_init(&barrier, NULL, 2);
	marcel_barrier_init(&both_have, NULL,
			    strcmp(which, "joins") == 0 ? 3 : 2);
	piom_ltask_init(&task, never, NULL, PIOM_LTASK_REPEAT, NULL);
	if (strcmp(which, "endless") == 0)
		piom_ltask_submit(&task);
	if (strcmp(which, "foreign") == 0)
		pthread_create(&foreign, NULL, pause_for_ever, NULL);
	if (strcmp(which, "hook") == 0)
		marcel_hook_add(MARCEL_HOOK_IDLE, &hook);
	if (strcmp(which, "turns") == 0)
		marcel_hook_add(MARCEL_HOOK_SWITCH, &hook);
	if (strcmp(which, "handler") == 0)
		signal(SIGUSR1, handle);
}

int main(int argc, char **argv)
{
	const struct marcel_config config = { .nvp = getenv("MARCEL_NVP") ? 0
									  : 2 };
	const char *which = argc > 1 ? argv[1] : "";

	if (marcel_init(&config) < 0 || piom_init() < 0)
		return 1;
	prepare(which);
	printf("ready\n");
	fflush(stdout);
	if (strcmp(which, "abba") == 0)
		abba();
	if (strcmp(which, "joins") == 0)
		joins();
	if (strcmp(which, "ltasks") == 0)
		ltasks();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(which, ways[i].name) == 0)
			marcel_join(start(which, ways[i].fn, NULL), NULL);
	printf("%s does not hang\n", which);
	return 1;
}
