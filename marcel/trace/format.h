/*
 * The file of MARCEL_TRACE: one per process, FILE, or FILE.RANK if it is one of
 * several of a job; FILE.pPID until nmad has told the rank or marcel_end()
 * comes, and for a process that ends before both; FILE.pPID.N if other
 * processes have taken that name. Read by tools/trace. All numbers are
 * little-endian.
 *
 *   file:    header | chunk | chunk | ...
 *   chunk:   chunk head, 64 bytes | payload | unused up to `bytes`
 *
 * Header and chunks begin at multiples of `align`; the first chunk follows the
 * header, `align` bytes from the start, and each has its whole length in its
 * head. The file may end within the last chunk; what is missing is 0. The
 * threads write events into the mapped file itself: whatever way the process
 * ends, up to SIGKILL, all that was recorded is there, `used` says how much,
 * and only the chunk END is missing. After a crash of the machine the tail may
 * be. A chunk whose `used` is 0 holds nothing. Where the magic is 0 there is
 * none, for `align` bytes: the disk had no room for it, or the file ends.
 *
 * Times are ticks of `clock`. Ticks become nanoseconds of CLOCK_MONOTONIC by
 * the first and the last pair (struct marcel_trace_clock) of the file, which
 * lies in the header, in CLOCK chunks (about one per second) and in END:
 *
 *   ns(t) = first.monotonic + (t - first.ticks) *
 *           (last.monotonic - first.monotonic) / (last.ticks - first.ticks)
 *
 * or between the two nearest pairs. All processes of one host share ticks and
 * CLOCK_MONOTONIC; CLOCK_REALTIME says roughly how hosts relate, and messages
 * in both directions say it exactly: no ARRIVE is before its SEND.
 *
 * Lanes. Each event has a `lane`: a VP, 0 to nvp - 1, or a kernel thread that
 * drove none as it recorded, MARCEL_TRACE_FOREIGN and up; its first event is
 * LANE, which names it. One lane's events are in one ring's chunks, which lie
 * in the file in the order in which they were filled: so one lane's events are
 * in the order of the file, which is that of time, but for a few hundred ticks
 * where a VP or a thread has changed CPUs. All kernel threads without a VP
 * share a ring, number nvp.
 *
 * Threads are named by the address of their descriptor. It is given to another
 * thread after ENDED: an address means the thread of the last NEW.
 */
#ifndef MARCEL_TRACE_FORMAT_H
#define MARCEL_TRACE_FORMAT_H

#include <stdint.h>

#define MARCEL_TRACE_MAGIC   "MARCELTR" /* 8 bytes, without a 0 */
#define MARCEL_TRACE_CHUNK   0x4b4e4843 /* "CHNK" */
#define MARCEL_TRACE_FOREIGN 0x8000

enum { MARCEL_TRACE_VERSION = 1 };

enum marcel_trace_clock_kind {
	MARCEL_TRACE_NS,  /* ticks are ns of CLOCK_MONOTONIC */
	MARCEL_TRACE_CPU, /* the processor's counter, the same on all CPUs */
};

/* One moment on three clocks. */
struct marcel_trace_clock {
	uint64_t ticks;
	uint64_t monotonic; /* ns */
	uint64_t realtime;  /* ns since 1970 */
};

/* 192 bytes; the file is 0 from there to `align`. */
struct marcel_trace_header {
	char magic[8];
	uint32_t version;
	uint32_t align;
	int32_t rank; /* -1: not known (yet), or no job */
	int32_t size; /* of the job; 0: not known (yet), or no job */
	uint32_t pid;
	uint32_t nvp;
	uint32_t clock;        /* enum marcel_trace_clock_kind */
	uint32_t record_bytes; /* 24 */
	struct marcel_trace_clock start;
	char host[64];    /* ends with 0 */
	char program[64]; /* name of the executable; ends with 0 */
};

enum marcel_trace_chunk_type {
	MARCEL_TRACE_EVENTS = 1, /* struct marcel_trace_record, of one ring */
	MARCEL_TRACE_STRINGS,    /* struct marcel_trace_string: names */
	MARCEL_TRACE_MODULES,    /* the lines of /proc/self/maps that have an
				  * x: which file an address is of (dlopen()
				  * adds to it: the last chunk counts) */
	MARCEL_TRACE_CLOCKS,     /* one struct marcel_trace_clock */
	MARCEL_TRACE_END,        /* one struct marcel_trace_clock: the program
				  * has ended the normal way */
};

struct marcel_trace_chunk {
	uint32_t magic;
	uint32_t type;
	uint64_t bytes; /* to the next chunk, head included */
	uint64_t used;  /* bytes of payload; EVENTS: grows while it is filled */
	uint64_t lost;  /* EVENTS: of this ring, after the last record here and
			 * before the first of its next chunk */
	uint32_t ring;  /* EVENTS */
	uint32_t zero;
	uint64_t offset; /* of this head in the file */
	uint64_t zeros[2];
};

/*
 * In STRINGS, one after the other; each begins at a multiple of 8 from the
 * payload's start. What is named by `id` depends on `kind`:
 *   MPI_ENTER   a function of MPI: `a` of MPI_ENTER and MPI_LEAVE
 */
struct marcel_trace_string {
	uint16_t kind;
	uint16_t bytes; /* of text, without padding; no 0 at the end */
	uint32_t id;
	char text[];
};

/*
 * An event: its kinds are in <base/trace.h>. If one says "and more", the record
 * behind it, in the same chunk, is MORE, whose first word is no time but a
 * third value, `c`; a reader that does not know a kind skips it, and any MORE
 * behind it.
 */
struct marcel_trace_record {
	union {
		uint64_t time;
		uint64_t c;
	};
	uint16_t kind;
	uint16_t lane;
	uint32_t a;
	uint64_t b;
};

#endif
