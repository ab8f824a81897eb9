/*
 * drivers/tcp: calls that come to nothing. A peer's address may exist here, too
 * (that of a bridge, say), and another program may listen at it. Rank 0 has the
 * driver, and is that program as well.
 */
#include "bare.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct nm_driver nm_driver_tcp;

enum { SHORTEST_MS = 10 };

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

/* --- there again --- */

/*
 * The peer hangs up once, as if it had too many callers, and at its second
 * address nobody answers.
 */
static void again_body(struct job *j)
{
	const struct tcp *tcp = j->rail.drv;
	struct pollfd called = { .fd = tcp->listener.fd, .events = POLLIN };
	const bool *sends = j->arg;
	struct tcp_peer *p;
	int listener, caller;

	j->recv = ignore;
	if (j->rank == 1) {
		JOB_CHECK(j, poll(&called, 1, -1) == 1);
		close(accept(called.fd, NULL, NULL));
		p = nm_tcp_peer(j->rail.drv, 0);
		while (p->state != TCP_OPEN || (*sends && j->ngot < 1))
			job_progress(j);
		job_meet(j);
		return;
	}
	p = bare_peer(j, 1);
	p->addr[p->naddrs++] = bare_elsewhere;
	listener = bare_listen(j, p);
	caller = bare_fill_queue(j, p);
	if (*sends)
		job_send(j, 1, 0, 1, 1000);
	while (!job_idle(j) || p->state != TCP_OPEN) {
		job_progress(j);
		JOB_CHECK(j, j->deaths[1] == 0);
	}
	job_meet(j);
	close(listener);
	close(caller);
}

TEST(who_may_have_been_busy_is_called_again_after_who_does_not_answer)
{
	bool sends = false;

	run(again_body, &sends, "100");
	sends = true;
	run(again_body, &sends, "100");
}

/* --- in vain --- */

/* Whoever has the peer's address, and takes each call, is not the peer. */
struct wrong {
	bool sends;       /* the caller; else it only listens */
	bool says_busy;   /* and does not know the key */
	unsigned hold_ms; /* until it hangs up */
};

static void say_busy(struct job *j, int fd)
{
	struct tcp_hello busy = { .kind = TCP_BUSY,
				  .from = 1,
				  .to = 0xffffffff };
	unsigned char text[TCP_HELLO];

	nm_tcp_hello_put(text, &busy);
	JOB_CHECK(j, send(fd, text, sizeof(text), MSG_NOSIGNAL) > 0);
}

static void wrong_body(struct job *j)
{
	const struct wrong *w = j->arg;
	uint64_t until = 0;
	int listener, fd = -1;
	struct tcp_peer *p;

	j->recv = ignore;
	if (j->rank == 1)
		return;
	p = bare_peer(j, 1);
	p->addr[0] = bare_elsewhere;
	listener = bare_listen(j, p);
	if (w->sends)
		job_send(j, 1, 0, 1, 1000);
	while (j->deaths[1] == 0) {
		job_progress(j);
		if (fd < 0) {
			fd = accept(listener, NULL, NULL);
			until = nm_tcp_now() + w->hold_ms;
		}
		if (fd < 0 || nm_tcp_now() < until)
			continue;
		if (w->says_busy)
			say_busy(j, fd);
		close(fd);
		fd = -1;
	}
	close(listener);
}

static void run_wrong(struct wrong w, const char *ms)
{
	for (int i = 0; i < 2; i++) {
		w.sends = i == 1;
		run(wrong_body, &w, ms);
	}
}

TEST(who_is_cut_off_by_somebody_learns_in_the_end_that_it_is_not_the_peer)
{
	run_wrong((struct wrong){ .hold_ms = 0 }, "100");
}

TEST(who_is_cut_off_late_each_time_does_not_call_for_ever)
{
	run_wrong((struct wrong){ .hold_ms = 2 * SHORTEST_MS }, "10");
}

TEST(only_the_peer_can_say_that_it_is_busy)
{
	run_wrong((struct wrong){ .says_busy = true }, "100");
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
