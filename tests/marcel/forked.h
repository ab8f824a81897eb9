/*
 * What tests of children of fork() have in common: a child that says what goes
 * wrong in it, and who forks it.
 */
#ifndef TESTS_MARCEL_FORKED_H
#define TESTS_MARCEL_FORKED_H

#include <sys/wait.h>
#include <unistd.h>

#include <marcel/io.h>
#include "../parent.h"
#include "with.h"

enum { THREADS = 100 / FEWER }; /* that a child makes */

static inline void *nothing(void *arg)
{
	return arg;
}

/*
 * A child that does not outlive us, and is to end with `code`. TSan's own
 * allocator does not know of forks: if another kernel thread of the parent is
 * inside, the child finds it locked for good as soon as it starts a runtime or
 * makes a thread. So there a child of a parent that has others at work only
 * shows that it lives.
 */
static inline pid_t fork_one(int code)
{
	bool shows = BASE_TSAN && marcel_is_running() &&
		     (marcel_nvp() > 1 || marcel_current_vp() < 0);
	pid_t pid = parent_forks(fork);

	if (pid == 0 && shows)
		_exit(code);
	return pid;
}

static inline void wait_for(pid_t pid, int code)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), code);
}

/* --- what a child does: a number that says what went wrong, or 0 --- */

/* All meet; one waits for a byte, one for a time, and all say that they end. */
struct meeting {
	marcel_mutex_t lock;
	marcel_cond_t all_here;
	marcel_sem_t ended;
	int here, failed;
	int fds[2];
};

struct member {
	struct meeting *m;
	int number;
};

static inline void *take_part(void *arg)
{
	struct member *me = arg;
	struct meeting *m = me->m;
	char c;

	if (marcel_mutex_lock(&m->lock) != 0)
		m->failed = 1;
	if (++m->here == THREADS)
		marcel_cond_broadcast(&m->all_here);
	while (m->here < THREADS)
		marcel_cond_wait(&m->all_here, &m->lock);
	marcel_mutex_unlock(&m->lock);
	/* TSan allows no kernel threads there: none may sleep in the kernel. */
	if (me->number == 0 && !BASE_TSAN && marcel_read(m->fds[0], &c, 1) != 1)
		m->failed = 1;
	if (me->number == 1 && marcel_usleep(100) != 0)
		m->failed = 1;
	marcel_sem_post(&m->ended);
	return me;
}

static inline int use_runtime(void)
{
	struct meeting m = { .lock = MARCEL_MUTEX_INITIALIZER,
			     .all_here = MARCEL_COND_INITIALIZER };
	struct member member[THREADS];
	marcel_t t[THREADS];
	void *out;

	if (pipe(m.fds) != 0 || marcel_sem_init(&m.ended, 0, 0) != 0)
		return 20;
	for (int i = 0; i < THREADS; i++) {
		member[i] = (struct member){ &m, i };
		if (marcel_create(&t[i], NULL, take_part, &member[i]) != 0)
			return 21;
	}
	if (!marcel_is_running() || marcel_nvp() != 1 ||
	    marcel_current_vp() != 0)
		return 22;
	for (int i = 1; i < THREADS; i++)
		if (marcel_sem_wait(&m.ended) != 0)
			return 23;
	if (write(m.fds[1], "x", 1) != 1 || marcel_sem_wait(&m.ended) != 0)
		return 24;
	for (int i = 0; i < THREADS; i++)
		if (marcel_join(t[i], &out) != 0 || out != &member[i])
			return 25;
	close(m.fds[0]);
	close(m.fds[1]);
	return m.failed ? 26 : 0;
}

static inline int look_before(marcel_t parent_self)
{
	marcel_mutex_t m = MARCEL_MUTEX_INITIALIZER;
	marcel_sem_t s;

	if (marcel_is_running() || marcel_nvp() != 0)
		return 1;
	if (marcel_current_vp() != -1 || marcel_self() != parent_self)
		return 2;
	if (marcel_end() != -EINVAL)
		return 5;
	if (marcel_yield() != 0)
		return 6;
	if (marcel_mutex_lock(&m) != 0 || marcel_mutex_unlock(&m) != 0)
		return 7;
	if (marcel_sem_init(&s, 0, 0) != 0 || marcel_sem_post(&s) != 0 ||
	    marcel_sem_wait(&s) != 0)
		return 8;
	return 0;
}

static inline int look_in_child(marcel_t parent_self)
{
	int rc = look_before(parent_self);

	if (rc == 0)
		rc = use_runtime();
	if (rc == 0 && !marcel_equal(marcel_self(), parent_self))
		rc = 9;
	return rc;
}

static inline void *fork_and_look(void *arg)
{
	marcel_t me = marcel_self();
	pid_t pid = fork_one(0);

	if (pid == 0)
		_exit(look_in_child(me));
	wait_for(pid, 0);
	return arg;
}

static inline void as_user(void *(*fn)(void *))
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

#endif
