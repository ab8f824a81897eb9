/*
 * The lossy driver's structures. Files: lossy.c (frames), open.c.
 *
 * The rail's owner calls everything here; what others touch is marked.
 */
#ifndef NMAD_DRIVERS_LOSSY_LOSSY_H
#define NMAD_DRIVERS_LOSSY_LOSSY_H

#include "../../core/pkt.h"
#include "../../core/rail.h"

enum {
	LOSSY_FRAME = 12288,
	LOSSY_WINDOW = 32, /* frames that are not known to have arrived */
	LOSSY_FOR_DATA =
		16, /* of those, at most so many if the next is LOSSY_DATA */
	LOSSY_LAST = 6, /* that do not leave before the end */
	LOSSY_PATIENCE =
		100,      /* polls until that comes though nothing goes on */
	LOSSY_HELD = 256, /* packets that the core may hold */
};

enum lossy_kind { LOSSY_PACKET = 1, LOSSY_DATA, LOSSY_ACK };

struct lossy_head {
	uint32_t kind;
	uint32_t number; /* of the frame */
	uint32_t taken;  /* of the other's */
	uint32_t length; /* of what follows */
	uint64_t to;     /* LOSSY_DATA: the receiver's number, and where */
	uint64_t offset;
};

enum { LOSSY_ROOM = LOSSY_FRAME - sizeof(struct lossy_head) };

struct lossy_frame {
	struct lossy_head head;
	unsigned char bytes[LOSSY_ROOM];
};

/* A packet that the core has. */
struct lossy_held {
	struct nm_pkt_in in, *inner;
	struct base_mpsc_node free;
};

/* nm_xfer.drv */
struct lossy_x {
	struct base_link on; /* link's sending, unsure or receiving */
	size_t done;         /* bytes that are in frames, or have come */
	uint64_t number;     /* the receiver's */
	uint32_t last;       /* sender: its last frame */
};

_Static_assert(sizeof(struct lossy_x) <= sizeof(((struct nm_xfer *)0)->drv),
	       "a transfer has room for what the driver keeps");

struct lossy_link {
	/* o: all: the rail's owner */
	struct nm_link *outer;
	struct base_link work; /* lossy->work: something is to be done */
	int error;             /* it is about to be lost, by this */
	bool gone;
	unsigned npolls; /* while nothing leaves */

	/* Sending: frames arrived <= left <= made, at most LOSSY_WINDOW
	 * between. */
	uint32_t arrived, left, made;
	uint32_t npackets;              /* of those that were made */
	uint32_t numbers[LOSSY_WINDOW]; /* of a frame's packet */
	struct lossy_frame *frames;     /* LOSSY_WINDOW of them, by number */
	struct nm_pkt pkt;              /* for the driver beneath */
	struct nm_data data;            /* all of it */
	struct lossy_frame ack;         /* its head */
	bool flying;                    /* that driver has it */
	struct nm_pkt *posted;    /* the core's, until its frame has left */
	struct base_list sending; /* struct lossy_x: not all of it framed */
	struct base_list unsure;  /* framed, not known to have arrived */

	uint32_t taken, told; /* frames; and as the peer has been told */
	uint32_t ncame;       /* packets delivered */
	struct base_list receiving;
};

struct lossy {
	/* -: const  o: owner  a: atomic */
	struct nm_rail inner;        /* the wrapped rail */
	struct nm_rail *outer;       /* -: */
	long lose;                   /* -: 0: never */
	bool both;                   /* -: */
	struct lossy_link *links;    /* o: by rank */
	struct base_list work;       /* o: struct lossy_link */
	uint64_t nxfers;             /* o: that were received: their numbers */
	struct base_mpsc released;   /* a: order(mpsc) */
	struct base_mpsc_node *free; /* o: */
	struct lossy_held *all;      /* -: */
};

extern const struct nm_rail_upcalls nm_lossy_upcalls;

int nm_lossy_open(struct nm_rail *rail, const struct nm_boot_info *info,
		  const char *spec);
void nm_lossy_close(struct nm_rail *rail);

#endif
