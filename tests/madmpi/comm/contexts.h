/*
 * Many threads make communicators at the same time, thread i of every process
 * out of communicator i, and no two processes begin with the same one. It ends
 * whatever the number of threads that can run, and no message comes to another
 * communicator than its own.
 *
 * The includer makes the threads, each of which does makers_work().
 */
#ifndef TESTS_MADMPI_COMM_CONTEXTS_H
#define TESTS_MADMPI_COMM_CONTEXTS_H

#include "../program.h"

#include <marcel/marcel.h>

struct maker {
	int id;
	MPI_Comm parent;         /* of all processes, in the order of ranks */
	marcel_barrier_t *ready; /* of all makers of this process at work */
	marcel_sem_t *done;      /* posted at the end */
};

enum { MAKER_ROUNDS = 2 };

/* The n-th maker to begin on this process, of count, which 389 does not divide.
 */
static inline int maker_at(int n, int count)
{
	switch (rank % 3) {
	case 0:
		return n;
	case 1:
		return count - 1 - n;
	default:
		return (n * 389 + 5) % count;
	}
}

/* Every process, the last one first. */
static inline MPI_Group backwards(void)
{
	int last[1][3] = { { size - 1, 0, -1 } };
	MPI_Group world, group;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, last, &group);
	MPI_Group_free(&world);
	return group;
}

/* Some other way to make one for each maker and round. */
static inline MPI_Comm make_one(const struct maker *m, int round)
{
	MPI_Group group = backwards();
	MPI_Comm made = MPI_COMM_NULL;
	MPI_Request request;

	switch ((m->id + round) % 8) {
	case 0:
		MPI_Comm_split(m->parent, 3, -rank, &made);
		break;
	case 1: /* several contexts out of one collective operation */
		MPI_Comm_split(m->parent, rank % 2, 0, &made);
		break;
	case 2:
		MPI_Comm_create(m->parent, group, &made);
		break;
	case 3:
		MPI_Comm_create_group(m->parent, group, 0, &made);
		break;
	case 4: /* all of these at once out of the same parent, told apart by
		 * the tag */
		MPI_Comm_create_group(MPI_COMM_WORLD, group, m->id, &made);
		break;
	case 5:
		MPI_Comm_dup_with_info(m->parent, MPI_INFO_NULL, &made);
		break;
	case 6:
		MPI_Comm_idup(m->parent, &made, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		break;
	default:
		MPI_Comm_dup(m->parent, &made);
		break;
	}
	MPI_Group_free(&group);
	EXPECT(made != MPI_COMM_NULL);
	return made;
}

/*
 * All makers of this process have a communicator, and each waits in its own for
 * anything from anybody, before the first one sends.
 */
static inline void use_one(const struct maker *m, MPI_Comm made)
{
	int in[2] = { -1, -1 }, out[2], n, r, sum = 0, result;
	MPI_Request request;
	MPI_Status st;

	MPI_Comm_size(made, &n);
	MPI_Comm_rank(made, &r);
	MPI_Comm_compare(made, m->parent, &result);
	EXPECT((result != MPI_UNEQUAL) == (n == size));
	MPI_Irecv(in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, made, &request);
	marcel_barrier_wait(m->ready);
	out[0] = m->id;
	out[1] = r;
	MPI_Send(out, 2, MPI_INT, (r + 1) % n, m->id % 10, made);
	MPI_Wait(&request, &st);
	EXPECT_INT(in[0], m->id);
	EXPECT_INT(in[1], (r - 1 + n) % n);
	EXPECT_INT(st.MPI_SOURCE, in[1]);
	EXPECT_INT(st.MPI_TAG, m->id % 10);
	MPI_Allreduce(&m->id, &sum, 1, MPI_INT, MPI_SUM, made);
	EXPECT_INT(sum, n * m->id);
}

/* While some still use theirs, others free them and make the next. */
static inline void *makers_work(void *arg)
{
	struct maker *m = (struct maker *)arg;

	for (int round = 0; round < MAKER_ROUNDS; round++) {
		MPI_Comm made = make_one(m, round);

		use_one(m, made);
		MPI_Comm_free(&made);
		EXPECT(made == MPI_COMM_NULL);
	}
	MPI_Comm_free(&m->parent);
	marcel_sem_post(m->done);
	return NULL;
}

/* Makers of these numbers, each with a parent of its own. */
static inline void makers_init(struct maker *m, int count,
			       marcel_barrier_t *ready, marcel_sem_t *done)
{
	for (int i = 0; i < count; i++) {
		m[i].id = i;
		m[i].ready = ready;
		m[i].done = done;
		MPI_Comm_dup(MPI_COMM_WORLD, &m[i].parent);
	}
}

#endif
