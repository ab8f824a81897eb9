/*
 * Devices and queue pairs for tests of verbs themselves, on whatever libibverbs
 * the loader finds: this one, or the real one with two devices.
 */
#ifndef FAKE_VERBS_ENDS_H
#define FAKE_VERBS_ENDS_H

#include "../../../check.h"
#include "fake_verbs.h"

#define V nm_verbs_lib

enum { ENDS_WR = 16, ENDS_CQE = 64, ENDS_BYTES = 1 << 18 };

struct ends_address {
	uint32_t qpn, psn, rkey;
	uint16_t lid;
	union ibv_gid gid;
	uint64_t buffer;
};

/* A device that is open, with one queue pair and memory for it. */
struct end {
	struct ibv_context *context;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq; /* of sends and of receives, on the channel */
	struct ibv_srq *srq;      /* NULL: the queue pair has its own */
	struct ibv_qp *qp;
	unsigned char *buffer;
	struct ibv_mr *mr;
	int rnr_retry;
	uint32_t sends; /* its max_send_wr */
};

/* Open the library, or skip the test. */
void ends_load(void);

/* The n-th device, or the last one, with all but a queue pair. */
void end_open(struct end *e, int n);
void end_close(struct end *e);
/* Its queue pair, in state RESET. */
void end_make(struct end *e, enum ibv_qp_type type);
struct ends_address end_address(const struct end *e);
/* 0, or what modify_qp() has answered at the step that failed. */
int end_connect(struct end *e, const struct ends_address *to);
void end_datagrams(struct end *e, uint32_t qkey);
struct ibv_ah *end_ah(struct end *e, const struct ends_address *to);

/* Two of them, connected. */
void ends_open(struct end *a, struct end *b);
void ends_close(struct end *a, struct end *b);

/* A work request of the buffer at `offset`. Answers what the post does. */
int end_recv(struct end *e, uint64_t id, size_t offset, uint32_t bytes);
int end_send(struct end *e, uint64_t id, size_t offset, uint32_t bytes,
	     unsigned flags);
int end_rdma(struct end *e, uint64_t id, enum ibv_wr_opcode opcode,
	     size_t offset, uint32_t bytes, uint64_t remote, uint32_t rkey);

/* Wait for a completion. */
struct ibv_wc ends_wait(struct ibv_cq *cq);
/* Wait for it, with this status. */
struct ibv_wc ends_expect(struct ibv_cq *cq, uint64_t id,
			  enum ibv_wc_status status);
bool ends_empty(struct ibv_cq *cq);

/* Bytes that belong to a number. */
void ends_fill(unsigned char *p, size_t bytes, unsigned number);
bool ends_is_filled(const unsigned char *p, size_t bytes, unsigned number);

#endif
