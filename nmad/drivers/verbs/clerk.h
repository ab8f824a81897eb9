/*
 * The clerk's own structures; what it is for: clerk.c. Once its thread runs,
 * only that calls what is here.
 */
#ifndef NMAD_DRIVERS_VERBS_CLERK_H
#define NMAD_DRIVERS_VERBS_CLERK_H

#include <time.h>

#include "verbs.h"

/* --- queue.c: the queue pair of a link --- */

/* It can neither send nor receive yet. 0 or -errno. */
int nm_verbs_queue_make(struct verbs *v, struct ibv_qp **qp);
/*
 * Now it can, to and from the peer's. `psn`: the number of our first packet;
 * `mtu`: what our port can. 0 or -errno.
 */
int nm_verbs_queue_connect(struct verbs *v, struct ibv_qp *qp, uint32_t psn,
			   uint8_t mtu, const struct verbs_addr *peer);
/* The way to where `to` says. */
struct ibv_ah_attr nm_verbs_way(const struct verbs *v,
				const struct verbs_addr *to);

/* --- mail.c: datagrams, each a hello --- */

struct verbs_mail {
	struct verbs *v;
	struct ibv_comp_channel *channel; /* readable: something has come */
	struct ibv_cq *came, *gone;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char *memory; /* places of what comes, then of what leaves */
	unsigned nsent, ngone; /* posted; of these known to have left */
};

/* 0 or -errno; to be closed in any case. */
int nm_verbs_mail_open(struct verbs_mail *m, struct verbs *v);
void nm_verbs_mail_close(struct verbs_mail *m);
/* The place for the next; NULL: too many have not left yet. */
unsigned char *nm_verbs_mail_place(struct verbs_mail *m);
/* What stands there, to that queue pair. It may get lost. */
void nm_verbs_mail_send(struct verbs_mail *m, struct ibv_ah *ah, uint32_t qpn);
/* All have left. False: not soon enough. */
bool nm_verbs_mail_leaves(struct verbs_mail *m);
/* From now on the channel tells of what comes. */
void nm_verbs_mail_arm(struct verbs_mail *m);
/* What has come, and how many bytes of it; false: no more. */
bool nm_verbs_mail_take(struct verbs_mail *m,
			unsigned char to[static VERBS_HELLO], size_t *bytes);

/* --- call.c: from the first hello until both know that both know --- */

enum call_state { CALL_NONE, CALL_HELLO, CALL_KNOWN, CALL_MET, CALL_OVER };

/* A peer, as the clerk sees it. */
struct call {
	enum call_state state;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* of the peer's clerk */
	struct verbs_addr to;
	struct verbs_addr queue; /* the peer's */
	uint32_t psn;
	uint64_t due, give_up; /* ms */
	unsigned wait;         /* ms */
	int no_way;            /* an errno: what keeps it from answering */
	struct base_link on;   /* clerk->saying */
	struct verbs_order known, met;
};

/* The owner wants the peer. */
void nm_verbs_call(struct verbs_clerk *c, const struct verbs_order *o);
/* What has come. */
void nm_verbs_calls_hear(struct verbs_clerk *c);
/* Say again what is due; *next: when something is. ms */
void nm_verbs_calls_go_on(struct verbs_clerk *c, uint64_t now, uint64_t *next);
/* The queue pair is no more. */
void nm_verbs_call_end(struct verbs_clerk *c, struct call *k);

/* --- clerk.c --- */

struct verbs_clerk {
	/* -: const once started  c: the clerk's  a: atomic */
	struct verbs *v;                      /* -: */
	struct verbs_addr mine;               /* -: */
	unsigned char key[NM_BOOT_KEY_BYTES]; /* -: */
	pthread_t thread;                     /* -: */
	bool runs;                            /* -: */
	struct verbs_bell bell;               /* a: */
	struct base_mpsc orders;              /* a: order(mpsc) */
	ATOMIC(bool) ends;                    /* a: relaxed; then rung */
	struct verbs_mail mail;               /* c: */
	struct call *calls;                   /* c: by rank */
	struct base_list saying;              /* c: calls that go on */
	unsigned nmet;                        /* c: */
	unsigned complaints;                  /* c: */
	uint64_t next_tick;                   /* c: ms; 0: none */
	uint64_t down_since;                  /* c: ms; 0: the port is up */
};

/* To the owner. */
void nm_verbs_tell(struct verbs_clerk *c, struct verbs_order *o,
		   enum verbs_order_kind kind);

static inline uint64_t verbs_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

static inline uint64_t verbs_dead_ms(void)
{
	return 1000 * (uint64_t)nm_verbs_options[VERBS_OPT_DEAD].value;
}

#endif
