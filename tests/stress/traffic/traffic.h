/*
 * Random traffic between the processes of a job, in which every byte is known
 * beforehand.
 *
 * Each process is in several groups: a communicator, and a user thread of each
 * member, which may have others help it. A group goes from round to round; what
 * happens in one all members draw alike from the group's key and the number of
 * the round, so that each knows what it is to receive, from whom, and what it
 * contains. Nothing else than messages has members go on together.
 */
#ifndef TESTS_STRESS_TRAFFIC_H
#define TESTS_STRESS_TRAFFIC_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROUPS = 4 };

struct group {
	/* Constant once it has begun. */
	int id, rank, size;
	MPI_Comm comm;
	MPI_Win win;
	uint64_t *memory; /* what the window shows */
	uint64_t key;

	uint64_t round;            /* of the group's thread */
	uint64_t adds;             /* of all members to the first's counter */
	const char *_Atomic doing; /* for the report */
};

/* What this process has done. */
enum count {
	SENT,
	SENT_BYTES,
	RECEIVED,
	RECEIVED_BYTES,
	CANCELLED,
	COLLECTIVES,
	ONESIDED,
	ROUNDS,
	COUNTS,
};
extern _Atomic uint64_t counts[COUNTS];

/* --- main.c --- */

/* What went wrong, and how to have it again; then the job ends. */
void fail(const struct group *g, const char *file, int line, const char *fmt,
	  ...) __attribute__((format(printf, 4, 5), noreturn));

#define MUST(g, x)                                                             \
	((x) ? (void)0 : fail(g, __FILE__, __LINE__, "%s does not hold", #x))

#define MUST_INT(g, got, want)                                                 \
	do {                                                                   \
		long long must_g = (long long)(got);                           \
		long long must_w = (long long)(want);                          \
		if (must_g != must_w)                                          \
			fail(g, __FILE__, __LINE__, "%s is %lld, not %lld",    \
			     #got, must_g, must_w);                            \
	} while (0)

void *must_alloc(const struct group *g, size_t bytes);

/* --- data.c --- */

uint64_t mix(uint64_t a, uint64_t b);
uint64_t draw(uint64_t *lot);

/* 0 to n - 1. */
static inline unsigned draw_below(uint64_t *lot, unsigned n)
{
	return (unsigned)(draw(lot) >> 32) % n;
}

/* What members draw alike, `what` being one of several things in a round. */
static inline uint64_t lot_of(const struct group *g, uint64_t what)
{
	return mix(mix(g->key, g->round), what);
}

/* What everything with this key contains. */
uint64_t word(uint64_t key, size_t i);

/*
 * Where the bytes of a message lie: in blocks, and as much again between two of
 * these, which is nobody's; or without gaps (block 0). A block is a multiple of
 * 8 bytes.
 */
struct place {
	size_t block, most; /* bytes of the longest message */
	unsigned char *buf;
};

void place_make(const struct group *g, struct place *p, uint64_t *lot,
		size_t most);
void place_free(struct place *p);

/* A type and how many of it, for so many bytes; to be freed by place_untype. */
int place_type(const struct place *p, size_t bytes, MPI_Datatype *out);
void place_untype(MPI_Datatype *type);

/* What is to be sent; what has come, and that nothing else was touched. */
void place_fill(const struct place *p, size_t bytes, uint64_t key);
bool place_holds(const struct place *p, size_t bytes, uint64_t key);

/* --- what may happen in a round --- */

void messages(struct group *g);
void cancel(struct group *g);
void collectives(struct group *g);
void onesided(struct group *g);

/* Bytes of the window of a group of so many. */
size_t onesided_bytes(int size);

#endif
