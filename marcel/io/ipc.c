/*
 * Message queues and semaphores between processes, of System V and of POSIX;
 * and libc's semaphores between threads, which are no others.
 */
#include "io.h"

#include <string.h>
#include <sys/syscall.h>

#include <marcel/time.h>

/* --- System V --- */

/* More at once are not tried. */
enum { FEW = 16 };

static bool sem_would_block(int id, const struct sembuf *ops, size_t n, int *rc)
{
	struct sembuf now[FEW];

	if (n == 0 || n > FEW)
		return true;
	memcpy(now, ops, n * sizeof(*ops));
	for (size_t i = 0; i < n; i++)
		now[i].sem_flg |= IPC_NOWAIT;
	*rc = (int)syscall(SYS_semtimedop, id, now, n, NULL);
	return io_would_block(*rc);
}

int marcel_io_semtimedop(__typeof__(semtimedop) *next, int id,
			 struct sembuf *ops, size_t n,
			 const struct timespec *timeout)
{
	int rc;

	if (likely(!io_holds()) || (timeout != NULL && !io_is_time(timeout)))
		return next(id, ops, n, timeout);
	if (!sem_would_block(id, ops, n, &rc))
		return rc;
	marcel_call_enter();
	rc = next(id, ops, n, timeout);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_semop(__typeof__(semop) *next, int id, struct sembuf *ops,
		    size_t n)
{
	if (likely(!io_holds()))
		return next(id, ops, n);
	return marcel_io_semtimedop(semtimedop, id, ops, n, NULL);
}

/* MSG_COPY never waits: without IPC_NOWAIT it is an error. */
ssize_t marcel_io_msgrcv(__typeof__(msgrcv) *next, int id, void *msg, size_t n,
			 long type, int flags)
{
	ssize_t rc;

	if (likely(!io_holds()) || (flags & (IPC_NOWAIT | MSG_COPY)) != 0)
		return next(id, msg, n, type, flags);
	rc = next(id, msg, n, type, flags | IPC_NOWAIT);
	if (rc >= 0 || *marcel_os_errno() != ENOMSG)
		return rc;
	marcel_call_enter();
	rc = next(id, msg, n, type, flags);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_msgsnd(__typeof__(msgsnd) *next, int id, const void *msg,
		     size_t n, int flags)
{
	int rc;

	if (likely(!io_holds()) || (flags & IPC_NOWAIT) != 0)
		return next(id, msg, n, flags);
	rc = next(id, msg, n, flags | IPC_NOWAIT);
	if (!io_would_block(rc))
		return rc;
	marcel_call_enter();
	rc = next(id, msg, n, flags);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- POSIX: messages. One whose time is over does not wait --- */

static const struct timespec past;

static bool timed_out(ssize_t rc)
{
	return rc < 0 &&
	       (*marcel_os_errno() == ETIMEDOUT || *marcel_os_errno() == EINTR);
}

/* Whether to call: nothing is there yet. */
static bool must_receive(mqd_t mq, char *msg, size_t n, unsigned *prio,
			 ssize_t *rc)
{
	*rc = syscall(SYS_mq_timedreceive, mq, msg, n, prio, &past);
	return timed_out(*rc);
}

static bool must_send(mqd_t mq, const char *msg, size_t n, unsigned prio,
		      int *rc)
{
	*rc = (int)syscall(SYS_mq_timedsend, mq, msg, n, prio, &past);
	return timed_out(*rc);
}

ssize_t marcel_io_mq_receive(__typeof__(mq_receive) *next, mqd_t mq, char *msg,
			     size_t n, unsigned *prio)
{
	ssize_t rc;

	if (likely(!io_holds()))
		return next(mq, msg, n, prio);
	if (!must_receive(mq, msg, n, prio, &rc))
		return rc;
	marcel_call_enter();
	rc = next(mq, msg, n, prio);
	marcel_call_end(rc < 0);
	return rc;
}

ssize_t marcel_io_mq_timedreceive(__typeof__(mq_timedreceive) *next, mqd_t mq,
				  char *msg, size_t n, unsigned *prio,
				  const struct timespec *deadline)
{
	ssize_t rc;

	if (likely(!io_holds()) || (deadline != NULL && !io_is_time(deadline)))
		return next(mq, msg, n, prio, deadline);
	if (!must_receive(mq, msg, n, prio, &rc))
		return rc;
	marcel_call_enter();
	rc = next(mq, msg, n, prio, deadline);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_mq_send(__typeof__(mq_send) *next, mqd_t mq, const char *msg,
		      size_t n, unsigned prio)
{
	int rc;

	if (likely(!io_holds()))
		return next(mq, msg, n, prio);
	if (!must_send(mq, msg, n, prio, &rc))
		return rc;
	marcel_call_enter();
	rc = next(mq, msg, n, prio);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_mq_timedsend(__typeof__(mq_timedsend) *next, mqd_t mq,
			   const char *msg, size_t n, unsigned prio,
			   const struct timespec *deadline)
{
	int rc;

	if (likely(!io_holds()) || (deadline != NULL && !io_is_time(deadline)))
		return next(mq, msg, n, prio, deadline);
	if (!must_send(mq, msg, n, prio, &rc))
		return rc;
	marcel_call_enter();
	rc = next(mq, msg, n, prio, deadline);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- POSIX: semaphores, on which libc has the kernel thread sleep --- */

enum { AGAIN_US = 1000 };

static bool is_over(clockid_t clock, const struct timespec *deadline)
{
	struct timespec now;

	return clock_gettime(clock, &now) == 0 &&
	       (now.tv_sec > deadline->tv_sec ||
		(now.tv_sec == deadline->tv_sec &&
		 now.tv_nsec >= deadline->tv_nsec));
}

/*
 * Past the bound of LWPs nobody could go on with the VP, and who is to post may
 * wait for it. No deadline: for ever.
 */
static int try_again(sem_t *s, clockid_t clock, const struct timespec *deadline)
{
	while (sem_trywait(s) < 0) {
		if (*marcel_os_errno() != EAGAIN)
			return -1;
		if (deadline != NULL && is_over(clock, deadline)) {
			*marcel_os_errno() = ETIMEDOUT;
			return -1;
		}
		marcel_usleep(AGAIN_US);
	}
	return 0;
}

/* True: the call is announced, and to be made; else it is done, with *rc. */
static bool has_to_sleep(sem_t *s, clockid_t clock,
			 const struct timespec *deadline, int *rc)
{
	*rc = sem_trywait(s);
	if (*rc == 0)
		return false;
	if (marcel_call_begin())
		return true;
	*rc = try_again(s, clock, deadline);
	return false;
}

int marcel_io_sem_wait(__typeof__(sem_wait) *next, sem_t *s)
{
	int rc;

	if (likely(!io_holds()))
		return next(s);
	if (!has_to_sleep(s, CLOCK_REALTIME, NULL, &rc))
		return rc;
	rc = next(s);
	marcel_call_end(rc < 0);
	return rc;
}

/* A time that is none is an error even if there is a unit. */
int marcel_io_sem_timedwait(__typeof__(sem_timedwait) *next, sem_t *s,
			    const struct timespec *deadline)
{
	int rc;

	if (likely(!io_holds()) || !io_is_time(deadline))
		return next(s, deadline);
	if (!has_to_sleep(s, CLOCK_REALTIME, deadline, &rc))
		return rc;
	rc = next(s, deadline);
	marcel_call_end(rc < 0);
	return rc;
}

/* So is a clock that is none of the two. */
int marcel_io_sem_clockwait(__typeof__(sem_clockwait) *next, sem_t *s,
			    clockid_t clock, const struct timespec *deadline)
{
	int rc;

	if (likely(!io_holds()) || !io_is_time(deadline) ||
	    (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return next(s, clock, deadline);
	if (!has_to_sleep(s, clock, deadline, &rc))
		return rc;
	rc = next(s, clock, deadline);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- the public names --- */

BASE_PUBLIC int marcel_semop(int id, struct sembuf *ops, size_t n)
{
	return marcel_io_semop(semop, id, ops, n);
}

BASE_PUBLIC int marcel_semtimedop(int id, struct sembuf *ops, size_t n,
				  const struct timespec *timeout)
{
	return marcel_io_semtimedop(semtimedop, id, ops, n, timeout);
}

BASE_PUBLIC ssize_t marcel_msgrcv(int id, void *msg, size_t n, long type,
				  int flags)
{
	return marcel_io_msgrcv(msgrcv, id, msg, n, type, flags);
}

BASE_PUBLIC int marcel_msgsnd(int id, const void *msg, size_t n, int flags)
{
	return marcel_io_msgsnd(msgsnd, id, msg, n, flags);
}

BASE_PUBLIC ssize_t marcel_mq_receive(mqd_t mq, char *msg, size_t n,
				      unsigned *prio)
{
	return marcel_io_mq_receive(mq_receive, mq, msg, n, prio);
}

BASE_PUBLIC ssize_t marcel_mq_timedreceive(mqd_t mq, char *msg, size_t n,
					   unsigned *prio,
					   const struct timespec *deadline)
{
	return marcel_io_mq_timedreceive(mq_timedreceive, mq, msg, n, prio,
					 deadline);
}

BASE_PUBLIC int marcel_mq_send(mqd_t mq, const char *msg, size_t n,
			       unsigned prio)
{
	return marcel_io_mq_send(mq_send, mq, msg, n, prio);
}

BASE_PUBLIC int marcel_mq_timedsend(mqd_t mq, const char *msg, size_t n,
				    unsigned prio,
				    const struct timespec *deadline)
{
	return marcel_io_mq_timedsend(mq_timedsend, mq, msg, n, prio, deadline);
}
