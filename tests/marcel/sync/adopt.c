/*
 * sync/adopt.c: objects for which threads of the parent wait when it forks, in
 * the child, which holds them and lets them go.
 */
#include <errno.h>
#include <pthread.h>

#include <base/atomic.h>
#include "../../../marcel/sync/guard.h"
#include "../../../marcel/sync/mutex.h"
#include "../forked.h"
#include "../parked.h"

enum { WAITERS = 3, OWN = 4, TURNS = 10 };

static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t cond = MARCEL_COND_INITIALIZER;
static marcel_rwlock_t rwlock = MARCEL_RWLOCK_INITIALIZER;
static marcel_sem_t sem;
static marcel_once_t once = MARCEL_ONCE_INIT;
static ATOMIC(int) came, ended, sets;
static bool ready;

static void lock_mutex(void)
{
	marcel_mutex_lock(&mutex);
	marcel_yield();
	marcel_mutex_unlock(&mutex);
}

static void wait_cond(void)
{
	marcel_mutex_lock(&mutex);
	while (!ready)
		marcel_cond_wait(&cond, &mutex);
	marcel_mutex_unlock(&mutex);
}

static void lock_read(void)
{
	marcel_rwlock_rdlock(&rwlock);
	marcel_yield();
	marcel_rwlock_unlock(&rwlock);
}

static void lock_write(void)
{
	marcel_rwlock_wrlock(&rwlock);
	marcel_yield();
	marcel_rwlock_unlock(&rwlock);
}

static void wait_sem(void)
{
	marcel_sem_wait(&sem);
	marcel_yield();
	marcel_sem_post(&sem);
}

static void set_up(void)
{
	fetch_add_relaxed(&sets, 1);
	for (int i = 0; i < 10; i++)
		marcel_yield();
}

static void run_once(void)
{
	marcel_once(&once, set_up);
}

static void *run(void *fn)
{
	fetch_add_relaxed(&came, 1);
	((void (*)(void))fn)();
	fetch_add_release(&ended, 1);
	return NULL;
}

struct comer {
	void (*fn)(void);
	ATOMIC(marcel_t) self;
};

static void *come_from_outside(void *arg)
{
	struct comer *c = arg;

	store_release(&c->self, marcel_self());
	return run((void *)c->fn);
}

/* So many user threads, and as many that are foreign, come and wait. */
static void come(void (*fn)(void), int n, marcel_t *t, pthread_t *p)
{
	static struct comer comers[WAITERS];

	store_relaxed(&ended, 0);
	for (int i = 0; i < n; i++) {
		comers[i] = (struct comer){ .fn = fn };
		CHECK_INT(marcel_create(&t[i], NULL, run, (void *)fn), 0);
		CHECK_INT(pthread_create(&p[i], NULL, come_from_outside,
					 &comers[i]),
			  0);
	}
	for (int i = 0; i < n; i++) {
		until_parked(t[i]);
		while (load_acquire(&comers[i].self) == NULL)
			marcel_yield();
		until_parked(load_relaxed(&comers[i].self));
	}
}

static void go(int n, marcel_t *t, pthread_t *p)
{
	while (load_acquire(&ended) < 2 * n)
		marcel_yield();
	for (int i = 0; i < n; i++) {
		CHECK_INT(marcel_join(t[i], NULL), 0);
		CHECK_INT(pthread_join(p[i], NULL), 0);
	}
}

/* What the child's own threads do, for which it is as if nobody had waited. */
static int compete(void (*fn)(void))
{
	marcel_t t[OWN];

	for (int i = 0; i < OWN; i++)
		if (marcel_create(&t[i], NULL, run, (void *)fn) != 0)
			return 1;
	for (int i = 0; i < OWN; i++)
		if (marcel_join(t[i], NULL) != 0)
			return 2;
	return 0;
}

/* One that the parent holds, so that all wait; let go in the child. */
struct held {
	void (*wait)(void);
	int (*hold)(void), (*let_go)(void), (*destroy)(void);
};

static int hold_mutex(void)
{
	return marcel_mutex_lock(&mutex);
}

static int let_mutex_go(void)
{
	return marcel_mutex_unlock(&mutex);
}

static int destroy_mutex(void)
{
	return marcel_mutex_destroy(&mutex);
}

static int hold_sem(void)
{
	return marcel_sem_init(&sem, 0, 0);
}

static int let_sem_go(void)
{
	return marcel_sem_post(&sem);
}

static int destroy_sem(void)
{
	int value;

	marcel_sem_getvalue(&sem, &value);
	return value != 1 || marcel_sem_destroy(&sem) != 0;
}

static int hold_rwlock(void)
{
	return marcel_rwlock_wrlock(&rwlock);
}

static int hold_as_reader(void)
{
	return marcel_rwlock_rdlock(&rwlock);
}

static int let_rwlock_go(void)
{
	return marcel_rwlock_unlock(&rwlock);
}

static int destroy_rwlock(void)
{
	return marcel_rwlock_destroy(&rwlock);
}

static int nothing_held(void)
{
	ready = false;
	return 0;
}

static int broadcast(void)
{
	marcel_mutex_lock(&mutex);
	ready = true;
	marcel_cond_broadcast(&cond);
	return marcel_mutex_unlock(&mutex);
}

static int destroy_cond(void)
{
	return marcel_cond_destroy(&cond);
}

/* The child lets it go before it has a runtime, and with threads that wait. */
static int use_in_child(const struct held *h, bool starts)
{
	if (starts && use_runtime() != 0)
		return 1;
	if (h->let_go() != 0 || compete(h->wait) != 0)
		return 2;
	return h->destroy() != 0 ? 3 : 0;
}

static void fork_with(const struct held *h)
{
	pthread_t p[WAITERS];
	marcel_t t[WAITERS];
	pid_t pid;

	CHECK_INT(h->hold(), 0);
	come(h->wait, WAITERS, t, p);
	for (int starts = 0; starts < 2; starts++) {
		pid = fork_one(0);
		if (pid == 0)
			_exit(use_in_child(h, starts));
		wait_for(pid, 0);
	}
	CHECK_INT(h->let_go(), 0);
	go(WAITERS, t, p);
	CHECK_INT(h->destroy(), 0);
}

TEST_VPS(a_child_has_a_mutex_for_itself)
{
	fork_with(&(struct held){ lock_mutex, hold_mutex, let_mutex_go,
				  destroy_mutex });
}

TEST_VPS(a_child_has_a_semaphore_for_itself)
{
	fork_with(
		&(struct held){ wait_sem, hold_sem, let_sem_go, destroy_sem });
}

TEST_VPS(a_child_has_a_read_write_lock_for_itself)
{
	fork_with(&(struct held){ lock_read, hold_rwlock, let_rwlock_go,
				  destroy_rwlock });
	fork_with(&(struct held){ lock_write, hold_rwlock, let_rwlock_go,
				  destroy_rwlock });
	fork_with(&(struct held){ lock_write, hold_as_reader, let_rwlock_go,
				  destroy_rwlock });
}

TEST_VPS(a_child_has_a_condition_for_itself)
{
	fork_with(&(struct held){ wait_cond, nothing_held, broadcast,
				  destroy_cond });
}

/* The parent's runner does not go on in the child, which runs it again. */
TEST_VPS(a_child_runs_what_was_to_run_once)
{
	marcel_t t[2];
	pid_t pid;

	once = (marcel_once_t)MARCEL_ONCE_INIT;
	store_relaxed(&sets, 0);
	store_relaxed(&came, 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_create(&t[i], NULL, run, (void *)run_once), 0);
	while (load_relaxed(&sets) == 0 || load_relaxed(&came) < 2)
		marcel_yield();
	pid = fork_one(0);
	if (pid == 0)
		_exit(compete(run_once) != 0 || load_relaxed(&sets) > 2);
	wait_for(pid, 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&sets), 1);
}

/* --- whom the holder has signalled --- */

TEST_VPS(a_child_has_no_heirs_of_the_parent)
{
	marcel_t t[1];
	pthread_t p[1];
	pid_t pid;

	ready = false;
	come(wait_cond, 1, t, p);
	CHECK_INT(marcel_mutex_lock(&mutex), 0);
	ready = true;
	CHECK_INT(marcel_cond_broadcast(&cond), 0);
	pid = fork_one(0);
	if (pid == 0)
		_exit(marcel_mutex_unlock(&mutex) != 0 ||
		      compete(lock_mutex) != 0 ||
		      marcel_mutex_destroy(&mutex) != 0);
	wait_for(pid, 0);
	CHECK_INT(marcel_mutex_unlock(&mutex), 0);
	go(1, t, p);
}

/* --- another kernel thread is in the middle of a slow path --- */

static int use_mutex(void)
{
	if (marcel_mutex_trylock(&mutex) != 0 ||
	    marcel_mutex_unlock(&mutex) != 0)
		return 1;
	return compete(lock_mutex);
}

TEST_VPS(a_child_waits_for_no_guard)
{
	struct marcel_mutex *m = (struct marcel_mutex *)&mutex;
	uint32_t w = load_relaxed(&m->guard.word);
	pid_t pid;

	store_relaxed(&m->guard.word, w | MARCEL_GUARDED);
	pid = fork_one(0);
	if (pid == 0)
		_exit(use_mutex());
	store_relaxed(&m->guard.word, w);
	wait_for(pid, 0);
}

/* --- handlers of the program --- */

static bool handles;

static void prepare(void)
{
	if (handles)
		marcel_mutex_lock(&mutex);
}

static void release(void)
{
	if (handles)
		marcel_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void handle_forks(void)
{
	pthread_atfork(prepare, release, release);
}

static void *hammer(void *arg)
{
	while (load_relaxed(&ended) == 0) {
		marcel_mutex_lock(&mutex);
		marcel_mutex_unlock(&mutex);
		if (BASE_TSAN) /* where no tick comes */
			marcel_yield();
	}
	return arg;
}

/* The idiom of who forks while others use a lock. */
TEST_VPS(handlers_lock_before_and_unlock_after)
{
	marcel_t t[OWN];
	pid_t pid;

	store_relaxed(&ended, 0);
	for (int i = 0; i < OWN; i++)
		CHECK_INT(marcel_create(&t[i], NULL, hammer, NULL), 0);
	handles = true;
	for (int i = 0; i < TURNS; i++) {
		pid = fork_one(0);
		if (pid == 0)
			_exit(compete(lock_mutex));
		wait_for(pid, 0);
		marcel_yield();
	}
	handles = false;
	store_relaxed(&ended, 1);
	for (int i = 0; i < OWN; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}
