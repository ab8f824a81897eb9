/*
 * The tcp driver's structures.
 *
 * One connection per link, opened by whoever sends first. It carries frames,
 * each a head of 16 bytes and a body:
 *
 *   PACKET  a small packet
 *   PIECE   at most 64 KiB of a large transfer, for a window that the receiver
 *           has opened; small packets pass between the pieces
 *   BYE     what follows is no death
 *
 *   head    length 4 | kind 1 | 0 3 | window 4 | generation 4, little-endian
 *
 * Files: where.c (addresses), hello.c (who may speak to us), alarm.c (when
 * something is due), conn.c (who connects to whom), spare.c (no descriptor for
 * who calls), alive.c (who still lives), send.c, recv.c, tcp.c (the driver).
 *
 * The rail's owner calls everything here; what others touch is marked.
 */
#ifndef NMAD_DRIVERS_TCP_TCP_H
#define NMAD_DRIVERS_TCP_TCP_H

#include <netinet/in.h>
#include <sys/uio.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/host.h>
#include <base/list.h>
#include <base/mpsc.h>
#include <base/option.h>

#include "../../boot/boot.h"
#include "../../core/rail.h"

enum {
	TCP_MAX_SMALL = 65536 + 256, /* a message, and headers before it */
	TCP_HEAD = 16,
	TCP_TOKEN = TCP_HEAD + 8, /* a window: generation, and its length */
	TCP_PIECE = 65536,
	TCP_BLOCK = 131072 - 256, /* received bytes; holds the largest frame */
	TCP_PACKETS = 1024,       /* small packets that the core may hold */
	TCP_BLOCKS = 16,          /* and blocks, beside one for each peer */
	TCP_WINDOWS = 32,         /* large receives open on one link */
	TCP_HANDS = 32,           /* connections not yet known to be ours */
	TCP_ADDRS = 10,
	TCP_COPY = 1024, /* packets up to this are sent from one buffer */
};

enum tcp_kind {
	TCP_PACKET = 1,
	TCP_PIECES,
	TCP_BYE,
};

struct tcp_head {
	uint32_t length;
	uint32_t window, generation;
	uint8_t kind;
};

/* The rail's address: where.c. The port as in sockaddr_in. */
enum { TCP_ADDR_VERSION = 2 };

struct tcp_addr {
	char host[BASE_HOST_ID]; /* the same text: the same kernel */
	uint64_t netns[2];       /* device and inode */
	uint16_t version, port, naddrs, spare;
	struct in6_addr here; /* for who shares host and netns, or :: */
	struct in6_addr addr[TCP_ADDRS]; /* for the others */
};

_Static_assert(sizeof(struct tcp_addr) <= NM_ADDR_MAX, "address");

/* --- hello.c --- */

enum { TCP_HELLO = 48, TCP_NONCE = 16, TCP_VERSION = 2 };

/*
 * A message of the hello, four in all:
 *
 *   connector  CALL    nonce ------------->   acceptor
 *              <------ nonce, proof   ASK
 *              PROOF   proof ------------->   decides
 *              <------ proof      VERDICT
 *
 * A proof is the keyed hash of kind, verdict, ranks and both nonces. An
 * acceptor without a descriptor to hear anybody says BUSY at once, to whom it
 * may concern, and that is all: spare.c.
 */
enum tcp_hello_kind {
	TCP_CALL = 1,
	TCP_ASK,
	TCP_PROOF,
	TCP_VERDICT,
	TCP_BUSY,
};

struct tcp_hello {
	uint16_t kind;
	uint32_t from, to; /* ranks */
	unsigned char nonce[TCP_NONCE];
	uint32_t accept; /* VERDICT */
	uint64_t proof;
};

/* Both ends of a hello as far as it is known. */
struct tcp_greeting {
	uint32_t caller, callee;
	unsigned char caller_nonce[TCP_NONCE], callee_nonce[TCP_NONCE];
};

uint64_t nm_tcp_hello_proof(const unsigned char key[static 16],
			    const struct tcp_greeting *g, unsigned kind,
			    unsigned accept);
void nm_tcp_hello_put(unsigned char to[static TCP_HELLO],
		      const struct tcp_hello *h);
/* NULL, or what is wrong with it. */
const char *nm_tcp_hello_get(const unsigned char from[static TCP_HELLO],
			     struct tcp_hello *h);

/* --- what epoll points to --- */

enum tcp_what { TCP_LISTENER, TCP_HAND, TCP_CONN, TCP_ALARM };

struct tcp_sock {
	enum tcp_what what;
	int fd; /* or -1 */
};

/* A connection during its hello. */
struct tcp_hand {
	struct tcp_sock sock;
	struct tcp_peer *peer; /* whom we call; NULL: we were called */
	struct tcp_greeting g;
	unsigned state;    /* enum tcp_hello_kind that is awaited, or
			    * TCP_CALL: that must be sent (peer) */
	uint64_t deadline; /* ms: it is cut off; a call of ours: looked at */
	unsigned have;     /* bytes of the awaited message */
	unsigned char in[TCP_HELLO];
};

/* Memory that sockets are read into, shared by the packets in it. */
struct tcp_block {
	ATOMIC(uint32_t)
	refs;                       /* a: the conn that reads into it and each
				     * packet; order(tcp-block) */
	struct base_mpsc_node free; /* order(mpsc) */
	unsigned char data[TCP_BLOCK] BASE_ALIGNED(BASE_CACHE_LINE);
};

struct tcp_pkt {
	struct nm_pkt_in in;        /* in.drv: its block */
	struct base_mpsc_node free; /* order(mpsc) */
};

/* A large transfer that we receive. */
struct tcp_window {
	struct nm_xfer *x; /* or NULL: free */
	uint32_t generation;
	size_t got;
};

/* nm_xfer.drv */
struct tcp_x {
	struct base_link link; /* on peer->sending or peer->waiting */
	size_t sent;           /* bytes in frames that are begun */
	size_t length;
	uint32_t window, generation;
} BASE_MAY_ALIAS;

/* The frame that is being sent. */
struct tcp_out {
	unsigned kind; /* enum tcp_kind; 0: none */
	unsigned char head[TCP_HEAD];
	size_t done, total; /* bytes of head and body */
	struct nm_xfer *x;  /* of PIECES */
	size_t at;          /* offset of the piece in x */
};

enum tcp_state {
	TCP_COLD,    /* no connection yet */
	TCP_CALLING, /* ours is in its hello */
	TCP_YIELDED, /* the peer will have no connection but its own */
	TCP_OPEN,
	TCP_LEFT,   /* the peer has said goodbye */
	TCP_CLOSED, /* by us, or dead */
};

/* A peer: link->conn. */
struct tcp_peer {
	struct tcp_sock sock; /* of the open connection */
	struct nm_link *link;
	enum tcp_state state;
	struct tcp_hand hand; /* our call */
	unsigned naddrs, next_addr, busy_addr;
	in_port_t port;
	struct in6_addr addr[TCP_ADDRS];
	bool asks;                /* the launcher for its address */
	bool was_busy;            /* perhaps, at busy_addr or later */
	uint64_t called;          /* ms: when our last call began */
	uint64_t began;           /* ms: when the last round of calls did */
	uint64_t give_up;         /* ms: from when on none does; YIELDED: until
				   * when we wait for the peer's */
	unsigned lates;           /* calls that were cut off late */
	uint64_t retry;           /* ms: COLD: when to call again; 0: never */
	uint64_t silent;          /* ms: when to call if it has not called */
	unsigned doubts;          /* looks in a row that it did not answer */
	struct base_link on_call; /* on tcp->calling, or tcp->silents */
	struct base_link on_used; /* on tcp->used */

	/* sending */
	struct tcp_out out;
	struct nm_pkt *pkt;       /* posted, not begun */
	struct nm_pkt *pkt_out;   /* in `out` */
	struct base_list sending; /* transfers, struct tcp_x */
	bool blocked;             /* the socket takes no more now */
	bool broken;              /* nor ever */
	bool ended;               /* its end has been told: read up to it */
	struct base_link on_send; /* on tcp->sending */

	/* receiving */
	struct tcp_block *block; /* or NULL */
	uint32_t parse, fill;    /* of block: bytes not yet understood */
	struct tcp_window window[TCP_WINDOWS];
	unsigned nwindows;
	struct base_list waiting; /* for a window */
	struct tcp_window *piece; /* the body that comes, or NULL */
	size_t piece_left;
	struct base_link on_read; /* on tcp->reading */
};

/* An instance: rail->drv. */
struct tcp {
	/* -: const once open  o: the rail's owner  a: atomic */
	struct nm_rail *rail;            /* -: */
	const struct nm_boot_info *info; /* -: */
	struct tcp_addr mine;            /* -: rail->addr */
	unsigned char net[TCP_ADDRS];    /* -: bits of mine.addr[]'s; or 0 */
	bool named;                      /* -: we call from mine.addr[0] */
	uint32_t scope;                  /* -: its interface, if named */
	int epoll;                       /* -: rail->fd */
	struct tcp_sock listener;        /* -: */
	struct tcp_sock alarm;           /* -: a timer, for deadlines */
	uint64_t alarm_at;               /* o: ms; 0: not set */
	uint64_t deaf_until;             /* o: ms; 0: who calls is heard */
	int spare;          /* o: a descriptor for who calls in vain; or -1 */
	int lacks;          /* o: errno: why even that fails; or 0 */
	bool was_short;     /* o: of descriptors, and has said so */
	uint64_t next_look; /* o: ms: at who may be dead; 0 */
	uint64_t looked;    /* o: ms: the last one */
	struct tcp_peer *peers;           /* o: by rank; zero: never used */
	struct base_list used;            /* o: those that are */
	struct base_list reading;         /* o: peers with bytes to read */
	struct base_list sending;         /* o: peers with frames to send */
	struct tcp_peer *only;            /* o: the connection, if one */
	struct base_list calling;         /* o: peers without a connection */
	struct base_list silents;         /* o: which are not called yet */
	unsigned nopen, nhands;           /* o: connections; hands in use */
	unsigned npolls;                  /* o: */
	struct tcp_hand hands[TCP_HANDS]; /* o: we were called */
	unsigned complaints;              /* o: */

	struct tcp_pkt *packets;            /* -: */
	struct base_mpsc_node *stack;       /* o: free packets */
	struct base_mpsc released;          /* a: free packets; order(mpsc) */
	struct tcp_block *blocks;           /* -: nblocks of them */
	unsigned nblocks;                   /* -: */
	unsigned nfresh;                    /* o: the first never taken */
	struct base_mpsc_node *block_stack; /* o: free blocks */
	struct base_mpsc blocks_released;   /* a: free blocks; order(mpsc) */
	struct tcp *next;                   /* of all instances, for fork */
};

enum {
	TCP_OPT_IFACE,
	TCP_OPT_TIMEOUT,
	TCP_OPT_DEAD,
	TCP_OPT_BUFFER,
	TCP_NOPTS
};
extern struct base_option nm_tcp_options[TCP_NOPTS];

static inline struct tcp_x *nm_tcp_x(struct nm_xfer *x)
{
	return (struct tcp_x *)(void *)x->drv;
}

static inline struct nm_xfer *nm_tcp_xfer(struct tcp_x *tx)
{
	return container_of((void *)tx, struct nm_xfer, drv);
}

/* Pieces of memory for one system call. */
struct tcp_pieces {
	struct iovec iov[64];
	unsigned n;
	size_t bytes;
};

/* An nm_piece_fn: append; stops when one entry is left. */
int nm_tcp_gather(void *pieces, void *piece, size_t bytes);

/*
 * It has stopped so early that the pieces are small: each costs the kernel more
 * than a copy costs us, and there would be a system call for every few.
 */
bool nm_tcp_is_scattered(const struct tcp_pieces *g);

/* --- where.c --- */

/*
 * Make the listener, at this interface or address or (NULL) as NMAD_TCP_IFACE
 * says, and fill tcp->mine. 0 or -errno, explained.
 */
int nm_tcp_listen(struct tcp *tcp, const char *name);
/*
 * Where others can call: IPv4 before IPv6, which has half of the room if there
 * are many of both.
 */
struct ifaddrs;
void nm_tcp_fill_all(struct tcp_addr *a, const struct ifaddrs *all);
/* How large their networks are: tcp->net. */
void nm_tcp_fill_nets(struct tcp *tcp, const struct ifaddrs *all);
/* Where the peer may be reached, by its address. -EHOSTUNREACH: nowhere. */
int nm_tcp_know(struct tcp *tcp, struct tcp_peer *p, const void *addr,
		size_t len);
/* Who has a named address calls from there. 0 or -errno. */
int nm_tcp_bind_call(const struct tcp *tcp, int fd);

socklen_t nm_tcp_sockaddr(struct sockaddr_storage *to, const struct in6_addr *a,
			  in_port_t port, uint32_t scope);
bool nm_tcp_is_loopback(const struct sockaddr_storage *s);

struct tcp_text {
	char text[INET6_ADDRSTRLEN];
};
const char *nm_tcp_text(const struct in6_addr *a, struct tcp_text *to);

/* --- alarm.c --- */

uint64_t nm_tcp_now(void); /* ms */
int nm_tcp_alarm_make(struct tcp *tcp);
/* There is something for nm_tcp_deadlines() at this time. */
void nm_tcp_alarm_by(struct tcp *tcp, uint64_t ms);
/* It has fired: all say anew when there is something. */
void nm_tcp_alarm_clear(struct tcp *tcp);

/* --- conn.c --- */

/* The peer, made at its first use: tcp.c. */
struct tcp_peer *nm_tcp_peer(struct tcp *tcp, uint32_t rank);

/* Begin to connect if nobody has. */
void nm_tcp_call(struct tcp *tcp, struct tcp_peer *p);
void nm_tcp_await(struct tcp *tcp, struct tcp_peer *p);
void nm_tcp_accept(struct tcp *tcp);
/* Its socket can do something. */
void nm_tcp_hand_go_on(struct tcp *tcp, struct tcp_hand *h);
void nm_tcp_hand_drop(struct tcp *tcp, struct tcp_hand *h);
/*
 * Hellos that have not succeeded in time; calls to be made, or heard, again.
 * Whatever had come by `now` has been taken up.
 */
void nm_tcp_deadlines(struct tcp *tcp, uint64_t now);
/* Close the connection, let go of everything; nothing is reported. */
void nm_tcp_hang_up(struct tcp *tcp, struct tcp_peer *p);
/* Hang up, and tell the core unless the peer has said goodbye. */
void nm_tcp_dead(struct tcp *tcp, struct tcp_peer *p, int error);

/* --- spare.c --- */

/* 0 or -errno. */
int nm_tcp_spare_make(struct tcp *tcp);
/*
 * Take the next call with the spare, for want (`error`) of anything else, and
 * say BUSY. False: nor is that possible now.
 */
bool nm_tcp_turn_away(struct tcp *tcp, int error);
/* Its sender knows the job's key. */
bool nm_tcp_busy_is_true(const struct tcp *tcp, const struct tcp_hello *busy);

/* --- alive.c --- */

/* A new socket. */
void nm_tcp_alive_tune(int fd);
/* False: for two thirds of the bound the kernel has got no answer on it. */
bool nm_tcp_alive_answers(int fd);
void nm_tcp_alive_expect(struct tcp *tcp);
void nm_tcp_alive_look(struct tcp *tcp, uint64_t now);

/* Something has been given to a socket: look later whether it got there. */
static inline void nm_tcp_alive_sent(struct tcp *tcp)
{
	if (unlikely(tcp->next_look == 0))
		nm_tcp_alive_expect(tcp);
}

/* --- send.c --- */

int nm_tcp_post(struct tcp *tcp, struct tcp_peer *p, struct nm_pkt *pkt);
int nm_tcp_xfer_send(struct nm_xfer *x);
/* Send what waits, a bounded amount. True if anything moved. */
bool nm_tcp_flush(struct tcp *tcp, struct tcp_peer *p);
/* Something waits for this peer: flush it at the next poll. */
void nm_tcp_want_send(struct tcp *tcp, struct tcp_peer *p);
void nm_tcp_bye(struct tcp *tcp, struct tcp_peer *p);

/* --- recv.c --- */

/* Look at this peer's socket at the next poll. */
void nm_tcp_want_read(struct tcp *tcp, struct tcp_peer *p);
/* Read and understand; at most *budget packets. True if anything moved. */
bool nm_tcp_read(struct tcp *tcp, struct tcp_peer *p, int *budget);
int nm_tcp_xfer_recv(struct nm_xfer *x);
void nm_tcp_release(struct nm_rail *rail, struct nm_pkt_in *in);
/* For a while, by the rail's owner. NULL: none is free. */
struct tcp_block *nm_tcp_block_get(struct tcp *tcp);
void nm_tcp_block_put(struct tcp *tcp, struct tcp_block *b);
void nm_tcp_block_drop(struct tcp *tcp, struct tcp_peer *p);
int nm_tcp_pools(struct tcp *tcp);

static inline void nm_tcp_head_put(unsigned char to[static TCP_HEAD],
				   const struct tcp_head *h)
{
	uint32_t word[3] = { h->length, h->window, h->generation };

	for (int i = 0; i < 4; i++) {
		to[i] = (unsigned char)(word[0] >> 8 * i);
		to[4 + i] = 0;
		to[8 + i] = (unsigned char)(word[1] >> 8 * i);
		to[12 + i] = (unsigned char)(word[2] >> 8 * i);
	}
	to[4] = h->kind;
}

static inline void nm_tcp_head_get(const unsigned char from[static TCP_HEAD],
				   struct tcp_head *h)
{
	uint32_t word[3] = { 0, 0, 0 };

	for (int i = 3; i >= 0; i--) {
		word[0] = word[0] << 8 | from[i];
		word[1] = word[1] << 8 | from[8 + i];
		word[2] = word[2] << 8 | from[12 + i];
	}
	h->length = word[0];
	h->window = word[1];
	h->generation = word[2];
	h->kind = from[4];
}

#endif
