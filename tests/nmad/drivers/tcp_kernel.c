/*
 * drivers/tcp: what it hands to the kernel. The calls that send are replaced by
 * ones that look at the frames and, if asked to, take only a part.
 */
#include "job.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../nmad/drivers/tcp/tcp.h"

extern const struct nm_driver nm_driver_tcp;

enum { IOVS = 64, LARGE = 6 << 20 };

/* The frames of this process, once `on`: there is one connection. */
static struct {
	bool on;
	int fd;         /* a hello is not sent by sendmsg() */
	size_t at_most; /* a call takes 1 to so many bytes; 0: any number */
	uint64_t random;
	unsigned char head[TCP_HEAD];
	unsigned have; /* bytes of head */
	size_t left;   /* bytes of the body that have not been seen */
	unsigned frames, last_packet;
	size_t longest; /* piece */
	size_t offered; /* to one call, at most */
} seen;

static void see_frame(void)
{
	struct tcp_head h;

	nm_tcp_head_get(seen.head, &h);
	seen.have = 0;
	seen.left = h.length;
	seen.frames++;
	if (h.kind == TCP_PACKET)
		seen.last_packet = seen.frames;
	else if (h.length > seen.longest)
		seen.longest = h.length;
}

static void see(const unsigned char *p, size_t n)
{
	while (seen.on && n > 0) {
		size_t skip = n < seen.left ? n : seen.left;

		p += skip;
		n -= skip;
		seen.left -= skip;
		if (seen.left > 0 || n == 0)
			return;
		seen.head[seen.have++] = *p++;
		n--;
		if (seen.have == TCP_HEAD)
			see_frame();
	}
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	ssize_t rc = syscall(SYS_sendto, fd, buf, n, flags, NULL, 0);

	if (rc > 0 && fd == seen.fd)
		see(buf, (size_t)rc);
	return rc;
}

static size_t how_much(void)
{
	seen.random = seen.random * 6364136223846793005u + 1442695040888963407u;
	return seen.at_most > 0 ? 1 + (seen.random >> 33) % seen.at_most
				: SIZE_MAX;
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t room = how_much(), offered = 0, left;
	struct iovec iov[IOVS];
	struct msghdr part = *msg;
	ssize_t rc;

	part.msg_iov = iov;
	part.msg_iovlen = 0;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		iov[i] = msg->msg_iov[i];
		offered += iov[i].iov_len;
		if (iov[i].iov_len > room)
			iov[i].iov_len = room;
		room -= iov[i].iov_len;
		part.msg_iovlen += iov[i].iov_len > 0;
	}
	rc = syscall(SYS_sendmsg, fd, &part, flags);
	seen.fd = fd;
	left = rc > 0 ? (size_t)rc : 0;
	for (size_t i = 0; left > 0; i++) {
		size_t n = iov[i].iov_len < left ? iov[i].iov_len : left;

		see(iov[i].iov_base, n);
		left -= n;
	}
	if (seen.on && offered > seen.offered)
		seen.offered = offered;
	return rc;
}

static void verify(struct job *j, int from, const struct job_msg *m,
		   struct nm_pkt_in *in)
{
	JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
}

/* Both have a connection, and nothing is on its way. */
static void get_ready(struct job *j, size_t at_most)
{
	memset(&seen, 0, sizeof(seen));
	j->recv = verify;
	job_send(j, 1 - j->rank, 0, 1, 100);
	while (j->ngot < 1 || !job_idle(j))
		job_progress(j);
	job_meet(j);
	seen.on = true;
	seen.at_most = at_most;
	seen.random = check_random();
}

/* A small one, which may have to wait for the piece that has begun only. */
static void overtake(struct job *j)
{
	/* That piece may be chosen, and not a byte of it sent. */
	unsigned allowed = seen.frames + 2;

	job_send(j, 1, 0, seen.frames, 200);
	while (!job_idle(j))
		job_progress(j);
	JOB_CHECK(j, seen.last_packet <= allowed);
}

static void transfer(struct job *j, size_t bytes, bool overtaken)
{
	unsigned char *data = malloc(bytes);
	struct nm_data d = nm_data_flat(data, bytes);
	struct job_large l;

	if (j->rank == 0) {
		job_pattern(bytes, data, bytes);
		job_large_send(j, 1, &l, d, 0, bytes);
	} else {
		job_large_recv(j, 0, &l, d, 0, bytes);
	}
	while (l.status == -EINPROGRESS) {
		job_progress(j);
		if (j->rank == 0 && overtaken && seen.longest > 0)
			overtake(j);
	}
	JOB_CHECK(j, l.status == 0);
	JOB_CHECK(j, seen.longest <= TCP_PIECE);
	if (j->rank == 1)
		JOB_CHECK(j, job_is_pattern(bytes, data, bytes));
	free(data);
}

static void pace_body(struct job *j)
{
	char name[16] = "";
	socklen_t length = sizeof(name);

	get_ready(j, 0);
	JOB_CHECK(j, getsockopt(seen.fd, IPPROTO_TCP, TCP_CONGESTION, name,
				&length) == 0);
	JOB_CHECK(j, strcmp(name, "reno") == 0);
}

TEST(neither_end_of_a_connection_within_the_host_is_paced)
{
	job_run(&nm_driver_tcp, 2, pace_body, NULL);
}

static void train_body(struct job *j)
{
	get_ready(j, 0);
	transfer(j, LARGE, false);
	if (j->rank == 0)
		JOB_CHECK(j, seen.offered >= 1 << 20);
}

TEST(a_megabyte_is_offered_in_one_call_if_nothing_else_waits)
{
	job_run(&nm_driver_tcp, 2, train_body, NULL);
}

static void cut_body(struct job *j)
{
	get_ready(j, *(size_t *)j->arg);
	transfer(j, LARGE, true);
}

TEST(a_packet_goes_before_the_next_piece_wherever_a_call_stopped)
{
	static size_t at_most[] = { 70000, 300000, 1 << 20 };

	for (int i = 0; i < 3; i++)
		job_run(&nm_driver_tcp, 2, cut_body, &at_most[i]);
}
