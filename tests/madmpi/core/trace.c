/*
 * For trace.py. User threads of two ranks exchange messages: small ones, one by
 * rendezvous, some that a matched probe takes, and those of a window.
 *
 *   abort   rank 0 ends the job instead, after some calls
 *   calls   instead, without MPI: matched receives of a closed session, and a
 *           remote procedure call
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>
#include <mpi.h>
#include <nmad/nmad.h>
#include <nmad/rpc.h>

enum {
	THREADS = 20,
	LARGE = 1 << 20,
	CALLS = 100,
	MATCHED = 200, /* tag of the first matched message */
	SESSION = 5,
	SERVICE = 7,
};

/* Eager, in several packets, by rendezvous. */
static const size_t sizes[] = { 8, 20000, LARGE };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static char large[LARGE];

static void *chat(void *arg)
{
	int rank, got, tag = (int)(long)arg;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Sendrecv(&rank, 1, MPI_INT, !rank, tag, &got, 1, MPI_INT, !rank,
		     tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return got == !rank ? NULL : arg;
}

static void exchange(int rank)
{
	marcel_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		marcel_create(&t[i], NULL, chat, (void *)i);
	for (int i = 0; i < THREADS; i++)
		marcel_join(t[i], NULL);
	if (rank == 0)
		MPI_Send(large, LARGE, MPI_CHAR, 1, 99, MPI_COMM_WORLD);
	else
		MPI_Recv(large, LARGE, MPI_CHAR, 0, 99, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

static void match(int rank)
{
	MPI_Message message;

	for (int i = 0; i < SIZES; i++) {
		if (rank == 0) {
			MPI_Send(large, (int)sizes[i], MPI_CHAR, 1, MATCHED + i,
				 MPI_COMM_WORLD);
			continue;
		}
		MPI_Mprobe(0, MATCHED + i, MPI_COMM_WORLD, &message,
			   MPI_STATUS_IGNORE);
		MPI_Mrecv(large, (int)sizes[i], MPI_CHAR, &message,
			  MPI_STATUS_IGNORE);
	}
}

static void put(int rank)
{
	static char window[LARGE];
	MPI_Win win;

	MPI_Win_create(window, sizeof(window), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
		       &win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < SIZES; i++)
		MPI_Put(large, (int)sizes[i], MPI_CHAR, !rank, 0, (int)sizes[i],
			MPI_CHAR, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
}

/* --- without MPI --- */

static void must(int is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "rank %d: %s failed\n", nm_rank(), what);
	nm_abort(1, what);
}

static void receive_after_close(struct nm_session *s)
{
	struct nm_message *messages[SIZES];
	struct nm_sr_request req;
	struct nm_sr_status status;
	struct nm_data data;

	for (nm_tag_t i = 0; i < SIZES; i++)
		while (nm_sr_mprobe(s, nm_gate_of(0), MATCHED + i, NM_TAG_EXACT,
				    &messages[i], &status) != 0)
			marcel_yield();
	must(nm_session_close(s) == 0, "nm_session_close()");
	for (int i = 0; i < SIZES; i++) {
		data = nm_data_flat(large, sizes[i]);
		must(nm_sr_mrecv(messages[i], &data, &req) == 0,
		     "nm_sr_mrecv()");
		nm_sr_wait(&req);
	}
}

static void send_matched(struct nm_session *s)
{
	struct nm_sr_request reqs[SIZES];
	struct nm_data data;

	for (nm_tag_t i = 0; i < SIZES; i++) {
		data = nm_data_flat(large, sizes[i]);
		must(nm_sr_isend(s, nm_gate_of(1), MATCHED + i, &data, 0,
				 &reqs[i]) == 0,
		     "nm_sr_isend()");
	}
	for (int i = 0; i < SIZES; i++)
		nm_sr_wait(&reqs[i]);
	nm_session_close(s);
}

static int take_body(struct nm_rpc_call *call, void *arg)
{
	struct nm_data data = nm_data_flat(large, nm_rpc_body_length(call));

	(void)arg;
	return nm_rpc_receive(call, &data);
}

static void call_all(struct nm_rpc *rpc, int to)
{
	struct nm_rpc_request req;
	struct nm_rpc_status status;
	struct nm_data body;

	for (int i = 0; i < SIZES; i++) {
		body = nm_data_flat(large, sizes[i]);
		must(nm_rpc_send(rpc, nm_gate_of(to), SERVICE, "", 1, &body,
				 &req) == 0,
		     "nm_rpc_send()");
		nm_rpc_wait(&req);
		nm_rpc_status(&req, &status);
		must(status.error == 0 && status.result == 0, "the call");
	}
}

/* Rank 1 serves until rank 0 says that it has called. */
static int calls(void)
{
	struct nm_session *s, *over;
	struct nm_data none = nm_data_flat(NULL, 0);
	struct nm_rpc *rpc = NULL;

	must(nm_init() == 0 && nm_session_open(SESSION, &s) == 0 &&
		     nm_session_open(SESSION + 1, &over) == 0 &&
		     nm_rpc_open(SESSION + 2, 0, &rpc) == 0 &&
		     nm_rpc_register(rpc, SERVICE, take_body, NULL) == 0,
	     "nm_init()");
	if (nm_rank() == 0) {
		send_matched(s);
		/* Rank 1 sends this after it has registered the service. */
		nm_sr_recv(over, nm_gate_of(1), 0, NM_TAG_EXACT, &none, NULL);
		call_all(rpc, 1);
		nm_sr_send(over, nm_gate_of(1), 0, &none, 0);
	} else {
		receive_after_close(s);
		nm_sr_send(over, nm_gate_of(0), 0, &none, 0);
		nm_sr_recv(over, nm_gate_of(0), 0, NM_TAG_EXACT, &none, NULL);
	}
	must(nm_rpc_unregister(rpc, SERVICE) == 0 && nm_rpc_close(rpc) == 0 &&
		     nm_session_close(over) == 0,
	     "nm_rpc_close()");
	return nm_exit() < 0;
}

int main(int argc, char **argv)
{
	int rank;

	if (argc > 1 && strcmp(argv[1], "calls") == 0)
		return calls();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "abort") == 0) {
		for (int i = 0; i < CALLS && rank == 0; i++)
			MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		if (rank == 0)
			MPI_Abort(MPI_COMM_WORLD, 7);
	}
	exchange(rank);
	match(rank);
	put(rank);
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
