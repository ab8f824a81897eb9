/*
 * Sessions beside the world model: before MPI_Init, across MPI_Finalize, after
 * it.
 */
#include "session.h"

static void expect_flags(int initialized, int finalized)
{
	int flag = -1;

	MPI_Initialized(&flag);
	EXPECT_INT(flag, initialized);
	MPI_Finalized(&flag);
	EXPECT_INT(flag, finalized);
}

static void expect_no_world(void)
{
	int n;

	FAILS(MPI_Comm_size(MPI_COMM_WORLD, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_size(MPI_COMM_SELF, &n), MPI_ERR_COMM);
}

/* Neither the two worlds' groups nor their communicators. */
static void expect_apart(MPI_Comm c)
{
	MPI_Group g, world, made;
	MPI_Comm bad;
	int relation;

	MPI_Comm_group(c, &g);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	FAILS(MPI_Group_compare(g, world, &relation), MPI_ERR_GROUP);
	FAILS(MPI_Group_union(world, g, &made), MPI_ERR_GROUP);
	FAILS(MPI_Comm_compare(MPI_COMM_WORLD, c, &relation), MPI_ERR_COMM);
	FAILS(MPI_Comm_create(MPI_COMM_WORLD, g, &bad), MPI_ERR_GROUP);
	FAILS(MPI_Comm_create_group(c, world, 0, &bad), MPI_ERR_GROUP);
	/* But one may come from a group of the world's: it belongs there. */
	bad = comm_from(world, "of the world");
	expect_works(bad, size);
	EXPECT_INT(MPI_Comm_compare(MPI_COMM_WORLD, bad, &relation), 0);
	EXPECT_INT(relation, MPI_CONGRUENT);
	MPI_Comm_free(&bad);
	MPI_Group_free(&g);
	MPI_Group_free(&world);
}

static int large[1 << 16], in[1 << 16];

/*
 * MPI_Finalize completes what was freed, and buffered, though it stays in the
 * job: the memory is the program's again.
 */
static void leave_messages(MPI_Request *posted)
{
	static char buffer[MPI_BSEND_OVERHEAD + 64];
	int to = (rank + 1) % size, from = (rank + size - 1) % size, x = 0;
	MPI_Request r;

	for (int i = 0; i < 1 << 16; i++)
		large[i] = i;
	MPI_Comm_attach_buffer(MPI_COMM_WORLD, buffer, sizeof(buffer));
	MPI_Bsend(&x, 1, MPI_INT, to, 2, MPI_COMM_WORLD);
	MPI_Recv(&x, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Irecv(in, 1 << 16, MPI_INT, from, 1, MPI_COMM_WORLD, posted);
	MPI_Isend(large, 1 << 16, MPI_INT, to, 1, MPI_COMM_WORLD, &r);
	MPI_Request_free(&r);
	MPI_Wait(posted, MPI_STATUS_IGNORE);
}

static void expect_whole(void)
{
	memset(large, 0xff, sizeof(large));
	for (int i = 0; i < 1 << 16; i++)
		EXPECT_INT(in[i], i);
}

int main(int argc, char **argv)
{
	MPI_Request posted;

	MPI_Session before, between = MPI_SESSION_NULL, after;
	MPI_Comm c, d;

	setenv("MADMPI_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
	before = session_of_errors_return();
	c = comm_of(before, "before");
	expect_flags(0, 0);
	program_begin(&argc, &argv);
	expect_flags(1, 0);
	expect_works(c, size);
	expect_works(MPI_COMM_WORLD, size);
	expect_apart(c);
	/* Not all processes need have it when the world ends. */
	if (rank % 2 == 0)
		between = session_of_errors_return();
	leave_messages(&posted);
	EXPECT_INT(MPI_Finalize(), MPI_SUCCESS);
	expect_whole();
	expect_flags(1, 1);
	expect_no_world();
	FAILS(MPI_Finalize(), MPI_ERR_OTHER);
	FAILS(MPI_Init(NULL, NULL), MPI_ERR_OTHER);
	expect_works(c, size);
	MPI_Comm_free(&c);
	MPI_Session_finalize(&before);
	if (rank % 2 == 0)
		MPI_Session_finalize(&between);
	after = session_of_errors_return();
	d = comm_of(after, "after");
	expect_works(d, size);
	expect_no_world();
	MPI_Comm_free(&d);
	EXPECT_INT(MPI_Session_finalize(&after), MPI_SUCCESS);
	expect_flags(1, 1);
	return 0;
}
