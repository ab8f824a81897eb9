/*
 * Collective operations of processes that are not all on one host: who sends
 * what to whom. Hosts are made up by the launcher, and are equally large.
 */
#include <dlfcn.h>
#include <nmad/nmad.h>
#include <nmad/sendrecv.h>
#include <stdatomic.h>

#include "../program.h"

enum { MANY = 12, MOST_RANKS = 64 };

/* --- what is sent --- */

static atomic_int sent_to[MOST_RANKS];
static atomic_int first_to; /* -1: nobody yet */

/* Our own definition goes before the library's. */
__attribute__((visibility("default"))) int
nm_sr_isend(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
	    const struct nm_data *data, unsigned flags,
	    struct nm_sr_request *req)
{
	static int (*next)(struct nm_session *, struct nm_gate *, nm_tag_t,
			   const struct nm_data *, unsigned,
			   struct nm_sr_request *);
	int nobody = -1;

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "nm_sr_isend");
	atomic_compare_exchange_strong(&first_to, &nobody, nm_gate_rank(to));
	atomic_fetch_add(&sent_to[nm_gate_rank(to)], 1);
	return next(s, to, tag, data, flags, req);
}

static int near_count; /* processes of this host */

/* Messages of all processes from host to host since the last time. */
static int crossed(void)
{
	int mine = 0, all, zero = 0;

	for (int r = 0; r < size; r++) {
		int n = atomic_exchange(&sent_to[r], 0);

		if (r / near_count != rank / near_count)
			mine += n;
	}
	/* What is sent for this is not counted. */
	MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Bcast(&zero, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		atomic_store(&sent_to[r], 0);
	return all;
}

/* --- who has anything to do with whom --- */

/* A barrier is a matter of each host and of the first one of each. */
static void only_those_who_need_each_other_are_connected(void)
{
	for (int i = 0; i < MANY; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		if (r / near_count != rank / near_count &&
		    (r % near_count != 0 || rank % near_count != 0))
			EXPECT_INT(atomic_load(&sent_to[r]), 0);
}

/* --- how often hosts send each other anything --- */

static int log_of(int n)
{
	int log = 0;

	while (1 << log < n)
		log++;
	return log;
}

/* Recursive doubling: of a power of two, and those beyond it before and after.
 */
static int doubling(int n)
{
	int log = log_of(n), power = 1 << log;

	if (power > n)
		power = 1 << --log;
	return power * log + 2 * (n - power);
}

static void hosts_hear_once(void)
{
	int hosts = size / near_count, x, sum;

	crossed();
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT_INT(crossed(), hosts * log_of(hosts));
	for (int root = 0; root < size; root++) {
		x = rank == root ? 77 + root : 0;
		MPI_Bcast(&x, 1, MPI_INT, root, MPI_COMM_WORLD);
		EXPECT_INT(x, 77 + root);
		EXPECT_INT(crossed(), hosts - 1);
		sum = 0;
		MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, root,
			   MPI_COMM_WORLD);
		EXPECT_INT(sum, rank == root ? size * (size - 1) / 2 : 0);
		EXPECT_INT(crossed(), hosts - 1);
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT_INT(sum, size * (size - 1) / 2);
	EXPECT_INT(crossed(), doubling(hosts));
}

static void hosts_hear_once_in_the_background(void)
{
	int hosts = size / near_count, x = rank == 0 ? 5 : 0;
	MPI_Request request;

	MPI_Ibcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	EXPECT_INT(x, 5);
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT_INT(crossed(), hosts - 1 + hosts * log_of(hosts));
}

/* Who has data for other hosts sends them there first: all wait for that. */
static void hosts_hear_first(void)
{
	MPI_Request request;
	int x;

	for (int root = 0; root < size; root += near_count) {
		MPI_Barrier(MPI_COMM_WORLD);
		x = rank == root ? 9 + root : 0;
		atomic_store(&first_to, -1);
		MPI_Ibcast(&x, 1, MPI_INT, root, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		EXPECT_INT(x, 9 + root);
		if (rank == root)
			EXPECT(atomic_load(&first_to) / near_count !=
			       rank / near_count);
	}
}

int main(int argc, char **argv)
{
	int mine;

	program_begin(&argc, &argv);
	EXPECT(size <= MOST_RANKS);
	for (int r = 0; r < size; r++) {
		mine = nm_gate_host(nm_gate_of(r)) ==
		       nm_gate_host(nm_gate_of(rank));
		near_count += mine;
	}
	only_those_who_need_each_other_are_connected();
	hosts_hear_once();
	hosts_hear_once_in_the_background();
	hosts_hear_first();
	return program_end("hosts");
}
