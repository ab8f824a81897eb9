/*
 * A rank of a job that a fault happens to: it does something, is hit or sees
 * that another is, and says what became of it.
 *
 *   rank ACTIVITY FAULT HOSTS
 *
 * The last rank is the victim, or its host is. Ranks are dealt out in blocks to
 * so many hosts. With the error handler that returns (mpirun's
 * --initial-errhandler) every rank that is left judges what it was told, and
 * goes on without the lost ones to MPI_Finalize; "faults: rank 0 is done" is
 * the last that it says. tests/faults/run judges all of them.
 */
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "../madmpi/program.h"
#include "after.h"
#include "hand.h"

enum {
	TAG = 5,
	LARGE = 1 << 20, /* by rendezvous */
	MANY = 2000000,  /* elements */
	RANKS = 16
};

static enum fault fault;
static int victim, hosts;
static struct view view;
static MPI_Comm aside; /* for what the test has to tell */

/* --- who loses whom --- */

static int host_of(int r)
{
	return r * hosts / size;
}

static bool is_of_links(void)
{
	return fault == FAULT_CUT || fault == FAULT_SILENCE;
}

static bool passes(void)
{
	return fault == FAULT_PAUSE || fault == FAULT_BLINK;
}

/* Whether the fault lies between them. */
static bool parts(int a, int b)
{
	int at = host_of(victim);

	if (a == b || passes())
		return false;
	if (is_of_links())
		return (host_of(a) == at) != (host_of(b) == at);
	return a == victim || b == victim;
}

static void see(void)
{
	view.rank = rank;
	view.size = size;
	view.lost = calloc((size_t)size, sizeof(bool));
	view.with_me = calloc((size_t)size, sizeof(bool));
	EXPECT(view.lost != NULL && view.with_me != NULL);
	for (int r = 0; r < size; r++) {
		view.lost[r] = parts(rank, r);
		view.loses_any |= view.lost[r];
		view.with_me[r] = fault == FAULT_RESET
					  ? (r == victim) == (rank == victim)
					  : !view.lost[r];
		for (int s = 0; s < size; s++)
			view.some_is_lost |= parts(r, s);
	}
}

/* The class of what needs that rank, or any of them. */
static int wanted_of(int r)
{
	return view.lost[r] ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS;
}

static int wanted_of_any(void)
{
	return view.loses_any ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS;
}

static int wanted_of_all(void)
{
	return view.some_is_lost ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS;
}

/* Of the others that it does not lose. */
static void tell_the_rest(int tag)
{
	for (int r = 0; r < size; r++)
		if (r != rank && !view.lost[r])
			FAILS(MPI_Send(&r, 1, MPI_INT, r, tag, MPI_COMM_WORLD),
			      MPI_SUCCESS);
}

/* --- what they do: the victim, the others --- */

/* Of the victim, which knows of what happened to its links when it is back. */
static void be_hit(void)
{
	int got;

	hand_ask();
	hand_wait();
	if (view.lost[0])
		FAILS(MPI_Recv(&got, 1, MPI_INT, 0, TAG, aside,
			       MPI_STATUS_IGNORE),
		      MPI_ERR_PROC_ABORTED);
}

static void nothing(void)
{
	if (rank == victim)
		be_hit();
}

/* What the victim waits for nobody sends, until it knows that it is cut off. */
static void receive(void)
{
	int got;

	if (rank != victim) {
		FAILS(MPI_Recv(&got, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD,
			       MPI_STATUS_IGNORE),
		      wanted_of(victim));
		return;
	}
	hand_ask();
	if (passes())
		hand_wait();
	else
		FAILS(MPI_Recv(&got, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
			       MPI_STATUS_IGNORE),
		      MPI_ERR_PROC_ABORTED);
	tell_the_rest(TAG);
}

static void receive_any(void)
{
	int got;

	if (rank != victim) {
		FAILS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG,
			       MPI_COMM_WORLD, MPI_STATUS_IGNORE),
		      wanted_of_any());
		return;
	}
	hand_ask();
	if (passes())
		hand_wait();
	else
		FAILS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG,
			       MPI_COMM_WORLD, MPI_STATUS_IGNORE),
		      MPI_ERR_PROC_ABORTED);
	for (int r = 0; r < size; r++)
		if (r != rank && !view.lost[r] &&
		    (passes() || fault == FAULT_RESET))
			FAILS(MPI_Send(&r, 1, MPI_INT, r, TAG, MPI_COMM_WORLD),
			      MPI_SUCCESS);
}

/* Large ones that nobody has received yet. */
static void send(void)
{
	static char large[LARGE];

	if (rank != victim) {
		FAILS(MPI_Send(large, LARGE, MPI_CHAR, victim, TAG,
			       MPI_COMM_WORLD),
		      wanted_of(victim));
		return;
	}
	hand_ask();
	if (passes())
		hand_wait();
	else
		FAILS(MPI_Send(large, LARGE, MPI_CHAR, 0, TAG, MPI_COMM_WORLD),
		      MPI_ERR_PROC_ABORTED);
	for (int r = 0; r < size; r++)
		if (r != rank && !view.lost[r])
			FAILS(MPI_Recv(large, LARGE, MPI_CHAR, r, TAG,
				       MPI_COMM_WORLD, MPI_STATUS_IGNORE),
			      MPI_SUCCESS);
}

/* Large ones go both ways all the time. The first byte: the last of them. */
static int swap(int peer, char last)
{
	static char out[LARGE], in[LARGE];
	int rc;

	memset(out, rank + 1, LARGE);
	out[0] = last;
	rc = MPI_Sendrecv(out, LARGE, MPI_CHAR, peer, TAG, in, LARGE, MPI_CHAR,
			  peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rc == MPI_SUCCESS)
		EXPECT_INT(in[LARGE - 1], peer + 1);
	return rc == MPI_SUCCESS && in[0] ? -1 : class_of(rc);
}

static void stream(void)
{
	int rc = MPI_SUCCESS, failed = 0;
	double begin = MPI_Wtime();

	if (rank != victim) {
		while (rc == MPI_SUCCESS)
			rc = swap(victim, 0);
		EXPECT_INT(rc, view.lost[victim] ? MPI_ERR_PROC_ABORTED : -1);
		return;
	}
	hand_ask();
	while (passes() ? MPI_Wtime() - begin < 1 : !failed)
		for (int r = 0; r < size; r++)
			if (r != rank && swap(r, 0) != MPI_SUCCESS)
				failed++;
	EXPECT(failed == 0 || !passes());
	if (passes())
		hand_wait();
	for (int r = 0; r < size; r++)
		if (r != rank)
			EXPECT_INT(swap(r, 1), wanted_of(r));
}

/* A fault has happened, and who enters now knows. */
static void wait_for_the_fault(void)
{
	int got;

	FAILS(MPI_Recv(&got, 1, MPI_INT, victim, TAG, aside, MPI_STATUS_IGNORE),
	      wanted_of(victim));
}

/* The victim is not in it. */
static void barrier(void)
{
	if (rank == victim)
		be_hit();
	FAILS(MPI_Barrier(MPI_COMM_WORLD), wanted_of_all());
}

/*
 * The victim and the others are in it, and cannot be through before the first
 * one comes, who does when the fault has happened.
 */
static void reduce(bool blocking)
{
	int *in = malloc(MANY * sizeof(int)), *out = malloc(MANY * sizeof(int));
	int sum = size * (size + 1) / 2, rc;
	MPI_Request request;

	EXPECT(in != NULL && out != NULL);
	for (int i = 0; i < MANY; i++)
		in[i] = rank + 1;
	if (rank == victim)
		hand_ask();
	if (rank == 0 && !passes())
		wait_for_the_fault();
	if (blocking) {
		rc = MPI_Allreduce(in, out, MANY, MPI_INT, MPI_SUM,
				   MPI_COMM_WORLD);
	} else {
		MPI_Iallreduce(in, out, MANY, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
			       &request);
		rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	FAILS(rc, wanted_of_all());
	for (int i = 0; i < MANY && rc == MPI_SUCCESS; i++)
		EXPECT_INT(out[i], sum);
	free(in);
	free(out);
	if (rank == victim && passes())
		hand_wait();
}

static void allreduce(void)
{
	reduce(true);
}

static void iallreduce(void)
{
	reduce(false);
}

/*
 * Of memory of one process alone: what processes share outlives each of them,
 * and who writes to it needs nobody.
 */
static MPI_Win window(int **memory)
{
	static int mine[LARGE / sizeof(int)];
	MPI_Win win;

	*memory = mine;
	MPI_Win_create(mine, sizeof(mine), sizeof(int), MPI_INFO_NULL, aside,
		       &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	**memory = 0;
	MPI_Barrier(aside);
	return win;
}

/* The victim does nothing, and all others write to its memory. */
static void put(void)
{
	int *memory, rc = MPI_SUCCESS, over = 0;
	static char large[LARGE / 2];
	MPI_Win win = window(&memory);

	MPI_Win_lock_all(0, win);
	if (rank == victim) {
		be_hit();
		FAILS(MPI_Accumulate(&(int){ 1 }, 1, MPI_INT, rank, 0, 1,
				     MPI_INT, MPI_SUM, win),
		      MPI_SUCCESS);
		FAILS(MPI_Win_flush(rank, win), MPI_SUCCESS);
	}
	while (rank != victim && rc == MPI_SUCCESS && !over) {
		rc = MPI_Put(large, LARGE / 2, MPI_CHAR, victim, 1, LARGE / 2,
			     MPI_CHAR, win);
		if (rc == MPI_SUCCESS)
			rc = MPI_Fetch_and_op(NULL, &over, MPI_INT, victim, 0,
					      MPI_NO_OP, win);
		if (rc == MPI_SUCCESS)
			rc = MPI_Win_flush(victim, win);
	}
	if (rank != victim)
		FAILS(rc, wanted_of(victim));
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

/* The victim has the lock of the first one's memory, and the others want it. */
static void lock(void)
{
	int *memory, got;
	MPI_Win win = window(&memory);

	if (rank == victim) {
		FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), MPI_SUCCESS);
		for (int r = 0; r < size - 1; r++)
			MPI_Send(&r, 1, MPI_INT, r, TAG, aside);
		be_hit();
		FAILS(MPI_Win_unlock(0, win), wanted_of(0));
	} else {
		MPI_Recv(&got, 1, MPI_INT, victim, TAG, aside,
			 MPI_STATUS_IGNORE);
		got = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		FAILS(got, view.lost[0] || parts(0, victim)
				   ? MPI_ERR_PROC_ABORTED
				   : MPI_SUCCESS);
		if (got == MPI_SUCCESS)
			FAILS(MPI_Win_unlock(0, win), MPI_SUCCESS);
	}
	MPI_Win_free(&win);
}

static void fence(void)
{
	int *memory;
	MPI_Win win = window(&memory);

	if (rank == victim)
		be_hit();
	FAILS(MPI_Win_fence(0, win), wanted_of_all());
	MPI_Win_free(&win);
}

/*
 * The victim and the others are in a call of several rounds when the fault
 * happens, and cannot be through, since the first one comes only then.
 */
static void in_the_midst(int (*call)(void), bool all_are_told)
{
	int class;

	if (rank == victim)
		hand_ask();
	if (rank == 0 && !passes())
		wait_for_the_fault();
	class = class_of(call());
	if (all_are_told || class != MPI_SUCCESS)
		EXPECT_INT(class, wanted_of_all());
	if (rank == victim && passes())
		hand_wait();
}

static int free_window(int rc, MPI_Win *win)
{
	return rc != MPI_SUCCESS ? rc : MPI_Win_free(win);
}

/* The second one begins when the fault has happened. */
static int make_windows(void)
{
	static int mine;
	int rc, *memory;
	MPI_Win win;

	rc = MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL,
			      MPI_COMM_WORLD, &memory, &win);
	FAILS(free_window(rc, &win), wanted_of_all());
	rc = MPI_Win_create(&mine, sizeof(int), sizeof(int), MPI_INFO_NULL,
			    MPI_COMM_WORLD, &win);
	return free_window(rc, &win);
}

static void windows(void)
{
	in_the_midst(make_windows, true);
}

static int free_comm(int rc, MPI_Comm *comm)
{
	return rc != MPI_SUCCESS ? rc : MPI_Comm_free(comm);
}

static int make_topologies(void)
{
	int no = 0, one = 1, to = (rank + 1) % size, rc;
	MPI_Comm comm;

	rc = MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &to, &one,
				   MPI_INFO_NULL, 1, &comm);
	FAILS(free_comm(rc, &comm), wanted_of_all());
	rc = MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &no, 1, &comm);
	return free_comm(rc, &comm);
}

static void topology(void)
{
	in_the_midst(make_topologies, true);
}

static int split_it(void)
{
	MPI_Comm comm;
	int rc = MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comm);

	FAILS(free_comm(rc, &comm), wanted_of_all());
	rc = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
				 MPI_INFO_NULL, &comm);
	return free_comm(rc, &comm);
}

static void split(void)
{
	in_the_midst(split_it, true);
}

static int duplicate(void)
{
	MPI_Comm comm;
	int rc = MPI_Comm_dup(MPI_COMM_WORLD, &comm);

	return free_comm(rc, &comm);
}

/* The first one sends down a tree, and not all are below the victim. */
static void dup_comm(void)
{
	in_the_midst(duplicate, false);
}

static int make_session(void)
{
	MPI_Errhandler handler;
	MPI_Session session;
	MPI_Group group;
	MPI_Comm comm;
	int rc;

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
	FAILS(MPI_Session_init(MPI_INFO_NULL, handler, &session), MPI_SUCCESS);
	FAILS(MPI_Group_from_session_pset(session, "mpi://WORLD", &group),
	      MPI_SUCCESS);
	rc = MPI_Comm_create_from_group(group, "faults", MPI_INFO_NULL, handler,
					&comm);
	rc = free_comm(rc, &comm);
	MPI_Group_free(&group);
	MPI_Errhandler_free(&handler);
	FAILS(MPI_Session_finalize(&session), MPI_SUCCESS);
	return rc;
}

static void session(void)
{
	in_the_midst(make_session, false);
}

/* The victim is in MPI_Finalize when it is hit, or it is not in it yet. */
static void finalize(void)
{
	if (rank == victim)
		hand_ask();
	if (rank == 0 && !passes())
		wait_for_the_fault();
}

static void finalize_late(void)
{
	nothing();
}

static void init(void)
{
}

static const struct {
	const char *name;
	void (*act)(void);
	bool ends; /* nothing comes after it */
} activities[] = {
	{ "idle", nothing, false },
	{ "recv", receive, false },
	{ "anysource", receive_any, false },
	{ "send", send, false },
	{ "stream", stream, false },
	{ "barrier", barrier, false },
	{ "allreduce", allreduce, false },
	{ "iallreduce", iallreduce, false },
	{ "put", put, false },
	{ "lock", lock, false },
	{ "fence", fence, false },
	{ "window", windows, false },
	{ "topology", topology, false },
	{ "split", split, false },
	{ "dup", dup_comm, false },
	{ "session", session, false },
	{ "init", init, false },
	{ "finalize", finalize, true },
	{ "late", finalize_late, true },
};

enum { ACTIVITIES = sizeof(activities) / sizeof(activities[0]) };

/* --- the rank --- */

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	EXPECT(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static void say(const char *what)
{
	struct timespec t;
	char text[96];
	int n;

	clock_gettime(CLOCK_MONOTONIC, &t);
	n = snprintf(text, sizeof(text), "faults: rank %d %s at %lld\n", rank,
		     what, t.tv_sec * 1000000000LL + t.tv_nsec);
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		exit(1);
}

/* Each with each, so that all are connected. */
static void meet(void)
{
	int out[RANKS], in[RANKS];

	for (int i = 0; i < size; i++)
		out[i] = rank;
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		MPI_Sendrecv(out, 1, MPI_INT, (rank + i) % size, 0, in, 1,
			     MPI_INT, (rank - i + size) % size, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Comm_dup(MPI_COMM_WORLD, &aside);
	MPI_Comm_dup(MPI_COMM_WORLD, &view.world);
}

static int number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text != NULL ? atoi(text) : 0;
}

/* The victim is in MPI_Init when it is hit, and the first one is not yet. */
static void begin_late(void)
{
	struct timespec a_while = { 0, 200000000 };

	if (rank == victim)
		hand_ask();
	else if (rank == 0)
		nanosleep(&a_while, NULL);
}

int main(int argc, char **argv)
{
	int i = 0, rc, before;

	rank = number_of("PMI_RANK");
	size = number_of("PMI_SIZE");
	victim = size - 1;
	while (argc == 4 && i < ACTIVITIES &&
	       strcmp(activities[i].name, argv[1]) != 0)
		i++;
	fault = argc == 4 ? fault_of(argv[2]) : FAULT_COUNT;
	hosts = argc == 4 ? atoi(argv[3]) : 0;
	if (size < 2 || size > RANKS || i >= ACTIVITIES ||
	    fault == FAULT_COUNT || hosts < 1) {
		fprintf(stderr, "usage: rank ACTIVITY FAULT HOSTS\n");
		return 2;
	}
	printf("faults: process %d\n", (int)getpid());
	fflush(stdout);
	if (rank == victim)
		hand_begin(fault, host_of(victim));
	before = count_descriptors();
	if (activities[i].act == init)
		begin_late();
	rc = MPI_Init(&argc, &argv);
	if (activities[i].act == init && rc != MPI_SUCCESS) {
		printf("faults: rank %d: MPI_Init: class %d\n", rank,
		       class_of(rc));
		say("knows");
		say("is done");
		return 0;
	}
	see();
	view.world = MPI_COMM_WORLD;
	if (activities[i].act != init)
		meet();
	activities[i].act();
	say("knows");
	if (!activities[i].ends)
		after_fault(&view, activities[i].act == nothing);
	if (activities[i].act != init) {
		FAILS(MPI_Comm_free(&view.world), MPI_SUCCESS);
		FAILS(MPI_Comm_free(&aside), MPI_SUCCESS);
	}
	say("finalizes");
	rc = MPI_Finalize();
	if (rc != MPI_SUCCESS) {
		fprintf(stderr, "rank %d: MPI_Finalize: class %d\n", rank, rc);
		return 1;
	}
	if (rank == victim)
		hand_end();
	/* Who has had a session leaves the job when it exits. */
	if (activities[i].act != nothing && activities[i].act != session &&
	    count_descriptors() > before) {
		fprintf(stderr, "rank %d: descriptors are left open\n", rank);
		return 1;
	}
	say("is done");
	return 0;
}
