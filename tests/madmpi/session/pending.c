/*
 * Sessions that end while something is on its way which they have to do with:
 * that is no program to write, but it comes to its end.
 */
#include "session.h"

enum { LARGE = 1 << 16, TURNS = 5 / FEWER, FREED = 100000 / FEWER };

/*
 * A communicator that is nobody's yet, as the first process is late. There it
 * may be made at once, and would be the session's.
 */
static void a_communicator_is_made(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Comm c = comm_of(s, "pending"), made;
	MPI_Request r;

	if (rank == 0)
		for (int i = 1; i < size; i++)
			MPI_Recv(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
	MPI_Comm_idup(c, &made, &r);
	if (rank > 0) {
		EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
		MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
	}
	EXPECT_INT(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
	expect_works(made, size);
	EXPECT_INT(MPI_Comm_free(&made), MPI_SUCCESS);
	if (rank == 0)
		EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
}

/* A buffer is flushed, which was the session's. */
static void a_buffer_is_flushed(void)
{
	static int out[LARGE], in[LARGE];
	MPI_Session s = session_of_errors_return();
	MPI_Comm c = comm_of(s, "flushed");
	MPI_Request r[2];

	MPI_Session_attach_buffer(s, MPI_BUFFER_AUTOMATIC, 0);
	MPI_Bsend(out, LARGE, MPI_INT, (rank + 1) % size, 0, c);
	EXPECT_INT(MPI_Session_iflush_buffer(s, &r[0]), MPI_SUCCESS);
	MPI_Irecv(in, LARGE, MPI_INT, (rank + size - 1) % size, 0, c, &r[1]);
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	s = session_of_errors_return();
	EXPECT_INT(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
}

static void receive_and_forget(MPI_Comm c)
{
	static int in;
	MPI_Request r;

	for (int i = 0; i < FREED; i++) {
		MPI_Irecv(&in, 1, MPI_INT, rank, i, c, &r);
		MPI_Request_free(&r);
	}
}

static void send_to_self(MPI_Comm c)
{
	for (int i = 0; i < FREED; i++)
		MPI_Send(&i, 1, MPI_INT, rank, i, c);
}

/* Many are freed while active: of the session, which waits for its own only. */
static void requests_are_freed(void)
{
	MPI_Session s = session_of_errors_return();
	MPI_Comm c = comm_of(s, "freed");

	receive_and_forget(MPI_COMM_WORLD);
	receive_and_forget(c);
	send_to_self(c);
	EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	send_to_self(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	for (int i = 0; i < TURNS; i++) {
		a_communicator_is_made();
		a_buffer_is_flushed();
	}
	requests_are_freed();
	return program_end("pending");
}
