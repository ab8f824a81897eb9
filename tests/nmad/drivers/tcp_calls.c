/*
 * drivers/tcp: calls that come to nothing. A peer's address may exist here, too
 * (that of a bridge, say), and another program may listen at it. Rank 0 has the
 * driver, and is that program as well.
 */
#include "bare.h"

#include <stdlib.h>
#include <unistd.h>

extern const struct nm_driver nm_driver_tcp;

/* Rank 1 calls nobody; rank 0 when a test says so. */
__attribute__((constructor)) static void nobody_calls_unasked(void)
{
	job_connects_late = true;
}

static void ignore(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
}

static void run(void (*body)(struct job *), const void *arg, const char *ms)
{
	if (ms != NULL)
		setenv("NMAD_TCP_TIMEOUT_MS", ms, 1);
	job_run(&nm_driver_tcp, 2, body, (void *)arg);
	unsetenv("NMAD_TCP_TIMEOUT_MS");
}

/* --- the next address --- */

/* The program says something and hangs up; or NULL: it takes no call at all. */
static void other_body(struct job *j)
{
	const char *says = j->arg;
	int listener, caller = -1, ncalls = 0;
	struct tcp_peer *p;

	j->recv = ignore;
	if (j->rank == 1) {
		while (j->ngot < 1)
			job_progress(j);
		return;
	}
	p = bare_peer(j, 1);
	p->addr[p->naddrs++] = p->addr[0];
	p->addr[0] = bare_elsewhere;
	listener = bare_listen(j, p);
	if (says == NULL)
		caller = bare_fill_queue(j, p);
	job_send(j, 1, 0, 1, 1000);
	while (!job_idle(j) || p->state != TCP_OPEN) {
		int fd = says == NULL ? -1 : accept(listener, NULL, NULL);

		if (fd >= 0) {
			ncalls++;
			JOB_CHECK(j, send(fd, says, strlen(says),
					  MSG_NOSIGNAL) >= 0);
			close(fd);
		}
		job_progress(j);
	}
	JOB_CHECK(j, p->next_addr == 1);
	JOB_CHECK(j, ncalls == (says != NULL));
	close(listener);
	if (caller >= 0)
		close(caller);
}

TEST(who_is_not_the_peer_is_passed_over)
{
	run(other_body, "", NULL);
	run(other_body,
	    "220 mail.example.org: what would you have us deliver, "
	    "and to whom?\r\n",
	    NULL);
}

TEST(an_address_that_does_not_answer_is_passed_over)
{
	run(other_body, NULL, "300");
}

/* --- a call that cannot be watched --- */

static void unwatched_body(struct job *j)
{
	struct tcp *tcp = j->rail.drv;
	struct tcp_peer *p;
	struct in6_addr real;
	int listener, epoll = tcp->epoll, fd;
	uint64_t called;

	j->recv = ignore;
	if (j->rank == 1) {
		while (j->ngot < 1)
			job_progress(j);
		return;
	}
	p = bare_peer(j, 1);
	real = p->addr[0];
	p->addr[0] = bare_elsewhere;
	listener = bare_listen(j, p);
	job_send(j, 1, 0, 1, 1000);
	while (p->retry == 0) {
		job_progress(j);
		fd = accept(listener, NULL, NULL);
		if (fd >= 0)
			close(fd);
	}
	called = p->retry;
	tcp->epoll = -1;
	while (p->retry == called)
		job_progress(j);
	tcp->epoll = epoll;
	JOB_CHECK(j, p->state == TCP_COLD);
	p->addr[0] = real;
	while (!job_idle(j))
		job_progress(j);
	close(listener);
}

TEST(a_call_that_cannot_be_watched_has_not_begun)
{
	run(unwatched_body, NULL, NULL);
}
