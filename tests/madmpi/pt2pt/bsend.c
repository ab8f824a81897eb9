/*
 * Buffered sends: they end before anybody receives, until the buffer is full;
 * room comes back when messages have left; detaching waits for them. Buffers of
 * the process, of a communicator, and of no limit.
 */
#include "../program.h"

#include <pthread.h>
#include <sched.h>

enum { N = 20, LARGE = 50000 };

static int next, previous;
static int message[LARGE], got[LARGE];

static void fill(int n, int seed)
{
	for (int i = 0; i < n; i++)
		message[i] = seed * 1000 + i;
}

static void receive(int n, int seed, MPI_Comm comm)
{
	memset(got, 0, sizeof(got));
	MPI_Recv(got, n, MPI_INT, previous, seed, comm, MPI_STATUS_IGNORE);
	for (int i = 0; i < n; i++)
		EXPECT_INT(got[i], seed * 1000 + i);
}

static int room_for(int messages, int n)
{
	int bytes;

	MPI_Pack_size(n, MPI_INT, MPI_COMM_WORLD, &bytes);
	return messages * (bytes + MPI_BSEND_OVERHEAD);
}

static void attach(int bytes)
{
	/* Not even aligned. */
	EXPECT_INT(
		MPI_Buffer_attach((char *)malloc((size_t)bytes + 1) + 1, bytes),
		MPI_SUCCESS);
}

static void detach(int bytes)
{
	char *addr = NULL;
	int size = -1;

	EXPECT_INT(MPI_Buffer_detach(&addr, &size), MPI_SUCCESS);
	EXPECT(addr != NULL && size == bytes);
	free(addr - 1);
}

/* Large ones have not left before their receiver asks for them. */
static void until_it_is_full(void)
{
	int bytes = room_for(3, LARGE), code = MPI_SUCCESS, sent = 0;

	attach(bytes);
	for (; code == MPI_SUCCESS; sent += code == MPI_SUCCESS) {
		fill(LARGE, sent);
		code = MPI_Bsend(message, LARGE, MPI_INT, next, sent,
				 MPI_COMM_WORLD);
		EXPECT(sent <= 3);
	}
	FAILS(code, MPI_ERR_BUFFER);
	EXPECT_INT(sent, 3);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < sent; i++)
		receive(LARGE, i, MPI_COMM_WORLD);
	detach(bytes);
}

/* Round and round, with messages of many sizes; all arrive, in order. */
static void room_comes_back(void)
{
	int bytes = room_for(2, 10000), full = 0;

	attach(bytes);
	for (int i = 0; i < 200; i++) {
		int n = (i * 7919) % 10000;

		fill(n, i);
		while (MPI_Bsend(message, n, MPI_INT, next, i,
				 MPI_COMM_WORLD) != MPI_SUCCESS) {
			EXPECT(n > 0 && !full); /* it is empty by now */
			full = 1;
			MPI_Buffer_flush();
		}
		full = 0;
		receive(n, i, MPI_COMM_WORLD);
	}
	detach(bytes);
}

/* What was said is sent, though the memory is used again and the type freed. */
static void typed_and_nonblocking(void)
{
	int bytes = room_for(N, 5);
	MPI_Datatype type;
	MPI_Request r[N];

	attach(bytes);
	MPI_Type_vector(5, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 10; k++)
			message[k] = k % 2 ? -1 : i * 1000 + k / 2;
		MPI_Ibsend(message, 1, type, next, i, MPI_COMM_WORLD, &r[i]);
		memset(message, 0, sizeof(message));
	}
	MPI_Type_free(&type);
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		receive(5, i, MPI_COMM_WORLD);
	detach(bytes);
}

static void persistent(void)
{
	int bytes = room_for(1, 8);
	MPI_Request r;

	attach(bytes);
	MPI_Bsend_init(message, 8, MPI_INT, next, 6, MPI_COMM_WORLD, &r);
	for (int i = 0; i < 5; i++) {
		fill(8, 6);
		MPI_Start(&r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		memset(message, 0, sizeof(message));
		receive(8, 6, MPI_COMM_WORLD);
		/* What has left may be told late. */
		MPI_Buffer_flush();
	}
	MPI_Request_free(&r);
	detach(bytes);
}

static void of_a_communicator(void)
{
	int bytes = room_for(1, 100), size_of = -1;
	char *memory = malloc((size_t)bytes), *addr = NULL;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_attach_buffer(comm, memory, bytes);
	FAILS(MPI_Bsend(message, 1, MPI_INT, next, 0, MPI_COMM_WORLD),
	      MPI_ERR_BUFFER);
	fill(100, 3);
	EXPECT_INT(MPI_Bsend(message, 100, MPI_INT, next, 3, comm),
		   MPI_SUCCESS);
	receive(100, 3, comm);
	MPI_Comm_flush_buffer(comm);
	FAILS(MPI_Comm_attach_buffer(comm, memory, bytes), MPI_ERR_BUFFER);
	MPI_Comm_detach_buffer(comm, &addr, &size_of);
	EXPECT(addr == memory && size_of == bytes);
	MPI_Comm_attach_buffer(comm, memory, bytes);
	fill(100, 4);
	MPI_Bsend(message, 100, MPI_INT, next, 4, comm);
	receive(100, 4, comm);
	MPI_Comm_free(&comm); /* with its buffer */
	free(memory);
}

/* It ends when what was there has left, which others need not wait for. */
static void in_the_background(void)
{
	int bytes = room_for(4, LARGE), flag = 0;
	char *memory = malloc((size_t)bytes);
	MPI_Request r[2];
	void *addr;

	MPI_Buffer_iflush(&r[0]); /* nothing there to be flushed */
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	FAILS(MPI_Buffer_iflush(NULL), MPI_ERR_ARG);
	FAILS(MPI_Comm_iflush_buffer(MPI_COMM_NULL, r), MPI_ERR_COMM);
	MPI_Buffer_attach(memory, bytes);
	fill(LARGE, 8);
	MPI_Bsend(message, LARGE, MPI_INT, rank, 8, MPI_COMM_WORLD);
	MPI_Buffer_iflush(&r[0]);
	fill(LARGE, 9);
	MPI_Bsend(message, LARGE, MPI_INT, rank, 9, MPI_COMM_WORLD);
	MPI_Buffer_iflush(&r[1]);
	/* Nobody has received: neither can have ended. */
	for (int i = 0; i < 100; i++) {
		MPI_Testany(2, r, &(int){ 0 }, &flag, MPI_STATUS_IGNORE);
		EXPECT(!flag);
	}
	MPI_Recv(got, LARGE, MPI_INT, rank, 8, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	MPI_Test(&r[1], &flag, MPI_STATUS_IGNORE);
	EXPECT(!flag);
	MPI_Recv(got, LARGE, MPI_INT, rank, 9, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Buffer_detach(&addr, &bytes);
	free(memory);
}

/* The communicator is freed before its flush has ended. */
static void in_the_background_of_a_communicator(void)
{
	MPI_Request r;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
	fill(LARGE, 5);
	MPI_Bsend(message, LARGE, MPI_INT, next, 5, comm);
	MPI_Comm_iflush_buffer(comm, &r);
	receive(LARGE, 5, comm);
	MPI_Comm_free(&comm);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void without_limit(void)
{
	void *addr = NULL;
	int unused;

	MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
	for (int i = 0; i < N; i++) {
		fill(LARGE, i);
		EXPECT_INT(MPI_Bsend(message, LARGE, MPI_INT, next, i,
				     MPI_COMM_WORLD),
			   MPI_SUCCESS);
	}
	for (int i = 0; i < N; i++)
		receive(LARGE, i, MPI_COMM_WORLD);
	MPI_Buffer_detach(&addr, &unused);
	EXPECT(addr == MPI_BUFFER_AUTOMATIC);
}

static void *flushes(void *arg)
{
	MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_SELF);
	MPI_Buffer_flush();
	MPI_Send(NULL, 0, MPI_INT, 0, 3, MPI_COMM_SELF);
	return arg;
}

static void *detaches(void *arg)
{
	static int n;

	if (MPI_Buffer_detach(arg, &n) != MPI_SUCCESS)
		*(void **)arg = NULL;
	return NULL;
}

/*
 * Buffered sends are local: also while others wait until all that is there has
 * left, which here it does only after such a send.
 */
static void while_others_wait(void)
{
	int bytes = room_for(8, LARGE);
	char *memory = malloc((size_t)bytes);
	pthread_t threads[4];
	void *addr[4];
	int end;

	MPI_Buffer_attach(memory, bytes);
	fill(LARGE, 1);
	MPI_Bsend(message, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, flushes, NULL);
	for (int i = 0; i < 2; i++)
		MPI_Recv(got, 0, MPI_INT, 0, 2, MPI_COMM_SELF,
			 MPI_STATUS_IGNORE);
	for (int i = 0; i < 6; i++) {
		EXPECT_INT(
			MPI_Bsend(message, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF),
			MPI_SUCCESS);
		sched_yield();
	}
	MPI_Iprobe(0, 3, MPI_COMM_SELF, &end, MPI_STATUS_IGNORE);
	EXPECT(!end);
	for (int i = 0; i < 7; i++)
		MPI_Recv(got, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF,
			 MPI_STATUS_IGNORE);
	for (int i = 0; i < 2; i++) {
		MPI_Recv(got, 0, MPI_INT, 0, 3, MPI_COMM_SELF,
			 MPI_STATUS_IGNORE);
		pthread_join(threads[i], NULL);
	}
	/* Only one of several can detach it. */
	MPI_Bsend(message, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, detaches, &addr[i]);
	MPI_Recv(got, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	end = 0;
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		end += addr[i] == memory;
	}
	EXPECT_INT(end, 1);
	free(memory);
}

static void *receives_two(void *arg)
{
	for (int i = 0; i < 2; i++)
		MPI_Recv(got, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF,
			 MPI_STATUS_IGNORE);
	return arg;
}

/*
 * A full buffer is not yet an error, the receiver is on his way; but if he gets
 * no core for long it is.
 */
static void room_comes_back_soon(void)
{
	int bytes = room_for(1, LARGE), code;
	pthread_t thread;
	double begun;

	attach(bytes);
	fill(LARGE, 1);
	MPI_Bsend(message, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF);
	pthread_create(&thread, NULL, receives_two, NULL);
	do {
		begun = MPI_Wtime();
		code = MPI_Bsend(message, LARGE, MPI_INT, 0, 1, MPI_COMM_SELF);
		EXPECT(code == MPI_SUCCESS || MPI_Wtime() - begun > 0.5);
	} while (code != MPI_SUCCESS);
	pthread_join(thread, NULL);
	detach(bytes);
}

static void nonsense(void)
{
	void *addr;
	int n;

	FAILS(MPI_Bsend(message, 1, MPI_INT, next, 0, MPI_COMM_WORLD),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Buffer_detach(&addr, &n), MPI_ERR_BUFFER);
	FAILS(MPI_Buffer_attach(message, -1), MPI_ERR_ARG);
	FAILS(MPI_Buffer_attach(NULL, 10), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Buffer_attach(message, sizeof(message)), MPI_SUCCESS);
	FAILS(MPI_Buffer_attach(got, 10), MPI_ERR_BUFFER);
	FAILS(MPI_Buffer_detach(NULL, &n), MPI_ERR_ARG);
	EXPECT_INT(MPI_Bsend(message, 1, MPI_INT, MPI_PROC_NULL, 0,
			     MPI_COMM_WORLD),
		   MPI_SUCCESS);
	FAILS(MPI_Bsend(message, 1, MPI_INT, size, 0, MPI_COMM_WORLD),
	      MPI_ERR_RANK);
	MPI_Buffer_detach(&addr, &n);
	EXPECT(addr == message && n == (int)sizeof(message));
}

int main(int argc, char **argv)
{
	static int last[100];

	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	until_it_is_full();
	room_comes_back();
	typed_and_nonblocking();
	persistent();
	of_a_communicator();
	in_the_background();
	in_the_background_of_a_communicator();
	without_limit();
	while_others_wait();
	room_comes_back_soon();
	nonsense();
	/* MPI_Finalize detaches, too. */
	MPI_Buffer_attach(got, sizeof(got));
	fill(100, 1);
	MPI_Bsend(message, 100, MPI_INT, next, 1, MPI_COMM_WORLD);
	MPI_Recv(last, 100, MPI_INT, previous, 1, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	EXPECT_INT(last[99], 1099);
	return program_end("bsend");
}
