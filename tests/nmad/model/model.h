/*
 * Random programmes for nmad and the judge of what became of them.
 *
 * A programme is drawn from a seed: for each thread of each rank a list of
 * operations (draw.c). The ranks carry theirs out at once and write down beside
 * each operation what came of it (main.c). Then every rank has its own receives
 * judged by the rules of matching (judge.c). Plan and log lie in memory that
 * all ranks share, with a counter from which the log's dates are: so it is
 * known of any two operations, wherever they ran, whether one was over before
 * the other began.
 */
#ifndef TESTS_NMAD_MODEL_H
#define TESTS_NMAD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>

enum {
	MODEL_RANKS = 4,
	MODEL_THREADS = 3,
	MODEL_SESSIONS = 3,
	MODEL_DRAWN = 40, /* operations of a thread */
	MODEL_OPS = 1024, /* with those that end the programme */
	MODEL_ANY = -1,   /* source */
	MODEL_BYTES = 300000,
};

enum model_kind {
	MODEL_SEND,
	MODEL_RECV,
	MODEL_CANCEL, /* of `target`, an earlier receive of this thread */
	MODEL_PROBE,
	MODEL_MPROBE, /* and what it has found is received */
	MODEL_TEST,   /* of `target`, an earlier operation of this thread */
	MODEL_AWAIT, /* until thread `tag` of `peer` has begun its `target`th */
	MODEL_YIELD,
};

struct model_op {
	/* The plan. */
	uint8_t kind, session, shape, flags;
	bool any_tag;
	int8_t peer, priority;
	uint32_t tag;
	uint32_t length; /* of the message; or the room for it */
	int target;

	/*
	 * The log. Dates: the call began, it returned, and its request was
	 * known to be complete; 0: that never was.
	 */
	uint32_t begin, end, done;
	/* RECV, PROBE, MPROBE: the message, by model_number(); -1: none.
	 * CANCEL: 0, it is given up; -1, a message had taken it. */
	int got;
};

struct model_thread {
	int n;
	bool foreign; /* a thread of the kernel's, not one of marcel's */
	struct model_op ops[MODEL_OPS];
};

struct model {
	uint64_t seed;
	int ranks, sessions;
	bool named[MODEL_SESSIONS]; /* no wildcards: receives are announced */
	bool large;                 /* more messages are */
	int threads[MODEL_RANKS];
	struct model_thread thread[MODEL_RANKS][MODEL_THREADS];
};

static inline int model_number(int rank, int thread, int i)
{
	return (rank * MODEL_THREADS + thread) * MODEL_OPS + i;
}

static inline int model_rank_of(int number)
{
	return number / MODEL_OPS / MODEL_THREADS;
}

static inline const struct model_op *model_op(const struct model *m, int number)
{
	return &m->thread[model_rank_of(number)]
			 [number / MODEL_OPS % MODEL_THREADS]
				 .ops[number % MODEL_OPS];
}

/* Whether a receive or a probe would take that message of that rank. */
static inline bool model_fits(const struct model_op *r,
			      const struct model_op *send, int from)
{
	return send->session == r->session &&
	       (r->peer == MODEL_ANY || r->peer == from) &&
	       (r->any_tag || r->tag == send->tag);
}

/* splitmix64: below n, from a stream. */
static inline unsigned model_pick(uint64_t *stream, unsigned n)
{
	uint64_t z = *stream += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (unsigned)((z ^ (z >> 31)) % n);
}

/* Draw a programme for so many ranks. */
void model_draw(struct model *m, uint64_t seed, int ranks);

/* A size of a message, near the places where nmad does something else. */
uint32_t model_length(uint64_t *stream, bool large);

/*
 * What is wrong with what a rank has received in a session, or NULL. All ranks
 * are done. The text is good until the next call.
 */
const char *model_judge(const struct model *m, int rank, int session);

/* In words, to the text, at most n bytes; returns its length. */
size_t model_tell(const struct model *m, int number, char *text, size_t n);

#endif
