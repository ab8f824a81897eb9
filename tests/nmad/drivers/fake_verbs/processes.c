/*
 * Processes reach each other through the fake library, sleep, and are killed.
 */
#include "ends.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void setup(void)
{
	ends_load();
	if (fake_verbs() == NULL)
		check_skip("this is a real libibverbs");
	fake_verbs()->set("TIMEOUT_MS", "20");
}

__attribute__((constructor)) static void register_setup(void)
{
	check_fixture(setup, NULL);
}

struct child {
	pid_t pid;
	int fd;
};

struct child_arg {
	int fd;
	void (*body)(int fd);
};

static void *child_thread(void *arg)
{
	struct child_arg *c = arg;

	c->body(c->fd);
	return NULL;
}

/* In a thread of its own, where a failed check ends the process. */
static struct child child(void (*body)(int fd))
{
	struct child_arg arg = { .body = body };
	struct child c;
	pthread_t thread;
	int fds[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	fflush(stdout);
	c.pid = fork();
	if (c.pid == 0) {
		close(fds[0]);
		arg.fd = fds[1];
		pthread_create(&thread, NULL, child_thread, &arg);
		pthread_join(thread, NULL);
		_exit(0);
	}
	close(fds[1]);
	c.fd = fds[0];
	return c;
}

static void reap(struct child *c, int want)
{
	int status;

	close(c->fd);
	CHECK_INT(waitpid(c->pid, &status, 0), c->pid);
	CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
		  want);
}

static void tell(int fd)
{
	CHECK_INT(write(fd, "", 1), 1);
}

static void await(int fd)
{
	char c;

	CHECK_INT(read(fd, &c, 1), 1);
}

/* Both ends of the socket do this; their queue pairs are connected then. */
static struct ends_address meet(struct end *e, int fd)
{
	struct ends_address mine, theirs;

	end_make(e, IBV_QPT_RC);
	mine = end_address(e);
	CHECK_INT(write(fd, &mine, sizeof(mine)), sizeof(mine));
	CHECK_INT(read(fd, &theirs, sizeof(theirs)), sizeof(theirs));
	CHECK_INT(end_connect(e, &theirs), 0);
	tell(fd);
	await(fd);
	return theirs;
}

/* Numbered messages both ways, as many as receives and places allow. */
struct flow {
	struct end e;
	unsigned sent, acked, got, want;
};

enum { SENDS_AT = 32768 };

static uint32_t *number_at(struct flow *f, size_t offset)
{
	return (uint32_t *)(void *)(f->e.buffer + offset);
}

static void flow_open(struct flow *f, int fd, int device, unsigned want)
{
	end_open(&f->e, device);
	meet(&f->e, fd);
	f->want = want;
	for (unsigned i = 0; i < ENDS_WR; i++)
		CHECK_INT(end_recv(&f->e, i, i * 64, 64), 0);
}

static bool flow_is_over(const struct flow *f)
{
	return f->acked == f->want && f->got == f->want;
}

static void flow_step(struct flow *f)
{
	struct ibv_wc wc[8];
	size_t at;
	int n;

	while (f->sent < f->want && f->sent - f->acked < ENDS_WR) {
		at = SENDS_AT + f->sent % ENDS_WR * 64;
		*number_at(f, at) = f->sent++;
		CHECK_INT(end_send(&f->e, 0, at, 8, IBV_SEND_SIGNALED), 0);
	}
	n = ibv_poll_cq(f->e.scq, 8, wc);
	for (int i = 0; i < n; i++, f->acked++)
		CHECK_INT(wc[i].status, IBV_WC_SUCCESS);
	n = ibv_poll_cq(f->e.rcq, 8, wc);
	for (int i = 0; i < n; i++, f->got++) {
		CHECK_INT(wc[i].status, IBV_WC_SUCCESS);
		CHECK_INT(*number_at(f, wc[i].wr_id * 64), f->got);
		CHECK_INT(end_recv(&f->e, wc[i].wr_id, wc[i].wr_id * 64, 64),
			  0);
	}
	if (n == 0)
		sched_yield();
}

enum { MANY = 1000 };

static void flow_body(int fd)
{
	struct flow f = { 0 };

	flow_open(&f, fd, 1, MANY);
	while (!flow_is_over(&f))
		flow_step(&f);
	await(fd);
	end_close(&f.e);
}

TEST(processes_exchange_many_messages)
{
	struct child c[2] = { child(flow_body), child(flow_body) };
	struct flow f[2] = { 0 };

	for (int i = 0; i < 2; i++)
		flow_open(&f[i], c[i].fd, 0, MANY);
	while (!flow_is_over(&f[0]) || !flow_is_over(&f[1])) {
		flow_step(&f[0]);
		flow_step(&f[1]);
	}
	for (int i = 0; i < 2; i++) {
		tell(c[i].fd);
		end_close(&f[i].e);
		reap(&c[i], 0);
	}
}

/* Sleeps for each message, and answers. */
static void sleeper(int fd)
{
	struct end e = { 0 };
	struct ibv_cq *cq;
	void *context;

	end_open(&e, 1);
	meet(&e, fd);
	for (unsigned i = 0; i < 200; i++) {
		CHECK_INT(ibv_req_notify_cq(e.rcq, 0), 0);
		CHECK_INT(end_recv(&e, i, 0, 64), 0);
		CHECK_INT(V.get_cq_event(e.channel, &cq, &context), 0);
		V.ack_cq_events(cq, 1);
		ends_expect(e.rcq, i, IBV_WC_SUCCESS);
		CHECK_INT(end_send(&e, i, 0, 8, IBV_SEND_SIGNALED), 0);
		ends_expect(e.scq, i, IBV_WC_SUCCESS);
	}
	await(fd);
	end_close(&e);
}

TEST(processes_that_sleep_wake_each_other)
{
	struct child c = child(sleeper);
	struct end e = { 0 };
	struct ibv_cq *cq;
	void *context;

	end_open(&e, 0);
	meet(&e, c.fd);
	for (unsigned i = 0; i < 200; i++) {
		CHECK_INT(ibv_req_notify_cq(e.rcq, 0), 0);
		CHECK_INT(end_recv(&e, i, 0, 64), 0);
		CHECK_INT(end_send(&e, i, 0, 8, IBV_SEND_SIGNALED), 0);
		ends_expect(e.scq, i, IBV_WC_SUCCESS);
		CHECK_INT(V.get_cq_event(e.channel, &cq, &context), 0);
		V.ack_cq_events(cq, 1);
		ends_expect(e.rcq, i, IBV_WC_SUCCESS);
	}
	tell(c.fd);
	reap(&c, 0);
	end_close(&e);
}

/* --- death --- */

static void endless(int fd)
{
	struct flow f = { 0 };

	flow_open(&f, fd, 1, UINT32_MAX);
	for (;;)
		flow_step(&f);
}

/* Whether its bytes move or it has none, what goes to a dead process fails. */
TEST(the_dead_do_not_answer)
{
	for (unsigned bytes = 0; bytes <= 8; bytes += 8) {
		struct child c = child(endless);
		struct end e = { 0 };
		uint64_t n = 0;
		struct ibv_wc wc;

		end_open(&e, 0);
		meet(&e, c.fd);
		for (unsigned i = 0; i < ENDS_WR; i++)
			CHECK_INT(end_recv(&e, i, 64, 64), 0);
		for (unsigned i = 0; i < ENDS_WR; i++)
			ends_expect(e.rcq, i, IBV_WC_SUCCESS);
		/* A zombie is dead as well: it is reaped later. */
		CHECK_INT(kill(c.pid, SIGKILL), 0);
		CHECK_INT(waitid(P_PID, (id_t)c.pid, &(siginfo_t){ 0 },
				 WEXITED | WNOWAIT),
			  0);
		do {
			CHECK_INT(end_send(&e, n, 0, bytes, IBV_SEND_SIGNALED),
				  0);
			wc = ends_wait(e.scq);
			CHECK_INT(wc.wr_id, n++);
		} while (wc.status == IBV_WC_SUCCESS);
		CHECK_INT(wc.status, IBV_WC_RETRY_EXC_ERR);
		CHECK_INT(n, 1);
		reap(&c, -SIGKILL);
		end_close(&e);
	}
}

/* Killed wherever it is, it leaves no lock that somebody waits for. */
TEST(the_dead_hold_up_nobody)
{
	for (int i = 0; i < 20; i++) {
		struct child c = child(endless);
		struct flow f = { 0 };

		flow_open(&f, c.fd, 0, UINT32_MAX);
		for (int n = 0; n < 5 + i * 2; n++)
			flow_step(&f);
		CHECK_INT(kill(c.pid, SIGKILL), 0);
		reap(&c, -SIGKILL);
		end_close(&f.e);
	}
}

/* That of a job of this session. */
static bool has_file(const char *job)
{
	char path[80];

	snprintf(path, sizeof(path), "/dev/shm/fake_verbs2.%u.%d.%s",
		 (unsigned)getuid(), (int)getsid(0), job);
	return access(path, F_OK) == 0;
}

static void abandoned(int fd)
{
	struct end e = { 0 };

	setenv("FAKE_VERBS_JOB", "abandoned", 1);
	end_open(&e, 0);
	tell(fd);
	await(fd);
}

TEST(what_a_killed_job_has_left_is_removed_by_the_next_one)
{
	struct child c = child(abandoned);
	struct end e = { 0 };

	await(c.fd);
	CHECK(has_file("abandoned"));
	CHECK_INT(kill(c.pid, SIGKILL), 0);
	reap(&c, -SIGKILL);
	/* That may be another test's, just looking whether all are dead. */
	do {
		end_open(&e, 0);
		end_close(&e);
	} while (has_file("abandoned"));
}

/* --- memory that comes and goes --- */

enum { ROUNDS = 40 };

/* Registers, lets the other write, takes it back: then nothing changes. */
static void landlord(int fd)
{
	struct end e = { 0 };
	unsigned char *copy = malloc(65536);
	struct ibv_mr *mr;

	end_open(&e, 1);
	meet(&e, fd);
	for (int i = 0; i < ROUNDS; i++) {
		memset(e.buffer, 0xff, 65536);
		mr = V.reg_mr(e.pd, e.buffer, 65536,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK_INT(write(fd, &mr->rkey, 4), 4);
		await(fd);
		CHECK_INT(V.dereg_mr(mr), 0);
		memcpy(copy, e.buffer, 65536);
		sched_yield();
		CHECK(memcmp(copy, e.buffer, 65536) == 0);
		/* The other's queue pair has failed, and so has this. */
		CHECK_INT(V.destroy_qp(e.qp), 0);
		meet(&e, fd);
	}
	free(copy);
	end_close(&e);
}

TEST(nobody_writes_where_a_key_has_been_taken_back)
{
	struct child c = child(landlord);
	struct ends_address at;
	struct end e = { 0 };
	struct ibv_wc wc;
	uint32_t key;

	end_open(&e, 0);
	at = meet(&e, c.fd);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(read(c.fd, &key, 4), 4);
		for (unsigned n = 0;; n++) {
			if (n == 3)
				tell(c.fd);
			memset(e.buffer, (int)n, 65536);
			CHECK_INT(end_rdma(&e, n, IBV_WR_RDMA_WRITE, 0, 65536,
					   at.buffer, key),
				  0);
			wc = ends_wait(e.scq);
			if (wc.status != IBV_WC_SUCCESS)
				break;
		}
		CHECK(wc.status == IBV_WC_REM_ACCESS_ERR ||
		      wc.status == IBV_WC_RETRY_EXC_ERR);
		CHECK_INT(V.destroy_qp(e.qp), 0);
		at = meet(&e, c.fd);
	}
	end_close(&e);
	reap(&c, 0);
}
