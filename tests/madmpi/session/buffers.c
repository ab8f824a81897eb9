/*
 * Buffers of sessions: for buffered sends of their communicators that have none
 * of their own, and before the process's.
 */
#include "session.h"

enum { LARGE = 512, BYTES = 4096, PART = MPI_BSEND_OVERHEAD + 64 };

static char of_process[BYTES], of_session[BYTES], of_comm[PART];

static void to_next(MPI_Comm c, int n, int class)
{
	int out[LARGE], in[LARGE], next = (rank + 1) % size;
	int before = (rank + size - 1) % size;

	memset(out, n, sizeof(out));
	FAILS(MPI_Bsend(out, n, MPI_INT, next, 3, c), class);
	if (class != MPI_SUCCESS)
		return;
	MPI_Recv(in, n, MPI_INT, before, 3, c, MPI_STATUS_IGNORE);
	EXPECT(memcmp(in, out, (size_t)n * sizeof(int)) == 0);
}

static void expect_detached(int rc, void *at, void *buffer, int bytes,
			    int wanted)
{
	EXPECT_INT(rc, MPI_SUCCESS);
	EXPECT(at == buffer);
	EXPECT_INT(bytes, wanted);
}

static void the_nearest_buffer_is_used(MPI_Session s, MPI_Comm c)
{
	MPI_Session other = session_of_errors_return();
	MPI_Comm d = comm_of(other, "other");
	int bytes = 0, rc;
	void *at = NULL;

	to_next(c, 1, MPI_ERR_BUFFER);
	MPI_Session_attach_buffer(s, of_session, BYTES);
	to_next(c, LARGE, MPI_SUCCESS);
	to_next(d, 1, MPI_ERR_BUFFER); /* not of this session */
	MPI_Comm_attach_buffer(c, of_comm, PART);
	to_next(c, LARGE,
		MPI_ERR_BUFFER); /* too small, whatever else there is */
	to_next(c, 16, MPI_SUCCESS);
	rc = MPI_Comm_detach_buffer(c, &at, &bytes);
	expect_detached(rc, at, of_comm, bytes, PART);
	MPI_Buffer_attach(of_process, BYTES);
	to_next(d, LARGE, MPI_SUCCESS);
	rc = MPI_Session_detach_buffer(s, &at, &bytes);
	expect_detached(rc, at, of_session, bytes, BYTES);
	to_next(c, LARGE, MPI_SUCCESS); /* the process's */
	rc = MPI_Buffer_detach(&at, &bytes);
	expect_detached(rc, at, of_process, bytes, BYTES);
	MPI_Comm_free(&d);
	MPI_Session_finalize(&other);
}

static void one_at_a_time(MPI_Session s)
{
	MPI_Count bytes = 0;
	void *at = NULL;

	FAILS(MPI_Session_detach_buffer_c(s, &at, &bytes), MPI_ERR_BUFFER);
	MPI_Session_attach_buffer_c(s, MPI_BUFFER_AUTOMATIC, 0);
	FAILS(MPI_Session_attach_buffer_c(s, of_session, BYTES),
	      MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Session_detach_buffer_c(s, &at, &bytes), MPI_SUCCESS);
	EXPECT(at == MPI_BUFFER_AUTOMATIC);
	EXPECT_INT(bytes, 0);
}

static void flushed_when_all_has_left(MPI_Session s, MPI_Comm c)
{
	static int large[1 << 16], in[1 << 16];
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	MPI_Request r, posted;

	EXPECT_INT(MPI_Session_flush_buffer(s), MPI_SUCCESS);
	MPI_Session_attach_buffer(s, MPI_BUFFER_AUTOMATIC, 0);
	MPI_Irecv(in, 1 << 16, MPI_INT, before, 4, c, &posted);
	MPI_Bsend(large, 1 << 16, MPI_INT, next, 4, c);
	EXPECT_INT(MPI_Session_iflush_buffer(s, &r), MPI_SUCCESS);
	MPI_Wait(&posted, MPI_STATUS_IGNORE);
	EXPECT_INT(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Buffer_iflush(&r), MPI_SUCCESS);
	EXPECT_INT(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Session_flush_buffer(s), MPI_SUCCESS);
}

int main(void)
{
	MPI_Session s;
	MPI_Comm c;

	setenv("MADMPI_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
	s = session_of_errors_return();
	learn(s);
	c = comm_of(s, "buffers");
	the_nearest_buffer_is_used(s, c);
	one_at_a_time(s);
	flushed_when_all_has_left(s, c);
	MPI_Comm_free(&c);
	/* With a buffer that is still attached. */
	MPI_Session_finalize(&s);
	return 0;
}
