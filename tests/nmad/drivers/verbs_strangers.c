/*
 * drivers/verbs: whatever comes to the clerk from outside of the job is
 * refused, by few words, and whatever comes from inside that is nonsense ends
 * that link alone. Rank 0 is besieged; rank 1 does it, by verbs and with what
 * its driver has; rank 2 is a friend.
 */
#include "job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../nmad/drivers/verbs/verbs.h"
#include "said.h"
#include "verbs_talk.h"

extern const struct nm_driver nm_driver_ibverbs;

enum {
	QKEY = 0x6e6d6962, /* as in mail.c */
	LONGEST = 1024,    /* of datagrams, over any port */
	SENDS = 16,
	COMPLAINTS = 16, /* of a process, at most */
};

static uint64_t talked[JOB_MAX]; /* packets, in this job */

/* Both do. */
static void talk(struct job *j, int peer)
{
	talked[peer] += 200;
	for (uint64_t i = 0; i < 200; i++)
		job_send(j, peer, 0, i, i);
	while (j->nfrom[peer] < talked[peer] || !job_idle(j))
		job_progress(j);
	JOB_CHECK(j, j->deaths[peer] == 0);
}

/* --- a stranger's queue pair --- */

struct stranger {
	struct verbs *v;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint32_t to;
	unsigned char memory[LONGEST];
	struct verbs_hello hello; /* right, from rank 1 to rank 0 */
};

static void ready(struct job *j, struct stranger *s)
{
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = SENDS,
						  .max_recv_wr = 1,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_UD };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = s->v->port.number,
				    .qkey = QKEY };

	s->cq = nm_verbs_lib.create_cq(s->v->port.context, SENDS, NULL, NULL,
				       0);
	JOB_CHECK(j, s->cq != NULL);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = nm_verbs_lib.create_qp(s->v->port.pd, &init);
	JOB_CHECK(j, s->qp != NULL);
	JOB_CHECK(j, nm_verbs_lib.modify_qp(s->qp, &attr,
					    IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						    IBV_QP_PORT |
						    IBV_QP_QKEY) == 0);
	attr.qp_state = IBV_QPS_RTR;
	JOB_CHECK(j, nm_verbs_lib.modify_qp(s->qp, &attr, IBV_QP_STATE) == 0);
	attr.qp_state = IBV_QPS_RTS;
	JOB_CHECK(j, nm_verbs_lib.modify_qp(s->qp, &attr,
					    IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

static void come(struct job *j, struct stranger *s)
{
	struct verbs_addr to, mine;
	struct ibv_ah_attr ah = { 0 };

	s->v = j->rail.drv;
	memcpy(&to, job_addr(0), sizeof(to));
	memcpy(&mine, job_addr(1), sizeof(mine));
	s->to = to.qpn;
	ah.dlid = to.lid;
	ah.port_num = s->v->port.number;
	ah.is_global = to.is_ethernet;
	ah.grh.dgid = to.gid;
	ah.grh.sgid_index = s->v->port.gid_index;
	ah.grh.hop_limit = 64;
	ready(j, s);
	s->mr = nm_verbs_lib.reg_mr(s->v->port.pd, s->memory, LONGEST,
				    IBV_ACCESS_LOCAL_WRITE);
	s->ah = nm_verbs_lib.create_ah(s->v->port.pd, &ah);
	JOB_CHECK(j, s->mr != NULL && s->ah != NULL);
	s->hello = (struct verbs_hello){
		.from = 1, .to = 0, .queue = mine, .clerk = mine
	};
}

static void go(struct stranger *s)
{
	nm_verbs_lib.destroy_ah(s->ah);
	nm_verbs_lib.destroy_qp(s->qp);
	nm_verbs_lib.destroy_cq(s->cq);
	nm_verbs_lib.dereg_mr(s->mr);
}

/* What is in s->memory, and wait until it has gone. */
static void say(struct job *j, struct stranger *s, size_t bytes)
{
	struct ibv_sge at = { (uintptr_t)s->memory, (uint32_t)bytes,
			      s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &at,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;
	int n;

	wr.wr.ud.ah = s->ah;
	wr.wr.ud.remote_qpn = s->to;
	wr.wr.ud.remote_qkey = QKEY;
	JOB_CHECK(j, ibv_post_send(s->qp, &wr, &bad) == 0);
	while ((n = ibv_poll_cq(s->cq, 1, &wc)) == 0)
		;
	JOB_CHECK(j, n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void say_hello(struct job *j, struct stranger *s,
		      const struct verbs_hello *h, const unsigned char *key)
{
	nm_verbs_hello_put(s->memory, h, key);
	say(j, s, VERBS_HELLO);
}

/* --- to the clerk --- */

static void garbage(struct job *j, struct stranger *s)
{
	for (int i = 0; i < 2000; i++) {
		for (unsigned k = 0; k < LONGEST; k++)
			s->memory[k] = (unsigned char)check_random();
		if (i % 2)
			memcpy(s->memory, "nmib\1", 6); /* as a hello begins */
		say(j, s, i % 3 ? VERBS_HELLO : check_random() % LONGEST);
	}
}

/* Each longer than a hello. */
static void long_ones(struct job *j, struct stranger *s)
{
	for (size_t i = 0; i < 1000; i++)
		say(j, s, LONGEST - i % 900);
}

static void wrong_key(struct job *j, struct stranger *s)
{
	unsigned char key[16] = "0123456789abcdeF";

	for (int i = 0; i < 100; i++)
		say_hello(j, s, &s->hello, key);
}

static void wrong_version(struct job *j, struct stranger *s)
{
	for (int i = 0; i < 100; i++) {
		nm_verbs_hello_put(s->memory, &s->hello, j->info.key);
		s->memory[4] = 2;
		say(j, s, VERBS_HELLO);
	}
}

static void wrong_ranks(struct job *j, struct stranger *s)
{
	for (uint32_t i = 0; i < 100; i++) {
		struct verbs_hello h = s->hello;

		h.from = i % 3 == 0 ? 0 : i % 3 == 1 ? 3 : UINT32_MAX - i;
		say_hello(j, s, &h, j->info.key);
		h.from = 1;
		h.to = 2 + i * i;
		say_hello(j, s, &h, j->info.key);
		h.to = 0;
		h.queue.mtu = i % 2 ? 0 : (uint8_t)(IBV_MTU_4096 + 1 + i);
		say_hello(j, s, &h, j->info.key);
	}
}

/* What named queue pairs that are no more, and what has been said already. */
static void replays(struct job *j, struct stranger *s)
{
	struct verbs_hello h = s->hello;

	talk(j, 0);
	for (uint32_t i = 0; i < 2000; i++) {
		h.queue.qpn = i % 2 ? s->v->peers[0].qp->qp_num : i;
		h.heard = (uint32_t)check_random();
		h.is_met = i % 3 == 0;
		say_hello(j, s, &h, j->info.key);
	}
}

static void flood(struct job *j, struct stranger *s)
{
	for (int i = 0; i < 50000; i++)
		say(j, s, i % 80);
}

struct plan {
	void (*attack)(struct job *, struct stranger *);
	bool is_known; /* rank 1 to rank 0 */
};

/* Meanwhile rank 2 comes for the first time. */
static void besieged_body(struct job *j)
{
	const struct plan *p = j->arg;
	struct stranger s = { 0 };

	j->recv = count_only;
	memset(talked, 0, sizeof(talked));
	if (j->rank == 1) {
		come(j, &s);
		p->attack(j, &s);
		go(&s);
	} else {
		talk(j, 2 - j->rank);
	}
	if (j->rank == 0 && p->is_known)
		talk(j, 1);
	job_meet(j);
	if (j->rank != 2 && !p->is_known)
		talk(j, 1 - j->rank);
	job_meet(j);
}

static void besiege(void (*attack)(struct job *, struct stranger *),
		    bool is_known, const char *line)
{
	struct plan p = { attack, is_known };
	char *said;

	job_connects_late = true;
	said_begin();
	job_run(&nm_driver_ibverbs, 3, besieged_body, &p);
	said = said_end();
	if (line == NULL)
		CHECK_STR(said, "");
	else
		CHECK(said_count(said, line) > 0);
	CHECK(said_count(said, "\n") <= COMPLAINTS);
	CHECK(said_count(said, "\n") ==
	      said_count(said, "a hello from a stranger: "));
	free(said);
}

TEST(garbage_is_refused_in_few_words)
{
	besiege(garbage, false, "not a process of a job of ours");
}

TEST(what_is_too_long_for_a_hello_keeps_nobody_out)
{
	besiege(long_ones, false, "not a process of a job of ours");
}

TEST(who_does_not_know_the_key_is_refused)
{
	besiege(wrong_key, false, "does not know this job's key");
}

TEST(another_version_is_refused)
{
	besiege(wrong_version, false, "speaks another version");
}

TEST(ranks_and_ports_that_cannot_be_are_refused)
{
	besiege(wrong_ranks, false, "says what makes no sense here");
}

TEST(what_was_said_before_changes_nothing)
{
	besiege(replays, true, NULL);
}

TEST(a_flood_keeps_nobody_out)
{
	besiege(flood, false, "not a process of a job of ours");
}

/* --- frames --- */

static unsigned char *frame;

/* `bytes` from `frame`, by rank 1's own queue pair to rank 0. */
static void send_frame(struct job *j, size_t bytes, bool immediate)
{
	struct verbs *v = j->rail.drv;
	struct verbs_peer *p = &v->peers[0];
	struct ibv_sge at = { (uintptr_t)frame, (uint32_t)bytes, v->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = nm_verbs_id(0, p->posted - 1),
				  .sg_list = &at,
				  .num_sge = bytes > 0,
				  .opcode = immediate
						    ? IBV_WR_RDMA_WRITE_WITH_IMM
						    : IBV_WR_SEND,
				  .imm_data = htobe32(77 << 5 | 3) },
			   *bad;

	JOB_CHECK(j, ibv_post_send(p->qp, &wr, &bad) == 0);
}

struct nonsense {
	const char *what;
	size_t bytes;
	struct verbs_head head;
	uint32_t body[2];
	bool immediate;
};

static const struct nonsense all[] = {
	{ .what = "nothing" },
	{ .what = "half a head", .bytes = 7 },
	{ .what = "no kind", .bytes = 8 },
	{ .what = "an unknown kind", .bytes = 8, .head.kind = 5 },
	{ .what = "another", .bytes = 100, .head.kind = 255 },
	{ .what = "too many credits",
	  .bytes = 8,
	  .head = { .kind = VERBS_CREDIT, .credits = VERBS_CREDITS + 1 } },
	{ .what = "the most credits",
	  .bytes = 8,
	  .head = { .kind = VERBS_CREDIT, .credits = 0xffff } },
	{ .what = "credits and more", .bytes = 9, .head.kind = VERBS_CREDIT },
	{ .what = "a packet of another number",
	  .bytes = 100,
	  .head = { .kind = VERBS_PACKET, .number = 7 } },
	{ .what = "a packet that is too long",
	  .bytes = VERBS_SLOT,
	  .head = { .kind = VERBS_PACKET, .number = 200 } },
	{ .what = "a piece without a head",
	  .bytes = 12,
	  .head.kind = VERBS_PIECES },
	{ .what = "an empty piece", .bytes = 16, .head.kind = VERBS_PIECES },
	{ .what = "a piece for no window",
	  .bytes = 100,
	  .head.kind = VERBS_PIECES,
	  .body = { 3, 1 } },
	{ .what = "a piece for a window that cannot be",
	  .bytes = 100,
	  .head.kind = VERBS_PIECES,
	  .body = { 0xffffffff, 0xffffffff } },
	{ .what = "the end of no window", .immediate = true },
	{ .what = "more than goodbye", .bytes = 20, .head.kind = VERBS_BYE },
};

static void attack(struct job *j, const struct nonsense *n)
{
	struct verbs *v = j->rail.drv;
	struct verbs_head head = { .kind = n->head.kind,
				   .credits = htole16(n->head.credits),
				   .number = htole32(n->head.number) };

	/* One of the frames, for good. */
	frame = v->memory +
		((size_t)v->nslots + v->free[--v->nfree]) * VERBS_SLOT;
	memset(frame, 0, VERBS_SLOT);
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + VERBS_HEAD, n->body, sizeof(n->body));
	/* Twice: that is said once. */
	send_frame(j, n->bytes, n->immediate);
	send_frame(j, n->bytes, n->immediate);
	while (j->deaths[0] == 0) {
		if (job_idle(j))
			job_send(j, 0, 0, 1, 10);
		job_progress(j);
	}
}

static void nonsense_body(struct job *j)
{
	const struct nonsense *n = j->arg;

	j->recv = count_only;
	memset(talked, 0, sizeof(talked));
	if (j->rank == 0) {
		talk(j, 1);
		talk(j, 2);
	} else {
		talk(j, 0);
	}
	leave(j);
	job_meet(j);
	if (j->rank == 1)
		attack(j, n);
	while (j->rank == 0 && j->deaths[1] == 0)
		job_progress(j);
	if (j->rank == 0)
		JOB_CHECK(j, j->errors[1] == -EPROTO);
	if (j->rank != 1)
		talk(j, 2 - j->rank);
	JOB_CHECK(j, j->rank != 0 || j->deaths[1] == 1);
}

TEST(nonsense_ends_the_link_alone)
{
	char *said;

	for (size_t i = 0; i < BASE_ARRAY_LEN(all); i++) {
		printf("# %s\n", all[i].what);
		said_begin();
		job_run(&nm_driver_ibverbs, 3, nonsense_body,
			(void *)(uintptr_t)&all[i]);
		said = said_end();
		said_times(said, "rank 1 has sent nonsense, closing\n", 1);
		if (said_count(said, "\n") > 2)
			printf("# said: %s\n", said);
		CHECK(said_count(said, "\n") <= 2); /* and rank 1's */
		free(said);
	}
}
