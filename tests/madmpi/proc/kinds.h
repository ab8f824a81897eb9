/*
 * Threads of several kinds call MPI at the same time, each over communicators
 * of its own: blocking and not, waiting and testing, probing, in collectives. A
 * request belongs to nobody: who has started it may end before it is complete.
 *
 * For C and C++. The includer makes the threads.
 */
#ifndef TESTS_MADMPI_PROC_KINDS_H
#define TESTS_MADMPI_PROC_KINDS_H

#include "../program.h"

#include <marcel/marcel.h>

enum { KIND_ROUNDS = 5, KIND_SMALL = 10, KIND_LARGE = 30000 };

struct talker {
	int id;
	MPI_Comm comm; /* its own */
};

/* Thread i of each process passes something on to thread i of the next. */
struct ring {
	MPI_Comm comm;
	int next, previous;
	int out[KIND_LARGE], in[KIND_LARGE];
};

static inline void ring_fill(struct ring *r, int id, int round, int count)
{
	for (int i = 0; i < count; i++) {
		r->out[i] = rank + id * 100 + round * 7 + i;
		r->in[i] = -1;
	}
}

static inline void ring_check(const struct ring *r, int id, int round,
			      int count)
{
	for (int i = 0; i < count; i++)
		EXPECT_INT(r->in[i], r->previous + id * 100 + round * 7 + i);
}

static inline void talk_blocking(struct ring *r, int count)
{
	MPI_Request s;
	MPI_Status st;
	int got;

	MPI_Isend(r->out, count, MPI_INT, r->next, 1, r->comm, &s);
	MPI_Recv(r->in, count, MPI_INT, MPI_ANY_SOURCE, 1, r->comm, &st);
	MPI_Get_count(&st, MPI_INT, &got);
	EXPECT_INT(got, count);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
}

/* A loop around a test that lets nobody else run goes on for a time slice. */
static inline void talk_testing(struct ring *r, int count)
{
	MPI_Request q[2];
	int flag = 0;

	MPI_Irecv(r->in, count, MPI_INT, r->previous, 2, r->comm, &q[0]);
	MPI_Isend(r->out, count, MPI_INT, r->next, 2, r->comm, &q[1]);
	for (;;) {
		MPI_Testall(2, q, &flag, MPI_STATUSES_IGNORE);
		if (flag)
			return;
		marcel_yield();
	}
}

static inline void talk_any(struct ring *r, int count)
{
	MPI_Request q[2];
	int which, seen = 0;

	MPI_Irecv(r->in, count, MPI_INT, r->previous, 3, r->comm, &q[0]);
	MPI_Isend(r->out, count, MPI_INT, r->next, 3, r->comm, &q[1]);
	for (int i = 0; i < 2; i++) {
		MPI_Waitany(2, q, &which, MPI_STATUS_IGNORE);
		seen |= 1 << which;
	}
	EXPECT_INT(seen, 3);
}

static inline void talk_probing(struct ring *r, int count)
{
	MPI_Message message = MPI_MESSAGE_NULL;
	MPI_Request s;
	MPI_Status st;
	int got, flag = 0;

	MPI_Isend(r->out, count, MPI_INT, r->next, 4, r->comm, &s);
	MPI_Probe(MPI_ANY_SOURCE, 4, r->comm, &st);
	EXPECT_INT(st.MPI_SOURCE, r->previous);
	while (!flag)
		MPI_Improbe(r->previous, 4, r->comm, &flag, &message, &st);
	MPI_Get_count(&st, MPI_INT, &got);
	EXPECT_INT(got, count);
	MPI_Mrecv(r->in, count, MPI_INT, &message, MPI_STATUS_IGNORE);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
}

static inline void talk_together(struct ring *r, int id)
{
	MPI_Comm dup;
	int sum = 0, first = rank == 0 ? id : -1;

	MPI_Comm_dup(r->comm, &dup);
	MPI_Bcast(&first, 1, MPI_INT, 0, dup);
	EXPECT_INT(first, id);
	MPI_Allreduce(&id, &sum, 1, MPI_INT, MPI_SUM, r->comm);
	EXPECT_INT(sum, id * size);
	MPI_Barrier(dup);
	MPI_Comm_free(&dup);
}

static inline void ask_about_threads(int wanted_main)
{
	int level = -1, is_main = -1;

	MPI_Query_thread(&level);
	EXPECT_INT(level, MPI_THREAD_MULTIPLE);
	MPI_Is_thread_main(&is_main);
	EXPECT_INT(is_main, wanted_main);
}

/* What every thread but main does. */
static inline void *talk(void *arg)
{
	static void (*const ways[])(struct ring *,
				    int) = { talk_blocking, talk_testing,
					     talk_any, talk_probing };
	const struct talker *t = (const struct talker *)arg;
	struct ring *r = (struct ring *)malloc(sizeof(*r));

	EXPECT(r != NULL);
	r->comm = t->comm;
	r->next = (rank + 1) % size;
	r->previous = (rank - 1 + size) % size;
	ask_about_threads(0);
	for (int round = 0; round < KIND_ROUNDS; round++) {
		for (int way = 0; way < 4; way++) {
			int large = (way + round + t->id) % 5 == 0;
			int count = large ? KIND_LARGE : KIND_SMALL;

			ring_fill(r, t->id, round, count);
			ways[way](r, count);
			ring_check(r, t->id, round, count);
		}
		talk_together(r, t->id);
	}
	ask_about_threads(0);
	free(r);
	return NULL;
}

static inline void talkers_init(struct talker *t, int n)
{
	for (int i = 0; i < n; i++) {
		t[i].id = i;
		MPI_Comm_dup(MPI_COMM_WORLD, &t[i].comm);
	}
}

static inline void talkers_exit(struct talker *t, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&t[i].comm);
}

/* --- requests of threads that have ended --- */

/* Two of each size; the receives first, then the sends. */
enum { HEIRS = 4 };

struct legacy {
	MPI_Request request[2 * HEIRS];
	int in[HEIRS][KIND_LARGE], out[HEIRS][KIND_LARGE];
};

static inline int legacy_count(int i)
{
	return i % 2 ? KIND_LARGE : KIND_SMALL;
}

/* Starts them, and ends. */
static inline void *leave_requests(void *arg)
{
	struct legacy *l = (struct legacy *)arg;
	int next = (rank + 1) % size, previous = (rank - 1 + size) % size;

	for (int i = 0; i < HEIRS; i++) {
		int n = legacy_count(i);

		for (int k = 0; k < n; k++)
			l->out[i][k] = rank * 1000 + i * 10 + k;
		MPI_Irecv(l->in[i], n, MPI_INT, previous, i, MPI_COMM_WORLD,
			  &l->request[i]);
		MPI_Issend(l->out[i], n, MPI_INT, next, i, MPI_COMM_WORLD,
			   &l->request[HEIRS + i]);
	}
	return NULL;
}

/* Another thread completes them. */
static inline void *complete_requests(void *arg)
{
	struct legacy *l = (struct legacy *)arg;
	int previous = (rank - 1 + size) % size;

	MPI_Waitall(2 * HEIRS, l->request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < HEIRS; i++)
		for (int k = 0; k < legacy_count(i); k++)
			EXPECT_INT(l->in[i][k], previous * 1000 + i * 10 + k);
	return NULL;
}

#endif
