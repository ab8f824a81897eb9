/*
 * Reordering: who talks to whom gets near to him. Run with a VP a process, each
 * on the next CPU of the machine that MARCEL_TOPOLOGY describes,
 * "package:P l3:1 core:C pu:1": process r of MPI_COMM_WORLD is in package r /
 * C.
 */
#include <stdbool.h>

#include "../program.h"

enum { MOST = 16 };

static int cores; /* per package */

static int package_of(int process)
{
	return process / cores;
}

/* Which process has each node; all have to agree. */
static int processes(MPI_Comm comm, int *process)
{
	int n, first[MOST], in[MOST], seen[MOST] = { 0 };
	MPI_Group mine, all;

	MPI_Comm_size(comm, &n);
	MPI_Comm_group(comm, &mine);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	for (int i = 0; i < n; i++)
		in[i] = i;
	MPI_Group_translate_ranks(mine, n, in, all, process);
	MPI_Group_free(&mine);
	MPI_Group_free(&all);
	memcpy(first, process, (size_t)n * sizeof(int));
	MPI_Bcast(first, n, MPI_INT, 0, comm);
	for (int i = 0; i < n; i++) {
		EXPECT_INT(process[i], first[i]);
		EXPECT_INT(seen[process[i]]++, 0);
	}
	return n;
}

static bool is_as_before(MPI_Comm comm)
{
	int result;

	MPI_Comm_compare(MPI_COMM_WORLD, comm, &result);
	return result == MPI_CONGRUENT;
}

/* A ring in this order of nodes: how many of its edges leave a package. */
static int ring(const int *order)
{
	int indx[MOST], edges[2 * MOST], process[MOST], leave = 0;
	MPI_Comm comm;

	for (int i = 0; i < size; i++) {
		indx[i] = 2 * (i + 1);
		edges[2 * order[i]] = order[(i + 1) % size];
		edges[2 * order[i] + 1] = order[(i + size - 1) % size];
	}
	MPI_Graph_create(MPI_COMM_WORLD, size, indx, edges, 1, &comm);
	processes(comm, process);
	for (int i = 0; i < size; i++)
		leave += package_of(process[order[i]]) !=
			 package_of(process[order[(i + 1) % size]]);
	MPI_Comm_free(&comm);
	return leave;
}

/* However the nodes are numbered, a ring enters and leaves each package once.
 */
static void rings(void)
{
	int packages = package_of(size - 1) + 1;

	for (int step = 1; step < size; step++) {
		int order[MOST], n = 0;

		for (int begin = 0; begin < step; begin++)
			for (int i = begin; i < size; i += step)
				order[n++] = i;
		EXPECT_INT(ring(order), packages > 1 ? packages : 0);
	}
}

/* What is good stays as it is; and without a wish nothing changes. */
static void nothing_to_gain(void)
{
	int dims[1] = { size }, periods[1] = { 1 }, to = (rank + 1) % size;
	int one = 1, around[MOST], process[MOST];
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &comm);
	EXPECT(is_as_before(comm));
	MPI_Comm_free(&comm);
	MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &to, &one,
			      MPI_INFO_NULL, 1, &comm);
	EXPECT(is_as_before(comm));
	MPI_Comm_free(&comm);
	/* Any order is as bad as any other. */
	for (int i = 0; i < size; i++)
		around[i] = i;
	MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &size, around, around,
			      MPI_INFO_NULL, 0, &comm);
	EXPECT(is_as_before(comm));
	MPI_Comm_free(&comm);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, size, around, around,
				       size, around, around, MPI_INFO_NULL, 1,
				       &comm);
	processes(comm, process);
	MPI_Comm_free(&comm);
}

/*
 * Nodes i and n - 1 - i have much to say to each other, and their weights go
 * where they go; neighbours in rank say little.
 */
static void weights_decide(bool adjacent)
{
	int other = size - 1 - rank, next = (rank + 1) % size, me, in, out, w;
	int previous = (rank + size - 1) % size, degree = 2, process[MOST];
	int to[2] = { other, next }, from[2] = { other, previous };
	int sources[2], its_weights[2], weights[2] = { 1000, 1 };
	MPI_Comm comm;

	if (adjacent)
		MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, weights,
					       2, to, weights, MPI_INFO_NULL, 1,
					       &comm);
	else
		MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, to,
				      weights, MPI_INFO_NULL, 1, &comm);
	processes(comm, process);
	for (int i = 0; i < size && cores % 2 == 0 && size % 2 == 0; i++)
		EXPECT_INT(package_of(process[i]),
			   package_of(process[size - 1 - i]));
	/* The lists are those of the node, not of the process. */
	MPI_Comm_rank(comm, &me);
	MPI_Dist_graph_neighbors_count(comm, &in, &out, &w);
	EXPECT(in == 2 && out == 2 && w == 1);
	MPI_Dist_graph_neighbors(comm, 2, sources, its_weights, 2, to, weights);
	for (int i = 0; i < 2; i++) {
		if (weights[i] == 1000)
			EXPECT_INT(to[i], size - 1 - me);
		else
			EXPECT_INT(to[i], (me + 1) % size);
		if (its_weights[i] == 1000)
			EXPECT_INT(sources[i], size - 1 - me);
		else
			EXPECT_INT(sources[i], (me + size - 1) % size);
	}
	MPI_Comm_free(&comm);
}

/* Two rows of four on packages of four: squares, not rows. */
static void squares(void)
{
	int dims[2] = { 2, 4 }, periods[2] = { 0, 0 }, process[MOST], r, c[2];
	MPI_Comm comm;

	if (size != 8 || cores != 4)
		return;
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &comm);
	processes(comm, process);
	for (int i = 0; i < 8; i++)
		EXPECT_INT(package_of(process[i]) == package_of(process[0]),
			   i % 4 < 2);
	MPI_Comm_rank(comm, &r);
	MPI_Cart_coords(comm, r, 2, c);
	EXPECT_INT(c[0] * 4 + c[1], r);
	MPI_Comm_free(&comm);
}

/* A grid for half of the processes is within as few packages as can be. */
static void half(void)
{
	int dims[1] = { size / 2 }, periods[1] = { 0 }, process[MOST], n, last;
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &comm);
	if (comm == MPI_COMM_NULL)
		return;
	n = processes(comm, process);
	EXPECT_INT(n, size / 2);
	last = package_of(process[n - 1]);
	EXPECT_INT(last, package_of(n - 1));
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	const char *machine = getenv("MARCEL_TOPOLOGY");
	int packages;

	program_begin(&argc, &argv);
	EXPECT(machine != NULL && size <= MOST &&
	       sscanf(machine, "package:%d l3:1 core:%d", &packages, &cores) ==
		       2);
	rings();
	nothing_to_gain();
	weights_decide(false);
	weights_decide(true);
	squares();
	half();
	return program_end("place");
}
