/*
 * A process runs out of memory while all make a communicator: whichever
 * allocation fails, nobody waits for it, who has got one can use it, and the
 * old one is as good as before.
 */
#include "../no_memory.h"
#include "../program.h"

static int dims[1], *neighbours, *degrees, right, left;

static int cart(MPI_Comm *out)
{
	int periods[1] = { 1 };

	return MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, out);
}

static MPI_Comm grid;

static int sub(MPI_Comm *out)
{
	int remain[1] = { 1 };

	return MPI_Cart_sub(grid, remain, out);
}

/* Each has an edge to the next. */
static int graph(MPI_Comm *out)
{
	return MPI_Graph_create(MPI_COMM_WORLD, size, degrees, neighbours, 1,
				out);
}

static int adjacent(MPI_Comm *out)
{
	int one = 1;

	return MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, &one, 1,
					      &right, &one, MPI_INFO_NULL, 1,
					      out);
}

static int distributed(MPI_Comm *out)
{
	int one = 1;

	return MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &right,
				     &one, MPI_INFO_NULL, 1, out);
}

static int split(MPI_Comm *out)
{
	return MPI_Comm_split(MPI_COMM_WORLD, 0, rank, out);
}

static int split_type(MPI_Comm *out)
{
	return MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
				   MPI_INFO_NULL, out);
}

static int idup(MPI_Comm *out)
{
	MPI_Request request;
	int rc = MPI_Comm_idup(MPI_COMM_WORLD, out, &request);

	return rc != MPI_SUCCESS ? rc : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The same name each time: nothing may be left of a call that has failed. */
static MPI_Group all, ours, theirs;

static int from_group(MPI_Comm *out)
{
	return MPI_Comm_create_from_group(all, "no_memory", MPI_INFO_NULL,
					  MPI_ERRORS_RETURN, out);
}

static int from_groups(int leader, int other, MPI_Comm *out)
{
	return MPI_Intercomm_create_from_groups(ours, leader, theirs, other,
						"no_memory", MPI_INFO_NULL,
						MPI_ERRORS_RETURN, out);
}

static int nours, ntheirs;

static int led_by_first(MPI_Comm *out)
{
	return from_groups(0, 0, out);
}

static int led_by_last(MPI_Comm *out)
{
	return from_groups(nours - 1, ntheirs - 1, out);
}

/* The last group is the larger one. */
static void find_groups(MPI_Session *session)
{
	int half = size / 2,
	    range[2][3] = { { 0, half - 1, 1 }, { half, size - 1, 1 } };
	int last = rank >= half;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session);
	MPI_Group_from_session_pset(*session, "mpi://WORLD", &all);
	if (size == 1)
		return;
	MPI_Group_range_incl(all, 1, &range[last], &ours);
	MPI_Group_range_incl(all, 1, &range[!last], &theirs);
	MPI_Group_size(ours, &nours);
	MPI_Group_size(theirs, &ntheirs);
}

static void drop_groups(MPI_Session *session)
{
	MPI_Group_free(&all);
	if (size > 1) {
		MPI_Group_free(&ours);
		MPI_Group_free(&theirs);
	}
	MPI_Session_finalize(session);
}

static int (*const makers[])(MPI_Comm *out) = {
	cart,       sub,  graph,      adjacent,     distributed, split,
	split_type, idup, from_group, led_by_first, led_by_last,
};

/* The last ones need two groups. */
enum { MAKERS = sizeof(makers) / sizeof(makers[0]), INTER = 2 };

/* Whether one has failed in the last process, which was told so. */
static int without(int (*make)(MPI_Comm *out), int nth)
{
	MPI_Comm made = MPI_COMM_NULL;
	int rc, refused;

	if (rank == size - 1)
		no_memory_for(nth, 0);
	rc = make(&made);
	refused = no_memory_end();
	if (rc == MPI_SUCCESS)
		MPI_Comm_free(&made);
	else
		EXPECT_INT(class_of(rc), MPI_ERR_NO_MEM);
	EXPECT(!refused || rc != MPI_SUCCESS);
	MPI_Bcast(&refused, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
	return refused;
}

int main(int argc, char **argv)
{
	MPI_Session session;

	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	dims[0] = size;
	neighbours = malloc((size_t)size * sizeof(int));
	degrees = malloc((size_t)size * sizeof(int));
	for (int i = 0; i < size; i++) {
		neighbours[i] = (i + 1) % size;
		degrees[i] = i + 1;
	}
	cart(&grid);
	find_groups(&session);
	for (int i = 0; i < (size > 1 ? MAKERS : MAKERS - INTER); i++) {
		int nth = 0;

		while (without(makers[i], nth))
			nth++;
		EXPECT(nth > 1);
	}
	drop_groups(&session);
	MPI_Comm_free(&grid);
	free(neighbours);
	free(degrees);
	return program_end("no_memory");
}
